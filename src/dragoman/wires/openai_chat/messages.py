"""The conversation: `messages` of Chat Completions ⇄ our messages.

Consecutive tool messages are one user message of results. A `developer` message is a system message so spelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count, groupby
from typing import Any, cast

from dragoman.codec.json_values import bounded, merged, rest, says_error
from dragoman.codec.media import as_text, label, text_of
from dragoman.codec.replay import kind_of
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import DataPart, FilePart, LinkPart, Message, Origin, Role, ToolCallPart, ToolResultPart
from dragoman.wires.openai_chat.assistant import dump_assistant, load_assistant
from dragoman.wires.openai_chat.content import dump_content, load_content
from dragoman.wires.openai_chat.outgoing import Outgoing, outgoing
from dragoman.wires.openai_chat.quirks import OWN, Quirks
from dragoman.wires.openai_chat.results import dump_result, load_result

__all__ = ["dump_conversation", "dump_messages", "load_conversation", "load_messages"]

_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER}


def load_messages(payload: Any, *, origin: Origin | None = None) -> list[Message]:
    """The list of messages → ours.

    Raises:
        HistoryError: it is no such list.
    """
    bounded(payload)
    return load_conversation(payload, origin)


def load_conversation(payload: Any, origin: Origin | None) -> list[Message]:
    """The same for a list of messages that is bounded in its depth."""
    if not isinstance(payload, list) or not all(isinstance(message, dict) for message in cast("list[Any]", payload)):
        raise HistoryError("the messages of Chat Completions are a list of objects")
    fresh_ids = (f"call-{number}" for number in count())
    asked: dict[str, ToolCallPart] = {}
    messages: list[Message] = []
    for of_results, group in groupby(cast("list[dict[str, Any]]", payload), _tells_a_result):
        if of_results:
            messages.append(Message(Role.USER, tuple([load_result(one, asked, fresh_ids) for one in group])))
            continue
        for one in group:
            if one.get("role") == "assistant":
                messages.append(load_assistant(one, origin, fresh_ids))
                asked.update({call.id: call for call in messages[-1].tool_calls})
            else:
                messages.append(_load_said(one))
    return messages


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,
    quirks: Quirks | None = None,
    losses: list[Loss] | None = None,
) -> list[dict[str, Any]]:
    """Messages → the list of messages. What the format or its target cannot hold is added to `losses`."""
    return dump_conversation(outgoing(messages, target, quirks, losses))


def dump_conversation(out: Outgoing) -> list[dict[str, Any]]:
    """A conversation on its way out → the list of messages."""
    dumped: list[dict[str, Any]] = []
    sent: dict[str, str | None] = {}
    for position, message in enumerate(out.messages):
        if message.role is Role.MODEL:
            dumped.append(dump_assistant(position, out))
            for place, piece in enumerate(message.content):
                if isinstance(piece, ToolCallPart):
                    sent[piece.id] = out.call_id(position, place, piece)
        else:
            dumped += _dump_said(position, sent, out)
    return dumped


def _tells_a_result(message: Mapping[str, Any]) -> bool:
    return message.get("role") in ("tool", "function")


def _load_said(message: Mapping[str, Any]) -> Message:
    """A system, developer or user message."""
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise HistoryError(f"Chat Completions has no role {role!r}; it has system, developer, user, assistant and tool")
    spelled: dict[str, Any] = {"role": role} if role == "developer" else {}
    content = load_content(message, "", spelled)
    return Message(_ROLES[role], tuple(content), native=OWN.note(rest(message, "role", "content"), spelled))


def _dump_said(position: int, sent: Mapping[str, str | None], out: Outgoing) -> list[dict[str, Any]]:
    """A system message, or a user's: its results as tool messages, then the rest of it."""
    message = out.messages[position]
    dumped: list[dict[str, Any]] = []
    blocks: list[dict[str, Any]] = []
    later: list[dict[str, Any]] = []
    for place, piece in enumerate(message.content):
        if not isinstance(piece, ToolResultPart) or piece.run_by == "provider" or message.role is Role.SYSTEM:
            if out.target and message.role is Role.SYSTEM and isinstance(piece, (DataPart, LinkPart, FilePart)):
                if text_of(piece) is None:
                    out.lose(position, place, label(piece), "a system message holds text only")
                blocks.append({"type": "text", "text": as_text(piece)})
            elif (block := out.block(position, place, piece)) is None:
                out.lose(position, place, kind_of(piece), "this format has no place for it in such a message")
            else:
                blocks.append(block)
            continue
        if blocks:
            out.lose(position, place, "order", "this format has the results of tools before all else")
        answer, media = dump_result(position, place, piece, _sent_id(piece, position, place, sent, out), out)
        dumped.append(answer)
        if media:
            later += [{"type": "text", "text": f"[result of {piece.name or piece.id}]"}, *media]
            out.lose(position, place, "media", "tool messages hold text only; it follows in a user message")
        if piece.is_error and not says_error(piece.result):
            out.lose(position, place, "is_error", "this format has no mark for a failed tool")
    blocks = later + blocks
    if dumped and not blocks:
        return dumped
    spelled = OWN.form(message.native)
    role = "user"
    if message.role is Role.SYSTEM:
        role = "developer" if spelled.get("role") == "developer" and out.quirks.developer else "system"
    content = dump_content(blocks, "", spelled, string_only=out.quirks.string_content)
    return [*dumped, merged({"role": role, **content}, OWN.fields(message.native))]


def _sent_id(
    piece: ToolResultPart, position: int, place: int, sent: Mapping[str, str | None], out: Outgoing
) -> str | None:
    """The id that a result answers to, as its call was sent."""
    if piece.id in sent and sent[piece.id] is None:
        return None
    return out.ids.get((position, place), sent.get(piece.id, piece.id))
