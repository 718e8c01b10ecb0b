"""One candidate of an answer: what its deltas add up to. Text, thinking, calls, each a part in its
place.

A call comes whole or in pieces (`StreamedCalls`): a piece belongs to the call that its index names,
or else its id. Text and thinking are one open part at a time (`Candidate.run`); another kind than
before ends it and begins the next.
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
    """The calls of one message. Their arguments are parsed when the answer is complete."""

    def __init__(self, chat: DialectRecord, emitter: Emitter, fresh_id: Callable[[], str]) -> None:
        self._chat = chat
        self._emitter = emitter
        self._fresh_id = fresh_id
        self._all: list[OpenPart] = []
        self._by_index: dict[Any, OpenPart] = {}
        self._by_id: dict[str, OpenPart] = {}
        self._ends: dict[int, JsonEnd] = {}

    def add(self, entry: Json, *, whole: bool = False, form: dict[str, str] | None = None) -> None:
        """A call, or a piece of one. `whole`: a call of a whole answer, which is all there; `form`:
        its wire form.

        Raises:
            DecodeError: it continues a call that nobody began.
        """
        call_type = read_call_type(self._chat, entry)
        body = as_object(entry.get(call_type), "tool call")
        name, call_id, index = (
            as_text(body.get("name")),
            as_text(entry.get("id")),
            as_index(entry.get("index")),
        )
        call_id = "" if call_id in self._chat.no_ids else call_id
        text = as_text(body.get(self._chat.inputs[call_type]))
        part = None if whole else self._find(index, call_id, name, text)
        if part is None:
            if not name and (self._chat.calls_have_names or not call_id):
                raise shape_error(entry, "a piece of a tool call that nobody began")
            part = self._begin(
                index,
                call_id,
                name,
                form or ({"type": call_type} if call_type != "function" else {}),
            )
        call = _call(part)
        if name and name != call.name:
            part.part = replace(call, name=name)
        if further := drop_empty(
            read_extra_fields(entry, "index", "id", "type", *self._chat.inputs)
        ):
            self._chat.own.open_fields(part.native).update(further)
        self._emitter.add(part, text if call_type == "function" else _escape(text))

    def more(self, index: int, text: str) -> bool:
        """More arguments of the call that began with this index; `False`: none did."""
        part = self._by_index.get(index)
        if part is None:
            return False
        # a call is started with its first piece
        if text:
            part.deltas.append(text)
            self._emitter.events.append(PartDelta(self._emitter.message_id, part.index, text))
        return True

    def close_answered_call(self, call_id: str) -> ToolCallPart | None:
        """The provider ran the tool itself: closes its call, and returns it; `None` where there is
        no such call."""
        part = self._by_id.pop(call_id, None)
        if part is None:
            return None
        part.part = replace(_call(part), run_by="provider")
        self._all.remove(part)
        closed = self._emitter.close(part)
        return closed if isinstance(closed, ToolCallPart) else None

    def close(self, *, at_limit: bool) -> None:
        """The answer is complete. `at_limit`: a token limit ended it, so a call that does not parse
        is cut."""
        for part in self._all:
            is_text = self._is_text(part)
            text = "".join(map(str, part.deltas)) if at_limit else ""
            # Arguments that parse are whole, although a limit ended the answer.
            cut = at_limit and (
                not text or (not is_text and parse_call(_EMPTY, text).state != "complete")
            )
            if is_text and not cut:
                self._emitter.add(part, '"}')
            self._emitter.close(part, cut=cut)

    def _find(self, index: Any, call_id: str, name: str, text: str) -> OpenPart | None:
        """The call that a piece continues; `None` where it begins one, or continues none."""
        same_id = self._by_id.get(call_id)
        part = self._by_index.get(index) if index is not None else None
        if part is None:
            return same_id if index is None or not name else None
        call = _call(part)
        if call_id == call.id:
            return part
        if call_id:
            return same_id or (None if name else part)
        if not name or not call.name:
            return part
        # no id, and a name again: some repeat it with every piece, some send all calls under one
        # index
        return None if name != call.name or (text and self._has_all_arguments(part)) else part

    def _has_all_arguments(self, part: OpenPart) -> bool:
        """Whether the arguments of a call have all come."""
        return part.deltas == ["null"] or self._ends.setdefault(part.index, JsonEnd()).is_among(
            part.deltas
        )

    def _begin(self, index: Any, call_id: str, name: str, form: dict[str, str]) -> OpenPart:
        native = self._chat.own.note({} if call_id else {"id": None}, form)
        part = self._emitter.ensure_part(
            len(self._all), ToolCallPart(call_id or self._fresh_id(), name, native=native)
        )
        self._all.append(part)
        self._by_index[len(self._all) if index is None else index] = part
        if call_id:
            self._by_id[call_id] = part
        if self._is_text(part):
            self._emitter.add(part, '{"input":"')
        return part

    def _is_text(self, part: OpenPart) -> bool:
        """Whether its input is a text, and no JSON."""
        return self._chat.own.form(_call(part).native).get("type") in self._chat.inputs


def _call(part: OpenPart) -> ToolCallPart:
    return part.part if isinstance(part.part, ToolCallPart) else _EMPTY


def _escape(text: str) -> str:
    """Text as it stands inside a JSON string."""
    return json_bytes.encode(text).decode()[1:-1]


@lru_cache
def _fields(
    read: frozenset[str], thinking: Sequence[str], details: str, calls: str
) -> tuple[frozenset[str], frozenset[str]]:
    """The fields of a message that hold thinking, and all that are read."""
    thoughts = frozenset({*thinking, details})
    return thoughts, read | thoughts | {calls}


class ChatCandidate:
    """Turns the choices of one index into the events of one message."""

    READ: ClassVar[frozenset[str]] = frozenset({"role", "content"})
    """Fields of a message that are read, beside its thinking and calls; the others are noted, and
    never sent back."""
    CHOICE_READ: ClassVar[frozenset[str]] = frozenset(
        {"index", "delta", "message", "finish_reason", "logprobs"}
    )
    """Fields of a choice that are read; the others stand in the message's `response`."""

    def __init__(self, chat: DialectRecord, emitter: Emitter, fresh_id: Callable[[], str]) -> None:
        """`fresh_id`: makes ids of calls that come without one."""
        self.emitter = emitter
        self.message_id = emitter.message_id
        self.open_part: OpenPart | None = None
        """The text or thinking that is open."""
        self.open_key = ""
        """What `run` is: `text`, the fields of the thinking, a detail's type and index, or a wire's
        own."""
        self.vendor_reason: str | None = None
        """The vendor's word for why it stopped; `None`: it has not stopped yet."""
        self.calls = StreamedCalls(chat, emitter, fresh_id)
        self.chat = chat
        self.refused = False
        """Whether the model refused to answer."""
        self.fields: Json = {}
        """Of the message, to go back with it."""
        self.response: Json = {}
        """What stands around the message."""
        self._beside: Json = {}
        self._thoughts, self._read = _fields(self.READ, chat.thinking, chat.details, chat.calls)

    def add(self, choice: Json, *, whole: bool) -> None:
        """One choice of a chunk, or of a `whole` answer (which holds all that it holds in one
        step).

        Raises:
            DecodeError: it is not what a choice should be, or continues a call that nobody began.
        """
        self.emitter.start()
        whole = (whole or "delta" not in choice) and "message" in choice
        self.add_message(
            as_object(choice.get("message" if whole else "delta"), "message"), whole=whole
        )
        self.note(choice)

    def add_message(self, message: Json, *, whole: bool) -> None:
        """More of the message, or all of it."""
        message = {field: value for field, value in message.items() if value is not None}
        if not self._thoughts.isdisjoint(message):
            self._think(message, whole=whole)
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
        """More of the content: text, or blocks."""
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
        """What a wire has in fields of its own, between content and calls."""

    def add_text(self, part_key: str, delta: str, part: Content | None = None) -> None:
        """More of a text, or of thinking. Another kind than before begins another part."""
        if delta:
            run = self.open_part if part_key == self.open_key else None
            self.emitter.add(run or self.begin(part_key, part), delta)

    def begin(self, part_key: str, part: Content | None) -> OpenPart:
        """Ends what is open, and begins `part` (`None`: a text)."""
        self.end()
        self.open_part, self.open_key = self.emitter.ensure_part(part_key, part), part_key
        return self.open_part

    def end(self) -> None:
        """Ends what is open."""
        if self.open_part is not None:
            self.emitter.close(self.open_part)
        self.open_part, self.open_key = None, ""

    def think(self, fields: Sequence[str], delta: str) -> None:
        """More thinking, which stood in these fields."""
        self.add_text("+".join(fields), delta, make_thinking_part(self.chat, fields))

    def finish(self, usage: Usage | None, origin: Origin | None, response: Json) -> None:
        """The answer is complete. `response`: what stood around its choices."""
        self.emitter.start()
        self.calls.close(
            at_limit=self.chat.finish.get(self.vendor_reason or "") is FinishReason.length
        )
        reason = load_finish(
            self.chat, self.vendor_reason, calls=bool(self.emitter.calls()), refused=self.refused
        )
        usual = dump_finish(self.chat, reason) == self.vendor_reason
        native = self._native(response, {} if usual else {"finish_reason": self.vendor_reason})
        self.emitter.finish(reason, usage, origin=origin, native=native)

    def fail(
        self,
        error: DragomanError,
        usage: Usage | None,
        origin: Origin | None,
        response: Json,
    ) -> None:
        """The answer ends with an error, which carries what there was of it."""
        self.emitter.fail(error, usage, origin=origin, native=self._native(response))

    def note(self, choice: Json) -> None:
        """What is no content: the reason to stop, probabilities, the vendor's own fields."""
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self.vendor_reason = reason
        logprobs = choice.get("logprobs")
        if logprobs is not None and (logprobs := drop_empty(as_object(logprobs, "logprobs"))):
            merge_pieces(self.response.setdefault("logprobs", {}), logprobs)
        if not self.CHOICE_READ.issuperset(choice):
            self.response.update(select_unread(choice, self.CHOICE_READ))

    def _native(self, response: Json, finish: Json = {}) -> Native:
        """The message's own fields; what stood beside its content, and around it."""
        envelope = drop_empty({**response, **self.response, **finish})
        return self.chat.own.note(self.fields, message=self._beside, response=envelope)

    def _think(self, message: Json, *, whole: bool) -> None:
        entries = (
            as_list(message.get(self.chat.details), "reasoning details")
            if self.chat.details
            else []
        )
        details = [as_object(one, "reasoning detail") for one in entries]
        text = "".join(
            [as_text(entry.get(get_detail_text_field(entry.get("type")))) for entry in details]
        )
        again = [field for field in self.chat.thinking if text and message.get(field) == text]
        for entry in details:
            self._think_detail(entry, again, whole=whole)
        texts: dict[str, list[str]] = {}
        for field in self.chat.thinking:
            # pieces of a stream are not cut alike in all fields
            if field not in again and (whole or not text):
                texts.setdefault(as_text(message.get(field)), []).append(field)
        for thought, fields in texts.items():
            if thought:
                self.think(fields, thought)

    def _think_detail(self, entry: Json, again: list[str], *, whole: bool) -> None:
        """One of the details. Texts and summaries come in pieces, all else is whole. `again`:
        fields that hold its text too."""
        key = get_detail_text_field(entry.get("type"))
        text, fields = as_text(entry.get(key)), read_extra_fields(entry, key)
        if entry.get("type") not in _MERGED_DETAILS:
            self.end()
            self.emitter.add_whole_part(load_detail(self.chat, entry))
            return
        part_key = f"{entry['type']} {entry.get('index')} {entry.get('id') or ''}".strip()
        run = self.open_part if part_key == self.open_key and not whole else None
        note = {"again": again} if again else None
        run = run or self.begin(part_key, ThinkingPart(native=self.chat.own.note(fields, note)))
        self.chat.own.open_fields(run.native).update(drop_empty(fields))
        self.emitter.add(run, text)
