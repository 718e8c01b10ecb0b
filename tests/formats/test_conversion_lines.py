"""Files with a conversation on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import Message, wires
from dragoman.codec.digest import chain_neutral_digests
from dragoman.errors import HistoryError
from dragoman.formats import read_jsonl
from support import traffic

TEXT = {"role": "user", "content": "Hi."}
CALL = {
    "role": "assistant",
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
LINES: dict[str, Any] = {
    "openai_chat": {"messages": [TEXT, {"role": "assistant", "content": "Ho.", "weight": 0}], "tools": []},
    "anthropic": {"model": "claude", "system": "Be brief.", "messages": [TEXT], "max_tokens": 5},
    "google": {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}], "systemInstruction": {"parts": [{"text": "Be brief."}]}},
    "openai_responses": {"input": "Hi.", "instructions": "Be brief."},
    "google_interactions": {"input": "Hi.", "system_instruction": "Be brief."},
    "bedrock_converse": {"messages": [{"role": "user", "content": [{"text": "Hi."}]}], "system": [{"text": "Be brief."}], "inferenceConfig": {"maxTokens": 5}},
    "sharegpt": {"id": 1, "conversations": [{"from": "human", "value": "Hi."}], "system": "Be brief."},
    "openai_agents": [TEXT, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "provider_data": {}}],
    "dragoman": [{"v": 2, "role": "user", "content": [{"type": "text", "text": "Hi."}]}],
    "": "Hi.",
}  # fmt: skip


def test_each_line_is_read_in_its_format(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text("\n\n".join(json.dumps(line) for line in LINES.values()))
    found = list(read_jsonl(path))
    assert [(line.number, line.format) for line in found] == [
        (2 * place + 1, name) for place, name in enumerate(LINES)
    ]
    assert all(
        line.problems == [] and any(message.text == "Hi." for message in line.messages)
        for line in found
    )
    briefed = {
        line.format
        for line in found
        if any(message.text == "Be brief." for message in line.messages)
    }
    assert briefed == {
        "anthropic",
        "bedrock_converse",
        "google",
        "google_interactions",
        "openai_responses",
        "sharegpt",
    }
    assert list(read_jsonl(str(path))) == found
    with path.open() as file:
        assert list(read_jsonl(file)) == found


def test_plain_texts_are_the_users() -> None:
    mixed = [
        "Hi.",
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}],
        },
        "And?",
        "",
    ]
    (line,) = read_jsonl([json.dumps(mixed)])
    assert (line.format, [message.role for message in line.messages]) == (
        "anthropic",
        ["user", "model", "user"],
    )
    assert line.messages[2] == Message.user("And?")


def test_a_format_that_is_given_is_not_told() -> None:
    ambiguous = [TEXT, {"role": "assistant", "content": "Ho.", "reasoning": "Hm."}]
    with pytest.raises(HistoryError, match=r"line 1: .*pass format="):
        list(read_jsonl([json.dumps(ambiguous)]))
    (line,) = read_jsonl([json.dumps({"messages": ambiguous})], format="openai_chat")
    assert (line.format, line.messages[1].thinking) == ("openai_chat", "Hm.")
    for name, value in LINES.items():
        if name:
            (line,) = read_jsonl([json.dumps(value)], format=name)
            assert line.messages, name


def test_what_cannot_be_read_names_its_line_or_is_noted() -> None:
    lines = [
        json.dumps(TEXT),
        "{",
        b"\xff\n",
        "5",
        "[" * 500,
        json.dumps({"messages": []}),
        json.dumps([TEXT]),
    ]
    with pytest.raises(HistoryError, match=r"^line 2: it is no JSON"):
        list(read_jsonl(lines))
    found = list(read_jsonl(lines, errors="collect"))
    assert [line.number for line in found] == [1, 2, 3, 4, 5, 6, 7]
    assert [bool(line.messages) for line in found] == [True, *[False] * 5, True]
    assert [[problem.index for problem in line.problems] for line in found] == [[], *[[-1]] * 5, []]


def test_a_message_that_cannot_be_read_is_noted_at_its_place() -> None:
    broken = {"conversations": [{"from": "human", "value": "Hi."}, {"from": "gpt"}]}
    (line,) = read_jsonl([json.dumps(broken)], errors="collect", format="sharegpt")
    assert ([problem.index for problem in line.problems], len(line.messages)) == ([1], 1)
    (line,) = read_jsonl(
        [json.dumps(["Hi.", "Ho.", TEXT, {**TEXT, "role": 5}])],
        errors="collect",
        format="openai_chat",
    )
    assert ([(problem.index, problem.field) for problem in line.problems], len(line.messages)) == (
        [(3, "role")],
        3,
    )


def test_no_more_than_a_line_is_read_ahead() -> None:
    given = 0

    def lines() -> Iterator[str]:
        nonlocal given
        for _ in range(1000):
            given += 1
            yield json.dumps([TEXT])

    for line in read_jsonl(lines()):
        assert line.number == given
    assert given == 1000


@pytest.mark.parametrize("folder", ["openai_chat", "anthropic", "google", "openai_responses"])
@pytest.mark.slow
def test_recorded_bodies_are_read_from_a_file(folder: str) -> None:
    wire, bodies = wires.get(traffic.WIRES[folder]), []
    for exchange in traffic.exchanges(folder):
        body: Any = exchange.request
        if not body:
            continue
        try:
            bodies.append((body, wire.load_request(body).messages))
        except HistoryError:
            continue
    same = 0
    lines = list(
        read_jsonl(
            [json.dumps(body) for body, _ in bodies[:200]], format=wire.name, errors="collect"
        )
    )
    for line, (_, messages) in zip(lines, bodies, strict=False):
        same += not line.problems and chain_neutral_digests(line.messages) == chain_neutral_digests(
            messages
        )
    assert same >= 0.9 * len(lines) > 0
