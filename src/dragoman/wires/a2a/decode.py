"""A streamed run (JSON-RPC's answers or plain objects as Server-Sent Events), or a whole task or
message → events.

What an object carries under our extension takes the place of what it shows: the events in it, the
part that an artifact shows (`delta`), and the part that ends (`finished`). From then on a piece of
that artifact is a delta of that part. What carries nothing is read as the protocol has it
(`decode_plain`): texts, calls, results, files, states, questions; 0.3's events with a `kind` too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.json_difference import apply_difference
from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.codec.run_decoder import DecodedPart
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.json_bytes import Json
from dragoman.message import Content, Origin, Role
from dragoman.wires.a2a.decode_objects import split_member
from dragoman.wires.a2a.decode_plain import PlainDecoder
from dragoman.wires.a2a.quirks import json_of, load_events, read_carried
from dragoman.wires.a2a.tasks import is_over, state_of

__all__ = ["Decoder", "decoder", "load_response", "split_member"]

Key = tuple[str, int]
"""Id of a message, and the index of a part in it."""


class Decoder(PlainDecoder):
    """Reads a streamed run that may carry dragoman's extension."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates the A2A decoder. The arguments are those of `PlainDecoder`."""
        super().__init__(origin, new_id)
        self._is_ours = False
        """True once an object carried something."""
        self._texts: dict[str, Key] = {}
        """Id of an artifact → the part that it shows."""

    def admit(self, object_type: str, fields: Json) -> bool:
        """See `RunDecoder.admit`. Returns False if the carried events already say what the A2A
        object shows."""
        super().admit(object_type, fields)
        carried = read_carried(fields.get("metadata"))
        # Objects of ours that tell a delta carry nothing: the artifact is known from its first
        # piece.
        if carried:
            return not self._read_carried(object_type, fields, carried)
        if object_type == "artifactUpdate" and fields.get("append") is True:
            return not self._add_text(if_object(fields.get("artifact")))
        return not (
            object_type == "statusUpdate" and self._is_bare(if_object(fields.get("status")))
        )

    def _is_bare(self, status: Json) -> bool:
        """True for a status of dragoman's own stream that only says that the task goes on."""
        is_going_on = not is_over(state_of(status.get("state")))
        return self._is_ours and is_going_on and "message" not in status

    def _read_carried(
        self,
        kind: str,
        fields: Json,
        carried: Mapping[str, str],
    ) -> bool:
        """Adds the events that an A2A object carries. Returns False if they cannot be read."""
        if kind == "task" and "run" in carried:  # a whole task has all events of its run
            carried = {"events": carried["run"]}
        events = load_events(carried.get("events", ""))
        if events is None:
            return False
        self._is_ours = True
        for event in events:
            self._add_event(event)
        artifact = if_object(fields.get("artifact"))
        if (key := _load_key(json_of(carried.get("delta")))) is not None:
            self._texts[if_text(artifact.get("artifactId"))] = key
        # An artifact that comes whole shows a part that is carried as well; only pieces are deltas.
        if "delta" in carried or fields.get("append") is True:
            self._add_text(artifact)
        self._finish_part(if_list(json_of(carried.get("finished"))))
        if kind == "task":
            self._run_id = if_text(fields.get("id")) or "task"
        return True

    def _add_event(self, event: Event) -> None:
        """Adds a carried event, and keeps track of the A2A parts that are open."""
        if isinstance(event, PartStarted):
            part = DecodedPart(event.message_id, event.index, event.part)
            self.open[event.message_id, event.index] = part
        elif isinstance(event, PartDelta):
            if (part := self.open.get((event.message_id, event.index))) is not None:
                part.deltas.append(event.delta)
        elif isinstance(event, PartFinished):
            self.open.pop((event.message_id, event.index), None)
        elif isinstance(event, MessageStarted | MessageFinished) and self._model is not None:
            # Only the caller knows which agent answered; what the agent says of the model behind it
            # is not its origin.
            is_answer = isinstance(event, MessageFinished) or event.role is Role.MODEL
            if is_answer and event.origin is not None:
                event = msgspec.structs.replace(event, origin=self._model)
        self._events.append(event)

    def _add_text(self, artifact: Json) -> bool:
        """Adds an A2A artifact's text as a delta of the part that it shows. Returns False if the
        artifact is unknown."""
        key = self._texts.get(if_text(artifact.get("artifactId")))
        if key is None:
            return False
        parts = [if_object(part) for part in if_list(artifact.get("parts"))]
        if text := "".join([if_text(part.get("text")) for part in parts]):
            self._add_event(PartDelta(*key, text))
        return True

    def _finish_part(self, finished: Sequence[Any]) -> None:
        """Ends an open part of the A2A task's message.

        Args:
            finished: the part's message id and index, then the fields that its start and deltas do
                not
                give. The first version of the extension wrote a fourth entry if only `native`
                differs.
        """
        key = _load_key(finished[:2])
        if key is None:
            return
        part = self.open.pop(key, None)
        built = None if part is None else part.build_part()
        last = finished[-1]
        if len(finished) == 4:
            fields = {"native": last}
        else:
            fields = if_object(last)
        # Without its start there is nothing to which the fields could belong.
        if built is None and "type" not in fields:
            return
        whole = apply_difference(cast("Content", built), fields, Content)
        self._events.append(PartFinished(*key, whole))


def _load_key(value: Any) -> Key | None:
    """Returns the A2A message id and part index in a JSON list, or None if it is no such list."""
    listed = if_list(value)
    if len(listed) != 2 or not isinstance(listed[0], str) or type(listed[1]) is not int:
        return None
    return listed[0], listed[1]


decoder = Decoder.create
load_response = Decoder.load_response
