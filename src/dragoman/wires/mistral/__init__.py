"""Mistral's chat API (`api.mistral.ai/v1/chat/completions`).

It resembles OpenAI's, and is another: content is a list of chunks (thinking, documents and references among them), ids of
calls have nine letters and digits, the order of roles is strict, and calls are streamed whole.
Every request is dumped as it was loaded; nothing is normalised.
"""

from dragoman.wires.mistral.decode import decoder, load_response
from dragoman.wires.mistral.encode import dump_response, encoder
from dragoman.wires.mistral.errors import dump_error, load_error
from dragoman.wires.mistral.messages import dump_messages, load_messages
from dragoman.wires.mistral.quirks import NAME, Quirks
from dragoman.wires.mistral.request import dump_http, dump_request, load_request

name = NAME

__all__ = [
    "Quirks",
    "decoder",
    "dump_error",
    "dump_http",
    "dump_messages",
    "dump_request",
    "dump_response",
    "encoder",
    "load_error",
    "load_messages",
    "load_request",
    "load_response",
    "name",
]
