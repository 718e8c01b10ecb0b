"""Settings ↔ fields of the body. A field whose value has no neutral meaning stays this wire's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.json_values import rest
from dragoman.request import Settings
from dragoman.wires.openai_responses.quirks import Quirks

__all__ = ["FIELDS", "UNKNOWN", "dump_settings", "load_settings"]

_SAME: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "temperature": ("temperature", (int, float)),
    "top_p": ("top_p", (int, float)),
    "max_output_tokens": ("max_tokens", (int,)),
    "parallel_tool_calls": ("parallel_tool_calls", (bool,)),
}
"""Field of the body → the setting of the same meaning, and the types that it may have for that."""
_RETENTION, _LONG = "prompt_cache_retention", "24h"
FIELDS = (*_SAME, _RETENTION, "tool_choice", "reasoning")
"""The body's fields that settings are told in."""
UNKNOWN = ("top_k", "presence_penalty", "frequency_penalty", "stop", "seed")
"""Settings that the API does not have."""
_CHOICES = ("auto", "none", "required")
_EFFORTS = {"none": "off", "low": "low", "medium": "medium", "high": "high"}
_SENT_EFFORTS = {neutral: effort for effort, neutral in _EFFORTS.items()}


def load_settings(body: dict[str, Any], spelled: dict[str, Any]) -> Settings:
    """Takes out of `body` what settings say; notes in `spelled` how it was said, where that is not the usual way."""
    known: dict[str, Any] = {}
    for field, (name, types) in _SAME.items():
        if isinstance(body.get(field), types) and isinstance(body[field], bool) == (types == (bool,)):
            known[name] = body.pop(field)
    if (choice := _chosen(body.get("tool_choice"))) is not None:
        known["tool_choice"] = choice
        del body["tool_choice"]
    if body.get(_RETENTION) == _LONG:
        known["cache"] = "long"
        del body[_RETENTION]
    reasoning = body.get("reasoning")
    if isinstance(reasoning, dict):
        told = cast("dict[str, Any]", reasoning)
        if (effort := _EFFORTS.get(str(told.get("effort")))) is not None:
            known["reasoning"] = effort
            spelled["summary"] = "as is"
            body["reasoning"] = rest(told, "effort")
            if not body["reasoning"]:
                del body["reasoning"]
    return Settings(**known)


def dump_settings(
    settings: Settings, spelled: Mapping[str, Any], quirks: Quirks, names: Mapping[str, str]
) -> dict[str, Any]:
    """Settings → fields of the body. `names`: a tool's name → the one that it is sent under."""
    body = {field: value for field, (name, _) in _SAME.items() if (value := getattr(settings, name)) is not None}
    if (choice := settings.tool_choice) is not None:
        body["tool_choice"] = choice if choice in _CHOICES else {"type": "function", "name": names.get(choice, choice)}
    if settings.cache == "long" and quirks.retention:
        body[_RETENTION] = _LONG
    if settings.reasoning is not None:
        effort = _effort(settings.reasoning)
        asks = quirks.summary is not None and effort != "none" and "summary" not in spelled
        body["reasoning"] = {"effort": effort, **({"summary": quirks.summary} if asks else {})}
    return body


def _effort(setting: str | int) -> str:
    """An effort, or that which is nearest to a budget of tokens."""
    if isinstance(setting, int):
        return "low" if setting <= 2048 else "medium" if setting <= 8192 else "high"
    return _SENT_EFFORTS[setting]


def _chosen(value: Any) -> str | None:
    """The choice of a tool, where it is a plain one."""
    match value:
        case str() if value in _CHOICES:
            return value
        case {"type": "function", "name": str(name), **others} if name not in _CHOICES and not others:
            return name
        case _:
            return None
