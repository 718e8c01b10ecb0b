"""What the protocol itself says of a run → events: one message for each artifact, and one for what
the agent says beside them.

An artifact that is streamed has an `Emitter` until its last piece. Agents of before 1.0 stream
otherwise: each working status has the whole text so far (`TextMessageChunkEvent`), and the end, or
the call, says it once more. Such a text has an emitter too (`_growing`), which is told what is new
in it.

A task may repeat what its stream told: artifacts, and the message that ends it. Ids and parts that
were told are kept for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman import errors
from dragoman.codec.emitter import Emitter
from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.codec.run_decoder import DecodedPart, RunDecoder
from dragoman.errors import DecodeError, DragomanError
from dragoman.event import (
    Custom,
    MessageDropped,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
)
from dragoman.fold import unfold
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    FinishReason,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.a2a.compact import CHUNK, END, START, continuation, holds
from dragoman.wires.a2a.content import load_content
from dragoman.wires.a2a.errors import error_of
from dragoman.wires.a2a.interrupts import QUESTION, load_pending
from dragoman.wires.a2a.messages import SHARED, group_artifacts, load_message
from dragoman.wires.a2a.quirks import CANONICAL, OLD_KINDS, PATCH_TYPE, extras, others, role_of
from dragoman.wires.a2a.runs import is_rpc, last_index
from dragoman.wires.a2a.tasks import is_over, load_finish, load_usage, state_of

__all__ = ["PlainDecoder", "member"]

_ERRORS: Mapping[str, type[DragomanError]] = {
    "TASK_STATE_FAILED": errors.ProviderError,
    "TASK_STATE_REJECTED": errors.ContentRefusedError,
}
_MEMBERS = {kind: name for name, kind in OLD_KINDS.items()}
"""Kind of an object in 0.3 → the member that 1.0 has it in."""


class PlainDecoder(RunDecoder[DecodedPart]):
    """Reads one run as the protocol has it."""

    CUT = "the stream ended before the task did. Ask for the task, or send the request again."

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """`origin`: of the model's messages."""
        super().__init__(origin, new_id)
        self.task_id = ""
        """Of the task that is told; empty: of none yet."""
        self._model = origin
        self._run_id = ""
        self._emitters: dict[str, Emitter] = {}
        """Id of an artifact, or of a growing text, that is open → what becomes of it."""
        self._told: set[str] = set()
        """Ids of messages that were told."""
        self._parts: dict[str, list[Json]] = {}
        """Id of an artifact → its parts so far."""
        self._growing: tuple[Emitter, str] | None = None
        """The text so far of an agent that sends all of it each time."""
        self._growing_ids: set[str] = set()

    def read_type(self, event: Json) -> tuple[str, Json]:
        """See `RunDecoder.read_type`."""
        if is_rpc(event):
            if event.get("error") is not None:
                raise error_of(event)
            event = if_object(event.get("result"))
        kind, fields = member(event)
        if kind:
            return kind, fields
        if "error" in event:
            raise error_of(event)
        raise DecodeError(
            "an object of the stream is none of task, message, statusUpdate and artifactUpdate"
        )

    def admit(self, kind: str, fields: Json) -> bool:
        """See `RunDecoder.admit`."""
        name = "id" if kind == "task" else "taskId"
        self.task_id = if_text(fields.get(name)) or self.task_id
        return True

    def read_object(self, kind: str, fields: Json) -> None:
        """See `RunDecoder.read_object`. A message, or a state in which nothing more comes, ends the
        run."""
        super().read_object(kind, fields)
        if kind == "artifactUpdate":
            return
        state = state_of(if_object(fields.get("status")).get("state"))
        if kind == "message" or is_over(state):
            self._over = True
            self._finish_emitters(FinishReason.stop)

    def run_id(self) -> str | None:
        """See `RunDecoder.run_id`."""
        return self._run_id or None

    def cut_run(self, error: DragomanError) -> None:
        """See `RunDecoder.cut_run`."""
        for emitter in self._emitters.values():
            if not emitter.finished:
                emitter.finish(FinishReason.error, cut=True)
                error.at(partial=emitter.build_partial_message())
        self._emitters.clear()

    # steps

    def _read_message(self, fields: Json) -> None:
        self._start("message", fields)
        self._tell_message(fields)
        self._events.append(RunFinished(self._run_id))

    def _read_task(self, fields: Json) -> None:
        self._start(if_text(fields.get("id")) or "task", fields)
        status = if_object(fields.get("status"))
        is_last = is_over(state_of(status.get("state")))
        history = map(if_object, if_list(fields.get("history")))
        history_ids = {if_text(message.get("messageId")) for message in history}
        # Some agents list an answer in the history and as an artifact.
        for message in group_artifacts(fields):
            if message["messageId"] not in history_ids:
                self._read_whole_artifact(message, is_last=is_last)
        self._read_status(fields)

    def _read_status_update(self, fields: Json) -> None:
        self._start(if_text(fields.get("taskId")) or "task", fields)
        self._read_status(fields)

    def _read_artifact_update(self, fields: Json) -> None:
        self._start(if_text(fields.get("taskId")) or "task", fields)
        self._read_artifact(fields)

    STEPS = {
        "message": _read_message,
        "task": _read_task,
        "statusUpdate": _read_status_update,
        "artifactUpdate": _read_artifact_update,
    }

    def _start(self, run_id: str, fields: Json) -> None:
        if not self._run_id:
            self._run_id = run_id
            self._events.append(RunStarted(run_id, if_text(fields.get("contextId")) or None))

    # messages

    def _tell_message(self, message: JsonMap) -> None:
        """Tells a whole message of the agent's."""
        loaded = [part for part in load_message(dict(message), self._model) if part.content]
        self._tell([part for part in loaded if part.role is Role.MODEL or part.tool_results])

    def _tell(self, messages: Sequence[Message]) -> None:
        told = [
            message if message.id is None else message.replace(id=self._unused_id(message.id))
            for message in messages
        ]
        self._told |= {message.id for message in told if message.id is not None}
        self._events += unfold(told)

    def _tell_result(self, result: ToolResultPart, call_message_id: str) -> None:
        self._tell([Message(Role.USER, (result,), id=f"{call_message_id}:result")])

    def _unused_id(self, id_: str) -> str:
        """Returns an id that no growing text has: some agents give one id to all that they say."""
        if id_ not in self._growing_ids:
            return id_
        return f"{id_}:{len(self._growing_ids)}"

    # artifacts

    def _read_artifact(self, fields: Json) -> None:
        artifact = if_object(fields.get("artifact"))
        id_ = if_text(artifact.get("artifactId")) or "artifact"
        parts = _parts_of(artifact)
        appends = fields.get("append") is True
        if id_ in SHARED and if_text(artifact.get("name")) == id_:
            self._read_shared(id_, parts, is_change=appends)
            return
        if not appends:
            # The events of a message cannot be replaced: it is dropped, and told anew under its id.
            self._replace_artifact(id_)
        emitter = self._emitters.get(id_)
        if emitter is None:
            emitter = self._emitters[id_] = self._new_emitter(id_)
            self._told.add(id_)
        self._parts.setdefault(id_, []).extend(parts)
        for part in parts:
            self._emit(emitter, part)
        if fields.get("lastChunk", fields.get("last_chunk")) is True:
            del self._emitters[id_]
            _finish(emitter, FinishReason.stop)

    def _replace_artifact(self, id_: str) -> None:
        self._parts[id_] = []
        if self._emitters.pop(id_, None) is not None or id_ in self._told:
            self._events.append(MessageDropped(id_, "the artifact was replaced"))

    def _read_whole_artifact(self, message: Json, *, is_last: bool) -> None:
        """An artifact as a task has it, of which something may have been told already. `is_last`:
        nothing more of it comes."""
        id_ = if_text(message.get("messageId"))
        parts = _parts_of(message)
        # A stream cuts texts anywhere, so they are compared joined.
        text, other_parts = _gist(parts)
        text_before, other_parts_before = _gist(self._parts.get(id_, []))
        has_same_parts = other_parts == other_parts_before
        if id_ in self._parts and text == text_before and has_same_parts:
            return
        update: Json = {"artifact": {"artifactId": id_, "parts": parts}, "lastChunk": is_last}
        if id_ in self._emitters and text.startswith(text_before) and has_same_parts:
            news = [{"text": text[len(text_before) :]}]
            update = {**update, "artifact": {"artifactId": id_, "parts": news}, "append": True}
        # An artifact that comes whole keeps the form that its message has, such as results of their
        # own.
        elif is_last and id_ not in self._told:
            self._parts[id_] = parts
            self._tell_message(message)
            return
        self._read_artifact(update)

    def _emit(self, emitter: Emitter, part: Json) -> None:
        for piece in load_content(part):
            if isinstance(piece, TextPart) and piece.native is None:
                emitter.add_text("text", piece.text)
            elif isinstance(piece, ToolResultPart):
                self._tell_result(piece, emitter.message_id)
            elif isinstance(piece, ThinkingPart):
                emitter.add_thinking("thinking", piece.text)
            else:
                emitter.add_whole_part(piece)

    def _read_shared(self, name: str, parts: Sequence[Json], *, is_change: bool) -> None:
        for part in parts:
            if name != "state" or "data" not in part:
                continue
            value = part["data"]
            is_patch = is_change or part.get("mediaType") == PATCH_TYPE
            if is_patch and isinstance(value, list):
                self._events.append(StateDelta(tuple(map(if_object, if_list(value)))))
            else:
                self._events.append(StateSnapshot(value))

    def _new_emitter(self, id_: str) -> Emitter:
        return Emitter(lambda: id_, origin=self._model, events=self._events)

    def _finish_emitters(self, reason: FinishReason) -> None:
        for emitter in self._emitters.values():
            _finish(emitter, reason)
        self._emitters.clear()

    # states

    def _read_status(self, fields: Json) -> None:
        status = if_object(fields.get("status"))
        state, message = state_of(status.get("state")), if_object(status.get("message"))
        if is_over(state):
            self._end_run(state, message, fields)
        elif message:
            self._read_progress(message)

    def _end_run(self, state: str, message: Json, fields: Json) -> None:
        run_id = self._run_id
        # The end of a growing text goes before the ends of other messages; what an error says is no
        # part of it.
        is_told = state not in _ERRORS and self._tell_end(message)
        self._finish_emitters(load_finish(state) or FinishReason.stop)
        usage = load_usage(extras(fields.get("metadata")))
        if state in _ERRORS:
            ending = state.removeprefix("TASK_STATE_").lower()
            text = _text_of(message) or f"the agent's task ended as {ending}"
            self._events.append(RunError(_ERRORS[state](text), run_id))
        elif state == "TASK_STATE_CANCELED":
            self._events.append(RunFinished(run_id, "cancelled", usage))
        elif state == "TASK_STATE_COMPLETED":
            if not is_told:
                self._tell_answer(message, fields)
            self._events.append(RunFinished(run_id, usage=usage))
        else:
            pending = self._pending(message, state, is_told=is_told)
            self._events.append(RunFinished(run_id, "pending", usage, pending))

    def _tell_answer(self, message: Json, fields: Json) -> None:
        """Tells the message of a completed task, if it is new. Some agents say their answer in the
        history alone."""
        if message:
            if if_text(message.get("messageId")) not in self._told:
                self._tell_message(message)
        elif not self._told and not self._growing_ids:
            for answer in _answers_in(if_list(fields.get("history"))):
                self._tell_message(answer)

    def _pending(self, message: Json, state: str, *, is_told: bool) -> tuple[Interrupt, ...]:
        """What a task waits for. Calls in its message that are no question of ours are for the
        client to run."""
        parts = _parts_of(message)
        asks = any(if_object(part.get("data")).get("type") == QUESTION for part in parts)
        if asks or not message:
            return load_pending(message, state)
        loaded = load_message(message, self._model)
        calls = [call for part in loaded for call in part.tool_calls]
        if not calls:
            return load_pending(message, state)
        if not is_told:
            # Calls of a task that waits for input are those that the client is to run.
            for_client = [
                part.replace(content=tuple(map(_for_client, part.content))) for part in loaded
            ]
            self._tell([part for part in for_client if part.content])
        return tuple(Interrupt(call.id, "tool", _client_call(call)) for call in calls)

    def _read_progress(self, message: Json) -> None:
        """What an agent says while it works: its text so far, its thinking, or a note."""
        kind = if_object(message.get("metadata")).get(CANONICAL)
        if kind == CHUNK:
            self._grow(message)
            return
        # Both say the whole text of the answer that the chunks before them told in pieces.
        if kind in (START, END):
            if not self._tell_end(message):
                self._tell_message(message)
            self._finish_growing()
            return
        pieces = [piece for part in _parts_of(message) for piece in load_content(part)]
        if pieces and all(isinstance(piece, ThinkingPart) for piece in pieces):
            id_ = if_text(message.get("messageId")) or None
            self._tell([Message(Role.MODEL, tuple(pieces), id_, origin=self._model)])
        elif pieces:
            # It is no part of the answer, which comes as an artifact or with the end.
            self._events.append(Custom("a2a.status", _note_of(message)))

    # texts that grow

    def _grow(self, message: Json) -> None:
        """The text of an answer so far. One that does not go on from what was told is another
        answer: the first was cut."""
        text = _text_of(message)
        emitter, before = self._growing or (None, "")
        if emitter is not None and not emitter.finished:
            if before.startswith(text):
                return
            if not holds(text, before):
                self._finish_growing()
        if emitter is None or emitter.finished:
            id_ = self._unused_id(if_text(message.get("messageId")) or f"{self._run_id}:text")
            self._growing_ids.add(id_)
            emitter, before = self._new_emitter(id_), ""
            self._emitters[id_] = emitter
        emitter.add_text("text", continuation(text, before))
        self._growing = emitter, text

    def _tell_end(self, message: Json) -> bool:
        """Tells what a whole message has beyond the growing text. `False`: it is another text, and
        nothing was told."""
        if self._growing is None:
            return False
        emitter, before = self._growing
        text = _text_of(message)
        # An agent that says its answer once more with the end has said it already.
        if emitter.finished:
            return text == before
        if not holds(text, before):
            return False
        emitter.add_text("text", continuation(text, before))
        self._growing = emitter, text
        for part in _parts_of(message):
            for piece in load_content(part):
                if isinstance(piece, ToolResultPart):
                    self._tell_result(piece, emitter.message_id)
                elif not isinstance(piece, TextPart):
                    emitter.add_whole_part(_for_client(piece))
        return True

    def _finish_growing(self) -> None:
        if self._growing is not None:
            emitter, _ = self._growing
            self._emitters.pop(emitter.message_id, None)
            _finish(emitter, FinishReason.stop)


def member(event: JsonMap) -> tuple[str, Json]:
    """What an object of a stream holds: the name of its member, and the member. A task or a message
    may stand alone, as in 0.3."""
    for name in OLD_KINDS:
        if isinstance(event.get(name), dict):
            return name, if_object(event[name])
    kind = event.get("kind")
    if isinstance(kind, str) and kind in _MEMBERS:
        return _MEMBERS[kind], dict(event)
    # Some older agents leave the kind out, so the fields must tell.
    if "parts" in event and "role" in event:
        return "message", dict(event)
    if isinstance(event.get("id"), str) and "status" in event:
        return "task", dict(event)
    return "", {}


def _finish(emitter: Emitter, reason: FinishReason) -> None:
    if emitter.started and not emitter.finished:
        is_cut = reason is FinishReason.error
        emitter.finish(FinishReason.tool_calls if emitter.calls() else reason, cut=is_cut)


def _gist(parts: Sequence[Json]) -> tuple[str, list[Json]]:
    """All text of an artifact, and its other parts: what stays the same however it is cut."""
    text = "".join([if_text(part.get("text")) for part in parts])
    return text, [part for part in parts if "text" not in part]


def _answers_in(history: Sequence[Any]) -> list[Json]:
    """Returns what the agent said behind the last question."""
    messages = [if_object(message) for message in history]
    asked = last_index(messages, lambda message: role_of(message.get("role")) is Role.USER)
    return messages[asked + 1 :]


def _note_of(message: Json) -> Json:
    """Returns what an agent says while it works, as an application may show it."""
    note: Json = {
        "message": {name: message[name] for name in ("messageId", "parts") if name in message}
    }
    if metadata := others(message.get("metadata")):
        note["metadata"] = metadata
    return note


def _client_call(call: ToolCallPart) -> ToolCallPart:
    return ToolCallPart(
        call.id, call.name, call.arguments, call.raw, call.state, "client", call.native
    )


def _for_client(piece: Content) -> Content:
    return _client_call(piece) if isinstance(piece, ToolCallPart) else piece


def _text_of(message: Json) -> str:
    texts = [
        if_text(if_object(part.get("root")).get("text")) or if_text(part.get("text"))
        for part in _parts_of(message)
    ]
    return "".join(texts)


def _parts_of(message: Json) -> list[Json]:
    """Returns the parts of a message or an artifact; what is no object counts as an empty one."""
    return [if_object(part) for part in if_list(message.get("parts"))]
