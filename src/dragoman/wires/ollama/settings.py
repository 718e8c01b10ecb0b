"""Settings ⇄ the object `options` of the body, and `think`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from dragoman.codec.json_values import if_list, if_object
from dragoman.request import Settings
from dragoman.wires.ollama.quirks import Quirks

__all__ = ["NAMES", "UNKNOWN", "dump_options", "dump_think", "load_options", "load_think"]

Reasoning = Literal["off", "low", "medium", "high"] | int
NAMES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "temperature": ("temperature", (int, float)),
    "num_predict": ("max_tokens", (int,)),
    "top_p": ("top_p", (int, float)),
    "top_k": ("top_k", (int,)),
    "presence_penalty": ("presence_penalty", (int, float)),
    "frequency_penalty": ("frequency_penalty", (int, float)),
    "seed": ("seed", (int,)),
}
"""Option → the setting that it is, and its types."""
UNKNOWN = ("tool_choice", "parallel_tool_calls")
"""Settings that the API does not know."""
_LEVELS: tuple[Literal["low", "medium", "high"], ...] = ("low", "medium", "high")


def load_options(options: dict[str, Any], spelled: dict[str, Any]) -> dict[str, Any]:
    """Takes out of `options` what settings say."""
    known: dict[str, Any] = {}
    for name, (setting, types) in NAMES.items():
        if isinstance(options.get(name), types) and not isinstance(options[name], bool):
            known[setting] = options.pop(name)
    stop = options.get("stop")
    if isinstance(stop, str):
        known["stop"], spelled["stop"] = (options.pop("stop"),), "string"
    elif isinstance(stop, list) and all(isinstance(text, str) for text in if_list(stop)):
        known["stop"] = tuple(if_list(options.pop("stop")))
    return known


def dump_options(settings: Settings, spelled: Mapping[str, Any]) -> dict[str, Any]:
    """Settings → options."""
    options = {name: value for name, (own, _) in NAMES.items() if (value := getattr(settings, own)) is not None}
    if settings.stop is not None:
        single = spelled.get("stop") == "string" and len(settings.stop) == 1
        options["stop"] = settings.stop[0] if single else list(settings.stop)
    return options


def load_think(think: Any) -> Reasoning | None:
    """`think` → the setting; `None` where it says nothing. Plain `true` is a medium effort."""
    if isinstance(think, bool):
        return "medium" if think else "off"
    return cast("Reasoning", think) if think in _LEVELS else None


def dump_think(setting: Reasoning, model: str, quirks: Quirks) -> bool | str:
    """The setting → `think`: a level for the models that have them, else true or false. A budget is the nearest level."""
    if setting == "off":
        return False
    if isinstance(setting, int):
        setting = "low" if setting <= 2048 else "medium" if setting <= 8192 else "high"
    return setting if quirks.has_levels(model) else True


def neutral(body: Mapping[str, Any]) -> dict[str, Any]:
    """The options whose name is a setting's though their value is none, such as null."""
    return {name: value for name, value in if_object(body).items() if name in (*NAMES, "stop")}
