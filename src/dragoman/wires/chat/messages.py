"""Reads and writes the conversation: the list of messages of a request.

Reading: each entry becomes a message, and consecutive tool messages become one user message of
results. Writing is the reverse: the results of a user message come first, each as a tool message,
and the rest of it follows.

Most messages of a long conversation are plain: a text, calls or results without anything of a
vendor's own. `_load_plain_answer`, `_dump_plain_calls` and `_dump_plain_results` are short ways for
those. All others take the long way through the record's operations (`dump_input_message`,
`dump_piece`, `explain_unsendable`), which a dialect may override.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, TypeGuard

from msgspec.structs import replace

from dragoman.codec.citations import lose_citations
from dragoman.codec.json_values import (
    check_depth,
    has_error,
    if_object,
    if_objects,
    if_text,
    merge_wire_fields,
    read_extra_fields,
    text_or_json,
)
from dragoman.codec.marks import strip_all_marks
from dragoman.codec.media import describe_as_text, media_label, read_media_text
from dragoman.codec.message_list import ABSENT, dump_content, load_list
from dragoman.codec.outgoing_conversation import is_provider_tool, prepare_outgoing
from dragoman.codec.serving import Problem
from dragoman.codec.signature_check import name_part_type
from dragoman.errors import HistoryError
from dragoman.fold import arguments_json
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
from dragoman.wires.chat.content import dump_thinking, load_content, load_thinking
from dragoman.wires.chat.record import DialectRecord, OutgoingChat
from dragoman.wires.chat.tools import (
    choose_call_id,
    dump_call,
    dump_result,
    load_calls,
    load_plain_call,
    load_result,
)

__all__ = [
    "dump_conversation",
    "dump_input_message",
    "dump_piece",
    "load_conversation",
    "load_messages",
    "prepare_conversation",
    "explain_unsendable",
]

_NO_EMPTY = "it says nothing, and the API takes no empty message"
_NO_EMPTY_ANSWER = "it says nothing, and the API takes no empty message of the model's"
_RESULTS_FIRST = "this format has the results of tools before all else"
_TEXT_RESULTS = "tool messages hold text only; it follows in a user message"
_BRIDGED = "the API wants the model to speak after its tools; a placeholder does"
_ROLES = {Role.USER: "user", Role.MODEL: "assistant"}


def load_messages(
    chat: DialectRecord,
    payload: Any,
    *,
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> list[Message]:
    """Reads the list of messages. With `problems`, what cannot be read is noted there, and the rest
    is read.

    Raises:
        HistoryError: it is not such a list.
    """
    if problems is None:
        check_depth(payload)
    return load_conversation(chat, payload, origin, problems)


def load_conversation(
    chat: DialectRecord, payload: Any, origin: Origin | None, problems: list[Problem] | None
) -> list[Message]:
    """Reads a list of messages whose depth has been checked, unless `problems` takes what is too
    deep."""
    fresh_ids = (f"call-{number}" for number in count())
    calls: dict[str, ToolCallPart] = {}
    messages = load_list(
        payload,
        lambda entry: _load_entry(chat, entry, origin, calls, fresh_ids),
        origin,
        problems,
        what=f"a {chat.title} request",
        roles=(*chat.roles, *chat.result_roles, "assistant"),
    )
    return chat.note_loaded(messages)


def _load_entry(
    chat: DialectRecord,
    entry: JsonMap,
    origin: Origin | None,
    calls: dict[str, ToolCallPart],
    fresh_ids: Iterator[str],
) -> Message | ToolResultPart:
    """Reads one entry of the list of Chat messages. `calls`: the calls so far by id. `fresh_ids`:
    ids for calls that came without one."""
    role = entry.get("role")
    if role in chat.result_roles:
        return load_result(chat, entry, calls, fresh_ids)
    if role != "assistant":
        return _load_other(chat, entry)
    answer = _load_plain_answer(chat, entry, origin) or _load_answer(chat, entry, origin, fresh_ids)
    calls.update({call.id: call for call in answer.tool_calls})
    return answer


def _load_other(chat: DialectRecord, entry: JsonMap) -> Message:
    """Reads a system or user message of a Chat request."""
    role = entry.get("role")
    if not isinstance(role, str) or role not in chat.roles:
        raise HistoryError(
            f"{chat.title} has no role {role!r:.100}; it has {', '.join(chat.roles)}, "
            "assistant and tool"
        )
    form: Json = {} if role in ("system", "user") else {"role": role}
    content = load_content(chat, entry, "", form)
    native = chat.own.note(read_extra_fields(entry, "role", "content"), form)
    return Message(chat.roles[role], tuple(content), native=native)


def _load_plain_answer(
    chat: DialectRecord, entry: JsonMap, origin: Origin | None
) -> Message | None:
    """Reads a model's message that holds calls of the usual form and at most a text beside them.
    None if the message holds anything else."""
    calls, content = if_objects(entry.get(chat.calls)), entry.get("content", ABSENT)
    # Role, content and calls: a fourth field would be something of the vendor's own.
    if not calls or len(entry) != 3 or content == ABSENT:
        return None
    if content != chat.empty and not (isinstance(content, str) and content):
        return None
    parts = [part for call in calls if (part := load_plain_call(chat, call)) is not None]
    if len(parts) < len(calls):
        return None
    text = [TextPart(content)] if content else []
    return Message(Role.MODEL, (*text, *parts), origin=origin)


def _load_answer(
    chat: DialectRecord, entry: JsonMap, origin: Origin | None, fresh_ids: Iterator[str]
) -> Message:
    """Reads a message of the role `assistant`. `fresh_ids`: ids for calls that came without one."""
    form: Json = {}
    thinking, read = load_thinking(chat, entry)
    content: list[Content] = [*thinking, *load_content(chat, entry, chat.empty, form)]
    for field, load in {**chat.fields, chat.calls: load_calls}.items():
        if field in entry and (pieces := load(chat, entry[field], fresh_ids)):
            content += pieces
            read = (*read, field)
    native = chat.own.note(read_extra_fields(entry, "role", "content", *read), form)
    return Message(Role.MODEL, tuple(content), origin=origin, native=native)


def prepare_conversation(
    chat: DialectRecord,
    messages: Iterable[Message],
    target: Origin | None,
    quirks: Any,
    losses: list[Loss] | None,
    tools: Sequence[ToolSpec],
) -> OutgoingChat:
    """Returns a conversation that is ready to be written as Chat messages, without its marks.
    `tools`: the request's."""
    unmarked, part_indexes = strip_all_marks(messages)
    quirks = quirks or chat.quirks()
    fields = {"roles": chat.roles, "tool_media": quirks.tool_media, "part_indexes": part_indexes}
    fields |= chat.fit(unmarked, target, quirks, tools)
    return prepare_outgoing(OutgoingChat, unmarked, target, quirks, losses, chat=chat, **fields)


def _needs_bridge(out: OutgoingChat, dumped: Sequence[Json], entry: JsonMap) -> bool:
    """True if a vendor that takes no user message after a tool message would refuse this one."""
    after_results = bool(dumped) and dumped[-1]["role"] == "tool"
    return bool(out.bridge) and after_results and entry["role"] == "user"


def dump_conversation(out: OutgoingChat) -> list[Json]:
    """Writes a conversation as the list of messages."""
    lose_citations(out, out.chat.name)
    dumped: list[Json] = []
    sent_ids: dict[str, str | None] = {}
    # The bridge is set between messages, which the short ways do not look at.
    straight = out.chat.straight and not out.bridge
    for position, message in enumerate(out.messages):
        entries = _dump_plain(out, position, sent_ids) if straight else None
        if entries is not None:
            dumped += entries
        elif message.role is Role.MODEL:
            dumped += _dump_answer(out, position)
            for index, piece in enumerate(message.content):
                if isinstance(piece, ToolCallPart):
                    sent_ids[piece.id] = choose_call_id(out, position, index, piece)
        else:
            for entry in out.chat.dump_input_message(out, position, sent_ids):
                if _needs_bridge(out, dumped, entry):
                    out.lose(position, None, Lost.order, _BRIDGED)
                    dumped.append({"role": "assistant", "content": out.bridge})
                dumped.append(entry)
    return dumped


def _dump_plain(
    out: OutgoingChat, position: int, sent_ids: dict[str, str | None]
) -> list[Json] | None:
    """Writes a message that holds one text, calls, a text and calls, or results, without anything
    of a format's own. None if it holds anything else. Nearly all messages are plain."""
    message = out.messages[position]
    role, content = _ROLES.get(message.role), message.content
    if role is None or not content or out.chat.own.shapes(message.native):
        return None
    piece = content[0]
    if type(piece) is TextPart and piece.native is None and len(content) == 1:
        return [{"role": role, "content": piece.text}]
    if message.role is Role.MODEL:
        return _dump_plain_calls(out, position, content, sent_ids)
    return _dump_plain_results(out, position, content, sent_ids)


def _dump_plain_calls(
    out: OutgoingChat, position: int, content: Sequence[Content], sent_ids: dict[str, str | None]
) -> list[Json] | None:
    """Writes a model's message that holds complete calls, with or without one text before them.
    None if it holds anything else."""
    chat, calls, first, start = out.chat, list[Json](), content[0], 0
    text = {} if chat.empty == ABSENT else {"content": chat.empty}
    if type(first) is TextPart and first.native is None:
        text, start = {"content": first.text}, 1
    for index, piece in enumerate(content[start:], start):
        if type(piece) is not ToolCallPart or piece.native is not None:
            return None
        if piece.run_by == "provider" or piece.state != "complete":
            return None
        sent_id = sent_ids[piece.id] = out.id(position, index, piece)
        function = {"name": out.name(piece.name), chat.inputs["function"]: arguments_json(piece)}
        calls.append({"id": sent_id, "type": "function", "function": function})
    return [{"role": "assistant", **text, chat.calls: calls}]


def _dump_plain_results(
    out: OutgoingChat, position: int, content: Sequence[Content], sent_ids: dict[str, str | None]
) -> list[Json] | None:
    """Writes a user's message that holds plain results alone. None if it holds anything else."""
    role, entries = out.chat.result_roles[0], list[Json]()
    for index, piece in enumerate(content):
        if type(piece) is not ToolResultPart or piece.native is not None:
            return None
        if piece.run_by == "provider" or piece.is_error or piece.is_content:
            return None
        call_id = sent_ids.get(piece.id, piece.id)
        if call_id is None:
            return None
        result_id = out.ids.get((position, index), call_id)
        text = text_or_json(piece.result)
        entries.append({"role": role, "tool_call_id": result_id, "content": text})
    return entries


def _dump_client_result(
    out: OutgoingChat,
    position: int,
    index: int,
    piece: ToolResultPart,
    sent_ids: Mapping[str, str | None],
) -> tuple[Json, list[Json]]:
    """Writes the tool message of a result. Also returns blocks of its media for a user message."""
    sent_id = sent_ids.get(piece.id, piece.id)
    # None: the call was sent without an id, so its result has none either.
    result_id = None if sent_id is None else out.ids.get((position, index), sent_id)
    result, media = dump_result(out, position, index, piece, result_id)
    if media:
        name = piece.name or piece.id
        media = [{"type": "text", "text": f"[result of {name}]"}, *media]
        out.lose(position, index, Lost.media, _TEXT_RESULTS)
    if piece.is_error and not has_error(piece.result):
        out.lose(position, index, Lost.is_error, "this format has no mark for a failed tool")
    return result, media


def dump_input_message(
    out: OutgoingChat, position: int, sent_ids: Mapping[str, str | None]
) -> list[Json]:
    """Writes a system or user message: its results as tool messages, then the rest of it.

    `sent_ids`: the ids of calls → the ids under which they were sent.
    """
    message = out.messages[position]
    results: list[Json] = []
    blocks: list[Json] = []
    media_blocks: list[Json] = []
    for index, piece in enumerate(message.content):
        if message.role is Role.SYSTEM or not _is_client_result(piece):
            blocks += _dump_block(out, position, index, piece)
            continue
        if blocks:
            out.lose(position, index, Lost.order, _RESULTS_FIRST)
        result, media = _dump_client_result(out, position, index, piece, sent_ids)
        results.append(result)
        media_blocks += media
    # Media of results follow the results, before what the user said beside them.
    blocks = media_blocks + blocks
    if results and not blocks:
        return results
    if not blocks and out.target is not None and not out.chat.takes_empty:
        out.lose(position, None, Lost.message, _NO_EMPTY)
        return []
    return [*results, _dump_blocks(out, message, blocks)]


def _is_client_result(piece: Content) -> TypeGuard[ToolResultPart]:
    """True if a piece is the result of a tool that the provider did not run."""
    return isinstance(piece, ToolResultPart) and piece.run_by != "provider"


def _dump_blocks(out: OutgoingChat, message: Message, blocks: list[Json]) -> Json:
    """Writes a system or user message that holds these blocks."""
    native_of = out.chat.own
    form = native_of.form(message.native)
    role = if_text(form.get("role"))
    # The message may have been loaded with a role that the target does not know.
    if role not in out.roles or out.roles[role] is not message.role:
        role = "system" if message.role is Role.SYSTEM else "user"
    content = dump_content(blocks, "", form, string_only=out.string_only)
    return merge_wire_fields({"role": role, **content}, native_of.fields(message.native))


def _dump_block(out: OutgoingChat, position: int, index: int, piece: Content) -> list[Json]:
    """Writes the block in a Chat message of a piece other than a result. Returns an empty list if
    it has none."""
    of_system = out.messages[position].role is Role.SYSTEM
    if out.target and of_system and isinstance(piece, (DataPart, LinkPart, FilePart)):
        if read_media_text(piece) is None:
            why = "a system message holds text only"
            out.lose(position, index, name_part_type(piece), why, media_label(piece))
        return [{"type": "text", "text": describe_as_text(piece)}]
    block = out.chat.dump_noted_block(out, position, index, piece)
    if block is not None:
        return [block]
    out.lose(
        position, index, name_part_type(piece), "this format has no place for it in such a message"
    )
    return []


def _dump_answer(out: OutgoingChat, position: int) -> list[Json]:
    """Writes a model's message. Returns an empty list if nothing of it is left and the target would
    refuse it."""
    chat, message = out.chat, out.messages[position]
    body, thinking = _dump_pieces(out, position)
    if not body and not thinking and out.target is not None and not chat.takes_empty:
        out.lose(position, None, Lost.message, _NO_EMPTY_ANSWER)
        return []
    form = chat.own.form(message.native)
    content = dump_content(body.pop("content", []), chat.empty, form, string_only=out.string_only)
    body |= {field: body[field][0] for field in chat.single if field in body}
    thoughts = _dump_thoughts(out, position, thinking)
    entry = {"role": "assistant", **content, **thoughts, **body}
    needs_content = body.keys().isdisjoint((chat.calls, *chat.alone))
    if out.target is not None and needs_content and entry.get("content", "") is None:
        # Vendors that refuse null take an empty text.
        entry["content"] = ""
    return [merge_wire_fields(entry, _find_own_fields(out, position))]


def _dump_pieces(out: OutgoingChat, position: int) -> tuple[Json, dict[int, ThinkingPart]]:
    """Writes the pieces of a model's message into the fields of its entry. Also returns the
    thinking that can be sent, by the index of its piece."""
    chat = out.chat
    thinking: dict[int, ThinkingPart] = {}
    body: Json = {}
    for index, piece in enumerate(out.messages[position].content):
        sendable = _strip_unreadable(out, position, index, piece)
        if sendable is None:
            continue
        if chat.thinking and isinstance(sendable, ThinkingPart):
            thinking[index] = sendable
            continue
        field, value = chat.dump_piece(out, position, index, sendable)
        if value is None:
            continue
        if field == "content" and chat.calls in body:
            out.lose(position, index, Lost.order, "this format has all text before the calls")
        if isinstance(value, str):
            body[field] = body.get(field, "") + value
        else:
            body.setdefault(field, []).append(value)
    return body, thinking


def _find_own_fields(out: OutgoingChat, position: int) -> Json:
    """Returns a model message's own fields, or none, with a loss, if the target cannot read them."""
    chat, reason = out.chat, out.unreadable[position]
    fields = chat.own.fields(out.messages[position].native)
    if fields and reason is not None and chat.signed:
        out.lose(position, None, Lost.field, reason, ", ".join(fields))
        return {}
    return fields


def _dump_thoughts(out: OutgoingChat, position: int, thinking: Mapping[int, ThinkingPart]) -> Json:
    """Writes the thinking of a message. `thinking`: index of each part → the part."""
    joined: list[int] = []
    fields = dump_thinking(out.chat, [*thinking.values()], out.thinking, joined)
    indexes = list(thinking)
    for number in joined:
        why = "this format has one text of thinking; they are joined"
        out.lose(position, indexes[number], Lost.texts, why)
    return fields


def dump_piece(out: OutgoingChat, position: int, index: int, piece: Content) -> tuple[str, Any]:
    """Returns the field of the message that holds a piece of the model's, and the value that it
    adds there."""
    chat = out.chat
    if not isinstance(piece, ToolCallPart):
        return "content", chat.dump_noted_block(out, position, index, piece)
    sent_id, exact = choose_call_id(out, position, index, piece), out.returns_to_origin(position)
    block = dump_call(chat, piece, sent_id, out.name(piece.name), exact=exact)
    if piece.state != "complete":
        function = if_object(block.get("function"))
        out.lose_unfinished(position, index, piece, function.get(chat.inputs["function"]))
    return chat.calls, block


def _strip_unreadable(
    out: OutgoingChat, position: int, index: int, piece: Content
) -> Content | None:
    """Returns a piece of a Chat message as it may be sent, or None if it may not. Notes what is
    lost."""
    reason, native_of = out.unreadable[position], out.chat.own
    why = out.chat.explain_unsendable(out, position, piece)
    if why is not None:
        out.lose(position, index, name_part_type(piece), why)
        return None
    if reason is None or not out.chat.signed:
        return piece
    fields = read_extra_fields(native_of.fields(piece.native), "id")
    if not fields:
        return piece
    out.lose(position, index, Lost.field, reason, ", ".join(fields))
    return replace(piece, native=native_of.without_fields(piece.native))


def _explain_foreign(piece: ThinkingPart | ProviderPart) -> str | None:
    """Returns why thinking or a Chat block of another format cannot be sent, or None if it can."""
    if isinstance(piece, ProviderPart):
        return "it is a block of another format"
    # Thinking that has a text is sent as that text.
    if not piece.text:
        return "it is signed for another format"
    return None


def explain_unsendable(out: OutgoingChat, position: int, piece: Content) -> str | None:
    """Returns why a piece of a model's message cannot be sent, or None if it can."""
    reason = out.unreadable[position]
    if isinstance(piece, (ThinkingPart, ProviderPart)):
        if reason is None and not out.chat.own.is_ours(piece.native):
            return _explain_foreign(piece)
        return reason
    if is_provider_tool(piece):
        return reason or "this API takes no record of tools that it ran"
    if isinstance(piece, ToolResultPart):
        return "a result stands in a user message"
    if isinstance(piece, (DataPart, LinkPart, FilePart)) and not out.returns_to_origin(position):
        return "a model's message holds no media in this format"
    return None
