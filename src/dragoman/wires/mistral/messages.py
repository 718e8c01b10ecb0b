"""The conversation: `messages` of the API ⇄ our messages.

Consecutive tool messages are one user message of results. The API wants system messages before all others; one that
is loaded from a later place goes back there, any other becomes a user text marked as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count, groupby
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec.json_values import bounded, merged, rest, says_error
from dragoman.codec.media import as_text, label, text_of
from dragoman.codec.replay import kind_of
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.mistral.assistant import dump_assistant, load_assistant
from dragoman.wires.mistral.chunks import dump_content, load_content
from dragoman.wires.mistral.outgoing import Outgoing, outgoing
from dragoman.wires.mistral.quirks import OWN, Quirks
from dragoman.wires.mistral.results import dump_result, load_result

__all__ = ["dump_conversation", "dump_messages", "load_conversation", "load_messages"]

_ROLES = {"system": Role.SYSTEM, "user": Role.USER}


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
        raise HistoryError("the messages of a Mistral request are a list of objects")
    fresh_ids = (f"call-{number}" for number in count())
    asked: dict[str, ToolCallPart] = {}
    known: set[str] = set()
    messages: list[Message] = []
    for of_results, group in groupby(cast("list[dict[str, Any]]", payload), _tells_a_result):
        if of_results:
            messages.append(Message(Role.USER, tuple([load_result(one, asked, fresh_ids) for one in group])))
            continue
        for one in group:
            if one.get("role") == "assistant":
                messages.append(load_assistant(one, origin, fresh_ids, known))
                asked.update({call.id: call for call in messages[-1].tool_calls})
            else:
                message = _load_said(one)
                if message.role is Role.SYSTEM and any(before.role is not Role.SYSTEM for before in messages):
                    message = message.replace(native=OWN.with_form(message.native, place="here"))
                messages.append(message)
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
    at_head = True
    for position, message in enumerate(out.messages):
        at_head = at_head and message.role is Role.SYSTEM
        if message.role is Role.MODEL:
            if (said := dump_assistant(position, out)) is not None:
                dumped.append(said)
            for place, piece in enumerate(message.content):
                if isinstance(piece, ToolCallPart):
                    sent[piece.id] = out.call_id(position, place, piece)
        elif message.role is Role.SYSTEM and not at_head and OWN.form(message.native).get("place") != "here":
            out.lose(position, None, "system message", "the API takes none after the first others; it is a user's text")
            _append(dumped, {"role": "user", "content": f"<system>\n{message.text}\n</system>"}, position, out)
        else:
            for one in _dump_said(position, sent, out):
                _append(dumped, one, position, out)
    return dumped


def _append(dumped: list[dict[str, Any]], message: dict[str, Any], position: int, out: Outgoing) -> None:
    """The next message, with the bridge to it that the server may want."""
    if out.quirks.bridge and message["role"] == "user" and dumped and dumped[-1]["role"] == "tool":
        out.lose(position, None, "order", "the API wants the model to speak after its tools; a placeholder does")
        dumped.append({"role": "assistant", "content": out.quirks.bridge})
    dumped.append(message)


def _tells_a_result(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "tool"


def _load_said(message: Mapping[str, Any]) -> Message:
    """A system or user message."""
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise HistoryError(f"this API has no role {role!r}; it has system, user, assistant and tool")
    spelled: dict[str, Any] = {}
    content = [
        replace(part, native=OWN.with_form(part.native, here=True)) if isinstance(part, ThinkingPart) else part
        for part in load_content(message, spelled)
    ]
    return Message(_ROLES[role], tuple(content), native=OWN.note(rest(message, "role", "content"), spelled))


def _dump_said(position: int, sent: Mapping[str, str | None], out: Outgoing) -> list[dict[str, Any]]:
    """A system message, or a user's: its results as tool messages, then the rest of it."""
    message = out.messages[position]
    dumped: list[dict[str, Any]] = []
    chunks: list[dict[str, Any]] = []
    later: list[dict[str, Any]] = []
    for place, piece in enumerate(message.content):
        if not isinstance(piece, ToolResultPart) or message.role is Role.SYSTEM or piece.run_by == "provider":
            if out.target and message.role is Role.SYSTEM and isinstance(piece, (DataPart, LinkPart, FilePart)):
                if text_of(piece) is None:
                    out.lose(position, place, label(piece), "a system message holds text only")
                chunks.append({"type": "text", "text": as_text(piece)})
                continue
            thought = isinstance(piece, ThinkingPart) and not _is_here(piece)
            chunk = None if thought else out.chunk(position, place, piece)
            if chunk is None:
                out.lose(position, place, kind_of(piece), "this format has no place for it in such a message")
            else:
                chunks.append(chunk)
            continue
        if chunks:
            out.lose(position, place, "order", "this format has the results of tools before all else")
        answer, media = dump_result(position, place, piece, _sent_id(piece, position, place, sent, out), out)
        dumped.append(answer)
        if media:
            later += [{"type": "text", "text": f"[result of {piece.name or piece.id}]"}, *media]
            out.lose(position, place, "media", "tool messages hold text only; it follows in a user message")
        if piece.is_error and not says_error(piece.result):
            out.lose(position, place, "is_error", "this format has no mark for a failed tool")
    chunks = later + chunks
    if dumped and not chunks:
        return dumped
    if out.target is not None and not chunks:
        out.lose(position, None, "message", "it says nothing, and the API takes no empty message")
        return []
    content = dump_content(chunks, OWN.form(message.native))
    role = "system" if message.role is Role.SYSTEM else "user"
    return [*dumped, merged({"role": role, **content}, OWN.fields(message.native))]


def _is_here(part: ThinkingPart) -> bool:
    """Whether the thinking was loaded from a message that is none of the model's, such as a system prompt that shows how
    to think."""
    return "here" in OWN.form(part.native)


def _sent_id(
    piece: ToolResultPart, position: int, place: int, sent: Mapping[str, str | None], out: Outgoing
) -> str | None:
    """The id that a result answers to, as its call was sent."""
    if piece.id in sent and sent[piece.id] is None:
        return None
    return out.ids.get((position, place), sent.get(piece.id, piece.id))
