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

from dragoman.codec.fit_ids import DistinctIds
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
"""Roles of the messages that a run adds."""


class ReadMessage:
    """A message that is being read, and how the AG-UI stream refers to it."""

    __slots__ = (
        "calls",
        "entries",
        "has_spoken",
        "id",
        "next_index",
        "owner",
        "parts",
        "role",
        "spoken_entries",
        "texts",
    )

    def __init__(self, id_: str, role: Role, owner: str) -> None:
        """Begins a message of an AG-UI stream."""
        self.id = id_
        self.role = role
        self.owner = owner
        self.next_index = 0
        """Index of its next part."""
        self.has_spoken = False
        """True if it has more than thinking."""
        self.parts: list[tuple[str, str]] = []
        """Keys of its parts."""
        self.entries: list[str] = []
        """Ids of its AG-UI messages."""
        self.spoken_entries: set[str] = set()
        """Ids of those that are more than thinking."""
        self.calls: set[str] = set()
        """Ids of its calls, or of the calls that it answers."""
        self.texts: set[str] = set()


class ReadPart(DecodedPart):
    """An open part of a message."""

    __slots__ = ("base", "extras", "is_ended", "message", "signature")

    def __init__(
        self,
        message_id: str,
        index: int,
        begun: Content | OpenText,
        base: Content | None = None,
        message: ReadMessage | None = None,
    ) -> None:
        """Opens a part of an AG-UI stream.

        Args:
            message_id: id of the message.
            index: of the part in it.
            begun: what the part holds at its start.
            base: what its start says without what it carries. None: the same as `begun`.
            message: the message, in a stream that dragoman did not write.
        """
        super().__init__(message_id, index, begun)
        self.base = begun if base is None else base
        self.message = message
        self.extras: JsonMap = {}
        """What its end carries."""
        self.signature: str | None = None
        """Its signature, which may follow its end."""
        self.is_ended = False

    def build_part(self, *, cut: bool = False) -> Content | None:
        """Implements `OpenPart.build_part` for AG-UI. Adds what its end carries, and its
        signature."""
        if "part" in self.extras:
            whole = load_piece(close_part(self.base, self.deltas), self.extras["part"])
        else:
            whole = super().build_part(cut=cut)
        if self.signature is None or not isinstance(whole, ThinkingPart):
            return whole
        # the peer's field holds what a provider signed: put it where that provider had it
        if "signed" in self.extras:
            return restore_signature(whole, self.extras["signed"], self.signature)
        fields = {**OWN.fields(whole.native), "encryptedValue": self.signature}
        return msgspec.structs.replace(whole, native=OWN.note(fields, OWN.form(whole.native)))


class MessagesDecoder(RunDecoder[ReadPart]):
    """Assigns the parts of a stream to messages, and closes these."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates a decoder.

        Args:
            origin: of the model's messages.
            new_id: makes ids for messages that arrive without one.
        """
        super().__init__(origin, new_id)
        self._of_model = origin if origin is not None and origin.provider else None
        self.current: dict[str, ReadMessage] = {}
        """Owner → the open message that the next parts may belong to."""
        self.aside: list[ReadMessage] = []
        """Messages that are still open although another began, because their parts are."""
        self.standing: dict[str, ReadMessage] = {}
        """Messages so far that were not retracted, by id."""
        self.calls: dict[str, ToolCallPart] = {}
        """Complete calls, by id."""
        self._entries: dict[str, ReadMessage] = {}
        """Id of an AG-UI message → its message, while that is open."""
        self._snapshot: _Snapshot | None = None
        """The last list of all messages, until another message begins."""
        self._ids = DistinctIds()
        self._nameless = 0

    def begin_run(self) -> None:
        """Forgets the messages of the AG-UI run before."""
        self.current.clear()
        self.aside.clear()
        self.standing.clear()
        self._entries.clear()
        self._snapshot = None
        self.open.clear()

    def take_message(
        self, id_: str, role: Role, owner: str, metadata: JsonMap, native: Native = None
    ) -> ReadMessage:
        """Returns the open message that an AG-UI id belongs to, or starts a new one.

        Args:
            id_: id of the AG-UI message.
            role: of the message.
            owner: id of the run within a tool that it belongs to, or empty.
            metadata: the application's, for a new message.
            native: further fields, for a new message.
        """
        current, message = self.current.get(owner), self._entries.get(id_)
        open_messages = (current, *self.aside)
        if message is not None and message.role is role and message in open_messages:
            return message
        # reasoning comes before the message that it belongs to, under an id of its own
        if current is not None and not current.has_spoken and current.role is role is Role.MODEL:
            self._entries[id_] = current  # so far it has nothing but thinking
            current.entries.append(id_)
            return current
        self.leave_message(owner)
        message = ReadMessage(self._free_id(id_), role, owner)
        self.current[owner] = self._entries[id_] = self.standing[message.id] = message
        self._snapshot = None
        message.entries.append(id_)
        origin = None
        if role is Role.MODEL:
            origin = self._of_model
        start = MessageStarted(
            message.id, role, origin=origin, metadata=metadata, native=native, run_id=owner or None
        )
        self._events.append(start)
        return message

    def _free_id(self, id_: str) -> str:
        """Returns an id that no AG-UI message has yet."""
        if not id_:
            self._nameless += 1
            if self._new_id:
                id_ = self._new_id()
            else:
                id_ = f"message-{self._nameless}"
        return self._ids.take(id_)

    def leave_message(self, owner: str) -> None:
        """Closes the open AG-UI message because another begins. It stays open beside it while its
        parts are open."""
        message = self.current.get(owner)
        if message is not None and self._has_open_parts(message):
            self.aside.append(self.current.pop(owner))
        else:
            self.finish_message(owner)

    def _has_open_parts(self, message: ReadMessage) -> bool:
        """True if a part of the AG-UI message has not ended."""
        parts = [self.open.get(key) for key in message.parts]
        return any(
            part is not None and part.message is message and not part.is_ended for part in parts
        )

    def finish_message(self, owner: str, *, cut: bool = False) -> None:
        """Closes the current message of an AG-UI run."""
        message = self.current.pop(owner, None)
        if message is not None:
            self._close_message(message, cut=cut)

    def finish_aside(self, owner: str | None = None, *, cut: bool = False) -> None:
        """Closes the messages that stayed open beside the current one: those of one AG-UI run, or
        all."""
        messages = [message for message in self.aside if owner in (None, message.owner)]
        for message in messages:
            self.aside.remove(message)
            self._close_message(message, cut=cut)

    def finish_ended(self, message: ReadMessage | None) -> None:
        """Closes an AG-UI message that stayed open beside the current one, once all its parts have
        ended."""
        if message is not None and message in self.aside and not self._has_open_parts(message):
            self.aside.remove(message)
            self._close_message(message)

    def finish_all(self, *, cut: bool = False) -> None:
        """Closes all messages. `cut` says that the AG-UI run broke off."""
        self.finish_aside(cut=cut)
        for owner in list(self.current):
            self.finish_message(owner, cut=cut)

    def cut_run(self, error: DragomanError) -> None:  # noqa: ARG002 the shell's
        """Implements `RunDecoder.cut_run` for AG-UI. Parts of dragoman's own stream stay open, as
        in a run that was cut."""
        self.finish_all(cut=True)
        self.open.clear()

    def _close_message(self, message: ReadMessage, *, cut: bool = False) -> None:
        """Ends an AG-UI message and the parts of it that are open."""
        for key in message.parts:
            if (part := self.open.get(key)) is not None and part.message is message:
                del self.open[key]
                self.close_part(part, cut=cut or not part.is_ended)
        for entry in message.entries:
            if self._entries.get(entry) is message:
                del self._entries[entry]
        reason = _finish_reason(is_calling=bool(message.calls), cut=cut)
        ended = None
        if message.role is Role.MODEL:
            ended = reason
        self._events.append(MessageFinished(message.id, ended))

    def close_part(self, part: ReadPart, *, cut: bool = False) -> None:
        """Closes a part of AG-UI's message."""
        whole = part.build_part(cut=cut)
        if isinstance(whole, ToolCallPart):
            self.calls[whole.id] = whole
        elif isinstance(whole, TextPart) and part.message is not None:
            part.message.texts.add(whole.text)
        self.finish_part(part, whole)

    # all messages, as they are listed in the stream

    def list_messages(self, listed: object) -> None:
        """Retracts the AG-UI messages that a `MESSAGES_SNAPSHOT` does not list.

        Raises:
            DecodeError: its messages are no list.
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
                self.finish_message(message.owner)
            del self.standing[message.id]
            self._events.append(MessageDropped(message.id))

    def add_unstreamed(self) -> None:
        """Adds the AG-UI messages that the last `MESSAGES_SNAPSHOT` lists and that were never
        streamed."""
        if self._snapshot is None:
            return
        entries = self._snapshot.find_unstreamed(self.standing.values())
        for message in load_conversation(entries, self._of_model, []):
            self.calls.update({call.id: call for call in message.tool_calls})
            reason = _finish_reason(is_calling=bool(message.tool_calls))
            ended = None
            if message.role is Role.MODEL:
                ended = reason
            id_ = self._free_id(message.id or "")
            self._events += unfold([message.replace(id=id_, finish_reason=ended)])


def _finish_reason(*, is_calling: bool, cut: bool = False) -> FinishReason:
    """Returns the finish reason of an AG-UI message that ends."""
    if cut:
        return FinishReason.error
    if is_calling:
        return FinishReason.tool_calls
    return FinishReason.stop


class _Snapshot:
    """The messages of one `MESSAGES_SNAPSHOT`."""

    def __init__(self, entries: object) -> None:
        """Reads the entries of an AG-UI `MESSAGES_SNAPSHOT`."""
        self._entries = if_objects(entries)
        self._ids = {if_text(entry.get("id")) for entry in self._entries}
        self._calls = {id_ for entry in self._entries for id_ in _call_ids(entry)}
        self._results = {if_text(entry.get("toolCallId")) for entry in self._entries}
        self._has_reasoning = any(entry.get("role") == "reasoning" for entry in self._entries)
        questions = [
            index for index, entry in enumerate(self._entries) if entry.get("role") == "user"
        ]
        self._answer = self._entries[questions[-1] + 1 if questions else 0 :]
        """Entries behind the last question."""

    def has(self, message: ReadMessage) -> bool:
        """True if the AG-UI messages snapshot has a streamed message: by its id, its calls or its
        text."""
        if not message.spoken_entries and not message.calls:
            return not self._has_reasoning or not self._ids.isdisjoint(message.entries)
        if message.role is Role.MODEL:
            calls = self._calls
        else:
            calls = self._results
        if not self._ids.isdisjoint(message.spoken_entries) or not calls.isdisjoint(message.calls):
            return True
        return any(_answer_text(entry) in message.texts for entry in self._answer)

    def find_unstreamed(self, streamed: Iterable[ReadMessage]) -> list[JsonMap]:
        """Returns the listed messages that follow everything that was streamed."""
        ids: set[str] = set()
        calls: set[str] = set()
        texts: set[str] = set()
        for message in streamed:
            ids.update(message.entries, message.spoken_entries)
            calls |= message.calls
            texts |= message.texts
        ids.discard("")

        def is_streamed(entry: JsonMap) -> bool:
            """True if the AG-UI stream had this entry."""
            # servers give what they streamed another id in the list: calls and texts tell it too
            entry_calls = (*_call_ids(entry), if_text(entry.get("toolCallId")))
            if if_text(entry.get("id")) in ids or not calls.isdisjoint(entry_calls):
                return True
            return _answer_text(entry) in texts

        unstreamed = self._find_behind(is_streamed)
        if unstreamed is None:
            # nothing of the answer was streamed: what precedes the last result may be the client's
            unstreamed = self._find_behind(lambda entry: entry.get("role") == "tool")
        if unstreamed is None:
            unstreamed = self._answer
        return [entry for entry in unstreamed if entry.get("role") in _OF_RUN]

    def _find_behind(self, is_match: Callable[[JsonMap], bool]) -> Sequence[JsonMap] | None:
        """Returns what follows the last match in the AG-UI answer, or None without a match."""
        matches = [index for index, entry in enumerate(self._answer) if is_match(entry)]
        if matches:
            return self._answer[matches[-1] + 1 :]
        return None


def _call_ids(entry: JsonMap) -> list[str]:
    """Returns the ids of the calls in a message."""
    return [id_ for call in if_objects(entry.get("toolCalls")) if (id_ := if_text(call.get("id")))]


def _answer_text(entry: JsonMap) -> str | None:
    """Returns the text of a decoded AG-UI assistant message, or None for any other."""
    text = ""
    if entry.get("role") == "assistant":
        text = if_text(entry.get("content"))
    return text or None
