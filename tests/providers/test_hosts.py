"""Records of hosts and servers that came with issue R: their requests against those that the vendor's
own client makes, and answers as its types have them, whole and streamed.

The expected requests were made by cerebras_cloud_sdk 1.91, fireworks-ai 1.2.30, perplexityai 0.46,
sambanova 1.13 and anthropic 2.14 with a mocked transport.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from dragoman import (
    Agent,
    Citation,
    DataPart,
    Message,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    providers,
    wires,
)
from dragoman.errors import SettingsError
from dragoman.fold import fold
from dragoman.loss import Loss, Lost
from dragoman.message import Origin
from dragoman.providers.anthropic import SIGNERS
from dragoman.request import ModelRequest, Settings, ToolSpec
from dragoman.testing import ScriptedServer

pytestmark = pytest.mark.anyio

TALK = (Message.system("Be brief."), Message.user("Hi"))
SENT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]


def body(
    provider: str,
    *messages: Message,
    losses: list[Loss] | None = None,
    tools: Iterable[ToolSpec] = (),
    options: Mapping[str, Any] = {},
    **settings: Any,
) -> dict[str, Any]:
    """The body of a request to a provider, as its record has it written."""
    record = providers.get(provider)
    wire: Any = wires.get(record.wire)
    request = ModelRequest(
        "m", messages or TALK, tuple(tools), Settings(**settings), options=dict(options)
    )
    target = Origin(provider, None, "m")
    return dict(wire.dump_http(request, target=target, quirks=record.quirks, losses=losses).body)


async def asked(model: str, environment: Mapping[str, str], **access: Any) -> Any:
    """The request that an agent's server gets."""
    record = providers.get(model.partition(":")[0])
    server = ScriptedServer(wires.get(record.wire), lambda _: "Hello.")
    agent = Agent(model, transport=server, environment=environment, **access)
    async with agent:
        assert (await agent.send("Hi")).output == "Hello."
    return server.sent[-1]


@pytest.mark.parametrize(
    ("model", "environment", "url", "header"),
    [
        ("cerebras:gpt-oss-120b", {"CEREBRAS_API_KEY": "k"}, "https://api.cerebras.ai/v1/chat/completions", "Bearer k"),
        ("fireworks", {"FIREWORKS_API_KEY": "k"}, "https://api.fireworks.ai/inference/v1/chat/completions", "Bearer k"),
        ("perplexity", {"PERPLEXITY_API_KEY": "k"}, "https://api.perplexity.ai/chat/completions", "Bearer k"),
        ("sambanova", {"SAMBANOVA_API_KEY": "k"}, "https://api.sambanova.ai/v1/chat/completions", "Bearer k"),
        ("huggingface:openai/gpt-oss-120b:cerebras", {"HF_TOKEN": "k"}, "https://router.huggingface.co/v1/chat/completions", "Bearer k"),
        ("lmstudio:m", {}, "http://localhost:1234/v1/chat/completions", None),
        ("lm-studio:m", {"LM_API_TOKEN": "k"}, "http://localhost:1234/v1/chat/completions", "Bearer k"),
        ("vllm:m", {}, "http://localhost:8000/v1/chat/completions", None),
        ("vllm:m", {"VLLM_BASE_URL": "gpu:9/v1"}, "http://gpu:9/v1/chat/completions", None),
        ("sglang", {}, "http://localhost:30000/v1/chat/completions", None),
        ("bedrock-openai", {"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "us-west-2"}, "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1/chat/completions", "Bearer k"),
        ("bedrock-mantle", {"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_DEFAULT_REGION": "eu-west-1"}, "https://bedrock-mantle.eu-west-1.api.aws/v1/chat/completions", "Bearer k"),
        ("bedrock-responses", {"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "us-east-1"}, "https://bedrock-mantle.us-east-1.api.aws/openai/v1/responses", "Bearer k"),
        ("bedrock-anthropic", {"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "us-east-1"}, "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages", "Bearer k"),
        ("vertex-anthropic:claude-sonnet-4-5@20250929", {"CLOUDSDK_AUTH_ACCESS_TOKEN": "t", "ANTHROPIC_VERTEX_PROJECT_ID": "p", "CLOUD_ML_REGION": "europe-west1", "GOOGLE_CLOUD_PROJECT": "another"}, "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict", "Bearer t"),
        ("vertex-anthropic:m;a/b", {"CLOUDSDK_AUTH_ACCESS_TOKEN": "t", "GOOGLE_CLOUD_PROJECT": "p"}, "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic/models/m%3Ba%2Fb:streamRawPredict", "Bearer t"),
    ],
)  # fmt: skip
async def test_requests_go_where_the_vendors_own_client_sends_them(
    model: str, environment: dict[str, str], url: str, header: str | None
) -> None:
    sent = await asked(model, environment)
    assert sent.path == url
    assert sent.headers.get("authorization") == header


async def test_foundry_takes_a_key_in_a_header_of_its_own_and_a_token_as_a_bearer() -> None:
    there = {"ANTHROPIC_FOUNDRY_RESOURCE": "res", "ANTHROPIC_FOUNDRY_API_KEY": "k"}
    url = "https://res.services.ai.azure.com/anthropic/v1/messages"
    sent = await asked("azure-anthropic:my-deployment", there)
    assert (sent.path, sent.headers["x-api-key"], "authorization" in sent.headers) == (
        url,
        "k",
        False,
    )
    assert sent.headers["anthropic-version"] == "2023-06-01"
    assert sent.body["model"] == "my-deployment"
    sent = await asked("azure-anthropic:m", there, api_key="eyJ.t")
    assert (sent.headers["authorization"], "x-api-key" in sent.headers) == ("Bearer eyJ.t", False)
    sent = await asked(
        "azure-anthropic:m",
        {**there, "ANTHROPIC_FOUNDRY_BASE_URL": "https://res.services.ai.azure.com/anthropic/"},
    )
    assert sent.path == url


@pytest.mark.parametrize(
    ("model", "key", "missing"),
    [
        ("bedrock-openai", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION"),
        ("bedrock-anthropic", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION"),
        ("vertex-anthropic", "CLOUDSDK_AUTH_ACCESS_TOKEN", "GOOGLE_CLOUD_PROJECT"),
        ("azure-anthropic:m", "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_RESOURCE"),
    ],
)
async def test_a_missing_region_project_or_resource_is_named(
    monkeypatch: pytest.MonkeyPatch, model: str, key: str, missing: str
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError, match=missing):
        await asked(model, {key: "k"})


# ------------------------------------------------------------------ requests


@pytest.mark.parametrize(
    ("provider", "settings", "fields"),
    [
        ("cerebras", {"max_tokens": 9, "reasoning": "low"}, {"max_completion_tokens": 9, "reasoning_effort": "low"}),
        ("cerebras", {"reasoning": "off"}, {"reasoning_effort": "none"}),
        ("fireworks", {"max_tokens": 9, "reasoning": 2048}, {"max_tokens": 9, "thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("fireworks", {"reasoning": "high", "top_k": 5}, {"reasoning_effort": "high", "top_k": 5}),
        ("perplexity", {"max_tokens": 9, "reasoning": "minimal"}, {"max_tokens": 9, "reasoning_effort": "minimal"}),
        ("sambanova", {"max_tokens": 9, "reasoning": "off"}, {"chat_template_kwargs": {"enable_thinking": False}, "max_tokens": 9}),
        ("sambanova", {"reasoning": "medium"}, {"reasoning_effort": "medium"}),
        ("vllm", {"reasoning": 500}, {"thinking_token_budget": 500}),
        ("vllm", {"reasoning": "off"}, {"reasoning_effort": "none"}),
        ("vllm", {"reasoning": "xhigh"}, {"reasoning_effort": "xhigh"}),
        ("sglang", {"reasoning": "max"}, {"reasoning_effort": "max"}),
        ("lmstudio", {"reasoning": "low"}, {"reasoning_effort": "low"}),
        ("huggingface", {"reasoning": "high"}, {"reasoning_effort": "high"}),
        ("bedrock-openai", {"reasoning": "high"}, {"reasoning_effort": "high"}),
    ],
)  # fmt: skip
def test_settings_stand_in_the_fields_of_the_vendors_types(
    provider: str, settings: dict[str, Any], fields: dict[str, Any]
) -> None:
    losses: list[Loss] = []
    assert body(provider, losses=losses, **settings) == {"model": "m", "messages": SENT, **fields}
    assert losses == []


def test_a_setting_that_a_vendor_has_not_is_told() -> None:
    losses: list[Loss] = []
    assert "top_k" not in body("cerebras", losses=losses, top_k=5)
    assert "seed" not in body("perplexity", losses=losses, seed=1)
    assert [(loss.what, loss.which) for loss in losses] == [
        (Lost.setting, "top_k"),
        (Lost.setting, "seed"),
    ]


@pytest.mark.parametrize(
    ("wire_field", "setting"),
    [
        ({"chat_template_kwargs": {"enable_thinking": False}}, "off"),
        ({"thinking_token_budget": 500}, 500),
    ],
)
def test_a_servers_own_field_is_read_as_the_setting_and_comes_back(
    wire_field: dict[str, Any], setting: Any
) -> None:
    wire: Any = wires.get("openai_chat")
    given = {"model": "m", "messages": SENT, **wire_field}
    request = wire.load_request(given)
    assert request.settings.reasoning == setting
    assert wire.dump_request(request) == given


@pytest.mark.parametrize(
    "options",
    [
        {"structured_outputs": {"regex": "[a-z]+"}, "chat_template_kwargs": {"thinking": True}},
        {"guided_json": {"type": "object"}},
        {"regex": "[a-z]+", "separate_reasoning": False},
        {"ebnf": 'root ::= "yes" | "no"'},
        {"response_format": {"type": "grammar", "grammar": 'root ::= "yes"'}},
        {"search_mode": "academic", "search_domain_filter": ["arxiv.org"]},
    ],
)
def test_guided_decoding_and_search_are_options(options: dict[str, Any]) -> None:
    for provider in ("vllm", "sglang", "fireworks", "perplexity"):
        assert body(provider, options=options) == {"model": "m", "messages": SENT, **options}


@pytest.mark.parametrize(
    ("provider", "field"),
    [
        ("cerebras", "reasoning"),
        ("sambanova", "reasoning"),
        ("huggingface", "reasoning"),
        ("vllm", "reasoning"),
        ("sglang", "reasoning_content"),
        ("lmstudio", "reasoning_content"),
        ("fireworks", "reasoning_content"),
        ("perplexity", None),
    ],
)
def test_thinking_goes_back_in_the_field_of_the_vendor(provider: str, field: str | None) -> None:
    said = Message(
        Role.MODEL, (ThinkingPart("Hm."), TextPart("Yes.")), origin=Origin(provider, None, "m")
    )
    entry = body(provider, Message.user("Is it?"), said, Message.user("Why?"))["messages"][1]
    assert entry == {"role": "assistant", "content": "Yes.", **({field: "Hm."} if field else {})}


def test_cerebras_takes_one_strict_for_all_tools() -> None:
    def tool(name: str, **function: Any) -> ToolSpec:
        native = {"openai_chat": {"function": function}} if function else None
        return ToolSpec(name, "It.", {"type": "object"}, native=native)

    losses: list[Loss] = []
    sent = body("cerebras", tools=[tool("a", strict=True), tool("b")], losses=losses)["tools"]
    assert [entry["function"].get("strict") for entry in sent] == [None, None]
    assert [(loss.what, loss.which) for loss in losses] == [(Lost.field, "tools.strict")]
    for mixed in ([tool("a", strict=True)] * 2, [tool("a", strict=False), tool("b")]):
        losses = []
        sent = body("cerebras", tools=mixed, losses=losses)["tools"]
        assert losses == []
        assert sent[0]["function"].get("strict") is bool(mixed[0].native["openai_chat"]["function"]["strict"])  # fmt: skip
    assert body("openai", tools=[tool("a", strict=True), tool("b")])["tools"][0]["function"][
        "strict"
    ]


# ------------------------------------------------------------------ roles that alternate


def text(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": each} for each in texts]


def test_perplexitys_messages_alternate() -> None:
    messages = (
        Message.system("One."),
        Message.system("Two."),
        Message.user("A memo."),
        Message.user("Hi", DataPart(b"\x89PNG", "image/png")),
        Message.model("Hello."),
        Message.model("Again."),
        Message.user("Bye"),
    )
    losses: list[Loss] = []
    sent = body("perplexity", *messages, losses=losses)["messages"]
    assert [entry["role"] for entry in sent] == ["system", "system", "user", "assistant", "user"]
    assert sent[2]["content"][:2] == text("A memo.", "Hi")
    assert sent[2]["content"][2]["type"] == "image_url"
    assert sent[3]["content"] == text("Hello.", "Again.")
    assert losses == []
    plain = body("openai", *messages)["messages"]
    assert [entry["role"] for entry in plain][2:] == [
        "user",
        "user",
        "assistant",
        "assistant",
        "user",
    ]


async def test_perplexitys_messages_alternate_in_a_long_conversation_too() -> None:
    """A model remembers the JSON of what it sent; what is joined is never cut there."""
    server = ScriptedServer(wires.get("openai_chat"), lambda _: "Yes.")
    agent = Agent("perplexity", transport=server, api_key="k")
    history: list[Message] = []
    for number in range(30):
        prompt = [Message.user(f"Memo {number}."), Message.user(f"Question {number}?")]
        result = await agent.send(prompt[1], history=[*history, prompt[0]])
        history += [*prompt, result.messages[-1]]
        roles = [
            message["role"] for message in json.loads(_bytes(server.sent[-1].body))["messages"]
        ]
        assert roles == ["user", "assistant"] * number + ["user"]
    await agent.close()


def _bytes(sent: Any) -> bytes:
    return sent if isinstance(sent, bytes) else json.dumps(sent, default=_raw).encode()


def _raw(part: Any) -> Any:
    return json.loads(bytes(part))


def test_perplexitys_files_have_their_name_beside_them() -> None:
    """`file_name` of `ChatMessageContentFileChunk`; the base64 alone does not tell what it is."""
    file = DataPart(b"%PDF", "application/pdf", "a.pdf")
    [entry] = body("perplexity", Message.user("Read.", file))["messages"]
    block = {"type": "file_url", "file_url": {"url": "JVBERg=="}, "file_name": "a.pdf"}
    assert entry["content"] == [*text("Read."), block]
    wire: Any = wires.get("openai_chat")
    [loaded] = wire.load_messages([entry])
    assert (loaded.content[1].data, loaded.content[1].mime_type) == (b"%PDF", "application/pdf")
    assert wire.dump_messages([loaded]) == [entry]


# ------------------------------------------------------------------ answers


def answers(
    message: Mapping[str, Any], deltas: Iterable[Mapping[str, Any]], **around: Any
) -> tuple[bytes, bytes]:
    """An answer of Chat Completions, whole and streamed. `around`: what stands beside the choices."""
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    finish = "tool_calls" if "tool_calls" in message else "stop"
    envelope = {"id": "c", "created": 1, "model": "m", "system_fingerprint": "f"}
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    whole = {**envelope, "object": "chat.completion", "choices": [choice], "usage": usage, **around}
    lines = [
        {**envelope, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
        for delta in ({"role": "assistant"}, *deltas)
    ]
    last = {"index": 0, "delta": {}, "finish_reason": finish}
    lines.append({**lines[0], "choices": [last], "usage": usage, **around})
    stream = "".join([f"data: {json.dumps(line)}\n\n" for line in lines]) + "data: [DONE]\n\n"
    return json.dumps(whole).encode(), stream.encode()


CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}
TIMES = {"queue_time": 0.1, "prompt_time": 0.2, "completion_time": 0.3, "total_time": 0.6}
RESULTS = [{"title": "Moons", "url": "https://a.test/m", "snippet": "Two moons.", "source": "web"}]


@pytest.mark.parametrize(
    ("field", "around"),
    [
        (
            "reasoning",
            {"time_info": TIMES, "service_tier": "default"},
        ),  # Cerebras, vLLM, SambaNova, HF
        ("reasoning_content", {"perf_metrics": {"tokens": 1}}),  # Fireworks, SGLang, LM Studio
    ],
)
def test_thinking_calls_and_usage_are_read_as_the_vendors_types_have_them(
    field: str, around: dict[str, Any]
) -> None:
    whole, stream = answers(
        {field: "Let me look.", "content": None, "tool_calls": [CALL]},
        [
            {field: "Let me "},
            {field: "look."},
            {"tool_calls": [{"index": 0, **CALL, "function": {"name": "look", "arguments": ""}}]},
            {
                "tool_calls": [
                    {"index": 0, "type": "function", "function": {"arguments": '{"a":1}'}}
                ]
            },
        ],
        **around,
    )
    wire: Any = wires.get("openai_chat")
    for data in (whole, stream):
        [message] = fold(wire.load_response(data))
        assert message.thinking == "Let me look."
        [call] = message.tool_calls
        assert isinstance(call, ToolCallPart)
        assert (call.name, call.arguments) == ("look", {"a": 1})
        assert (message.usage.input_tokens, message.usage.output_tokens) == (5, 7)
        beside = message.native["openai_chat:notes"]["response"]
        assert {name: beside[name] for name in around} == around


def test_perplexitys_search_results_are_citations() -> None:
    whole, stream = answers(
        {"content": "Mars has two moons."},
        [{"content": "Mars has "}, {"content": "two moons."}],
        search_results=RESULTS,
        citations=["https://a.test/m"],
    )
    wire: Any = wires.get("openai_chat")
    for data in (whole, stream):
        [message] = fold(wire.load_response(data))
        [part] = message.content
        assert isinstance(part, TextPart)
        assert part.text == "Mars has two moons."
        assert part.citations == (Citation("https://a.test/m", "Moons", quote="Two moons."),)


# ------------------------------------------------------------------ Anthropic elsewhere


def anthropic(provider: str, *, stream: bool = False, **fields: Any) -> Any:
    wire: Any = wires.get("anthropic")
    request = ModelRequest("claude-m", (Message.user("Hi"),), stream=stream, **fields)
    return wire.dump_http(
        request,
        target=Origin(provider, None, "claude-m"),
        quirks=providers.get(provider).quirks,
    )


@pytest.mark.parametrize("stream", [False, True])
def test_vertex_has_the_model_in_the_path_and_the_version_in_the_body(stream: bool) -> None:
    sent = anthropic("vertex-anthropic", stream=stream, settings=Settings(max_tokens=9))
    method = "streamRawPredict" if stream else "rawPredict"
    assert sent.path == f"/publishers/anthropic/models/claude-m:{method}"
    assert sent.headers == {}
    assert sent.body == {
        "anthropic_version": "vertex-2023-10-16",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 9,
        **({"stream": True} if stream else {}),
    }
    wire: Any = wires.get("anthropic")
    loaded = wire.load_request(sent.body, path=sent.path)
    assert (loaded.model, loaded.stream) == ("claude-m", stream)
    counted = wire.dump_count(sent, providers.get("vertex-anthropic").quirks)
    assert counted.path == "/publishers/anthropic/models/count-tokens:rawPredict"
    assert counted.body == {
        "anthropic_version": "vertex-2023-10-16",
        "messages": [{"role": "user", "content": "Hi"}],
        "model": "claude-m",
    }


def test_a_clients_body_is_forwarded_to_vertex_where_it_takes_it() -> None:
    wire: Any = wires.get("anthropic")
    given = {"model": "mine", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    request = wire.load_request(given, headers={"anthropic-beta": "a,b"}).replace(model="claude-m")
    sent = wire.forward(request, given, providers.get("vertex-anthropic").quirks)
    assert sent.path == "/publishers/anthropic/models/claude-m:rawPredict"
    assert sent.headers == {"anthropic-beta": "a,b"}
    assert sent.body == {
        "anthropic_version": "vertex-2023-10-16",
        "max_tokens": 9,
        "messages": given["messages"],
    }
    plain = wire.forward(request, given, None)
    assert (plain.path, plain.body["model"]) == ("/messages", "claude-m")
    assert plain.headers == {"anthropic-version": "2023-06-01", "anthropic-beta": "a,b"}


@pytest.mark.parametrize("provider", SIGNERS)
@pytest.mark.parametrize("other", SIGNERS)
def test_a_platform_reads_what_another_one_of_anthropics_signed(provider: str, other: str) -> None:
    signed = ThinkingPart("Hm.", {"anthropic": {"signature": "c2ln"}})
    talk = [
        Message.user("Hi"),
        Message(Role.MODEL, (signed, TextPart("Yes.")), origin=Origin(other, None, "claude-m")),
        Message.user("Why?"),
    ]
    wire: Any = wires.get("anthropic")
    losses: list[Loss] = []
    sent = wire.dump_messages(
        talk,
        target=Origin(provider, None, "claude-m"),
        quirks=providers.get(provider).quirks,
        losses=losses,
    )
    assert sent["messages"][1]["content"][0]["signature"] == "c2ln"
    assert losses == []
