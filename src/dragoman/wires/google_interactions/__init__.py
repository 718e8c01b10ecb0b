"""Google's Interactions API, both ways. The conversation is
`{"system_instruction": …, "input": …}`, a list of steps.

Google stores interactions unless `store` is false. The whole conversation is sent each time; a
caller who goes on from a stored one passes the option `previous_interaction_id` and only what
follows. Normalised: the pieces of a thought's summary that streamed are one.
"""

from dragoman.wires.google_interactions.decode import decoder, load_response
from dragoman.wires.google_interactions.encode import (
    dump_response,
    encoder,
    envelope,
    ping,
    stream_type,
)
from dragoman.wires.google_interactions.errors import dump_error, load_error
from dragoman.wires.google_interactions.messages import dump_messages, layout, load_messages, votes
from dragoman.wires.google_interactions.quirks import NAME, Quirks
from dragoman.wires.google_interactions.request import (
    background,
    dump_http,
    dump_request,
    load_request,
    routes,
)
from dragoman.wires.google_interactions.serving import (
    bodies,
    dump_model,
    dump_models,
    forward,
    keys,
    request_fields,
    seal,
)
from dragoman.wires.google_interactions.serving_allowed import allowed

name = NAME

__all__ = ["Quirks", "name"]
__all__ += ["load_messages", "dump_messages", "votes", "layout"]
__all__ += ["load_request", "dump_request", "dump_http", "routes"]
__all__ += ["load_response", "dump_response", "decoder", "encoder"]
__all__ += ["envelope", "stream_type", "ping"]
__all__ += ["load_error", "dump_error"]
__all__ += ["dump_model", "dump_models"]
__all__ += ["bodies", "request_fields", "allowed", "forward", "keys", "seal", "background"]
