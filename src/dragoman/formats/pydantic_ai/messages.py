"""A history: the list of requests and responses ↔ messages, exactly and in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from dragoman.codec.json_values import check_depth, if_object, if_text
from dragoman.codec.memos import disown_memos
from dragoman.codec.serving import Problem, note_problem
from dragoman.errors import HistoryError
from dragoman.formats.pydantic_ai.media import Sent
from dragoman.formats.pydantic_ai.requests import INSTRUCTIONS, dump_request, is_begun, load_request
from dragoman.formats.pydantic_ai.responses import dump_response, load_response
from dragoman.json_bytes import MOST_DEPTH, Json, check_value_depth
from dragoman.loss import Loss
from dragoman.message import Message, Origin, Role, ToolCallPart

__all__ = ["dump_messages", "load_messages", "votes"]

_KINDS = ("request", "response")


def votes(message: object) -> int:
    """Returns how surely an object is a message of pydantic-ai: 0 = cannot be, 3 = hardly anything
    else."""
    fields = if_object(message)
    if _find_faulty_field(fields):
        return 0
    return 3


def load_messages(
    payload: object, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """Reads a history of requests and responses. `origin` is given to responses that do not name
    their provider. With `problems`, an element that cannot be read is left out and noted there.

    Raises:
        HistoryError: the payload is no list of requests and responses.
    """
    if not isinstance(payload, list):
        raise HistoryError(
            "a history of pydantic-ai is a list of requests and responses, as its ModelMessagesTypeAdapter writes it"
        )
    messages: list[Message] = []
    instructions: str | None = None
    entries = cast("list[Any]", payload)
    is_bounded = _is_bounded(entries)
    for index, entry in enumerate(entries):
        fields = if_object(entry)
        try:
            if not is_bounded:
                check_depth(entry)
            _check_history(entry, index)
        except HistoryError as error:
            note_problem(error, problems, index, _find_faulty_field(fields))
            continue
        parts: list[Json] = fields["parts"]
        if fields["kind"] == "response":
            messages.append(load_response(fields, parts, origin))
        else:
            messages += load_request(fields, parts, instructions)
            instructions = if_text(fields.get(INSTRUCTIONS)) or instructions
    return disown_memos(messages)


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 it is written for every reader alike
    losses: list[Loss] | None = None,
) -> list[Json]:
    """Writes messages as Pydantic AI's history. What it cannot hold is added to `losses`."""
    losses = [] if losses is None else losses
    entries: list[Json] = []
    names: dict[str, str] = {}
    group: list[Sent] = []
    instructions: str | None = None

    def close() -> None:
        """Ends the Pydantic AI request that is open."""
        nonlocal instructions
        if group:
            entry = dump_request(group, instructions)
            instructions = if_text(entry.get(INSTRUCTIONS)) or instructions
            entries.append(entry)
            group.clear()

    for position, message in enumerate(messages):
        outgoing = Sent(message, position, losses, names)
        if message.role is Role.MODEL:
            close()
            names.update(
                {
                    piece.id: piece.name
                    for piece in message.content
                    if isinstance(piece, ToolCallPart)
                }
            )
            entries.append(dump_response(outgoing))
            continue
        if is_begun(message, [message.message for message in group]):
            close()
        group.append(outgoing)
    close()
    return entries


def _find_faulty_field(fields: Json) -> str | None:
    """Returns the field for which a Pydantic AI object cannot be a message; `None`: it can."""
    if fields.get("kind") not in _KINDS:
        return "kind"
    parts = fields.get("parts")
    if not isinstance(parts, list):
        return "parts"
    for part in cast("list[Any]", parts):
        if not isinstance(if_object(part).get("part_kind"), str):
            return "parts"
    return None


def _check_history(entry: object, index: int) -> None:
    """Raises `HistoryError` where an element is no Pydantic AI message."""
    fault = _find_faulty_field(if_object(entry))
    if fault is None:
        return
    if fault == "kind":
        raise HistoryError(
            f"message {index} must be an object whose kind is request or response, not {entry!r:.100}"
        )
    raise HistoryError(
        f'"parts" of message {index} must be a list of objects that have a part_kind'
    )


def _is_bounded(payload: list[Any]) -> bool:
    """True if no element of a Pydantic AI history nests too deep, seen at once; else each is looked
    at."""
    try:
        check_value_depth(payload, MOST_DEPTH + 1)
    except ValueError:
        return False
    return True
