"""Who answered, why it stopped, and what it used: the fields of a response ↔ `Origin`,
`FinishReason`, `Usage`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dragoman.codec.json_values import if_object, if_text
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Message, Origin, Usage

__all__ = [
    "WIRES",
    "dump_finish",
    "dump_origin",
    "dump_usage",
    "load_finish",
    "load_origin",
    "load_usage",
    "reader_of",
    "wire_of",
]

_PROVIDERS = {
    "google-gla": "google",
    "google-vertex": "vertex",
    "google-cloud": "vertex",
    "grok": "xai",
    "x-ai": "xai",
}
"""pydantic-ai's name of a provider → ours, where they differ."""
_RESPONSES = {"openai": "openai-responses", "azure": "azure-responses"}
"""Provider → ours for its Responses API, which pydantic-ai does not tell apart by name."""
_NAMES = {"vertex": "google-cloud", **{ours: theirs for theirs, ours in _RESPONSES.items()}}
WIRES: Mapping[str, str] = {
    "anthropic": "anthropic",
    "google": "google",
    "vertex": "google",
    "openai-responses": "openai_responses",
    "azure-responses": "openai_responses",
}
"""Our name of a provider → the wire whose signatures the parts of its responses hold."""
_HOSTS = (
    "api.anthropic.com",
    "api.openai.com",
    "generativelanguage.googleapis.com",
    "aiplatform.googleapis.com",
)
"""Where providers are that are not told by their URL."""
_FIELD_IDS = ("", "content", "reasoning", "reasoning_content", "reasoning_details")
"""Ids of parts from Chat Completions, which are names of fields; all others are those of items,
which only the Responses API has."""
_FINISH = {
    "stop": FinishReason.stop,
    "length": FinishReason.length,
    "content_filter": FinishReason.content_filter,
    "tool_call": FinishReason.tool_calls,
    "error": FinishReason.error,
}
_WRITTEN = {
    **{reason: text for text, reason in _FINISH.items()},
    FinishReason.refusal: "content_filter",
    FinishReason.recitation: "content_filter",
}
_STATES = {"suspended": FinishReason.pause, "interrupted": FinishReason.cancelled}
_WRITTEN_STATES = {reason: state for state, reason in _STATES.items()}
_COUNTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "reasoning_tokens": "output_reasoning_tokens",
}
"""Field of `Usage` → pydantic-ai's, where 0 may also say that nothing was told."""
_TOLD = ("input_tokens", "output_tokens")
"""Fields of which 0 is told where another is not 0."""


def load_origin(
    response: JsonMap, parts: Sequence[JsonMap], origin: Origin | None
) -> Origin | None:
    """Returns where a Pydantic AI response came from. `origin`: returned if the response does not
    name its provider."""
    served = if_text(response.get("model_name")) or None
    id_ = if_text(response.get("provider_response_id")) or None
    model = if_text(response.get("model_id")).partition(":")[2] or None
    provider = _find_provider(response, parts, id_ or "")
    if not provider:
        if origin or not (served or id_):
            return origin
        return Origin("", model=model, served_model=served, response_id=id_)
    return Origin(provider, _find_endpoint(response), model, served, id_)


def _find_endpoint(response: JsonMap) -> str | None:
    """Returns the URL of the provider that answered in Pydantic AI, for an origin; `None` for its
    usual one, which says nothing."""
    url = if_text(response.get("provider_url"))
    if any(host in url for host in _HOSTS):
        return None
    return url.rstrip("/") or None


def _find_provider(response: JsonMap, parts: Sequence[JsonMap], id_: str) -> str:
    """Returns our name of the provider that a Pydantic AI response names, or else its parts; empty
    if none does. `id_`: the id of the response."""
    names = (if_text(fields.get("provider_name")) for fields in (response, *parts))
    name = next(filter(None, names), "")
    provider = _PROVIDERS.get(name, name)
    if provider in _RESPONSES and _is_of_items(id_, parts):
        return _RESPONSES[provider]
    return provider


def dump_origin(origin: Origin | None) -> Json:
    """Returns an origin as fields of a Pydantic AI response."""
    if origin is None:
        return {}
    fields = {
        "provider_name": _NAMES.get(origin.provider, origin.provider),
        "provider_url": origin.endpoint,
        "model_name": origin.served_model or origin.model,
        "provider_response_id": origin.response_id,
    }
    return {key: value for key, value in fields.items() if value}


def wire_of(origin: Origin | None) -> str | None:
    """Returns the wire whose signatures the parts of a Pydantic AI response hold."""
    if origin:
        return WIRES.get(origin.provider)
    return None


def reader_of(origin: Origin | None) -> str | None:
    """Returns the wire as which a reader takes the signatures of a Pydantic AI response. Empty if
    it takes none; `None` if each part names who signed it."""
    if origin is None or not origin.provider:
        return None
    return WIRES.get(_RESPONSES.get(origin.provider, origin.provider), "")


def load_finish(response: JsonMap) -> FinishReason | None:
    """Returns the finish reason of a Pydantic AI response."""
    if if_text(if_object(response.get("provider_details")).get("finish_reason")) == "refusal":
        return FinishReason.refusal
    reason = response.get("finish_reason")
    if isinstance(reason, str) and reason in _FINISH:
        return _FINISH[reason]
    return _STATES.get(if_text(response.get("state")))


def dump_finish(message: Message) -> Json:
    """Returns a finish reason as fields of a Pydantic AI response, with the state that the response
    is in."""
    reason = message.finish_reason
    if reason is None:
        return {}
    if reason in _WRITTEN_STATES:
        return {"state": _WRITTEN_STATES[reason]}
    if reason in _WRITTEN:
        return {"finish_reason": _WRITTEN[reason]}
    return {}


def load_usage(value: object) -> Usage | None:
    """Returns what a Pydantic AI response used; `None` where all counts are 0, as they are where
    nothing was told."""
    fields = if_object(value)
    counts = {
        field: count
        for field, theirs in _COUNTS.items()
        if type(count := fields.get(theirs)) is int
        and 0 <= count < 2**63
        and (count or field in _TOLD)
    }
    if any(counts.values()):
        return Usage(**counts)
    return None


def dump_usage(usage: Usage | None) -> Json:
    """Returns token counts as the field `usage` of a Pydantic AI response."""
    if usage is None:
        return {}
    counts = {theirs: getattr(usage, field) for field, theirs in _COUNTS.items()}
    return {key: count for key, count in counts.items() if count is not None}


def _is_of_items(id_: str, parts: Sequence[JsonMap]) -> bool:
    return id_.startswith("resp_") or any(
        if_text(part.get("id")) not in _FIELD_IDS for part in parts
    )
