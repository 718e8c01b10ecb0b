"""Errors as JSON and back, so that a run that failed can be told of elsewhere, or later."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import errors
from dragoman.errors import DragomanError, HistoryError
from dragoman.json_bytes import Json
from dragoman.message import Message
from dragoman.result import ChatResult

__all__ = ["from_json", "to_json"]

_KINDS: dict[str, type[DragomanError]] = {
    name: kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type)
}


class _Own(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Attributes of single classes."""

    retry_after: float | None = None
    resets_at: str | None = None
    output: str | None = None


class _Stored(msgspec.Struct, omit_defaults=True):
    type: str
    """Name of the class, else of the nearest of ours that it is derived from."""
    message: str
    provider: str | None = None
    status: int | None = None
    request_id: str | None = None
    body: bytes | None = None
    partial: Any = None
    """As `Message.to_json` has it."""
    own: Json = {}
    """As `_Own`, where the class is known."""
    result: Json | None = None


def to_json(error: DragomanError) -> bytes:
    """Returns the stored form (JSON) of an error: class, message, where it happened, the raw answer
    (in base64) and the message as far as it had come."""
    type_name = next(cls.__name__ for cls in type(error).__mro__ if _KINDS.get(cls.__name__) is cls)
    stored = _Stored(
        type_name,
        error.message,
        error.provider,
        error.status,
        error.request_id,
        error.body,
        None if error.partial is None else msgspec.Raw(error.partial.to_json()),
        {
            name: value
            for name in _Own.__struct_fields__
            if (value := getattr(error, name, None)) is not None
        },
        None if error.result is None else _dump_result(error.result),
    )
    return msgspec.json.encode(stored)


def from_json(data: bytes | str) -> DragomanError:
    """Reads the JSON that `to_json` wrote: an error of the same class. One of a class that this
    release does not know is a `DragomanError`.

    Raises:
        HistoryError: it is no stored error.
    """
    try:
        stored = msgspec.json.decode(data, type=_Stored)
        error_type = _KINDS.get(stored.type, DragomanError)
        if stored.type in _KINDS:
            attributes = msgspec.convert(stored.own, _Own)
        else:
            attributes = _Own()
        return error_type(
            stored.message,
            provider=stored.provider,
            status=stored.status,
            request_id=stored.request_id,
            body=stored.body,
            partial=None if stored.partial is None else _message(stored.partial),
            result=None if stored.result is None else _load_result(stored.result),
            **msgspec.to_builtins(attributes),
        )
    except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError) as problem:
        raise HistoryError(
            f"not a stored error: {problem}. Write it with error_json.to_json()."
        ) from problem


def _dump_result(result: ChatResult[Any]) -> Json:
    plain = msgspec.to_builtins(msgspec.structs.replace(result, messages=()), enc_hook=str)
    return {**plain, "messages": [msgspec.Raw(message.to_json()) for message in result.messages]}


def _load_result(stored: Json) -> ChatResult[Any]:
    """Returns the result that a stored error holds."""
    messages = tuple(map(_message, stored.get("messages", ())))
    return msgspec.structs.replace(
        msgspec.convert({**stored, "messages": ()}, ChatResult[Any]), messages=messages
    )


def _message(stored: object) -> Message:
    return Message.from_json(msgspec.json.encode(stored))
