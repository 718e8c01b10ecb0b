"""A stream of AG-UI made shorter, by the protocol's own rule: one start, one content and one end of each text and call, what came in between
behind them, one snapshot of the state of each run. Who applies it ends with the same messages and the same state; so streams side by side keep the
order in which they began, and nothing is moved past a snapshot of all messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_text, rest
from dragoman.errors import DecodeError
from dragoman.json_patch import PatchedValue, PatchError, PatchTooLargeError, copy_value
from dragoman.wires.ag_ui.decode_old import Older

__all__ = ["compact"]

Object = dict[str, Any]
_STREAMS: Mapping[str, tuple[str, str, str]] = {
    f"{family}_{step}": (family, key, content)
    for family, key, content in (
        ("TEXT_MESSAGE", "messageId", "TEXT_MESSAGE_CONTENT"),
        ("TOOL_CALL", "toolCallId", "TOOL_CALL_ARGS"),
    )
    for step in ("START", "END", content.removeprefix(f"{family}_"))
}
"""Type → its family, the field of its id, the type of its content."""
_STATES = ("STATE_SNAPSHOT", "STATE_DELTA")
_WHOLE = "MESSAGES_SNAPSHOT"
_BORDERS = ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", _WHOLE)
"""Nothing is moved past these."""


class _Stream:
    """A text or a call whose end is still to come."""

    def __init__(self, key: str, id_: str, content: str) -> None:
        self.start: Object | None = None
        self.deltas: list[str] = []
        self.metadata: Object = {}
        """Of what came after the start."""
        self.end: Object | None = None
        self._head = {"type": content, key: id_}

    def begin(self, fields: Object) -> None:
        """A start; one that comes again changes the first."""
        more = if_object(fields.get("metadata"))
        if self.deltas:
            self.metadata |= more
            more = {}
        before = if_object(self.start.get("metadata")) if self.start else {}
        metadata = {**before, **more}
        self.start = {**rest(fields, "metadata"), **({"metadata": metadata} if metadata else {})}

    def written(self) -> list[Object]:
        """All of it, made one."""
        made = [self.start] if self.start else []
        if self.deltas:
            metadata = {"metadata": self.metadata} if self.metadata else {}
            made.append({**self._head, "delta": "".join(self.deltas), **metadata})
        return [*made, self.end] if self.end else made


def compact(objects: Iterable[Mapping[str, Any]]) -> list[Object]:
    """The objects of a stream → fewer that say the same. Chunks and old names are read; nothing that is given is changed."""
    older = Older()
    out: list[Object | _Stream] = []
    open_: dict[tuple[str, str], _Stream] = {}
    states: list[Object] = []
    for fields in (each for given in objects for each in older.read(given)):
        kind = if_text(fields.get("type"))
        if kind in _STREAMS:
            family, key, content = _STREAMS[kind]
            place = (family, if_text(fields.get(key)))
            stream = open_.get(place)
            if stream is None:
                stream = open_[place] = _Stream(key, place[1], content)
                out.append(stream)
            if kind == content:
                stream.deltas.append(if_text(fields.get("delta")))
                stream.metadata |= if_object(fields.get("metadata"))
            elif kind.endswith("_START"):
                stream.begin(fields)
            else:
                stream.end = fields
                del open_[place]
        elif kind in _STATES:
            states.append(fields)
        elif kind in _BORDERS:
            open_.clear()  # what goes on, goes on behind it
            if kind != _WHOLE:
                out += _state(states)
                states = []
            out.append(fields)
        else:
            out.append(fields)
    out += _state(states)
    return [each for one in out for each in (one.written() if isinstance(one, _Stream) else [one])]


def _state(events: Sequence[Object]) -> list[Object]:
    """The events of one run's state → one; changes alone, without the whole that they change, stay as they are."""
    snapshots = [place for place, each in enumerate(events) if each["type"] == "STATE_SNAPSHOT"]
    if not snapshots:
        return list(events)
    last = snapshots[-1]
    state = _patched(
        events[last].get("snapshot"), [event.get("delta") for event in events[last + 1 :]]
    )
    metadata = {
        key: value for each in events for key, value in if_object(each.get("metadata")).items()
    }
    return [
        {
            "type": "STATE_SNAPSHOT",
            "snapshot": state,
            **({"metadata": metadata} if metadata else {}),
        }
    ]


def _patched(snapshot: Any, deltas: Sequence[Any]) -> Any:
    """A state changed by JSON patches, without those that do not fit.

    Raises:
        DecodeError: the state is larger than a state may be.
    """
    try:
        state = PatchedValue(copy_value(snapshot))
        for delta in deltas:
            _patch_if_it_fits(state, if_list(delta))
    except PatchTooLargeError as error:
        raise DecodeError(f"the state cannot be compacted: {error}") from error
    return state.value


def _patch_if_it_fits(state: PatchedValue, operations: Sequence[Any]) -> None:
    try:
        state.patch(operations)
    except PatchTooLargeError:
        raise
    except PatchError:
        return
