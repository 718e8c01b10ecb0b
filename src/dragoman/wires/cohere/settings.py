"""Settings ⇄ fields of the body. A field whose value has no neutral meaning stays this wire's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dragoman.codec.json_values import if_list, if_object
from dragoman.loss import Loss
from dragoman.request import Settings
from dragoman.wires.cohere.quirks import Quirks

__all__ = ["FIELDS", "dump_settings", "load_settings"]

Reasoning = Literal["off", "low", "medium", "high"] | int
_SAME: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "temperature": ("temperature", (int, float)),
    "max_tokens": ("max_tokens", (int,)),
    "p": ("top_p", (int, float)),
    "k": ("top_k", (int,)),
    "presence_penalty": ("presence_penalty", (int, float)),
    "frequency_penalty": ("frequency_penalty", (int, float)),
    "seed": ("seed", (int,)),
}
_CHOICES = {"REQUIRED": "required", "NONE": "none"}
FIELDS = (*_SAME, "stop_sequences", "tool_choice", "thinking")
"""The body's fields that settings are told in."""


def load_settings(body: dict[str, Any]) -> Settings:
    """Takes out of `body` what settings say."""
    known: dict[str, Any] = {}
    for field, (setting, types) in _SAME.items():
        if isinstance(body.get(field), types) and not isinstance(body[field], bool):
            known[setting] = body.pop(field)
    stop = body.get("stop_sequences")
    if isinstance(stop, list) and all(isinstance(text, str) for text in if_list(stop)):
        known["stop"] = tuple(if_list(body.pop("stop_sequences")))
    if isinstance(choice := body.get("tool_choice"), str) and choice in _CHOICES:
        known["tool_choice"] = _CHOICES[body.pop("tool_choice")]
    thinking = if_object(body.get("thinking"))
    read = thinking.get("token_budget", "high") if thinking.get("type") == "enabled" else "off"
    if body.get("thinking") and _thinking(read, Quirks()) == thinking:
        known["reasoning"] = read
        del body["thinking"]
    return Settings(**known)


def dump_settings(settings: Settings, quirks: Quirks, losses: list[Loss]) -> dict[str, Any]:
    """Settings → fields of the body. A choice of one tool is the choice of any, and a loss."""
    body = {field: value for field, (own, _) in _SAME.items() if (value := getattr(settings, own)) is not None}
    if settings.stop is not None:
        body["stop_sequences"] = list(settings.stop)
    if (choice := settings.tool_choice) not in (None, "auto"):
        body["tool_choice"] = "NONE" if choice == "none" else "REQUIRED"
        if choice not in _CHOICES.values():
            losses.append(Loss(None, None, "tool_choice", f"the API can force a call, not that of {choice}"))
    if settings.parallel_tool_calls is not None:
        losses.append(Loss(None, None, "parallel_tool_calls", "the API has no such setting"))
    if settings.reasoning is not None:
        body["thinking"] = _thinking(settings.reasoning, quirks)
    return body


def _thinking(setting: Any, quirks: Quirks) -> dict[str, Any]:
    if setting == "off":
        return {"type": "disabled"}
    budget = setting if type(setting) is int else quirks.budgets.get(str(setting))
    return {"type": "enabled"} if budget is None else {"type": "enabled", "token_budget": budget}
