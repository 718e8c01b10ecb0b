"""Reads and writes the conversation: `messages` of `/api/chat`.

Consecutive tool messages become one user message of results. Results name their tool, and only
newer servers read the id of a call, so a result without an id answers the first waiting call of its
tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, TypeGuard

from dragoman.codec.citations import lose_citations
from dragoman.codec.fit_ids import NameRule, map_call_ids
from dragoman.codec.format_layout import Layout
from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_text,
    merge_wire_fields,
    read_extra_fields,
)
from dragoman.codec.marks import strip_all_marks
from dragoman.codec.message_list import SPEAKER_ROLES, load_list
from dragoman.codec.outgoing_conversation import Outgoing, prepare_outgoing, read_sole_text
from dragoman.codec.serving import Problem
from dragoman.codec.signature_check import name_part_type
from dragoman.codec.wire_operations import ConversationFormat
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import (
    Content,
    Message,
    Origin,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ToolSpec
from dragoman.wires.ollama.content import Fields, dump_content, load_content, load_images
from dragoman.wires.ollama.quirks import NAME, OWN, Quirks
from dragoman.wires.ollama.tools import (
    UnansweredCalls,
    dump_call,
    dump_result,
    is_call,
    load_call,
    load_result,
)

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
    fields=("messages",),
    distinctive=frozenset(["options", "keep_alive", "think"]),
    of_tools=frozenset(["function"]),
)
"""Where the messages stand in the body of a request."""

_RESULTS_FIRST = "this format has the results of tools before all else"
_ANY = NameRule(letters=r"\s\S", most=1024)
"""NameRule for ids of calls: any text, but each once."""
_OWN = ("thinking", "tool_name")
"""Fields that no other format has beside a text as `content`."""
_ALONE = frozenset(["images", "tool_calls", "thinking"])
"""Fields that may stand without a text."""
_OTHERS = frozenset(["parts", "type", "toolCalls", "toolCallId"])
"""Fields that similar formats have, and this one lacks."""
_ROLE_NAMES = {role: name for name, role in SPEAKER_ROLES.items()}


def load_conversation(
    payload: Any, origin: Origin | None, problems: list[Problem] | None
) -> list[Message]:
    """Reads Ollama's list of messages."""
    numbers = count()
    waiting = UnansweredCalls()

    def fresh_id() -> str:
        return f"call-{next(numbers)}"

    def load(entry: JsonMap) -> Message | ToolResultPart:
        nonlocal waiting
        if entry.get("role") == "tool":
            return load_result(entry, waiting, fresh_id)
        message = _load_message(entry, origin, fresh_id)
        if calls := message.tool_calls:
            waiting = UnansweredCalls(calls)
        return message

    roles = (*SPEAKER_ROLES, "tool")
    return load_list(
        payload, load, origin, problems, what="an Ollama chat", roles=roles, lists=False
    )


def votes(message: Any) -> int:
    """Returns how surely a message is of the Ollama format: 0 impossible, 1 possible, 2 likely, 3
    almost certain."""
    fields = if_object(message)
    if not _is_possible(fields):
        return 0
    calls = if_list(fields.get("tool_calls"))
    if not all(map(_is_usual_call, calls)):
        return 0
    if calls or load_images(fields) or any(if_text(fields.get(name)) for name in _OWN):
        return 3
    if fields["role"] == "tool" and "tool_call_id" not in fields:
        return 2
    return 1


def _is_possible(fields: JsonMap) -> bool:
    """True if the fields of a message, apart from its calls, may be of the Ollama format."""
    if if_text(fields.get("role")) not in (*SPEAKER_ROLES, "tool") or fields.keys() & _OTHERS:
        return False
    # In other formats the content may be a list of blocks.
    for name in ("content", "tool_call_id"):
        if not isinstance(fields.get(name), str | None):
            return False
    return "content" in fields or not fields.keys().isdisjoint(_ALONE)


def _is_usual_call(call: Any) -> bool:
    """True if an Ollama message's call has its arguments as an object, as in no other format that
    has calls in this field."""
    fields = if_object(call)
    if fields.get("type", "function") != "function" or not isinstance(fields.get("id"), str | None):
        return False
    function = if_object(fields.get("function"))
    return if_text(function.get("name")) != "" and isinstance(function.get("arguments"), dict)


def prepare_conversation(
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Quirks | None,
    losses: list[Loss] | None,
    tools: Sequence[ToolSpec] = (),  # noqa: ARG001 as for every wire: here their names stay as they are
) -> Outgoing[Quirks]:
    """Returns a conversation that is ready to be written as Ollama messages."""
    messages, places = strip_all_marks(messages)
    ids = map_call_ids(messages, _ANY) if target else {}
    return prepare_outgoing(
        Outgoing[Quirks],
        messages,
        target,
        quirks or Quirks(),
        losses,
        part_indexes=places,
        ids=ids,
        names={},
    )


def dump_conversation(out: Outgoing[Quirks]) -> list[Json]:
    """Writes a conversation as Ollama's list of messages."""
    lose_citations(out, NAME)
    dumped: list[Json] = []
    calls: dict[str, ToolCallPart] = {}
    for position, message in enumerate(out.messages):
        if (text := read_sole_text(message)) is not None:
            dumped.append({"role": _ROLE_NAMES[message.role], "content": text})
            continue
        results = [
            dump_result(piece, calls.get(piece.id), out, position, index)
            for index, piece in enumerate(message.content)
            if _is_result(piece, message)
        ]
        # Results have to know whether their call had an id.
        calls.update({call.id: call for call in message.tool_calls})
        dumped += results
        if len(results) < len(message.content) or not results:
            dumped.append(_dump_message(message, out, position))
    return dumped


_CONVERSATIONS = ConversationFormat(load_conversation, prepare_conversation, dump_conversation)
load_messages, dump_messages = _CONVERSATIONS.load_messages, _CONVERSATIONS.dump_messages


def _load_message(entry: JsonMap, origin: Origin | None, fresh_id: Callable[[], str]) -> Message:
    """Reads a message other than a tool message."""
    role = SPEAKER_ROLES.get(if_text(entry.get("role")))
    if role is None:
        raise HistoryError(
            f"an Ollama chat has no role {entry.get('role')!r:.100}; "
            "it has system, user, assistant and tool"
        )
    by_model = role is Role.MODEL
    form: Json = {}
    content, read = load_content(entry, form, thinks=by_model)
    calls = if_list(entry.get("tool_calls"))
    if by_model and calls and all(map(is_call, calls)):
        content += [load_call(call, fresh_id) for call in calls]
        read.append("tool_calls")
    native = OWN.note(read_extra_fields(entry, "role", *read), form=form)
    return Message(role, tuple(content), origin=origin if by_model else None, native=native)


def _dump_message(message: Message, out: Outgoing[Quirks], position: int) -> Json:
    """Writes one message for Ollama without its tool results."""
    fields = Fields(out, position)
    for index, piece in enumerate(message.content):
        if _is_result(piece, message):
            if fields:
                fields.lose(index, Lost.order, _RESULTS_FIRST)
        elif not isinstance(piece, (ToolCallPart, ToolResultPart, ThinkingPart)):
            dump_content(piece, fields, index)
        elif (why := _explain_unsendable(piece, message, out, position)) is not None:
            fields.lose(index, name_part_type(piece), why)
        elif isinstance(piece, ThinkingPart):
            fields.add(index, "thinking", piece.text)
        elif isinstance(piece, ToolCallPart):
            block = dump_call(piece, out.id(position, index, piece))
            out.lose_unfinished(position, index, piece, block["function"].get("arguments"))
            fields.add(index, "tool_calls", block)
    empty = OWN.form(message.native).get("content", "")
    entry = {"role": _ROLE_NAMES[message.role], **fields.dump(empty)}
    return merge_wire_fields(entry, OWN.fields(message.native))


def _is_result(piece: Content, message: Message) -> TypeGuard[ToolResultPart]:
    """True if a piece is written as an Ollama tool message."""
    if message.role is Role.MODEL or not isinstance(piece, ToolResultPart):
        return False
    return piece.run_by != "provider"


def _explain_unsendable(
    piece: ToolCallPart | ToolResultPart | ThinkingPart,
    message: Message,
    out: Outgoing[Quirks],
    position: int,
) -> str | None:
    """Returns why a piece of a message cannot be sent to Ollama, or None if it can."""
    by_model = message.role is Role.MODEL
    if isinstance(piece, ThinkingPart):
        why = out.unreadable[position]
        if not why and (not by_model or not piece.text):
            return "only a model's message has readable thinking here"
        return why
    if isinstance(piece, ToolResultPart) or piece.run_by == "provider":
        return "this format has no tools that the provider runs"
    if by_model:
        return None
    return "calls stand in the model's messages"
