"""What a request's fields ask for beyond what all providers know: a table for each wire, and what of them another wire leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.errors import InvalidRequestError
from dragoman.loss import Loss, Lost
from dragoman.message import NOTES
from dragoman.request import EmbeddingsRequest, ModelRequest

__all__ = ["FIELDS", "WireFields", "check_references", "embedding_losses", "foreign_losses", "one_candidate"]


class WireFields(msgspec.Struct, frozen=True):
    """What is known of a wire's further request fields, by path, such as `generationConfig.candidateCount`. Of a field that is in no
    table it is known that nobody else has it."""

    idle: Mapping[str, tuple[Any, ...]] = {}
    """Field → values that ask for nothing; `null` never does."""
    minor: frozenset[str] = frozenset()
    """Fields that no answer depends on: accounting, caching, names of things. Left out they are a minor loss."""
    candidates: str = ""
    """The field that asks for several answers; a gateway gives one."""
    references: frozenset[str] = frozenset()
    """Fields that name what the provider keeps in its account, which all clients of a gateway share, or that name other models."""


_OPENAI_MINOR = [
    "user",
    "metadata",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
]
_CHAT_MINOR = ["stream_options", "response_format.json_schema", "response_format.type", "provider", "transforms"]
_RESPONSES_MINOR = ["include", "reasoning.summary", "text.format", "truncation", "stream_options", "max_tool_calls"]
_GOOGLE_MINOR = ["labels", "generationConfig.thinkingConfig.includeThoughts", "generationConfig.responseMimeType"]

FIELDS: Mapping[str, WireFields] = {
    "openai_chat": WireFields(
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
        minor=frozenset([*_OPENAI_MINOR, *_CHAT_MINOR, "store"]),
        candidates="n",
        references=frozenset(["models", "route", "preset"]),
    ),
    "openai_responses": WireFields(
        idle={
            "store": (False, True),
            "background": (False,),
            "truncation": ("disabled",),
            "stream": (False,),
            "tools": ([],),
            "input": ([],),
            "instructions": ("",),
            "top_logprobs": (0,),
            "text": ({"format": {"type": "text"}},),
            "text.verbosity": ("medium",),
        },
        minor=frozenset([*_OPENAI_MINOR, *_RESPONSES_MINOR]),
        references=frozenset(["previous_response_id", "conversation", "prompt"]),
    ),
    "anthropic": WireFields(
        idle={"service_tier": ("auto", "standard_only")},
        minor=frozenset(["metadata", "service_tier", "cache_control", "inference_geo"]),
        references=frozenset(["container", "mcp_servers"]),
    ),
    "google": WireFields(
        idle={
            "store": (False,),
            "safetySettings": ([],),
            "toolConfig": ({},),
            "generationConfig.candidateCount": (1,),
            "generationConfig.responseModalities": (["TEXT"],),
            "generationConfig.responseLogprobs": (False,),
        },
        minor=frozenset(_GOOGLE_MINOR),
        candidates="generationConfig.candidateCount",
        references=frozenset(["cachedContent"]),
    ),
    "mistral": WireFields(
        idle={
            "n": (1,),
            "stream": (False,),
            "logprobs": (False,),
            "top_logprobs": (0,),
            "safe_prompt": (False,),
            "response_format": ({"type": "text"},),
        },
        minor=frozenset(["metadata", "prompt_cache_key", "response_format.json_schema", "response_format.type"]),
        candidates="n",
        references=frozenset(["agent_id"]),
    ),
    "ollama": WireFields(
        idle={"format": ("",), "tools": ([],), "raw": (False,), "logprobs": (False,), "think": (False,)},
        minor=frozenset(
            ["keep_alive", "options.num_thread", "options.num_gpu", "options.num_batch", "options.use_mmap"]
        ),
    ),
    "cohere": WireFields(
        idle={"documents": ([],), "logprobs": (False,), "strict_tools": (False,), "tools": ([],)},
        minor=frozenset(["citation_options", "priority"]),
    ),
}
"""Wire → its fields. What a wire that is not here has beyond neutral fields is a loss elsewhere."""
_NOTHING = WireFields()
_MOST = 100
"""Fields that are named at most, so that an answer to nonsense is not longer than it."""
_LONGEST = 100  # characters of a field's name
_PACKING = ("encoding_format", "embedding_types")
_ACCOUNTING = ("user", "truncate", "keep_alive", "priority", "title")


def one_candidate(request: ModelRequest, wire: str) -> tuple[ModelRequest, list[Loss]]:
    """The request for one answer, of which alone every response has room, and what that leaves out."""
    path = FIELDS.get(wire, _NOTHING).candidates
    count = _at(request.options, path) if path else None
    if count is None or (type(count) is int and count <= 1):
        return request, []
    loss = Loss(None, None, Lost.candidate, "a gateway gives the first answer alone", path)
    return request.replace(options=_without(request.options, path)), [loss]


def check_references(request: ModelRequest, wire: str) -> None:
    """Refuses fields that name what the provider's account holds.

    Raises:
        InvalidRequestError: there is one.
    """
    for path in FIELDS.get(wire, _NOTHING).references:
        if _at(request.options, path) is not None:
            raise InvalidRequestError(
                f"{path}: this server does not pass it on, since what it names is kept in an account that others share; leave it out"
            )


def foreign_losses(request: ModelRequest, wire: str) -> list[Loss]:
    """What a request that was read from this wire asks for in fields of the wire's own: another wire does not write them."""
    fields = FIELDS.get(wire, _NOTHING)
    own = if_object((request.native or {}).get(wire))
    found = list(islice(chain(_leaves(request.options, fields), _leaves(own, fields)), _MOST))
    why = f"it is a field of {wire}"
    kinds = [Lost.field if _is_minor(path, fields) else Lost.option for path in found]
    return [Loss(None, None, kind, why, path[:_LONGEST]) for kind, path in zip(kinds, found, strict=True)]


def embedding_losses(request: EmbeddingsRequest, wire: str) -> list[Loss]:
    """The options of a request for vectors that another wire does not write; those that say how vectors are packed are none."""
    why = f"it is a field of {wire}"
    return [
        Loss(None, None, Lost.field if name in _ACCOUNTING else Lost.option, why, name)
        for name, value in request.options.items()
        if value is not None and name not in _PACKING
    ]


def without_own(request: ModelRequest, wire: str) -> ModelRequest:
    """The request without what only this wire writes."""
    native = {name: each for name, each in (request.native or {}).items() if name.removesuffix(NOTES) != wire}
    return request.replace(options={}, wire=None, native=native or None)


def _leaves(fields: Mapping[str, Any], known: WireFields, before: str = "") -> Iterator[str]:
    """The paths of what asks for something. Only objects that the table knows have paths of their own: other keys may be the client's."""
    for name, value in fields.items():
        path = f"{before}{name}"
        if value is None or any(type(value) is type(idle) and value == idle for idle in known.idle.get(path, ())):
            continue
        if isinstance(value, dict) and value and _has_paths(path, known):
            yield from _leaves(if_object(value), known, f"{path}.")
        else:
            yield path


def _is_minor(path: str, known: WireFields) -> bool:
    steps = path.split(".")
    return any(".".join(steps[: end + 1]) in known.minor for end in range(len(steps)))


def _has_paths(path: str, known: WireFields) -> bool:
    return any(each.startswith(f"{path}.") for each in (*known.idle, *known.minor))


def _at(fields: Mapping[str, Any], path: str) -> Any:
    value: Any = fields
    for step in path.split("."):
        value = if_object(value).get(step)
    return value


def _without(fields: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The fields without the one at a path, and without objects that are empty then."""
    step, _, further = path.partition(".")
    if not further:
        return {name: value for name, value in fields.items() if name != step}
    inner = _without(if_object(fields[step]), further)
    return {name: inner if name == step else value for name, value in fields.items() if name != step or inner}
