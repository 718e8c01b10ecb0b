"""AWS's own client, botocore, before our server: an agent, and gateways to providers of other wires."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError
from botocore.session import Session

from dragoman import Agent, Message, serve
from dragoman.errors import ContextLengthError, OverloadedError, RateLimitError
from dragoman.message import FinishReason, ThinkingPart, ToolCallPart, Usage
from dragoman.testing import ScriptedModel
from support.serving import in_a_thread

ASKED: list[Any] = [{"role": "user", "content": [{"text": "Where is the cat?"}]}]
TOOLS = {
    "tools": [
        {
            "toolSpec": {
                "name": "look",
                "description": "Looks.",
                "inputSchema": {
                    "json": {"type": "object", "properties": {"at": {"type": "string"}}}
                },
            }
        }
    ]
}
USAGE = Usage(input_tokens=20, output_tokens=9, cache_read_tokens=5)


def client(url: str, monkeypatch: pytest.MonkeyPatch, key: str | None = None) -> Any:
    """A client as boto3 makes it, with credentials that sign. With a key, which it sends over HTTPS
    alone, it is given the header by hand."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    signs = {} if key is None else {"signature_version": UNSIGNED}
    config = Config(retries={"total_max_attempts": 1}, proxies={}, **signs)
    made = Session().create_client("bedrock-runtime", "us-east-1", endpoint_url=url, config=config)
    if key is not None:
        made.meta.events.register(
            "before-send",
            lambda request, **_: request.headers.update({"Authorization": f"Bearer {key}"}) or None,
        )
    return made


@contextmanager
def gateway(replies: Any, wire: str = "bedrock_converse", **how: Any) -> Iterator[str]:
    model = ScriptedModel(replies, wire=wire)
    with in_a_thread(serve.app(gateway=serve.Gateway({"a.b-v1:0": model}), **how)) as url:
        yield url


def reply(request: Any) -> Any:
    if any(message.tool_results for message in request.messages):
        result = request.messages[-1].tool_results[0].result
        return Message.model(f"It is {result}.").replace(usage=USAGE)
    thought = ThinkingPart("Hm.", {"bedrock_converse": {"signature": "c2lnbg=="}})
    call = ToolCallPart("c1", "look", {"at": "home"})
    return Message.model(thought, "I look.", call).replace(
        finish_reason=FinishReason.tool_calls, usage=USAGE
    )


@pytest.mark.parametrize("key", ["the-key-of-this-server", None])
@pytest.mark.parametrize("wire", ["bedrock_converse", "anthropic", "openai_chat"])
def test_converse_whole_and_streamed(
    wire: str, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: Any = {} if key is None else {"auth": key}
    with gateway(reply, wire, **keys) as url:
        api = client(url, monkeypatch, key)
        whole = api.converse(modelId="a.b-v1:0", messages=ASKED, toolConfig=TOOLS)
        assert whole["stopReason"] == "tool_use"
        blocks = whole["output"]["message"]["content"]
        call = next(block["toolUse"] for block in blocks if "toolUse" in block)
        assert (call["name"], call["input"]) == ("look", {"at": "home"})
        assert whole["usage"]["outputTokens"] == 9
        stream = [
            *api.converse_stream(modelId="a.b-v1:0", messages=ASKED, toolConfig=TOOLS)["stream"]
        ]
        assert [*stream[0]] == ["messageStart"] and [*stream[-1]] == ["metadata"]
        assert stream[-2] == {"messageStop": {"stopReason": "tool_use"}}
        deltas = [
            event["contentBlockDelta"]["delta"] for event in stream if "contentBlockDelta" in event
        ]
        assert "".join(delta.get("text", "") for delta in deltas) == "I look."
        assert (
            "".join(delta["toolUse"]["input"] for delta in deltas if "toolUse" in delta)
            == '{"at":"home"}'
        )
        result = {"toolUseId": call["toolUseId"], "content": [{"text": "there"}]}
        talk = [
            *ASKED,
            whole["output"]["message"],
            {"role": "user", "content": [{"toolResult": result}]},
        ]
        after = api.converse(modelId="a.b-v1:0", messages=talk, toolConfig=TOOLS)
        assert after["output"]["message"]["content"] == [{"text": "It is there."}]
        counted = api.count_tokens(modelId="a.b-v1:0", input={"converse": {"messages": ASKED}})
        assert counted["inputTokens"] > 0


@pytest.mark.parametrize(
    ("error", "name", "status"),
    [
        (RateLimitError("slow down", retry_after=3.0), "ThrottlingException", 429),
        (ContextLengthError("too long"), "ValidationException", 400),
        (OverloadedError("busy"), "ServiceUnavailableException", 503),
    ],
)  # fmt: skip
def test_a_refusal_is_the_exception_of_that_name(
    error: Any, name: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateway(lambda _: error) as url:
        api = client(url, monkeypatch)
        for ask in (api.converse, api.converse_stream):
            with pytest.raises(getattr(api.exceptions, name)) as raised:
                ask(modelId="a.b-v1:0", messages=ASKED)
            assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
        with pytest.raises(api.exceptions.ResourceNotFoundException):
            api.converse(modelId="nobody", messages=ASKED)


def test_an_error_in_the_middle_of_a_stream_is_raised_after_what_was_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(_: Any) -> Any:
        yield "Half an ans"
        raise OverloadedError("busy")

    with gateway(breaks) as url:
        stream = client(url, monkeypatch).converse_stream(modelId="a.b-v1:0", messages=ASKED)[
            "stream"
        ]
        said: list[Any] = []
        with pytest.raises(EventStreamError, match="serviceUnavailableException"):
            said.extend(iter(stream))
    assert said == [] or said[1]["contentBlockDelta"]["delta"] == {"text": "Half an ans"}


def test_a_wrong_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with gateway(reply, auth="the-key-of-this-server") as url:
        api = client(url, monkeypatch, "another-key-altogether")
        with pytest.raises(ClientError) as raised:
            api.converse(modelId="a.b-v1:0", messages=ASKED)
    assert raised.value.response["Error"]["Code"] == "UnrecognizedClientException"


def test_an_agent_answers_and_models_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel("Hello.", wire="anthropic")
    with in_a_thread(serve.app({"a": Agent(model, transport=model.transport)})) as url:
        api = client(url, monkeypatch)
        picture = {"image": {"format": "png", "source": {"bytes": b"\x89PNG\r\n\x1a\n"}}}
        said = [{"role": "user", "content": [picture, {"text": "What is it?"}]}]
        answer = api.converse(modelId="a", messages=said, system=[{"text": "Be brief."}])
        assert answer["output"]["message"]["content"] == [{"text": "Hello."}]
        control = Session().create_client("bedrock", "us-east-1", endpoint_url=url, config=Config(proxies={}))  # fmt: skip
        assert [each["modelId"] for each in control.list_foundation_models()["modelSummaries"]] == [
            "a"
        ]
        assert control.get_foundation_model(modelIdentifier="a")["modelDetails"]["modelId"] == "a"
