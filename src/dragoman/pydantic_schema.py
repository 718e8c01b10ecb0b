"""How pydantic reads and writes a `Message`; loaded when pydantic asks."""

from __future__ import annotations

from typing import Any

import msgspec
from pydantic_core import core_schema

from dragoman.errors import HistoryError
from dragoman.message import Message

__all__ = ["message_schema"]


def message_schema(kind: type[Message]) -> core_schema.CoreSchema:
    """A message as it is, or its stored form; JSON has the stored form."""

    def load(value: Any) -> Message:
        if isinstance(value, kind):
            return value
        try:
            return kind.from_json(msgspec.json.encode(value))
        except (HistoryError, TypeError, UnicodeEncodeError, RecursionError) as error:
            raise ValueError(str(error)) from error

    return core_schema.no_info_plain_validator_function(
        load,
        json_schema_input_schema=core_schema.dict_schema(),
        serialization=core_schema.plain_serializer_function_ser_schema(
            lambda message: msgspec.json.decode(message.to_json()),
            return_schema=core_schema.dict_schema(),
            when_used="json",
        ),
    )
