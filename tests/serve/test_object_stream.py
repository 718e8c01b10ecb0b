"""The text stream of a typed answer, which `useObject` of the AI SDK reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from dragoman import Agent, Message, ModelRetry, ToolCallPart, serve, tool
from dragoman.errors import StreamCutError
from dragoman.event import RunFinished, RunStarted
from dragoman.fold import unfold
from dragoman.serve.apis.object_stream import ObjectText
from dragoman.testing import ScriptedModel, answer_with
from support.asgi import Exchange, exchange, scope_of

pytestmark = pytest.mark.anyio

PATH = "/ai-sdk/cook/object"
SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["title", "count"],
}
RECIPE = {"title": "Crêpes 🥞 and more of them", "count": 3}
WRONG = {"title": "Crêpes", "count": "many"}
TEXT = json.dumps(RECIPE, ensure_ascii=False)


@tool
def look() -> int:
    """Looks."""
    return 4


@tool(requires_approval=True)
def pay() -> str:
    """Pays."""
    return "paid"


def app_of(model: Any, *, schema: Any = SCHEMA, **how: Any) -> Any:
    policy = serve.AgentPolicy(output_schema=schema)
    return serve.app({"cook": Agent(model, **how)}, policy=policy)


async def asked(
    script: Any, sent: Any = "Crêpes?", *, wire: str = "openai_chat", **how: Any
) -> Exchange:
    """What a client gets whose hook submits a value."""
    model = ScriptedModel(script, wire=wire)
    app = app_of(model, **how)
    async with app.router.lifespan_context(app):
        body = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        return await exchange(app, "POST", PATH, body)


async def slowly(request: Any) -> AsyncGenerator[str]:
    for at in range(0, len(TEXT), 4):
        yield TEXT[at : at + 4]
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic", "google"])
async def test_the_text_of_the_object_is_sent_while_it_is_written(wire: str) -> None:
    answer = await asked(slowly, wire=wire)
    assert answer.is_complete
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert (answer.status, json.loads(answer.body)) == (200, RECIPE)
    assert len([each for each in answer.sent if each.get("body")]) > 3


@pytest.mark.parametrize(
    ("sent", "question"), [("Crêpes?", "Crêpes?"), ({"for": 4}, '{"for":4}'), ([1], "[1]")]
)
async def test_an_input_becomes_the_question(sent: Any, question: str) -> None:
    seen: list[str] = []

    def reply(request: Any) -> Message:
        seen.append(request.messages[-1].text)
        return Message.model(TEXT)

    assert json.loads((await asked(reply, sent)).body) == RECIPE
    assert seen == [question]


@pytest.mark.parametrize("sent", [b"", b'""', b"null", b"{}", b"{oops", b"\xff", b"[" * 5000])
async def test_no_input_is_a_bad_request(sent: bytes) -> None:
    answer = await asked([], sent)
    assert (answer.status, answer.is_complete) == (400, True)
    assert answer.headers["content-type"] == "application/json"


async def test_an_agent_without_a_schema_and_an_unknown_one_say_so() -> None:
    answer = await asked([], schema=None)
    assert answer.status == 400 and b"output_schema" in answer.body
    app = app_of(ScriptedModel([]))
    async with app.router.lifespan_context(app):
        answer = await exchange(app, "POST", "/ai-sdk/nobody/object", "Hi.")
    assert answer.status == 404


async def test_a_void_answer_that_was_sent_cuts_the_stream_and_ends_the_run() -> None:
    answer = await asked([answer_with(WRONG), answer_with(RECIPE)])
    assert not answer.is_complete
    assert b"Cr\xc3\xaapes" in answer.body and b"more" not in answer.body


async def test_words_before_a_call_are_not_sent() -> None:
    calls = Message.model("Let me look.", ToolCallPart("c", "look", {}))
    answer = await asked([calls, Message.model(TEXT)], tools=[look])
    assert (answer.is_complete, json.loads(answer.body)) == (True, RECIPE)


async def test_another_attempt_follows_where_nothing_was_sent() -> None:
    answer = await asked([Message.model("I would say 3."), answer_with(RECIPE)])
    assert (answer.is_complete, json.loads(answer.body)) == (True, RECIPE)


async def test_a_list_is_sent_as_it_is() -> None:
    answer = await asked([Message.model("[1, 2]")], schema={"type": "array"})
    assert (answer.is_complete, answer.body) == (True, b"[1, 2]")


async def test_a_checked_answer_is_sent_once_it_is_accepted() -> None:
    def check(context: Any, text: str) -> str:
        if "more" not in text:
            raise ModelRetry("More of them.")
        return text

    few = {"title": "Few", "count": 1}
    answer = await asked([answer_with(few), answer_with(RECIPE)], output_checks=[check])
    assert (answer.is_complete, json.loads(answer.body)) == (True, RECIPE)


async def test_a_failure_before_the_first_byte_has_its_status() -> None:
    answer = await asked([Message.model("No JSON."), Message.model("None again.")])
    assert answer.status >= 500 and answer.is_complete and "error" in answer.json
    waiting = await asked([Message.model(ToolCallPart("c", "pay", {}))], tools=[pay])
    assert waiting.status == 400 and b"useChat" in waiting.body


async def test_the_run_ends_if_its_client_leaves() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def held(request: Any) -> AsyncGenerator[str]:
        try:
            yield TEXT[:9]
            began.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    app = app_of(ScriptedModel(held))
    async with app.router.lifespan_context(app):
        made = Exchange([b'"Hi."'])
        task = asyncio.create_task(app(scope_of("POST", PATH), made.receive, made.send))
        await began.wait()
        made.leave()
        await asyncio.wait_for(task, 5)
        await asyncio.wait_for(ended.wait(), 5)
        assert not made.is_complete and not app.state.service.runs.driven


def test_a_result_that_is_not_what_was_sent_cuts_the_stream() -> None:
    """As a hook or a hand-off may change it behind the model."""
    events = unfold([Message.model('{"a": 1}').replace(id="m")])
    text = ObjectText(is_held=False)
    assert text.feed([RunStarted("r", typed="text"), *events]) == '{"a": 1}'
    with pytest.raises(StreamCutError, match="changed"):
        text.feed([RunFinished("r", result={"a": 2})])
