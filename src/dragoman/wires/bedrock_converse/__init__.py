"""Amazon Bedrock's Converse and ConverseStream, both ways. The conversation is
`{"system": […], "messages": […]}`.

Model and stream stand in the path. A stream is of binary frames (`codec.binary_frames`). All is
written by the types of AWS's SDK; nothing of it was recorded. Nothing is normalised.
"""

from dragoman.wires.bedrock_converse.decode import decoder, load_response
from dragoman.wires.bedrock_converse.encode import (
    dump_response,
    encoder,
    envelope,
    ping,
    stream_type,
)
from dragoman.wires.bedrock_converse.errors import dump_error, load_error
from dragoman.wires.bedrock_converse.messages import dump_messages, layout, load_messages, votes
from dragoman.wires.bedrock_converse.quirks import NAME, Quirks
from dragoman.wires.bedrock_converse.request import (
    count_field,
    dump_count,
    dump_http,
    dump_request,
    forward,
    load_request,
    routes,
)
from dragoman.wires.bedrock_converse.serving import (
    bodies,
    dump_model,
    dump_models,
    dump_token_count,
    request_fields,
    seal,
)
from dragoman.wires.bedrock_converse.serving_allowed import allowed

name = NAME

__all__ = ["Quirks", "name"]
__all__ += ["load_messages", "dump_messages", "votes", "layout"]
__all__ += ["load_request", "dump_request", "dump_http", "routes"]
__all__ += ["load_response", "dump_response", "decoder", "encoder"]
__all__ += ["envelope", "stream_type", "ping"]
__all__ += ["load_error", "dump_error"]
__all__ += ["dump_model", "dump_models", "dump_token_count", "dump_count", "count_field"]
__all__ += ["bodies", "request_fields", "allowed", "forward", "seal"]
