"""Reads and writes the conversation: `{"system": […], "messages": […]}`.

Towards a target, messages of one side that follow each other are joined, results of tools first, since
the API wants the two sides to take turns. Without a target each message is written as it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec.citations import lose_citations
from dragoman.codec.format_layout import Layout
from dragoman.codec.json_values import (
    check_depth,
    if_list,
    if_object,
    if_objects,
    if_text,
    merge_wire_fields,
    read_extra_fields,
)
from dragoman.codec.media import media_label
from dragoman.codec.opening import count_system_messages
from dragoman.codec.outgoing_conversation import Outgoing, is_provider_tool, prepare_named_outgoing
from dragoman.codec.serving import Problem, note_problem
from dragoman.codec.signature_check import name_part_type
from dragoman.codec.wire_operations import ConversationFormat
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ToolSpec
from dragoman.wires.bedrock_converse.content import (
    CITED,
    REASONING,
    dump_block,
    has_document,
    keep_whole,
    load_block,
)
from dragoman.wires.bedrock_converse.quirks import NAME, OWN, Quirks
from dragoman.wires.bedrock_converse.tools import (
    CALL,
    MARK,
    RESULT,
    dump_call,
    dump_result,
    load_call,
    load_result,
)

__all__ = [
    "dump_conversation",
    "dump_messages",
    "layout",
    "load_conversation",
    "load_messages",
    "load_pieces",
    "prepare_conversation",
    "votes",
]

layout = Layout(
    fields=("messages",),
    beside=("system",),
    distinctive=frozenset(
        [
            "inferenceConfig",
            "toolConfig",
            "additionalModelRequestFields",
            "guardrailConfig",
            "outputConfig",
        ]
    ),
    of_tools=frozenset(["toolSpec", "systemTool"]),
)
"""Where the messages stand in the body of a request."""

_ROLES = {"user": Role.USER, "assistant": Role.MODEL, "system": Role.SYSTEM}
_SENT_ROLES = {role: name for name, role in _ROLES.items()}
_LONGEST_REPEATED = 180
_VOTES: Mapping[str, int] = {
    "text": 2,
    **dict.fromkeys(("image", "document", "video", "audio", "searchResult", "guardContent"), 3),
    **dict.fromkeys((CALL, RESULT, MARK, CITED, REASONING, "toolAddition", "toolRemoval"), 3),
}
"""Kind of a block → how surely a message that holds it is of this format."""


def load_conversation(
    payload: Any, origin: Origin | None, problems: list[Problem] | None
) -> list[Message]:
    """Reads a Converse conversation: `{"system": […], "messages": […]}`."""
    if not isinstance(payload, Mapping):
        raise HistoryError('the payload must be {"system": […], "messages": […]}')
    payload = cast("JsonMap", payload)
    entries = payload.get("messages", [])
    if not isinstance(entries, list):
        raise HistoryError('"messages" must be a list').at(field="messages")
    messages: list[Message] = []
    names: dict[str, str] = {}
    if system := payload.get("system"):
        try:
            pieces = load_pieces(check_depth(system), names)
            messages.append(Message(Role.SYSTEM, pieces))
        except HistoryError as error:
            note_problem(error, problems, -1, "system")
    for position, entry in enumerate(cast("list[Any]", entries)):
        try:
            if problems is not None:
                check_depth(entry)
            messages.append(_load_entry(entry, names, origin))
        except HistoryError as error:
            field = "content" if if_text(if_object(entry).get("role")) in _ROLES else "role"
            note_problem(error, problems, position, field if isinstance(entry, dict) else None)
    return messages


def load_pieces(content: Any, names: dict[str, str]) -> tuple[Content, ...]:
    """Reads a list of Converse content blocks. `names`: id of each call so far → its tool, to which
    its own calls are added.

    Raises:
        HistoryError: it is no list of objects.
    """
    if not isinstance(content, list) or (content and not if_objects(content)):
        raise HistoryError("content must be a list of blocks, which are objects")
    pieces: list[Content] = []
    for block in if_objects(content):
        piece = _load_piece(block, names) or keep_whole(block)
        if isinstance(piece, ToolCallPart):
            names[piece.id] = piece.name
        pieces.append(piece)
    return tuple(pieces)


def votes(message: Any) -> int:
    """Returns how surely a message is of the Converse format: 0 impossible, 1 possible, 2 likely, 3
    almost certain."""
    fields = if_object(message)
    content = fields.get("content")
    if fields.keys() != {"role", "content"} or if_text(fields["role"]) not in _ROLES:
        return 0
    if content == []:
        return 1
    block_votes = [_count_block_votes(block) for block in if_objects(content)]
    # A block of an unknown type speaks against the format.
    if 0 in block_votes:
        return 0
    return max(block_votes, default=0)


def prepare_conversation(
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    tools: Sequence[ToolSpec] = (),
) -> Outgoing[Quirks]:
    """Returns a conversation that is ready to be written as Converse messages. `tools`: the
    request's. Without a target ids and names stay as they are, however odd."""
    return prepare_named_outgoing(
        messages, target, quirks or Quirks(), losses, tools, keeps_id=_has_own_id
    )


def dump_conversation(out: Outgoing[Quirks]) -> Json:
    """Writes a conversation as the Converse fields `system` and `messages`."""
    lose_citations(out, NAME)
    head = 0 if out.before else count_system_messages(out.messages)
    system = [block for position in range(head) for block in _dump_system(out, position)]
    entries: list[Json] = []
    names: set[str] = set()
    for position in range(head, len(out.messages)):
        entry = _dump_entry(out, position, names)
        _add_entry(out, position, entry, entries)
    if out.target is not None:
        entries = _complete_entries(out, entries)
    if system:
        return {"system": system, "messages": entries}
    return {"messages": entries}


_CONVERSATIONS = ConversationFormat(load_conversation, prepare_conversation, dump_conversation)
load_messages, dump_messages = _CONVERSATIONS.load_messages, _CONVERSATIONS.dump_messages


def _load_piece(block: Json, names: Mapping[str, str]) -> Content | None:
    """Reads one Converse content block; None if it is a call or a result of an unknown shape."""
    if len(block) == 1 and CALL in block:
        return load_call(block)
    if len(block) == 1 and RESULT in block:
        return load_result(block, names)
    return load_block(block)


def _count_block_votes(block: Json) -> int:
    """Returns how surely a block is of the Converse format: each has one key, its type."""
    block_type = next(iter(block), "")
    is_shaped = isinstance(block.get(block_type), str if block_type == "text" else dict)
    if len(block) != 1 or not is_shaped:
        return 0
    return _VOTES.get(block_type, 0)


def _load_entry(entry: Any, names: dict[str, str], origin: Origin | None) -> Message:
    """Reads one Converse message."""
    fields = if_object(entry)
    role = _ROLES.get(if_text(fields.get("role")))
    if role is None:
        raise HistoryError("a message must be an object whose role is user, assistant or system")
    form: Json = {"place": "messages"} if role is Role.SYSTEM else {}
    pieces = load_pieces(fields.get("content"), names)
    native = OWN.note(read_extra_fields(fields, "role", "content"), form=form)
    return Message(role, pieces, origin=origin if role is Role.MODEL else None, native=native)


def _dump_system(out: Outgoing[Quirks], position: int) -> list[Json]:
    """Returns the blocks of Converse's field `system` for a system message."""
    blocks: list[Json] = []
    for index, piece in enumerate(out.messages[position].content):
        if isinstance(piece, TextPart) and (piece.text.strip() or out.target is None):
            blocks.append({"text": piece.text})
        elif isinstance(piece, ProviderPart) and OWN.is_ours(piece.native):
            blocks.append(OWN.fields(piece.native))
        else:
            why = "the system text is of texts that are not blank"
            out.lose(position, index, name_part_type(piece), why)
    return blocks


def _dump_entry(out: Outgoing[Quirks], position: int, names: set[str]) -> Json:
    """Returns a message as Converse has it, perhaps without any content. `names`: those of the
    documents so far, to which its own are added."""
    message = out.messages[position]
    role = _SENT_ROLES[message.role]
    # Only some models take a system message here: one that was read stays as it was.
    if message.role is Role.SYSTEM and OWN.form(message.native).get("place") != "messages":
        why = "the API takes none within the conversation; sent as a marked user text"
        out.lose(position, None, Lost.system_message, why)
        text = f"<system>\n{message.text}\n</system>"
        return {"role": "user", "content": [{"text": text}]}
    blocks: list[Json] = []
    for index, piece in enumerate(message.content):
        why = _explain_unsendable(out, position, piece)
        if why is not None:
            out.lose(position, index, name_part_type(piece), why, _name_piece(piece))
            continue
        # Fields that the target cannot read are not sent.
        if out.unreadable[position] is not None:
            piece = replace(piece, native=OWN.without_fields(piece.native))
        block = _dump_piece(out, position, index, piece)
        if "document" in block and out.target is not None:
            block = _rename_document(out, position, index, block, names)
        blocks.append(block)
    # A document stands beside a text, whatever is joined to the message later.
    if out.target is not None and has_document(blocks):
        blocks.append({"text": out.quirks.opening})
        why = "the API wants a text beside a document; a placeholder is sent"
        out.lose(position, None, Lost.beginning, why)
    fields = OWN.fields(message.native) if out.unreadable[position] is None else {}
    return merge_wire_fields({"role": role, "content": _order(out, position, blocks)}, fields)


def _add_entry(out: Outgoing[Quirks], position: int, entry: Json, entries: list[Json]) -> None:
    """Adds a message to the Converse messages so far, or joins it to the last one, as a target
    demands it."""
    if out.target is None:
        entries.append(entry)
    elif not entry["content"]:
        out.lose(position, None, Lost.message, "it says nothing, and the API takes none such")
    elif entries and entry["role"] == entries[-1]["role"]:
        entries[-1] = {**entries[-1], **entry, "content": _join(entries[-1], entry)}
    else:
        entries.append(entry)


def _dump_piece(out: Outgoing[Quirks], position: int, index: int, piece: Content) -> Json:
    """Returns the Converse block of a piece, and notes what the block leaves out."""
    if isinstance(piece, ToolCallPart):
        block = dump_call(piece, out.id(position, index, piece), out.name(piece.name))
        out.lose_unfinished(position, index, piece, block[CALL]["input"])
        return block
    if isinstance(piece, ToolResultPart):
        block, losses = dump_result(piece, out.id(position, index, piece))
    else:
        # Without a target a name stays as it is.
        suffix = "" if out.target is None else _number(out, position, index)
        block, lost = dump_block(piece, suffix=suffix)
        losses = list(filter(None, [lost]))
    for lost in losses:
        out.lose(position, index, *lost)
    return block


def _rename_document(
    out: Outgoing[Quirks], position: int, index: int, block: Json, names: set[str]
) -> Json:
    """Returns the block of a document under a name that no other has in a Converse conversation, as
    the API demands. `names`: those so far."""
    document = if_object(block["document"])
    name = if_text(document.get("name"))
    if name in names:
        name = f"{name[:_LONGEST_REPEATED]} {_number(out, position, index)}"
        why = f"the API takes each name once; {name} is sent"
        out.lose(position, index, Lost.file_name, why, if_text(document.get("name")))
    names.add(name)
    return {"document": {**document, "name": name}}


def _number(out: Outgoing[Quirks], position: int, index: int) -> str:
    """Returns what tells a document's name apart from those of other messages."""
    return f"{out.before + position + 1}-{index + 1}"


def _order(out: Outgoing[Quirks], position: int, blocks: list[Json]) -> list[Json]:
    """Returns the blocks of a Converse message with results first and calls last, as models demand
    it; as they came if the message goes to its own origin."""
    if out.target is None or (
        out.messages[position].role is Role.MODEL and out.unreadable[position] is None
    ):
        return blocks
    ordered = sorted(blocks, key=lambda block: (RESULT not in block, CALL in block))
    if ordered != blocks:
        out.lose(position, None, Lost.order, "the API wants results first and calls last")
    return ordered


def _join(before: Json, entry: Json) -> list[Json]:
    """Returns the content of two Converse messages of one side as that of one, results first."""
    blocks = [*if_list(before["content"]), *if_list(entry["content"])]
    if entry["role"] != "user":
        return blocks
    return sorted(blocks, key=lambda block: RESULT not in block)


def _complete_entries(out: Outgoing[Quirks], entries: list[Json]) -> list[Json]:
    """Returns the Converse messages with a text of the user's before the model's first, as the API
    demands it."""
    opening = {"text": out.quirks.opening}
    if entries and entries[0]["role"] == "assistant" and not out.before:
        why = "the API wants the user to speak first; a placeholder does"
        out.lose(0, None, Lost.beginning, why)
        return [{"role": "user", "content": [opening]}, *entries]
    return entries


def _explain_unsendable(out: Outgoing[Quirks], position: int, piece: Content) -> str | None:
    """Returns why a piece cannot be sent as a Converse block, or None if it can."""
    unread, by_model = out.unreadable[position], out.messages[position].role is Role.MODEL
    is_ours, has_target = OWN.is_ours(piece.native), out.target is not None
    if isinstance(piece, ThinkingPart):
        return unread or _explain_thinking(piece, by_model=by_model, has_target=has_target)
    if isinstance(piece, ProviderPart) or is_provider_tool(piece):
        return unread or (None if is_ours else "it is another provider's")
    if isinstance(piece, TextPart) and has_target and not piece.text.strip():
        return "it is blank, which the API refuses"
    if (
        isinstance(piece, (DataPart, LinkPart, FilePart))
        and by_model
        and has_target
        and not is_ours
    ):
        return "the API takes files from the user alone"
    if isinstance(piece, ToolCallPart) and not by_model:
        return "the API takes calls from the model alone"
    if isinstance(piece, ToolResultPart) and by_model:
        return "the API takes results from the user alone"
    return None


def _explain_thinking(piece: ThinkingPart, *, by_model: bool, has_target: bool) -> str | None:
    """Returns why thinking that the target may read cannot be sent to the Converse API, or None if
    it can."""
    if not by_model:
        return "only a model's message has it here"
    fields = OWN.fields(piece.native)
    is_signed = "signature" in fields or "redactedContent" in fields
    if is_signed or (piece.text and not has_target):
        return None
    return "it is not signed for this API"


def _name_piece(piece: Content) -> str:
    """Returns what a loss of a Converse conversation calls a piece."""
    if is_provider_tool(piece):
        return piece.name
    if isinstance(piece, (DataPart, LinkPart, FilePart)):
        return media_label(piece)
    if isinstance(piece, ProviderPart):
        return piece.kind
    return ""


def _has_own_id(piece: ToolCallPart | ToolResultPart) -> bool:
    """True if a call or result keeps its id without a target: all but those without one."""
    return bool(piece.id)
