"""The rules T-60 to T-71 of the seed's server, by their numbers, at the endpoints that have them
today."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

from dragoman import Agent, serve
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, exchange

pytestmark = pytest.mark.anyio
IDS = count()


@asynccontextmanager
async def weather(answers: Any = None, *, name: str = "weather", **how: Any) -> Any:
    """A server with one agent → it, and the agent's model."""
    model = ScriptedModel(answers or (lambda request: f"Sunny, {len(request.messages)}."))
    app = serve.app({name: Agent(model, system="You know the weather.")}, **how)
    async with app.router.lifespan_context(app):
        yield app, model


async def sent(app: Any, *parts: dict[str, Any], at: str = "/a2a", **more: Any) -> Exchange:
    fields = {"messageId": f"u{next(IDS)}", "role": "ROLE_USER", "parts": [*parts], **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": fields}}
    return await exchange(app, "POST", at, body)


async def asked(app: Any, text: str, **more: Any) -> dict[str, Any]:
    return (await sent(app, {"text": text}, **more)).json["result"]["task"]


async def test_t_60_the_card() -> None:
    async with weather() as (app, _):
        card = (await exchange(app, "GET", "/.well-known/agent-card.json")).json
        assert (card["name"], card["version"], card["capabilities"]["streaming"]) == (
            "weather",
            "1.0.0",
            True,
        )
        assert card["supportedInterfaces"][0]["protocolBinding"] == "JSONRPC"


async def test_t_61_one_agent_serves_every_context_and_of_several_the_path_says_which() -> None:
    async with weather() as (app, _):
        assert (await asked(app, "Hi.", contextId="one"))["contextId"] == "one"
        assert (await asked(app, "Hi.", contextId="two"))["contextId"] == "two"
        assert "result" in (await sent(app, {"text": "Hi."}, at="/a2a/agents/weather")).json
        assert (
            "weather"
            not in (refused := (await sent(app, {"text": "Hi."}, at="/a2a/agents/other")).json)[
                "error"
            ]
        )
        assert refused["error"]["code"] < 0


async def test_t_62_the_model_reads_its_instructions_the_history_and_the_new_message() -> None:
    async with weather() as (app, model):
        await asked(app, "In Oakland?", contextId="c")
        await asked(app, "And in Rome?", contextId="c")
        assert [(message.role.value, message.text) for message in model.requests[-1].messages] == [
            ("system", "You know the weather."),
            ("user", "In Oakland?"),
            ("model", "Sunny, 2."),
            ("user", "And in Rome?"),
        ]


async def test_t_62_results_that_answer_no_call_are_refused() -> None:
    async with weather() as (app, model):
        result = {"data": {"tool_results": [{"call_id": "c1", "name": "f", "output": "x"}]}}
        assert (await sent(app, result)).json["error"]["code"] < 0
        assert model.requests == []


async def test_t_66_a_run_without_calls_completes_its_task() -> None:
    async with weather() as (app, _):
        assert (await asked(app, "Hi."))["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_t_67_what_is_over_takes_no_message_and_is_not_cancelled() -> None:
    async with weather() as (app, _):
        task = await asked(app, "Hi.")
        assert (await sent(app, {"text": "Again."}, taskId=task["id"])).json["error"][
            "code"
        ] == -32004
        for method, id_, code in (
            ("CancelTask", task["id"], -32002),
            ("GetTask", "nobody's", -32001),
        ):
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": id_}}
            assert (await exchange(app, "POST", "/a2a", body)).json["error"]["code"] == code


async def test_t_67_a_client_that_goes_away_does_not_stop_the_run() -> None:
    """By the server's policy; without it a stream's run ends with its client."""
    held = asyncio.Event()

    async def slowly(_: Any) -> str:
        await held.wait()
        return "Sunny."

    async with weather(slowly, policy=serve.AgentPolicy(on_disconnect="detach")) as (app, _):
        fields = {
            "messageId": "u1",
            "role": "ROLE_USER",
            "contextId": "c",
            "parts": [{"text": "Hi."}],
        }
        await exchange(app, "POST", "/a2a/message:stream", {"message": fields}, leaves_after=1)
        held.set()
        while (found := await app.state.service.answers.find("anonymous", ["thread:c"])) is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert (found.state, found.output[0].text) == ("completed", "Sunny.")


@pytest.mark.parametrize("body", [{}, {"input": None}, {"input": 5}, {"input": []}], ids=str)
async def test_t_68_a_response_needs_its_input(body: dict[str, Any]) -> None:
    async with weather() as (app, model):
        refused = await exchange(app, "POST", "/v1/responses", {"model": "weather", **body})
        assert (refused.status, model.requests) == (400, [])


async def test_t_69_a_streamed_response_is_the_text_in_differences() -> None:
    """By decision with the events of OpenAI, whose last one ends it."""
    async with weather() as (app, _):
        body = {"model": "weather", "input": "Hi.", "stream": True}
        told = (await exchange(app, "POST", "/v1/responses", body)).body.decode()
        events = [json.loads(line[6:]) for line in told.splitlines() if line.startswith("data: {")]
        deltas = [
            event["delta"] for event in events if event["type"] == "response.output_text.delta"
        ]
        assert "".join(deltas) == "Sunny, 2."
        assert events[-1]["type"] == "response.completed"


async def test_t_71_the_history_is_kept_by_context_and_a_message_that_comes_again_is_known() -> (
    None
):
    async with weather() as (app, model):
        for context, id_, text in (("c", "m1", "One."), ("d", "m2", "Two."), ("c", "m3", "Three.")):
            await asked(app, text, contextId=context, messageId=id_)
        assert [message.text for message in model.requests[-1].messages[1:]] == [
            "One.",
            "Sunny, 2.",
            "Three.",
        ]
        await asked(app, "Three.", contextId="c", messageId="m3")
        texts = [message.text for message in model.requests[-1].messages[1:]]
        assert texts.count("Three.") == 1
