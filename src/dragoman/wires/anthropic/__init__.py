"""Anthropic's Messages API, both ways. The conversation is `{"system": …, "messages": […]}`."""

from dragoman.wires.anthropic.decode import decoder, load_response
from dragoman.wires.anthropic.encode import dump_response, encoder, envelope, ping, stream_type
from dragoman.wires.anthropic.errors import dump_error, load_error
from dragoman.wires.anthropic.files import dump_download, load_files
from dragoman.wires.anthropic.messages import (
    dump_messages,
    layout,
    load_change,
    load_messages,
    votes,
)
from dragoman.wires.anthropic.quirks import NAME, Quirks
from dragoman.wires.anthropic.request import (
    count_field,
    dump_count,
    dump_http,
    dump_request,
    forward,
    load_request,
    routes,
)
from dragoman.wires.anthropic.serving import (
    bodies,
    dump_model,
    dump_models,
    dump_seal,
    dump_token_count,
    keys,
    load_seal,
    request_fields,
    seal,
)
from dragoman.wires.anthropic.serving_allowed import allowed

__all__ = ["Quirks", "name"]
__all__ += ["load_messages", "dump_messages", "load_change", "votes", "layout"]
__all__ += ["load_request", "dump_request", "dump_http", "routes"]
__all__ += ["load_response", "dump_response", "decoder", "encoder"]
__all__ += ["envelope", "stream_type", "ping"]
__all__ += ["load_error", "dump_error"]
__all__ += ["dump_download", "load_files"]
__all__ += ["dump_model", "dump_models", "dump_token_count", "dump_count", "count_field", "keys"]
__all__ += ["dump_seal", "load_seal"]
__all__ += ["bodies", "request_fields", "allowed", "forward"]

name = NAME
__all__ += ["seal"]
