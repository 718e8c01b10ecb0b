"""AG-UI 1.0 (Agent User Interaction Protocol), both ways: one request of a conversation, answered
by a stream of events.

Messages and runs come back as they were, from AG-UI too: what the protocol has no field for stands
in metadata, under the key `dragoman`. What others wrote is read as it is, older versions included;
what is written is 1.0, without what the peer's version does not know.
"""

from typing import Any

from dragoman.wires import a2a
from dragoman.wires.ag_ui.decode import decoder, load_response
from dragoman.wires.ag_ui.encode import encoder, envelope, ping, stream_type
from dragoman.wires.ag_ui.errors import dump_error, load_error
from dragoman.wires.ag_ui.messages import dump_messages, layout, load_messages, votes
from dragoman.wires.ag_ui.quirks import NAME, Quirks
from dragoman.wires.ag_ui.runs import dump_run, load_run, routes
from dragoman.wires.ag_ui.serving import bodies, dump_capabilities

name = NAME
_SEED = (
    "compact_events",
    "convert_agui_event_to_openai_chat",
    "convert_agui_event_to_responses_api",
)
"""Conversions of documents of the year 2025, which the wire `a2a` offers too."""


def __getattr__(name: str) -> Any:
    if name in _SEED:
        return getattr(a2a, name)
    if name == "dump_response":
        raise AttributeError(
            "AG-UI has no response that comes whole: a run is always streamed; write it with ag_ui.encoder()"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Quirks", "name"]
__all__ += ["load_messages", "dump_messages", "votes", "layout"]
__all__ += ["load_run", "dump_run", "routes"]
__all__ += ["decoder", "load_response", "encoder", "envelope", "stream_type", "ping"]
__all__ += ["load_error", "dump_error"]
__all__ += ["bodies", "dump_capabilities"]
