"""Settings and the output's schema ↔ fields of the body. A field whose value has no neutral meaning
stays this wire's own.

A schema that says no more than "an object" is JSON mode.
"""

from __future__ import annotations

from typing import cast

from dragoman.codec.efforts import EFFORTS, to_effort
from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.settings import Fields, dump_fields, take_fields
from dragoman.codec.strict_schema import strict_schema
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.request import Settings
from dragoman.wires.openai_responses.quirks import Quirks
from dragoman.wires.openai_responses.tools import dump_tool_choice, load_tool_choice

__all__ = ["FIELDS", "dump_schema", "dump_settings", "load_schema", "load_settings"]

_SAME: Fields = {
    "temperature": ("temperature", (int, float)),
    "top_p": ("top_p", (int, float)),
    "max_output_tokens": ("max_tokens", (int,)),
    "parallel_tool_calls": ("parallel_tool_calls", (bool,)),
}
"""Field of the body → the setting of the same meaning, and the types that it may have for that."""
_RETENTION, _LONG = "prompt_cache_retention", "24h"
FIELDS = (*_SAME, _RETENTION, "tool_choice", "reasoning")
"""The body's fields that hold settings."""
_UNKNOWN = ("top_k", "presence_penalty", "frequency_penalty", "stop", "seed")
"""Settings that the API does not have."""
_EFFORTS = {"none": "off", **{effort: effort for effort in EFFORTS[1:]}}
_SENT_EFFORTS = {neutral: effort for effort, neutral in _EFFORTS.items()}
_ANY_OBJECT: Json = {"type": "object"}
_SCHEMA_NAME = "dartantic_output"  # D-145r


def load_settings(body: Json, form: Json) -> Settings:
    """Takes out of a Responses `body` what settings hold; adds to `form` what is not the usual form
    of it."""
    known = take_fields(body, _SAME)
    if (choice := load_tool_choice(body.get("tool_choice"))) is not None:
        known["tool_choice"] = choice
        del body["tool_choice"]
    if body.get(_RETENTION) == _LONG:
        known["cache"] = "long"
        del body[_RETENTION]
    reasoning = if_object(body.get("reasoning"))
    if (level := _EFFORTS.get(str(reasoning.get("effort")))) is not None:
        known["reasoning"] = level
        form["summary"] = "as is"
        body["reasoning"] = read_extra_fields(reasoning, "effort")
        if not body["reasoning"]:
            del body["reasoning"]
    return Settings(**known)


def dump_settings(settings: Settings, form: JsonMap, out: Outgoing[Quirks]) -> Json:
    """Returns settings as fields of a Responses body. One that the API lacks is noted as a loss.
    One that the API does not have is noted as a loss."""
    quirks = out.quirks
    for name in _UNKNOWN:
        if getattr(settings, name) is not None:
            out.lose(None, None, Lost.setting, "the API has no such setting", name)
    body = dump_fields(settings, _SAME)
    if (choice := settings.tool_choice) is not None:
        body["tool_choice"] = dump_tool_choice(choice, out)
    if settings.cache == "long" and quirks.retention:
        body[_RETENTION] = _LONG
    if settings.reasoning is not None:
        effort = to_effort(settings.reasoning)
        level = _SENT_EFFORTS[effort]
        if isinstance(settings.reasoning, int):
            why = f"the API takes no number of tokens; {effort} is sent"
            out.lose(None, None, Lost.setting, why, "reasoning")
        asks = quirks.summary is not None and level != "none" and "summary" not in form
        body["reasoning"] = {"effort": level, **({"summary": quirks.summary} if asks else {})}
    return body


def load_schema(body: Json) -> JsonMap | None:
    """Takes the output schema out of the Responses setting `body["text"]`, and leaves there what
    stands beside it."""
    text = if_object(body.get("text"))
    form = text.get("format")
    match form:
        case {"type": "json_object", **others} if not others:
            schema, unread = dict(_ANY_OBJECT), {}
        case {"type": "json_schema", "schema": dict()}:
            form = cast("Json", form)
            schema, unread = form["schema"], read_extra_fields(form, "type", "schema")
        case _:
            return None
    body["text"] = {**read_extra_fields(text, "format"), **({"format": unread} if unread else {})}
    if not body["text"]:
        del body["text"]
    return schema


def dump_schema(schema: JsonMap, fields: JsonMap | None) -> Json:
    """Returns the output schema as the Responses setting `text.format`. `fields`: what stood beside
    it in a loaded request, whose schema is sent as it was.

    Any other is sent in its strict form where it has one, else as it is and not strict.
    """
    if fields is not None:
        return {"type": "json_schema", **fields, "schema": schema}
    if schema == _ANY_OBJECT:
        return {"type": "json_object"}
    strict = strict_schema(schema)
    sent = (
        {"schema": schema, "strict": False}
        if strict is None
        else {"schema": strict, "strict": True}
    )
    return {"type": "json_schema", "name": _SCHEMA_NAME, **sent}
