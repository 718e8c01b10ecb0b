"""The messages of a run that others wrote: which of ours an object of theirs belongs to, and when
each is closed.

Reasoning belongs to the message of the model's that follows it, and results that follow each other
are one message of the user's. Nothing of theirs ends a message, so one is closed when the next
begins, or stays open beside it until its parts are at their end. Runs within tools have messages of
their own: `owner` is the id of such a run, empty for the run whose stream it is.

All messages may be listed in the stream too (`MESSAGES_SNAPSHOT`), beside those that were streamed:
`_Snapshot` tells which of these stand, and what is listed alone. Few servers list reasoning, some
give what they streamed another id there, and some say all or the end of an answer there alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import msgspec

from dragoman.codec.ids import DistinctIds
from dragoman.codec.json_values import if_objects, if_text
from dragoman.codec.run_decoder import DecodedPart, RunDecoder
from dragoman.errors import DecodeError, DragomanError
from dragoman.event import MessageDropped, MessageFinished, MessageStarted, OpenText
from dragoman.fold import close_part, unfold
from dragoman.json_bytes import JsonMap
from dragoman.message import (
    Content,
    FinishReason,
    Native,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from dragoman.wires.ag_ui.messages import load_conversation
from dragoman.wires.ag_ui.messages_load import load_piece, restore_signature
from dragoman.wires.ag_ui.quirks import OWN

__all__ = ["MessagesDecoder", "ReadMessage", "ReadPart"]

_OF_RUN = ("assistant", "tool", "reasoning")
"""Roles of what a run says."""


class ReadMessage:
    """A message of ours that was read of a stream, and by what it is known among theirs."""

    __slots__ = (
        "calls",
        "entries",
        "id",
        "next",
        "owner",
        "parts",
        "role",
        "spoke",
        "spoken",
        "texts",
    )

    def __init__(self, id_: str, role: Role, owner: str) -> None:
        self.id = id_
        self.role = role
        self.owner = owner
        self.next = 0
        """Index of its next part."""
        self.spoke = False
        """Whether it has more than thinking."""
        self.parts: list[tuple[str, str]] = []
        """Keys of its parts."""
        self.entries: list[str] = []
        """Ids of their messages that it is."""
        self.spoken: set[str] = set()
        """Those that are more than thinking."""
        self.calls: set[str] = set()
        """Ids of its calls, or of those that it answers."""
        self.texts: set[str] = set()


class ReadPart(DecodedPart):
    """A part that is open."""

    __slots__ = ("base", "extras", "is_ended", "message", "sealed")

    def __init__(
        self,
        message_id: str,
        index: int,
        begun: Content | OpenText,
        base: Content | None = None,
        message: ReadMessage | None = None,
    ) -> None:
        """`base`: what was read of its start, without what was carried; `message`: that it is of,
        in a stream of others."""
        super().__init__(message_id, index, begun)
        self.base = begun if base is None else base
        self.message = message
        self.extras: JsonMap = {}
        """Of its end."""
        self.sealed: str | None = None
        """Its signature, which may follow its end."""
        self.is_ended = False

    def build_part(self, *, cut: bool = False) -> Content | None:
        """See `OpenPart.whole`; with what was carried, and the signature where it was."""
        if "part" in self.extras:
            whole = load_piece(close_part(self.base, self.deltas), self.extras["part"])
        else:
            whole = super().build_part(cut=cut)
        if self.sealed is None or not isinstance(whole, ThinkingPart):
            return whole
        # the peer's field holds what a provider signed: put it where that provider had it
        if "signed" in self.extras:
            return restore_signature(whole, self.extras["signed"], self.sealed)
        fields = {**OWN.fields(whole.native), "encryptedValue": self.sealed}
        return msgspec.structs.replace(whole, native=OWN.note(fields, OWN.form(whole.native)))


class MessagesDecoder(RunDecoder[ReadPart]):
    """Keeps the messages of a run, and closes them."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """`origin`: of the model's messages. `new_id` makes the ids of messages that come without
        one."""
        super().__init__(origin, new_id)
        self._of_model = origin if origin is not None and origin.provider else None
        self.current: dict[str, ReadMessage] = {}
        """Owner → the message that is open, and that what comes next may belong to."""
        self.aside: list[ReadMessage] = []
        """Those beside them: another began before their parts were at their end."""
        self.standing: dict[str, ReadMessage] = {}
        """Messages that were told and stand, by id."""
        self.calls: dict[str, ToolCallPart] = {}
        """Calls that are whole, by id."""
        self._entries: dict[str, ReadMessage] = {}
        """Ids of their messages → the message of ours, while it is open."""
        self._snapshot: _Snapshot | None = None
        """All messages as they were listed, while none was told since."""
        self._ids = DistinctIds()
        self._nameless = 0

    def forget(self) -> None:
        """Another run begins."""
        self.current.clear()
        self.aside.clear()
        self.standing.clear()
        self._entries.clear()
        self._snapshot = None
        self.open.clear()

    def message(
        self, id_: str, role: Role, owner: str, metadata: JsonMap, native: Native = None
    ) -> ReadMessage:
        """The message that is open under an id, else a new one."""
        current, message = self.current.get(owner), self._entries.get(id_)
        open_messages = (current, *self.aside)
        if message is not None and message.role is role and message in open_messages:
            return message
        # reasoning comes before the message that it belongs to, under an id of its own
        if current is not None and not current.spoke and current.role is role is Role.MODEL:
            self._entries[id_] = current  # so far it has nothing but thinking
            current.entries.append(id_)
            return current
        self.leave(owner)
        message = ReadMessage(self._free_id(id_), role, owner)
        self.current[owner] = self._entries[id_] = self.standing[message.id] = message
        self._snapshot = None
        message.entries.append(id_)
        origin = self._of_model if role is Role.MODEL else None
        start = MessageStarted(
            message.id, role, origin=origin, metadata=metadata, native=native, run_id=owner or None
        )
        self._events.append(start)
        return message

    def _free_id(self, id_: str) -> str:
        if not id_:
            self._nameless += 1
            id_ = self._new_id() if self._new_id else f"message-{self._nameless}"
        return self._ids.take(id_)

    def leave(self, owner: str) -> None:
        """Another message begins: the one that is open is closed, or stays open beside it until its
        parts are at their end."""
        message = self.current.get(owner)
        if message is not None and self._has_open_parts(message):
            self.aside.append(self.current.pop(owner))
        else:
            self.finish(owner)

    def _has_open_parts(self, message: ReadMessage) -> bool:
        parts = [self.open.get(key) for key in message.parts]
        return any(
            part is not None and part.message is message and not part.is_ended for part in parts
        )

    def finish(self, owner: str, *, cut: bool = False) -> None:
        """Closes the message of a run that is open."""
        message = self.current.pop(owner, None)
        if message is not None:
            self._close_message(message, cut=cut)

    def finish_aside(self, owner: str | None = None, *, cut: bool = False) -> None:
        """Closes the messages that are open beside them: of one run, or all."""
        messages = [message for message in self.aside if owner in (None, message.owner)]
        for message in messages:
            self.aside.remove(message)
            self._close_message(message, cut=cut)

    def finish_ended(self, message: ReadMessage | None) -> None:
        """Closes a message that is open beside another, if its parts are at their end."""
        if message is not None and message in self.aside and not self._has_open_parts(message):
            self.aside.remove(message)
            self._close_message(message)

    def finish_all(self, *, cut: bool = False) -> None:
        """Closes all that is open. `cut`: the run ended too early."""
        self.finish_aside(cut=cut)
        for owner in list(self.current):
            self.finish(owner, cut=cut)

    def cut_run(self, error: DragomanError) -> None:  # noqa: ARG002 the shell's
        """See `RunDecoder.cut_run`. Parts of our own stream stay open, as in a run that was cut."""
        self.finish_all(cut=True)
        self.open.clear()

    def _close_message(self, message: ReadMessage, *, cut: bool = False) -> None:
        for key in message.parts:
            if (part := self.open.get(key)) is not None and part.message is message:
                del self.open[key]
                self.close_part(part, cut=cut or not part.is_ended)
        for entry in message.entries:
            if self._entries.get(entry) is message:
                del self._entries[entry]
        reason = _finish_reason(is_calling=bool(message.calls), cut=cut)
        ended = reason if message.role is Role.MODEL else None
        self._events.append(MessageFinished(message.id, ended))

    def close_part(self, part: ReadPart, *, cut: bool = False) -> None:
        """Tells the end of a part that is open no longer."""
        whole = part.build_part(cut=cut)
        if isinstance(whole, ToolCallPart):
            self.calls[whole.id] = whole
        elif isinstance(whole, TextPart) and part.message is not None:
            part.message.texts.add(whole.text)
        self.finish_part(part, whole)

    # all messages, as they are listed in the stream

    def list_messages(self, listed: object) -> None:
        """All messages that stand: what was told and is none of them is retracted.

        Raises:
            DecodeError: it is no list.
        """
        if not isinstance(listed, list):
            raise DecodeError("the messages of MESSAGES_SNAPSHOT are a list")
        snapshot = self._snapshot = _Snapshot(cast("object", listed))
        retracted = [message for message in self.standing.values() if not snapshot.has(message)]
        # a list is the whole truth: what it lacks was taken back
        for message in retracted:
            if message in self.aside:
                self.aside.remove(message)
                self._close_message(message)
            elif self.current.get(message.owner) is message:
                self.finish(message.owner)
            del self.standing[message.id]
            self._events.append(MessageDropped(message.id))

    def add_unstreamed(self) -> None:
        """Adds the messages that the list has and the stream had not."""
        if self._snapshot is None:
            return
        entries = self._snapshot.find_unstreamed(self.standing.values())
        for message in load_conversation(entries, self._of_model, []):
            self.calls.update({call.id: call for call in message.tool_calls})
            reason = _finish_reason(is_calling=bool(message.tool_calls))
            ended = reason if message.role is Role.MODEL else None
            id_ = self._free_id(message.id or "")
            self._events += unfold([message.replace(id=id_, finish_reason=ended)])


def _finish_reason(*, is_calling: bool, cut: bool = False) -> FinishReason:
    if cut:
        return FinishReason.error
    return FinishReason.tool_calls if is_calling else FinishReason.stop


class _Snapshot:
    """All messages as one MESSAGES_SNAPSHOT lists them."""

    def __init__(self, entries: object) -> None:
        self._entries = if_objects(entries)
        self._ids = {if_text(entry.get("id")) for entry in self._entries}
        self._calls = {id_ for entry in self._entries for id_ in _call_ids(entry)}
        self._results = {if_text(entry.get("toolCallId")) for entry in self._entries}
        self._has_reasoning = any(entry.get("role") == "reasoning" for entry in self._entries)
        questions = [
            index for index, entry in enumerate(self._entries) if entry.get("role") == "user"
        ]
        self._answer = self._entries[questions[-1] + 1 if questions else 0 :]
        """What follows the last question."""

    def has(self, message: ReadMessage) -> bool:
        """Whether a message that was streamed stands: under its id, its calls, or its text."""
        if not message.spoken and not message.calls:
            return not self._has_reasoning or not self._ids.isdisjoint(message.entries)
        calls = self._calls if message.role is Role.MODEL else self._results
        if not self._ids.isdisjoint(message.spoken) or not calls.isdisjoint(message.calls):
            return True
        return any(_answer_text(entry) in message.texts for entry in self._answer)

    def find_unstreamed(self, streamed: Iterable[ReadMessage]) -> list[JsonMap]:
        """What the list has behind all that was streamed."""
        messages = list(streamed)
        ids = {id_ for message in messages for id_ in (*message.entries, *message.spoken) if id_}
        calls = {id_ for message in messages for id_ in message.calls}
        texts = {text for message in messages for text in message.texts}

        def is_streamed(entry: JsonMap) -> bool:
            # servers give what they streamed another id in the list: calls and texts tell it too
            entry_calls = (*_call_ids(entry), if_text(entry.get("toolCallId")))
            if if_text(entry.get("id")) in ids or not calls.isdisjoint(entry_calls):
                return True
            return _answer_text(entry) in texts

        unstreamed = self._find_behind(is_streamed)
        if unstreamed is None:
            # nothing of the answer was streamed: what precedes the last result may be the client's
            unstreamed = self._find_behind(lambda entry: entry.get("role") == "tool")
        answer = self._answer if unstreamed is None else unstreamed
        return [entry for entry in answer if entry.get("role") in _OF_RUN]

    def _find_behind(self, is_match: Callable[[JsonMap], bool]) -> Sequence[JsonMap] | None:
        """What the answer has behind the last entry of a kind; `None`: it has none of that kind."""
        matches = [index for index, entry in enumerate(self._answer) if is_match(entry)]
        return self._answer[matches[-1] + 1 :] if matches else None


def _call_ids(entry: JsonMap) -> list[str]:
    return [id_ for call in if_objects(entry.get("toolCalls")) if (id_ := if_text(call.get("id")))]


def _answer_text(entry: JsonMap) -> str | None:
    """What the agent says in an entry; `None`: nothing."""
    text = if_text(entry.get("content")) if entry.get("role") == "assistant" else ""
    return text or None
