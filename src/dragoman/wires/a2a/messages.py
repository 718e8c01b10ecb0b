"""A conversation ⇄ A2A messages: 1.0's are written; those of 0.2 and 0.3 (`kind`, lower-case roles) and of older agents are read too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import bounded, if_list, if_object, if_text, rest
from dragoman.codec.serving import Problem, noted
from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import (
    Content,
    DataPart,
    Message,
    Origin,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.a2a.compact import canonical_type, compact_messages
from dragoman.wires.a2a.content import dump_content, load_content
from dragoman.wires.a2a.quirks import (
    EXTENSION,
    OWN,
    ROLE_NAMES,
    ROLES,
    extras,
    json_of,
    others,
    role_of,
    text_of,
)
from dragoman.wires.a2a.tools import CALL, RESULT

__all__ = [
    "SHARED",
    "dump_message",
    "dump_messages",
    "group_artifacts",
    "load_message",
    "load_messages",
    "task_messages",
    "votes",
]

_READ = ("kind", "messageId", "message_id", "role", "parts", "metadata")
_SNAKE = {"context_id": "contextId", "task_id": "taskId", "reference_task_ids": "referenceTaskIds"}
SHARED = ("state", "result")
"""Artifacts that are no message: what agent and client share, and what came of a run."""
_MARKS = ("messageId", "contextId", "taskId", "referenceTaskIds")


def load_messages(
    payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """A list of messages, one message, or a task (what came before it, and what it gave) → messages.

    Raises:
        HistoryError: it is none of them, or one cannot be read and no problems are noted.
    """
    if isinstance(payload, dict):
        fields = if_object(payload)
        payload = task_messages(fields) if "parts" not in fields else [fields]
    if not isinstance(payload, list):
        raise HistoryError("a conversation in A2A is a list of messages, or a task")
    entries = if_list(payload)
    if problems is None:
        bounded(entries)
    loaded: list[Message] = []
    for index, entry in compact_messages(entries):
        try:
            loaded += load_message(entry, origin)
        except HistoryError as error:
            noted(
                error,
                problems,
                index,
                None if not isinstance(entry, dict) else _fault(if_object(entry)),
            )
    return loaded


def task_messages(task: Mapping[str, Any]) -> list[Any]:
    """The messages of a task: its history, what it gave, and what its state says where somebody is to answer."""
    if not isinstance(task.get("id"), str) and not isinstance(task.get("history"), list):
        raise HistoryError(
            "an object of A2A that holds a conversation is a message, which has parts, or a task"
        )
    history = if_list(task.get("history"))
    given = group_artifacts(task)
    status = if_object(task.get("status"))
    ended = if_object(status.get("message"))
    in_history = {if_text(if_object(entry).get("messageId")) for entry in history}
    is_question = ended and not given and if_text(ended.get("messageId")) not in in_history
    return [*history, *given, *([ended] if is_question else [])]


def group_artifacts(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a task gave, as messages of the agent's: one for each artifact, or for those that our extension says are of one."""
    made: list[dict[str, Any]] = []
    for artifact in map(if_object, if_list(task.get("artifacts"))):
        id_, parts = if_text(artifact.get("artifactId")), if_list(artifact.get("parts"))
        metadata = if_object(artifact.get("metadata"))
        if (
            not parts
            or (id_ in SHARED and artifact.get("name") == id_)
            or metadata.get("retracted") is True
        ):
            continue
        message_id = extras(metadata).get("messageId", "")
        if message_id and made and made[-1]["messageId"] == message_id:
            made[-1]["parts"].extend(parts)
            continue
        kept = {"metadata": metadata} if metadata else {}
        made.append(
            {"messageId": message_id or id_, "role": "ROLE_AGENT", "parts": [*parts], **kept}
        )
    return made


def load_message(entry: Any, origin: Origin | None = None) -> list[Message]:
    """One message → ours: more than one where it holds results among what the agent said.

    Raises:
        HistoryError: it is none.
    """
    if not isinstance(entry, dict):
        raise HistoryError("a message of A2A is a JSON object")
    fields = if_object(entry)
    role = role_of(fields.get("role"))
    if role is None:
        raise HistoryError(
            f"the role of a message is one of {', '.join(ROLES)}, not {fields.get('role')!r:.40}"
        )
    parts = fields.get("parts")
    if not isinstance(parts, list):
        raise HistoryError("the parts of a message are a list; send it")
    held = extras(fields.get("metadata"))
    if (
        "message" in held
        and (exact := _unpacked(held["message"], if_list(parts), role)) is not None
    ):
        is_model = exact.role is Role.MODEL
        return [exact.replace(origin=origin) if is_model and origin is not None else exact]
    content: list[Content] = []
    for part in if_list(parts):
        if not isinstance(part, dict):
            raise HistoryError("a part of a message is a JSON object")
        content += load_content(if_object(part))
    return _split(fields, role, content, origin)


def _split(
    fields: Mapping[str, Any], role: Role, content: list[Content], origin: Origin | None
) -> list[Message]:
    id_ = if_text(fields.get("messageId", fields.get("message_id"))) or None
    left = {_SNAKE.get(name, name): value for name, value in rest(fields, *_READ).items()}
    if left.get("extensions") == [EXTENSION]:
        del left["extensions"]
    native = OWN.note({name: value for name, value in left.items() if value not in (None, "", [])})
    made: list[tuple[Role, list[Content]]] = []
    for piece in content:
        if isinstance(piece, ToolResultPart):
            whose = Role.USER
        elif isinstance(piece, ToolCallPart):
            whose = Role.MODEL
        else:
            whose = role
        if not made or made[-1][0] is not whose:
            made.append((whose, []))
        made[-1][1].append(piece)
    made = made or [(role, [])]
    turn = id_ if len(made) > 1 else None
    return [
        Message(
            whose,
            tuple(pieces),
            id=id_ if at == 0 or id_ is None else f"{id_}:{at}",
            origin=origin if whose is Role.MODEL else None,
            metadata=others(fields.get("metadata")) if at == 0 else {},
            native=native if at == 0 else None,
            turn=turn,
        )
        for at, (whose, pieces) in enumerate(made)
    ]


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 the protocol's
    losses: list[Loss] | None = None,  # noqa: ARG001 nothing is lost: the extension holds what has no field
    extras: bool = True,
) -> list[dict[str, Any]]:
    """Messages → A2A messages. `extras`: whether what the protocol has no field for is written, under our extension."""
    return [
        dump_message(message, f"message-{at}", extras=extras) for at, message in enumerate(messages)
    ]


def dump_message(
    message: Message, spare_id: str = "message", *, extras: bool = True
) -> dict[str, Any]:
    """One message. `spare_id`: of one that has none."""
    parts: list[dict[str, Any]] = []
    places: dict[int, int] = {}
    for at, piece in enumerate(message.content):
        places[at] = len(parts)
        parts += dump_content(piece)
    entry: dict[str, Any] = {
        "messageId": message.id or spare_id,
        "role": ROLE_NAMES[message.role],
        "parts": parts or [{"text": ""}],
        **OWN.fields(message.native),
    }
    metadata: dict[str, Any] = dict(message.own_metadata)
    if extras and not _says_all(message, {**entry, "metadata": metadata}):
        metadata["canonical_type"] = canonical_type(message)
        metadata[EXTENSION] = {"type": "message", "message": _packed(message, places)}
        entry["extensions"] = list(dict.fromkeys([*if_list(entry.get("extensions")), EXTENSION]))
    return {**entry, "metadata": metadata} if metadata else entry


def _says_all(message: Message, entry: Mapping[str, Any]) -> bool:
    """Whether a message is read as it was from what every peer reads."""
    data = [part.get("data") for part in map(if_object, if_list(entry.get("parts")))]
    values = [each for each in data if if_object(each).get("type") not in (CALL, RESULT)]
    if _has_numbers([message.own_metadata, values, OWN.fields(message.native)]):
        return False  # they may be changed on the way
    try:
        read = load_message(dict(entry))
        return len(read) == 1 and read[0].to_json() == message.to_json()
    except HistoryError:
        return False


def _has_numbers(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_numbers, if_object(value).values()))
    if isinstance(value, list):
        return any(map(_has_numbers, if_list(value)))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _packed(message: Message, places: Mapping[int, int]) -> str:
    """The stored form of a message, in which pieces that its parts hold are told by their place."""
    try:
        stored = json_bytes.decode(message.to_json())
    except HistoryError:  # half a character, which no JSON holds
        return ""
    for at, piece in enumerate(message.content):
        if isinstance(piece, TextPart) and piece.native is None:
            stored["content"][at] = {"at": places[at]}
        elif isinstance(piece, DataPart) and not OWN.form(piece.native):
            fields = {
                name: value for name, value in stored["content"][at].items() if name != "data"
            }
            stored["content"][at] = {**fields, "at": places[at]}
    return text_of(stored)


def _unpacked(text: str, parts: list[Any], role: Role) -> Message | None:
    """The inverse; `None` where it cannot be read, or does not fit what it stands beside."""
    stored = if_object(json_of(text))
    content = stored.get("content", [])
    if not stored or not isinstance(content, list):
        return None
    try:
        stored["content"] = [_filled(each, parts) for each in if_list(content)]
        message = Message.from_json(json_bytes.encode(stored))
    except (HistoryError, ValueError, TypeError, LookupError):
        return None
    return message if (message.role is Role.MODEL) == (role is Role.MODEL) else None


def _filled(stored: Any, parts: list[Any]) -> Any:
    place = if_object(stored).get("at")
    if place is None:
        return stored
    if isinstance(place, bool) or not isinstance(place, int) or place < 0:
        raise ValueError("no place")
    [piece] = load_content(if_object(parts[place]))
    if isinstance(piece, TextPart):
        return {"type": "text", "text": piece.text}
    if isinstance(piece, DataPart) and stored.get("type") == "data":
        return {**rest(if_object(stored), "at"), "data": msgspec.to_builtins(piece)["data"]}
    raise ValueError("another piece")


def votes(message: Any) -> int:
    """As in `Wire`."""
    fields = if_object(message)
    if role_of(fields.get("role")) is None or not isinstance(fields.get("parts"), list):
        return 0
    if isinstance(fields["role"], str) and fields["role"].startswith("ROLE_"):
        return 3
    if fields.get("kind") == "message" or "canonical_type" in if_object(fields.get("metadata")):
        return 3
    if fields["role"] == "agent":
        return 2
    return 2 if any(name in fields for name in _MARKS) else 0


def _fault(fields: Mapping[str, Any]) -> str:
    return "role" if role_of(fields.get("role")) is None else "parts"
