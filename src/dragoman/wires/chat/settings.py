"""Settings ⇄ fields of the body, and the output's schema ⇄ `response_format`. A field whose value
has no neutral meaning stays this wire's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from dragoman.codec.efforts import EFFORTS, to_effort
from dragoman.codec.json_values import if_object, merge_wire_fields, read_extra_fields
from dragoman.codec.settings import take_stops
from dragoman.codec.strict_schema import strict_schema
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.request import Effort, Settings
from dragoman.wires.chat.record import DialectRecord, OutgoingChat, SettingWriter
from dragoman.wires.chat.tools import dump_tool_choice, load_tool_choice

__all__ = [
    "SETTINGS",
    "as_it_is",
    "dump_schema",
    "dump_settings",
    "load_schema",
    "load_settings",
    "reasoning",
    "tool_choice",
]

_ANY_OBJECT: Json = {"type": "object"}


def as_it_is(field: str, *types: type) -> SettingWriter:
    """Returns the reader and writer of a Chat Completions setting that a field holds unchanged, in
    one of these types."""

    def load(value: Any) -> Any:
        """Returns the setting's value if the Chat field holds one of these types."""
        return (
            value
            if isinstance(value, types) and isinstance(value, bool) == (types == (bool,))
            else None
        )

    return SettingWriter(field, load, lambda value, _: value)


def reasoning(field: str, dump: Callable[[Effort | int], Any]) -> SettingWriter:
    """Returns the reader and writer of the setting `reasoning` in a Chat Completions field that
    holds a level or a budget of tokens."""

    def load(value: Any) -> Effort | int | None:
        # Read by trial: the one setting that is written so. Where two are written alike, none is
        # read.
        """Returns the setting `reasoning` that the Chat field holds."""
        settings: list[Effort | int] = [
            *EFFORTS,
            *(number for number in if_object(value).values() if type(number) is int),
        ]
        same: list[Effort | int] = [
            setting
            for setting in settings
            if (value_sent := dump(setting)) == value and type(value_sent) is type(value)
        ]
        return same[0] if len(same) == 1 else None

    return SettingWriter(field, load, lambda value, _: dump(value))


def _effort(reasoning: Effort | int) -> str:
    return "none" if reasoning == "off" else to_effort(reasoning)


def tool_choice(choices: Mapping[str, str], form: str = "") -> SettingWriter:
    """Returns the reader and writer of the setting in the Chat field `tool_choice`. `choices` maps
    the Chat format's choices to neutral ones. `choices`: those of the format → the neutral ones."""
    return SettingWriter(
        "tool_choice",
        lambda value: load_tool_choice(choices, value),
        lambda choice, name: dump_tool_choice(choices, choice, name),
        form,
    )


SETTINGS: Mapping[str, tuple[SettingWriter, ...]] = MappingProxyType(
    {
        "temperature": (as_it_is("temperature", int, float),),
        "top_p": (as_it_is("top_p", int, float),),
        "top_k": (as_it_is("top_k", int),),
        "presence_penalty": (as_it_is("presence_penalty", int, float),),
        "frequency_penalty": (as_it_is("frequency_penalty", int, float),),
        "seed": (as_it_is("seed", int),),
        "parallel_tool_calls": (as_it_is("parallel_tool_calls", bool),),
        "max_tokens": (as_it_is("max_tokens", int),),
        "stop": (
            SettingWriter(
                "stop",
                lambda value: take_stops({"stop": value}, "stop").get("stop"),
                lambda texts, _: list(texts),
            ),
            SettingWriter(
                "stop",
                lambda value: (value,) if isinstance(value, str) else None,
                lambda texts, _: texts[0] if len(texts) == 1 else None,
                "string",
            ),
        ),
        "reasoning": (reasoning("reasoning_effort", _effort),),
        "tool_choice": (tool_choice({"auto": "auto", "none": "none", "required": "required"}),),
    }
)
"""Setting → the ways to write it; the first is the usual one."""


def load_settings(chat: DialectRecord, body: Json, form: Json) -> Settings:
    """Takes out of `body` what is a setting; notes in `form` the way in which it was written, where
    that is not the usual one."""
    settings: Json = {}
    for setting, ways in chat.settings.items():
        for way in ways:
            if way.field in body and (value := way.load(body[way.field])) is not None:
                settings[setting] = value
                del body[way.field]
                if way is not ways[0]:
                    form[setting] = way.key
                break
    return Settings(**settings)


def dump_settings(out: OutgoingChat, settings: Settings, form: JsonMap) -> Json:
    """Returns settings as fields of a Chat body."""
    body: Json = {}
    for setting, ways in out.chat.settings.items():
        if (value := getattr(settings, setting)) is None:
            continue
        key = form.get(setting, out.ways.get(setting, ways[0].key))
        way = _find_way(ways, key, value, out)
        value_sent = way.dump(value, out.name)
        # A setting that was changed after it was loaded may not fit the way in which it was
        # written.
        if value_sent is None and setting in form:
            way = ways[0]
            value_sent = way.dump(value, out.name)
        if setting == "reasoning" and way.load(value_sent) != value:
            out.lose(
                None, None, Lost.setting, f"the vendor cannot be told {value!r} as it is", setting
            )
        if value_sent is not None:
            body[way.field] = value_sent
    return body


def _find_way(
    ways: Sequence[SettingWriter], key: str, value: Any, out: OutgoingChat
) -> SettingWriter:
    """Returns the writer for a setting. If a vendor has two fields for it, the first that can hold
    the value. Some vendors have two fields for one setting: then of two keys the first whose field
    can say the value."""
    named = [way for name in key.split(" ") for way in ways if way.key == name] or [ways[0]]
    if len(named) == 1:
        return named[0]
    return next((way for way in named if way.load(way.dump(value, out.name)) == value), named[0])


def load_schema(body: Json) -> tuple[JsonMap | None, Json]:
    """Removes the output schema from the settings in a Chat body. Returns it, and the further
    fields of `response_format`. A schema that says no more than "an object" is JSON mode."""
    output = if_object(body.get("response_format"))
    if output == {"type": "json_object"}:
        del body["response_format"]
        return dict(_ANY_OBJECT), {}
    named = if_object(output.get("json_schema"))
    if not isinstance(schema := named.get("schema"), dict) or output.get("type") != "json_schema":
        return None, {}
    del body["response_format"]
    beside = {
        **read_extra_fields(output, "type", "json_schema"),
        "json_schema": read_extra_fields(named, "schema"),
    }
    return cast("Json", schema), {"response_format": beside}


def dump_schema(out: OutgoingChat, schema: JsonMap, beside: JsonMap | None) -> Json:
    """Returns the output schema as the Chat setting `response_format`. `beside`: what a loaded
    request said beside it; its schema is sent as it was.

    Any other is sent in its strict form, under the name `output_schema`, or as it is and not
    strict.
    """
    if beside is not None:
        return merge_wire_fields({"type": "json_schema", "json_schema": {"schema": schema}}, beside)
    if schema == _ANY_OBJECT:
        return {"type": "json_object"}
    if not out.json_schema:
        out.lose(None, None, Lost.output_schema, "the vendor knows JSON mode only")
        return {"type": "json_object"}
    strict = strict_schema(schema)
    schema_sent = (
        {"schema": schema, "strict": False}
        if strict is None
        else {"schema": strict, "strict": True}
    )
    return {"type": "json_schema", "json_schema": {"name": "output_schema", **schema_sent}}
