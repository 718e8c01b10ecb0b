"""OpenAI Chat Completions, and the many vendors and servers that speak it.

What vendors do differently in what they send is read without being told; what they want differently
is in `Quirks`.
"""

from dragoman.codec.strict_schema import strict_schema
from dragoman.wires.chat.serving import dump_model, dump_models
from dragoman.wires.openai_chat.dialect import WIRE
from dragoman.wires.openai_chat.quirks import NAME, Quirks
from dragoman.wires.openai_chat.serving import (
    bodies,
    dump_call_seal,
    dump_seal,
    forward,
    load_call_seal,
    load_seal,
    request_fields,
    seal,
)
from dragoman.wires.openai_chat.serving_allowed import allowed

name = NAME
load_messages, dump_messages = WIRE.load_messages, WIRE.dump_messages
load_request, dump_request, dump_http = WIRE.load_request, WIRE.dump_request, WIRE.dump_http
load_response, dump_response = WIRE.load_response, WIRE.dump_response
decoder, encoder = WIRE.decoder, WIRE.encoder
load_error, dump_error = WIRE.load_error, WIRE.dump_error
routes, stream_type, ping = WIRE.routes, WIRE.stream_type, WIRE.ping
envelope, votes, layout = WIRE.envelope, WIRE.votes, WIRE.layout

__all__ = ["Quirks", "name"]
__all__ += ["load_messages", "dump_messages", "votes", "layout"]
__all__ += ["load_request", "dump_request", "dump_http", "routes"]
__all__ += ["load_response", "dump_response", "decoder", "encoder"]
__all__ += ["envelope", "stream_type", "ping"]
__all__ += ["load_error", "dump_error"]
__all__ += ["strict_schema"]
__all__ += ["dump_model", "dump_models"]
__all__ += ["dump_call_seal", "dump_seal", "load_call_seal", "load_seal"]
__all__ += ["bodies", "request_fields", "allowed", "forward"]
__all__ += ["seal"]
