"""Typed output: a Python type → the schema that the model is held to, and the reader of what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec

from dragoman.errors import SettingsError, TypedOutputError
from dragoman.tools.check import faults

__all__ = ["RETURN_RESULT", "Output", "json_output", "output_of", "typed_output"]

T = TypeVar("T")

RETURN_RESULT = "return_result"
"""The tool whose arguments are the output, where a provider takes no schema for its answers."""
_NO_JSON = "No JSON output found in response. Expected JSON in response.output."


class Output(Generic[T]):
    """What a run is to give: the schema, and `read`, which raises `ValueError` with words for the model."""

    def __init__(
        self, schema: Mapping[str, Any], read: Callable[[str], T], options: Mapping[str, Any]
    ) -> None:
        """`options`: by which a send asks for it."""
        self.schema = schema
        self.read = read
        self.options = options

    def convert(self, text: str) -> T:
        """The output's text → the value.

        Raises:
            TypedOutputError: the text is not of the type.
        """
        try:
            return self.read(text)
        except ValueError as error:
            raise TypedOutputError.because(str(error), output=text) from error


def output_of(output_type: Any, schema: Mapping[str, Any] | None) -> Output[Any] | None:
    """What a run is to give; `None`: text. A schema goes before a type.

    Raises:
        SettingsError: pydantic cannot adapt the type.
        TypeError: it is a JSON Schema.
    """
    if schema is not None:
        return json_output(schema)
    return None if output_type is str else typed_output(output_type)


def json_output(schema: Mapping[str, Any]) -> Output[str]:
    """Output by a JSON Schema, given back as its text. What the schema says of types, keys and choices is checked."""

    def read(text: str) -> str:
        if found := faults(schema, _decoded(text)):
            raise ValueError("; ".join(found))
        return text

    return Output(schema, read, {"output_schema": schema})


def typed_output(output_type: type[T] | Any) -> Output[T]:
    """Output of any type that pydantic can adapt. What is no object is wrapped in one, `{"result": …}`, for the model.

    Raises:
        SettingsError: pydantic cannot adapt the type.
        TypeError: it is a JSON Schema.
    """
    if isinstance(output_type, Mapping):
        raise TypeError(
            "output_type must be a type, not a dict; a JSON Schema goes into output_schema= of send"
        )
    from pydantic import PydanticUserError, TypeAdapter, ValidationError
    from pydantic.errors import PydanticInvalidForJsonSchema

    try:
        adapter: TypeAdapter[T] = TypeAdapter(output_type)
        schema = adapter.json_schema()
    except (PydanticUserError, PydanticInvalidForJsonSchema) as error:
        reason = str(error).partition("\n")[0]
        raise SettingsError(
            f"output_type={output_type!r} cannot be described to a model: {reason}"
        ) from error
    wrapped = schema.get("type") != "object"
    if wrapped:
        definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
        schema = {
            "type": "object",
            "properties": {"result": schema},
            "required": ["result"],
            **definitions,
        }

    def read(text: str) -> T:
        value = _decoded(text)
        if wrapped:
            if not isinstance(value, dict) or "result" not in value:
                raise ValueError('it must be an object with the key "result"')
            value = cast(dict[str, Any], value)["result"]
        try:
            return adapter.validate_json(msgspec.json.encode(value))
        except ValidationError as error:
            raise ValueError(_problems(error)) from error

    return Output(schema, read, {"output_type": output_type})


def _decoded(text: str) -> Any:
    if not text.strip():
        raise ValueError(_NO_JSON)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise ValueError(f"it is no JSON: {error}") from error


def _problems(error: Any) -> str:
    """A validator's findings as plain lines."""
    return "; ".join(
        f"{'.'.join(map(str, item['loc'])) or 'the value'}: {item['msg']}"
        for item in error.errors()
    )
