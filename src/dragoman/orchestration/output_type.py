"""What a run is to give: a Python type, and the JSON Schema that the model is held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec

from dragoman.errors import SettingsError, TypedOutputError
from dragoman.json_bytes import Json, JsonMap
from dragoman.partial import Shape
from dragoman.tools.schema_check import find_faults

__all__ = ["TypedOutput", "json_output", "output_of", "read_value", "typed_output"]

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

_NO_JSON = "No JSON output found in response. Expected JSON in response.output."


class TypedOutput(Generic[T]):
    """What a run is to give: the schema, and `read`, which raises `ValueError` with words for the
    model."""

    def __init__(
        self,
        schema: JsonMap,
        parse: Callable[[str], T],
        dump: Callable[[T], str],
        options: JsonMap,
        *,
        name_schema: Callable[[], JsonMap] | None = None,
        is_wrapped: bool = False,
    ) -> None:
        """Makes a typed output.

        Args:
            schema: JSON Schema of what the model writes.
            parse: text → value; raises `ValueError` with words for the model.
            dump: the inverse.
            options: by which a send asks for it.
            name_schema: the schema with the names of fields in Python, if keys of the JSON differ.
            is_wrapped: the value is no object, and is written as `{"result": …}`.
        """
        self.schema = schema
        self.dump = dump
        self.options = options
        self.is_wrapped = is_wrapped
        self._parse, self._name_schema = parse, name_schema
        self._last: tuple[str, T] | None = None

    @property
    def type(self) -> object:
        """The Python type; `str` for output by a schema alone."""
        return self.options.get("output_type", str)

    @cached_property
    def shape(self) -> Shape:
        """The fields of what the model writes."""
        return Shape.of(self.schema, self._name_schema and self._name_schema())

    def read(self, text: str) -> T:
        """Returns the value of an output's text by its type. The same text again gives the same
        value, so that validators run once.

        Raises:
            ValueError: the text is not of the type; the message is for the model.
        """
        if self._last is None or self._last[0] != text:
            self._last = text, self._parse(text)
        return self._last[1]

    def convert(self, text: str) -> T:
        """Converts the output's text to a value of the type.

        Raises:
            TypedOutputError: the text is not of the type.
        """
        try:
            return self.read(text)
        except ValueError as error:
            raise TypedOutputError.because(str(error), output=text) from error


def output_of(output_type: Any, schema: JsonMap | None) -> TypedOutput[Any] | None:
    """Returns how a run's output is typed, by a schema or a type, or None for text. A schema goes
    before a type.

    Raises:
        SettingsError: pydantic cannot adapt the type.
        TypeError: it is a JSON Schema.
    """
    if schema is not None:
        return json_output(schema)
    return None if output_type is str else typed_output(output_type)


def json_output(schema: JsonMap) -> TypedOutput[str]:
    """Returns the typed output for a JSON Schema, whose value stays text. What the schema says of
    types, keys and choices is checked."""

    def read(text: str) -> str:
        if problems := find_faults(schema, _decode_json(text)):
            raise ValueError("; ".join(problems))
        return text

    return TypedOutput(schema, read, str, {"output_schema": schema})


def typed_output(output_type: type[T] | Any) -> TypedOutput[T]:
    """Returns the typed output for any type that pydantic can adapt. What is no object is wrapped
    in one, `{"result": …}`, for the model.

    Raises:
        SettingsError: pydantic cannot adapt the type.
        TypeError: it is a JSON Schema.
    """
    if isinstance(output_type, Mapping):
        raise TypeError(
            "output_type must be a type, not a dict; a JSON Schema goes into output_schema= of send"
        )
    from pydantic import PydanticUserError, TypeAdapter
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
        schema = _wrap(schema)

    def name_schema() -> Json:
        named = adapter.json_schema(by_alias=False)
        if wrapped:
            return _wrap(named)
        return named

    def dump(value: T) -> str:
        text = adapter.dump_json(value, by_alias=True, warnings="none").decode()
        if wrapped:
            return f'{{"result":{text}}}'
        return text

    def read(text: str) -> T:
        value = _decode_json(text)
        if wrapped:
            if not isinstance(value, dict) or "result" not in value:
                raise ValueError('it must be an object with the key "result"')
            value = cast(Json, value)["result"]
        return read_value(adapter, value)

    return TypedOutput(
        schema,
        read,
        dump,
        {"output_type": output_type},
        name_schema=name_schema,
        is_wrapped=wrapped,
    )


def read_value(adapter: TypeAdapter[T], value: object) -> T:
    """Returns a JSON value as a value of the output type.

    Raises:
        ValueError: it is not of the type; the message is for the model.
    """
    from pydantic import ValidationError

    try:
        return adapter.validate_json(msgspec.json.encode(value))
    except ValidationError as error:
        raise ValueError(_problems(error)) from error


def _wrap(schema: Json) -> Json:
    """Returns the schema of an object whose key `result` holds an output type that is no object."""
    definitions: Json = {}
    if "$defs" in schema:
        definitions["$defs"] = schema.pop("$defs")
    return {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
        **definitions,
    }


def _decode_json(text: str) -> Any:
    """Decodes the output's text as JSON. Raises `ValueError` with words for the model."""
    if not text.strip():
        raise ValueError(_NO_JSON)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise ValueError(f"it is no JSON: {error}") from error


def _problems(error: Any) -> str:
    """Returns what is wrong with a typed output: a validator's findings as plain lines."""
    return "; ".join(
        f"{'.'.join(map(str, item['loc'])) or 'the value'}: {item['msg']}"
        for item in error.errors()
    )
