"""An agent with tools of its own behind every wire's endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from dragoman import Agent, Message, ToolCallPart, ToolResultPart, serve, tool
from dragoman.errors import InvalidRequestError
from dragoman.event import RunError
from dragoman.fold import fold
from dragoman.message import FinishReason
from dragoman.model.chat_model import ChatModel
from dragoman.request import ModelRequest, Settings, ToolSpec
from dragoman.serve.store.memory_answers import MemoryAnswers
from dragoman.testing import ScriptedModel
from dragoman.tools import AskUser, ToolContext
from support.asgi import exchange
from support.gateway import MODEL, answered, client_of
from support.serving import ASKS
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio
WIRES = list(PROVIDERS)
ASK = ToolSpec("ask", "Asks.", {"type": "object", "properties": {"at": {"type": "string"}}})
PICK = ToolSpec("pick", "Picks.", {"type": "object", "properties": {"at": {"type": "string"}}})
KEY = "k" * 32
BOTH = [
    pytest.param(wire, stream, marks=() if (place % 2 == 0) is stream else pytest.mark.slow)
    for place, wire in enumerate(WIRES)
    for stream in (False, True)
]
"""Every wire whole and streamed; quick is one of the two."""


@tool
def own(at: str) -> str:
    """The agent's own."""
    return f"hidden {at}"


@tool(requires_approval=True)
def delete(what: str) -> str:
    """Deletes."""
    deleted.append(what)
    return f"deleted {what}"


@tool
def book(context: ToolContext[None], day: str) -> str:
    """Books."""
    if not context.answers:
        raise AskUser("Which seat?", {"type": "string", "enum": ["aisle", "window"]})
    return f"booked {day}, {context.answers[0]}"


deleted: list[str] = []


@pytest.fixture(autouse=True)
def nothing_deleted() -> None:
    deleted.clear()


def agent_of(
    reply: Any, upstream: str = "anthropic", **how: Any
) -> tuple[Agent[None], ScriptedModel]:
    model = ScriptedModel.like(PROVIDERS[upstream], reply, key_required=False)
    return Agent(model, tools=[own, delete, book], **how), model


def request(
    *messages: Message, stream: bool = False, tools: Sequence[ToolSpec] = (ASK,), **how: Any
) -> ModelRequest:
    return ModelRequest(MODEL, messages, tuple(tools), stream=stream, **how)


async def one(client: ChatModel, asked: ModelRequest) -> Message:
    """The answer to a request that gets one."""
    events = await answered(client, asked)
    assert not isinstance(events[-1], RunError), events[-1].error
    [message] = fold(events)
    return message


async def refused(client: ChatModel, asked: ModelRequest) -> str:
    """The words with which a request is refused."""
    [event] = await answered(client, asked)
    assert isinstance(event, RunError)
    assert isinstance(event.error, InvalidRequestError)
    return event.error.message


def results(message: Message, *values: Any) -> Message:
    return Message.user(
        *[
            ToolResultPart(call.id, call.name, value)
            for call, value in zip(message.tool_calls, values, strict=True)
        ]
    )


def hello(_: ModelRequest) -> str:
    return "Hi."


def yes(_: ModelRequest) -> str:
    return "Yes."


def rounds(asked: ModelRequest) -> Message:
    """A round of its own, one with a call of the client's beside its own, then the answer."""
    count = sum(len(message.tool_results) for message in asked.messages)
    if count == 0:
        return Message.model("Let me see.", ToolCallPart("c1", "own", {"at": "a"}))
    if count == 1:
        return Message.model(
            "And.", ToolCallPart("c2", "own", {"at": "b"}), ToolCallPart("c3", "ask", {"at": "c"})
        )
    return Message.model("Done.")


@pytest.mark.parametrize(("wire", "stream"), BOTH)
async def test_its_own_calls_are_hidden_and_the_clients_wait_for_the_client(
    wire: str, stream: bool
) -> None:
    agent, model = agent_of(rounds, WIRES[(WIRES.index(wire) + 2) % len(WIRES)])
    client, transport = client_of(wire, serve.app({MODEL: agent}))
    talk = [Message.user("Hi.")]
    message = await one(client, request(*talk, stream=stream))
    assert (message.text, [call.name for call in message.tool_calls]) == (
        "Let me see.\nAnd.",
        ["ask"],
    )
    assert message.finish_reason is FinishReason.tool_calls
    talk += [message, results(message, "from the client")]
    message = await one(client, request(*talk, stream=stream))
    assert (message.text, message.finish_reason) == ("Done.", FinishReason.stop)
    told = [
        (each.name, each.result)
        for asked in model.requests[-1].messages
        for each in asked.tool_results
    ]
    assert [name for name, _ in told if name] in (
        ["own", "own", "ask"],
        [],
    )  # some formats have no names there
    assert [result for _, result in told] == ["hidden a", "hidden b", "from the client"]
    seen = b"".join(transport.bodies)
    for secret in (b"hidden", b'"own"', str(model.chat_model).encode(), b"system_fingerprint"):
        assert secret not in seen, secret


@pytest.mark.parametrize(("wire", "stream"), BOTH)
async def test_the_usage_is_that_of_all_its_calls(wire: str, stream: bool) -> None:
    agent, _ = agent_of(rounds)
    client, _ = client_of(wire, serve.app({MODEL: agent}))
    message = await one(client, request(Message.user("Hi."), stream=stream))
    alone, _ = agent_of(rounds)
    result = await alone.send("Hi.", tools=[ASK])
    assert message.usage is not None
    assert result.usage is not None
    assert (message.usage.input_tokens, message.usage.output_tokens) == (
        result.usage.input_tokens,
        result.usage.output_tokens,
    )


@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_provider_says_of_itself_stays_with_the_agent(stream: bool) -> None:
    """Also where the client speaks the provider's wire."""

    def reply(_: ModelRequest) -> Message:
        said = {"system_fingerprint": "fp_secret", "service_tier": "tier_secret"}
        return Message.model("Hi.").replace(
            native={"openai_chat": said, "openai_chat:notes": {"response": said}}
        )

    agent, model = agent_of(reply, "openai_chat")
    result = await agent.send("Hi.")
    assert "fp_secret" in repr(result.messages), "the provider says it"
    client, transport = client_of("openai_chat", serve.app({MODEL: agent}))
    assert (await one(client, request(Message.user("Hi."), stream=stream))).text == "Hi."
    assert b"_secret" not in transport.bodies[-1]
    assert str(model.chat_model).encode() not in transport.bodies[-1]


def deleting(asked: ModelRequest) -> Message:
    if sum(len(message.tool_results) for message in asked.messages) == 0:
        return Message.model("Sure?", ToolCallPart("c1", "delete", {"what": "all"}))
    return Message.model(f"Told: {asked.messages[-1].tool_results[0].result}")


def asked_for(message: Message) -> str:
    """The name of what is asked for, as the wire says it."""
    [call] = message.tool_calls
    return call.name


def answer(message: Message, approved: bool, **more: Any) -> Message:
    """The client's answer to what it is asked for."""
    return results(message, {"approved": approved, **more})


@pytest.mark.parametrize("key", [pytest.param(None, marks=pytest.mark.slow), KEY])
@pytest.mark.parametrize(("wire", "stream"), BOTH)
async def test_an_approval_comes_back_to_another_process(
    wire: str, stream: bool, key: str | None
) -> None:
    store = MemoryAnswers()
    for approved in (True, False):
        agent, model = agent_of(deleting, approval_key=key)
        client, _ = client_of(wire, serve.app({MODEL: agent}, store=store))
        message = await one(client, request(Message.user("Hi."), stream=stream))
        assert message.text == "Sure?"
        assert asked_for(message) in ("request_approval", "delete")
        if wire != "openai_responses":
            [call] = message.tool_calls
            assert call.arguments["tool"] == "delete"
            assert call.arguments["arguments"] == {"what": "all"}
            assert message.finish_reason is FinishReason.tool_calls
        assert deleted == []
        agent, model = agent_of(deleting, approval_key=key)
        client, _ = client_of(wire, serve.app({MODEL: agent}, store=store))
        talk = [Message.user("Hi."), message, answer(message, approved)]
        last = await one(client, request(*talk, stream=stream))
        assert last.text.startswith("Told: deleted all" if approved else 'Told: {"error":"denied')
        assert deleted == (["all"] if approved else [])
        [asked] = model.requests
        assert len(asked.messages) == 3, "the model hears nothing of what was asked of the client"
        deleted.clear()


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "openai_responses"])
async def test_what_a_client_says_that_nobody_kept_counts_where_it_is_signed(wire: str) -> None:
    for key, counts in ((KEY, True), (None, False)):
        agent, _ = agent_of(deleting, approval_key=key)
        client, transport = client_of(wire, serve.app({MODEL: agent}, store=None))
        message = await one(client, request(Message.user("Hi.")))
        talk = [Message.user("Hi."), message, answer(message, True)]
        if counts:
            assert (await one(client, request(*talk))).text == "Told: deleted all"
        else:
            await refused(client, request(*talk))
            assert transport.statuses[-1] == 400
        assert deleted == (["all"] if counts else [])
        deleted.clear()
        talk[-1] = answer(message, False)
        assert "denied" in (await one(client, request(*talk))).text
        assert deleted == []


@pytest.mark.parametrize("key", [KEY, None])
@pytest.mark.parametrize("by_id", [False, True])
async def test_an_approval_of_responses_comes_back_as_the_api_has_it(
    key: str | None, by_id: bool
) -> None:
    """With the whole conversation, which nobody kept, or behind the response that asked."""
    agent, _ = agent_of(deleting, approval_key=key)
    app = serve.app({"m": agent}, store="memory:" if by_id else None)
    first = (await ask(app, "openai_responses")).json
    [_, asked] = first["output"]
    assert (asked["type"], asked["name"], asked["arguments"]) == (
        "mcp_approval_request",
        "delete",
        '{"what":"all"}',
    )
    said = {"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": True}
    again = [QUESTION, *first["output"], said]
    fields = {"input": [said], "previous_response_id": first["id"]} if by_id else {"input": again}
    last = await ask(app, "openai_responses", **fields)
    counts = by_id or key is not None
    assert last.status == (200 if counts else 400)
    assert deleted == (["all"] if counts else [])
    if by_id:
        assert (await ask(app, "openai_responses", **fields)).status == 200, (
            "a branch: the same answer again"
        )
    elif counts:
        forged = {
            **said,
            "approval_request_id": asked["id"][:-1] + ("0" if asked["id"][-1] != "0" else "1"),
        }
        assert (
            await ask(app, "openai_responses", input=[QUESTION, *first["output"], forged])
        ).status == 400
        changed = {**asked, "arguments": '{"what":"more"}'}
        made = await ask(
            app, "openai_responses", input=[QUESTION, first["output"][0], changed, said]
        )
        assert made.status == 400
        assert deleted == ["all"]


async def test_a_signature_is_good_for_what_was_asked_alone() -> None:
    agent, _ = agent_of(deleting, approval_key=KEY)
    client, _ = client_of("openai_chat", serve.app({MODEL: agent}, store=None))
    message = await one(client, request(Message.user("Hi.")))
    [call] = message.tool_calls
    for change in (
        {"arguments": {"what": "more"}},
        {"tool": "book"},
        {"signature": "1..00"},
        {"signature": ""},
    ):
        forged = ToolCallPart(call.id, call.name, {**call.arguments, **change})
        talk = [
            Message.user("Hi."),
            Message.model(forged),
            results(Message.model(forged), {"approved": True}),
        ]
        await refused(client, request(*talk))
    assert deleted == []


@pytest.mark.parametrize(
    "value", ["yes", {"approved": "true"}, {"approved": 1}, [], None, "{", {"ok": True}]
)
async def test_an_answer_that_is_neither_yes_nor_no_is_refused(value: Any) -> None:
    agent, _ = agent_of(deleting)
    client, _ = client_of("openai_chat", serve.app({MODEL: agent}))
    message = await one(client, request(Message.user("Hi.")))
    words = await refused(client, request(Message.user("Hi."), message, results(message, value)))
    assert '{"approved": true}' in words
    assert deleted == []


@pytest.mark.parametrize("store", ["memory:", None])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_question_is_answered_with_a_text(wire: str, store: str | None) -> None:
    def reply(asked: ModelRequest) -> Message:
        if sum(len(message.tool_results) for message in asked.messages) == 0:
            return Message.model(ToolCallPart("c1", "book", {"day": "Monday"}))
        return Message.model(str(asked.messages[-1].tool_results[0].result))

    agent, _ = agent_of(reply, approval_key=KEY)
    client, _ = client_of(wire, serve.app({MODEL: agent}, store=store))
    message = await one(client, request(Message.user("Hi.")))
    [call] = message.tool_calls
    assert (call.name, call.arguments["message"]) == ("request_answer", "Which seat?")
    talk = [Message.user("Hi."), message]
    assert "roof" in await refused(client, request(*talk, results(message, "roof")))
    assert (
        await one(client, request(*talk, results(message, "aisle")))
    ).text == "booked Monday, aisle"


@pytest.mark.parametrize("wire", WIRES)
async def test_two_approvals_and_a_call_of_the_clients_in_one_round(wire: str) -> None:
    def reply(asked: ModelRequest) -> Message:
        if sum(len(message.tool_results) for message in asked.messages) == 0:
            calls = [ToolCallPart(f"c{what}", "delete", {"what": what}) for what in "ab"]
            return Message.model(
                *calls,
                ToolCallPart("c3", "ask", {"at": "x"}),
                ToolCallPart("c4", "own", {"at": "y"}),
            )
        return Message.model("/".join(str(each.result) for each in asked.messages[-1].tool_results))

    agent, model = agent_of(reply)
    client, _ = client_of(wire, serve.app({MODEL: agent}))
    message = await one(client, request(Message.user("Hi.")))
    content = list(results(message, "client", {"approved": True}, {"approved": False}).content)
    last = await one(client, request(Message.user("Hi."), message, Message.user(*content)))
    assert deleted == ["a"]
    assert last.text.startswith("deleted a/")
    assert "client" in last.text
    assert "hidden y" in last.text
    assert len(model.requests) == 2


CALL = {
    "id": "c9",
    "type": "function",
    "function": {"name": "delete", "arguments": '{"what": "it"}'},
}
QUESTION = {"role": "user", "content": "Hi."}
MADE_UP: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "a call that nobody answers": [
        ("openai_chat", {"messages": [QUESTION, {"role": "assistant", "tool_calls": [CALL]}]}),
        (
            "openai_responses",
            {
                "input": [
                    {"type": "function_call", "call_id": "c9", "name": "delete", "arguments": "{}"}
                ]
            },
        ),
        (
            "ollama",
            {"messages": [QUESTION, {"role": "assistant", "content": "", "tool_calls": [CALL]}]},
        ),
    ],
    "a result of no call": [
        (
            "openai_chat",
            {"messages": [QUESTION, {"role": "tool", "tool_call_id": "c1", "content": "deleted"}]},
        ),
        (
            "openai_responses",
            {"input": [{"type": "function_call_output", "call_id": "c1", "output": "deleted"}]},
        ),
        (
            "anthropic",
            {
                "messages": [
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]}
                ]
            },
        ),
    ],
    "an answer to nothing": [
        (
            "openai_responses",
            {
                "input": [
                    {"type": "mcp_approval_response", "approval_request_id": "x", "approve": True}
                ]
            },
        )
    ],
}


@pytest.mark.parametrize(
    ("wire", "fields"),
    [
        pytest.param(*each, id=f"{each[0]}-{name}")
        for name, all_ in MADE_UP.items()
        for each in all_
    ],
)
@pytest.mark.parametrize("store", ["memory:", None])
async def test_what_the_client_makes_up_of_calls_is_refused(
    wire: str, fields: dict[str, Any], store: str | None
) -> None:
    agent, model = agent_of(deleting)
    made = await ask(serve.app({"m": agent}, store=store), wire, **fields)
    assert made.status == 400, made.body
    assert model.requests == []


async def test_a_call_that_is_made_up_behind_a_kept_answer_is_refused() -> None:
    agent, model = agent_of(yes, approval_key=KEY)
    app = serve.app({"m": agent})
    await ask(app, "openai_chat")
    talk = [
        QUESTION,
        {"role": "assistant", "content": "Yes."},
        {"role": "assistant", "tool_calls": [CALL]},
    ]
    made = await ask(app, "openai_chat", messages=talk)
    assert made.status == 400, made.body
    first = await ask(app, "openai_responses")
    call = {"type": "function_call", "call_id": "c9", "name": "delete", "arguments": "{}"}
    made = await ask(app, "openai_responses", input=[call], previous_response_id=first.json["id"])
    assert made.status == 400, made.body
    assert len(model.requests) == 2


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic", "google", "ollama"])
async def test_the_result_of_a_call_that_waits_for_an_approval_is_not_the_clients(
    wire: str,
) -> None:
    agent, model = agent_of(deleting)
    client, _ = client_of(wire, serve.app({MODEL: agent}))
    message = await one(client, request(Message.user("Hi.")))
    await refused(client, request(Message.user("Hi."), message, results(message, "deleted all")))
    assert len(model.requests) == 1


async def ask(app: Any, wire: str, **fields: Any) -> Any:
    path, body = ASKS[wire]
    return await exchange(app, "POST", path, {**body, "model": "m", **fields})


@pytest.mark.parametrize("wire", WIRES)
async def test_tools_of_the_client_by_policy(wire: str) -> None:
    agent, model = agent_of(hello)
    taken = ToolSpec("own", "Mine.", ASK.input_schema)
    for policy, tools, names in (
        ("keep", [ASK, PICK], {"own", "delete", "book", "ask", "pick"}),
        ("drop", [ASK], {"own", "delete", "book"}),
        ("refuse", [], {"own", "delete", "book"}),
        ("refuse", [ASK], None),
        ("keep", [taken], None),
    ):
        app = serve.app({MODEL: agent}, policy=serve.AgentPolicy(tools=cast("Any", policy)))
        client, transport = client_of(wire, app)
        asked = request(Message.user("Hi."), tools=tools)
        if names is None:
            await refused(client, asked)
            continue
        await one(client, asked)
        assert {each.name for each in model.requests[-1].tools} == names
        assert transport.headers[-1].get("dragoman-loss") == (
            'tool;which="ask"' if policy == "drop" else None
        )


@pytest.mark.parametrize(
    "wire", [wire for wire in WIRES if wire not in ("ollama", "bedrock_converse")]
)  # they have no field for it, or no word for none
async def test_a_client_chooses_among_its_own_tools(wire: str) -> None:
    agent, model = agent_of(hello)
    client, _ = client_of(wire, serve.app({MODEL: agent}))
    hidden = {"own", "delete", "book"}
    for choice, tools, names in (
        ("none", [ASK], hidden),
        ("auto", [ASK], {*hidden, "ask"}),
        ("none", [], hidden),
    ):
        await one(
            client, request(Message.user("Hi."), tools=tools, settings=Settings(tool_choice=choice))
        )
        assert {each.name for each in model.requests[-1].tools} == names
        assert model.requests[-1].settings.tool_choice in (None, "auto")
    if wire != "cohere":  # it can name none
        words = await refused(
            client, request(Message.user("Hi."), settings=Settings(tool_choice="own"))
        )
        other = await refused(
            client, request(Message.user("Hi."), settings=Settings(tool_choice="nobody's"))
        )
        assert words == other.replace("nobody's", "own").replace('"own"', "'own'")


@pytest.mark.parametrize("wire", WIRES)
async def test_system_texts_of_the_client_by_policy(wire: str) -> None:
    agent, model = agent_of(hello, system="Be kind.")
    texts = {"keep": ["Be kind.", "Be rude."], "drop": ["Be kind."]}
    talk = [Message.system("Be rude."), Message.user("Hi.")]
    for policy in ("keep", "drop", "refuse"):
        client, transport = client_of(
            wire, serve.app({MODEL: agent}, policy=serve.AgentPolicy(system=policy))
        )
        if policy == "refuse":
            assert "system" in await refused(client, request(*talk))
            continue
        await one(client, request(*talk))
        told = [message.text for message in model.requests[-1].messages if message.role == "system"]
        assert "".join(told).replace("\n", "") == "".join(texts[policy])
        assert transport.headers[-1].get("dragoman-loss") == (
            None if policy == "keep" else "system-message"
        )


@pytest.mark.parametrize("wire", WIRES)
async def test_settings_that_the_server_keeps_to_itself(wire: str) -> None:
    agent, model = agent_of(hello, "openai_chat", settings=Settings(temperature=0.1, max_tokens=50))
    policy = serve.AgentPolicy(settings=("max_tokens",))
    client, transport = client_of(wire, serve.app({MODEL: agent}, policy=policy))
    settings = Settings(temperature=0.9, max_tokens=7, stop=("x",))
    await one(client, request(Message.user("Hi."), settings=settings))
    asked = model.requests[-1].settings
    assert (asked.temperature, asked.max_tokens, asked.stop) == (0.1, 7, None)
    header = transport.headers[-1]["dragoman-loss"]
    assert 'setting;which="temperature"' in header
    client, transport = client_of(wire, serve.app({MODEL: agent}))
    await one(client, request(Message.user("Hi."), settings=settings))
    asked = model.requests[-1].settings
    assert (asked.temperature, asked.max_tokens, asked.stop) == (
        0.9,
        7,
        None if wire == "openai_responses" else ("x",),
    )


async def test_options_of_the_clients_wire_and_more_answers_are_losses() -> None:
    agent, model = agent_of(hello, "openai_chat")
    app = serve.app({"m": agent})
    made = await ask(app, "openai_chat", n=3, logit_bias={"5": 1}, user="ann")
    assert made.status == 200
    assert len(made.json["choices"]) == 1
    assert set(made.headers["dragoman-loss"].split(", ")) == {
        'candidate;which="n"',
        'option;which="logit_bias"',
        'field;which="user"',
    }
    assert not {"n", "logit_bias", "user"} & model.bodies[-1].keys()


@pytest.mark.parametrize(("wire", "stream"), BOTH)
async def test_the_clients_schema_is_that_of_the_answer(wire: str, stream: bool) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    answers = ['{"n": "four"}', '{"n": 4}']
    agent, model = agent_of(answers, "openai_chat")
    client, _ = client_of(wire, serve.app({MODEL: agent}))
    message = await one(
        client, request(Message.user("Hi."), stream=stream, tools=[], output_schema=schema)
    )
    assert message.text.replace(" ", "") == '{"n":4}', "an answer that was not valid is not seen"
    assert len(model.requests) == 2
