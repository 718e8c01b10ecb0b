"""What is beside the content: ids, times, metadata, tokens, and whose answer it is.
`response_metadata` tells of the provider; what LangChain has no field for is in a field `dragoman`
of `additional_kwargs` and of `response_metadata`, which it passes on.

Fields that neutral ones do not give back as they were (mirrors that differ, odd shapes) are noted
with a digest of the content, and are written again while that has not changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import drop_empty, if_object, if_text, read_extra_fields
from dragoman.content import MarkPart, ToolResultPart
from dragoman.formats.langchain.envelope import (
    NAME,
    OWN,
    THINKING,
    OpenedMessage,
    base_type,
    defaults,
)
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import NOTES, FinishReason, Message, Native, Origin, Role, Usage

__all__ = [
    "OURS",
    "Extra",
    "as_was",
    "dump_extra",
    "dump_response",
    "dump_usage",
    "exactly",
    "is_usual",
    "is_usual_result",
    "load_extra",
    "load_response",
    "load_usage",
    "pop_extra",
    "provider",
    "set_kwargs",
]

OURS = "dragoman"
_PROVIDERS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "google_genai": "google",
    "mistralai": "mistral",
    "ollama": "ollama",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "groq": "groq",
    "xai": "xai",
    "openrouter": "openrouter",
    "together": "together",
}
"""LangChain's name of a provider → ours."""
_SENT = {ours: theirs for theirs, ours in _PROVIDERS.items()}
_MODELS = {
    "claude": "anthropic",
    "gemini": "google",
    "gpt-": "openai",
    "mistral": "mistral",
    "deepseek": "deepseek",
}
"""Beginnings of the names of models → who answers under them, where nothing else tells it."""
_REASONS: Mapping[str, FinishReason] = {
    **{reason.value: reason for reason in FinishReason},
    "end_turn": FinishReason.stop,
    "stop_sequence": FinishReason.stop,
    "completed": FinishReason.stop,
    "max_tokens": FinishReason.length,
    "incomplete": FinishReason.length,
    "tool_use": FinishReason.tool_calls,
    "function_call": FinishReason.tool_calls,
    "pause_turn": FinishReason.pause,
    "safety": FinishReason.content_filter,
}
_DETAILS = {
    "cache_read_tokens": ("input_token_details", "cache_read"),
    "cache_write_tokens": ("input_token_details", "cache_creation"),
    "reasoning_tokens": ("output_token_details", "reasoning"),
}
_COUNTS = ("input_tokens", "output_tokens", "total_tokens")


def provider(data: JsonMap) -> str | None:
    """Returns the provider that a LangChain message names, by dragoman's name, or None."""
    response = if_object(data.get("response_metadata"))
    if not response:
        return None
    if named := if_text(response.get("model_provider")):
        return _PROVIDERS.get(named, named)
    model = if_text(response.get("model_name")) or if_text(response.get("model"))
    return next(
        (provider_name for begin, provider_name in _MODELS.items() if model.startswith(begin)), None
    )


def load_response(
    data: JsonMap, origin: Origin | None, signer: str | None
) -> tuple[Origin | None, FinishReason | None]:
    """Returns the origin and the finish reason in the metadata of a LangChain model message.
    `origin`: the caller's default. `signer`: the provider, from `provider`."""
    response = if_object(data.get("response_metadata"))
    answered_by = origin
    if not response:
        return answered_by, None
    if own_origin := if_object(if_object(response.get(OURS)).get("origin")):
        try:
            answered_by = msgspec.convert(own_origin, Origin)
        except ValueError:  # half a character of UTF-16 is no ValidationError
            own_origin = {}
    if not own_origin and signer is not None:
        model = if_text(response.get("model_name")) or if_text(response.get("model"))
        answered_by = Origin(
            signer, served_model=model or None, response_id=if_text(response.get("id")) or None
        )
    reason = next(
        (
            text
            for key in ("finish_reason", "stop_reason", "done_reason", "status")
            if (text := response.get(key))
        ),
        None,
    )
    return answered_by, _REASONS.get(if_text(reason).lower())


def dump_response(origin: Origin | None, reason: FinishReason | None) -> Json:
    """Returns an origin and a finish reason as LangChain's `response_metadata`."""
    out: Json = {}
    if origin is not None:
        written = {
            "model_provider": _SENT.get(origin.provider, origin.provider),
            "model_name": origin.served_model or origin.model,
            "id": origin.response_id,
        }
        out = {key: value for key, value in written.items() if value is not None}
        plain = Origin(
            origin.provider, served_model=origin.served_model, response_id=origin.response_id
        )
        if origin != plain or _PROVIDERS.get(origin.provider, origin.provider) != origin.provider:
            out[OURS] = {"origin": msgspec.to_builtins(origin)}
    if reason is not None:
        out["finish_reason"] = reason.value
    return out


class Extra(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, frozen=True):
    """What LangChain has no field for."""

    created_at: datetime | None = None
    """Of the message."""
    metadata: Json = {}
    """The application's, of the message."""
    turn: str | None = None
    """Of the message."""
    id: str | None = None
    """Of a message of results, each of which is a message of LangChain's with an id of its own."""
    denied: bool = False
    """Of a result."""
    native: dict[str, Json] = {}
    """Of a message or result: the fields of other formats, never their notes."""


def foreign(native: Native) -> dict[str, Json]:
    """Returns the fields of other formats in a `native` for LangChain's metadata, where they say
    something."""
    if not native:
        return {}
    by_format = {
        key: drop_empty(if_object(value))
        for key, value in native.items()
        if key != NAME and NOTES[0] not in key
    }
    return {key: value for key, value in by_format.items() if value}


def load_extra(extra: object) -> Extra | None:
    """Returns what `dump_extra` wrote into a LangChain message; `None` where it is not that."""
    try:
        read = msgspec.convert(extra, Extra)
    except ValueError:  # half a character of UTF-16 is no ValidationError
        return None
    fine = extra and dump_extra(read) == extra and not any(NOTES[0] in key for key in read.native)
    if fine and NAME not in read.native:
        return read
    return None


def dump_extra(extra: Extra) -> Json:
    """Returns the field `dragoman` of `additional_kwargs`; empty where there is nothing to say."""
    return msgspec.to_builtins(extra)


def load_usage(value: object) -> tuple[Usage | None, Json]:
    """Returns the token counts in LangChain's `usage_metadata`, and its other fields. An unknown
    shape has no counts."""
    fields = if_object(value)
    counts = {key: fields.get(key) for key in _COUNTS}
    for name, (group, key) in _DETAILS.items():
        counts[name] = if_object(fields.get(group)).get(key)
    if not fields or any(type(count) is not int for count in counts.values() if count is not None):
        return None, {}
    usage = Usage(**counts)
    return usage, _find_unread_counts(fields, dump_usage(usage, {}))


def _find_unread_counts(fields: JsonMap, written: JsonMap) -> Json:
    """Returns what LangChain's `usage_metadata` says beside the counts that are `written` again."""
    more: Json = {}
    for key, value in fields.items():
        if key not in written:
            more[key] = value
        elif isinstance(value, dict) and (
            extra_counts := read_extra_fields(if_object(value), *written[key])
        ):
            more[key] = extra_counts
    return more


def dump_usage(usage: Usage, more: JsonMap) -> Json:
    """Returns token counts as `usage_metadata`. LangChain demands the three main counts, so unknown
    ones are 0."""
    out: Json = {key: getattr(usage, key) or 0 for key in _COUNTS}
    if usage.total_tokens is None:
        out["total_tokens"] = out["input_tokens"] + out["output_tokens"]
    for name, (group, key) in _DETAILS.items():
        if (count := getattr(usage, name)) is not None:
            out.setdefault(group, {})[key] = count
    for key, value in more.items():
        out[key] = (
            {**if_object(value), **out[key]}
            if isinstance(out.get(key), dict)
            else out.get(key, value)
        )
    return out


_MISSING = object()


def is_usual(opened_message: OpenedMessage, role: Role) -> bool:
    """True if a LangChain message, once read, is certainly written back exactly,
    `response_metadata` aside. Otherwise the caller writes it once to find the differences, and
    notes them."""
    data = opened_message.data
    kwargs = data.get("additional_kwargs", {})
    if not isinstance(data.get("content"), str) or not isinstance(kwargs, dict):
        return False
    if not _is_usual_extra(kwargs, "turn"):
        return False
    return role is not Role.MODEL or _is_usual_answer(opened_message)


def _is_usual_answer(opened_message: OpenedMessage) -> bool:
    """True if the metadata fields that only a LangChain model message has are certainly written
    back exactly."""
    data, kwargs = opened_message.data, if_object(opened_message.data.get("additional_kwargs"))
    if base_type(opened_message.type) != "ai" or not kwargs.keys().isdisjoint(
        (THINKING, "function_call")
    ):
        return False
    calls, usage = data.get("tool_calls"), data.get("usage_metadata")
    if not isinstance(calls, list) or not all(map(_is_usual_call, cast("list[Any]", calls))):
        return False
    if data.get("invalid_tool_calls") != [] or data.get("tool_call_chunks"):
        return False
    usual = defaults(opened_message.type, opened_message.form.get("wrap", "dict"))
    for name in ("additional_kwargs", "response_metadata"):
        if data.get(name) == {} and name not in usual:
            return False
    return usage is None or _is_usual_usage(usage)


def is_usual_result(opened_message: OpenedMessage) -> bool:
    """True if the LangChain message of a tool result, once read, is certainly written back
    exactly."""
    data = opened_message.data
    usual = defaults(opened_message.type, opened_message.form.get("wrap", "dict"))
    name, kwargs = data.get("name"), data.get("additional_kwargs", {})
    if base_type(opened_message.type) != "tool" or not isinstance(data.get("content"), str):
        return False
    if not isinstance(kwargs, dict) or not _is_usual_extra(kwargs, "turn", "id"):
        return False
    if name is None:
        return "name" in usual or "name" not in data
    return isinstance(name, str) and bool(name)


def _is_usual_extra(kwargs: Any, *names: str) -> bool:
    """True if what LangChain has no field for is nothing, or texts under these names."""
    if OURS not in kwargs:
        return True
    own_fields = if_object(kwargs[OURS])
    return bool(own_fields) and all(
        key in names and isinstance(field, str) and field for key, field in own_fields.items()
    )


def _is_usual_call(call: object) -> bool:
    """Returns whether a tool call has only the fields that LangChain always writes."""
    fields = if_object(call)
    return (
        fields.get("type") == "tool_call"
        and isinstance(fields.get("id"), str)
        and isinstance(fields.get("name"), str)
        and isinstance(fields.get("args"), dict)
    )


def _is_usual_usage(usage: object) -> bool:
    usage_read, more = load_usage(usage)
    return usage_read is not None and dump_usage(usage_read, more) == usage


def exactly(
    value: Message | ToolResultPart,
    native: Native,
    again: JsonMap,
    data: JsonMap,
) -> Native:
    """Returns `native` with a note of the fields that would not be written again as they were.
    `again`: the LangChain message as it would be written."""
    inner = if_object(again.get("data")) or if_object(again.get("kwargs")) or again
    differ = {key: field for key, field in data.items() if inner.get(key, _MISSING) != field}
    dropped = [key for key in inner if key not in data]
    return {
        **(native or {}),
        **(
            OWN.with_form(
                native,
                exact={"fields": differ, "dropped": dropped, "digest": _digest_message(value)},
            )
            or {}
        ),
    }


def as_was(value: Message | ToolResultPart, fields: Json, form: JsonMap) -> Json:
    """Returns the metadata fields of a LangChain message as they were noted, while the content is
    as it was."""
    exact = if_object(form.get("exact"))
    if not exact or exact.get("digest") != _digest_message(value):
        return fields
    return {**read_extra_fields(fields, *exact["dropped"]), **if_object(exact.get("fields"))}


def _digest_message(value: Message | ToolResultPart) -> str:
    """Returns a digest of what a LangChain message or result says, to see whether it was changed
    since it was read."""
    substance: Any = (
        [piece for piece in value.content if not isinstance(piece, MarkPart)]
        if isinstance(value, Message)
        else (value.id, value.result, value.is_error)
    )
    return blake2b(repr(substance).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def pop_extra(extra_fields: Json) -> Extra | None:
    """Takes what is under our key out of the fields of a LangChain message. Returns `None` if
    nothing is, or if it cannot be read."""
    extra = if_object(extra_fields.get("additional_kwargs"))
    if OURS not in extra:
        return None
    extra_read = load_extra(extra[OURS])
    if extra_read is not None:
        set_kwargs(extra_fields, read_extra_fields(extra, OURS))
    return extra_read


def set_kwargs(extra_fields: Json, extra: Json) -> None:
    """Sets `additional_kwargs` of a LangChain message's fields; an empty one is left out."""
    if extra:
        extra_fields["additional_kwargs"] = extra
    elif isinstance(extra_fields.get("additional_kwargs"), dict):
        del extra_fields["additional_kwargs"]
