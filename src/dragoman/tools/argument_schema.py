"""A handler's parameters → JSON Schema, and the arguments that a model gave → values of the
handler's types.

Both come from one pydantic adapter over a TypedDict with a key per parameter. This module is
imported when a schema is first needed, because pydantic is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, NotRequired, cast

from pydantic import PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict

from dragoman.errors import ToolError
from dragoman.json_bytes import Json, JsonMap
from dragoman.tools.signature import arguments, describe, name_of, resolve

__all__ = ["Arguments", "build"]

_BY_NAME = ("properties", "$defs", "patternProperties", "dependentSchemas")
_VALUES = ("default", "const", "enum", "examples", "required")
_FAULTS = {
    "missing": "is required, but was not given",
    "extra_forbidden": "is no argument of this tool",
}


class Arguments(NamedTuple):
    """What a handler takes."""

    schema: Json
    """JSON Schema of an object, without titles."""
    convert: Callable[[JsonMap], Json]
    """Checks and converts; raises `ToolError` in words that a model can act on."""


def build(handler: Callable[..., Any]) -> Arguments:
    """Builds the schema of a tool's arguments: reads the handler's signature, annotations and
    docstring into its argument schema.

    Raises:
        ToolError: a parameter's type has no JSON Schema, cannot be resolved, or the handler is a method without its
            instance. The text names function and parameter.
    """
    parameters = arguments(handler)
    if (
        parameters
        and parameters[0].name in ("self", "cls")
        and parameters[0].annotation is inspect.Parameter.empty
    ):
        raise ToolError(
            f"{name_of(handler)} is a method; take the tool from an instance, as in instance.method"
        )
    types = {parameter.name: resolve(handler, parameter) for parameter in parameters}
    try:
        adapter = _make_adapter(parameters, types)
        schema = adapter.json_schema()
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        culprit = next((name for name, hint in types.items() if not _has_schema(hint)), "?")
        reason = str(error).partition("\n")[0]
        raise ToolError(
            f"{name_of(handler)}: the type of {culprit!r} cannot be an argument: {reason}"
        ) from error
    _annotate_schema(schema["properties"], parameters, describe(handler)[1])
    validate = adapter.validator.validate_python

    def convert(values: JsonMap) -> Json:
        """Returns a tool's arguments as the values of its parameters."""
        try:
            return validate(values)
        except ValidationError as error:
            raise ToolError(_explain_faults(error)) from error

    return Arguments(_without_titles(schema), convert)


def _make_adapter(parameters: Sequence[inspect.Parameter], types: JsonMap) -> TypeAdapter[Json]:
    """Returns the pydantic adapter for the arguments of a tool."""
    fields: Json = {}
    more: Json = {"closed": True}
    for parameter in parameters:
        hint = types[parameter.name]
        if parameter.kind is parameter.VAR_KEYWORD:
            more = {"extra_items": hint}
        elif isinstance(parameter.default, FieldInfo):
            fields[parameter.name] = Annotated[hint, parameter.default]
        else:
            fields[parameter.name] = (
                hint if parameter.default is parameter.empty else NotRequired[hint]
            )
    # By call, since its keys are not known to the reader.
    make: Any = TypedDict
    return TypeAdapter(make("Arguments", fields, **more))


def _has_schema(hint: Any) -> bool:
    """Returns whether pydantic can make a JSON Schema of the type hint of an argument."""
    try:
        TypeAdapter(hint).json_schema()
    except (PydanticUserError, PydanticUndefinedAnnotation):
        return False
    return True


def _annotate_schema(
    properties: dict[str, Json],
    parameters: Sequence[inspect.Parameter],
    descriptions: Mapping[str, str],
) -> None:
    """Adds to the argument schema what pydantic was not told: the docstring's words (a
    `Field(description=…)` wins) and the defaults."""
    for parameter in parameters:
        property_schema = properties.get(parameter.name)
        # **kwargs, or under an alias.
        if property_schema is None:
            continue
        if parameter.name in descriptions:
            property_schema.setdefault("description", descriptions[parameter.name])
        if parameter.default is not parameter.empty and not isinstance(
            parameter.default, FieldInfo
        ):
            with suppress(PydanticSerializationError):
                property_schema["default"] = to_jsonable_python(parameter.default)


def _without_titles(schema: object) -> Any:
    """Drops from an argument schema the titles that pydantic makes of names, but no property that
    is called title."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    fields = cast("Json", schema)
    return {
        key: {name: _without_titles(item) for name, item in value.items()}
        if key in _BY_NAME
        else value
        if key in _VALUES
        else _without_titles(value)
        for key, value in fields.items()
        if key != "title"
    }


def _explain_faults(error: ValidationError) -> str:
    """Explains to the model which arguments do not fit a tool's argument schema, one fault after
    the other."""
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'the whole'}: "
        + (_FAULTS.get(fault["type"]) or f"{fault['msg']}, got {fault['input']!r:.100}")
        for fault in error.errors()
    ]
    return "invalid arguments: " + "; ".join(faults)
