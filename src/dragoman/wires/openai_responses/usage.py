"""Reads and writes how a response ended: status, finish reason, usage, and what else it says of
itself."""

from __future__ import annotations

from typing import Any, cast

from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Usage

__all__ = [
    "REPEATED",
    "USUAL",
    "dump_finish",
    "dump_usage",
    "load_echo",
    "load_envelope",
    "load_finish",
    "load_usage",
]

_INCOMPLETE = {
    "max_output_tokens": FinishReason.length,
    "content_filter": FinishReason.content_filter,
}
_STATUSES = {"completed": FinishReason.stop, "cancelled": FinishReason.cancelled}
_SENT = {
    FinishReason.length: "max_output_tokens",
    FinishReason.content_filter: "content_filter",
    FinishReason.recitation: "content_filter",
}
_NEUTRAL = ("id", "object", "model", "output", "usage", "error", "output_text", "input_tokens")
_ECHOED = (
    "background", "conversation", "frequency_penalty", "include", "instructions", "max_output_tokens", "max_tool_calls",
    "parallel_tool_calls", "presence_penalty", "previous_response_id", "prompt", "prompt_cache_key",
    "prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "stream", "temperature", "text",
    "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
)  # fmt: skip
"""Fields of a response that only repeat those of its request."""
_LARGE = ("include", "instructions", "prompt", "tools")
"""Those of them that are not kept, since they would stand in every message again."""
REPEATED = (
    *[field for field in _ECHOED if field not in ("include", "stream")],
    "metadata",
    "store",
)
"""Fields that OpenAI's API itself repeats."""
USUAL: JsonMap = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""What a response repeats of its request, unless the envelope says otherwise."""
_OBJECTS = frozenset(key for key, usual in USUAL.items() if isinstance(usual, dict))


def load_finish(response: JsonMap, *, calls: bool, refused: bool) -> FinishReason:
    """Returns the neutral finish reason of a Responses answer. Calls that wait for an answer, and a
    refusal, come before a stop."""
    status = response.get("status", "completed")
    if status == "incomplete":
        details = response.get("incomplete_details")
        reason = cast("Json", details).get("reason") if isinstance(details, dict) else None
        return _INCOMPLETE.get(str(reason), FinishReason.unspecified)
    reason = _STATUSES.get(str(status), FinishReason.unspecified)
    if reason is FinishReason.stop and refused:
        return FinishReason.refusal
    if reason is FinishReason.stop and calls:
        return FinishReason.tool_calls
    return reason


def dump_finish(reason: FinishReason | None) -> Json:
    """Returns the fields of a Responses answer that say a finish reason."""
    if reason is not None and reason in _SENT:
        return {"status": "incomplete", "incomplete_details": {"reason": _SENT[reason]}}
    status = {FinishReason.cancelled: "cancelled", FinishReason.error: "failed"}.get(
        reason or FinishReason.stop
    )
    return {"status": status or "completed", "incomplete_details": None}


def load_envelope(response: JsonMap) -> Json:
    """Returns the fields of a Responses answer beyond the neutral ones, without what its request
    held. `store` is kept only if nothing is stored."""
    fields = {
        key: value
        for key, value in read_extra_fields(response, *_NEUTRAL, *_ECHOED).items()
        if value not in (None, {}, [])
    }
    # Storing is the default, so only its opposite is worth a note.
    if fields.get("store") is not False:
        fields.pop("store", None)
    if other := _other_usage(response.get("usage")):
        fields["usage"] = other
    return fields


def load_echo(response: JsonMap) -> Json:
    """Returns what a Responses answer repeats of its request, without usual and large values."""
    echoed = {key: response[key] for key in _ECHOED if key in response and key not in _LARGE}
    return {
        key: value
        for key, value in echoed.items()
        if value is not None
        and value != USUAL.get(key)
        and (isinstance(value, dict) or key not in _OBJECTS)
    }


def load_usage(usage: Any) -> Usage | None:
    """Reads the token counts (usage) of a Responses answer. Cached and reasoning tokens are
    included in the totals. None if there are no counts."""
    raw = if_object(usage)
    counts = {
        "input_tokens": raw.get("input_tokens"),
        "output_tokens": raw.get("output_tokens"),
        "total_tokens": raw.get("total_tokens"),
        "cache_read_tokens": if_object(raw.get("input_tokens_details")).get("cached_tokens"),
        "cache_write_tokens": if_object(raw.get("input_tokens_details")).get("cache_write_tokens"),
        "reasoning_tokens": if_object(raw.get("output_tokens_details")).get("reasoning_tokens"),
    }
    known = {name: count for name, count in counts.items() if type(count) is int}
    # Without a total the sum of both stands for it.
    if "total_tokens" not in known and {"input_tokens", "output_tokens"} <= known.keys():
        known["total_tokens"] = known["input_tokens"] + known["output_tokens"]
    return Usage(**known) if known else None


def _other_usage(usage: Any) -> Json:
    """Returns the usage in a Responses answer beyond the neutral counts, without what is zero or
    empty."""
    raw = if_object(usage)
    unread = read_extra_fields(raw, "input_tokens", "output_tokens", "total_tokens")
    for name, known in (
        ("input_tokens_details", ("cached_tokens", "cache_write_tokens")),
        ("output_tokens_details", ("reasoning_tokens",)),
    ):
        unread[name] = {
            key: value
            for key, value in read_extra_fields(if_object(raw.get(name)), *known).items()
            if value
        }
    return {key: value for key, value in unread.items() if value}


def dump_usage(usage: Usage, other: JsonMap = {}, *, complete: bool = False) -> Json:
    """Writes token counts. An unknown count is 0 where the Responses API demands a number.
    `complete`: write `cache_write_tokens` too, which newer versions of the API demand."""
    inputs, outputs, total = usage.input_tokens or 0, usage.output_tokens or 0, usage.total_tokens
    input_details = {
        **if_object(other.get("input_tokens_details")),
        "cached_tokens": usage.cache_read_tokens or 0,
    }
    if complete or usage.cache_write_tokens is not None:
        input_details["cache_write_tokens"] = usage.cache_write_tokens or 0
    output_details = {
        **if_object(other.get("output_tokens_details")),
        "reasoning_tokens": usage.reasoning_tokens or 0,
    }
    return {
        **other,
        "input_tokens": inputs,
        "input_tokens_details": input_details,
        "output_tokens": outputs,
        "output_tokens_details": output_details,
        "total_tokens": inputs + outputs if total is None else total,
    }
