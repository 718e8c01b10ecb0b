WIRE, VENV, DISTS, IMPORT = "anthropic", "dragoman", "dragoman", "from dragoman import Agent"
from _dragoman import make

text_stream, tool_round, short, close = make("anthropic:claude-sonnet-4-5", "/v1")
