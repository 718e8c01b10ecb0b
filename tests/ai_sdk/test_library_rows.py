"""Rows held against Mastra: what it stores comes back equal, what we write it takes as it is, and
shows alike."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ai_sdk.corpus import written
from hypothesis import HealthCheck, given, settings

from dragoman import formats
from dragoman.message import Message
from support import mastra_rows
from support.ai_sdk import VERSIONS, AiSdk
from support.conversations import conversations

pytestmark = pytest.mark.service
V1, V2 = formats.get("mastra_v1"), formats.get("mastra_v2")
UI = formats.get("ai_sdk_ui")
IN_THREAD = {"threadId": "thread-1", "resourceId": "user-1"}


@pytest.mark.parametrize("version", VERSIONS)
def test_what_mastra_stores_comes_back_equal(library: AiSdk, version: int) -> None:
    count = 0
    for each in written(library, version, seeds=8):
        for given_messages in [each.ui, each.states[len(each.states) // 2], *each.model[-1:]]:
            for source in ("memory", "response"):
                steps = [{"do": "add", "messages": given_messages, "source": source}]
                outputs = library("mastra", steps=steps, options=IN_THREAD, outputs=["db", "v1"])[
                    "outputs"
                ]
                stored = outputs["db"]
                if isinstance(outputs["v1"], list):  # it refuses some files
                    assert V1.dump_messages(V1.load_messages(outputs["v1"])) == outputs["v1"]
                    assert not outputs["v1"] or formats.detect(outputs["v1"]) == "mastra_v1"
                messages = V2.load_messages(stored)
                assert V2.dump_messages(messages) == stored, each.name
                assert not stored or formats.detect(stored) == "mastra_v2"
                count += len(stored)
    assert count > 200


def test_what_was_read_from_a_row_mastra_takes_as_it_is(library: AiSdk) -> None:
    rows = [row for row in mastra_rows.conversation() if row["role"] != "system"]
    steps = [{"do": "add", "messages": rows, "source": "memory"}]
    assert library("mastra", steps=steps, outputs=["db"])["outputs"]["db"] == rows


def test_what_others_wrote_mastra_takes_and_shows_alike(library: AiSdk) -> None:
    @given(conversations())
    @settings(
        max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )
    def check(messages: list[Message]) -> None:
        rows = json.loads(json.dumps(V2.dump_messages(messages)))
        rows = [
            {"createdAt": "2026-01-01T00:00:00.000Z", **row}
            for row in rows
            if row["role"] != "system"
        ]
        found = library(
            "mastra",
            steps=[{"do": "add", "messages": rows, "source": "memory"}],
            outputs=["db", "aiV5.ui"],
        )
        assert found["returned"] == []
        if not _repeats_ids(rows):  # Mastra fills in the arguments of such calls from each other
            assert found["outputs"]["db"] == rows
        if shown := found["outputs"]["aiV5.ui"]:
            assert library("check_ui", version=5, messages=shown) is None
            assert [_texts(each) for each in shown] == [
                _texts(each) for each in UI.dump_messages(V2.load_messages(rows))
            ]

    check()


def test_first_rows_that_others_wrote_mastra_takes(library: AiSdk) -> None:
    @given(conversations())
    @settings(
        max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )
    def check(messages: list[Message]) -> None:
        rows = json.loads(json.dumps(V1.dump_messages(messages)))
        rows = [
            {"createdAt": "2026-01-01T00:00:00.000Z", **row, **IN_THREAD}
            for row in rows
            if row["role"] != "system"
        ]
        found = library(
            "mastra", steps=[{"do": "add", "messages": rows, "source": "memory"}], outputs=["db"]
        )
        assert found["returned"] == []
        taken = V2.load_messages(found["outputs"]["db"])
        assert "".join(message.text for message in taken) == "".join(
            message.text for message in messages if message.role != "system"
        )

    check()


def _repeats_ids(rows: list[Any]) -> bool:
    calls = [
        part["toolInvocation"]["toolCallId"]
        for row in rows
        for part in row["content"]["parts"]
        if "toolInvocation" in part
    ]
    return len(calls) != len({*calls})


def _texts(message: dict[str, Any]) -> Any:
    return message["role"], [
        part["text"] for part in message["parts"] if part["type"] in ("text", "reasoning")
    ]
