"""Ollama's own API (`/api/chat`), both ways: newline-delimited JSON, or one JSON object. The
conversation is a list of messages.

A message holds one thinking, one text, images and calls, in this order; what was mixed otherwise is
noted as a loss. Normalised: nothing. `stream` is always written, since the API streams where it is
not told.
"""

from dragoman.wires.ollama.decode import decoder, load_response
from dragoman.wires.ollama.encode import dump_response, encoder, envelope, ping, stream_type
from dragoman.wires.ollama.errors import dump_error, load_error
from dragoman.wires.ollama.messages import dump_messages, layout, load_messages, votes
from dragoman.wires.ollama.quirks import NAME, Quirks
from dragoman.wires.ollama.request import dump_http, dump_request, forward, load_request, routes
from dragoman.wires.ollama.serving import (
    bodies,
    dump_idle,
    dump_model,
    dump_models,
    dump_running,
    dump_version,
    request_fields,
)
from dragoman.wires.ollama.serving_allowed import allowed

name = NAME

__all__ = ["Quirks", "name"]
__all__ += ["load_messages", "dump_messages", "votes", "layout"]
__all__ += ["load_request", "dump_request", "dump_http", "routes"]
__all__ += ["load_response", "dump_response", "decoder", "encoder"]
__all__ += ["envelope", "stream_type", "ping"]
__all__ += ["load_error", "dump_error"]
__all__ += ["dump_idle", "dump_model", "dump_models", "dump_running", "dump_version"]
__all__ += ["bodies", "request_fields", "allowed", "forward"]
