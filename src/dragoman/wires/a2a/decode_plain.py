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
    FinishReason,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolResultPart,
)
from dragoman.wires.a2a.compact import CHUNK, END, START, continues_text, new_text
from dragoman.wires.a2a.content import load_content
from dragoman.wires.a2a.decode_objects import (
    assign_call,
    assign_to_client,
    dump_note,
    find_answers,
    list_parts,
    read_text,
    split_member,
    split_text,
)
from dragoman.wires.a2a.errors import error_of
from dragoman.wires.a2a.interrupts import QUESTION, load_pending
from dragoman.wires.a2a.messages import SHARED, group_artifacts, load_message
from dragoman.wires.a2a.quirks import CANONICAL, PATCH_TYPE, read_carried
from dragoman.wires.a2a.runs import is_rpc
from dragoman.wires.a2a.tasks import is_over, load_finish, load_usage, state_of

__all__ = ["PlainDecoder"]

_ERRORS: Mapping[str, type[DragomanError]] = {
    "TASK_STATE_FAILED": errors.ProviderError,
    "TASK_STATE_REJECTED": errors.ContentRefusedError,
}


class PlainDecoder(RunDecoder[DecodedPart]):
    """Reads a streamed run as the protocol defines it, without dragoman's extension."""

    CUT = "the stream ended before the task did. Ask for the task, or send the request again."

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates the decoder for an A2A agent that is not dragoman's. `origin`: that of the
        model's messages."""
        super().__init__(origin, new_id)
        self.task_id = ""
        """Id of the task, empty before the first object."""
        self._model = origin
        self._run_id = ""
        self._emitters: dict[str, Emitter] = {}
        """Id of an open artifact or growing text → the emitter of its message."""
        self._message_ids: set[str] = set()
        """Ids of the messages so far."""
        self._parts: dict[str, list[Json]] = {}
        """Id of an artifact → its parts so far."""
        self._growing: tuple[Emitter, str] | None = None
        """The emitter and the text so far, for agents that send the whole text each time."""
        self._growing_ids: set[str] = set()

    def read_type(self, event: Json) -> tuple[str, Json]:
        """Implements `RunDecoder.read_type` for A2A."""
        # With JSON-RPC each object of the stream is the result of a response.
        if is_rpc(event):
            if event.get("error") is not None:
                raise error_of(event)
            event = if_object(event.get("result"))
        kind, fields = split_member(event)
        if kind:
            return kind, fields
        if "error" in event:
            raise error_of(event)
        raise DecodeError(
            "an object of the stream is none of task, message, statusUpdate and artifactUpdate"
        )

    def admit(self, object_type: str, fields: Json) -> bool:
        """Implements `RunDecoder.admit` for A2A."""
        name = "id" if object_type == "task" else "taskId"
        self.task_id = if_text(fields.get(name)) or self.task_id
        return True

    def read_object(self, object_type: str, fields: Json) -> None:
        """Implements `RunDecoder.read_object` for A2A. A message, or a state in which nothing more
        comes, ends the run."""
        super().read_object(object_type, fields)
        if object_type == "artifactUpdate":
            return
        state = state_of(if_object(fields.get("status")).get("state"))
        if object_type == "message" or is_over(state):
            self._over = True
            self._finish_emitters(FinishReason.stop)

    def run_id(self) -> str | None:
        """See `RunDecoder.run_id`."""
        return self._run_id or None

    def cut_run(self, error: DragomanError) -> None:
        """Implements `RunDecoder.cut_run` for A2A."""
        for emitter in self._emitters.values():
            if not emitter.finished:
                emitter.finish(FinishReason.error, cut=True)
                error.at(partial=emitter.build_partial_message())
        self._emitters.clear()

    # steps

    def _read_message(self, fields: Json) -> None:
        """Reads a message that answers in place of an A2A task: it is the whole run."""
        self._start("message", fields)
        self._add_message(fields)
        self._events.append(RunFinished(self._run_id))

    def _read_task(self, fields: Json) -> None:
        """Reads a task: its A2A artifacts, then its status."""
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
        """Reads an update of the task's status."""
        self._start(if_text(fields.get("taskId")) or "task", fields)
        self._read_status(fields)

    def _read_artifact_update(self, fields: Json) -> None:
        """Reads a new artifact, or a further piece of one."""
        self._start(if_text(fields.get("taskId")) or "task", fields)
        self._read_artifact(fields)

    STEPS = {
        "message": _read_message,
        "task": _read_task,
        "statusUpdate": _read_status_update,
        "artifactUpdate": _read_artifact_update,
    }

    def _start(self, run_id: str, fields: Json) -> None:
        """Starts the run at the first object of the A2A stream."""
        if not self._run_id:
            self._run_id = run_id
            self._events.append(RunStarted(run_id, if_text(fields.get("contextId")) or None))

    # messages

    def _add_message(self, message: JsonMap) -> None:
        """Adds the events of a complete A2A message from the agent."""
        loaded = [part for part in load_message(dict(message), self._model) if part.content]
        self._add_messages(
            [part for part in loaded if part.role is Role.MODEL or part.tool_results]
        )

    def _add_messages(self, messages: Sequence[Message]) -> None:
        """Adds the events of complete A2A messages, and remembers their ids."""
        renamed = [
            message if message.id is None else message.replace(id=self._distinct_id(message.id))
            for message in messages
        ]
        self._message_ids |= {message.id for message in renamed if message.id is not None}
        self._events += unfold(renamed)

    def _add_result(self, result: ToolResultPart, call_message_id: str) -> None:
        """Adds a tool result as a user message of its own."""
        self._add_messages([Message(Role.USER, (result,), id=f"{call_message_id}:result")])

    def _distinct_id(self, id_: str) -> str:
        """Returns the id of an A2A message, changed if a growing text has it: some agents use one
        id for everything."""
        if id_ not in self._growing_ids:
            return id_
        return f"{id_}:{len(self._growing_ids)}"

    # artifacts

    def _read_artifact(self, fields: Json) -> None:
        """Reads a new A2A artifact, a replacement, or a further piece of an open one."""
        artifact = if_object(fields.get("artifact"))
        id_ = if_text(artifact.get("artifactId")) or "artifact"
        parts = list_parts(artifact)
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
            self._message_ids.add(id_)
        self._parts.setdefault(id_, []).extend(parts)
        for part in parts:
            self._emit_artifact_part(emitter, part)
        if fields.get("lastChunk", fields.get("last_chunk")) is True:
            del self._emitters[id_]
            _finish_emitter(emitter, FinishReason.stop)

    def _replace_artifact(self, id_: str) -> None:
        """Drops the message of an A2A artifact that a new version replaces."""
        self._parts[id_] = []
        if self._emitters.pop(id_, None) is not None or id_ in self._message_ids:
            self._events.append(MessageDropped(id_, "the artifact was replaced"))

    def _read_whole_artifact(self, message: Json, *, is_last: bool) -> None:
        """Reads an artifact of a complete task, of which the A2A stream may have shown some or all.

        Args:
            message: the artifact as a message.
            is_last: True if the task is over.
        """
        id_ = if_text(message.get("messageId"))
        parts = list_parts(message)
        # A stream cuts texts anywhere, so they are compared joined.
        text, other_parts = split_text(parts)
        text_before, other_parts_before = split_text(self._parts.get(id_, []))
        has_same_parts = other_parts == other_parts_before
        if id_ in self._parts and text == text_before and has_same_parts:
            return
        update: Json = {"artifact": {"artifactId": id_, "parts": parts}, "lastChunk": is_last}
        if id_ in self._emitters and text.startswith(text_before) and has_same_parts:
            news = [{"text": text[len(text_before) :]}]
            update = {
                **update,
                "artifact": {"artifactId": id_, "parts": news},
                "append": True,
            }
        # An artifact that comes whole keeps the form that its message has, such as results of their
        # own.
        elif is_last and id_ not in self._message_ids:
            self._parts[id_] = parts
            self._add_message(message)
            return
        self._read_artifact(update)

    def _emit_artifact_part(self, emitter: Emitter, part: Json) -> None:
        """Adds the content of a part to the message of its A2A artifact."""
        for piece in load_content(part):
            if isinstance(piece, TextPart) and piece.native is None:
                emitter.add_text("text", piece.text)
            elif isinstance(piece, ToolResultPart):
                self._add_result(piece, emitter.message_id)
            elif isinstance(piece, ThinkingPart):
                emitter.add_thinking("thinking", piece.text)
            else:
                emitter.add_whole_part(piece)

    def _read_shared(
        self,
        name: str,
        parts: Sequence[Json],
        *,
        is_change: bool,
    ) -> None:
        """Reads the A2A artifact that holds the state shared by agent and client. A JSON patch
        changes it."""
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
        """Returns an emitter for the message with this id."""
        return Emitter(lambda: id_, origin=self._model, events=self._events)

    def _finish_emitters(self, reason: FinishReason) -> None:
        """Ends all open A2A messages for this reason."""
        for emitter in self._emitters.values():
            _finish_emitter(emitter, reason)
        self._emitters.clear()

    # states

    def _read_status(self, fields: Json) -> None:
        """Reads an A2A status: the end of the run, or progress."""
        status = if_object(fields.get("status"))
        state, message = state_of(status.get("state")), if_object(status.get("message"))
        if is_over(state):
            self._end_run(state, message, fields)
        elif message:
            self._read_progress(message)

    def _end_run(self, state: str, message: Json, fields: Json) -> None:
        """Ends the run in the state that the A2A task reports.

        Args:
            state: the state's name in version 1.0.
            message: the message of the status, or an empty object.
            fields: the task or status update around it.
        """
        run_id = self._run_id
        # The end of a growing text goes before the ends of other messages; what an error says is no
        # part of it.
        is_message_ids = state not in _ERRORS and self._add_end(message)
        self._finish_emitters(load_finish(state) or FinishReason.stop)
        usage = load_usage(read_carried(fields.get("metadata")))
        if state in _ERRORS:
            ending = state.removeprefix("TASK_STATE_").lower()
            text = read_text(message) or f"the agent's task ended as {ending}"
            self._events.append(RunError(_ERRORS[state](text), run_id))
        elif state == "TASK_STATE_CANCELED":
            self._events.append(RunFinished(run_id, "cancelled", usage))
        elif state == "TASK_STATE_COMPLETED":
            if not is_message_ids:
                self._add_answer(message, fields)
            self._events.append(RunFinished(run_id, usage=usage))
        else:
            pending = self._load_pending(message, state, is_message_ids=is_message_ids)
            self._events.append(RunFinished(run_id, "pending", usage, pending))

    def _add_answer(self, message: Json, fields: Json) -> None:
        """Adds the A2A message of a completed task if it is new. Some agents put their answer into
        the history alone."""
        if message:
            if if_text(message.get("messageId")) not in self._message_ids:
                self._add_message(message)
        elif not self._message_ids and not self._growing_ids:
            for answer in find_answers(if_list(fields.get("history"))):
                self._add_message(answer)

    def _load_pending(
        self,
        message: Json,
        state: str,
        *,
        is_message_ids: bool,
    ) -> tuple[Interrupt, ...]:
        """Returns the interrupts of an A2A task that waits.

        Calls in the message of a foreign agent are tools that the client is to run.
        """
        parts = list_parts(message)
        asks = any(if_object(part.get("data")).get("type") == QUESTION for part in parts)
        if asks or not message:
            return load_pending(message, state)
        loaded = load_message(message, self._model)
        calls = [call for part in loaded for call in part.tool_calls]
        if not calls:
            return load_pending(message, state)
        if not is_message_ids:
            # Calls of a task that waits for input are those that the client is to run.
            for_client = [
                part.replace(content=tuple(map(assign_to_client, part.content))) for part in loaded
            ]
            self._add_messages([part for part in for_client if part.content])
        return tuple(Interrupt(call.id, "tool", assign_call(call)) for call in calls)

    def _read_progress(self, message: Json) -> None:
        """Reads the message of a working status: the text so far, thinking, or a note for the
        user."""
        event_type = if_object(message.get("metadata")).get(CANONICAL)
        if event_type == CHUNK:
            self._add_growing(message)
            return
        # Both say the whole text of the answer that the chunks before them told in pieces.
        if event_type in (START, END):
            if not self._add_end(message):
                self._add_message(message)
            self._finish_growing()
            return
        pieces = [piece for part in list_parts(message) for piece in load_content(part)]
        if pieces and all(isinstance(piece, ThinkingPart) for piece in pieces):
            id_ = if_text(message.get("messageId")) or None
            self._add_messages([Message(Role.MODEL, tuple(pieces), id_, origin=self._model)])
        elif pieces:
            # It is no part of the answer, which comes as an artifact or with the end.
            self._events.append(Custom("a2a.status", dump_note(message)))

    # texts that grow

    def _add_growing(self, message: Json) -> None:
        """Adds the new text of an A2A chunk that repeats the answer so far.

        A chunk that does not continue the text before it belongs to another answer: the first was
        cut.
        """
        text = read_text(message)
        emitter, before = self._growing or (None, "")
        if emitter is not None and not emitter.finished:
            if before.startswith(text):
                return
            if not continues_text(text, before):
                self._finish_growing()
        if emitter is None or emitter.finished:
            id_ = self._distinct_id(if_text(message.get("messageId")) or f"{self._run_id}:text")
            self._growing_ids.add(id_)
            emitter, before = self._new_emitter(id_), ""
            self._emitters[id_] = emitter
        emitter.add_text("text", new_text(text, before))
        self._growing = emitter, text

    def _add_end(self, message: Json) -> bool:
        """Adds what a complete A2A message says beyond the growing text. Returns False if it is
        another text."""
        if self._growing is None:
            return False
        emitter, before = self._growing
        text = read_text(message)
        # An agent that says its answer once more with the end has said it already.
        if emitter.finished:
            return text == before
        if not continues_text(text, before):
            return False
        emitter.add_text("text", new_text(text, before))
        self._growing = emitter, text
        for part in list_parts(message):
            for piece in load_content(part):
                if isinstance(piece, ToolResultPart):
                    self._add_result(piece, emitter.message_id)
                elif not isinstance(piece, TextPart):
                    emitter.add_whole_part(assign_to_client(piece))
        return True

    def _finish_growing(self) -> None:
        """Ends the A2A message of the growing text."""
        if self._growing is not None:
            emitter, _ = self._growing
            self._emitters.pop(emitter.message_id, None)
            _finish_emitter(emitter, FinishReason.stop)


def _finish_emitter(emitter: Emitter, reason: FinishReason) -> None:
    """Ends the A2A message of an emitter, if it has begun."""
    if emitter.started and not emitter.finished:
        is_cut = reason is FinishReason.error
        emitter.finish(FinishReason.tool_calls if emitter.calls() else reason, cut=is_cut)
