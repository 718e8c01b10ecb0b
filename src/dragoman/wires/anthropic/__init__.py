"""Anthropic's Messages API, both ways. The conversation is `{"system": …, "messages": […]}`."""

from dragoman.wires.anthropic.decode import decoder, load_response
from dragoman.wires.anthropic.encode import dump_response, encoder, envelope, ping, stream_type
from dragoman.wires.anthropic.errors import dump_error, load_error
from dragoman.wires.anthropic.files import dump_download, load_files
from dragoman.wires.anthropic.messages import dump_messages, load_messages, votes
from dragoman.wires.anthropic.quirks import NAME, Quirks
from dragoman.wires.anthropic.request import dump_http, dump_request, load_request, routes

__all__ = [
    "Quirks",
    "decoder",
    "dump_download",
    "dump_error",
    "dump_http",
    "dump_messages",
    "dump_request",
    "dump_response",
    "encoder",
    "envelope",
    "load_error",
    "load_files",
    "load_messages",
    "load_request",
    "load_response",
    "name",
    "ping",
    "routes",
    "stream_type",
    "votes",
]

name = NAME
