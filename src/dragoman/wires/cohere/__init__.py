"""Cohere's Chat API, version 2, both ways. The conversation is a list of messages.

A tool plan is thinking in a field of its own. A message holds its plan, its content and its calls,
in this order; what was mixed otherwise is noted as a loss. Citations stand with the message, as the
API has them. Normalised: nothing.
"""

from dragoman.wires.cohere.decode import decoder, load_response
from dragoman.wires.cohere.encode import dump_response, encoder, envelope, ping, stream_type
from dragoman.wires.cohere.errors import dump_error, load_error
from dragoman.wires.cohere.messages import dump_messages, layout, load_messages, votes
from dragoman.wires.cohere.quirks import NAME, Quirks
from dragoman.wires.cohere.request import dump_http, dump_request, load_request, routes
from dragoman.wires.cohere.serving import bodies, dump_model, dump_models, forward, request_fields
from dragoman.wires.cohere.serving_allowed import allowed

name = NAME

__all__ = ["Quirks", "name"]
__all__ += ["load_messages", "dump_messages", "votes", "layout"]
__all__ += ["load_request", "dump_request", "dump_http", "routes"]
__all__ += ["load_response", "dump_response", "decoder", "encoder"]
__all__ += ["envelope", "stream_type", "ping"]
__all__ += ["load_error", "dump_error"]
__all__ += ["dump_model", "dump_models"]
__all__ += ["bodies", "request_fields", "allowed", "forward"]
