"""What is added to a MessageList, step by step, for Mastra's and ours alike: name → `(messages,
source)` one after the other."""

from __future__ import annotations

from typing import Any

from support.mastra_rows import part, row

__all__ = ["SCENARIOS"]

Steps = list[tuple[Any, str]]
STEP = {"type": "step-start"}


def text(words: str, **more: Any) -> dict[str, Any]:
    """A part."""
    return {"type": "text", "text": words, **more}


def ui(id_: str, role: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A UI message of ai 5."""
    return {"id": id_, "role": role, "parts": [*parts], **more}


def tool(id_: str, state: str = "output-available", **more: Any) -> dict[str, Any]:
    """A call in a UI message of ai 5."""
    output = {"output": {"celsius": 21}} if state == "output-available" else {}
    return {
        "type": "tool-weather",
        "toolCallId": id_,
        "state": state,
        "input": {"city": "Rome"},
        **output,
        **more,
    }


def core_call(*ids: str, words: str = "") -> dict[str, Any]:
    """A model message of ai 5 with calls."""
    calls = [
        {"type": "tool-call", "toolCallId": id_, "toolName": "weather", "input": {"city": "Rome"}}
        for id_ in ids
    ]
    return {"role": "assistant", "content": [*([text(words)] if words else []), *calls]}


def core_result(*ids: str) -> dict[str, Any]:
    """A model message of ai 5 with results."""
    output = {"type": "json", "value": {"celsius": 21}}
    return {
        "role": "tool",
        "content": [
            {"type": "tool-result", "toolCallId": id_, "toolName": "weather", "output": output}
            for id_ in ids
        ],
    }


USER = row("u1", "user", text("Hi"))
ASKED = ui("u1", "user", text("Hi"))

SCENARIOS: dict[str, Steps] = {
    "a string": [("Hi", "input")],
    "strings": [(["Hi", "there"], "input")],
    "nothing": [("", "input"), ([], "input"), (None, "memory")],
    "nested lists": [([["Hi"], [["there"]]], "input")],
    "a UI message": [(ASKED, "input")],
    "a row": [(USER, "memory")],
    "a row and an answer": [(USER, "memory"), (ui("a1", "assistant", text("Hello")), "response")],
    "a chat": [(ASKED, "input"), (ui("a1", "assistant", text("Hello")), "response"), (ui("u2", "user", text("More")), "input")],
    "two answers become one": [("Hi", "input"), (ui("a1", "assistant", text("One")), "response"), (ui("a2", "assistant", text("Two")), "response")],
    "two stored answers stay two": [([USER, row("a1", "assistant", text("One")), row("a2", "assistant", text("Two"))], "memory")],
    "a user between two answers": [(ui("a1", "assistant", text("One")), "response"), ("But", "input"), (ui("a2", "assistant", text("Two")), "response")],
    "a call, then its result": [("Hi", "input"), (core_call("c1"), "response"), (core_result("c1"), "response")],
    "a call with words, its result, words": [("Hi", "input"), (core_call("c1", words="I look."), "response"), (core_result("c1"), "response"), ({"role": "assistant", "content": [text("21.")]}, "response")],
    "parallel calls": [("Hi", "input"), (core_call("c1", "c2"), "response"), (core_result("c1", "c2"), "response")],
    "parallel calls, results apart": [("Hi", "input"), (core_call("c1", "c2"), "response"), (core_result("c1"), "response"), (core_result("c2"), "response")],
    "two rounds": [("Hi", "input"), (core_call("c1"), "response"), (core_result("c1"), "response"), (core_call("c2"), "response"), (core_result("c2"), "response")],
    "a UI message with a call, sent again with its result": [("Hi", "input"), (ui("a1", "assistant", tool("c1", "input-available")), "response"), (ui("a1", "assistant", tool("c1")), "response")],
    "a growing UI message": [("Hi", "input"), (ui("a1", "assistant", text("One")), "response"), (ui("a1", "assistant", text("One"), tool("c1", "input-available")), "response"), (ui("a1", "assistant", text("One"), tool("c1"), STEP, text("Two")), "response")],
    "the same message twice": [(ASKED, "input"), (ASKED, "input")],
    "the same row twice": [(USER, "memory"), (USER, "memory")],
    "two equal texts": [(ui("u1", "user", text("Yes")), "input"), (ui("u2", "user", text("Yes")), "input")],
    "equal texts in one message": [(ui("a1", "assistant", text("Yes"), text("Yes")), "response")],
    "a later row replaces": [(row("a1", "assistant", text("One")), "memory"), (row("a1", "assistant", text("Two")), "memory")],
    "an echoed answer with a result": [(row("a1", "assistant", part("c1", "call")), "memory"), (ui("a1", "assistant", tool("c1")), "input")],
    "a client's text does not count": [(ui("a1", "assistant", text("Mine"), tool("c1")), "input"), (row("a1", "assistant", text("Stored"), part("c1", "call")), "memory")],
    "a stored result stays": [(ui("a1", "assistant", tool("c1", output="other")), "input"), (row("a1", "assistant", part("c1")), "memory")],
    "a stored user text wins": [(ui("u1", "user", text("New")), "input"), (row("u1", "user", text("Old")), "memory")],
    "a stored row under an answer": [(ui("a1", "assistant", text("More")), "response"), (row("a1", "assistant", text("Stored")), "memory")],
    "dates put rows in order": [([{**row("u2", "user", text("Second")), "createdAt": "2026-03-01T12:00:02.000Z"}, {**row("u1", "user", text("First")), "createdAt": "2026-03-01T12:00:01.000Z"}], "memory")],
    "equal dates keep their order": [([row(f"u{number}", "user", text(str(number))) for number in range(20)], "memory")],
    "input after rows of the future": [({**USER, "createdAt": "2036-03-01T12:00:02.000Z"}, "memory"), ("Now", "input")],
    "reasoning, a call, a text": [("Hi", "input"), (ui("a1", "assistant", STEP, {"type": "reasoning", "text": "Hm.", "state": "done"}, tool("c1"), STEP, text("21.")), "response")],
    "files": [(ui("u1", "user", text("Look"), {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="}, {"type": "file", "mediaType": "application/pdf", "url": "https://example.com/a.pdf"}), "input")],
    "data parts": [(ui("a1", "assistant", text("Look"), {"type": "data-chart", "data": {"x": 1}}), "response")],
    "sources": [(ui("a1", "assistant", text("So"), {"type": "source-url", "sourceId": "s1", "url": "https://example.com"}), "response")],
    "context": [("Hi", "input"), (ui("c1", "user", text("By the way")), "context")],
    "no merging": [(ui("a1", "assistant", text("One")), "response"), (ui("a2", "assistant", text("Two")), "memory")],
    "UI messages of ai 4": [({"id": "u1", "role": "user", "content": "Hi", "parts": [text("Hi")]}, "input"), ({"id": "a1", "role": "assistant", "content": "21.", "parts": [STEP, part("c1"), STEP, text("21.")]}, "response")],
    "approvals": [("Hi", "input"), (ui("a1", "assistant", tool("c1", "approval-requested", approval={"id": "ap1"})), "response")],
    "a failed call": [("Hi", "input"), (ui("a1", "assistant", tool("c1", "output-error", errorText="gone")), "response")],
    "JSON in a text stays a text": [('{"role": "user", "content": "Hi"}', "input")],
}  # fmt: skip
