"""Whether events tell of messages as they must: what is opened is closed, and the deltas of a part are the part."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.fold import close_part
from dragoman.message import Content, TextPart, ThinkingPart

__all__ = ["fault_of"]


def fault_of(events: Iterable[Event], *, spoilt: bool = False) -> str | None:
    """The first thing that is wrong with a stream of events, in words; `None`: nothing is.

    `spoilt`: they come of spoilt bytes, so that the end of a part may say something else than its deltas.
    """
    messages: set[str] = set()
    closed_messages: set[str] = set()
    open_parts: dict[tuple[str, int], tuple[Content, list[str | bytes]]] = {}
    closed_parts: set[tuple[str, int]] = set()
    for event in events:
        match event:
            case MessageStarted(message_id=id_):
                if id_ in messages:
                    return f"the message {id_!r} is started twice"
                messages.add(id_)
            case PartStarted(message_id=id_, index=index, part=part):
                if id_ not in messages or id_ in closed_messages:
                    return f"a part is started in the message {id_!r}, which is not open"
                if (id_, index) in open_parts or (id_, index) in closed_parts:
                    return f"part {index} of the message {id_!r} is started twice"
                open_parts[id_, index] = (part, [])
            case PartDelta(message_id=id_, index=index, delta=delta):
                if (id_, index) not in open_parts:
                    return f"a delta is for part {index} of the message {id_!r}, which is not open"
                open_parts[id_, index][1].append(delta)
            case PartFinished(message_id=id_, index=index, part=part):
                if (id_, index) in closed_parts and isinstance(part, ThinkingPart):
                    continue  # an amended signature
                if (id_, index) not in open_parts:
                    return f"part {index} of the message {id_!r} is finished and was not open"
                opened, deltas = open_parts.pop((id_, index))
                closed_parts.add((id_, index))
                if not spoilt and _text(part) != _text(close_part(opened, deltas)):
                    return f"the deltas of part {index} of the message {id_!r} are not its text"
            case MessageFinished(message_id=id_):
                if id_ not in messages or id_ in closed_messages:
                    return f"the message {id_!r} is finished and was not open"
                if left := [index for message, index in open_parts if message == id_]:
                    return f"the message {id_!r} is finished while its parts {left} are open"
                closed_messages.add(id_)
            case _:
                pass
    if left := messages - closed_messages:
        return f"the messages {sorted(left)} are never finished"
    return None


def _text(part: Content | None) -> str:
    return part.text if isinstance(part, TextPart | ThinkingPart) else ""
