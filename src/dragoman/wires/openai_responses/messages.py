"""Reads and writes the conversation: `{"instructions": …, "input": …}`, exactly and in order.

The items of the model's form one message until another role speaks. Answers to its calls that
follow each other form one message of the user's. `_Reader` gathers items that way. Leading system
messages without anything of their own become the instructions; all others go to the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.fit_ids import CALL_IDS, TOOL_NAMES, fit_names, list_calls, map_call_ids
from dragoman.codec.format_layout import Layout
from dragoman.codec.json_values import (
    check_depth,
    if_list,
    if_object,
    if_text,
    read_extra_fields,
    text_or_json,
)
from dragoman.codec.marks import strip_all_marks
from dragoman.codec.outgoing_conversation import prepare_outgoing
from dragoman.codec.serving import Problem
from dragoman.codec.wire_operations import ConversationFormat
from dragoman.errors import HistoryError
from dragoman.fold import arguments_json
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import (
    Content,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ToolSpec
from dragoman.wires.openai_responses.content import load_content
from dragoman.wires.openai_responses.items import (
    ABSENT,
    FROM_CLIENT,
    ROLES,
    Calls,
    OutgoingItems,
    choose_role,
    dump_items,
    load_item,
)
from dragoman.wires.openai_responses.quirks import NAME, OWN, Quirks
from dragoman.wires.openai_responses.tools import APPROVAL, CALL_ITEMS, FUNCTION, choose_item_type
from dragoman.wires.openai_responses.tools_results import RESULT_ITEMS, is_approved, load_result

__all__ = [
    "dump_conversation",
    "dump_messages",
    "load_conversation",
    "load_messages",
    "prepare_conversation",
    "votes",
    "layout",
]

layout = Layout(
    fields=("input",), beside=("instructions",), text=True, follows="previous_response_id"
)
"""Where the messages stand in the body of a request."""


def load_conversation(
    payload: Any, origin: Origin | None, problems: list[Problem] | None
) -> list[Message]:
    """Reads a Responses conversation: `{"instructions": …, "input": …}`."""
    if not isinstance(payload, Mapping):
        raise HistoryError(
            'the payload must be {"instructions": …, "input": …}, the part of a Responses request'
        )
    payload = cast("JsonMap", payload)
    out = [Message.system(text)] if (text := if_text(payload.get("instructions"))) else []
    value = payload.get("input", [])
    if isinstance(value, str):
        message = Message.user(*([value] if value else []))
        return [*out, message.replace(native=OWN.note(form={"input": "string"}))]
    if not isinstance(value, list):
        raise HistoryError('"input" must be a string or a list of items').at(field="input")
    reader = _Reader(out, origin)
    for position, item in enumerate(cast("list[Any]", value)):
        fault = _find_item_fault(item, position)
        if fault is None and problems is not None:
            fault = _find_depth_fault(item)
        if fault is None:
            reader.read(item)
        elif problems is None:
            raise HistoryError(fault[1]).at(
                field=".".join(filter(None, (f"input[{position}]", fault[0])))
            )
        else:
            problems.append(Problem(position, *fault))
    return reader.end()


def _find_item_fault(item: Any, position: int) -> tuple[str | None, str] | None:
    """Returns the field by which a value is no Responses item (None: it is no object), and what is
    wrong. None: nothing is."""
    if not isinstance(item, dict):
        return None, f'"input[{position}]" must be an object, an item of the conversation'
    item = cast("Json", item)
    for name in ("type", "role"):
        if not isinstance(item.get(name), str | None):
            return (
                name,
                f'"{name}" of "input[{position}]" must be a string, not {item[name]!r:.200}',
            )
    return None


def _find_depth_fault(item: Any) -> tuple[None, str] | None:
    """Returns what is wrong with a Responses item that nests too deep, or None."""
    try:
        check_depth(item)
    except HistoryError as error:
        return None, error.message
    return None


_ITEMS = frozenset(
    [
        *CALL_ITEMS, *RESULT_ITEMS, *FROM_CLIENT, "compaction", "item_reference", "mcp_list_tools",
    ]
)  # fmt: skip
"""Types of items that no other format has."""
_BLOCKS = frozenset(["input_text", "input_image", "input_file", "output_text"])
"""Types of content blocks that no other format has."""
_SHARED = {"text": str, "refusal": str, "input_audio": dict}
"""Types of content blocks that other formats have too → the type of the field of that name."""
_FIELDS = frozenset(["type", "role", "content", "id", "status", "phase"])
"""Fields of a message item."""


def votes(message: Any) -> int:
    """Returns how surely a Responses item is of this format: 0 impossible, 1 possible, 2 likely, 3
    almost certain."""
    item = if_object(message)
    item_type, role = item.get("type"), item.get("role")
    if not item or not isinstance(item_type, str | None) or not isinstance(role, str | None):
        return 0
    # The API refuses this field. Items of the Agents SDK have it.
    if "provider_data" in item:
        return 0
    if item_type in _ITEMS:
        return 3
    if item_type == "reasoning" and role is None:
        return _reasoning_votes(item)
    if item_type not in (None, "message") or role not in ROLES:
        return 0
    return _message_votes(item)


def _reasoning_votes(item: JsonMap) -> int:
    """Returns how surely a Responses item of the type `reasoning` is of this format."""
    if isinstance(item.get("summary"), list):
        return 3
    if "encrypted_content" in item:
        return 2
    return 0


def _message_votes(item: Json) -> int:
    """Returns how surely a message item is of the Responses format."""
    content = item.get("content")
    blocks = if_list(content)
    block_types = {if_text(if_object(block).get("type")) for block in blocks}
    if block_types & _BLOCKS:
        return 3
    if not isinstance(content, str | list) or not item.keys() <= _FIELDS:
        return 0
    if not all(map(_is_shared, blocks)):
        return 0
    if item.get("type") == "message":
        return 2
    return 1


def _is_shared(block: Any) -> bool:
    """True if a Responses block may be of this format and of others."""
    fields = if_object(block)
    block_type = if_text(fields.get("type"))
    value = fields.get(block_type)
    if not isinstance(value, _SHARED.get(block_type, ())):
        return False
    if block_type == "input_audio":
        return bool(if_object(fields[block_type]).get("data"))
    return if_text(fields[block_type]) != ""


def prepare_conversation(
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    tools: Sequence[ToolSpec] = (),
    *,
    holds: bool = True,
) -> OutgoingItems:
    """Returns a conversation that is ready to be written. `tools`: the Responses request's.
    `holds`: True if the provider was to store its answers."""
    messages, places = strip_all_marks(messages, NAME)
    quirks = quirks or Quirks()
    ids = map_call_ids(
        messages, quirks.ids, as_is=lambda piece: OWN.form(piece.native).get("id") == "as is"
    )
    calls = list_calls(messages, ids)
    named_parts: list[ToolSpec | ToolCallPart] = [*tools, *[call for _, call in calls]]
    as_is = [
        part.name
        for part in named_parts
        if part.native and "as is" in OWN.form(part.native).values()
    ]
    return prepare_outgoing(
        OutgoingItems,
        messages,
        target,
        quirks,
        losses,
        part_indexes=places,
        ids=ids,
        names=fit_names([part.name for part in named_parts], quirks.names, as_is=as_is),
        calls=calls,
        kinds={},
        foreign=set(),
        holds=holds and quirks.links,
        taken=set(),
        spent=set(),
    )


def dump_conversation(out: OutgoingItems, *, after: int = -1) -> Json:
    """Writes messages as the Responses fields `{"instructions": …, "input": […]}`. `after`:
    position of the last message that the provider holds already."""
    _note_calls(out)
    # A dump that continues an earlier one has its instructions already.
    head = 0 if out.before else _count_instructions(out.messages)
    payload: Json = {}
    if head:
        payload["instructions"] = _dump_instructions(out, head)
    items: list[Json] = []
    for position in range(max(head, after + 1), len(out.messages)):
        items += _dump_plain(out, position) or dump_items(out, position)
    last = out.messages[-1] if out.messages else None
    # A request that was loaded with a single text is written with one.
    if last is not None and len(items) == 1 and OWN.form(last.native).get("input") == "string":
        content = items[0].get("content")
        return {**payload, "input": content if isinstance(content, str) else items}
    return {**payload, "input": items}


_SENT_ROLES = {Role.USER: "user", Role.SYSTEM: "system", Role.MODEL: "assistant"}


def _dump_plain(out: OutgoingItems, position: int) -> list[Json]:
    """Writes a message of plain pieces as Responses items, one for each piece. Returns an empty
    list if it holds any other piece. Nearly all messages are plain, and `dump_items` would write
    the same."""
    message, items = out.messages[position], list[Json]()
    if message.native:
        return items
    for index, piece in enumerate(message.content):
        dump = _PLAIN_PIECES.get(type(piece))
        if piece.native or dump is None or (item := dump(out, position, index, piece)) is None:
            return []
        items.append(item)
    return items


def _dump_plain_text(out: OutgoingItems, position: int, _: int, part: TextPart) -> Json | None:
    """Writes a text that is a Responses message of its own: one of the model's, or all of
    another's."""
    message, of_model = out.messages[position], out.messages[position].role is Role.MODEL
    if part.citations or not (of_model or len(message.content) == 1):
        return None
    if of_model and out.quirks.listed:
        content = [{"type": "output_text", "text": part.text}]
        return {"type": "message", "role": "assistant", "content": content}
    return {"role": _SENT_ROLES[message.role], "content": part.text}


def _dump_plain_call(
    out: OutgoingItems, position: int, index: int, call: ToolCallPart
) -> Json | None:
    """Writes a complete call of a function that the model made."""
    is_plain = call.state == "complete" and out.kinds.get(call.id) == FUNCTION
    if not is_plain or call.run_by == "provider" or out.messages[position].role is not Role.MODEL:
        return None
    sent_id, name = out.id(position, index, call), out.name(call.name)
    arguments = arguments_json(call)
    return {"type": FUNCTION, "call_id": sent_id, "name": name, "arguments": arguments}


def _dump_plain_result(
    out: OutgoingItems, position: int, index: int, part: ToolResultPart
) -> Json | None:
    """Writes what a function gave: a JSON value that is no error."""
    is_plain = not (part.is_content or part.is_error) and part.run_by != "provider"
    is_plain = is_plain and out.kinds.get(part.id, FUNCTION) == FUNCTION
    if not is_plain or out.messages[position].role is Role.MODEL:
        return None
    sent_id, output = out.id(position, index, part), text_or_json(part.result)
    return {"type": "function_call_output", "call_id": sent_id, "output": output}


_PLAIN_PIECES: Mapping[type[Content], Callable[[OutgoingItems, int, int, Any], Json | None]] = {
    TextPart: _dump_plain_text,
    ToolCallPart: _dump_plain_call,
    ToolResultPart: _dump_plain_result,
}
"""Type of a piece → what writes it where it has nothing of a wire's own; `None`: it cannot."""


def _note_calls(out: OutgoingItems) -> None:
    """Notes the type of Responses item for each call. A call that the API cannot read as its own
    goes as a function's, and so does its result."""
    for position, call in out.calls:
        if out.unreadable[position] is None:
            out.kinds[call.id] = choose_item_type(call)
            out.foreign.discard(call.id)
        else:
            out.kinds[call.id] = FUNCTION
            out.foreign.add(call.id)
    if APPROVAL in out.kinds.values():
        out.spent.update(_find_spent(out))


def _find_spent(out: OutgoingItems) -> Iterator[str]:
    """Yields the ids of the calls that were approved before the model's last Responses message."""
    last = max(
        position for position, message in enumerate(out.messages) if message.role is Role.MODEL
    )
    for message in out.messages[:last]:
        for piece in message.content:
            if isinstance(piece, ToolResultPart) and is_approved(piece):
                yield piece.id


def _dump_instructions(out: OutgoingItems, head: int) -> str:
    """Writes the Responses instructions: the texts of the first messages."""
    messages = out.messages[:head]
    if head > 1 or len(messages[0].content) > 1:
        why = "the instructions are one text; they are joined"
        for position in range(head):
            out.lose(position, None, Lost.texts, why)
    return "\n\n".join([message.text for message in messages])


_CONVERSATIONS = ConversationFormat(load_conversation, prepare_conversation, dump_conversation)
load_messages, dump_messages = _CONVERSATIONS.load_messages, _CONVERSATIONS.dump_messages


def _count_instructions(messages: Sequence[Message]) -> int:
    """Returns the number of leading messages that are the Responses instructions: plain system
    texts."""
    for position, message in enumerate(messages):
        if not _is_plain_system(message):
            return position
    return len(messages)


def _is_plain_system(message: Message) -> bool:
    # What has fields of this API's own came as an item of the input, and goes back as one.
    """True if a message can be a part of the Responses instructions."""
    if message.role is not Role.SYSTEM or not message.content or OWN.is_ours(message.native):
        return False
    return all(
        isinstance(piece, TextPart) and not OWN.is_ours(piece.native) for piece in message.content
    )


_PLAIN = {"user": Role.USER, "assistant": Role.MODEL}
_BEGUN = OWN.with_notes(None, item={})
"""`native` of a text that begins an item without fields of its own."""


class _Reader:
    """Gathers items into messages."""

    def __init__(self, out: list[Message], origin: Origin | None) -> None:
        """Creates the reader of Responses items as messages."""
        self._out = out
        self._origin = origin
        self._side: Role | None = None
        self._pieces: list[Content] = []
        self._calls: Calls = {}
        # Ids of the calls so far.
        self._known: set[str] = set()

    def read(self, item: Json) -> None:
        """Reads the next item of a Responses conversation."""
        if (
            len(item) == 2
            and (role := item.get("role")) in _PLAIN
            and type(text := item.get("content")) is str
            and text
        ):
            self._read_plain_item(_PLAIN[role], text)
            return
        side = choose_role(item, self._calls)
        if side is Role.MODEL:
            self._read_model_item(item)
        elif "role" in item and item.get("type", "message") == "message" and item["role"] in ROLES:
            self.end()
            self._out.append(_read_message_item(item, side))
        else:
            self._gather_pieces(side, [_as_is(self._load_other(item), set())])

    def _read_model_item(self, item: Json) -> None:
        """Adds the pieces of a Responses item that the model made, and remembers the ids of its
        calls."""
        pieces = load_item(item, self._calls)
        self._gather_pieces(Role.MODEL, [_as_is(piece, self._known) for piece in pieces])
        self._known.update([piece.id for piece in pieces if isinstance(piece, ToolCallPart)])

    def _load_other(self, item: Json) -> Content:
        """Reads a Responses item that is no message and not the model's: a result, or an unknown
        item."""
        item_type = item.get("type", "message")
        if item_type in RESULT_ITEMS and (result := load_result(item, self._calls)):
            return result
        return ProviderPart(str(item_type), OWN.note(item, mark=True))

    def _read_plain_item(self, role: Role, text: str) -> None:
        """Reads a Responses item that is only a text, as most of a conversation are."""
        if role is Role.USER:
            self.end()
            self._out.append(Message(role, (TextPart(text),)))
        else:
            self._gather_pieces(role, [TextPart(text, _BEGUN)])

    def end(self) -> list[Message]:
        """Ends the Responses message that is open. Returns the messages so far."""
        if self._side is not None:
            message = Message(
                self._side,
                tuple(self._pieces),
                origin=self._origin if self._side is Role.MODEL else None,
            )
            self._out.append(_as_input(message))
            self._side, self._pieces = None, []
        return self._out

    def _gather_pieces(self, side: Role, pieces: list[Content]) -> None:
        """Adds pieces to the Responses message of this side."""
        if side is not self._side:
            self.end()
            self._side = side
        first = pieces[0]
        after_text = bool(self._pieces) and isinstance(self._pieces[-1], TextPart)
        if first.native == _BEGUN and len(pieces) == 1 and not after_text:
            # A text that follows no other begins an item anyway, so it needs no note.
            first = msgspec.structs.replace(first, native=None)
        self._pieces += [first, *pieces[1:]]


def _read_message_item(item: Json, role: Role) -> Message:
    """Reads a Responses message item of a user's, the system's or a developer's."""
    pieces: list[Content] = []
    form: Json = {"content": ABSENT}
    if "content" in item:
        pieces, form = load_content(item["content"], "input_text")
    if item["role"] == "developer":
        form["role"] = "developer"
    native = OWN.note(read_extra_fields(item, "role", "content"), form=form)
    return _as_input(Message(role, tuple(pieces), native=native))


def _as_is(piece: Content, known: set[str]) -> Content:
    """Notes an id or name that is unfit or was used before, so that a Responses request that was
    sent so is written so."""
    if not isinstance(piece, (ToolCallPart, ToolResultPart)) or piece.run_by == "provider":
        return piece
    names_fit = isinstance(piece, ToolResultPart) or TOOL_NAMES.fits(piece.name)
    if names_fit and piece.id not in known and CALL_IDS.fits(piece.id):
        return piece
    return msgspec.structs.replace(piece, native=OWN.with_form(piece.native, id="as is"))


def _as_input(message: Message) -> Message:
    """Notes on a system message that it stands in the input instead of the Responses
    instructions."""
    if message.role is not Role.SYSTEM:
        return message
    return message.replace(native=OWN.with_form(message.native, place="input"))
