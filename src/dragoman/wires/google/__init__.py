"""Gemini's generateContent and streamGenerateContent (AI Studio and Vertex), both ways. The
conversation is `{"systemInstruction": …, "contents": […]}`.

Every recorded body comes back as it was; nothing is normalised. Keys may come in camelCase and in
snake_case and go back so. Known to change: results without ids of one function's calls are put in
the order of these calls, by which the API tells them apart.
"""

from dragoman.wires.google.decode import decoder, load_response
from dragoman.wires.google.encode import dump_response, encoder, envelope, ping, stream_type
from dragoman.wires.google.errors import dump_error, load_error
from dragoman.wires.google.messages import dump_messages, layout, load_messages, votes
from dragoman.wires.google.quirks import NAME, Quirks
from dragoman.wires.google.request import (
    count_field,
    dump_count,
    dump_http,
    dump_request,
    forward,
    load_request,
    routes,
)
from dragoman.wires.google.serving import (
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
from dragoman.wires.google.serving_allowed import allowed

__all__ = ["Quirks", "name"]
__all__ += ["load_messages", "dump_messages", "votes", "layout"]
__all__ += ["load_request", "dump_request", "dump_http", "routes"]
__all__ += ["load_response", "dump_response", "decoder", "encoder"]
__all__ += ["envelope", "stream_type", "ping"]
__all__ += ["load_error", "dump_error"]
__all__ += ["dump_model", "dump_models", "dump_token_count", "dump_count", "count_field", "keys"]
__all__ += ["dump_seal", "load_seal"]
__all__ += ["bodies", "request_fields", "allowed", "forward"]

name = NAME
__all__ += ["seal"]
