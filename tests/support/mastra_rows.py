"""Rows as Mastra stores them, made up for the tests."""

from __future__ import annotations

from typing import Any

__all__ = ["PNG", "conversation", "part", "row"]

PNG = "iVBORw0KGgo="


def row(id_: str, role: str, *parts: dict[str, Any], **content: Any) -> dict[str, Any]:
    """A row with these parts; `content`: fields beside them."""
    return {
        "id": id_,
        "role": role,
        "createdAt": "2026-03-01T12:00:00.250Z",
        "threadId": "thread-1",
        "resourceId": "user-1",
        "content": {"format": 2, "parts": [*parts], **content},
    }


def part(id_: str, state: str = "result", **more: Any) -> dict[str, Any]:
    """A call with its result; `more`: fields of the invocation, or of the part where they begin
    with `part_`."""
    outer = {
        key.removeprefix("part_"): value for key, value in more.items() if key.startswith("part_")
    }
    inner = {key: value for key, value in more.items() if not key.startswith("part_")}
    result = {"result": {"celsius": 21}} if state == "result" and "result" not in inner else {}
    invocation = {
        "state": state,
        "toolCallId": id_,
        "toolName": "weather",
        "args": {"city": "Rome"},
        **result,
        **inner,
    }
    return {"type": "tool-invocation", "toolInvocation": invocation, **outer}


def conversation() -> list[dict[str, Any]]:
    """A row of each kind, with parts of each kind."""
    answered = part("c1")
    return [
        row("s1", "system", {"type": "text", "text": "Be brief."}, content="Be brief."),
        row(
            "u1", "user", {"type": "text", "text": "Look.", "createdAt": 1772366400250},
            {"type": "file", "mimeType": "image/png", "data": PNG, "filename": "a.png"},
            {"type": "file", "mimeType": "application/pdf", "data": "https://example.com/a.pdf"},
            content="Look.", metadata={"tags": ["a"]}, annotations=[{"a": 1}],
        ),
        row(
            "a1", "assistant", {"type": "step-start", "model": "claude"},
            {"type": "reasoning", "reasoning": "Hm. So", "details": [{"type": "text", "text": "Hm. ", "signature": "c2ln"}, {"type": "text", "text": "So"}, {"type": "redacted", "data": "cmVk"}]},
            {"type": "text", "text": "I look."},
            answered, part("c2", "output-error", errorText="no network"),
            part("c3", "output-denied", approval={"id": "ap1", "approved": False, "reason": "mine"}),
            {"type": "step-start", "createdAt": 1772366400260},
            {"type": "text", "text": "21."},
            {"type": "source", "source": {"sourceType": "url", "id": "s", "url": "https://example.com", "title": "T"}},
            {"type": "source-document", "sourceId": "d", "mediaType": "application/pdf", "title": "P"},
            {"type": "data-chart", "data": {"x": [1, None]}}, {"type": "error", "error": {"name": "E", "message": "gone"}},
            part("c4", "approval-requested", approval={"id": "ap2"}), part("c5", "call"), part("c6", "partial-call", args={"ci": "Ro"}),
            content="I look.21.", toolInvocations=[answered["toolInvocation"]], reasoning="Hm. So",
        ),
        row(
            "a2", "assistant", {"type": "reasoning", "reasoning": "Again", "details": [{"type": "text", "text": "Again"}], "providerMetadata": {"anthropic": {"signature": "c2ln"}}},
            part("p1", part_providerExecuted=True, part_providerMetadata={"openai": {"itemId": "ws_1"}}, part_title="Search", toolName="web_search"),
            {"type": "text", "text": "", "createdAt": 1}, {"type": "text", "text": "Found.", "providerMetadata": {"openai": {"itemId": "msg_1"}}},
        ),
        {**row("x1", "signal", {"type": "text", "text": "The build is done."}, metadata={"signal": {"id": "x1", "type": "reactive"}}), "type": "reactive"},
    ]  # fmt: skip
