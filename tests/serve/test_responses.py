"""The Responses API's kept answers, through the official client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from dragoman import Agent, Message, ToolCallPart, serve, tool
from dragoman.serve import ServerLimits
from dragoman.serve.store.memory_answers import MemoryAnswers
from dragoman.testing import ScriptedModel
from support.asgi import exchange

pytestmark = pytest.mark.anyio


@tool
def roll() -> int:
    """Rolls a die."""
    return 4


def rolling(request: Any) -> Message | str:
    if not request.messages[-1].tool_results:
        return Message.model(ToolCallPart(f"roll_{len(request.messages)}", "roll", {}))
    return f"Seen {len(request.messages)}."


def client(app: Any, key: str = "one-secret") -> openai.AsyncOpenAI:
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app))
    return openai.AsyncOpenAI(
        base_url="http://127.0.0.1/v1", api_key=key, http_client=http, max_retries=0
    )


def app(reply: Any = rolling, **how: Any) -> Any:
    model = ScriptedModel(reply, wire="anthropic")
    agent = Agent(model, tools=[roll], transport=model.transport, api_key="k")
    return serve.app(agent, auth=["one-secret", "two-secret"], **how)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/answers.db"


@pytest.mark.slow
async def test_a_response_is_kept_gone_on_from_and_forgotten(store: str) -> None:
    made = app(store=store)
    one = client(made)
    first = await one.responses.create(
        model="m", input="Hi.", instructions="Be brief.", metadata={"a": "b"}
    )
    assert (
        first.output_text == "Seen 4."
    )  # the instructions, the question, and the round that the client never sees
    again = await one.responses.retrieve(first.id)
    assert again.to_dict() == first.to_dict()
    second = await one.responses.create(model="m", input="More.", previous_response_id=first.id)
    assert second.output_text == "Seen 7."  # the instructions are of their request alone
    items = await one.responses.input_items.list(second.id, order="asc")
    texts = [part.text for item in items.data for part in getattr(item, "content", [])]
    assert texts == ["Hi.", "Seen 4.", "More."]
    assert [
        item.type for item in (await one.responses.input_items.list(second.id, limit=2)).data
    ] == ["message"] * 2
    await one.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        await one.responses.retrieve(first.id)
    await made.state.service.answers.close()


async def test_a_response_whose_beginning_is_gone_is_not_gone_on_from(store: str) -> None:
    """To go on without it would be to answer another conversation."""
    made = app(store=store)
    one = client(made)
    first = await one.responses.create(model="m", input="Hi.")
    second = await one.responses.create(model="m", input="More.", previous_response_id=first.id)
    await one.responses.delete(first.id)
    assert (await one.responses.retrieve(second.id)).id == second.id
    with pytest.raises(openai.BadRequestError, match="send the whole conversation"):
        await one.responses.create(model="m", input="So?", previous_response_id=second.id)
    await made.state.service.answers.close()


@pytest.mark.parametrize(
    "limit",
    ["0", "101", "000001999", "000001" + "9" * 5000, "9" * 5000, "٣", "1_0", "-1", ""],
    ids=range(9),
)
async def test_no_page_is_longer_than_the_longest(limit: str) -> None:
    """However the number is written: it is refused, and is no fault of the server."""
    made = app()
    first = await client(made).responses.create(model="m", input="Hi.")
    path = f"/v1/responses/{first.id}/input_items?limit={limit}"
    refused = await exchange(made, "GET", path, headers={"authorization": "Bearer one-secret"})
    assert (refused.status, "from 1 to 100" in refused.json["error"]["message"]) == (400, True)


class Failing(MemoryAnswers):
    """A store that keeps nothing, each time in another way."""

    def __init__(self, failure: Exception | None) -> None:
        super().__init__()
        self._failure = failure

    async def save(self, answered: Any, keys: Any = ()) -> None:
        if self._failure is None:
            await asyncio.Event().wait()  # another process has the file locked
        else:
            raise self._failure


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "failure", [None, KeyError("x"), RuntimeError("gone")], ids=["never", "key", "gone"]
)
async def test_a_store_that_fails_takes_no_answer_from_anybody(
    failure: Exception | None, stream: bool
) -> None:
    made = app(store=Failing(failure), limits=ServerLimits(keep_seconds=0.01))
    answer = await exchange(
        made,
        "POST",
        "/v1/responses",
        {"model": "m", "input": "Hi.", "stream": stream},
        headers={"authorization": "Bearer one-secret"},
    )
    assert (answer.status, b"Seen 3." in answer.body) == (200, True)


@pytest.mark.parametrize("link", ["previous_response_id", "conversation"])
async def test_a_conversation_that_is_kept_counts_among_its_messages(link: str) -> None:
    """Else a client makes it longer than the server takes, a request at a time."""
    one = client(app(limits=ServerLimits(messages=8)))
    last = await one.responses.create(
        model="m", input="Hi.", **({"conversation": "trip"} if link == "conversation" else {})
    )
    with pytest.raises(openai.BadRequestError, match="this server takes 8"):
        for _ in range(8):
            name = "trip" if link == "conversation" else last.id
            last = await one.responses.create(model="m", input="More.", **{link: name})


async def test_a_conversation_goes_on_by_its_name(store: str) -> None:
    made = app(store=store)
    one, two = client(made), client(made, "two-secret")
    for count in (3, 7):
        response = await one.responses.create(model="m", input="Hi.", conversation="trip")
        assert response.output_text == f"Seen {count}."
    assert (
        await two.responses.create(model="m", input="Hi.", conversation="trip")
    ).output_text == "Seen 3."
    await made.state.service.answers.close()


async def test_nobody_sees_another_ones_response() -> None:
    """A foreign id and one that there is not are answered alike."""
    made = app()
    one, two = client(made), client(made, "two-secret")
    mine = await one.responses.create(model="m", input="Hi.")
    told: list[str] = []
    for asked in (mine.id, "resp_" + "0" * 32):
        for call in (
            two.responses.retrieve(asked),
            two.responses.delete(asked),
            two.responses.cancel(asked),
            two.responses.input_items.list(asked),
            two.responses.create(model="m", input="Hi.", previous_response_id=asked),
        ):
            with pytest.raises((openai.NotFoundError, openai.BadRequestError)) as refused:
                await call
            told.append(str(refused.value).replace(asked.removeprefix("resp_"), "…"))
    assert told[:5] == told[5:]
    assert (await one.responses.retrieve(mine.id)).id == mine.id


async def test_what_is_not_to_be_stored_cannot_be_asked_for() -> None:
    one = client(app())
    response = await one.responses.create(model="m", input="Hi.", store=False)
    with pytest.raises(openai.NotFoundError):
        await one.responses.retrieve(response.id)


@pytest.fixture
async def held() -> AsyncIterator[tuple[Any, asyncio.Event]]:
    """An application that runs, and what lets its model answer."""
    go = asyncio.Event()

    async def reply(request: Any) -> str:
        await go.wait()
        return "Done."

    made = app(reply)
    async with made.router.lifespan_context(made):
        yield made, go


async def test_a_response_is_made_in_the_background(held: tuple[Any, asyncio.Event]) -> None:
    made, go = held
    one = client(made)
    begun = await one.responses.create(model="m", input="Hi.", background=True)
    assert (begun.status, begun.output, begun.background) == ("in_progress", [], True)
    assert (await one.responses.retrieve(begun.id)).status == "in_progress"
    go.set()
    while (found := await one.responses.retrieve(begun.id)).status == "in_progress":  # noqa: ASYNC110 - it is another request that answers
        await asyncio.sleep(0)
    assert (found.status, found.output_text) == ("completed", "Done.")
    with pytest.raises(openai.BadRequestError):
        await one.responses.cancel(begun.id)


async def test_what_is_made_in_the_background_can_be_cancelled(
    held: tuple[Any, asyncio.Event],
) -> None:
    made, _ = held
    one = client(made)
    begun = await one.responses.create(model="m", input="Hi.", background=True)
    assert (await one.responses.cancel(begun.id)).status == "cancelled"
    assert (await one.responses.cancel(begun.id)).status == "cancelled"
    assert (await one.responses.retrieve(begun.id)).status == "cancelled"


async def test_the_end_of_the_server_ends_what_is_made_in_the_background() -> None:
    async def reply(request: Any) -> str:
        return await asyncio.Future()

    made = app(reply)
    async with made.router.lifespan_context(made):
        begun = await client(made).responses.create(model="m", input="Hi.", background=True)
    found = await client(made).responses.retrieve(begun.id)
    assert found.status == "failed"
    assert found.error is not None
    assert "the server ends before the answer did" in found.error.message
    with pytest.raises(openai.InternalServerError):
        await client(made).responses.create(model="m", input="Hi.", background=True)


async def test_a_conversation_is_not_compacted_here_and_that_is_said() -> None:
    with pytest.raises(openai.NotFoundError, match="compacts no conversations"):
        await client(app()).responses.compact(model="m", input="Hi.")
    with pytest.raises(openai.APIStatusError) as caught:
        await client(app()).post("/responses/other", body={}, cast_to=object)
    assert caught.value.status_code == 405
