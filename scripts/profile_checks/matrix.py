"""Settings times models: which requests a table of facts says are refused, as they are asked for
and as dragoman sends them. The table is read here by code of its own, which shares nothing with the
package, so that a mistake in lowering shows."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dragoman import profiles, providers, wires
from dragoman.codec.efforts import EFFORTS
from dragoman.message import Message, Origin
from dragoman.profiles import attach_profile, lower_for
from dragoman.request import ModelRequest, Settings, ToolSpec

__all__ = ["MODELS", "SETTINGS", "count_left"]

TOOL = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})
SETTINGS: tuple[tuple[Settings, bool], ...] = (
    (Settings(temperature=0.2), False),
    (Settings(top_p=0.9), False),
    (Settings(top_k=40), False),
    (Settings(presence_penalty=0.5), False),
    (Settings(frequency_penalty=0.5), False),
    (Settings(seed=1), False),
    (Settings(stop=("x",)), False),
    (Settings(reasoning="off"), False),
    (Settings(reasoning="low"), False),
    (Settings(reasoning="medium"), False),
    (Settings(reasoning="high"), False),
    (Settings(reasoning=4000), False),
    (Settings(tool_choice="required"), True),
    (Settings(temperature=0.2, top_p=0.9), False),
    (Settings(temperature=0.2, reasoning="high"), False),
    (Settings(tool_choice="required", reasoning="high"), True),
    (Settings(reasoning="high"), True),
)
"""Settings, and whether the request has a tool."""
MODELS: Mapping[str, str] = {
    "anthropic": "claude-haiku-4-5 claude-sonnet-4-5 claude-opus-4-5 claude-sonnet-4-6 claude-opus-4-6 "
    "claude-opus-4-7 claude-opus-4-8 claude-opus-5 claude-opus-5-5 claude-sonnet-5 claude-sonnet-5-5 "
    "claude-haiku-5-5 claude-fable-5 claude-fable-5-2 claude-mythos-5-2",
    "openai": "gpt-4o gpt-4.1 o3 o4-mini gpt-5 gpt-5-mini gpt-5.1 gpt-5.2 gpt-5.4 gpt-5.4-nano gpt-5.5 "
    "gpt-5.6-sol gpt-6-sol gpt-6-astra",
    "openai-responses": "gpt-4o gpt-4.1 o3 o4-mini gpt-5 gpt-5-mini gpt-5-pro gpt-5.1 gpt-5.2 gpt-5.4 "
    "gpt-5.4-nano gpt-5.5 gpt-5.6-sol gpt-6-sol gpt-6-astra",
    "google": "gemini-2.5-flash gemini-2.5-pro gemini-3-flash-preview gemini-3-pro-preview "
    "gemini-3.1-pro-preview gemini-3.5-flash gemini-3.6-flash gemini-3.8-flash gemini-4-argon",
    "mistral": "mistral-small-2603 mistral-medium-3 mistral-large-2512 magistral-medium-2509 "
    "codestral-2508",
    "cohere": "command-a-03-2025 command-a-reasoning-08-2025 command-a-plus",
    "xai": "grok-3-mini grok-4.3 grok-4.5 grok-4.7",
    "deepseek": "deepseek-v4-flash deepseek-v4-pro deepseek-chat deepseek-reasoner",
    "groq": "openai/gpt-oss-120b qwen/qwen3-32b llama-3.3-70b-versatile "
    "meta-llama/llama-4-scout-17b-16e-instruct groq/compound",
}
"""Provider → its current models."""
_DEFAULTS = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
_FIELDS = {
    "topP": "top_p",
    "p": "top_p",
    "topK": "top_k",
    "k": "top_k",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
    "random_seed": "seed",
    "stop_sequences": "stop",
    "stopSequences": "stop",
}
_NAMES = (*_DEFAULTS, "top_k", "seed", "stop")


def count_left(path: Path, *, verbose: bool = False) -> tuple[int, int, int]:
    """Returns how many requests are refused as they are asked for, how many as they are sent, and
    how many there are. `path`: the table of facts."""
    facts = tomllib.loads(path.read_text("utf-8"))
    before = left = total = 0
    for provider_name, names in MODELS.items():
        provider = providers.get(provider_name)
        family = provider.family if isinstance(provider.family, str) else provider.name
        for model in names.split():
            cells = read_cells(facts[family], model, provider.wire)
            for settings, has_tool in SETTINGS:
                total += 1
                tools = (TOOL,) if has_tool else ()
                request = ModelRequest(model, (Message.user("Hi."),), tools, settings)
                before += bool(find_faults(_dump(provider_name, request, None), cells))
                profile = profiles.get(f"{provider_name}:{model}")
                faults = find_faults(_dump(provider_name, request, profile), cells)
                left += bool(faults)
                if faults and verbose:
                    print(f"left: {provider_name}:{model}", settings, *faults)
    return before, left, total


def _dump(provider_name: str, request: ModelRequest, profile: Any) -> dict[str, Any]:
    """The body that is sent, lowered by a profile."""
    provider = providers.get(provider_name)
    wire = wires.get(provider.wire)
    request, _ = lower_for(request, profile, provider.wire)
    quirks = attach_profile(provider.quirks, wire, profile)
    target = Origin(provider.name, None, request.model)
    return wire.dump_request(request, target=target, quirks=quirks)


# the table of facts


def read_cells(vendor: dict[str, Any], model: str, wire: str) -> dict[str, Any]:
    """Returns the cells of a model as they are where it is asked by a wire."""
    name = model.lower().replace(".", "-")
    names = [name, name.rpartition("/")[2]]
    best, cells = -1, {}
    for key, entry in vendor.items():
        for beginning in entry.get("names", ()):
            plain = beginning.lower().replace(".", "-")
            for candidate in names:
                rest = candidate[len(plain) :]
                fits = candidate.startswith(plain) and re.match(
                    r"$|[-.@:_](?!\d\d?($|-(?!\d{4})))", rest
                )
                if key != "base" and fits and len(plain) > best:
                    best, cells = len(plain), _inherit(vendor, key)
    merged = _merge(vendor.get("base", {}), cells)
    special = merged.get("on", {}).get(wire, {})
    added = [*merged.get("refused", ()), *special.get("refused", ())]
    return {**merged, **special, "refused": added}


def _inherit(vendor: dict[str, Any], key: str) -> dict[str, Any]:
    entry = vendor[key]
    if "like" not in entry:
        return entry
    parent = dict(_inherit(vendor, entry["like"]))
    for name in entry.get("unset", ()):
        parent.pop(name, None)
        if name == "on.openai_chat.refused_stop":
            chat = {
                field: v
                for field, v in parent["on"]["openai_chat"].items()
                if field != "refused_stop"
            }
            parent["on"] = {**parent["on"], "openai_chat": chat}
    return _merge(parent, entry)


def _merge(parent: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    on = {wire: dict(cells) for wire, cells in parent.get("on", {}).items()}
    for wire, cells in entry.get("on", {}).items():
        on[wire] = {**on.get(wire, {}), **cells}
    return {**parent, **entry, **({"on": on} if on else {})}


# a body held against it


def find_faults(body: dict[str, Any], cells: dict[str, Any]) -> list[str]:
    """Returns what the model refuses of a body, by these cells."""
    settings = dict(_read_sampling(body))
    thinking = _read_thinking(body)
    faults = [*_sampling_faults(settings, thinking, cells), *_thinking_faults(thinking, cells)]
    if _is_forced(body) and not _can_force(thinking, cells):
        faults.append("tool_choice")
    thinks = _thinks(thinking, cells)
    if cells.get("tools_need_off") and body.get("tools") and thinks and thinking is not None:
        faults.append("tools while it thinks")
    if body.get("tools") and cells.get("tools") is False:
        faults.append("tools")
    return faults + [field for field in cells.get("refused_fields", ()) if field in body]


def _read_sampling(body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for field, value in {**body, **body.get("generationConfig", {})}.items():
        if (name := _FIELDS.get(field, field)) in _NAMES:
            yield name, value


def _read_thinking(body: dict[str, Any]) -> str | int | None:
    """How a body asks to think: the API's word for an effort or for off, tokens, `on`, or None."""
    config = body.get("generationConfig", {}).get("thinkingConfig", {})
    thinking = body.get("thinking") or {}
    effort = body.get("output_config", {}).get("effort")
    effort = effort or body.get("reasoning_effort") or body.get("reasoning", {}).get("effort")
    budget = config.get(
        "thinkingBudget", thinking.get("budget_tokens", thinking.get("token_budget"))
    )
    kind = thinking.get("type")
    if kind in ("disabled", "between_tools"):
        return kind
    return effort or config.get("thinkingLevel") or budget or ("0" if budget == 0 else kind)


def _thinks(thinking: str | int | None, cells: dict[str, Any]) -> bool:
    if thinking is None:
        return cells.get("thinks") in ("default", "always")
    return thinking not in ("none", "disabled", "between_tools", "0")


def _thinking_faults(thinking: str | int | None, cells: dict[str, Any]) -> Iterator[str]:
    if thinking is None:
        return
    efforts, ways, off = cells.get("efforts"), cells.get("ways"), cells.get("off")
    if thinking in ("disabled", "between_tools", "none", "0"):
        if off is not None and thinking not in off and thinking not in (efforts or ()):
            yield f"thinking {thinking}"
        if off is None and efforts is not None and thinking == "none" and "none" not in efforts:
            yield "thinking none"
    elif isinstance(thinking, int):
        least, most = cells.get("budget", (0, 0))
        if ways is not None and "budget" not in ways:
            yield "a budget"
        elif thinking < least or (most and thinking > most):
            yield f"a budget of {thinking}"
    elif thinking in EFFORTS and efforts is not None and thinking not in efforts:
        yield f"effort {thinking}"


def _sampling_faults(
    settings: dict[str, Any], thinking: str | int | None, cells: dict[str, Any]
) -> Iterator[str]:
    refused, fixed = {*cells["refused"]}, {*cells.get("fixed", ())}
    if _thinks(thinking, cells):
        refused |= {*cells.get("refused_thinking", ())}
        fixed |= {*cells.get("fixed_thinking", ())}
    if cells.get("refused_stop"):
        refused.add("stop")
    for name, value in settings.items():
        is_usual = value == _DEFAULTS.get(name)
        if (name in refused and not (is_usual and name in cells.get("default_passes", ()))) or (
            name in fixed and not is_usual
        ):
            yield name
    for pair in cells.get("together", ()):
        if all(name in settings for name in pair):
            yield " with ".join(pair)


def _is_forced(body: dict[str, Any]) -> bool:
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        return choice.get("type") not in ("auto", "none")
    mode = body.get("toolConfig", {}).get("functionCallingConfig", {}).get("mode", "")
    return str(choice or mode or "auto").lower() not in ("auto", "none", "")


def _can_force(thinking: str | int | None, cells: dict[str, Any]) -> bool:
    match cells.get("forced"):
        case "no":
            return False
        case "unless-thinking":
            return not _thinks(thinking, cells)
        case "unless-budget":
            return not isinstance(thinking, int)
        case _:
            return True
