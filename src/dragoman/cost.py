"""What a call of a model cost, in US dollars: as the provider told it, else by the prices that
`genai-prices` knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache
from importlib import import_module
from math import isfinite
from typing import Any, cast
from urllib.parse import urlsplit

from dragoman.errors import SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import NOTES, Native, Origin, Usage
from dragoman.runtime import extra_hint

__all__ = ["call_cost", "find_call_cost", "need_prices"]

_FREE = Decimal(0)
_OWN_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 - read, never bound
_CLOUD = ("-cloud", ":cloud")
"""How the names of models end that an Ollama server passes on to a place that costs."""
_BEDROCK = ".api.aws"
"""How the hosts of Bedrock's OpenAI-compatible API end."""
_TICKS = Decimal(10) ** 10
"""Parts of a dollar in which xAI counts."""

_COUNTS: Mapping[str, str] = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "reasoning_tokens": "output_reasoning_tokens",
}
"""Fields of `Usage` → the units that have prices. There too cached and reasoning tokens are parts
of the totals."""
_DETAILS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "cache_write_5m_tokens": (("usage", "cache_creation", "ephemeral_5m_input_tokens"),),
    "cache_write_1h_tokens": (("usage", "cache_creation", "ephemeral_1h_input_tokens"),),
    "input_audio_tokens": (("usage", "prompt_tokens_details", "audio_tokens"),),
    "output_audio_tokens": (("usage", "completion_tokens_details", "audio_tokens"),),
    "web_searches": (
        ("usage", "server_tool_use", "web_search_requests"),
        ("tool_usage", "web_search", "num_requests"),
    ),
}
"""Units → where in a provider's answer they stand."""
_STEP = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_MODALITIES: Mapping[str, str] = {
    "promptTokensDetails": "input_{}_tokens",
    "toolUsePromptTokensDetails": "input_{}_tokens",
    "candidatesTokensDetails": "output_{}_tokens",
    "cacheTokensDetails": "cache_{}_read_tokens",
}
"""Google's lists of tokens by kind → their units."""
_KINDS: Mapping[str, str] = {
    "AUDIO": "audio",
    "IMAGE": "image",
    "DOCUMENT": "image",
    "VIDEO": "video",
}
"""Google's kinds → those of the units; text is the rest."""
_CONTEXT: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "service_tier": (
        ("service_tier",),
        ("usage", "service_tier"),
        ("usageMetadata", "serviceTier"),
    ),
    "speed": (("usage", "speed"),),
}
"""What else decides a price → where in a provider's answer it stands."""
_TOLD = frozenset({"usage", "usageMetadata", "tool_usage", "service_tier", "cost"})
"""Fields of an answer in which all of this stands, and the provider's own figure."""


def call_cost(
    origin: Origin | None,
    usage: Usage | None,
    created_at: datetime | None = None,
    native: Native = None,
) -> Decimal | None:
    """Returns the cost of one call in US dollars; `None`: its tokens or their price are unknown.

    `origin`, `usage` and `native` are those of the message's end, `created_at` decides which of a
    model's prices counts (`None`: today's).

    Raises:
        SettingsError: prices are needed, and `genai-prices` is not installed.
    """
    response = _find_response_note(native)
    if (reported := _provider_cost(response)) is not None:
        return reported
    if origin is None:
        return None
    # After the provider's own figure: a local server may tell a price.
    if _is_free(origin):
        return _FREE
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return _sum_prices(origin, usage, response, created_at)


def find_call_cost(
    origin: Origin | None,
    usage: Usage | None,
    created_at: datetime | None = None,
    native: Native = None,
) -> Decimal | None:
    """Returns what `call_cost` does, and `None` also where the package with the prices is not
    installed: for those who show a cost if there is one."""
    try:
        return call_cost(origin, usage, created_at, native)
    except SettingsError:
        return None


def _sum_prices(
    origin: Origin, usage: Usage, response: JsonMap, created_at: datetime | None
) -> Decimal | None:
    """Returns the cost of all that a call used, by the list of prices; `None`: one is unknown."""
    texts = {name: _first(response, paths) for name, paths in _CONTEXT.items() if response}
    context = {name: text for name, text in texts.items() if isinstance(text, str)}
    model = origin.served_model or origin.model or ""
    total = _FREE
    for name, units in [
        (model, _priced_units(usage, response)),
        *_find_adviser_usage(model, response),
    ]:
        cost = _price_of(origin, name, units, created_at, context)
        if cost is None:
            return None
        total += cost
    return total


def need_prices() -> None:
    """Checks that the package of prices is installed, without reading the prices.

    Raises:
        SettingsError: they are not.
    """
    from importlib.util import find_spec

    if find_spec("genai_prices") is None:
        raise _missing()


def _missing() -> SettingsError:
    return SettingsError(
        f"what a call of a model cost is told by the package genai-prices: {extra_hint('cost')}"
    )


def _price_of(
    origin: Origin,
    model: str,
    units: Mapping[str, int],
    created_at: datetime | None,
    context: Mapping[str, str],
) -> Decimal | None:
    """Returns the price of units of one kind, such as input tokens, in US dollars."""
    try:
        from genai_prices import Usage as Units
        from genai_prices import calc_price
    except ImportError as error:
        raise _missing() from error
    options: Json = {
        "genai_request_timestamp": created_at,
        "price_context": context or None,
    }
    # As Google lists them.
    name = model.removeprefix("models/")
    for provider in _price_provider_names(origin):
        try:
            return calc_price(Units(**units), name, **provider, **options).total_price
        except LookupError:
            continue
        except ValueError:
            # Counts that contradict each other.
            return None
    return None


def _price_provider_names(origin: Origin) -> list[dict[str, str]]:
    """Returns the names under which the price list may have the provider that answered: by
    endpoint, else by provider."""
    host = urlsplit(origin.endpoint or "").hostname or ""
    if host.endswith(_BEDROCK):
        name = "aws"
    else:
        name = _find_pricing(origin)[0]
    if origin.endpoint:
        by_endpoint = [{"provider_api_url": origin.endpoint}]
    else:
        by_endpoint = []
    if name:
        return [*by_endpoint, {"provider_id": name}]
    return by_endpoint


def _is_free(origin: Origin) -> bool:
    """True if a call cost nothing because the model ran on this machine: the embedded one, or that
    of a server here."""
    _, free = _find_pricing(origin)
    if free is None or free == "always":
        return free is not None
    is_here = urlsplit(origin.endpoint or "").hostname in _OWN_HOSTS
    return is_here and not (origin.model or "").endswith(_CLOUD)


def _find_pricing(origin: Origin) -> tuple[str | None, str | None]:
    """Returns the fields that decide a cost, `priced_as` and `free` of the record of the provider
    that answered."""
    record = _find_registry().find(origin.provider)
    if record is None:
        return (None, None)
    return (record.priced_as, record.free)


@cache
def _find_registry() -> Any:
    """Returns the registry of providers. Records stand layers above this module, which results and
    hooks need below them: they are found late, by name."""
    return import_module("dragoman.providers.registry").REGISTRY


def _provider_cost(response: JsonMap) -> Decimal | None:
    """Returns what the provider says that the call cost."""
    if not response:
        return None
    usage = _object(response.get("usage"))
    # OpenRouter with a key of yours: its fee, and what that key pays.
    if usage.get("is_byok") is True:
        paid = _parse_reported_cost(_at(usage, ("cost_details", "upstream_inference_cost")))
        if paid is None:
            return None
        return paid + (_parse_reported_cost(usage.get("cost")) or 0)
    for path in (("usage", "cost"), ("usage", "cost", "total_cost"), ("cost", "usd")):
        if (figure := _parse_reported_cost(_at(response, path))) is not None:
            return figure
    ticks = _parse_reported_cost(usage.get("cost_in_usd_ticks"))
    if ticks is None:
        return None
    return ticks / _TICKS


def _priced_units(usage: Usage, response: JsonMap) -> dict[str, int]:
    """Returns the numbers of tokens, and of the other units that a model call is priced by."""
    counts = {unit: getattr(usage, name) for name, unit in _COUNTS.items()}
    # As of most answers: their note says nothing, so nothing is looked for.
    if not response:
        return {unit: count for unit, count in counts.items() if count is not None}
    return _with_details(counts, response)


def _with_details(counts: dict[str, Any], response: JsonMap) -> dict[str, int]:
    """Returns the numbers of units with those that only the provider's own fields tell."""
    counts |= {unit: _first(response, paths) for unit, paths in _DETAILS.items()}
    counts |= {
        unit: count
        for unit, count in _object(_at(response, ("usage", "billed_units"))).items()
        if unit in counts
    }
    units = {unit: int(count) for unit, count in counts.items() if type(count) in (int, float)}
    for unit, count in _read_modalities(response):
        units[unit] = units.get(unit, 0) + count
    return units


def _read_modalities(response: JsonMap) -> Iterator[tuple[str, int]]:
    """Yields the counts of Google's tokens that are no text, each with the unit of its cost. Two of
    its modalities may be of one unit."""
    for name, unit in _MODALITIES.items():
        for entry in map(_object, _list(_at(response, ("usageMetadata", name)))):
            modality, count = _KINDS.get(str(entry.get("modality"))), entry.get("tokenCount")
            if modality is not None and type(count) is int:
                yield unit.format(modality), count


def _find_adviser_usage(served: str, response: JsonMap) -> list[tuple[str, dict[str, int]]]:
    """Returns Anthropic's usage of other models that took part in an answer and count for its cost,
    such as an adviser or a compaction, which its totals leave out."""
    parts: list[tuple[str, dict[str, int]]] = []
    for step in map(_object, _list(_at(response, ("usage", "iterations")))):
        if step.get("type") in (None, "message"):
            continue
        fresh, output, read, write = (
            count if type(count := step.get(name)) is int else 0 for name in _STEP
        )
        model = step.get("model")
        usage = Usage(
            input_tokens=fresh + read + write,
            output_tokens=output,
            cache_read_tokens=read,
            cache_write_tokens=write,
        )
        parts.append(
            (model if isinstance(model, str) else served, _priced_units(usage, {"usage": step}))
        )
    return parts


def _find_response_note(native: Native) -> JsonMap:
    """Returns the response's fields around the message, which the wire noted, if any of them has to
    do with a cost."""
    for key, notes in (native or {}).items():
        if key.endswith(NOTES):
            response = _object(_object(notes).get("response"))
            return {} if _TOLD.isdisjoint(response) else response
    return {}


def _first(response: JsonMap, paths: Iterable[tuple[str, ...]]) -> Any:
    # A loop: the server asks for some twenty fields a call, and most are not there.
    for path in paths:
        if (value := _at(response, path)) is not None:
            return value
    return None


def _at(value: object, path: Iterable[str]) -> Any:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = cast("Json", value).get(name)
    return value


def _object(value: object) -> JsonMap:
    if isinstance(value, dict):
        return cast("Json", value)
    return {}


def _list(value: object) -> list[Any]:
    if isinstance(value, list):
        return cast("list[Any]", value)
    return []


def _parse_reported_cost(value: object) -> Decimal | None:
    """Returns the cost that a provider reports in its JSON, as the decimal number that stands
    there. None if it is no finite number of 0 or more."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not isfinite(value)
        or value < 0
    ):
        return None
    return Decimal(str(value))
