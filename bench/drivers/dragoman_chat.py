WIRE, VENV, DISTS, IMPORT = "chat", "dragoman", "dragoman", "from dragoman import Agent"
from _dragoman import make

text_stream, tool_round, short, close = make("openai:gpt-4o", "/v1")
