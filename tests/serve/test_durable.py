"""Servers whose runs outlive them: what one began, another ends, shows and keeps."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import openai
import pytest

from support.durable_serving import (
    WORDS,
    Server,
    Servers,
    Speaker,
    serving,
    speaking,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncGenerator[Servers]:
    async with serving(f"sqlite:///{tmp_path}/server.db") as servers:
        yield servers


async def said(server: Server, response: str, text: str) -> None:
    """Waits until the log has that."""
    spoken = ""
    async for _, event in server.service.runs.attach(response.removeprefix("resp_")):
        spoken += str(getattr(event, "delta", ""))
        if text in spoken:
            return


async def streamed(one: openai.AsyncOpenAI, response: str, **how: Any) -> list[dict[str, Any]]:
    stream = await one.responses.retrieve(response, stream=True, **how)
    return [event.to_dict() async for event in stream]


async def test_an_answer_is_made_and_kept(servers: Servers) -> None:
    speaker = Speaker()
    app = await servers.start(speaking(speaker))
    speaker.permit()
    answer = await app.client().responses.create(model="m", input="Hi.")
    assert (answer.status, answer.output_text) == ("completed", "".join(WORDS))
    assert (await app.client().responses.retrieve(answer.id)).output_text == "".join(WORDS)
    speaker.permit()
    later = await app.client().responses.create(
        model="m", input="And?", previous_response_id=answer.id
    )
    assert later.output_text == "".join(WORDS)


async def test_what_a_killed_server_began_another_ends(servers: Servers) -> None:
    dying, living = Speaker(), Speaker()
    first = await servers.start(speaking(dying))
    begun = await first.client().responses.create(model="m", input="Hi.", background=True)
    assert begun.status == "queued"
    dying.permit(2)
    await said(first, begun.id, "two ")
    second = await servers.start(speaking(living))
    assert (await second.client().responses.retrieve(begun.id)).status == "in_progress"
    before = await second.client().responses.retrieve(begun.id, stream=True)
    events: list[dict[str, Any]] = []
    async for event in before:
        events.append(event.to_dict())
        if event.type == "response.output_text.delta":
            break
    await first.kill()
    living.permit()
    rest = await streamed(second.client(), begun.id, starting_after=events[-1]["sequence_number"])
    numbers = [event["sequence_number"] for event in [*events, *rest]]
    assert numbers == list(range(len(numbers)))
    assert rest[-1]["type"] == "response.completed"
    final = rest[-1]["response"]
    assert [block["text"] for item in final["output"] for block in item["content"]] == [
        "".join(WORDS)
    ]
    found = await second.client().responses.retrieve(begun.id)
    assert (found.status, found.output_text) == ("completed", "".join(WORDS))
    assert (dying.asked, living.asked) == (1, 1)
