"""What is not written to see whether it comes back comes back all the same: every field of each
kind of message, gone or of any other value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dragoman import Message, Origin, TextPart, ToolCallPart, ToolResultPart
from dragoman.errors import HistoryError
from dragoman.formats import langchain
from dragoman.formats.langchain import messages as loading

JUNK: list[Any] = [None, {}, [], "", "x", 5, {"a": 1}, [{}], ["x"], True]
FIELDS = ("additional_kwargs", "response_metadata", "name", "id", "tool_calls", "invalid_tool_calls", "usage_metadata", "status",
          "tool_call_id", "tool_call_chunks", "artifact", "role", "example", "content", "type")  # fmt: skip
CALL = {"name": "look", "args": {"at": "it"}, "id": "c1", "type": "tool_call"}
ODD: dict[str, list[Any]] = {
    "tool_calls": [
        [CALL], [CALL, CALL], [{**CALL, "id": None}], [{**CALL, "type": "x"}], [{**CALL, "more": 1}], [{**CALL, "args": "{"}],
        [{key: value for key, value in CALL.items() if key != "type"}], [CALL, "x"], [{**CALL, "name": None}],
    ],
    "invalid_tool_calls": [[{**CALL, "type": "invalid_tool_call", "args": "{", "error": None}]],
    "tool_call_chunks": [[{"name": "look", "args": "{", "id": "c1", "index": 0, "type": "tool_call_chunk"}]],
    "usage_metadata": [
        {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}, {"input_tokens": 1}, {"input_tokens": None}, {"x": 1},
        {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "input_token_details": {"cache_read": 1, "audio": 2}},
        {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "input_token_details": 4},
    ],
    "response_metadata": [
        {"model_provider": "openai", "model_name": "gpt-5", "id": "r1", "finish_reason": "stop"}, {"model_name": "claude-x"},
        {"finish_reason": "tool_calls"}, {"finish_reason": "odd"}, {"dragoman": {"origin": {"provider": "x", "model": "m"}}}, {"dragoman": 5},
    ],
    "additional_kwargs": [
        {"reasoning_content": "Hm."}, {"reasoning_content": ""}, {"function_call": {"name": "look", "arguments": "{}"}},
        {"dragoman": {"turn": "t"}}, {"dragoman": {"turn": "t", "id": "m"}}, {"dragoman": {"turn": "", "id": "m"}}, {"dragoman": {"turn": 5}},
        {"dragoman": {"id": "m"}, "refusal": None}, {"dragoman": {"turn": "t"}, "reasoning_content": "Hm."},
        {"dragoman": {"native": {"x": {"y": None}}}}, {"dragoman": {}}, {"refusal": None},
    ],
    "status": ["error", "success"],
    "role": ["assistant", "system"],
    "content": ["", "Hi.", ["Hi."], [{"type": "text", "text": "Hi."}]],
    "type": ["human", "ai"],
}  # fmt: skip
TALK = [
    Message.system("Be brief."),
    Message.user("Look."),
    Message.model(TextPart("I look."), ToolCallPart("c1", "look", {"at": "it"})),
    Message.user(ToolResultPart("c1", "look", "it")),
]


def histories() -> Iterator[tuple[str, Any, dict[str, Any], str]]:
    """A history, the message in it that is changed, and where that has its fields."""
    for version in langchain.versions:
        history = langchain.dump_messages(TALK, version=version)  # type: ignore[arg-type]
        chat = langchain.dump_messages(TALK[1:2], version=version)[0]  # type: ignore[arg-type]
        inner = "data" if version == "dict" else "kwargs" if version == "constructor" else ""
        for place, entry in enumerate([*history, chat]):
            for key in FIELDS:
                for value in ("gone", *JUNK, *ODD.get(key, [])):
                    fields = dict(entry[inner] if inner else entry)
                    fields.pop(key, None)
                    if value != "gone":
                        fields[key] = value
                    if place == len(history):
                        fields = {
                            "role": "assistant",
                            "tool_calls": [],
                            "invalid_tool_calls": [],
                            **fields,
                        }
                    changed = {**entry, inner: fields} if inner else fields
                    if place == len(history) and version == "dict":
                        changed = {**changed, "type": "chat"}
                    yield version, key, value, [*history[:place], changed, *history[place + 1 :]]  # type: ignore[misc]


@pytest.mark.parametrize("origin", [None, Origin("openai", None, "gpt-5")])
@pytest.mark.slow
def test_every_message_comes_back_whatever_its_fields_are(origin: Origin | None) -> None:
    seen = 0
    for version, key, value, history in histories():
        try:
            messages = langchain.load_messages(history, origin=origin)
        except HistoryError:
            continue
        seen += 1
        assert langchain.dump_messages(messages) == history, (version, key, value)
    assert seen > 2000


def test_what_is_usual_is_not_written_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = [
        message.replace(id=f"m{place}", turn="t") for place, message in enumerate(TALK)
    ] + TALK * 5
    histories = [
        langchain.dump_messages(talk, version=version)
        for version in ("dict", "constructor", "plain")
    ]

    def never(*_: Any) -> Any:
        raise AssertionError("it was written")

    for name in ("dump_message", "dump_result"):
        monkeypatch.setattr(loading, name, never)
    for history in histories:
        assert langchain.load_messages(history)
