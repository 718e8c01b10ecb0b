"""The conversation: the list of messages ⇄ our messages.

Consecutive tool messages are one user message of results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from msgspec.structs import replace

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
from dragoman.codec.outgoing import prepare_outgoing
from dragoman.codec.replay import name_part_type
from dragoman.codec.serving import Problem
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
    call_id,
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

_BRIDGED = "the API wants the model to speak after its tools; a placeholder does"
_ROLES = {Role.USER: "user", Role.MODEL: "assistant"}


def load_messages(
    chat: DialectRecord,
    payload: Any,
    *,
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> list[Message]:
    """The list of messages → ours. `problems`: where what cannot be read is noted, so that the rest
    of it is.

    Raises:
        HistoryError: it is no such list.
    """
    if problems is None:
        check_depth(payload)
    return load_conversation(chat, payload, origin, problems)


def load_conversation(
    chat: DialectRecord, payload: Any, origin: Origin | None, problems: list[Problem] | None
) -> list[Message]:
    """The same for a list of messages that is bounded in its depth, where nothing takes the
    problems."""
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
    """An entry of the list. `calls`: those so far by id; `fresh_ids`: ids for calls that came
    without one."""
    role = entry.get("role")
    if role in chat.result_roles:
        return load_result(chat, entry, calls, fresh_ids)
    if role != "assistant":
        return _load_other(chat, entry)
    answer = _load_plain_answer(chat, entry, origin) or _load_answer(chat, entry, origin, fresh_ids)
    calls.update({call.id: call for call in answer.tool_calls})
    return answer


def _load_other(chat: DialectRecord, entry: JsonMap) -> Message:
    """A system message, or a user's."""
    role = entry.get("role")
    if not isinstance(role, str) or role not in chat.roles:
        raise HistoryError(
            f"{chat.title} has no role {role!r:.100}; it has {', '.join(chat.roles)}, assistant and tool"
        )
    form: Json = {} if role in ("system", "user") else {"role": role}
    content = load_content(chat, entry, "", form)
    return Message(
        chat.roles[role],
        tuple(content),
        native=chat.own.note(read_extra_fields(entry, "role", "content"), form),
    )


def _load_plain_answer(
    chat: DialectRecord, entry: JsonMap, origin: Origin | None
) -> Message | None:
    """A model's message that holds calls of the usual form, and a text or nothing beside them;
    `None`: it is no such."""
    calls, content = if_objects(entry.get(chat.calls)), entry.get("content", ABSENT)
    # role, content and calls: with a fourth field it has something of the vendor's own
    if (
        not calls
        or len(entry) != 3
        or not (content == chat.empty or (isinstance(content, str) and content))
    ):
        return None
    parts = [part for call in calls if (part := load_plain_call(chat, call)) is not None]
    if content == ABSENT or len(parts) < len(calls):
        return None
    return Message(
        Role.MODEL, (TextPart(content), *parts) if content else tuple(parts), origin=origin
    )


def _load_answer(
    chat: DialectRecord, entry: JsonMap, origin: Origin | None, fresh_ids: Iterator[str]
) -> Message:
    """A message of the role `assistant` → the model's. `fresh_ids`: ids for calls that came without
    one."""
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
    """A conversation, without its marks, made ready for its dump. `tools`: those of the request."""
    unmarked, places = strip_all_marks(messages)
    quirks = quirks or chat.quirks()
    fields = {"roles": chat.roles, "tool_media": quirks.tool_media, "places": places}
    fields |= chat.fit(unmarked, target, quirks, tools)
    return prepare_outgoing(OutgoingChat, unmarked, target, quirks, losses, chat=chat, **fields)


def dump_conversation(out: OutgoingChat) -> list[Json]:
    """A conversation on its way out → the list of messages."""
    dumped: list[Json] = []
    sent_ids: dict[str, str | None] = {}
    # Nearly all messages are one text, or calls or results without anything of a format's own:
    # those are written here, without asking the dialect.
    straight = out.chat.straight and not out.bridge
    for position, message in enumerate(out.messages):
        if (
            straight
            and message.native is None
            and (role := _ROLES.get(message.role))
            and (content := message.content)
        ):
            piece = content[0]
            if type(piece) is TextPart and piece.native is None and len(content) == 1:
                dumped.append({"role": role, "content": piece.text})
                continue
            dump = _dump_plain_calls if message.role is Role.MODEL else _dump_plain_results
            if (entries := dump(out, position, content, sent_ids)) is not None:
                dumped += entries
                continue
        if message.role is Role.MODEL:
            dumped += _dump_answer(out, position)
            for index, piece in enumerate(message.content):
                if isinstance(piece, ToolCallPart):
                    sent_ids[piece.id] = call_id(out, position, index, piece)
            continue
        for entry in out.chat.dump_input_message(out, position, sent_ids):
            if out.bridge and entry["role"] == "user" and dumped and dumped[-1]["role"] == "tool":
                out.lose(position, None, Lost.order, _BRIDGED)
                dumped.append({"role": "assistant", "content": out.bridge})
            dumped.append(entry)
    return dumped


def _dump_plain_calls(
    out: OutgoingChat, position: int, content: Sequence[Content], sent_ids: dict[str, str | None]
) -> list[Json] | None:
    """A model's message that holds nothing but calls, without anything of a format's own; `None`:
    it is no such."""
    chat, calls = out.chat, list[Json]()
    for index, piece in enumerate(content):
        if (
            type(piece) is not ToolCallPart
            or piece.native is not None
            or piece.run_by == "provider"
        ):
            return None
        if piece.state != "complete":
            return None
        call_id = sent_ids[piece.id] = out.id(position, index, piece)
        function = {"name": out.name(piece.name), chat.inputs["function"]: arguments_json(piece)}
        calls.append({"id": call_id, "type": "function", "function": function})
    return [
        {
            "role": "assistant",
            **({} if chat.empty == ABSENT else {"content": chat.empty}),
            chat.calls: calls,
        }
    ]


def _dump_plain_results(
    out: OutgoingChat, position: int, content: Sequence[Content], sent_ids: dict[str, str | None]
) -> list[Json] | None:
    """A user's message that holds nothing but results, in the same way."""
    role, entries = out.chat.result_roles[0], list[Json]()
    for index, piece in enumerate(content):
        if (
            type(piece) is not ToolResultPart
            or piece.native is not None
            or piece.run_by == "provider"
        ):
            return None
        call_id = sent_ids.get(piece.id, piece.id)
        if piece.is_error or piece.is_content or call_id is None:
            return None
        result_id = out.ids.get((position, index), call_id)
        entries.append(
            {"role": role, "tool_call_id": result_id, "content": text_or_json(piece.result)}
        )
    return entries


def dump_input_message(
    out: OutgoingChat, position: int, sent_ids: Mapping[str, str | None]
) -> list[Json]:
    """A system message, or a user's: its results as tool messages, then the rest of it. `sent_ids`:
    the ids of calls → those under which they were sent."""
    message = out.messages[position]
    dumped: list[Json] = []
    blocks: list[Json] = []
    later: list[Json] = []
    for index, piece in enumerate(message.content):
        if (
            not isinstance(piece, ToolResultPart)
            or piece.run_by == "provider"
            or message.role is Role.SYSTEM
        ):
            blocks += _dump_block(out, position, index, piece)
            continue
        if blocks:
            out.lose(
                position, index, Lost.order, "this format has the results of tools before all else"
            )
        unnamed = piece.id in sent_ids and sent_ids[piece.id] is None
        result_id = (
            None if unnamed else out.ids.get((position, index), sent_ids.get(piece.id, piece.id))
        )
        answer, media = dump_result(out, position, index, piece, result_id)
        dumped.append(answer)
        if media:
            later += [{"type": "text", "text": f"[result of {piece.name or piece.id}]"}, *media]
            out.lose(
                position,
                index,
                Lost.media,
                "tool messages hold text only; it follows in a user message",
            )
        if piece.is_error and not has_error(piece.result):
            out.lose(position, index, Lost.is_error, "this format has no mark for a failed tool")
    # Media of results follow the results, before what the user said beside them.
    blocks = later + blocks
    if dumped and not blocks:
        return dumped
    if not blocks and out.target is not None and not out.chat.takes_empty:
        out.lose(
            position, None, Lost.message, "it says nothing, and the API takes no empty message"
        )
        return []
    form = out.chat.own.form(message.native)
    role = if_text(form.get("role"))
    if role not in out.roles or out.roles[role] is not message.role:
        role = "system" if message.role is Role.SYSTEM else "user"
    content = dump_content(blocks, "", form, string_only=out.string_only)
    return [
        *dumped,
        merge_wire_fields({"role": role, **content}, out.chat.own.fields(message.native)),
    ]


def _dump_block(out: OutgoingChat, position: int, index: int, piece: Content) -> list[Json]:
    """The block of a piece that is no result, where it has one."""
    of_system = out.messages[position].role is Role.SYSTEM
    if out.target and of_system and isinstance(piece, (DataPart, LinkPart, FilePart)):
        if read_media_text(piece) is None:
            out.lose(
                position,
                index,
                name_part_type(piece),
                "a system message holds text only",
                media_label(piece),
            )
        return [{"type": "text", "text": describe_as_text(piece)}]
    if (block := out.chat.dump_noted_block(out, position, index, piece)) is not None:
        return [block]
    out.lose(
        position, index, name_part_type(piece), "this format has no place for it in such a message"
    )
    return []


def _dump_answer(out: OutgoingChat, position: int) -> list[Json]:
    """A model's message → a message of the role `assistant`; none, where nothing of it is left for
    a target that would refuse it."""
    chat, message, reason = out.chat, out.messages[position], out.unreadable[position]
    thinking: list[ThinkingPart] = []
    indexes: list[int] = []
    body: Json = {}
    for index, piece in enumerate(message.content):
        sendable = _strip_unreadable(out, position, index, piece)
        if sendable is None:
            continue
        if chat.thinking and isinstance(sendable, ThinkingPart):
            thinking.append(sendable)
            indexes.append(index)
            continue
        field, value = chat.dump_piece(out, position, index, sendable)
        if value is None:
            continue
        if field == "content" and chat.calls in body:
            out.lose(position, index, Lost.order, "this format has all text before the calls")
        body[field] = (
            body.get(field, "") + value if isinstance(value, str) else [*body.get(field, []), value]
        )
    if not body and not thinking and out.target is not None and not chat.takes_empty:
        out.lose(
            position,
            None,
            Lost.message,
            "it says nothing, and the API takes no empty message of the model's",
        )
        return []
    form, message_fields = chat.own.form(message.native), chat.own.fields(message.native)
    content = dump_content(body.pop("content", []), chat.empty, form, string_only=out.string_only)
    body |= {field: body[field][0] for field in chat.single if field in body}
    joined: list[int] = []
    thoughts = dump_thinking(chat, thinking, out.thinking, joined) if thinking else {}
    for number in joined:
        out.lose(
            position,
            indexes[number],
            Lost.texts,
            "this format has one text of thinking; they are joined",
        )
    entry = {"role": "assistant", **content, **thoughts, **body}
    if (
        out.target is not None
        and entry.get("content", "") is None
        and not ({chat.calls, *chat.alone} & body.keys())
    ):
        # taken where null is refused
        entry["content"] = ""
    if message_fields and reason is not None and chat.signed:
        out.lose(position, None, Lost.field, reason, ", ".join(message_fields))
        return [entry]
    return [merge_wire_fields(entry, message_fields)]


def dump_piece(out: OutgoingChat, position: int, index: int, piece: Content) -> tuple[str, Any]:
    """A piece of the model's message → the field of the message that holds it, and what it adds to
    that."""
    if isinstance(piece, ToolCallPart):
        sent_id, exact = call_id(out, position, index, piece), out.returns_to_origin(position)
        block = dump_call(out.chat, piece, sent_id, out.name(piece.name), exact=exact)
        if piece.state != "complete":
            function = if_object(block.get("function"))
            out.lose_unfinished(position, index, piece, function.get(out.chat.inputs["function"]))
        return out.chat.calls, block
    return "content", out.chat.dump_noted_block(out, position, index, piece)


def _strip_unreadable(
    out: OutgoingChat, position: int, index: int, piece: Content
) -> Content | None:
    """A piece as it may be sent; `None` where it may not. What is lost is noted."""
    reason, native_of = out.unreadable[position], out.chat.own
    if (why := out.chat.explain_unsendable(out, position, piece)) is not None:
        out.lose(position, index, name_part_type(piece), why)
        return None
    if (
        reason is not None
        and out.chat.signed
        and (fields := read_extra_fields(native_of.fields(piece.native), "id"))
    ):
        out.lose(position, index, Lost.field, reason, ", ".join(fields))
        return replace(piece, native=native_of.without_fields(piece.native))
    return piece


def explain_unsendable(out: OutgoingChat, position: int, piece: Content) -> str | None:
    """Why a piece of a model's message cannot be sent; `None`: it can."""
    reason, is_ours = out.unreadable[position], out.chat.own.is_ours(piece.native)
    if isinstance(piece, ThinkingPart):
        return reason or (None if is_ours or piece.text else "it is signed for another format")
    if isinstance(piece, ProviderPart):
        return reason or (None if is_ours else "it is a block of another format")
    if isinstance(piece, (ToolCallPart, ToolResultPart)) and piece.run_by == "provider":
        return reason or "this API takes no record of tools that it ran"
    if isinstance(piece, ToolResultPart):
        return "a result stands in a user message"
    if isinstance(piece, (DataPart, LinkPart, FilePart)) and not out.returns_to_origin(position):
        return "a model's message holds no media in this format"
    return None
