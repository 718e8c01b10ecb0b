"""What is not written to see whether it comes back comes back all the same: every field of each
kind of part, gone or of any other value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dragoman import Message, ToolCallPart, ToolResultPart
from dragoman.errors import HistoryError
from dragoman.formats import pydantic_ai
from dragoman.formats.pydantic_ai import requests, responses

TIME = "2026-03-01T10:00:00.123456Z"
JUNK: list[Any] = [None, {}, [], "", "x", 5, {"a": 1}, [{}], ["x"], True]
ODD: dict[str, list[Any]] = {
    "args": ['{"at": "it"}', '{"at":"it"}', "null", "{", " {} ", {"at": 1.0}],
    "outcome": ["success", "failed", "denied", "retried", "odd"],
    "part_kind": ["text", "tool-call", "tool-return", "retry-prompt", "builtin-tool-call", "builtin-tool-return", "thinking", "speech"],
    "provider_name": ["openai", "google", "anthropic"],
    "provider_details": [{"thought_signature": "c2ln"}, {"phase": "final"}, {"timestamp": TIME}],
    "id": ["msg_1", "pyd_ai_1"],
    "timestamp": [TIME, "2026-03-01T10:00:00Z", "2026-03-01T10:00:00", "2026-03-01T12:00:00+02:00", "yesterday", [TIME]],
    "content": [{"kind": "binary", "data": "AAAA", "media_type": "image/png"}, [{"kind": "image-url", "url": "u", "media_type": "image/png"}]],
    "instructions": ["Be brief.", "Be long."],
    "usage": [{"input_tokens": 1, "output_tokens": 0}, {"input_tokens": 1.5}, {"details": {"x": 1}, "input_tokens": 3}],
    "metadata": [{"a": 1}, {"thinking": "Hm."}],
    "state": ["interrupted", "complete", "suspended"],
    "finish_reason": ["stop", "tool_call", "odd"],
    "provider_response_id": ["resp_1", "r"],
}  # fmt: skip
NONE = {"id": None, "provider_name": None, "provider_details": None}
HISTORY: list[Any] = [
    {"kind": "request", "timestamp": TIME, "instructions": "Be brief.", "run_id": "r", "metadata": None,
     "parts": [{"part_kind": "user-prompt", "content": "Look.", "timestamp": TIME}]},
    {"kind": "response", "timestamp": TIME, "model_name": "m", "provider_name": "openai", "provider_response_id": "r1", "metadata": None,
     "usage": {"input_tokens": 1, "output_tokens": 2, "details": {}}, "finish_reason": "tool_call", "state": "complete",
     "parts": [{"part_kind": "text", "content": "I look.", **NONE},
               {"part_kind": "tool-call", "tool_name": "look", "args": '{"at": "it"}', "tool_call_id": "c1", **NONE}]},
    {"kind": "request", "timestamp": TIME, "instructions": "Be brief.", "run_id": "r", "metadata": None,
     "parts": [{"part_kind": "tool-return", "tool_name": "look", "content": {"seen": 1}, "tool_call_id": "c1", "timestamp": TIME,
                "outcome": "success", "metadata": None}]},
]  # fmt: skip


def changed(fields: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for key in (*fields, *(key for key in ODD if key not in fields)):
        for value in ("gone", *JUNK, *ODD.get(key, [])):
            left = {name: each for name, each in fields.items() if name != key}
            yield key, value, left if value == "gone" else {**left, key: value}


def bare(value: Any) -> Any:
    """A value without the fields that say nothing."""
    if isinstance(value, list):
        return [bare(each) for each in value]
    return (
        {key: bare(each) for key, each in value.items() if each is not None}
        if isinstance(value, dict)
        else value
    )


def histories() -> Iterator[tuple[Any, ...]]:
    yield from of_history(HISTORY)
    yield from of_history(bare(HISTORY))


def of_history(history: list[Any]) -> Iterator[tuple[Any, ...]]:
    for provider in ("openai", "google", "anthropic", None):
        for place, entry in enumerate(history):
            named = {**entry, "provider_name": provider} if entry["kind"] == "response" else entry
            for key, value, fields in changed(named):
                yield provider, key, value, [*history[:place], fields, *history[place + 1 :]]
            for at, part in enumerate(named["parts"]):
                for key, value, fields in changed(part):
                    parts = [*named["parts"][:at], fields, *named["parts"][at + 1 :]]
                    yield (
                        provider,
                        key,
                        value,
                        [*history[:place], {**named, "parts": parts}, *history[place + 1 :]],
                    )


@pytest.mark.slow
def test_every_history_comes_back_whatever_its_fields_are() -> None:
    seen = 0
    for provider, key, value, history in histories():
        try:
            messages = pydantic_ai.load_messages(history)
        except HistoryError:
            continue
        seen += 1
        assert pydantic_ai.dump_messages(messages) == history, (provider, key, value)
    assert seen > 4000


def test_what_is_usual_is_not_written_while_it_is_read(monkeypatch: Any) -> None:
    made = pydantic_ai.dump_messages(
        [
            Message.user("Look."),
            Message.model("I look.", ToolCallPart("c1", "look", {})),
            Message.user(ToolResultPart("c1", "look", 1)),
        ]
    )

    def never(*_: Any) -> Any:
        raise AssertionError("it was written")

    for module, name in ((requests, "dump_result"), (responses, "_parts")):
        monkeypatch.setattr(module, name, never)
    for history in (HISTORY, made):
        assert pydantic_ai.load_messages(history)
