"""The objects of a task's stream (`StreamResponse`): the task itself, updates of its status, and
updates of its artifacts.

`TaskObjects` knows whose task it is and in which envelope it goes; which event needs which object
is decided in `encode`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from datetime import datetime
from typing import Any

import msgspec

from dragoman.codec import run_encoder
from dragoman.codec.run_encoder import Key
from dragoman.event import Event, OpenText, PartFinished, RunError
from dragoman.fold import close_part
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, TextPart, ToolCallPart, ToolResultPart
from dragoman.wires.a2a.quirks import EXTENSION, text_of

__all__ = ["WORKING", "ArtifactIds", "ArtifactPart", "TaskObjects", "dump_part_end", "strip_error"]

WORKING = "TASK_STATE_WORKING"


class TaskObjects:
    """Builds the stream objects of one task."""

    def __init__(
        self, task_id: str, context_id: str, now: Callable[[], datetime] | None, *, extras: bool
    ) -> None:
        """Creates the A2A objects of a task. `now` returns the time of a status. `extras`: True if
        the peer is sent dragoman's extension."""
        self.task_id = task_id
        self.ids: Json = {"taskId": task_id, "contextId": context_id}
        self._now = now
        self._extras = extras
        self._messages = 0

    def status(self, state: str, message: Json | None = None) -> Json:
        """Returns the status of an A2A task, with its message and the time."""
        status: Json = {"state": state}
        if message is not None:
            status["message"] = message
        if self._now is not None:
            # The protocol writes times in UTC with a `Z` and milliseconds.
            time = self._now().isoformat(timespec="milliseconds")
            status["timestamp"] = time.replace("+00:00", "Z")
        return status

    def task(
        self,
        state: str,
        history: Iterable[Any],
        metadata: JsonMap,
    ) -> Json:
        """Returns the A2A object that begins a stream."""
        task: Json = {
            "id": self.task_id,
            "contextId": self.ids["contextId"],
            "status": self.status(state),
        }
        if messages := list(history):
            task["history"] = messages
        if metadata:
            task["metadata"] = metadata
        return {"task": task}

    def status_update(
        self,
        state: str,
        message: Json | None = None,
        carried: JsonMap = {},
    ) -> Json:
        """Returns an update of the A2A status. `carried` is the field `metadata`, or empty."""
        return {
            "statusUpdate": {
                **self.ids,
                "status": self.status(state, message),
                **carried,
            }
        }

    def artifact_update(
        self, artifact: Json, carried: JsonMap, *, append: bool = False, last: bool
    ) -> Json:
        """Returns an update of one of the task's artifacts, as an A2A stream object.

        Args:
            artifact: the artifact, or a piece of it.
            carried: the field `metadata`, or empty.
            append: True if the parts follow those before, False if they replace them.
            last: True if no further piece follows.
        """
        update = {
            **self.ids,
            "artifact": artifact,
            "append": append,
            "lastChunk": last,
        }
        return {"artifactUpdate": {**update, **carried}}

    def extension(self, fields: Mapping[str, str]) -> Json:
        """Returns the fields that mark an A2A artifact under the extension, or nothing for peers
        without it."""
        if self._extras:
            return {"extensions": [EXTENSION], "metadata": {EXTENSION: fields}}
        return {}

    def whole_artifact(self, name: str, part: Json) -> Json:
        """Returns an A2A artifact that belongs to the run, such as the shared state."""
        return {
            "artifactId": name,
            "name": name,
            "parts": [part],
            **self.extension({"type": name}),
        }

    def empty_artifact(self, artifact_id: str) -> Json:
        """Returns the empty A2A artifact that replaces one whose message was dropped."""
        metadata: Json = {"retracted": True}
        if self._extras:
            metadata[EXTENSION] = {"type": "retracted"}
        return {
            "artifactId": artifact_id,
            "parts": [{"text": ""}],
            "metadata": metadata,
        }

    def message(self, parts: list[Json]) -> Json:
        """Returns an agent message for an A2A status."""
        self._messages += 1
        message_id = f"{self.task_id}:status:{self._messages}"
        return {
            "messageId": message_id,
            **self.ids,
            "role": "ROLE_AGENT",
            "parts": parts,
        }


class ArtifactIds:
    """Gives each artifact of a task a distinct id, in linear time even if one name repeats."""

    def __init__(self) -> None:
        self._taken = {"", "state", "result"}
        self._repeats: dict[str, int] = {}

    def take(self, name: str) -> str:
        """Returns the id of an A2A artifact: the name, or `name:1`, `name:2` … if it is taken."""
        id_, number = name, self._repeats.get(name, 0)
        while id_ in self._taken:
            number += 1
            id_ = f"{name}:{number}"
        self._repeats[name] = number
        self._taken.add(id_)
        return id_


_ARTIFACT_NAMES: Mapping[type, str] = {
    TextPart: "response",
    OpenText: "response",
    ToolCallPart: "tool-call",
    ToolResultPart: "tool-result",
}
"""Type of a part → the name of its artifact. Other parts are files."""


class ArtifactPart(run_encoder.EncodedPart):
    """An open part of a message that clients see."""

    __slots__ = ("artifact_id", "is_begun", "key", "name")

    def __init__(
        self,
        key: Key,
        begun: Content | OpenText,
        artifact_id: str,
    ) -> None:
        """Opens a part that an A2A artifact shows."""
        super().__init__(begun)
        self.key = key
        self.artifact_id = artifact_id
        """Empty for thinking, which is no artifact."""
        self.name = _ARTIFACT_NAMES.get(type(begun), "file")
        self.is_begun = False
        """True if a piece of its artifact was written."""


def dump_part_end(event: PartFinished, part: ArtifactPart) -> str:
    """Returns the A2A extension's `finished` field: the part's key, and what its start and deltas
    do not say.

    The second entry has only the fields that differ, or the whole part if its type changed.
    """
    built = close_part(part.begun, part.deltas)
    if built is None or type(built) is not type(event.part):
        return text_of([*part.key, msgspec.to_builtins(event.part)])
    fields = {
        name: msgspec.to_builtins(value)
        for name in built.__struct_fields__
        if not _is_same(value := getattr(event.part, name), getattr(built, name))
    }
    return text_of([*part.key, fields] if fields else part.key)


def _is_same(value: Any, other: Any) -> bool:
    """True if two values have the same JSON bytes. `1`, `1.0` and `true` differ, and so does the
    order of keys."""
    return msgspec.json.encode(value) == msgspec.json.encode(other)


def strip_error(event: Event) -> Event:
    """Returns an error event for an A2A stream without its partial result and the upstream's body,
    and other events unchanged."""
    if not isinstance(event, RunError):
        return event
    # The exception itself belongs to the server, which logs it whole.
    error = copy(event.error)
    error.body = error.partial = error.result = None
    return RunError(error, event.run_id, event.native)
