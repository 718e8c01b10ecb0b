WIRE, VENV, DISTS, IMPORT = "gemini", "dragoman", "dragoman", "from dragoman import Agent"
from _dragoman import make

text_stream, tool_round, short, close = make("google:gemini-2.5-flash", "/v1beta")
