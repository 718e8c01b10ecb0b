"""Every way to call an agent or a chat hands on all that it is given; who an agent is."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from dragoman import Agent, Chat, Limits, Settings, TextPart, Tool, ToolCallPart, ToolContext, tool
from dragoman.errors import LimitReachedError
from dragoman.message import FilePart, Role
from dragoman.model.resolve_model import ModelString
from dragoman.transport import Exchange, Player
from support.model import PROVIDER, agent, call, says

pytestmark = pytest.mark.anyio


class Noting(Agent):
    """Gives back what it is called with."""

    async def send(self, *given: Any, **how: Any) -> Any:
        return "send", given, how

    async def send_for(self, *given: Any, **how: Any) -> Any:
        return "send_for", given, how

    async def send_stream(self, *given: Any, **how: Any) -> Any:
        yield "send_stream", given, how

    async def embed_query(self, *given: Any, **how: Any) -> Any:
        return "embed_query", given, how

    async def embed_documents(self, *given: Any, **how: Any) -> Any:
        return "embed_documents", given, how

    async def list_models(self) -> Any:
        return "list_models", (), {}

    async def download(self, *given: Any, **how: Any) -> Any:
        return "download", given, how


class NotingChat(Chat):
    """Gives back what it is called with."""

    send, send_for, send_stream = Noting.send, Noting.send_for, Noting.send_stream


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *[
            ("send", ("hi",)),
            ("send_for", ("hi", int)),
            ("send_stream", ("hi",)),
            ("embed_query", ("hi",)),
        ],
        *[("embed_documents", (["hi"],)), ("list_models", ()), ("download", (FilePart("f"),))],
    ],
)
def test_a_synchronous_call_hands_on_all_that_it_is_given(
    name: str, given: tuple[Any, ...]
) -> None:
    how = {} if name == "list_models" else {"model": PROVIDER}
    with Noting(PROVIDER) as a:
        for it in (a, NotingChat(a)) if hasattr(Chat, name) else (a,):
            found = getattr(it, f"{name}_sync")(*given, **how)
            assert (list(found) if name == "send_stream" else [found]) == [(name, given, how)]


async def test_the_options_of_a_run_reach_it_whichever_way_it_is_sent() -> None:
    """Those of `RunOptions`, by an agent and by a chat."""
    seen: list[Any] = []

    @tool
    async def look(ctx: ToolContext[Any]) -> int:
        seen.append(ctx.deps)
        return 1

    how = {"deps": 7, "settings": Settings(seed=3), "attachments": [TextPart("b")]}
    for of in (lambda a: a, Chat):
        a, script = agent(
            says(call("look")), says('{"result": 4}'), says('{"result": 4}'), tools=[look]
        )
        script.answers *= 3
        it = of(a)
        await it.send("hi", **how)
        await it.send_for("hi", int, **how)
        _ = [chunk async for chunk in it.send_stream("hi", **how)]
        assert {request.settings.seed for request in script.requests} == {3}
        assert [m.text for m in script.requests[-1].messages if m.role is Role.USER and m.text][
            -1
        ] == "hib"
    assert set(seen) == {7}


async def test_each_run_of_an_agent_may_have_limits_of_its_own() -> None:
    a, script = agent(
        says(call("t")), tools=[Tool("t", handler=lambda: 1)], limits=Limits(model_calls=2)
    )
    for limits, calls in ((None, 2), (Limits(model_calls=1), 1), (Limits(model_calls=3), 3)):
        script.requests.clear()
        with pytest.raises(LimitReachedError):
            await a.send("hi", limits=limits)
        assert len(script.requests) == calls


def test_who_an_agent_is() -> None:
    whole = Agent("OpenAI?chat=gpt-x&embeddings=emb-x", display_name="Mine")
    names = (
        whole.provider_name,
        whole.chat_model_name,
        whole.embeddings_model_name,
        whole.display_name,
    )
    assert names == ("openai", "gpt-x", "emb-x", "Mine")
    bare = Agent("openai")
    assert (bare.chat_model_name, bare.embeddings_model_name, bare.display_name) == (
        None,
        None,
        "OpenAI",
    )
    assert bare.model.startswith("openai")
    assert Agent(PROVIDER).model == str(ModelString("scripted", "m", "e"))
    assert Agent(PROVIDER).display_name == "Scripted"


def test_what_a_tool_knows_where_nobody_says_anything() -> None:
    assert ToolContext("d") == ToolContext("d", "", (), ToolCallPart("", ""))


async def test_ids_that_a_provider_does_not_give_are_made_by_the_agents_function() -> None:
    name = {"index": 0, "function": {"name": "look", "arguments": "{}"}}
    chunk = {
        "choices": [{"index": 0, "delta": {"tool_calls": [name]}, "finish_reason": "tool_calls"}]
    }
    body = b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n"
    player = Player([Exchange(body=body, headers={"content-type": "text/event-stream"})])
    a = Agent(
        PROVIDER,
        transport=player,
        tools=[Tool("look")],
        id_factory=map("own{}".format, count()).__next__,
    )
    result = await a.send("hi")
    ids = [*[message.id for message in result.messages], *[call.id for call in result.pending]]
    assert sorted(ids) == [f"own{number}" for number in sorted(int(id_[3:]) for id_ in ids)]
    assert len({*ids}) == 3
