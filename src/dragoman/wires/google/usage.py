"""How an answer ended: finish reasons, counts, and the further fields of a response, both ways.

Gemini counts the answer apart from the thoughts, and the prompt apart from what its own tools
added; the neutral counts contain both. `load_usage` adds them and `dump_usage` subtracts them
again. A finish reason that says more than the neutral one is kept as the provider wrote it and
written again. `add_fields` joins the fields of streamed chunks.
"""

from __future__ import annotations

from dragoman.codec.json_values import if_list, if_object
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Usage

__all__ = [
    "BLOCKED",
    "CONTINUATION_TOKEN",
    "add_fields",
    "dump_finish",
    "dump_usage",
    "load_finish",
    "load_usage",
    "other_usage",
]

# D-126, and what the API has added since.
_REASONS = {
    "STOP": FinishReason.stop,
    "MAX_TOKENS": FinishReason.length,
    "SAFETY": FinishReason.content_filter,
    "BLOCKLIST": FinishReason.content_filter,
    "PROHIBITED_CONTENT": FinishReason.content_filter,
    "SPII": FinishReason.content_filter,
    "IMAGE_SAFETY": FinishReason.content_filter,
    "IMAGE_PROHIBITED_CONTENT": FinishReason.content_filter,
    "MODEL_ARMOR": FinishReason.content_filter,
    "RECITATION": FinishReason.recitation,
    "IMAGE_RECITATION": FinishReason.recitation,
    # Filters and rules of the account, by the words of the API's reference.
    "LANGUAGE": FinishReason.content_filter,
    "ESCALATION": FinishReason.content_filter,
    "PUP_LIMITED_DISABLED": FinishReason.content_filter,
    # What the model said cannot be used.
    "MALFORMED_FUNCTION_CALL": FinishReason.error,
    "UNEXPECTED_TOOL_CALL": FinishReason.error,
    "TOO_MANY_TOOL_CALLS": FinishReason.error,
    "MISSING_THOUGHT_SIGNATURE": FinishReason.error,
    "MALFORMED_RESPONSE": FinishReason.error,
    "NO_IMAGE": FinishReason.error,
    "IMAGE_OTHER": FinishReason.error,
    # The limit of one request; with a token the next request goes on (`request.py`).
    "CONTINUATION": FinishReason.length,
}
_NUMBERED = {
    1: "STOP",
    2: "MAX_TOKENS",
    3: "SAFETY",
    4: "RECITATION",
    7: "PROHIBITED_CONTENT",
    8: "PROHIBITED_CONTENT",
    11: "IMAGE_SAFETY",
}
"""Reasons as `$alt=json;enum-encoding=int` gives them, as far as AI Studio and Vertex mean the same
by a number."""
_SENT = {
    FinishReason.stop: "STOP",
    FinishReason.tool_calls: "STOP",
    FinishReason.length: "MAX_TOKENS",
    FinishReason.content_filter: "SAFETY",
    FinishReason.refusal: "SAFETY",
    FinishReason.recitation: "RECITATION",
}
_OUTPUT = ("candidatesTokenCount", "thoughtsTokenCount")
_INPUT = ("promptTokenCount", "toolUsePromptTokenCount")
BLOCKED = "block_reason"
"""Note of a message: why its prompt was blocked, as the seeds name it. The API has it in
`promptFeedback`."""
CONTINUATION_TOKEN = "continuationToken"  # noqa: S105 a field
"""Field of a candidate that was suspended, and of the request that goes on with it."""
_IN_PIECES = ("citationMetadata", "logprobsResult")
_READ = (*_INPUT, *_OUTPUT, "cachedContentTokenCount", "totalTokenCount")


def load_finish(reason: str | int | None) -> FinishReason:
    """Converts a Gemini finish reason, by its name or its number to the neutral one; `unspecified`
    for one that is not known."""
    if isinstance(reason, int):
        name = _NUMBERED.get(reason)
    else:
        name = reason
    return _REASONS.get(name or "", FinishReason.unspecified)


def dump_finish(reason: FinishReason | None, original: str | int | None = None) -> str | int:
    """Converts the neutral finish reason to the Gemini API's; `original` where the provider said
    more than the neutral one does."""
    if original is not None:
        return original
    return _SENT.get(reason or FinishReason.unspecified, "OTHER")


def load_usage(raw: JsonMap) -> Usage | None:
    """Returns the usage. The API counts the prompt without what its own tools added, and the Gemini
    answer without thoughts."""
    count = {key: value for key in _READ if type(value := raw.get(key)) is int}
    if not count:
        return None
    input_counts, output_counts = (
        [count[key] for key in keys if key in count] for keys in (_INPUT, _OUTPUT)
    )
    input_tokens, output_tokens = (
        sum(input_counts) if input_counts else None,
        sum(output_counts) if output_counts else None,
    )
    if input_tokens is None or output_tokens is None:
        total = None
    else:
        total = input_tokens + output_tokens
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=count.get("totalTokenCount", total),
        cache_read_tokens=count.get("cachedContentTokenCount"),
        reasoning_tokens=count.get("thoughtsTokenCount"),
    )


def other_usage(raw: JsonMap) -> Json:
    """Returns Gemini's usage beyond the neutral counts."""
    return {
        key: value
        for key, value in raw.items()
        if key not in _READ or key == "toolUsePromptTokenCount"
    }


def dump_usage(usage: Usage | None, other: JsonMap) -> Json:
    """Converts usage to the Gemini API's counts; what is not known is left out."""
    usage = usage or Usage()
    answer_tokens, thought, by_tools = (
        usage.output_tokens,
        usage.reasoning_tokens,
        other.get("toolUsePromptTokenCount"),
    )
    counts = {
        "promptTokenCount": None
        if usage.input_tokens is None
        else usage.input_tokens - (by_tools if type(by_tools) is int else 0),
        "candidatesTokenCount": None
        if answer_tokens is None or answer_tokens == thought
        else answer_tokens - (thought or 0),
        "thoughtsTokenCount": thought,
        "cachedContentTokenCount": usage.cache_read_tokens,
        "totalTokenCount": usage.total_tokens,
    }
    return {**{key: value for key, value in counts.items() if value is not None}, **other}


def add_fields(fields: Json, further: JsonMap) -> None:
    """Adds fields of a Gemini chunk to those of the answer so far. What comes in pieces is put
    together, all else is replaced."""
    for key, value in further.items():
        if isinstance(value, dict):
            before, more = if_object(fields.get(key)), if_object(value)
            fields[key] = {**before, **(_join_lists(before, more) if key in _IN_PIECES else more)}
        elif value is not None:
            fields[key] = value


def _join_lists(before: JsonMap, more: JsonMap) -> Json:
    """Returns the lists of two pieces of Gemini's `usageMetadata` joined."""
    return {
        key: [*if_list(before.get(key)), *if_list(value)] if isinstance(value, list) else value
        for key, value in more.items()
    }
