"""Hypothesis strategy of conversations as agents have them: valid ones, with all that a history can
hold.

Tools in parallel and over several rounds, thinking signed by three providers, images and files,
tools that the provider ran, tools that failed or were denied, cut calls, empty answers, several
texts in one message, system messages; with and without ids, turns, times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from hypothesis import strategies as st

from dragoman.message import (
    Content,
    DataPart,
    FinishReason,
    LinkPart,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

__all__ = ["conversations", "numbered", "timed", "with_turns"]

PNG = b"\x89PNG\r\n\x1a\n picture"
PDF = b"%PDF-1.7 page"

words = st.sampled_from(
    ["yes", "yes", "Rome", "Grüße\n", "21 °C", "\U0001f600", "a  b", "{}", "[1]", '{"a": 1}', " x "]
)
"""Few, so that equal messages are common."""
texts: st.SearchStrategy[Content] = st.builds(TextPart, words)
media: st.SearchStrategy[Content] = st.sampled_from(
    [
        DataPart(PNG, "image/png"),
        DataPart(PNG + b"2", "image/png", "two.png"),
        DataPart(PDF, "application/pdf", "a.pdf"),
        DataPart(b"hello", "text/plain", "a.txt"),
        LinkPart("https://host.test/cat.png", "image/png"),
        LinkPart("https://host.test/a.pdf", "application/pdf", "a.pdf"),
    ]
)
arguments = st.sampled_from(
    [{}, {"city": "Rome"}, {"city": "Köln", "days": 3}, {"a": {"b": [1, None, 1.5, True]}}]
)
tool_names = st.sampled_from(["weather", "look_up", "f"])
results = st.sampled_from(
    [
        "21",
        "",
        "text",
        {"t": 21},
        [1, {"a": None}],
        None,
        3,
        True,
        (TextPart("See"), DataPart(PNG, "image/png")),
    ]
)
thinking = st.sampled_from(["Hm.", "Let me see.\n\nYes."])

SIGNERS = {
    "anthropic": Origin("anthropic", "https://api.anthropic.com", "claude-opus-4-5"),
    "google": Origin("google", "https://generativelanguage.googleapis.com", "gemini-3-pro"),
    "openai_responses": Origin("openai_responses", "https://api.openai.com/v1", "gpt-5.2"),
}
"""Wire → an origin that signs by it."""


@st.composite
def conversations(
    draw: Any,
    *,
    exchanges: int = 3,
    ids: bool | None = None,
    turns: bool | None = None,
    times: bool | None = None,
    systems: bool = True,
    repeated_calls: bool = True,
    open_calls: bool = False,
) -> list[Message]:
    """A valid conversation: every call is answered right behind its message.

    exchanges: questions at most. ids, turns, times: whether messages have them (`None`: drawn;
    turns need ids). repeated_calls: two rounds may use one call's id, as some providers do.
    open_calls: it may end with calls that nobody has answered yet.
    """
    numbers = count(1)
    signer = draw(st.sampled_from([None, *SIGNERS]))
    one_id = repeated_calls and draw(st.integers(0, 4)) == 0
    messages: list[Message] = []
    if systems and draw(st.booleans()):
        messages.append(Message.system(*draw(st.lists(texts, min_size=1, max_size=2))))
    for _ in range(draw(st.integers(1, exchanges))):
        messages.append(
            Message.user(*draw(st.lists(st.one_of(texts, texts, media), min_size=1, max_size=3)))
        )
        for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
            messages.extend(
                _round(
                    draw, signer, ["call_1", "call_2", "call_3"] if one_id else _call_ids(numbers)
                )
            )
        if systems and draw(st.integers(0, 11)) == 0:
            messages.append(Message.system(draw(texts)))
        if draw(st.integers(0, 5)):
            messages.append(_answer(draw, signer, numbers))
    if open_calls and draw(st.integers(0, 3)) == 0:
        messages.append(_round(draw, signer, _call_ids(numbers))[0])
    if _drawn(draw, ids):
        messages = numbered(messages)
        if _drawn(draw, turns):
            messages = with_turns(messages)
    return timed(messages) if _drawn(draw, times) else messages


def numbered(messages: Sequence[Message]) -> list[Message]:
    """The messages with ids of their own."""
    return [message.replace(id=f"m-{at}") for at, message in enumerate(messages)]


def with_turns(messages: Sequence[Message]) -> list[Message]:
    """The messages with the turn that the model's answers and the results between them are shown
    in."""
    found: list[Message] = []
    turn: str | None = None
    for message in messages:
        answers = bool(message.content) and all(
            isinstance(piece, ToolResultPart) for piece in message.content
        )
        turn = (turn or message.id) if message.role is Role.MODEL or answers else None
        found.append(message.replace(turn=turn))
    return found


def timed(messages: Sequence[Message]) -> list[Message]:
    """The messages a second apart."""
    start = datetime(2026, 3, 1, 12, 0, 0, 250_000, UTC)
    return [
        message.replace(created_at=start + timedelta(seconds=at))
        for at, message in enumerate(messages)
    ]


def _drawn(draw: Any, given: bool | None) -> bool:
    return draw(st.booleans()) if given is None else given


def _call_ids(numbers: Iterator[int]) -> list[str]:
    return [f"call_{next(numbers)}" for _ in range(3)]


def _thoughts(draw: Any, signer: str | None) -> list[Content]:
    """Thinking before what is said, as its provider signs it."""
    if not draw(st.booleans()):
        return []
    text = draw(thinking)
    number = draw(st.integers(1, 10**6))
    if signer == "anthropic":
        hidden = ThinkingPart(
            "", {"anthropic": {"type": "redacted_thinking", "data": f"cmVk{number}"}}
        )
        signed = ThinkingPart(text, {"anthropic": {"signature": f"c2ln{number}"}})
        return [signed, hidden] if draw(st.integers(0, 3)) == 0 else [signed]
    if signer == "google":
        return [ThinkingPart(text)]
    if signer == "openai_responses":
        return [
            ThinkingPart(
                text,
                {"openai_responses": {"id": f"rs_{number}", "encrypted_content": f"enc{number}"}},
            )
        ]
    return [ThinkingPart(text)]


def _round(draw: Any, signer: str | None, call_ids: Sequence[str]) -> list[Message]:
    """The model calls tools, and they are answered."""
    number = draw(st.sampled_from([1, 1, 2, 3]))
    calls = [ToolCallPart(call_ids[at], draw(tool_names), draw(arguments)) for at in range(number)]
    if signer == "google":
        calls[0] = ToolCallPart(
            calls[0].id,
            calls[0].name,
            calls[0].arguments,
            native={"google": {"thoughtSignature": "c2ln"}},
        )
    if draw(st.integers(0, 9)) == 0:
        calls[-1] = ToolCallPart(
            calls[-1].id, calls[-1].name, raw='{"city": "Ro', state="cut", native=calls[-1].native
        )
    said = draw(st.lists(texts, max_size=1))
    content = [*_thoughts(draw, signer), *said, *calls]
    if draw(st.integers(0, 5)) == 0 and number > 1:
        content.insert(len(content) - 1, TextPart("And"))
    answers: list[Content] = [_result(draw, call) for call in calls]
    if draw(st.integers(0, 7)) == 0:
        answers.append(draw(texts))
    return [
        _model(draw, content, signer, FinishReason.tool_calls),
        Message(Role.USER, tuple(answers)),
    ]


def _result(draw: Any, call: ToolCallPart) -> ToolResultPart:
    if call.state != "complete":
        return ToolResultPart(call.id, call.name, {"error": "the arguments are cut"}, is_error=True)
    match draw(st.sampled_from(["ok", "ok", "ok", "ok", "failed", "denied"])):
        case "failed":
            return ToolResultPart(call.id, call.name, {"error": "it is dark"}, is_error=True)
        case "denied":
            return ToolResultPart(
                call.id, call.name, {"error": "denied: no"}, is_error=True, denied=True
            )
        case _:
            return ToolResultPart(call.id, call.name, draw(results))


def _answer(draw: Any, signer: str | None, numbers: Iterator[int]) -> Message:
    content: list[Content] = _thoughts(draw, signer)
    match draw(st.sampled_from(["text", "text", "text", "texts", "searched", "cut", "empty"])):
        case "texts":
            content += draw(st.lists(texts, min_size=2, max_size=2))
        case "searched":
            call_id = f"srv_{next(numbers)}"
            kinds = ("server_tool_use", "web_search_tool_result")
            call, result = (
                {"anthropic": {"type": kind}} if signer == "anthropic" else None for kind in kinds
            )
            hits = [
                {
                    "type": "web_search_result",
                    "url": "https://host.test",
                    "title": "t",
                    "encrypted_content": "eA==",
                }
            ]
            content += [
                ToolCallPart(
                    call_id, "web_search", {"query": "cat"}, run_by="provider", native=call
                ),
                ToolResultPart(call_id, "web_search", hits, run_by="provider", native=result),
                draw(texts),
            ]
        case "cut":
            content += [draw(texts)]
            return _model(draw, content, signer, FinishReason.length)
        case "empty":
            return _model(draw, [], signer, FinishReason.stop)
        case _:
            content += [draw(texts)]
    return _model(draw, content, signer, FinishReason.stop)


def _model(
    draw: Any, content: Sequence[Content], signer: str | None, reason: FinishReason
) -> Message:
    known = draw(st.booleans())
    return Message(
        Role.MODEL,
        tuple(content),
        origin=SIGNERS[signer] if signer else None,
        finish_reason=reason if known else None,
        usage=Usage(input_tokens=10, output_tokens=5) if known else None,
    )
