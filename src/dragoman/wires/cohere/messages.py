"""Reads and writes the conversation: `messages` of the Chat API.

Consecutive tool messages become one user message of results. A model's message has a plan, then
content, then calls; pieces in another order are moved, and that is noted as a loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from msgspec.structs import replace

from dragoman.codec.citations import lose_citations
from dragoman.codec.format_layout import Layout
from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_text,
    merge_wire_fields,
    read_extra_fields,
)
from dragoman.codec.media import media_label
from dragoman.codec.message_list import SPEAKER_ROLES, dump_content, load_list
from dragoman.codec.outgoing_conversation import Outgoing, prepare_named_outgoing, read_sole_text
from dragoman.codec.serving import Problem
from dragoman.codec.signature_check import name_part_type
from dragoman.codec.wire_operations import ConversationFormat
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import (
    Content,
    DataPart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ToolSpec
from dragoman.wires.cohere.content import PLAN, dump_block, is_plan, load_content, load_plan
from dragoman.wires.cohere.quirks import NAME, OWN, Quirks
from dragoman.wires.cohere.tools import dump_call, dump_result, load_calls, load_result

__all__ = [
    "dump_messages",
    "load_messages",
    "prepare_conversation",
    "load_conversation",
    "votes",
    "dump_conversation",
    "layout",
]

layout = Layout(
    fields=("messages",),
    distinctive=frozenset(
        ["p", "k", "documents", "citation_options", "safety_mode", "strict_tools", "stop_sequences"]
    ),
    of_tools=frozenset(["function"]),
)
"""Where the messages stand in the body of a request."""

_ROLE_NAMES = {role: name for name, role in SPEAKER_ROLES.items()}
_EMPTY = {Role.SYSTEM: "", Role.USER: "", Role.MODEL: "absent"}
"""Role → the usual content of a message without any."""
_RESULTS_FIRST = "this format has the results of tools before all else"
_NO_EMPTY = "it says nothing, and the API takes no empty message"
_ANSWER_ORDER = "this format has a message's plan before its content, and both before its calls"
_FOREIGN = frozenset({"function_call", "images", "parts", "reasoning_content"})
"""Fields of messages that other formats have, and this one never has."""
_VOTES: Mapping[str, tuple[str, type, int]] = {
    "text": ("text", str, 1),
    "image_url": ("image_url", dict, 1),
    "thinking": ("thinking", str, 2),
    "document": ("document", dict, 3),
}
"""Type of a block → the field that such a block always has, the type of that field, and how surely
the block belongs to this format."""
_RESULT_BLOCKS = {name: _VOTES[name] for name in ("text", "document")}
"""Those that the result of a tool may have."""


def load_conversation(
    payload: Any, origin: Origin | None, problems: list[Problem] | None
) -> list[Message]:
    """Reads Cohere's list of messages."""
    names: dict[str, str] = {}
    return load_list(
        payload,
        lambda entry: _load_entry(entry, names, origin),
        origin,
        problems,
        what="a Cohere chat",
        roles=(*SPEAKER_ROLES, "tool"),
    )


def votes(message: Any) -> int:
    """Returns how surely a message is of the Cohere format: 0 impossible, 1 possible, 2 likely, 3
    almost certain."""
    fields = if_object(message)
    if not _is_possible(fields):
        return 0
    content, calls = fields.get("content"), if_list(fields.get("tool_calls"))
    known = _RESULT_BLOCKS if fields.get("role") == "tool" else _VOTES
    piece_votes = [1, *[_block_votes(block, known) for block in if_list(content)]]
    piece_votes += [int(_is_usual_call(call)) for call in calls]
    for citation in if_list(fields.get("citations")):
        if {"start", "end"} <= if_object(citation).keys():
            piece_votes.append(3)
    if if_text(fields.get(PLAN)):
        piece_votes.append(3)
    best = max(piece_votes)
    if 0 in piece_votes and best < 3:
        return 0
    return best


def _is_possible(fields: JsonMap) -> bool:
    """True if the fields of a message, apart from its Cohere blocks and calls, may be of this
    format."""
    role, content = if_text(fields.get("role")), fields.get("content")
    if role not in (*SPEAKER_ROLES, "tool") or not _FOREIGN.isdisjoint(fields):
        return False
    if (role == "tool") is not isinstance(fields.get("tool_call_id"), str):
        return False
    if isinstance(content, (str, list)):
        return True
    has_calls = bool(if_list(fields.get("tool_calls")) or fields.get(PLAN))
    return role == "assistant" and content is None and has_calls


def prepare_conversation(
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    tools: Sequence[ToolSpec] = (),
) -> Outgoing[Quirks]:
    """Returns a conversation that is ready to be written as Cohere messages. `tools`: the Cohere
    request's.

    Without a target ids and names stay as they are, however odd.
    """
    return prepare_named_outgoing(
        messages, target, quirks or Quirks(), losses, tools, keeps_id=_has_own_id
    )


def _has_own_id(piece: ToolCallPart | ToolResultPart) -> bool:
    """True if a call or result keeps its id without a target: all but calls without one."""
    return bool(piece.id) or isinstance(piece, ToolResultPart)


def dump_conversation(out: Outgoing[Quirks]) -> list[Json]:
    """Writes a conversation as Cohere's list of messages."""
    lose_citations(out, NAME)
    dumped: list[Json] = []
    for position, message in enumerate(out.messages):
        if (text := read_sole_text(message)) is not None:
            dumped.append({"role": _ROLE_NAMES[message.role], "content": text})
            continue
        if message.role is Role.MODEL:
            dumped += _dump_answer(position, message, out)
            continue
        result_count = 0
        media_blocks: list[Json] = []
        for index, piece in enumerate(message.content):
            if _is_client_result(piece):
                result, media = dump_result(piece, out, position, index)
                dumped.append(result)
                media_blocks += media
                result_count += 1
        # Media of results, and what the user said beside them, follow in a user message.
        if not result_count or result_count < len(message.content) or media_blocks:
            dumped += _dump_input_message(position, message, media_blocks, out)
    return dumped


_CONVERSATIONS = ConversationFormat(load_conversation, prepare_conversation, dump_conversation)
load_messages, dump_messages = _CONVERSATIONS.load_messages, _CONVERSATIONS.dump_messages


def _block_votes(block: Any, known: Mapping[str, tuple[str, type, int]]) -> int:
    """Returns how surely a Cohere block belongs to this format. A block of an unknown type votes 0,
    which a certain one outweighs, since the API has ever more types. `known`: types of blocks."""
    fields = if_object(block)
    field, field_type, vote = known.get(if_text(fields.get("type")), ("", str, 0))
    if "signature" in fields or not isinstance(fields.get(field), field_type):
        return 0
    return vote


def _is_usual_call(call: Any) -> bool:
    """True if a Cohere call has an id, a name, and arguments as a text or not at all."""
    fields = if_object(call)
    function = if_object(fields.get("function"))
    if fields.get("type", "function") != "function" or not if_text(fields.get("id")):
        return False
    has_arguments = isinstance(function.get("arguments"), str | None)
    return has_arguments and if_text(function.get("name")) != ""


def _load_entry(
    entry: JsonMap, names: dict[str, str], origin: Origin | None
) -> Message | ToolResultPart:
    """Reads a message, or the result in a tool message. `names`: id of each call so far → its tool.
    The message's own calls are added."""
    if entry.get("role") == "tool":
        return load_result(entry, names)
    role = SPEAKER_ROLES.get(if_text(entry.get("role")))
    if role is None:
        raise HistoryError(
            f"a Cohere chat has no role {entry.get('role')!r:.100}; "
            "it has system, user, assistant and tool"
        )
    form: Json = {}
    content = load_content(entry, _EMPTY[role], form)
    read = ["role", "content"]
    if role is not Role.MODEL:
        return Message(
            role, tuple(content), native=OWN.note(read_extra_fields(entry, *read), form=form)
        )
    if plan := if_text(entry.get(PLAN)):
        content.insert(0, load_plan(plan))
        read.append(PLAN)
    if calls := load_calls(entry.get("tool_calls")):
        content += calls
        names.update({call.id: call.name for call in calls})
        read.append("tool_calls")
    native = OWN.note(read_extra_fields(entry, *read), form=form)
    return Message(role, tuple(content), origin=origin, native=native)


def _dump_input_message(
    position: int, message: Message, blocks: list[Json], out: Outgoing[Quirks]
) -> list[Json]:
    """Writes as a Cohere message a system message, or what a user's holds beside results, after
    these blocks. Returns an empty list if a target would get an empty message."""
    has_begun = False
    images = out.target is None or message.role is not Role.SYSTEM
    for index, piece in enumerate(message.content):
        if _is_client_result(piece):
            if has_begun:
                out.lose(position, index, Lost.order, _RESULTS_FIRST)
            continue
        if isinstance(piece, ThinkingPart):
            block, loss = None, (name_part_type(piece), "only a model's message has it here", "")
        else:
            block, loss = dump_block(piece, images=images)
        if loss is not None:
            out.lose(position, index, *loss)
        if block is not None:
            has_begun = True
            blocks.append(block)
    if out.target is not None and not blocks:
        out.lose(position, None, Lost.message, _NO_EMPTY)
        return []
    content = dump_content(blocks, "", OWN.form(message.native))
    entry = {"role": _ROLE_NAMES[message.role], **content}
    return [merge_wire_fields(entry, OWN.fields(message.native))]


def _dump_pieces(
    position: int, message: Message, out: Outgoing[Quirks]
) -> tuple[str, list[Json], list[Json]]:
    """Writes the pieces of a model's message. Returns its plan, its Cohere blocks and its calls."""
    why = out.unreadable[position]
    plan, blocks, calls = "", list[Json](), list[Json]()
    for index, piece in enumerate(message.content):
        if not _is_sendable(position, index, piece, out):
            continue
        if isinstance(piece, ToolCallPart):
            call_id, name = out.id(position, index, piece), out.name(piece.name)
            call = dump_call(piece, call_id, name, exact=why is None)
            # Cut or invalid arguments are not sent as the model wrote them.
            out.lose_unfinished(position, index, piece, call["function"].get("arguments"))
            calls.append(call)
            continue
        if calls or (is_plan(piece) and blocks):
            out.lose(position, index, Lost.order, _ANSWER_ORDER)
        if is_plan(piece):
            plan += piece.text
            continue
        # Own fields that the target cannot read are not sent.
        sendable = piece if why is None else replace(piece, native=None)
        blocks += _dump_block(position, index, sendable, out)
    return plan, blocks, calls


def _dump_block(position: int, index: int, piece: Content, out: Outgoing[Quirks]) -> list[Json]:
    """Returns the Cohere block of a piece, or an empty list if there is none for it. Notes what is
    lost."""
    block, loss = dump_block(piece)
    if loss is not None:
        out.lose(position, index, *loss)
    return [] if block is None else [block]


def _is_sendable(position: int, index: int, piece: Content, out: Outgoing[Quirks]) -> bool:
    """True if a piece of a model's message can be sent to Cohere. If not, it is noted as lost."""
    refusal = _explain_unsendable(piece, out.unreadable[position], out.target)
    if refusal is None:
        return True
    which = media_label(piece) if isinstance(piece, (DataPart, LinkPart)) else ""
    out.lose(position, index, name_part_type(piece), refusal, which)
    return False


def _dump_answer(position: int, message: Message, out: Outgoing[Quirks]) -> list[Json]:
    """Writes a model's message as a Cohere message. Returns an empty list if a target would get an
    empty one."""
    plan, blocks, calls = _dump_pieces(position, message, out)
    own_fields = _find_own_fields(position, message, out)
    # A plan without calls says nothing to the API.
    if out.target is not None and not calls and not blocks:
        out.lose(position, None, Lost.message, _NO_EMPTY)
        return []
    form = OWN.form(message.native)
    content = dump_content(blocks, "absent", form)
    # A message needs one of these fields.
    if not any((calls, content, plan, own_fields, "content" in form)):
        content = {"content": ""}
    entry: Json = {"role": "assistant"}
    if plan:
        entry[PLAN] = plan
    entry |= content
    if calls:
        entry["tool_calls"] = calls
    return [merge_wire_fields(entry, own_fields)]


def _find_own_fields(position: int, message: Message, out: Outgoing[Quirks]) -> Json:
    """Returns a Cohere message's own fields, or notes that the target cannot read them."""
    fields, why = OWN.fields(message.native), out.unreadable[position]
    if fields and why is not None:
        out.lose(position, None, Lost.field, why, ", ".join(fields))
        return {}
    return fields


def _explain_unsendable(
    piece: Content, foreign_reason: str | None, target: Origin | None
) -> str | None:
    """Returns why a piece of a model's message cannot be sent to Cohere, or None if it can.

    Args:
        piece: the piece.
        foreign_reason: why content that its provider signed may not go to the target; None if it may.
        target: where it is sent; None if it is only written, so that nothing is left out that can be
            written.
    """
    if isinstance(piece, ThinkingPart):
        # This API takes thinking as text. Thinking without any is a signature that no field holds.
        if foreign_reason is None and not piece.text:
            return "it is signed for another format"
        return foreign_reason
    if isinstance(piece, ProviderPart):
        return foreign_reason
    by_provider = isinstance(piece, ToolCallPart) and piece.run_by == "provider"
    if by_provider or isinstance(piece, ToolResultPart):
        return "this format has no tools that the provider runs"
    if isinstance(piece, (DataPart, LinkPart)) and target is not None:
        return "a model's message holds no media in this format"
    return None


def _is_client_result(piece: Content) -> TypeGuard[ToolResultPart]:
    """True if a piece is the result of a tool that the provider did not run."""
    return isinstance(piece, ToolResultPart) and piece.run_by != "provider"
