"""The UI message stream of Vercel's AI SDK, both ways: what `useChat` sends, and the stream that it
shows.

Its messages are those of the format `ai_sdk_ui`. What the stream has no field for stands in the
message's metadata, under the key `dragoman`, so that the message that a client has is the run's
messages as they were.
"""

from dragoman.wires.ai_sdk.decode import decoder, load_response
from dragoman.wires.ai_sdk.encode import (
    encoder,
    envelope,
    envelope_again,
    ping,
    stream_headers,
    stream_type,
)
from dragoman.wires.ai_sdk.errors import dump_error, load_error
from dragoman.wires.ai_sdk.messages import dump_messages, layout, load_messages, same_as, votes
from dragoman.wires.ai_sdk.quirks import NAME, Quirks
from dragoman.wires.ai_sdk.runs import dump_run, find_regenerated, load_run, routes
from dragoman.wires.ai_sdk.serving import bodies, dump_capabilities, nothing_runs

name = NAME


def __getattr__(name: str) -> object:
    if name == "dump_response":
        raise AttributeError(
            "the AI SDK's UI protocol has no response that comes whole: a run is always streamed; write it with ai_sdk.encoder()"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Quirks", "name"]
__all__ += ["load_messages", "dump_messages", "votes", "layout", "same_as"]
__all__ += ["load_run", "dump_run", "find_regenerated", "routes"]
__all__ += [
    "decoder",
    "load_response",
    "encoder",
    "envelope",
    "envelope_again",
    "stream_type",
    "stream_headers",
    "ping",
]
__all__ += ["load_error", "dump_error"]
__all__ += ["bodies", "dump_capabilities", "nothing_runs"]
