"""Where clients of OpenAI's Chat Completions keep a server's token."""

from __future__ import annotations

from dragoman.codec.body_schema import CHAT_BODY, EMBEDDINGS_BODY
from dragoman.codec.field_types import typed
from dragoman.codec.json_values import if_text
from dragoman.codec.serving import RequestFields
from dragoman.message import Content, ThinkingPart
from dragoman.wires.chat.serving import OPENAI_MINOR
from dragoman.wires.openai_chat.quirks import OWN

__all__ = ["bodies", "dump_seal", "load_seal", "request_fields"]

_MINOR = ["stream_options", "response_format.json_schema", "response_format.type", "provider", "transforms", "store"]
request_fields = RequestFields(
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
    types=typed(
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
"""What is known of further fields of a request."""

bodies = {"/v1/chat/completions": CHAT_BODY, "/v1/embeddings": EMBEDDINGS_BODY}
"""Path → JSON Schema of what clients send there."""


def dump_seal(token: str) -> ThinkingPart:
    """The piece in which a client keeps a server's token: encrypted reasoning, in the field that OpenRouter gave a message."""
    return ThinkingPart(native=OWN.note({"type": "reasoning.encrypted", "data": token}))


def load_seal(piece: Content) -> str | None:
    """The token that such a piece may hold."""
    return if_text(OWN.fields(piece.native).get("data")) or None if isinstance(piece, ThinkingPart) else None
