"""OpenAI Chat Completions, and the many vendors and servers that speak it.

What vendors do differently in what they send is read without being told; what they want differently is in `Quirks`.
"""

from dragoman.codec.json_schema import strict_schema
from dragoman.wires.openai_chat.decode import decoder, load_response
from dragoman.wires.openai_chat.encode import dump_response, encoder
from dragoman.wires.openai_chat.errors import dump_error, load_error
from dragoman.wires.openai_chat.messages import dump_messages, load_messages
from dragoman.wires.openai_chat.quirks import NAME, Quirks
from dragoman.wires.openai_chat.request import dump_http, dump_request, load_request

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
    "strict_schema",
]
