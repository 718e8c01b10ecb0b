"""Mastra's MessageList and ours are given the same, and hold and show the same. Where ours decides
otherwise, the reason stands here."""

from __future__ import annotations

from typing import Any

import pytest
from ai_sdk.scenarios import SCENARIOS

from dragoman.history import MessageList
from support.ai_sdk import AiSdk

pytestmark = pytest.mark.service
DIFFERENT = {
    "nested lists": "lists within lists are taken; Mastra takes one level",
    "two answers become one": "two answers are two turns unless a turn joins them",
    "two rounds": "each answer of the model's begins a step; Mastra knows no step there",
}
"""Scenario → why what is stored differs."""
SHOWN_DIFFERENT: dict[str, str] = {}
"""Scenario → why what is shown differs, where what is stored does not."""


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_holds_and_shows_what_mastra_does(library: AiSdk, name: str) -> None:
    steps = SCENARIOS[name]
    ours = MessageList(thread_id="thread-1", resource_id="user-1")
    for messages, source in steps:
        ours.add(messages, source)  # pyright: ignore[reportArgumentType]
    theirs = library(
        "mastra",
        steps=[{"do": "add", "messages": messages, "source": source} for messages, source in steps],
        options={"threadId": "thread-1", "resourceId": "user-1"},
        outputs=["db", "aiV5.ui"],
    )
    stored = [row for row in ours.export("mastra_v2") if row["role"] != "system"]
    same = _rows(stored) == _rows(theirs["outputs"]["db"])
    assert same == (name not in DIFFERENT)
    if not same:
        return
    given = {row["id"] for row in stored} & {row["id"] for row in theirs["outputs"]["db"]}
    assert [row["id"] for row in stored if row["id"] in given] == [
        row["id"] for row in theirs["outputs"]["db"] if not row["id"].startswith("made-")
    ]
    shown = _shown(ours.to_ui_messages("v5")) == _shown(theirs["outputs"]["aiV5.ui"])
    assert shown == (name not in SHOWN_DIFFERENT)


def test_there_are_enough() -> None:
    assert len(SCENARIOS) >= 30
    assert {*DIFFERENT, *SHOWN_DIFFERENT} <= SCENARIOS.keys()


def _rows(rows: list[Any]) -> list[Any]:
    return [(row["role"], [_part(part) for part in row["content"]["parts"]]) for row in rows]


def _part(part: dict[str, Any]) -> Any:
    match part["type"]:
        case "tool-invocation":
            call = part["toolInvocation"]
            return (
                call["state"],
                call["toolCallId"],
                call["args"],
                call.get("result", call.get("errorText")),
            )
        case "text":
            return "text", part["text"]
        case "reasoning":
            return "reasoning", part["reasoning"]
        case "file":
            return "file", part["data"], part["mimeType"]
        case "source":
            return "source", part["source"]["url"]
        case kind:
            return kind, part.get("data")


def _shown(messages: list[Any]) -> list[Any]:
    return [
        (message["role"], [_shown_part(part) for part in message["parts"]]) for message in messages
    ]


def _shown_part(part: dict[str, Any]) -> dict[str, Any]:
    carriage = (
        "providerMetadata",
        "callProviderMetadata",
        "createdAt",
        "state",
        "sourceId",
        "title",
    )
    return {
        key: value
        for key, value in part.items()
        if key not in carriage or (key == "state" and "toolCallId" in part)
    }
