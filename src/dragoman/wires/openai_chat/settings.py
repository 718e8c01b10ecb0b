"""Settings ⇄ fields of the body. A field whose value has no neutral meaning stays this wire's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from dragoman.codec.json_values import if_object, if_text
from dragoman.loss import Loss
from dragoman.request import Settings
from dragoman.wires.openai_chat.quirks import Quirks

__all__ = ["FIELDS", "dump_settings", "load_settings"]

Reasoning = Literal["off", "low", "medium", "high"] | int
_LEVELS: tuple[Literal["off", "low", "medium", "high"], ...] = ("off", "low", "medium", "high")
_SAME: dict[str, tuple[type, ...]] = {
    "temperature": (int, float),
    "top_p": (int, float),
    "top_k": (int,),
    "presence_penalty": (int, float),
    "frequency_penalty": (int, float),
    "seed": (int,),
    "parallel_tool_calls": (bool,),
}


def _effort(setting: Reasoning) -> str:
    """A level, or the level nearest to a budget of tokens."""
    if isinstance(setting, int):
        return "low" if setting <= 2048 else "medium" if setting <= 8192 else "high"
    return "none" if setting == "off" else setting


def _reasoning(setting: Reasoning) -> dict[str, Any]:
    return {"max_tokens": setting} if isinstance(setting, int) else {"effort": _effort(setting)}


def _thinking(setting: Reasoning) -> dict[str, Any]:
    if isinstance(setting, int):
        return {"type": "enabled", "budget_tokens": setting}
    return {"type": "disabled" if setting == "off" else "enabled"}


def _enable(setting: Reasoning) -> bool:
    return setting != "off"


_REASONING: dict[str, Callable[[Reasoning], Any]] = {
    "reasoning_effort": _effort,
    "reasoning": _reasoning,
    "thinking": _thinking,
    "enable_thinking": _enable,
}
_CACHES: Mapping[str, Mapping[str, Any]] = {
    "prompt_cache_retention": {"long": "24h"},
    "cache_control": {"short": {"type": "ephemeral"}, "long": {"type": "ephemeral", "ttl": "1h"}},
}
"""Field → its value for each cache."""
FIELDS = (*_SAME, *_CACHES, "max_tokens", "max_completion_tokens", "stop", "tool_choice", "function_call", *_REASONING)
"""The body's fields that settings are told in."""


def load_settings(body: dict[str, Any], spelled: dict[str, Any]) -> Settings:
    """Takes out of `body` what settings say; notes in `spelled` how it was said, where that is not the usual way."""
    known: dict[str, Any] = {}
    for name, types in _SAME.items():
        if isinstance(body.get(name), types) and isinstance(body[name], bool) == (types == (bool,)):
            known[name] = body.pop(name)
    for name in ("max_tokens", "max_completion_tokens"):
        if "max_tokens" not in known and type(body.get(name)) is int:
            known["max_tokens"] = body.pop(name)
            if name != "max_tokens":
                spelled["max_tokens"] = name
    if isinstance(stop := body.get("stop"), str):
        known["stop"], spelled["stop"] = (body.pop("stop"),), "string"
    elif isinstance(stop, list) and all(isinstance(text, str) for text in cast("list[Any]", stop)):
        known["stop"] = tuple(body.pop("stop"))
    for name, dump in _REASONING.items():
        if "reasoning" not in known and (setting := _setting(body.get(name), dump)) is not None:
            known["reasoning"] = setting
            del body[name]
            if name != "reasoning_effort":
                spelled["reasoning"] = name
    for name, values in _CACHES.items():
        for cache, value in values.items():
            if body.get(name) == value and "cache" not in known:
                known["cache"], spelled["cache"] = cache, name
                del body[name]
    for name in ("tool_choice", "function_call"):
        if "tool_choice" not in known and (chosen := _chosen(body.get(name))) is not None:
            known["tool_choice"] = chosen
            del body[name]
            if name != "tool_choice":
                spelled["tool_choice"] = name
    return Settings(**known)


def dump_settings(
    settings: Settings, spelled: Mapping[str, Any], quirks: Quirks, name: Callable[[str], str], losses: list[Loss]
) -> dict[str, Any]:
    """Settings → fields of the body. `name`: a tool's name → the one that it is sent under."""
    body = {field: value for field in _SAME if (value := getattr(settings, field)) is not None}
    if settings.max_tokens is not None:
        body[spelled.get("max_tokens", quirks.max_tokens)] = settings.max_tokens
    if settings.stop is not None:
        single = spelled.get("stop") == "string" and len(settings.stop) == 1
        body["stop"] = settings.stop[0] if single else list(settings.stop)
    reasoning = spelled.get("reasoning", quirks.reasoning)
    if settings.reasoning is not None:
        dump = _REASONING[reasoning] if reasoning is not None else None
        if dump is None or _setting(dump(settings.reasoning), dump) != settings.reasoning:
            losses.append(Loss(None, None, "reasoning", f"the vendor cannot be told {settings.reasoning!r} as it is"))
        if reasoning is not None and dump is not None:
            body[reasoning] = dump(settings.reasoning)
    cached = spelled.get("cache", quirks.cache)
    if settings.cache is not None and cached is not None and settings.cache in _CACHES[cached]:
        body[cached] = _CACHES[cached][settings.cache]
    if (choice := settings.tool_choice) is not None:
        older = spelled.get("tool_choice") == "function_call"
        named = {"name": name(choice)}
        forced = named if older else {"type": "function", "function": named}
        body["function_call" if older else "tool_choice"] = choice if choice in _CHOICES else forced
    return body


_CHOICES = ("auto", "none", "required")


def _setting(value: Any, dump: Callable[[Reasoning], Any]) -> Reasoning | None:
    """What a field says of thinking, where it is one of the things that the setting can say."""
    settings: list[Reasoning] = [*_LEVELS, *(number for number in if_object(value).values() if type(number) is int)]
    said: list[Reasoning] = [
        setting for setting in settings if dump(setting) == value and type(dump(setting)) is type(value)
    ]
    return said[0] if len(said) == 1 else None


def _chosen(value: Any) -> str | None:
    """The choice of a tool, where it is a plain one."""
    if value in _CHOICES:
        return value
    choice = if_object(value)
    name = if_text(if_object(choice.get("function", choice)).get("name"))
    if not name or name in _CHOICES:
        return None
    return name if value in ({"name": name}, {"type": "function", "function": {"name": name}}) else None
