"""What a peer sends costs linear time: eight times as much takes eight times as long, not
sixty-four times."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dragoman import wires
from dragoman.codec.fit_ids import CALL_IDS, NameRule, fit_names, map_call_ids
from dragoman.message import Message, ToolCallPart, ToolResultPart
from support.linear import cost, is_linear

WIRES = ("anthropic", "cohere", "google", "mistral", "ollama", "openai_chat", "openai_responses")


def body(before: str, repeated: str, after: str = "") -> Callable[[int], bytes]:
    return lambda size: (before + repeated * size + after).encode()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "name", ["x-ratelimit-reset", "x-ratelimit-reset-tokens", "retry-after", "retry-after-ms"]
)
def test_headers_of_digits(wire: str, name: str) -> None:
    def work(size: int) -> object:
        headers = {name: "9" * size, name.replace("reset", "remaining"): "0", "date": "1 " * size}
        return wires.get(wire).load_error(429, headers, b"")

    assert is_linear(work, 4000)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "bytes_of",
    [
        body('{"message":"try again in ', "9", 'x"}'),
        body('{"message":"try again in ', "1 ", '"}'),
        body("", "again "),
        body("", "wait 1 s "),
        body("", "<title"),
        body("", "<!--"),
        body("", "<script>", "</script "),
        body("", "<"),
        body("&#", "9"),
        body("", "[ "),
        body("", "{"),
        body("", "data:{\n"),
        body('{"message":"', "model ", '"}'),
        body('{"message":"', "download", '"}'),
        body('{"message":"', "got '", '"}'),
        body('{"error":{"errors":[', '{"code":"a model"},', "{}]}}"),
        body('{"error":{"errors":[', '{"x":1},', "{}]}}"),
        body('{"code":', "9", "}"),
    ],
    ids=lambda make: make(1).decode()[:24].strip(),
)
def test_bodies_of_errors(wire: str, bytes_of: Callable[[int], bytes]) -> None:
    """Digits without end, tags that are opened and never closed, JSON that is none: read, and not
    raised."""
    assert is_linear(lambda size: wires.get(wire).load_error(429, {}, bytes_of(size)), 1000)


def test_titles_that_do_not_end() -> None:
    load = wires.get("openai_chat").load_error
    assert is_linear(lambda size: load(502, {}, b"<title>" * size + b"a" + b" " * size), 60)


def test_header_names() -> None:
    def work(size: int) -> object:
        return wires.get("openai_chat").load_error(429, {"ratelimit" * size: "5"}, b"")

    assert is_linear(work, 500)


def test_a_page_of_errors_inside_errors_is_read_once_a_level() -> None:
    """Eight levels are no 256 readings."""
    entries = b'{"errors":[' + b",".join([b'{"x":1}'] * 1000) + b"]}"
    nested = lambda depth: b'{"error":' * depth + entries + b"}" * depth  # noqa: E731
    load = wires.get("openai_chat").load_error
    load(400, {}, entries)
    shallow, deep = (
        cost(lambda _, depth=depth: load(400, {}, nested(depth)), 1) for depth in (1, 6)
    )
    assert deep < 8 * max(shallow, 0.001)


@pytest.mark.parametrize("rule", [CALL_IDS, NameRule(letters="a-zA-Z0-9", most=9, least=9)])
def test_many_calls_of_one_id(rule: NameRule) -> None:
    def work(size: int) -> object:
        calls = Message.model(*[ToolCallPart("c", "f", {}) for _ in range(size)])
        results = Message.user(*[ToolResultPart("c", "f", 1) for _ in range(size)])
        ids = map_call_ids([calls, results], rule)
        assert len({ids[0, place] for place in range(size)}) == size
        assert all(ids[0, place] == ids[1, place] for place in range(size))
        return ids

    assert is_linear(work, 300)


def test_many_names_that_do_not_fit() -> None:
    assert is_linear(lambda size: fit_names([f"a.{number}" for number in range(size)]), 500)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.slow
def test_many_messages_of_results(wire: str) -> None:
    """Each with a result of its own, and some words behind it: one turn of the user, on some
    wires."""

    def work(size: int) -> object:
        calls = Message.model(*[ToolCallPart(f"c{n}", "f", {}) for n in range(size)])
        results = [Message.user(ToolResultPart(f"c{n}", "f", 1), "and") for n in range(size)]
        return wires.get(wire).dump_messages([Message.user("go"), calls, *results])

    assert is_linear(work, 300)
