"""What is beside what a conversation says, and which formats carry it there and back: a table
written by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from dragoman.message import (
    FinishReason,
    MarkPart,
    Message,
    Origin,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

__all__ = ["CARRIED", "COLUMNS", "KINDS", "PROBE"]

_START = datetime(2026, 3, 1, 12, 0, 0, 250_000, UTC)
_ORIGIN = Origin("anthropic", None, "claude-opus-4-5", "claude-opus-4-5-20251101", "msg_1")


def _at(seconds: int) -> datetime:
    return _START + timedelta(seconds=seconds)


PROBE: list[Message] = [
    Message.system("Be brief.").replace(id="s"),
    Message.user("Weather?").replace(id="u", created_at=_at(1), metadata={"note": 1}),
    Message.model(
        TextPart("I look."), ToolCallPart("call_1", "weather", {"city": "Rome"}, run_by="client")
    ).replace(
        id="a",
        created_at=_at(2),
        turn="a",
        metadata={"note": 2},
        origin=_ORIGIN,
        finish_reason=FinishReason.tool_calls,
        usage=Usage(
            input_tokens=10,
            output_tokens=5,
            total_tokens=17,
            cache_read_tokens=4,
            reasoning_tokens=2,
        ),
    ),
    Message.user(
        ToolResultPart(
            "call_1", "weather", {"error": "denied"}, is_error=True, denied=True, run_by="client"
        )
    ).replace(id="r", created_at=_at(3), turn="a", metadata={"note": 3}),
    Message.model(TextPart("No."), MarkPart("data-note", {"elsewhere": {"x": 1}})).replace(
        id="b",
        created_at=_at(4),
        turn="a",
        metadata={"note": 4},
        origin=_ORIGIN,
        finish_reason=FinishReason.stop,
        usage=Usage(input_tokens=20, output_tokens=1, total_tokens=23),
    ),
    Message.user("Why?").replace(id="v", created_at=_at(5), metadata={"note": 5}),
]
"""A conversation with all of it."""


def _of(role: Role, field: str) -> Callable[[Sequence[Message]], list[Any]]:
    return lambda messages: [
        getattr(one, field) for one in messages if one.role is role and not one.tool_results
    ]


def _of_results(field: str) -> Callable[[Sequence[Message]], list[Any]]:
    return lambda messages: [getattr(one, field) for one in messages if one.tool_results]


def _of_model(read: Callable[[Message], Any]) -> Callable[[Sequence[Message]], list[Any]]:
    return lambda messages: [read(one) for one in messages if one.role is Role.MODEL]


def _provider(message: Message) -> str | None:
    return message.origin and message.origin.provider


def _counts(message: Message) -> tuple[int | None, ...] | None:
    return message.usage and (message.usage.input_tokens, message.usage.output_tokens)


KINDS: Mapping[str, Callable[[Sequence[Message]], Any]] = {
    "ids of the user's messages": _of(Role.USER, "id"),
    "ids of answers": _of(Role.MODEL, "id"),
    "ids of results' messages": _of_results("id"),
    "ids of system messages": _of(Role.SYSTEM, "id"),
    "ids of calls": lambda messages: [call.id for one in messages for call in one.tool_calls],
    "times of the user's messages": _of(Role.USER, "created_at"),
    "times of answers": _of(Role.MODEL, "created_at"),
    "times of results": _of_results("created_at"),
    "metadata of the user's messages": _of(Role.USER, "own_metadata"),
    "metadata of answers": _of(Role.MODEL, "own_metadata"),
    "metadata of results": _of_results("own_metadata"),
    "turns": lambda messages: [one.turn for one in messages],
    "provider": _of_model(_provider),
    "model and response": _of_model(lambda one: one.origin),
    "finish reason": _of_model(lambda one: one.finish_reason),
    "tokens": _of_model(_counts),
    "tokens of all kinds": _of_model(lambda one: one.usage),
    "that a result was denied": lambda messages: [each.denied for one in messages for each in one.tool_results],
    "that the client runs a tool": lambda messages: [each.run_by for one in messages for each in (*one.tool_calls, *one.tool_results)],
    "marks of other formats": lambda messages: [each.kind for one in messages for each in one.content if isinstance(each, MarkPart)],
}  # fmt: skip
"""What is carried → how it is read of a conversation."""
_CALLS = frozenset(["ids of calls"])
_MARKS = frozenset(["marks of other formats"])
_CLIENT = frozenset(["that the client runs a tool"])
CARRIED: Mapping[str, frozenset[str]] = {
    "openai_chat": _CALLS,
    "openai_responses": _CALLS,
    "anthropic": _CALLS,
    "google": _CALLS,
    "mistral": frozenset(),
    "ollama": _CALLS,
    "cohere": _CALLS,
    "google_interactions": _CALLS,
    "bedrock_converse": _CALLS,
    "ag_ui": frozenset(KINDS),
    "a2a": frozenset(KINDS),
    "ai_sdk": frozenset(KINDS) - _MARKS,
    "dragoman": frozenset(KINDS),
    "ai_sdk_ui": frozenset(KINDS) - _MARKS,
    "ai_sdk_model": frozenset(KINDS) - _MARKS,
    "mastra_v1": frozenset(KINDS) - _MARKS,
    "mastra_v2": frozenset(KINDS) - _MARKS,
    "langchain": frozenset(KINDS) - _MARKS - _CLIENT,
    "openai_agents": _CALLS,
    "pydantic_ai": frozenset(
        [
            "ids of calls",
            "times of the user's messages",
            "times of answers",
            "times of results",
            "metadata of the user's messages",
            "metadata of answers",
            "metadata of results",
            "provider",
            "finish reason",
            "tokens",
            "that a result was denied",
        ]
    ),
    "sharegpt": frozenset(),
}
"""Format → what of it survives in it. Mistral takes ids of calls that have nine letters and digits,
and no others."""
COLUMNS: Mapping[str, frozenset[str]] = {
    "ids of messages": frozenset(
        kind for kind in KINDS if kind.startswith("ids of") and kind not in _CALLS
    ),
    "ids of calls": _CALLS,
    "times": frozenset(kind for kind in KINDS if kind.startswith("times of")),
    "metadata": frozenset(kind for kind in KINDS if kind.startswith("metadata of")),
    "turns": frozenset(["turns"]),
    "provider": frozenset(["provider"]),
    "model and response": frozenset(["model and response"]),
    "finish reason": frozenset(["finish reason"]),
    "tokens": frozenset(["tokens"]),
    "tokens of all kinds": frozenset(["tokens of all kinds"]),
    "denied": frozenset(["that a result was denied"]),
    "client's tools": _CLIENT,
    "marks of others": _MARKS,
}
"""Column of the documented table → what stands in it."""
