"""What our own encoder wrote → the events that it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.fold import close_part
from dragoman.message import Content, Origin, Role
from dragoman.wires.a2a.quirks import extras, json_of, load_events
from dragoman.wires.a2a.tasks import is_over, state_of

__all__ = ["OwnRun"]

Key = tuple[str, int]


class OwnRun:
    """Objects → events."""

    def __init__(self, events: list[Event], origin: Origin | None) -> None:
        """`events`: fills up. `origin`: of the model's messages, in the place of what is told."""
        self._events = events
        self._origin = origin
        self.is_known = False
        """Whether something was ours."""
        self._open: dict[Key, tuple[Content, list[str | bytes]]] = {}
        self._texts: dict[str, Key] = {}
        """Id of an artifact → the text that it is."""

    def take(self, kind: str, fields: Mapping[str, Any]) -> bool:
        """One object → whether it was ours."""
        held = extras(fields.get("metadata"))
        artifact = if_object(fields.get("artifact"))
        key = self._texts.get(if_text(artifact.get("artifactId")))
        if (
            kind == "artifactUpdate"
            and not held
            and key is not None
            and fields.get("append") is True
        ):
            self._delta(key, artifact)
            return True
        if (
            kind == "statusUpdate"
            and self.is_known
            and not held
            and "message" not in if_object(fields.get("status"))
        ):
            return not is_over(state_of(if_object(fields.get("status")).get("state")))
        read = load_events({"events": held["run"]} if kind == "task" and "run" in held else held)
        if read is None or not ("events" in held or "run" in held):
            return False
        self.is_known = True
        for event in read:
            self._see(event)
        if "delta" in held and (place := _key(json_of(held["delta"]))) is not None:
            self._texts[if_text(artifact.get("artifactId"))] = key = place
        if artifact and key is not None and ("delta" in held or fields.get("append") is True):
            self._delta(key, artifact)
        if "finished" in held:
            self._finish(json_of(held["finished"]))
        return True

    def _see(self, event: Event) -> None:
        if isinstance(event, PartStarted):
            self._open[event.message_id, event.index] = event.part, []
        elif isinstance(event, PartDelta):
            if (known := self._open.get((event.message_id, event.index))) is not None:
                known[1].append(event.delta)
        elif isinstance(event, PartFinished):
            self._open.pop((event.message_id, event.index), None)
        elif isinstance(event, MessageStarted | MessageFinished) and self._origin is not None:
            is_model = isinstance(event, MessageFinished) or event.role is Role.MODEL
            if is_model and event.origin is not None:
                event = msgspec.structs.replace(event, origin=self._origin)
        self._events.append(event)

    def _delta(self, key: Key, artifact: Mapping[str, Any]) -> None:
        parts = [if_object(part) for part in if_list(artifact.get("parts"))]
        text = "".join([if_text(part.get("text")) for part in parts])
        if text:
            self._see(PartDelta(*key, text))

    def _finish(self, value: Any) -> None:
        key = _key(value[:2]) if isinstance(value, list) else None
        if key is None:
            return
        known, listed = self._open.pop(key, None), if_list(value)
        try:
            if len(listed) == 3:
                whole: Content | None = msgspec.convert(listed[2], Content)
            else:
                whole = None if known is None else close_part(*known)
            if len(listed) == 4 and whole is not None:
                whole = msgspec.structs.replace(whole, native=if_object(listed[3]) or None)
        except (ValueError, TypeError, RecursionError):
            return
        if whole is not None:
            self._events.append(PartFinished(*key, whole))


def _key(place: Any) -> Key | None:
    listed = if_list(place)
    if len(listed) != 2 or not isinstance(listed[0], str) or type(listed[1]) is not int:
        return None
    return listed[0], listed[1]
