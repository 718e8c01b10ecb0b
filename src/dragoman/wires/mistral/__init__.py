"""Mistral's chat API (`api.mistral.ai/v1/chat/completions`).

It resembles OpenAI's, and is another: content is a list of chunks (thinking, documents and
references among them), ids of calls have nine letters and digits, the order of roles is strict, and
calls are streamed whole. Every request is dumped as it was loaded; nothing is normalised.
"""

from dragoman.wires.mistral.dialect import WIRE
from dragoman.wires.mistral.quirks import NAME, Quirks
from dragoman.wires.mistral.serving import bodies, dump_model, dump_models, forward, request_fields
from dragoman.wires.mistral.serving_allowed import allowed

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
__all__ += ["dump_model", "dump_models"]
__all__ += ["bodies", "request_fields", "allowed", "forward"]
