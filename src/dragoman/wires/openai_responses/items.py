"""Reads and writes the items of a conversation, and says whose message an item belongs to.

Reading: `load_item` turns an item of the model's into pieces. Writing: `dump_items` writes one
message as items, by a `_Writer`. An item goes back under its id only if the provider still holds it
or it can be understood without (`_may_keep`). What the wire or its target cannot hold is noted as a
loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import has_error, if_object, read_extra_fields
from dragoman.codec.media import describe_as_text, media_label, read_media_text
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.signature_check import name_part_type
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Native,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.openai_responses.content import (
    Block,
    dump_block,
    dump_content,
    dump_reasoning,
    find_loss,
    is_block,
    is_self_contained,
    load_content,
    load_reasoning,
)
from dragoman.wires.openai_responses.quirks import OWN, Quirks
from dragoman.wires.openai_responses.tools import (
    APPROVAL,
    CALL_ITEMS,
    FUNCTION,
    dump_call,
    is_call_item,
    load_call,
    write_result,
)
from dragoman.wires.openai_responses.tools_results import (
    RESULT_ITEMS,
    dump_provider_result,
    dump_result,
    load_provider_result,
    read_result_type,
)

__all__ = [
    "ABSENT",
    "ROLES",
    "Calls",
    "OutgoingItems",
    "FROM_CLIENT",
    "read_item_start",
    "dump_items",
    "load_item",
    "choose_role",
]

ABSENT = "absent"
"""Wire form of a field that was missing."""
Calls = dict[str, ToolCallPart]
"""Id of each call so far → the call."""
ROLES = {
    "user": Role.USER,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "assistant": Role.MODEL,
}
_WITH_STATUS = ("apply_patch_call_output", "shell_call_output")
"""Types of answers that tell whether the tool failed."""
FROM_CLIENT = ("mcp_approval_response", "compaction_trigger", "configuration_update")
"""Types of items without a role that come from the client, beside answers."""
_TWICE = "it stands in the request already"
_FORGOTTEN = "the provider does not hold it any more, or never did"


class OutgoingItems(Outgoing[Quirks], frozen=True, kw_only=True, gc=False):
    """A conversation that is being written."""

    calls: Sequence[tuple[int, ToolCallPart]]
    """The calls that the provider did not run, each with the position of its message."""
    kinds: dict[str, str]
    """Id of a call → the type of its item; empty: it is not sent. Foreign calls are functions."""
    foreign: set[str]
    """Ids of the calls of another origin."""
    holds: bool
    """True if the provider holds the items of earlier responses, so that their ids mean something
    to it."""
    taken: set[str]
    """Ids of the items that are in the request already. None may be there twice."""
    spent: set[str]
    """Ids of the calls that were approved and that the model has gone on from since."""


def choose_role(item: JsonMap, calls: Calls) -> Role:
    """Returns the role of the message that a Responses item of a request belongs to."""
    if "role" in item:
        return ROLES.get(str(item["role"]), Role.USER)
    item_type = item.get("type")
    if item_type in RESULT_ITEMS:
        call = calls.get(str(item.get("call_id")))
        by_provider = call is not None and call.run_by == "provider"
        is_hosted = by_provider or item.get("execution") == "server"
        if is_hosted:
            return Role.MODEL
        return Role.USER
    if item_type in FROM_CLIENT:
        return Role.USER
    return Role.MODEL


def load_item(
    item: JsonMap,
    calls: Calls,
    unsent: JsonMap | None = None,
    *,
    images: int = 0,
) -> list[Content]:
    """Reads a Responses item of the model's. A call is added to `calls`.

    `unsent`: fields that a response has and no request may have. None: the item stands in a
    request, which is kept to the letter. `images`: number of images made before.
    """
    type_ = str(item.get("type", "message"))
    pieces: list[Content] = []
    # A client that sends an approval back may be an agent's, which knows it by the item.
    if type_ in CALL_ITEMS and (type_ != APPROVAL or unsent is not None):
        pieces = load_call(item, unsent, images=images)
        calls.update({piece.id: piece for piece in pieces if isinstance(piece, ToolCallPart)})
    elif type_ == "reasoning":
        pieces = [load_reasoning(item, unsent or {})]
    elif type_ in RESULT_ITEMS:
        pieces = [load_provider_result(item, calls, unsent or {})]
    elif item.get("role") == "assistant":
        pieces = _load_message(item, from_response=unsent is not None)
    return pieces or [ProviderPart(type_, OWN.note(item, mark=True, response=unsent))]


def _load_message(item: JsonMap, *, from_response: bool) -> list[Content]:
    """Reads a message item of the model's. The first piece holds the Responses item's fields.
    Returns an empty list if the item has no text."""
    fields, full = read_extra_fields(item, "role", "content"), "id" in item
    pieces, form = load_content(
        item.get("content"), "output_text", full=full, from_response=from_response
    )
    if not any(isinstance(piece, TextPart) for piece in pieces):
        return []
    first = pieces[0]
    if form:
        first = msgspec.structs.replace(first, native=OWN.with_form(first.native, **form))
    return [
        msgspec.structs.replace(first, native=OWN.with_notes(first.native, item=fields)),
        *pieces[1:],
    ]


def read_item_start(native: Native) -> JsonMap | None:
    """Returns the fields of the Responses message item that begins with this piece, or None if none
    begins."""
    notes = OWN.notes(native)
    if "item" in notes:
        return if_object(notes["item"])
    return None


def dump_items(out: OutgoingItems, position: int) -> list[Json]:
    """Writes one message as Responses items, in order."""
    return _Writer(out, position).items()


class _Writer:
    """Writes one message of a conversation."""

    def __init__(self, out: OutgoingItems, position: int) -> None:
        """Creates the writer of one message as Responses items."""
        self._out = out
        self._position = position
        self._message = out.messages[position]
        self._model = self._message.role is Role.MODEL
        self._usual = "output_text" if self._model else "input_text"
        self._unreadable = out.unreadable[position]
        thinking = [piece for piece in self._message.content if isinstance(piece, ThinkingPart)]
        alone = out.quirks.plain_thinking or (
            bool(thinking) and all(map(is_self_contained, thinking))
        )
        self._keeps = self._unreadable is None and (out.target is None or out.holds or alone)
        """True if items may go back under their ids."""
        self._items: list[Json] = []
        # The message item whose content goes on, and the form of that content.
        self._open: Json | None = None
        self._form: Any = None
        self._begun = len(out.losses)
        # Fields of texts that are message items of their own.
        self._apart: Json | None = None

    def items(self) -> list[Json]:
        """Returns the Responses items, in the message's order."""
        content = self._message.content
        for index, piece in enumerate(content):
            if isinstance(piece, (TextPart, DataPart, LinkPart, FilePart)) or is_block(piece):
                self._write(piece, index)
            elif (item := self._item(piece, index)) is not None:
                self._end()
                self._apart = None
                self._items.append(item)
        if not content and "content" in (form := OWN.form(self._message.native)):
            empty = {} if form["content"] == ABSENT else {"content": form["content"]}
            self._items.append({**OWN.fields(self._message.native), "role": self._role(), **empty})
        self._end()
        if not self._items and len(self._out.losses) == self._begun:
            self._lose(None, Lost.message, "it is empty")
        return self._items

    def _write(self, piece: Content, index: int) -> None:
        """Adds a piece to a Responses message item."""
        if isinstance(piece, DataPart) and self._write_into_call(piece):
            return
        begun = read_item_start(piece.native)
        if not self._model:
            if self._open is None:
                self._form = OWN.form(self._message.native).get("content")
                self._begin({**OWN.fields(self._message.native), "role": self._role()})
        elif begun is not None or (self._open is None and self._apart is None):
            self._begin_message(begun, OWN.form(piece.native).get("content"))
        if self._open is not None:
            self._write_block(self._open, piece, index)
        else:
            self._write_text(piece, index)

    def _write_block(self, message: Json, piece: Content, index: int) -> None:
        """Adds the Responses block of a piece to the message item that is open."""
        block = self._block(cast("Block", piece), index)
        is_answer = "id" in message and block.get("type") == "output_text"
        # The API demands the field in a message that has its id, unless it came without.
        if is_answer and self._form != "string" and "annotations" not in OWN.form(piece.native):
            block.setdefault("annotations", [])
        message["content"].append(block)

    def _write_text(self, piece: Content, index: int) -> None:
        """Adds the text of a piece as a Responses message item of its own, if it can be sent as a
        text."""
        text = self._text(piece, index)
        if text is None:
            return
        listed = self._out.quirks.listed
        content = [{"type": "output_text", "text": text}] if listed else text
        item: Json = {"type": "message"} if listed else {}
        item |= {**(self._apart or {}), "role": "assistant", "content": content}
        self._items.append(item)

    def _write_into_call(self, piece: DataPart) -> bool:
        """Writes a file into the Responses item of the call of the provider's tool that made it.
        False if none made it, or that call is not sent."""
        call_id = OWN.form(piece.native).get("call")
        if call_id is None:
            return False
        for item in reversed(self._items):
            if is_call_item(item, call_id):
                write_result(item, piece)
                return True
        return False

    def _begin_message(self, begun: JsonMap | None, form: Any) -> None:
        """Begins a message of the model's: a Responses item as it came if that can go back,
        otherwise an item for each text."""
        self._end()
        fields = dict(begun or {}) if self._unreadable is None else {}
        may_keep = self._may_keep(fields)
        if (
            begun is not None
            and self._unreadable is None
            and (self._out.target is None or (may_keep and "id" in fields))
        ):
            self._form = form
            self._begin({**fields, "role": "assistant"})
        else:
            self._apart = read_extra_fields(fields, "id", "status", "type")

    def _begin(self, item: Json) -> None:
        self._apart = None
        self._open = {**item, "content": []}
        self._items.append(self._open)

    def _end(self) -> None:
        """Ends the open Responses message item. A single text becomes a string, unless its form
        says otherwise."""
        item, self._open = self._open, None
        if item is not None:
            item["content"] = dump_content(
                item["content"], self._form, full="id" in item and self._model
            )

    def _text(self, piece: Content, index: int) -> str | None:
        """Returns the text for a Responses item of a model's piece that cannot go back as it came.
        None if nothing can."""
        if isinstance(piece, TextPart):
            if piece.citations:
                self._lose(index, Lost.field, "the API takes its own alone", "citations")
            return piece.text
        if isinstance(piece, ProviderPart):
            self._lose(
                index,
                Lost.provider,
                self._unreadable or _FORGOTTEN,
                f"a block of the provider's, {piece.kind}",
            )
            return None
        media = cast("DataPart | LinkPart | FilePart", piece)
        if read_media_text(media) is None:
            self._lose(
                index,
                name_part_type(media),
                "the API takes no media from the model; a text names it",
                media_label(media),
            )
        return describe_as_text(media)

    def _role(self) -> str:
        """Returns the role of a Responses input item: user, system or developer."""
        if self._message.role is not Role.SYSTEM:
            return "user"
        role = OWN.form(self._message.native).get("role")
        if role == "developer" and self._out.quirks.developer:
            return "developer"
        return "system"

    def _may_keep(self, fields: JsonMap) -> bool:
        """True if a Responses item may go under its id. It then counts as sent."""
        id_ = fields.get("id")
        if id_ is None or (self._keeps and self._out.target is None):
            return True
        if not self._keeps or not isinstance(id_, str) or id_ in self._out.taken:
            return False
        # The API refuses a request that holds an id twice.
        self._out.taken.add(id_)
        return True

    def _item(self, piece: Content, index: int) -> Json | None:
        """Writes a piece that is a Responses item of its own, or goes into one."""
        if isinstance(piece, ThinkingPart):
            return self._thinking(piece, index)
        if isinstance(piece, ToolCallPart):
            return self._call(piece, index)
        if isinstance(piece, ToolResultPart):
            return self._result(piece, index)
        return self._signed(
            piece,
            OWN.fields(piece.native),
            index,
            f"an item of the provider's, {cast(Any, piece).kind}",
        )

    def _thinking(self, part: ThinkingPart, index: int) -> Json | None:
        """Writes thinking as a Responses reasoning item: under its id if that may stay, or without
        it if its content is enough."""
        out = self._out
        item = dump_reasoning(part)
        readable = is_self_contained(part) or (out.quirks.plain_thinking and part.text != "")
        why = self._explain_unreadable(item, readable=readable)
        if why is None and not self._may_keep(item):
            why = None if readable else _TWICE
            item = read_extra_fields(item, "id")
        if why is not None:
            self._lose(index, Lost.thinking, why)
            return None
        return item

    def _explain_unreadable(self, item: JsonMap, *, readable: bool) -> str | None:
        """Returns why the target cannot read a reasoning item, or None if it can. `readable`: the
        Responses item says what it holds without its id."""
        if self._unreadable is not None or self._out.target is None or readable:
            return self._unreadable
        # The id alone means something only to a provider that still holds the item.
        if self._out.holds and "id" in item:
            return None
        return _FORGOTTEN

    def _call(self, call: ToolCallPart, index: int) -> Json | None:
        """Returns the Responses item of a call, or None with a loss if only the model may have
        calls."""
        if call.run_by == "provider":
            item = dump_call(call, call.id, call.name) if OWN.is_ours(call.native) else {}
            return self._signed(call, item, index, f"a call of {call.name}, which the provider ran")
        if not self._model:
            self._lose(index, Lost.tool_call, "the API takes calls from the model alone")
            return None
        if self._out.kinds.get(call.id) == APPROVAL:
            return self._approval(call, index)
        fields = OWN.fields(call.native) if self._unreadable is None else {}
        if not self._may_keep(fields):
            # Without its id the call goes as a new item.
            fields = read_extra_fields(fields, "id", "status")
        sent = msgspec.structs.replace(call, native=OWN.note(fields, form=OWN.form(call.native)))
        item = dump_call(sent, self._out.id(self._position, index, call), self._out.name(call.name))
        self._out.lose_unfinished(self._position, index, call, item.get("arguments"))
        return item

    def _approval(self, call: ToolCallPart, index: int) -> Json | None:
        """Writes the Responses item that asks for an approval. One that was given is left out where
        what came of it cannot go along: the provider would run the call again."""
        if self._may_keep({"id": call.id}) or not (self._keeps or call.id in self._out.spent):
            return dump_call(call, call.id, call.name)
        self._out.kinds[call.id] = ""
        why = _TWICE if self._keeps else _FORGOTTEN
        self._lose(index, Lost.tool_call, why, f"the approval of {call.name}")
        return None

    def _result(self, part: ToolResultPart, index: int) -> Json | None:
        """Writes the Responses item of a result. A result of the provider's may go into the item of
        its call."""
        if part.run_by == "provider":
            return self._provider_result(part, index)
        if self._model:
            self._lose(index, Lost.tool_result, "the API takes results from the user alone")
            return None
        out = self._out
        sent = part
        if part.id in out.foreign:
            sent = msgspec.structs.replace(part, native=None)
        sent_id = out.id(self._position, index, part)
        item_type = out.kinds.get(part.id, FUNCTION)
        if not item_type:
            self._lose(index, Lost.tool_result, "its call is not sent")
            return None
        item = dump_result(sent, sent_id, item_type)
        if item_type == APPROVAL:
            return item
        # Written again for the losses alone.
        for piece in part.result if part.is_content else ():
            self._block(piece, index)
        if part.is_error and item["type"] not in _WITH_STATUS and not has_error(part.result):
            self._lose(index, Lost.is_error, "the API has no mark for a failed tool")
        return item

    def _provider_result(self, part: ToolResultPart, index: int) -> Json | None:
        """Writes the result of a tool that the provider ran: as a Responses item, or into that of
        its call."""
        which = f"a result of {part.name}, which the provider ran"
        if read_result_type(part) is not None:
            return self._signed(part, dump_provider_result(part), index, which)
        for item in reversed(self._items):
            if is_call_item(item, part.id):
                write_result(item, part)
                return None
        self._lose(index, Lost.tool_result, self._unreadable or "its call is not sent", which)
        return None

    def _block(self, piece: Block, index: int) -> Json:
        """Writes the content block of a piece. Notes what the Responses block leaves out."""
        block = dump_block(piece, self._usual)
        if (lost := find_loss(piece, block)) is not None:
            self._lose(index, *lost)
        return block

    def _signed(self, piece: Content, item: Json, index: int, which: str) -> Json | None:
        """Returns a Responses item that may go back to its own origin only, or notes it as lost.
        `which`: what is lost."""
        why = self._unreadable
        if not why and not OWN.is_ours(piece.native):
            why = "it is another provider's"
        if why is None and self._model and not self._may_keep(item):
            why = _TWICE if self._keeps else _FORGOTTEN
        if why is not None:
            self._lose(index, name_part_type(piece), why, which)
            return None
        return item

    def _lose(self, index: int | None, what: Lost, why: str, which: str = "") -> None:
        self._out.lose(self._position, index, what, why, which)
