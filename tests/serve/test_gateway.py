"""A gateway: who may ask for what, what becomes of a request's fields, what of failures is seen."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman import Message, ToolResultPart, providers, serve
from dragoman.errors import (
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    SettingsError,
)
from dragoman.event import RunError
from dragoman.fold import fold
from dragoman.message import FinishReason, ThinkingPart
from dragoman.model import ChatModel
from dragoman.request import ModelRequest, Settings, ToolSpec
from dragoman.serve.gateway.upstreams import Upstreams
from dragoman.testing import ScriptedModel, call
from dragoman.transport import Player
from support.gateway import MODEL, answered, client_of, gated

pytestmark = pytest.mark.anyio

ASK = ModelRequest(MODEL, (Message.user("Hi."),))


def with_options(wire: str, **options: Any) -> ModelRequest:
    return ASK.replace(options=options, wire=wire)


async def test_a_model_is_asked_by_the_name_that_the_gateway_gives_it() -> None:
    there = gated("anthropic", "openai_chat", "Hello.")
    [message] = fold(await answered(there.client, ASK))
    assert message.text == "Hello."
    assert there.upstream.requests[0].model == there.upstream.chat_model
    assert msgspec.json.decode(there.transport.bodies[0])["model"] == MODEL


@pytest.mark.parametrize("name", ["other", "scripted:scripted-1", "", "gated ", "*", "GATED"])
async def test_what_is_not_offered_is_not_there(name: str) -> None:
    there = gated("openai_chat", "openai_chat", "Hello.")
    events = await answered(there.client, ASK.replace(model="openai:x")) if name == "" else []
    model, transport = client_of(
        "openai_chat",
        serve.app(gateway=serve.Gateway({MODEL: there.upstream})),
        name=name or "x",
    )
    events += await answered(model, ASK.replace(model=""))
    assert isinstance(events[-1], RunError)
    assert isinstance(events[-1].error, ModelNotFoundError)
    assert transport.statuses == [404]
    assert there.upstream.sent == []


# fields


async def test_fields_of_the_providers_own_wire_go_through_as_they_are() -> None:
    there = gated("openai_chat", "openai_chat", "Hello.")
    await answered(
        there.client, with_options("openai_chat", logit_bias={"1": 5}, user="u", store=True)
    )
    body = there.upstream.bodies[0]
    assert (body["logit_bias"], body["user"], body["store"]) == ({"1": 5}, "u", True)
    assert "dragoman-loss" not in there.transport.headers[0]


@pytest.mark.parametrize("stream", [False, True])
async def test_fields_of_another_wire_are_left_out_and_named_in_a_header(stream: bool) -> None:
    there = gated("openai_chat", "anthropic", "Hello.")
    asked = with_options(
        "openai_chat", logit_bias={"1": 5}, user="u", logprobs=False, verbosity="low"
    )
    await answered(there.client, asked.replace(stream=stream))
    assert there.upstream.bodies[0].keys() == {"model", "messages", "max_tokens"} | (
        {"stream"} if stream else set()
    )
    header = there.transport.headers[0]["dragoman-loss"]
    assert sorted(header.split(", ")) == [
        'field;which="user"',
        'option;which="logit_bias"',
        'option;which="verbosity"',
    ]


async def test_nonsense_is_not_repeated_at_length() -> None:
    there = gated("openai_chat", "anthropic", "Hello.", on_loss="refuse")
    odd = {f"{'x' * 500}{number}": 1 for number in range(500)}
    await answered(there.client, with_options("openai_chat", **odd))
    assert there.transport.statuses == [400]
    assert len(there.transport.bodies[0]) < 20_000


async def test_a_policy_refuses_what_cannot_be_passed_on_and_names_the_field() -> None:
    there = gated("openai_chat", "anthropic", "Hello.", on_loss="refuse")
    events = await answered(
        there.client, with_options("openai_chat", logit_bias={"1": 5}, user="u")
    )
    assert isinstance(events[-1], RunError)
    assert isinstance(events[-1].error, InvalidRequestError)
    assert "logit_bias" in events[-1].error.message
    assert there.transport.statuses == [400]
    assert there.upstream.sent == []
    await answered(there.client, with_options("openai_chat", user="u"))
    assert there.transport.statuses == [400, 200]


@pytest.mark.parametrize(
    ("wire", "options"),
    [
        ("openai_chat", {"n": 2}),
        ("mistral", {"n": 2}),
        ("google", {"generationConfig": {"candidateCount": 2}}),
        ("google", {"generation_config": {"candidate_count": 2}}),
    ],
)
async def test_of_several_answers_one_is_asked_for(wire: str, options: dict[str, Any]) -> None:
    there = gated(wire, wire, "Hello.")
    await answered(there.client, with_options(wire, **options))
    assert not {"n", "generationConfig", "generation_config"} & there.upstream.bodies[0].keys()
    assert there.transport.headers[0]["dragoman-loss"].startswith("candidate;which=")
    there = gated(wire, wire, "Hello.", on_loss="refuse")
    await answered(there.client, with_options(wire, **options))
    assert there.transport.statuses == [400]


@pytest.mark.parametrize(
    ("wire", "options"),
    [
        ("openai_responses", {"prompt": {"id": "pmpt_of_another"}}),
        ("google", {"cachedContent": "cachedContents/of-another"}),
        ("google", {"cached_content": "cachedContents/of-another"}),
        ("google", {"cachedContent": "", "cached_content": "cachedContents/of-another"}),
        ("anthropic", {"container": "container_of_another"}),
        ("anthropic", {"thread": {"type": "continue", "previous_message_id": "msg_1"}}),
        ("openai_chat", {"models": ["vendor/dear"]}),
        ("mistral", {"agent_id": "ag_of_another"}),
    ],
)
async def test_what_the_providers_account_holds_is_not_to_be_named(
    wire: str, options: dict[str, Any]
) -> None:
    there = gated(wire, wire, "Hello.")
    events = await answered(there.client, with_options(wire, **options))
    assert isinstance(events[-1], RunError)
    assert (
        next(iter(options)).replace("_", "").lower()
        in events[-1].error.message.replace("_", "").lower()
    )
    assert there.transport.statuses == [400]
    assert there.upstream.sent == []
    there = gated(wire, ScriptedModel("Hello.", wire=wire), "", references=True)
    await answered(there.client, with_options(wire, **options))
    assert next(iter(options)) in there.upstream.bodies[0]


async def test_a_field_that_names_nothing_is_none() -> None:
    there = gated("anthropic", "anthropic", "Hello.")
    await answered(there.client, with_options("anthropic", mcp_servers=[], container=None))
    assert there.transport.statuses == [200]


async def test_settings_stand_in_and_answers_have_a_limit() -> None:
    there = gated(
        "openai_chat",
        "anthropic",
        "Hello.",
        settings=Settings(temperature=0.5, top_k=3),
        max_tokens=100,
    )
    await answered(there.client, ASK.replace(settings=Settings(temperature=1.0, max_tokens=500)))
    await answered(there.client, ASK.replace(settings=Settings(max_tokens=50)))
    await answered(there.client, ASK)
    found = [
        (each.get("temperature"), each.get("top_k"), each["max_tokens"])
        for each in there.upstream.bodies
    ]
    assert found == [(1.0, 3, 100), (0.5, 3, 50), (0.5, 3, 100)]


# failures


def failing(error: Exception, name: str = "first") -> ScriptedModel:
    return ScriptedModel(lambda request: error, name=name)


async def text_through(
    *models: ScriptedModel, stream: bool = True, client: str = "openai_chat"
) -> list[Any]:
    chat, _ = client_of(client, serve.app(gateway=serve.Gateway({MODEL: list(models)})))
    return await answered(chat, ASK.replace(stream=stream))


@pytest.mark.parametrize("stream", [False, True])
async def test_where_a_model_fails_the_next_one_is_asked_and_nothing_of_it_is_seen(
    stream: bool,
) -> None:
    second = ScriptedModel("Hello.", name="second", wire="anthropic")
    events = await text_through(failing(OverloadedError("busy")), second, stream=stream)
    [message] = fold(events)
    assert (message.text, message.finish_reason) == ("Hello.", FinishReason.stop)


async def test_what_no_other_model_would_do_better_is_the_answer() -> None:
    second = ScriptedModel("Hello.", name="second")
    events = await text_through(failing(ContextLengthError("too long")), second)
    assert isinstance(events[-1], RunError)
    assert second.sent == []


async def test_thinking_of_a_model_that_failed_stays_and_the_next_one_answers() -> None:
    def thinks(request: ModelRequest) -> Any:
        yield ThinkingPart("Hm.")
        raise OverloadedError("busy")

    second = ScriptedModel(["Hello.", call("look")], name="second")
    events = await text_through(ScriptedModel(thinks, name="first"), second)
    [message] = fold(events)
    assert (message.thinking, message.text) == ("Hm.", "Hello.")
    assert not [event for event in events if isinstance(event, RunError)]


async def test_after_the_first_text_the_next_model_is_not_asked_and_the_error_is_said() -> None:
    def breaks(request: ModelRequest) -> Any:
        yield "Half an ans"
        raise OverloadedError("busy")

    second = ScriptedModel("Hello.", name="second")
    events = await text_through(ScriptedModel(breaks, name="first"), second)
    assert isinstance(events[-1], RunError)
    assert fold(events)[0].text == "Half an ans"
    assert second.sent == []


async def test_calls_are_the_clients_behind_a_fallback_too() -> None:
    second = ScriptedModel([[call("look", at="home"), call("look", at="away")]], name="second")
    events = await text_through(failing(OverloadedError("busy")), second)
    [message] = fold(events)
    assert [each.arguments for each in message.tool_calls] == [{"at": "home"}, {"at": "away"}]
    assert message.finish_reason is FinishReason.tool_calls


# names of tools, ids, signatures


@pytest.mark.parametrize("wire", ["openai_chat", "google", "anthropic"])
async def test_names_of_tools_that_the_provider_cannot_take_come_back_as_the_clients(
    wire: str,
) -> None:
    names = ["look up!", "look up?", "x" * 80]
    there = gated("ollama", wire, _calls(names))
    tools = tuple(ToolSpec(name) for name in names)
    [message] = fold(await answered(there.client, ASK.replace(tools=tools)))
    sent = [tool.name for tool in there.upstream.requests[0].tools]
    assert len(set(sent)) == 3
    assert sent != names
    assert [each.name for each in message.tool_calls] == names


def _calls(names: list[str]) -> Any:
    return lambda request: [call(tool.name) for tool in request.tools]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_signature_of_the_clients_own_wire_goes_back_byte_exact(stream: bool) -> None:
    thought = ThinkingPart("Hm.", {"anthropic": {"signature": "c2lnbmVk+/="}})
    there = gated(
        "anthropic", "anthropic", lambda request: Message.model(thought, "Hello.", call("look"))
    )
    asked = ASK.replace(tools=(ToolSpec("look"),), stream=stream)
    said = fold(await answered(there.client, asked))
    results = Message.user(*[_result(each) for each in said[0].tool_calls])
    await answered(there.client, asked.replace(messages=(*ASK.messages, *said, results)))
    block = there.upstream.bodies[1]["messages"][1]["content"][0]
    assert block == {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk+/="}


def _result(call: Any) -> Any:
    return ToolResultPart(call.id, call.name, "done")


# what a gateway is made of


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ({"": "openai:gpt-4o"}, "name of 1 to"),
        ({"a": "nobody:x"}, 'the model "a"'),
        ({"a": "openai:gpt-*"}, "has a *"),
        ({"a**": "openai:gpt-4o"}, "has a * too many"),
        ({"a*": "nobody:x"}, 'the model "a*"'),
        ({"a*": "*:x"}, "provider before the *"),
        ("openai:*", "list of model strings"),
        (["openai:gpt-*-*"], "has a *"),
        (["*"], "provider before the *"),
    ],
)
def test_what_cannot_be_offered_is_refused_at_the_start(models: Any, words: str) -> None:
    with pytest.raises(SettingsError, match="(?s)" + words.replace("*", r"\*")):
        serve.Gateway(models)


def test_a_key_for_a_provider_that_no_model_has_is_a_slip() -> None:
    with pytest.raises(SettingsError, match="did you mean openai"):
        serve.Gateway({"a": "openai:gpt-4o"}, keys={"opnai": "sk-1"})
    with pytest.raises(SettingsError, match="no model of the gateway is there") as raised:
        serve.Gateway({"a": "openai:gpt-4o"}, keys={"anthropic": "sk-secret"})
    assert "sk-secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "served"),
    [
        ("openai:gpt-4o", True),
        ("openai:gpt-", False),
        ("openai:o3", False),
        ("OPENAI:gpt-4o", False),
        ("openai:gpt-4o?chat=o3", False),
        ("openai/gpt-4o", False),
        ("openai:gpt-" + "x" * 300, False),
        ("openai:gpt-\n", False),
        ("fast-x", True),
        ("fast-x?chat=y", False),
    ],
)
def test_a_pattern_is_what_it_says(name: str, served: bool) -> None:
    gateway = serve.Gateway({"openai:gpt-*": "openai:gpt-*", "fast-*": "groq:llama-*"}, keys={})
    assert gateway.serves(name) is served


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("claude-opus-5", "gpt-5"),
        ("claude-own", "o3"),  # its own name wins
        ("gpt-9", "gpt-9"),  # so does a pattern
        ("other", "mini"),
        ("x" * 201, None),
    ],
)
async def test_a_catch_all_gets_every_name_that_nothing_else_fits(
    name: str, asked: str | None
) -> None:
    gateway = serve.Gateway(
        {
            "claude-*": "openai:gpt-5",
            "*": ["openai:mini"],
            "claude-own": "openai:o3",
            "gpt-*": "openai:gpt-*",
        },
        keys={"openai": "sk-1"},
        transport=Player({}),
    )
    assert gateway.serves(name) is (asked is not None)
    assert set(gateway.names) == {"claude-*", "*", "claude-own", "gpt-*"}
    assert {model.name for model in await gateway.models() if "*" in model.name} == set()
    if asked is None:
        with pytest.raises(ModelNotFoundError):
            gateway.model_string(name)
    else:
        assert gateway.model_string(name) == f"openai:{asked}"


async def test_a_pattern_leads_to_the_model_of_the_name() -> None:
    server = ScriptedModel("Hello.")
    gateway = serve.Gateway(
        {"fast-*": "openai:gpt-*"}, transport=_anywhere(server), keys={"openai": "sk-1"}
    )
    chat, _ = client_of("openai_chat", serve.app(gateway=gateway), name="fast-x")
    await answered(chat, ASK.replace(model=""))
    assert server.requests[0].model == "gpt-x"
    assert server.sent[0].headers["authorization"] == "Bearer sk-1"


@pytest.mark.parametrize(("model", "status"), [("openai:gpt-*", 404), ("openai:gpt-x", 502)])
@pytest.mark.parametrize("stream", [False, True])
async def test_that_there_is_no_such_model_is_the_business_of_whoever_named_it(
    model: str, status: int, stream: bool
) -> None:
    """The client, where a pattern let its name through; else whoever set the gateway up."""
    server = ScriptedModel([ModelNotFoundError("the model `gpt-x` does not exist; sk-12345678")])
    gateway = serve.Gateway(
        {model: model}, transport=_anywhere(server), keys={"openai": "sk-1"}, retries=0
    )
    chat, transport = client_of("openai_chat", serve.app(gateway=gateway), name="openai:gpt-x")
    events = await answered(chat, ASK.replace(model="", stream=stream))
    assert transport.statuses[0] // 100 == status // 100
    assert isinstance(events[-1], RunError)
    assert isinstance(events[-1].error, ModelNotFoundError) is (status == 404)
    assert "sk-1" not in str(events[-1].error)


def _anywhere(model: ScriptedModel) -> Any:
    class To:
        async def send(self, request: Any) -> Any:
            assert model.transport is not None
            path = f"{model.base_url}/" + request.path.partition("/v1/")[2]
            return await model.transport.send(msgspec.structs.replace(request, path=path))

        async def close(self) -> None: ...

    return To()


async def test_a_list_names_what_the_provider_lists_and_is_asked_for_once() -> None:
    server = ScriptedModel("Hello.")
    asked: list[str] = []

    class Lists:
        async def send(self, request: Any) -> Any:
            asked.append(request.path)
            names = ["gpt-4o", "gpt-5", "dall-e-3"]
            return _Json(msgspec.json.encode({"data": [{"id": name} for name in names]}))

        async def close(self) -> None: ...

    gateway = serve.Gateway(
        {"fast": server, "openai:gpt-*": "openai:gpt-*"}, transport=Lists(), keys={"openai": "sk-1"}
    )
    for _ in range(2):
        assert [each.name for each in await gateway.models()] == [
            "openai:gpt-4o",
            "openai:gpt-5",
            "fast",
        ]
    assert len(asked) == 1


class _Json:
    status = 200
    headers: dict[str, str] = {}

    def __init__(self, body: bytes) -> None:
        self._left = [body]

    async def read(self) -> bytes:
        return self._left.pop() if self._left else b""

    async def close(self) -> None: ...


async def test_a_list_stands_without_a_provider_that_gives_none() -> None:
    class Broken:
        async def send(self, request: Any) -> Any:
            raise OverloadedError("busy")

        async def close(self) -> None: ...

    gateway = serve.Gateway(["openai:*"], transport=Broken(), keys={"openai": "sk-1"})
    assert [each.name for each in await gateway.models()][:1] == [f"openai:{_usual('openai')}"]


def _usual(name: str) -> str | None:
    return providers.get(name).chat_model


async def test_exchanges_are_recorded_without_keys(tmp_path: Any) -> None:
    server = ScriptedModel("Hello.")
    gateway = serve.Gateway(
        {"fast-*": "openai:gpt-*"},
        transport=_anywhere(server),
        keys={"openai": "sk-12345678"},
        record=tmp_path,
    )
    chat, _ = client_of("anthropic", serve.app(gateway=gateway), name="fast-x")
    await answered(chat, ASK.replace(model="", stream=True))
    [file] = list(tmp_path.glob("*.json"))
    assert b"sk-12345678" not in file.read_bytes()
    played = ChatModel(
        providers.get("openai"), "gpt-x", transport=Player.load(file, match="order"), api_key="none"
    )
    assert (
        fold(await answered(played, ModelRequest("", ASK.messages, stream=True)))[0].text
        == "Hello."
    )


def test_models_that_clients_name_by_a_pattern_do_not_pile_up_and_share_the_way_to_their_provider() -> (
    None
):
    transport = _anywhere(ScriptedModel("Hello."))
    ways = Upstreams(
        transport, keys={"openai": "sk-1"}, base_urls={}, environment=None, middleware=()
    )
    first = ways.cached_models("openai:gpt-0")
    assert ways.cached_models("openai:gpt-0") is first
    assert ways.cached_models("openai:gpt-1").access() is first.access()
    for number in range(300):
        ways.cached_models(f"openai:gpt-{number}")
    assert ways.cached_models("openai:gpt-299") is ways.cached_models("openai:gpt-299")
    assert ways.cached_models("openai:gpt-0") is not first


async def test_a_signature_goes_back_to_a_server_that_never_saw_the_conversation() -> None:
    thought = ThinkingPart("Hm.", {"anthropic": {"signature": "c2lnbmVk+/="}})
    made = [
        gated("anthropic", "anthropic", lambda request: Message.model(thought, "Hello."))
        for _ in range(2)
    ]
    said = fold(await answered(made[0].client, ASK))
    # another process: what the client has is all that there is
    model, _ = client_of("anthropic", made[1].transport.app)
    await answered(model, ASK.replace(messages=(*ASK.messages, *said, Message.user("And?"))))
    assert "c2lnbmVk+/=" in msgspec.json.encode(made[1].upstream.bodies[0]).decode()
