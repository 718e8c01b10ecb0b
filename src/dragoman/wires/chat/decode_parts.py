"""Reads one candidate of an answer: adds up its deltas into text, thinking and calls, each a part
of its own.

A call comes whole or in pieces (`StreamedCalls`). A piece belongs to the call that its index names,
or else its id; `_find_open_call` says what vendors do instead. Text and thinking are one open part at a time
(`ChatCandidate.open_part`). When another kind of content follows, that part ends and the next one
begins, so that the parts keep the order in which the model wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from msgspec.structs import replace

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.json_values import (
    as_index,
    as_list,
    as_object,
    as_text,
    drop_empty,
    merge_pieces,
    read_extra_fields,
    select_unread,
    shape_error,
)
from dragoman.errors import DragomanError
from dragoman.event import PartDelta
from dragoman.fold import parse_call
from dragoman.json_bytes import Json, JsonEnd
from dragoman.message import (
    Content,
    FinishReason,
    Native,
    Origin,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from dragoman.wires.chat.content import (
    get_detail_text_field,
    load_block,
    load_detail,
    make_thinking_part,
)
from dragoman.wires.chat.record import DialectRecord
from dragoman.wires.chat.tools import read_call_type
from dragoman.wires.chat.usage import dump_finish, load_finish

__all__ = ["ChatCandidate", "StreamedCalls"]

_EMPTY = ToolCallPart("", "")
_MERGED_DETAILS = ("reasoning.text", "reasoning.summary")


class StreamedCalls:
    """Collects the calls of one message. Their arguments are parsed when the answer is complete."""

    def __init__(self, chat: DialectRecord, emitter: Emitter, fresh_id: Callable[[], str]) -> None:
        """Starts without tool calls of a streamed Chat answer."""
        self._chat = chat
        self._emitter = emitter
        self._fresh_id = fresh_id
        self._all: list[OpenPart] = []
        self._by_index: dict[Any, OpenPart] = {}
        self._by_id: dict[str, OpenPart] = {}
        self._ends: dict[int, JsonEnd] = {}

    def add(self, entry: Json, *, whole: bool = False, form: dict[str, str] | None = None) -> None:
        """Adds a call of a Chat stream, or a piece of one. `whole`: the call comes from a whole
        answer, so nothing of it follows. `form`: the call's wire form.

        Raises:
            DecodeError: it continues a call that has not begun.
        """
        chat = self._chat
        call_type = read_call_type(chat, entry)
        body = as_object(entry.get(call_type), "tool call")
        name, call_id = as_text(body.get("name")), as_text(entry.get("id"))
        index = as_index(entry.get("index"))
        if call_id in chat.no_ids:
            call_id = ""
        text = as_text(body.get(chat.inputs[call_type]))
        part = None if whole else self._find_open_call(index, call_id, name, text)
        if part is None:
            if not name and (chat.calls_have_names or not call_id):
                raise shape_error(entry, "a piece of a tool call that has not begun")
            if not form:
                form = {"type": call_type} if call_type != "function" else {}
            part = self._begin_call(index, call_id, name, form)
        call = _call(part)
        if name and name != call.name:
            part.part = replace(call, name=name)
        if further := drop_empty(read_extra_fields(entry, "index", "id", "type", *chat.inputs)):
            chat.own.open_fields(part.native).update(further)
        self._emitter.add(part, text if call_type == "function" else _escape(text))

    def add_arguments(self, index: int, text: str) -> bool:
        """Adds arguments to the Chat call that began with this index. False if there is none."""
        part = self._by_index.get(index)
        if part is None:
            return False
        # The first piece has started the call, so the event is written here without `Emitter.add`.
        if text:
            part.deltas.append(text)
            self._emitter.events.append(PartDelta(self._emitter.message_id, part.index, text))
        return True

    def close_answered_call(self, call_id: str) -> ToolCallPart | None:
        """Closes a Chat call that the provider ran itself, and returns it. None if there is no such
        call."""
        part = self._by_id.pop(call_id, None)
        if part is None:
            return None
        part.part = replace(_call(part), run_by="provider")
        self._all.remove(part)
        closed = self._emitter.close(part)
        if isinstance(closed, ToolCallPart):
            return closed
        return None

    def close(self, *, at_limit: bool) -> None:
        """Closes all calls of a Chat stream, which is complete. `at_limit`: a token limit ended it,
        so that a call that does not parse counts as cut."""
        for part in self._all:
            is_text = self._is_text(part)
            cut = False
            if at_limit:
                text = "".join(map(str, part.deltas))
                # Arguments that parse are whole, although a limit ended the answer.
                cut = not text or (not is_text and parse_call(_EMPTY, text).state != "complete")
            if is_text and not cut:
                self._emitter.add(part, '"}')
            self._emitter.close(part, cut=cut)

    def _find_open_call(self, index: Any, call_id: str, name: str, text: str) -> OpenPart | None:
        """Returns the Chat call that a piece continues. None if it begins one, or continues
        none."""
        same_id = self._by_id.get(call_id)
        part = self._by_index.get(index) if index is not None else None
        if part is None:
            # Some vendors give later pieces no index. An index with a name begins a new call.
            begins = index is not None and name
            return None if begins else same_id
        call = _call(part)
        if call_id == call.id:
            return part
        if call_id:
            return same_id or (None if name else part)
        if not name or not call.name:
            return part
        # No id, and a name again: some vendors repeat the name in every piece, others send all calls
        # under one index.
        if name != call.name or (text and self._has_all_arguments(part)):
            return None
        return part

    def _has_all_arguments(self, part: OpenPart) -> bool:
        """True if all arguments of a Chat call have come."""
        if part.deltas == ["null"]:
            return True
        return self._ends.setdefault(part.index, JsonEnd()).is_among(part.deltas)

    def _begin_call(self, index: Any, call_id: str, name: str, form: dict[str, str]) -> OpenPart:
        """Begins a tool call of a streamed Chat answer."""
        native = self._chat.own.note({} if call_id else {"id": None}, form)
        call = ToolCallPart(call_id or self._fresh_id(), name, native=native)
        part = self._emitter.ensure_part(len(self._all), call)
        self._all.append(part)
        self._by_index[len(self._all) if index is None else index] = part
        if call_id:
            self._by_id[call_id] = part
        if self._is_text(part):
            # A text becomes the argument `input`, so its pieces are written inside a JSON string.
            self._emitter.add(part, '{"input":"')
        return part

    def _is_text(self, part: OpenPart) -> bool:
        """True if the call's input is a text instead of JSON."""
        return self._chat.own.form(_call(part).native).get("type") in self._chat.inputs


def _call(part: OpenPart) -> ToolCallPart:
    if isinstance(part.part, ToolCallPart):
        return part.part
    return _EMPTY


def _escape(text: str) -> str:
    """Returns text as it stands inside a JSON string."""
    return json_bytes.encode(text).decode()[1:-1]


@lru_cache
def _thinking_fields(
    read: frozenset[str], thinking: Sequence[str], details: str, calls: str
) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the fields of a Chat message that hold thinking, and all fields that are read."""
    thoughts = frozenset({*thinking, details})
    return thoughts, read | thoughts | {calls}


class ChatCandidate:
    """Turns the choices of one index into the events of one message."""

    READ: ClassVar[frozenset[str]] = frozenset({"role", "content"})
    """Fields of a message that are read, beside its thinking and calls. The others are noted, and
    never sent back."""
    CHOICE_READ: ClassVar[frozenset[str]] = frozenset(
        {"index", "delta", "message", "finish_reason", "logprobs"}
    )
    """Fields of a choice that are read. The others are kept in the message's `response`."""

    def __init__(self, chat: DialectRecord, emitter: Emitter, fresh_id: Callable[[], str]) -> None:
        """Creates the reader of one candidate of a Chat stream. `fresh_id` makes ids for calls that
        come without one."""
        self.emitter = emitter
        self.message_id = emitter.message_id
        self.open_part: OpenPart | None = None
        """The text or thinking that the next delta may add to."""
        self.open_key = ""
        """Identifies what `open_part` is: `text`, the fields of the thinking, a detail's type and
        index, or a key of the wire's own."""
        self.vendor_reason: str | None = None
        """The vendor's finish reason, or None until the answer stops."""
        self.calls = StreamedCalls(chat, emitter, fresh_id)
        self.chat = chat
        self.refused = False
        """True if the model refused to answer."""
        self.fields: Json = {}
        """The message's own fields, which are sent back with it."""
        self.response: Json = {}
        """What stands around the message in its choice."""
        self._beside: Json = {}
        self._thoughts, self._read = _thinking_fields(
            self.READ, chat.thinking, chat.details, chat.calls
        )

    def add(self, choice: Json, *, whole: bool) -> None:
        """Adds one choice of a Chat chunk, or of a `whole` answer, which holds everything at once.

        Raises:
            DecodeError: it is not what a choice should be, or continues a call that has not begun.
        """
        self.emitter.start()
        whole = (whole or "delta" not in choice) and "message" in choice
        message = choice.get("message" if whole else "delta")
        self.add_message(as_object(message, "message"), whole=whole)
        self.note(choice)

    def add_message(self, message: Json, *, whole: bool) -> None:
        """Adds a piece of the Chat message, or all of it."""
        message = {field: value for field, value in message.items() if value is not None}
        if not self._thoughts.isdisjoint(message):
            self._add_thinking(message, whole=whole)
        if (content := message.get("content", "")) != "":
            self.add_content(content, whole=whole)
        self.add_vendor_fields(message)
        if (calls := message.get(self.chat.calls)) is not None:
            for call in as_list(calls, "tool calls"):
                self.end()
                self.calls.add(as_object(call, "tool call"), whole=whole)
        if not self._read.issuperset(message):
            self._beside.update(select_unread(message, self._read))

    def add_content(self, content: Any, *, whole: bool) -> None:  # noqa: ARG002 for those whose blocks come in pieces
        """Adds the content of a Chat answer: text, or blocks."""
        if not isinstance(content, list):
            self.add_text("text", as_text(content))
            return
        for entry in as_list(content, "content"):
            block = as_object(entry, "content block")
            if block.get("type") == "text":
                self.add_text("text", as_text(block.get("text")))
            else:
                self.end()
                self.emitter.add_whole_part(load_block(self.chat, block))

    def add_vendor_fields(self, message: Json) -> None:
        """Adds what a wire holds in fields of its own, between content and calls."""

    def add_text(self, part_key: str, delta: str, part: Content | None = None) -> None:
        """Adds a delta to a text, or to thinking. `part_key` says to which; if another part is
        open, that one ends, and `part` begins (None: a text)."""
        if delta:
            open_part = self.open_part if part_key == self.open_key else None
            self.emitter.add(open_part or self.begin(part_key, part), delta)

    def begin(self, part_key: str, part: Content | None) -> OpenPart:
        """Ends the open part of a streamed Chat Completions message and begins `part`. None begins
        a text."""
        self.end()
        self.open_part, self.open_key = self.emitter.ensure_part(part_key, part), part_key
        return self.open_part

    def end(self) -> None:
        """Ends the open part of a streamed Chat Completions message, if there is one."""
        if self.open_part is not None:
            self.emitter.close(self.open_part)
        self.open_part, self.open_key = None, ""

    def think(self, fields: Sequence[str], delta: str) -> None:
        """Adds thinking that came as plain text in these fields."""
        self.add_text("+".join(fields), delta, make_thinking_part(self.chat, fields))

    def finish(self, usage: Usage | None, origin: Origin | None, response: Json) -> None:
        """Finishes the Chat message, whose answer is complete. `response`: what stood around its
        choices."""
        chat, vendor_reason = self.chat, self.vendor_reason
        self.emitter.start()
        self.calls.close(at_limit=chat.finish.get(vendor_reason or "") is FinishReason.length)
        has_calls = bool(self.emitter.calls())
        reason = load_finish(chat, vendor_reason, calls=has_calls, refused=self.refused)
        usual = dump_finish(chat, reason) == vendor_reason
        native = self._message_native(response, {} if usual else {"finish_reason": vendor_reason})
        self.emitter.finish(reason, usage, origin=origin, native=native)

    def fail(
        self,
        error: DragomanError,
        usage: Usage | None,
        origin: Origin | None,
        response: Json,
    ) -> None:
        """Ends the Chat message with an error, which carries what came before it."""
        self.emitter.fail(error, usage, origin=origin, native=self._message_native(response))

    def note(self, choice: Json) -> None:
        """Notes what in a Chat Completions chunk is not content: the finish reason, log
        probabilities, the vendor's own fields."""
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self.vendor_reason = reason
        logprobs = choice.get("logprobs")
        if logprobs is not None and (logprobs := drop_empty(as_object(logprobs, "logprobs"))):
            merge_pieces(self.response.setdefault("logprobs", {}), logprobs)
        if not self.CHOICE_READ.issuperset(choice):
            self.response.update(select_unread(choice, self.CHOICE_READ))

    def _message_native(self, response: Json, finish: Json = {}) -> Native:
        """Returns the Chat message's own fields, and notes of what stood beside its content and
        around it."""
        envelope = drop_empty({**response, **self.response, **finish})
        return self.chat.own.note(self.fields, message=self._beside, response=envelope)

    def _add_thinking(self, message: Json, *, whole: bool) -> None:
        """Adds the thinking of a message. Fields that hold the same text become one part."""
        chat = self.chat
        entries = as_list(message.get(chat.details), "reasoning details") if chat.details else []
        details = [as_object(entry, "reasoning detail") for entry in entries]
        text = "".join(
            [as_text(entry.get(get_detail_text_field(entry.get("type")))) for entry in details]
        )
        again = [field for field in chat.thinking if text and message.get(field) == text]
        for entry in details:
            self._think_detail(entry, again, whole=whole)
        # The pieces of a stream are not cut alike in all fields, so beside details other fields count
        # in a whole answer only.
        if text and not whole:
            return
        fields_by_text: dict[str, list[str]] = {}
        for field in chat.thinking:
            if field not in again:
                fields_by_text.setdefault(as_text(message.get(field)), []).append(field)
        for thought, fields in fields_by_text.items():
            if thought:
                self.think(fields, thought)

    def _think_detail(self, entry: Json, again: list[str], *, whole: bool) -> None:
        """Adds one detail of thinking of a Chat stream. Texts and summaries come in pieces, all
        others are whole. `again`: the fields that repeat its text."""
        chat, detail_type = self.chat, entry.get("type")
        if detail_type not in _MERGED_DETAILS:
            self.end()
            self.emitter.add_whole_part(load_detail(chat, entry))
            return
        key = get_detail_text_field(detail_type)
        text, fields = as_text(entry.get(key)), read_extra_fields(entry, key)
        part_key = f"{detail_type} {entry.get('index')} {entry.get('id') or ''}".strip()
        part = self.open_part if part_key == self.open_key and not whole else None
        if part is None:
            note = {"again": again} if again else None
            part = self.begin(part_key, ThinkingPart(native=chat.own.note(fields, note)))
        chat.own.open_fields(part.native).update(drop_empty(fields))
        self.emitter.add(part, text)
