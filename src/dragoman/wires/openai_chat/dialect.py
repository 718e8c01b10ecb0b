"""Chat Completions as a format of the Chat family.

The tables start from the family's and add what the many vendors of this API have beside it: further
ways to write a setting, further paths of token counts, further finish reasons. `OpenAIChat`
overrides the operations that differ. Which ways a single vendor takes is in its `Quirks`.
"""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec import error_rules
from dragoman.codec.error_rules import ErrorInfo, ErrorRules, read_vendor_status
from dragoman.codec.json_values import as_list, if_object, if_objects, if_text
from dragoman.errors import DragomanError, OverloadedError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Usage
from dragoman.request import Effort
from dragoman.wires.chat import ChatDialect
from dragoman.wires.chat import usage as chat_usage
from dragoman.wires.chat.content import READERS, read_text
from dragoman.wires.chat.errors import make_error
from dragoman.wires.chat.record import DialectRecord, SettingWriter
from dragoman.wires.chat.request import ROUTES
from dragoman.wires.chat.serving import MEDIA_ROUTES
from dragoman.wires.chat.settings import SETTINGS, as_it_is, reasoning
from dragoman.wires.openai_chat import messages, tools
from dragoman.wires.openai_chat.decode import Decoder
from dragoman.wires.openai_chat.encode import Encoder
from dragoman.wires.openai_chat.quirks import NAME, OWN, Quirks

__all__ = ["WIRE", "OpenAIChat"]

# settings


def _return_none(_: Any, __: object = None) -> None:
    return None


_UNSUPPORTED = SettingWriter("", _return_none, _return_none)
"""Writes nothing: the vendor has no such setting."""


def _reasoning(setting: Effort | int) -> Json:
    if isinstance(setting, int):
        return {"max_tokens": setting}
    return {"effort": "none" if setting == "off" else setting}


def _thinking(setting: Effort | int) -> Json:
    if isinstance(setting, int):
        return {"type": "enabled", "budget_tokens": setting}
    return {"type": "disabled" if setting == "off" else "enabled"}


def _cache(field: str, values: JsonMap) -> SettingWriter:
    """Returns the reader and writer for OpenAI's prompt cache settings. `values`: setting → the
    value of the field."""

    def load(value: Any) -> str | None:
        """Returns the cache setting that a value of OpenAI's field stands for."""
        for cache, field_value in values.items():
            if field_value == value:
                return cache
        return None

    return SettingWriter(field, load, lambda cache, _: values.get(cache))


WAYS = {
    **SETTINGS,
    "max_tokens": (*SETTINGS["max_tokens"], as_it_is("max_completion_tokens", int)),
    "reasoning": (
        *SETTINGS["reasoning"],
        reasoning("reasoning", _reasoning),
        reasoning("thinking", _thinking),
        reasoning("enable_thinking", lambda setting: setting != "off"),
        reasoning("chat_template_kwargs", lambda setting: {"enable_thinking": setting != "off"}),
        as_it_is("thinking_token_budget", int),
        _UNSUPPORTED,
    ),
    "cache": (
        _UNSUPPORTED,
        _cache("prompt_cache_retention", {"long": "24h"}),
        _cache(
            "cache_control",
            {"short": {"type": "ephemeral"}, "long": {"type": "ephemeral", "ttl": "1h"}},
        ),
    ),
    "tool_choice": (
        *SETTINGS["tool_choice"],
        SettingWriter("function_call", tools.load_function_choice, tools.dump_function_choice),
    ),
}
"""Setting → the ways to write it. A vendor's quirks say which of them it takes."""

# tokens, and the reason to stop

_CACHED = "prompt_tokens_details"
COUNTS = {
    **chat_usage.COUNTS,
    "cache_read_tokens": (
        (_CACHED, "cached_tokens"),
        ("prompt_cache_hit_tokens",),
        ("cache_read_input_tokens",),
        ("cached_tokens",),
    ),
    "cache_write_tokens": ((_CACHED, "cache_write_tokens"), ("cache_creation_input_tokens",)),
    "reasoning_tokens": (*chat_usage.COUNTS["reasoning_tokens"], ("reasoning_tokens",)),
}
FINISH = {
    **chat_usage.FINISH,
    "eos": FinishReason.stop,
    "end_turn": FinishReason.stop,
    "function_call": FinishReason.tool_calls,
}
_ANY = ("stop", "length", "tool_calls", "content_filter")
WORDS = {
    **chat_usage.WORDS,
    FinishReason.tool_calls: ("tool_calls", "function_call"),
    FinishReason.refusal: ("content_filter", "stop", "length", "tool_calls"),
    FinishReason.unspecified: _ANY,
}
"""Neutral finish reason → the words for it. The API has none for a refusal, so any word may
accompany one."""


def load_usage(chat: DialectRecord, fields: JsonMap) -> tuple[Usage | None, Json]:
    """Reads token counts. Returns the neutral counts, and what else the vendor says.

    Some vendors count thinking, or the cache, beside the tokens of answer and prompt instead of
    within them. If the total shows that, they are counted in.
    """
    counts, fields_left = chat_usage.load_usage(chat, fields)
    if counts is None or counts.input_tokens is None or counts.output_tokens is None:
        return counts, fields_left
    prompt, answer, total = counts.input_tokens, counts.output_tokens, counts.total_tokens
    cached = (counts.cache_read_tokens or 0) + (counts.cache_write_tokens or 0)
    thought = counts.reasoning_tokens
    if total is None:
        total = prompt + answer
    elif thought and total == prompt + answer + thought:
        answer += thought
    elif cached and total == prompt + cached + answer:
        prompt += cached
    counts = replace(counts, input_tokens=prompt, output_tokens=answer, total_tokens=total)
    return counts, fields_left


# errors

RULES = ErrorRules(statuses={498: OverloadedError})
"""Statuses with a meaning of their own: Groq answers 498 when its flex tier is at capacity."""


def error_of(chat: DialectRecord, chunk: JsonMap) -> DragomanError | None:
    """Returns the error that a chunk, or one of its choices, holds instead of an answer, or None."""
    if chunk.get("error"):
        return make_error(chat, chunk)
    for choice in as_list(chunk.get("choices"), "choices"):
        if isinstance(choice, dict) and (error := cast("Json", choice).get("error")):
            return make_error(chat, {**chunk, "error": error})
    # MiniMax reports errors in `base_resp`, with a status of success.
    if "base_resp" in chunk and read_vendor_status(chunk):
        return make_error(chat, chunk)
    return None


def error_info(payload: Any) -> ErrorInfo:
    """Reads the JSON of an error. Some vendors put the OpenAI Chat request's id beside it. Groq says
    what its model wrote in place of a call."""
    info = error_rules.read_error_info(payload)
    outer = next(iter(if_objects(payload)), if_object(payload))
    return replace(
        info,
        request_id=info.request_id or if_text(outer.get("id")) or None,
        refused=if_text(if_object(outer.get("error")).get("failed_generation")),
    )


class OpenAIChat(ChatDialect, frozen=True, kw_only=True, eq=False):
    """Chat Completions."""

    decoder_type, encoder_type = Decoder, Encoder
    fit = messages.fit
    dump_noted_block = staticmethod(messages.dump_noted_block)
    dump_piece = staticmethod(messages.dump_piece)
    explain_unsendable = staticmethod(messages.explain_unsendable)
    load_tools, dump_tools = tools.load_tools, staticmethod(tools.dump_tools)
    load_usage = load_usage
    error_info, error_of = staticmethod(error_info), error_of
    call_votes = staticmethod(messages.call_votes)


WIRE = OpenAIChat(
    name=NAME,
    own=OWN,
    quirks=Quirks,
    thinking=("reasoning_content", "reasoning"),
    details="reasoning_details",
    files_of="openai_responses",
    roles=messages.ROLES,
    result_roles=("tool", "function"),
    inputs={"function": "arguments", "custom": "input"},
    fields=messages.FIELDS,
    single=("audio", "function_call"),
    alone=("audio", "function_call", "refusal"),
    further=("functions",),
    streaming={"stream_options": {"include_usage": True}},
    readers={**READERS, "refusal": read_text},
    settings=WAYS,
    counts=COUNTS,
    finish=FINISH,
    words=WORDS,
    evidence=messages.EVIDENCE,
    layout=messages.LAYOUT,
    routes=(*ROUTES, *MEDIA_ROUTES),
    error_rules=RULES,
)
"""The wire."""
