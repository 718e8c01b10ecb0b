"""The strict validators find what they are for: a good body has no problems, each bad one has the
right one."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from support.histories import NEUTRAL
from support.rules import problems
from support.switching import TARGETS, sent

Change = Callable[[dict[str, Any]], object]


def _call(body: dict[str, Any]) -> dict[str, Any]:
    return next(m["tool_calls"][0] for m in body["messages"] if m.get("tool_calls"))


def _items(body: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [item for item in body["input"] if item.get("type") == kind]


def _without(messages: list[dict[str, Any]], role: str) -> None:
    messages.remove(next(m for m in messages if m["role"] == role))


def _twice(messages: list[dict[str, Any]], role: str) -> None:
    messages.insert(0, next(m for m in messages if m["role"] == role))


_CHAT: dict[str, tuple[Change, str]] = {
    "an unknown field": (lambda b: b["messages"][0].update(surprise=1), "no such field"),
    "no result": (lambda b: _without(b["messages"], "tool"), "not answered"),
    "a result too many": (lambda b: _twice(b["messages"], "tool"), "has no call"),
    "an undeclared tool": (lambda b: _call(b)["function"].update(name="nobody"), "not declared"),
    "a text for a number": (lambda b: b["messages"][0].update(content=3), "is no"),
}
_TEXTUAL: dict[str, tuple[Change, str]] = {
    "an odd name": (lambda b: _call(b)["function"].update(name="a b"), "does not match"),
    "broken arguments": (lambda b: _call(b)["function"].update(arguments='{"a'), "no JSON object"),
    "an empty id": (lambda b: _call(b).update(id=""), "does not match"),
    "a picture of another kind": (
        lambda b: b["messages"].insert(
            0,
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/tiff;base64,aGk="}}
                ],
            },
        ),
        "are none of",
    ),
}
BAD: dict[str, dict[str, tuple[Change, str]]] = {
    "openai_chat": {
        **_CHAT,
        **_TEXTUAL,
        "an empty answer": (lambda b: b["messages"].append({"role": "assistant", "content": None}), "no content"),
        "thinking": (lambda b: b["messages"][1].update(reasoning_content="hm"), "no such field"),
        "an id that is too long": (lambda b: _call(b).update(id="c" * 41), "does not match"),
    },
    "mistral": {
        **_CHAT,
        **_TEXTUAL,
        "an id of another provider": (lambda b: _call(b).update(id="call_12345678"), "does not match"),
        "no bridge": (lambda b: b["messages"].insert(3, {"role": "user", "content": "?"}), "follows a tool's"),
        "an answer at the end": (lambda b: b["messages"].append({"role": "assistant", "content": "."}), "the last message"),
        "a late system message": (lambda b: b["messages"].append({"role": "system", "content": "."}), "after others"),
        "an empty answer": (lambda b: b["messages"].append({"role": "assistant", "content": ""}), "no content"),
    },
    "cohere": {
        **_CHAT,
        **_TEXTUAL,
        "an empty question": (lambda b: b["messages"].append({"role": "user", "content": ""}), "says nothing"),
    },
    "ollama": {
        **_CHAT,
        "an empty id": (lambda b: _call(b).update(id=""), "empty id"),
        "a role of another format": (lambda b: b["messages"].append({"role": "developer", "content": "x"}), "no role"),
        "an image that is none": (lambda b: b["messages"][0].update(images=["?"]), "no base64"),
    },
    "anthropic": {
        "an unknown field": (lambda b: b["messages"][0].update(surprise=1), "no such field"),
        "no result": (lambda b: b["messages"].pop(2), "not answered"),
        "a result too many": (lambda b: b["messages"].insert(4, b["messages"][2]), "has no call"),
        "results behind words": (lambda b: b["messages"][2]["content"].insert(0, {"type": "text", "text": "x"}), "before a result"),
        "words behind a call": (lambda b: b["messages"][1]["content"].append({"type": "text", "text": "x"}), "after a call"),
        "an odd id": (lambda b: b["messages"][1]["content"][0].update(id="a|b"), "does not match"),
        "an odd name": (lambda b: b["messages"][1]["content"][0].update(name="a b"), "does not match"),
        "the model first": (lambda b: b["messages"].insert(0, {"role": "assistant", "content": "x"}), "not the user's"),
        "blank text": (lambda b: b["messages"][0].update(content=" "), "blank"),
        "white space at the end": (lambda b: b["messages"].append({"role": "assistant", "content": "x "}), "white space"),
        "unsigned thinking": (
            lambda b: b["messages"][1]["content"].insert(0, {"type": "thinking", "thinking": "hm", "signature": ""}),
            "no signature",
        ),
        "an empty message": (lambda b: b["messages"][0].update(content=[]), "empty"),
        "a picture of another kind": (
            lambda b: b["messages"][0].update(
                content=[{"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "aGk="}}]
            ),
            "none of",
        ),
    },
    "google": {
        "an unknown field": (lambda b: b["contents"][0].update(surprise=1), "no such field"),
        "a field of another format": (lambda b: b.update(messages=[]), "no field messages"),
        "no result": (lambda b: b["contents"].pop(2), "calls have"),
        "the model first": (lambda b: b["contents"].pop(0), "not the user's"),
        "a name that begins with a digit": (
            lambda b: b["contents"][1]["parts"][0]["functionCall"].update(name="1st"), "does not match"
        ),
        "an unsigned call": (lambda b: b["contents"][1]["parts"][0].pop("thoughtSignature"), "no signature"),
        "another call's result": (lambda b: b["contents"][2]["parts"][0]["functionResponse"].update(id="x"), "not those"),
        "an empty content": (lambda b: b["contents"][0].update(parts=[]), "empty"),
        "a part that says nothing": (lambda b: b["contents"][0]["parts"].append({}), "says nothing"),
    },
    "openai_responses": {
        "an unknown field": (lambda b: b["input"][0].update(surprise=1), "no such field"),
        "no result": (lambda b: b["input"].remove(_items(b, "function_call_output")[0]), "not answered"),
        "a result too many": (lambda b: b["input"].insert(0, _items(b, "function_call_output")[0]), "has no call"),
        "an undeclared tool": (lambda b: _items(b, "function_call")[0].update(name="nobody"), "not declared"),
        "broken arguments": (lambda b: _items(b, "function_call")[0].update(arguments=""), "no JSON object"),
        "an id that is too long": (lambda b: _items(b, "function_call")[0].update(call_id="c" * 65), "does not match"),
        "an item twice": (
            lambda b: b["input"].extend([{"type": "item_reference", "id": "rs_1"}, {"type": "item_reference", "id": "rs_1"}]),
            "stands twice",
        ),
        "reasoning that nothing came of": (
            lambda b: b["input"].append({"type": "reasoning", "id": "rs_1", "summary": []}), "nothing after it"
        ),
        "no input": (lambda b: b.update(input=[]), "no input"),
    },
}  # fmt: skip


@pytest.mark.parametrize("wire", TARGETS)
def test_a_good_body_has_no_problems(wire: str) -> None:
    assert problems(wire, sent(wire, NEUTRAL["call"])) == []


@pytest.mark.parametrize(
    ("wire", "name"), [(wire, name) for wire, cases in BAD.items() for name in cases]
)
def test_a_bad_body_is_found(wire: str, name: str) -> None:
    change, expected = BAD[wire][name]
    body = deepcopy(sent(wire, NEUTRAL["call"]))
    change(body)
    assert [problem for problem in problems(wire, body) if expected in problem], problems(
        wire, body
    )
