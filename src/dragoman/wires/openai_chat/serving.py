"""Describes Chat Completions for a server: request bodies, further fields, and where clients keep a
token of the server."""

from __future__ import annotations

import msgspec

from dragoman.codec.body_schema import CHAT_BODY, EMBEDDINGS_BODY, MEDIA_BODIES, declare_types
from dragoman.codec.json_values import if_object, if_text, read_extra_fields
from dragoman.codec.serving import RequestFields, SealForm, forward_to
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, ThinkingPart, ToolCallPart
from dragoman.wires.chat.serving import OPENAI_MINOR
from dragoman.wires.openai_chat.quirks import NAME, OWN, Quirks

__all__ = [
    "forward",
    "bodies",
    "dump_call_seal",
    "dump_seal",
    "load_call_seal",
    "load_seal",
    "request_fields",
    "seal",
]

_MINOR = [
    "stream_options",
    "response_format.json_schema",
    "response_format.type",
    "provider",
    "transforms",
    "store",
]
forward = forward_to("/chat/completions")
"""Passes a client's body to a provider of the same API."""


def _restores(quirks: Quirks | None) -> bool:
    """True if a vendor takes thinking and signatures back, which the API's client libraries do not
    carry."""
    return (quirks or Quirks()).thinking is not None


request_fields = RequestFields(
    restores=_restores,
    newer={"max_tokens": "max_completion_tokens"},
    idle={
        "n": (1,),
        "store": (False,),
        "logprobs": (False,),
        "top_logprobs": (0,),
        "echo": (False,),
        "stream": (False,),
        "tools": ([],),
        "logit_bias": ({},),
        "modalities": (["text"],),
        "response_format": ({"type": "text"},),
        "reasoning_effort": ("default",),
        "include_reasoning": (True,),
    },
    minor=frozenset([*OPENAI_MINOR, *_MINOR]),
    candidates="n",
    references=frozenset(["models", "route", "preset"]),
    lengths=frozenset(["max_tokens", "max_completion_tokens"]),
    types=declare_types(
        number=("temperature", "top_p", "presence_penalty", "frequency_penalty"),
        whole=("max_tokens", "max_completion_tokens", "seed", "n", "top_logprobs"),
        flag=("stream", "parallel_tool_calls", "store", "logprobs"),
        text_or_list=("stop",),
        text_or_object=("tool_choice",),
        list=("tools", "modalities"),
        object=("response_format", "stream_options", "logit_bias"),
        text=("reasoning_effort", "user"),
    ),
)
"""Facts about request fields that have no neutral counterpart."""

bodies = {"/v1/chat/completions": CHAT_BODY, "/v1/embeddings": EMBEDDINGS_BODY, **MEDIA_BODIES}
"""Path → JSON Schema of the body that clients send there."""


def dump_seal(token: str) -> ThinkingPart:
    """Returns the piece in which a client keeps a server's token: encrypted reasoning, in the field
    that OpenRouter added to messages."""
    return ThinkingPart(native=OWN.note({"type": "reasoning.encrypted", "data": token}))


def load_seal(piece: Content) -> str | None:
    """Returns the seal token that a piece of a Chat Completions request to the server may hold, or
    None."""
    if not isinstance(piece, ThinkingPart):
        return None
    return if_text(OWN.fields(piece.native).get("data")) or None


def dump_call_seal(token: str, call: ToolCallPart) -> ToolCallPart:
    """Returns a call with a server's token in the field where Google's endpoint of the OpenAI Chat
    format keeps its signatures."""
    fields = {**OWN.fields(call.native), "extra_content": {"google": {"thought_signature": token}}}
    return msgspec.structs.replace(call, native={**(call.native or {}), NAME: fields})


def load_call_seal(call: ToolCallPart) -> tuple[str, ToolCallPart] | None:
    """Returns the token that an OpenAI Chat call may hold, and the call without it. None if it
    holds none."""
    fields = OWN.fields(call.native)
    extra = if_object(fields.get("extra_content"))
    google = if_object(extra.get("google"))
    token = if_text(google.get("thought_signature"))
    if not token:
        return None
    # Objects that held nothing else go too, so that the call is what it was before `dump_call_seal`.
    extra = _replace_field(extra, "google", read_extra_fields(google, "thought_signature"))
    fields = _replace_field(fields, "extra_content", extra)
    native = _replace_field(call.native or {}, NAME, fields)
    return token, msgspec.structs.replace(call, native=native or None)


def _replace_field(fields: JsonMap, name: str, value: JsonMap) -> Json:
    """Returns an OpenAI Chat object with another value of a field, or without the field if the
    value is empty."""
    if not value:
        return read_extra_fields(fields, name)
    return {**read_extra_fields(fields, name), name: value}


seal = SealForm(dump_seal, load_seal, dump_call_seal, load_call_seal)
"""Where clients keep a server's token."""
