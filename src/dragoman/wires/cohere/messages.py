"""The conversation: `messages` of the Chat API ⇄ our messages. Consecutive tool messages are one
user message of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from msgspec.structs import replace

from dragoman.codec.formats import ConversationFormat
from dragoman.codec.ids import fit_names, map_call_ids
from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_text,
    merge_wire_fields,
    read_extra_fields,
)
from dragoman.codec.layout import Layout
from dragoman.codec.marks import strip_all_marks
from dragoman.codec.media import media_label
from dragoman.codec.message_list import SPEAKER_ROLES, dump_content, load_list
from dragoman.codec.outgoing import Outgoing, prepare_outgoing, read_sole_text
from dragoman.codec.replay import name_part_type
from dragoman.codec.serving import Problem
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
from dragoman.wires.cohere.quirks import OWN, Quirks
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
    own=frozenset(
        ["p", "k", "documents", "citation_options", "safety_mode", "strict_tools", "stop_sequences"]
    ),
    of_tools=frozenset(["function"]),
)
"""Where its messages stand."""

_SENT = {role: name for name, role in SPEAKER_ROLES.items()}
_EMPTY = {Role.SYSTEM: "", Role.USER: "", Role.MODEL: "absent"}
"""How no content is usually written."""
_FOREIGN = frozenset({"function_call", "images", "parts", "reasoning_content"})
"""Fields of messages that other formats have, and this one never."""
_VOTES: Mapping[str, tuple[str, type, int]] = {
    "text": ("text", str, 1),
    "image_url": ("image_url", dict, 1),
    "thinking": ("thinking", str, 2),
    "document": ("document", dict, 3),
}
"""Type of a block → the field that every such block has, the type of that, and how surely such a
block is of this format."""


def load_conversation(
    payload: Any, origin: Origin | None, problems: list[Problem] | None
) -> list[Message]:
    """The list of messages → ours."""
    names: dict[str, str] = {}
    return load_list(
        payload,
        lambda entry: _load(entry, names, origin),
        origin,
        problems,
        what="a Cohere chat",
        roles=(*SPEAKER_ROLES, "tool"),
    )


def votes(message: Any) -> int:
    """How surely a message is of this format: 0 = cannot be, 1 = could be, 2 = likely, 3 = hardly
    anything else."""
    fields = if_object(message)
    role, content, calls = (
        if_text(fields.get("role")),
        fields.get("content"),
        if_list(fields.get("tool_calls")),
    )
    if role not in (*SPEAKER_ROLES, "tool") or not _FOREIGN.isdisjoint(fields):
        return 0
    if (role == "tool") is not isinstance(fields.get("tool_call_id"), str):
        return 0
    may_lack_content = role == "assistant" and content is None and (calls or fields.get(PLAN))
    if not (may_lack_content or isinstance(content, (str, list))):
        return 0
    piece_votes = [1, *[_block_votes(block) for block in if_list(content)]]
    piece_votes += [1 if _is_usual_call(call) else 0 for call in calls]
    piece_votes += [
        3
        for citation in if_list(fields.get("citations"))
        if {"start", "end"} <= if_object(citation).keys()
    ]
    piece_votes += [3] if if_text(fields.get(PLAN)) else []
    return 0 if 0 in piece_votes and max(piece_votes) < 3 else max(piece_votes)


def prepare_conversation(
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    tools: Sequence[ToolSpec] = (),
) -> Outgoing[Quirks]:
    """A conversation made ready for its dump. `tools`: the request's. Without a target ids and
    names stay as they are, however odd."""
    messages, places = strip_all_marks(messages)
    quirks = quirks or Quirks()
    named = [*tools, *(call for message in messages for call in message.tool_calls)]
    names = list(dict.fromkeys([each.name for each in named]))
    return prepare_outgoing(
        Outgoing[Quirks],
        messages,
        target,
        quirks,
        losses,
        places=places,
        ids=map_call_ids(
            messages,
            quirks.ids,
            as_is=None
            if target
            else lambda piece: bool(piece.id) or isinstance(piece, ToolResultPart),
        ),
        names=fit_names(names, quirks.names) if target else {name: name for name in names},
    )


def dump_conversation(out: Outgoing[Quirks]) -> list[Json]:
    """A conversation → the list of messages."""
    dumped: list[Json] = []
    for position, message in enumerate(out.messages):
        if (text := read_sole_text(message)) is not None:
            dumped.append({"role": _SENT[message.role], "content": text})
            continue
        if message.role is Role.MODEL:
            dumped += _dump_model(position, message, out)
            continue
        results = [
            dump_result(piece, out, position, index)
            for index, piece in enumerate(message.content)
            if _is_answer(piece)
        ]
        dumped += [result for result, _ in results]
        later = [block for _, media in results for block in media]
        if not results or len(results) < len(message.content) or later:
            dumped += _dump_other(position, message, later, out)
    return dumped


_CONVERSATIONS = ConversationFormat(load_conversation, prepare_conversation, dump_conversation)
load_messages, dump_messages = _CONVERSATIONS.load_messages, _CONVERSATIONS.dump_messages


def _block_votes(block: Any) -> int:
    """The same of a block. One of a type that is not known may stand beside others, since the API
    has ever more of them."""
    fields = if_object(block)
    field, of, vote = _VOTES.get(if_text(fields.get("type")), ("", str, 0))
    return vote if isinstance(fields.get(field), of) and "signature" not in fields else 0


def _is_usual_call(call: Any) -> bool:
    fields = if_object(call)
    function = if_object(fields.get("function"))
    arguments = function.get("arguments")
    if fields.get("type", "function") != "function" or not if_text(fields.get("id")):
        return False
    return bool(if_text(function.get("name"))) and (arguments is None or isinstance(arguments, str))


def _load(entry: JsonMap, names: dict[str, str], origin: Origin | None) -> Message | ToolResultPart:
    """A message, or the result in one. `names`: id of each call so far → its tool, to which its own
    calls are added."""
    if entry.get("role") == "tool":
        return load_result(entry, names)
    role = SPEAKER_ROLES.get(if_text(entry.get("role")))
    if role is None:
        raise HistoryError(
            f"a Cohere chat has no role {entry.get('role')!r:.100}; it has system, user, assistant and tool"
        )
    content: list[Content] = []
    read = ["role", "content"]
    if role is Role.MODEL and (plan := if_text(entry.get(PLAN))):
        content.append(load_plan(plan))
        read.append(PLAN)
    form: Json = {}
    content += load_content(entry, _EMPTY[role], form)
    if role is Role.MODEL and (calls := load_calls(entry.get("tool_calls"))):
        content += calls
        names.update({call.id: call.name for call in calls})
        read.append("tool_calls")
    native = OWN.note(read_extra_fields(entry, *read), form=form)
    return Message(
        role, tuple(content), origin=origin if role is Role.MODEL else None, native=native
    )


def _dump_other(
    position: int, message: Message, blocks: list[Json], out: Outgoing[Quirks]
) -> list[Json]:
    """A system message, or what a user's holds beside results, behind these blocks. None where a
    target would get an empty one."""
    begun = False
    images = out.target is None or message.role is not Role.SYSTEM
    for index, piece in enumerate(message.content):
        if _is_answer(piece):
            if begun:
                out.lose(
                    position,
                    index,
                    Lost.order,
                    "this format has the results of tools before all else",
                )
            continue
        if isinstance(piece, ThinkingPart):
            block, lost = None, (name_part_type(piece), "only a model's message has it here", "")
        else:
            block, lost = dump_block(piece, images=images)
        if lost is not None:
            out.lose(position, index, *lost)
        if block is not None:
            begun = True
            blocks.append(block)
    if out.target is not None and not blocks:
        out.lose(
            position, None, Lost.message, "it says nothing, and the API takes no empty message"
        )
        return []
    content = dump_content(blocks, "", OWN.form(message.native))
    return [merge_wire_fields({"role": _SENT[message.role], **content}, OWN.fields(message.native))]


def _dump_model(position: int, message: Message, out: Outgoing[Quirks]) -> list[Json]:
    """A model's message. None where a target would get an empty one."""
    why = out.unreadable[position]
    plan, blocks, calls = "", list[Json](), list[Json]()
    for index, piece in enumerate(message.content):
        refused = _refusal_reason(piece, why, out.target)
        if refused is not None:
            which = media_label(piece) if isinstance(piece, (DataPart, LinkPart)) else ""
            out.lose(position, index, name_part_type(piece), refused, which)
            continue
        if isinstance(piece, ToolCallPart):
            call = dump_call(
                piece, out.id(position, index, piece), out.name(piece.name), exact=why is None
            )
            out.lose_unfinished(position, index, piece, call["function"].get("arguments"))
            calls.append(call)
            continue
        if calls or (is_plan(piece) and blocks):
            order = "this format has a message's plan before its content, and both before its calls"
            out.lose(position, index, Lost.order, order)
        if is_plan(piece):
            plan += piece.text
            continue
        block, lost = dump_block(piece if why is None else replace(piece, native=None))
        if lost is not None:
            out.lose(position, index, *lost)
        if block is not None:
            blocks.append(block)
    form, message_fields = OWN.form(message.native), OWN.fields(message.native)
    if message_fields and why is not None:
        out.lose(position, None, Lost.field, why, ", ".join(message_fields))
        message_fields = {}
    # a plan says something beside calls alone
    if out.target is not None and not (calls or blocks):
        out.lose(
            position, None, Lost.message, "it says nothing, and the API takes no empty message"
        )
        return []
    content = dump_content(blocks, "absent", form)
    if not (calls or content or plan or message_fields or "content" in form):
        content = {"content": ""}
    fields = {
        **({PLAN: plan} if plan else {}),
        **content,
        **({"tool_calls": calls} if calls else {}),
    }
    return [merge_wire_fields({"role": "assistant", **fields}, message_fields)]


def _refusal_reason(piece: Content, why: str | None, target: Origin | None) -> str | None:
    """Why a piece of a model's message cannot be sent; `None`: it can. `why`: the reason against
    what its provider signed."""
    if isinstance(piece, ThinkingPart):
        return why or (None if piece.text else "it is signed for another format")
    if isinstance(piece, ProviderPart):
        return why
    if isinstance(piece, ToolResultPart) or (
        isinstance(piece, ToolCallPart) and piece.run_by == "provider"
    ):
        return "this format has no tools that the provider runs"
    if isinstance(piece, (DataPart, LinkPart)) and target is not None:
        return "a model's message holds no media in this format"
    return None


def _is_answer(piece: Content) -> TypeGuard[ToolResultPart]:
    return isinstance(piece, ToolResultPart) and piece.run_by != "provider"
