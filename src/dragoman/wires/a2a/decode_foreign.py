"""What agents of others write → events: one message for each artifact, and one for what they say beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman import errors
from dragoman.codec.emitter import Emitter
from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.errors import DragomanError
from dragoman.event import (
    Custom,
    Event,
    MessageDropped,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
)
from dragoman.fold import unfold
from dragoman.interrupt import Interrupt
from dragoman.message import (
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
from dragoman.wires.a2a.interrupts import QUESTION, load_pending
from dragoman.wires.a2a.messages import SHARED, group_artifacts, load_message
from dragoman.wires.a2a.quirks import extras, others
from dragoman.wires.a2a.tasks import is_over, load_finish, load_usage, state_of

__all__ = ["ForeignRun"]

_ERRORS: Mapping[str, type[DragomanError]] = {
    "TASK_STATE_FAILED": errors.ProviderError,
    "TASK_STATE_REJECTED": errors.ContentRefusedError,
}
_PATCH = "application/json-patch+json"


class ForeignRun:
    """Objects → events."""

    def __init__(self, events: list[Event], origin: Origin | None) -> None:
        """`events`: fills up. `origin`: of the model's messages."""
        self._events = events
        self._origin = origin
        self._run_id = ""
        self._open: dict[str, Emitter] = {}
        """Id of an artifact that is streamed → what it becomes."""
        self._seen: set[str] = set()
        """Ids of messages that were told."""
        self._given: dict[str, list[dict[str, Any]]] = {}
        """Id of an artifact → its parts so far."""
        self._accumulated: tuple[Emitter, str] | None = None
        """The text so far of an agent that sends all of it each time."""
        self._text_ids: set[str] = set()
        """Ids of the answers that came so."""

    def take(self, kind: str, fields: Mapping[str, Any]) -> None:
        """One object.

        Raises:
            HistoryError: a part of it is none.
        """
        if kind == "message":
            self._start("message", fields.get("contextId"))
            self._say(fields)
            self._events.append(RunFinished(self._run_id))
            return
        task_id = if_text(fields.get("id") if kind == "task" else fields.get("taskId"))
        self._start(task_id or "task", fields.get("contextId"))
        if kind == "artifactUpdate":
            self._artifact(fields)
            return
        status = if_object(fields.get("status"))
        state = state_of(status.get("state"))
        if kind == "task":
            in_history = {
                if_text(if_object(entry).get("messageId"))
                for entry in if_list(fields.get("history"))
            }
            for message in group_artifacts(fields):
                if message["messageId"] not in in_history:
                    self._whole(message, is_last=is_over(state))
        self._status(state, if_object(status.get("message")), fields)

    def announce(self, run_id: str) -> None:
        """The beginning of the run was told already."""
        self._run_id = run_id

    def close(self) -> None:
        """The end of the task."""
        self._close_all(FinishReason.stop)

    def fail(self, error: DragomanError) -> None:
        """The run ends with an error."""
        for emitter in self._open.values():
            if not emitter.finished:
                emitter.finish(FinishReason.error, cut=True)
                error.at(partial=emitter.partial())
        self._open.clear()
        self._events.append(RunError(error, self._run_id or None))

    def _start(self, run_id: str, context_id: Any) -> None:
        if not self._run_id:
            self._run_id = run_id
            self._events.append(RunStarted(run_id, if_text(context_id) or None))

    def _say(self, message: Mapping[str, Any]) -> None:
        """A whole message of the agent's."""
        loaded = [each for each in load_message(dict(message), self._origin) if each.content]
        self._tell([each for each in loaded if each.role is Role.MODEL or each.tool_results])

    def _tell(self, messages: Sequence[Message]) -> None:
        told = [
            message if message.id is None else message.replace(id=self._unused(message.id))
            for message in messages
        ]
        self._seen |= {message.id for message in told if message.id is not None}
        self._events += unfold(told)

    # artifacts

    def _artifact(self, fields: Mapping[str, Any]) -> None:
        artifact = if_object(fields.get("artifact"))
        id_ = if_text(artifact.get("artifactId")) or "artifact"
        parts = [if_object(part) for part in if_list(artifact.get("parts"))]
        if id_ in SHARED and if_text(artifact.get("name")) == id_:
            self._state(id_, parts, is_change=fields.get("append") is True)
            return
        emitter = self._open.get(id_)
        if fields.get("append") is not True and (emitter is not None or id_ in self._seen):
            self._open.pop(id_, None)
            self._events.append(MessageDropped(id_, "the artifact was replaced"))
            emitter = None
        if emitter is None:
            emitter = self._open[id_] = Emitter(
                lambda: id_, origin=self._origin, events=self._events
            )
            self._seen.add(id_)
        if fields.get("append") is not True:
            self._given[id_] = []
        self._given.setdefault(id_, []).extend(parts)
        for part in parts:
            self._piece(emitter, part)
        if fields.get("lastChunk", fields.get("last_chunk")) is True:
            self._open.pop(id_, None)
            if emitter.started:
                emitter.finish(FinishReason.tool_calls if emitter.calls() else FinishReason.stop)

    def _whole(self, message: Mapping[str, Any], *, is_last: bool) -> None:
        """An artifact as a task has it, of which something may have been told already. `is_last`: nothing more of it comes."""
        id_ = if_text(message.get("messageId"))
        parts = [if_object(part) for part in if_list(message.get("parts"))]
        text, others_ = _gist(parts)
        before, others_before = _gist(self._given.get(id_, []))
        if id_ in self._given and text == before and others_ == others_before:
            return
        if id_ in self._open and text.startswith(before) and others_ == others_before:
            more = [{"text": text[len(before) :]}]
            self._artifact(
                {
                    "artifact": {"artifactId": id_, "parts": more},
                    "append": True,
                    "lastChunk": is_last,
                }
            )
        elif is_last and id_ not in self._seen:
            self._given[id_] = parts
            self._say(message)
        else:
            self._artifact({"artifact": {"artifactId": id_, "parts": parts}, "lastChunk": is_last})

    def _piece(self, emitter: Emitter, part: Mapping[str, Any]) -> None:
        for piece in load_content(part):
            if isinstance(piece, TextPart) and piece.native is None:
                emitter.text("text", piece.text)
            elif isinstance(piece, ToolResultPart):
                self._tell([Message(Role.USER, (piece,), id=f"{emitter.message_id}:result")])
            elif isinstance(piece, ThinkingPart):
                emitter.thinking("thinking", piece.text)
            else:
                emitter.whole(piece)

    def _state(self, name: str, parts: Sequence[Mapping[str, Any]], *, is_change: bool) -> None:
        for part in parts:
            if name == "state" and "data" in part:
                operations = part["data"]
                if (is_change or part.get("mediaType") == _PATCH) and isinstance(operations, list):
                    self._events.append(StateDelta(tuple(map(if_object, if_list(operations)))))
                else:
                    self._events.append(StateSnapshot(operations))

    # states

    def _status(self, state: str, message: dict[str, Any], fields: Mapping[str, Any]) -> None:
        if not is_over(state):
            if message:
                self._progress(message)
            return
        reason = load_finish(state) or FinishReason.stop
        is_said = state not in _ERRORS and self._say_rest(message)
        self._close_all(reason)
        usage = load_usage(extras(fields.get("metadata")))
        if state in _ERRORS:
            words = (
                _words(message)
                or f"the agent's task ended as {state.removeprefix('TASK_STATE_').lower()}"
            )
            self._events.append(RunError(_ERRORS[state](words), self._run_id))
        elif state == "TASK_STATE_CANCELED":
            self._events.append(RunFinished(self._run_id, "cancelled", usage))
        elif state == "TASK_STATE_COMPLETED":
            if message and not is_said and if_text(message.get("messageId")) not in self._seen:
                self._say(message)
            elif (
                not message and not self._seen and not self._text_ids
            ):  # some say it in the history alone
                for each in _answer_in(if_list(fields.get("history"))):
                    self._say(each)
            self._events.append(RunFinished(self._run_id, usage=usage))
        else:
            self._events.append(
                RunFinished(
                    self._run_id, "pending", usage, self._pending(message, state, is_said=is_said)
                )
            )

    def _pending(
        self, message: dict[str, Any], state: str, *, is_said: bool
    ) -> tuple[Interrupt, ...]:
        """What a task waits for. Calls in its message that are no question of ours are for the client to run."""
        parts = [if_object(part) for part in if_list(message.get("parts"))]
        if (
            any(if_object(part.get("data")).get("type") == QUESTION for part in parts)
            or not message
        ):
            return load_pending(message, state)
        loaded = load_message(message, self._origin)
        calls = [call for each in loaded for call in each.tool_calls]
        if not calls:
            return load_pending(message, state)
        if not is_said:
            for_client = [
                each.replace(content=tuple(map(_clients, each.content))) for each in loaded
            ]
            self._tell([each for each in for_client if each.content])
        return tuple(Interrupt(call.id, "tool", _clients(call)) for call in calls)

    def _progress(self, message: dict[str, Any]) -> None:
        """What an agent says while it works: its thinking, its text so far, or a note."""
        kind = if_object(message.get("metadata")).get("canonical_type")
        if kind == CHUNK:
            self._add_chunk(message)
            return
        if kind in (START, END):
            if not self._say_rest(message):
                self._say(message)
            self._finish_text()
            return
        pieces = [
            piece
            for part in if_list(message.get("parts"))
            for piece in load_content(if_object(part))
        ]
        thoughts = [piece for piece in pieces if isinstance(piece, ThinkingPart)]
        if thoughts and len(thoughts) == len(pieces):
            self._tell(
                [
                    Message(
                        Role.MODEL,
                        tuple(thoughts),
                        if_text(message.get("messageId")) or None,
                        origin=self._origin,
                    )
                ]
            )
        elif pieces:
            value = {
                "message": {key: message[key] for key in ("messageId", "parts") if key in message}
            }
            more = others(message.get("metadata"))
            self._events.append(
                Custom("a2a.status", {**value, **({"metadata": more} if more else {})})
            )

    def _add_chunk(self, message: Mapping[str, Any]) -> None:
        """The text of an answer so far. Text that does not go on from what was said is another answer: the first one was cut."""
        text = _words(message)
        emitter, before = self._accumulated or (None, "")
        if emitter is not None and not emitter.finished:
            if before.startswith(text):
                return
            if not holds(text, before):
                self._finish_text()
        if emitter is None or emitter.finished:
            emitter, before = (
                self._begin_text(if_text(message.get("messageId")) or f"{self._run_id}:text"),
                "",
            )
        emitter.text("text", continuation(text, before))
        self._accumulated = emitter, text

    def _begin_text(self, id_: str) -> Emitter:
        id_ = self._unused(id_)
        self._text_ids.add(id_)
        emitter = self._open[id_] = Emitter(lambda: id_, origin=self._origin, events=self._events)
        return emitter

    def _unused(self, id_: str) -> str:
        """An id that no answer has that came in pieces: some agents give one id to all that they say."""
        if id_ not in self._text_ids:
            return id_
        return f"{id_}:{len(self._text_ids)}"

    def _say_rest(self, message: Mapping[str, Any]) -> bool:
        """Says what a whole message has beyond the text that was said in pieces; False: it is another text, and nothing was said."""
        if self._accumulated is None:
            return False
        emitter, before = self._accumulated
        text = _words(message)
        if emitter.finished:
            return text == before
        if not holds(text, before):
            return False
        emitter.text("text", continuation(text, before))
        self._accumulated = emitter, text
        for part in if_list(message.get("parts")):
            for piece in load_content(if_object(part)):
                if isinstance(piece, ToolResultPart):
                    self._tell([Message(Role.USER, (piece,), id=f"{emitter.message_id}:result")])
                elif not isinstance(piece, TextPart):
                    emitter.whole(_clients(piece))
        return True

    def _finish_text(self) -> None:
        """The answer that was said in pieces is over."""
        if self._accumulated is None:
            return
        emitter, _ = self._accumulated
        self._open.pop(emitter.message_id, None)
        if emitter.started and not emitter.finished:
            emitter.finish(FinishReason.tool_calls if emitter.calls() else FinishReason.stop)

    def _close_all(self, reason: FinishReason) -> None:
        for emitter in self._open.values():
            if emitter.started and not emitter.finished:
                emitter.finish(
                    FinishReason.tool_calls if emitter.calls() else reason,
                    cut=reason is FinishReason.error,
                )
        self._open.clear()


def _gist(parts: Sequence[Mapping[str, Any]]) -> tuple[str, list[Mapping[str, Any]]]:
    """All text of an artifact, and its other parts: what stays the same however it is cut."""
    return "".join([if_text(part.get("text")) for part in parts]), [
        part for part in parts if "text" not in part
    ]


def _answer_in(history: Sequence[Any]) -> list[dict[str, Any]]:
    """What the agent said behind the last question."""
    entries = [if_object(each) for each in history]
    asked = [
        at for at, each in enumerate(entries) if if_text(each.get("role")) in ("user", "ROLE_USER")
    ]
    return entries[asked[-1] + 1 if asked else 0 :]


def _clients(piece: Any) -> Any:
    if not isinstance(piece, ToolCallPart):
        return piece
    return ToolCallPart(
        piece.id, piece.name, piece.arguments, piece.raw, piece.state, "client", piece.native
    )


def _words(message: Mapping[str, Any]) -> str:
    parts = [if_object(part) for part in if_list(message.get("parts"))]
    texts = [
        if_text(if_object(part.get("root")).get("text")) or if_text(part.get("text"))
        for part in parts
    ]
    return "".join(texts)
