WIRE, VENV, DISTS, IMPORT = "responses", "dragoman", "dragoman", "from dragoman import Agent"
from _dragoman import make

text_stream, tool_round, short, close = make("openai-responses:gpt-4o", "/v1")
