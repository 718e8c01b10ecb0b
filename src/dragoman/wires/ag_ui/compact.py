"""A stream of AG-UI made shorter, by the protocol's own rule: one start, one content and one end of
each text and call, what came in between behind them, one snapshot of the state of each run. Who
applies it ends with the same messages and the same state; so streams side by side keep the order in
which they began, and nothing is moved past a snapshot of all messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_text,
    optional_field,
    read_extra_fields,
)
from dragoman.errors import DecodeError
from dragoman.json_bytes import Json, JsonMap
from dragoman.json_patch import PatchedValue, PatchError, PatchTooLargeError, copy_value
from dragoman.wires.ag_ui.decode_variants import OldEvents
from dragoman.wires.ag_ui.events import FAMILIES, REASONING, Family

__all__ = ["compact"]

_STATES = ("STATE_SNAPSHOT", "STATE_DELTA")
_MESSAGES = "MESSAGES_SNAPSHOT"
_BORDERS = ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", _MESSAGES)
"""Types that nothing is moved past."""


class _Stream:
    """A text or a call whose end has not arrived."""

    def __init__(self, family: Family, id_: str) -> None:
        """Starts to collect the AG-UI objects of one text, call or reasoning."""
        self._start: Json | None = None
        self._deltas: list[str] = []
        self._metadata: Json = {}
        """Metadata of what followed the start."""
        self._end: Json | None = None
        self._head = {"type": family.content, family.key: id_}
        self._family = family

    def add(self, event_type: str, fields: Json) -> bool:
        """Adds an AG-UI object of the text or call. Returns True if it is the end."""
        if event_type == self._family.content:
            self._deltas.append(if_text(fields.get("delta")))
            self._metadata |= if_object(fields.get("metadata"))
        elif event_type == self._family.start:
            self._begin_group(fields)
        else:
            self._end = fields
        return self._end is not None

    def _begin_group(self, fields: Json) -> None:
        """Adds the start of an AG-UI stream that is compacted. A second start changes the first
        one."""
        more = if_object(fields.get("metadata"))
        if self._deltas:
            self._metadata |= more
            more = {}
        if self._start:
            before = if_object(self._start.get("metadata"))
        else:
            before = {}
        metadata = {**before, **more}
        self._start = {
            **read_extra_fields(fields, "metadata"),
            **optional_field("metadata", metadata),
        }

    def dump(self) -> list[Json]:
        """Returns the compacted AG-UI stream: one start, one content and one end, as far as they
        arrived."""
        content: Json | None = None
        if self._deltas:
            content = {**self._head, "delta": "".join(self._deltas)}
            if self._metadata:
                content["metadata"] = self._metadata
        return [fields for fields in (self._start, content, self._end) if fields]


def compact(objects: Iterable[JsonMap]) -> list[Json]:
    """Returns fewer objects that say the same as an AG-UI stream.

    Chunks and old names are read. The objects themselves stay unchanged.
    """
    old, compactor = OldEvents(), _Compactor()
    for event in objects:
        for fields in old.read(event):
            compactor.add(fields)
    return compactor.close()


class _Compactor:
    """Collects the objects of a stream, one by one."""

    def __init__(self) -> None:
        """Starts the compaction of an AG-UI stream."""
        self._out: list[Json | _Stream] = []
        self._streams: dict[tuple[Family, str], _Stream] = {}
        """The open texts and calls, by family and id."""
        self._states: list[Json] = []
        """State events since the last border."""

    def add(self, fields: Json) -> None:
        """Adds the next AG-UI object to the stream that is shortened."""
        event_type = if_text(fields.get("type"))
        family = FAMILIES.get(event_type)
        if family is not None and family is not REASONING:
            self._add_to_stream(family, event_type, fields)
        elif event_type in _STATES:
            self._states.append(fields)
        else:
            if event_type in _BORDERS:
                # what goes on behind a border is written behind it
                self._streams.clear()
            if event_type in _BORDERS and event_type != _MESSAGES:
                self._end_states()
            self._out.append(fields)

    def _add_to_stream(
        self,
        family: Family,
        event_type: str,
        fields: Json,
    ) -> None:
        """Adds an AG-UI object to its text or call, which stands where it began."""
        key = (family, if_text(fields.get(family.key)))
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream(*key)
            # its place is where it begins, however late its end comes
            self._out.append(stream)
        if stream.add(event_type, fields):
            del self._streams[key]

    def _end_states(self) -> None:
        """Writes the changes of the state that were collected so far."""
        self._out += _join_states(self._states)
        self._states = []

    def close(self) -> list[Json]:
        """Ends the AG-UI stream. Returns all its objects."""
        self._end_states()
        out: list[Json] = []
        for item in self._out:
            out += item.dump() if isinstance(item, _Stream) else [item]
        return out


def _join_states(events: Sequence[Json]) -> list[Json]:
    """Returns one snapshot for the state events of an AG-UI run. Deltas without a snapshot stay as
    they are."""
    snapshots = [index for index, event in enumerate(events) if event["type"] == "STATE_SNAPSHOT"]
    if not snapshots:
        return list(events)
    last = snapshots[-1]
    patches = [event.get("delta") for event in events[last + 1 :]]
    snapshot: Json = {
        "type": "STATE_SNAPSHOT",
        "snapshot": _apply_patches(events[last].get("snapshot"), patches),
    }
    metadata: Json = {}
    for event in events:
        metadata |= if_object(event.get("metadata"))
    return [{**snapshot, "metadata": metadata} if metadata else snapshot]


def _apply_patches(snapshot: Any, patches: Sequence[Any]) -> Any:
    """Returns an AG-UI state after JSON patches. A patch that does not fit is skipped.

    Raises:
        DecodeError: the state grows beyond its limit.
    """
    try:
        state = PatchedValue(copy_value(snapshot))
        for operations in patches:
            _patch_if_it_fits(state, if_list(operations))
    except PatchTooLargeError as error:
        raise DecodeError(f"the state cannot be compacted: {error}") from error
    return state.value


def _patch_if_it_fits(state: PatchedValue, operations: Sequence[Any]) -> None:
    """Applies a JSON patch, or leaves the AG-UI state unchanged if it does not fit."""
    try:
        state.patch(operations)
    except PatchTooLargeError:
        raise
    except PatchError:
        return
