"""A conversation ⇄ A2A messages: 1.0's are written; those of 0.2 and 0.3 (`kind`, lower-case roles)
and of older agents are read too.

A message whose plain reading is not the message (`_is_lossless`) carries its stored form under our
extension. Texts and files that its parts hold already are not repeated there: an entry `at` names
the part (`_pack`, `_unpack`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import (
    check_depth,
    if_list,
    if_object,
    if_text,
    pick,
    read_extra_fields,
)
from dragoman.codec.memos import disown_memos, load_from_client, select_visible
from dragoman.codec.opening import hide_openings
from dragoman.codec.serving import Problem, note_problem
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import (
    Content,
    DataPart,
    Message,
    Native,
    Origin,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.a2a.compact import canonical_type, compact_messages
from dragoman.wires.a2a.content import dump_content, load_content
from dragoman.wires.a2a.quirks import (
    CANONICAL,
    EXTENSION,
    OWN,
    ROLE_NAMES,
    ROLES,
    app_metadata,
    json_of,
    read_carried,
    role_of,
    text_of,
)
from dragoman.wires.a2a.tools import CALL, RESULT

__all__ = [
    "SHARED",
    "dump_message",
    "dump_messages",
    "group_artifacts",
    "keep_protocol_fields",
    "load_message",
    "load_messages",
    "task_messages",
    "votes",
]

_READ = ("kind", "messageId", "message_id", "role", "parts", "metadata")
_MESSAGE_FIELDS = (
    "messageId",
    "role",
    "parts",
    "contextId",
    "taskId",
    "extensions",
    "referenceTaskIds",
)
"""Fields of a message beside its metadata."""
_SNAKE = {
    "context_id": "contextId",
    "task_id": "taskId",
    "reference_task_ids": "referenceTaskIds",
}
SHARED = ("state", "result")
"""Names of artifacts that are no message: the shared state, and the result of a run."""
_OWNERS: Mapping[type, Role] = {ToolResultPart: Role.USER, ToolCallPart: Role.MODEL}
"""Type of a piece → the role that it always has, whoever sends it."""
_FIELD_NAMES = ("messageId", "contextId", "taskId", "referenceTaskIds")


def load_messages(
    payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """Returns the messages in a list of A2A messages, a single message or a task.

    Raises:
        HistoryError: the payload is none of these, or a message cannot be read and `problems` is
            None.
    """
    if isinstance(payload, dict):
        fields = if_object(payload)
        if "parts" not in fields:
            payload = task_messages(fields)
        else:
            payload = [fields]
    if not isinstance(payload, list):
        raise HistoryError("a conversation in A2A is a list of messages, or a task")
    entries = if_list(payload)
    if problems is None:
        check_depth(entries)
    loaded: list[Message] = []
    for index, entry in compact_messages(entries):
        try:
            loaded += load_message(entry, origin)
        except HistoryError as error:
            note_problem(error, problems, index, _faulty_field(entry))
    return loaded


def task_messages(task: JsonMap) -> list[Any]:
    """Returns the A2A messages of a task: its history, its artifacts, and the question in its
    status.

    Raises:
        HistoryError: the object is no task.
    """
    if not isinstance(task.get("id"), str) and not isinstance(task.get("history"), list):
        raise HistoryError(
            "an object of A2A that holds a conversation is a message, which has parts, or a task"
        )
    history, answers = if_list(task.get("history")), group_artifacts(task)
    message = if_object(if_object(task.get("status")).get("message"))
    history_ids = {if_text(if_object(entry).get("messageId")) for entry in history}
    if message and not answers and if_text(message.get("messageId")) not in history_ids:
        answers = [message]
    return [*history, *answers]


def group_artifacts(task: JsonMap) -> list[Json]:
    """Returns the A2A artifacts of a task as agent messages.

    Artifacts that the extension assigns to one message become one again. Shared and retracted
    artifacts are left out.
    """
    messages: list[Json] = []
    for artifact in map(if_object, if_list(task.get("artifacts"))):
        id_, parts = if_text(artifact.get("artifactId")), if_list(artifact.get("parts"))
        metadata = if_object(artifact.get("metadata"))
        is_shared = id_ in SHARED and artifact.get("name") == id_
        if not parts or is_shared or metadata.get("retracted") is True:
            continue
        # Our own encoder writes an artifact a part; those of one message are one again.
        message_id = read_carried(metadata).get("messageId", "")
        if message_id and messages and messages[-1]["messageId"] == message_id:
            messages[-1]["parts"].extend(parts)
            continue
        message = {
            "messageId": message_id or id_,
            "role": "ROLE_AGENT",
            "parts": [*parts],
        }
        messages.append({**message, "metadata": metadata} if metadata else message)
    return messages


def load_message(entry: Any, origin: Origin | None = None) -> list[Message]:
    """Returns the messages in one A2A message: several if it mixes tool results with an agent's
    words.

    Raises:
        HistoryError: it cannot be read.
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
    carried = read_carried(fields.get("metadata")).get("message")
    if carried is None:
        exact = None
    else:
        exact = _unpack(carried, if_list(parts), role)
    if exact is not None:
        is_answer = exact.role is Role.MODEL
        [exact] = load_from_client([exact])
        return [exact.replace(origin=origin) if is_answer and origin is not None else exact]
    content: list[Content] = []
    for part in if_list(parts):
        if not isinstance(part, dict):
            raise HistoryError("a part of a message is a JSON object")
        content += load_content(if_object(part))
    return disown_memos(_split_roles(fields, role, content, origin))


def _split_roles(
    fields: JsonMap, role: Role, content: list[Content], origin: Origin | None
) -> list[Message]:
    """Returns the messages of one A2A message. Tool results become the user's and calls the
    model's, whoever sends them."""
    runs: list[tuple[Role, list[Content]]] = []
    for piece in content:
        owner = _OWNERS.get(type(piece), role)
        if not runs or runs[-1][0] is not owner:
            runs.append((owner, []))
        runs[-1][1].append(piece)
    id_ = if_text(fields.get("messageId", fields.get("message_id"))) or None
    native = _load_native(fields)
    messages = [
        Message(
            owner,
            tuple(pieces),
            id=id_ if number == 0 or id_ is None else f"{id_}:{number}",
            origin=origin if owner is Role.MODEL else None,
            turn=id_ if len(runs) > 1 else None,
        )
        for number, (owner, pieces) in enumerate(runs or [(role, [])])
    ]
    # What stands beside the parts is told once, with the first message.
    first = messages[0].replace(metadata=app_metadata(fields.get("metadata")), native=native)
    return [first, *messages[1:]]


def _load_native(fields: JsonMap) -> Native:
    """Returns the fields of an A2A message that a message has no field for."""
    unread = {
        _SNAKE.get(name, name): value for name, value in read_extra_fields(fields, *_READ).items()
    }
    if unread.get("extensions") == [EXTENSION]:
        del unread["extensions"]
    return OWN.note({name: value for name, value in unread.items() if value not in (None, "", [])})


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 the protocol's
    losses: list[Loss] | None = None,  # noqa: ARG001 nothing is lost: the extension holds what has no field
    extras: bool = True,
) -> list[Json]:
    """Returns a conversation as A2A messages.

    Args:
        messages: the conversation.
        target: unused, since A2A messages do not depend on the peer.
        losses: unused, since the extension holds what has no field.
        extras: False to leave the extension out.
    """
    return [
        dump_message(message, f"message-{index}", extras=extras)
        for index, message in select_visible(messages)
    ]


def dump_message(message: Message, spare_id: str = "message", *, extras: bool = True) -> Json:
    """Returns one A2A message. `spare_id` is the id for a message that has none."""
    [message] = hide_openings([message])
    parts: list[Json] = []
    indexes: list[int] = []
    for piece in message.content:
        indexes.append(len(parts))
        parts += dump_content(piece)
    entry: Json = {
        "messageId": message.id or spare_id,
        "role": ROLE_NAMES[message.role],
        "parts": parts or [{"text": ""}],
        **OWN.fields(message.native),
    }
    metadata: Json = dict(message.own_metadata)
    if extras and not _is_lossless(message, {**entry, "metadata": metadata}):
        metadata[CANONICAL] = canonical_type(message)
        metadata[EXTENSION] = {"type": "message", "message": _pack(message, indexes)}
        entry["extensions"] = list(dict.fromkeys([*if_list(entry.get("extensions")), EXTENSION]))
    if metadata:
        return {**entry, "metadata": metadata}
    return entry


def _is_lossless(message: Message, entry: JsonMap) -> bool:
    """True if reading the plain A2A message gives the same message again, so that nothing need be
    carried."""
    data = [if_object(part).get("data") for part in if_list(entry.get("parts"))]
    values = [value for value in data if if_object(value).get("type") not in (CALL, RESULT)]
    # Peers that keep JSON as protobuf change numbers.
    if _has_numbers([message.own_metadata, values, OWN.fields(message.native)]):
        return False
    try:
        loaded = load_message(dict(entry))
        return len(loaded) == 1 and loaded[0].to_json() == message.to_json()
    except HistoryError:
        return False


def _has_numbers(value: Any) -> bool:
    """True if a JSON value in an A2A message contains a number at any depth."""
    if isinstance(value, dict):
        return any(map(_has_numbers, if_object(value).values()))
    if isinstance(value, list):
        return any(map(_has_numbers, if_list(value)))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pack(message: Message, indexes: Sequence[int]) -> str:
    """Returns the stored form of a message as text. Texts and files in its A2A parts are replaced
    by the index of their part."""
    try:
        stored = json_bytes.decode(message.to_json())
    except HistoryError:  # half a character, which no JSON holds
        return ""
    content = stored.get("content", [])
    # A file's bytes are most of what a message weighs, and a text most of what it says: neither is
    # sent twice.
    for index, (piece, part_index) in enumerate(zip(message.content, indexes, strict=True)):
        if isinstance(piece, TextPart) and piece.native is None and not piece.citations:
            content[index] = {"at": part_index}
        elif isinstance(piece, DataPart) and not OWN.form(piece.native):
            content[index] = {**read_extra_fields(content[index], "data"), "at": part_index}
    return text_of(stored)


def _unpack(text: str, parts: list[Any], role: Role) -> Message | None:
    """Returns the message that `_pack` stored, or None if it is unreadable or contradicts the A2A
    parts beside it."""
    stored = if_object(json_of(text))
    content = stored.get("content", [])
    if not stored or not isinstance(content, list):
        return None
    try:
        stored["content"] = [_restore_piece(entry, parts) for entry in if_list(content)]
        message = Message.from_json(json_bytes.encode(stored))
    except (HistoryError, ValueError, TypeError, LookupError):
        return None
    # A client may change what it sends back; it cannot make a message of its own the model's.
    if (message.role is Role.MODEL) == (role is Role.MODEL):
        return message
    return None


def _restore_piece(stored_piece: Any, parts: list[Any]) -> Any:
    """Returns a stored piece with its text or bytes put back from the A2A part beside it. `_pack`
    left the index of that part under `at`.

    Raises:
        ValueError: that is no index, or the part holds another kind of piece.
        LookupError: there is no such part.
        HistoryError: the part cannot be read.
    """
    fields = if_object(stored_piece)
    index = fields.get("at")
    if index is None:
        return stored_piece
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise ValueError("no index")
    [piece] = load_content(if_object(parts[index]))
    if isinstance(piece, TextPart):
        return {"type": "text", "text": piece.text}
    if isinstance(piece, DataPart) and fields.get("type") == "data":
        return {**read_extra_fields(fields, "at"), "data": msgspec.to_builtins(piece)["data"]}
    raise ValueError("another piece")


def votes(message: Any) -> int:
    """Implements `Wire.votes` for A2A."""
    fields = if_object(message)
    if role_of(fields.get("role")) is None or not isinstance(fields.get("parts"), list):
        return 0
    # No other format names its roles so.
    if isinstance(fields["role"], str) and fields["role"].startswith("ROLE_"):
        return 3
    if fields.get("kind") == "message" or CANONICAL in if_object(fields.get("metadata")):
        return 3
    if fields["role"] == "agent":
        return 2
    if any(name in fields for name in _FIELD_NAMES):
        return 2
    return 0


def _faulty_field(entry: Any) -> str | None:
    """Returns the field that makes an A2A message unreadable, or None if it is no object."""
    if not isinstance(entry, dict):
        return None
    if role_of(if_object(entry).get("role")) is None:
        return "role"
    return "parts"


def keep_protocol_fields(message: Json) -> Json:
    """Returns a client's message with A2A's fields only."""
    metadata = read_extra_fields(if_object(message.get("metadata")), CANONICAL)
    fields = pick(message, _MESSAGE_FIELDS)
    if metadata:
        return {**fields, "metadata": metadata}
    return fields
