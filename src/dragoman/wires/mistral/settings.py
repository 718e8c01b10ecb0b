"""Settings ⇄ fields of the body. A field whose value has no neutral meaning stays this wire's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from dragoman.codec.json_values import if_object, if_text
from dragoman.request import Settings

__all__ = ["FIELDS", "dump_settings", "load_settings"]

_NAMES: dict[str, tuple[str, tuple[type, ...]]] = {
    "temperature": ("temperature", (int, float)),
    "max_tokens": ("max_tokens", (int,)),
    "top_p": ("top_p", (int, float)),
    "top_k": ("top_k", (int,)),
    "presence_penalty": ("presence_penalty", (int, float)),
    "frequency_penalty": ("frequency_penalty", (int, float)),
    "seed": ("random_seed", (int,)),
    "parallel_tool_calls": ("parallel_tool_calls", (bool,)),
}
"""Setting → its field, and what it holds."""
FIELDS = (*(field for field, _ in _NAMES.values()), "stop", "reasoning_effort", "tool_choice")
"""The body's fields that settings are told in."""
_EFFORTS: dict[str, Literal["off", "low", "medium", "high"]] = {
    "none": "off",
    "low": "low",
    "medium": "medium",
    "high": "high",
}
_CHOICES = {"auto": "auto", "none": "none", "any": "required", "required": "required"}


def load_settings(body: dict[str, Any], spelled: dict[str, Any]) -> Settings:
    """Takes out of `body` what settings say; notes in `spelled` how it was said, where that is not the usual way."""
    known: dict[str, Any] = {}
    for name, (field, types) in _NAMES.items():
        value = body.get(field)
        if isinstance(value, types) and isinstance(value, bool) == (types == (bool,)):
            known[name] = body.pop(field)
    if isinstance(stop := body.get("stop"), str):
        known["stop"], spelled["stop"] = (body.pop("stop"),), "string"
    elif isinstance(stop, list) and all(isinstance(text, str) for text in cast("list[Any]", stop)):
        known["stop"] = tuple(body.pop("stop"))
    if (effort := if_text(body.get("reasoning_effort"))) in _EFFORTS:
        known["reasoning"] = _EFFORTS[effort]
        del body["reasoning_effort"]
    if (choice := _chosen(body.get("tool_choice"))) is not None:
        if body.pop("tool_choice") == "required":
            spelled["tool_choice"] = "required"
        known["tool_choice"] = choice
    return Settings(**known)


def dump_settings(settings: Settings, spelled: Mapping[str, Any], name: Callable[[str], str]) -> dict[str, Any]:
    """Settings → fields of the body. `name`: a tool's name → the one that it is sent under."""
    told = {field: getattr(settings, setting) for setting, (field, _) in _NAMES.items()}
    body = {field: value for field, value in told.items() if value is not None}
    if settings.stop is not None:
        single = spelled.get("stop") == "string" and len(settings.stop) == 1
        body["stop"] = settings.stop[0] if single else list(settings.stop)
    if settings.reasoning is not None:
        body["reasoning_effort"] = _effort(settings.reasoning)
    if (choice := settings.tool_choice) == "required":
        body["tool_choice"] = spelled.get("tool_choice", "any")
    elif choice is not None:
        body["tool_choice"] = choice if choice in _CHOICES else {"type": "function", "function": {"name": name(choice)}}
    return body


def _effort(setting: str | int) -> str:
    """A level, or the level nearest to a budget of tokens."""
    if isinstance(setting, int):
        return "low" if setting <= 2048 else "medium" if setting <= 8192 else "high"
    return "none" if setting == "off" else setting


def _chosen(value: Any) -> str | None:
    """The choice of a tool, where it is a plain one."""
    if isinstance(value, str):
        return _CHOICES.get(value)
    name = if_text(if_object(if_object(value).get("function")).get("name"))
    return name if name not in ("", *_CHOICES) and value == {"type": "function", "function": {"name": name}} else None
