"""A client that comes back by its conversation joins the run that goes on there, not an earlier
one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from dragoman import Message, fold
from dragoman.event import MessageStarted, PartFinished, StepFinished
from dragoman.loss import Loss, Lost
from dragoman.message import Role, TextPart, ToolResultPart
from dragoman.request import ModelRequest
from dragoman.serve.core.client_events import show_event
from support.asgi import exchange
from support.protocols import BODIES, events_of, posted, served_agent
from support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.mend("2.8")]


def question(text: str, id: str) -> Message:
    return Message.user(text).replace(id=id)


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("wire", sorted(BODIES))
async def test_a_conversation_is_joined_while_its_run_goes_on(
    wire: str, earlier: bool, store: str, tmp_path: Path
) -> None:
    """That is `useChat({resume: true})`."""
    go, asked = asyncio.Event(), list[str]()

    async def reply(request: ModelRequest) -> AsyncGenerator[str]:
        asked.append(request.messages[-1].text)
        yield f"To {asked[-1]} "
        if asked[-1] == "second":
            await go.wait()
        yield "this."

    url = "memory:" if store == "memory" else f"sqlite:///{tmp_path}/s.db"
    async with served_agent(reply, store=url) as app:
        talk = [question("first", "u1")]
        if earlier:
            first = fold(events_of(wire, await posted(app, wire, "t", talk)))
            talk += [message for message in first if message.role is Role.MODEL]
        talk.append(question("second", "u2"))
        running = asyncio.create_task(posted(app, wire, "t", talk))
        await until(lambda: "second" in asked)
        joined = asyncio.create_task(exchange(app, "GET", f"{BODIES[wire][0]}/t/stream"))
        await asyncio.sleep(0.2)
        assert not joined.done()
        go.set()
        answer, again = await running, await joined
        assert again.status == 200
        texts = [
            [m.text for m in fold(events_of(wire, each)) if m.role is Role.MODEL]
            for each in (answer, again)
        ]
        assert texts[0][-1:] == texts[1][-1:] == ["To second this."]
        late = await exchange(app, "GET", f"{BODIES[wire][0]}/t/stream")
        assert late.body == again.body


def test_a_client_reads_nothing_of_the_provider_in_parts_or_losses() -> None:
    native = {"anthropic": {"citations": [1]}}
    text = PartFinished("m", 0, TextPart("Hi.", native))
    result = PartFinished(
        "m", 1, ToolResultPart("c", "t", (TextPart("Hi.", native),), native=native)
    )
    loss = Loss(None, None, Lost.setting, "Anthropic takes no seed", "seed")
    started = MessageStarted("m", Role.MODEL, losses=(loss,))
    step = StepFinished("model call 1", losses=(loss,))
    for event in (text, result, started, step):
        assert "anthropic" not in repr(show_event(event)).lower()
    shown: Any = show_event(started)
    assert (shown.losses[0].what, shown.losses[0].which) == (Lost.setting, "seed")
