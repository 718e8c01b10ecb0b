"""The stream of a run that goes on with a message, read again: `resumeStream` begins the message
anew, and must get all of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import Message
from dragoman.message import Role
from support.asgi import Exchange, exchange
from support.protocols import PAID, posted, served_agent

pytestmark = pytest.mark.anyio


def question(text: str, id: str) -> Message:
    return Message.user(text).replace(id=id)


def chunks(answer: Exchange) -> list[dict[str, Any]]:
    lines = [
        line.removeprefix(b"data: ")
        for line in answer.body.split(b"\n")
        if line.startswith(b"data: {")
    ]
    return [json.loads(line) for line in lines]


def parts(answer: Exchange) -> list[dict[str, Any]]:
    """What is shown: all but the ends of a stream."""
    return [
        chunk
        for chunk in chunks(answer)
        if chunk["type"] not in ("start", "finish", "tool-approval-request")
    ]


async def approved(app: Any, *, approves: bool = True) -> tuple[Exchange, Exchange]:
    """A run that waits, and the run that goes on with its message."""
    first = await posted(app, "ai_sdk", "t", [question("Now pay.", "u1")])
    [asks] = [chunk for chunk in chunks(first) if chunk["type"] == "tool-approval-request"]
    kept = await app.state.service.answers.find("anonymous", ["thread:t"])
    chain = await app.state.service.answers.chain("anonymous", kept.id)
    so_far = [message for one in chain for message in one.messages]
    resume = [
        {"interruptId": asks["approvalId"], "status": "resolved", "payload": {"approved": approves}}
    ]
    return first, await posted(app, "ai_sdk", "t", so_far, resume=resume)


def without_metadata(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [chunk for chunk in found if chunk["type"] != "message-metadata"]


@pytest.mark.parametrize("approves", [True, False])
async def test_a_message_that_was_approved_is_whole_and_keeps_its_id(approves: bool) -> None:
    async with served_agent() as app:
        first, second = await approved(app, approves=approves)
        assert ([3] if approves else []) == PAID
        again = await exchange(app, "GET", "/ai-sdk/t/stream")
        assert [chunks(each)[0] for each in (first, second)] == [chunks(again)[0]] * 2
        told = [chunk["type"] for chunk in parts(again)]
        assert told.count("tool-input-available") == 1
        assert told.count("tool-output-available" if approves else "tool-output-denied") == 1
        assert without_metadata(parts(again))[-len(parts(second)) :] == parts(second)
        texts = [chunk["delta"] for chunk in chunks(again) if chunk["type"] == "text-delta"]
        assert "".join(texts) == "Let me.Seen 3."
        assert b"c2lnbmVk" not in again.body, "a provider's signature is shown"


async def test_metadata_of_what_stood_before_comes_too() -> None:
    async with served_agent() as app:
        first, _ = await approved(app)
        again = await exchange(app, "GET", "/ai-sdk/t/stream")
        [metadata] = [chunk for chunk in chunks(again) if chunk["type"] == "message-metadata"]
        assert set(metadata["messageMetadata"]) == set(chunks(first)[-1]["messageMetadata"])


async def test_a_second_question_brings_its_own_answer_alone() -> None:
    async with served_agent() as app:
        await posted(app, "ai_sdk", "t", [question("Please roll.", "u1")])
        kept = await app.state.service.answers.find("anonymous", ["thread:t"])
        so_far = [*kept.messages, question("And?", "u2")]
        second = await posted(app, "ai_sdk", "t", so_far)
        again = await exchange(app, "GET", "/ai-sdk/t/stream")
        assert chunks(again) == chunks(second)
        assert [message.role for message in so_far].count(
            Role.USER
        ) == 3  # two questions and a result


async def test_who_goes_on_behind_a_frame_gets_nothing_twice() -> None:
    async with served_agent() as app:
        _, second = await approved(app)
        frames = second.body.split(b"\n\n")
        at, frame = next(
            (at, frame) for at, frame in enumerate(frames) if frame.startswith(b"id: ")
        )
        last = frame.partition(b"\n")[0][4:].decode()
        rest = await exchange(app, "GET", "/ai-sdk/t/stream", headers={"last-event-id": last})
        assert rest.body == b"\n\n".join(frames[at + 1 :])
