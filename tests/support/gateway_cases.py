"""What goes through a gateway in the matrix of all wires: answers, requests, and what a format
cannot say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dragoman.errors import (
    ContextLengthError,
    DragomanError,
    InvalidRequestError,
    OverloadedError,
    RateLimitError,
)
from dragoman.event import Event, RunError
from dragoman.fold import fold
from dragoman.message import FinishReason, Message, ThinkingPart, ToolCallPart, Usage
from support.law import facts

__all__ = ["ANSWERS", "REFUSALS", "SIGNED", "said", "sayable", "shown", "thought"]

SIGNED: Mapping[str, Mapping[str, Any]] = {
    "anthropic": {"signature": "c2lnbmVk+/="},
    "google": {"thoughtSignature": "c2lnbmVk+/="},
    "openai_responses": {"id": "rs_1", "encrypted_content": "c2lnbmVk+/="},
    "bedrock_converse": {"signature": "c2lnbmVk+/="},
}
"""Wire → how its providers sign thinking."""
_USAGE = Usage(input_tokens=20, output_tokens=9, total_tokens=29)


def thought(wire: str) -> ThinkingPart:
    """Thinking as a provider of this wire has it."""
    return ThinkingPart("Hm.", {wire: SIGNED[wire]} if wire in SIGNED else None)


def _calls(wire: str) -> Message:
    home = ToolCallPart("call_1", "look", {"at": "home"})
    return Message.model(
        thought(wire), "I look.", home, ToolCallPart("call_2", "look", {"days": [1, None, 1.5]})
    )


def _ended(reason: FinishReason, text: str) -> Callable[[str], Message]:
    return lambda wire: Message.model(text).replace(finish_reason=reason)


ANSWERS: Mapping[str, Callable[[str], Message]] = {
    "text": lambda wire: Message.model("Grüße, \U0001f600\n\n"),
    "signed thinking": lambda wire: Message.model(thought(wire), "Hello."),
    "parallel calls": _calls,
    "refusal": _ended(FinishReason.refusal, "I cannot."),
    "length": _ended(FinishReason.length, "Once upon a"),
    "filter": _ended(FinishReason.content_filter, "Once"),
    "nothing": lambda wire: Message.model(),
}
"""What a provider answers, by its wire."""
ANSWERS = {
    name: lambda wire, make=make: make(wire).replace(usage=_USAGE) for name, make in ANSWERS.items()
}

REFUSALS: Sequence[DragomanError] = (
    RateLimitError("slow down", retry_after=3.0),
    OverloadedError("busy"),
    ContextLengthError("too long"),
    InvalidRequestError("wrong"),
)
"""Errors that a provider answers with in place of an answer."""

_WORDS: Mapping[str, Mapping[FinishReason, FinishReason]] = {
    "openai_chat": {FinishReason.refusal: FinishReason.content_filter},
    "openai_responses": {FinishReason.refusal: FinishReason.stop},
    "anthropic": {FinishReason.content_filter: FinishReason.refusal},
    "google": {FinishReason.refusal: FinishReason.content_filter},
    "mistral": dict.fromkeys(
        [FinishReason.refusal, FinishReason.content_filter], FinishReason.stop
    ),
    "ollama": dict.fromkeys([FinishReason.refusal, FinishReason.content_filter], FinishReason.stop),
    "cohere": dict.fromkeys([FinishReason.refusal, FinishReason.content_filter], FinishReason.stop),
    "google_interactions": {
        FinishReason.refusal: FinishReason.stop,
        FinishReason.content_filter: FinishReason.length,
    },
    "bedrock_converse": {FinishReason.refusal: FinishReason.content_filter},
}
"""The table of losses: wire of the client → the reason to stop that stands for one for which it has
no word."""


def sayable(wire: str, message: Message) -> FinishReason | None:
    """Why an answer ended, as far as a client's wire has a word for it."""
    reason = message.finish_reason
    return None if reason is None else _WORDS.get(wire, {}).get(reason, reason)


def said(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """What an answer says, whatever format it came in: facts without seals, calls with their ids,
    usage."""
    messages = fold(events)
    return [*_facts(messages), *_counts(messages), *_errors(events)]


def _facts(messages: Sequence[Message]) -> Iterator[tuple[Any, ...]]:
    yield from [fact.says for fact in facts(messages) if fact.says[0] != "signed"]
    yield from [("id", call.id) for message in messages for call in message.tool_calls]


def _counts(messages: Sequence[Message]) -> Iterator[tuple[Any, ...]]:
    for usage in [message.usage for message in messages if message.usage is not None]:
        yield "tokens", usage.input_tokens, usage.output_tokens


def _errors(events: Sequence[Event]) -> Iterator[tuple[Any, ...]]:
    yield from [
        ("error", type(event.error).__name__) for event in events if isinstance(event, RunError)
    ]


def shown(events: Sequence[Event]) -> dict[str, Any]:
    """What of an answer every format can say: texts joined, since some have one text, before the
    calls; thinking that has words; whole calls (some cannot say that one was cut, and leave it
    out); counts, of which some have none for what is not known; that it failed. What a provider's
    own tools did is the table's other row: no format but the provider's own has it."""
    messages = fold(events)
    found = [fact.says for fact in facts(messages)]
    calls = [call for message in messages for call in message.tool_calls]
    counts = [
        (usage.input_tokens or 0, usage.output_tokens or 0)
        for one in messages
        if (usage := one.usage) is not None
    ]
    return {
        "text": "".join([says[2] for says in found if says[0] == "text"]),
        "thinking": "".join([says[1] for says in found if says[0] == "thinking"]),
        "calls": [
            (call.name, call.arguments)
            for call in calls
            if call.run_by != "provider" and call.state == "complete"
        ],
        "tokens": [count for count in counts if any(count)],
        "failed": any(isinstance(event, RunError) for event in events),
    }
