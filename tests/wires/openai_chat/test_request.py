"""Requests on the openai_chat wire: settings, tools, output, streams (D-99, D-101), and what
vendors want differently."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.errors import HistoryError
from dragoman.loss import Loss
from dragoman.message import Message, Origin, ToolCallPart, ToolResultPart
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import openai_chat
from dragoman.wires.openai_chat import Quirks

HELLO = [{"role": "user", "content": "Hi"}]
OBJECT = {
    "type": "object",
    "properties": {"x": {"type": "string"}},
    "required": ["x"],
    "additionalProperties": False,
}


def there_and_back(**fields: Any) -> ModelRequest:
    body = {"model": "m", "messages": HELLO, **fields}
    request = openai_chat.load_request(body)
    stored = msgspec.json.decode(msgspec.json.encode(request), type=ModelRequest)
    assert openai_chat.dump_request(stored) == body
    return request


def dump(
    quirks: Quirks | None = None, losses: list[Loss] | None = None, **fields: Any
) -> dict[str, Any]:
    request = ModelRequest("m", (Message.user("Hi"),), **fields)
    return openai_chat.dump_request(request, quirks=quirks, losses=losses)


def test_a_plain_request() -> None:
    assert dump() == {"model": "m", "messages": HELLO}
    http = openai_chat.dump_http(ModelRequest("m", (Message.user("Hi"),)))
    assert (http.path, http.method, http.body) == (
        "/chat/completions",
        "POST",
        {"model": "m", "messages": HELLO},
    )


def test_d99_a_stream_is_asked_for_its_usage() -> None:
    assert dump(stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in dump()
    there_and_back(stream=True)
    there_and_back(stream=True, stream_options={"include_usage": True})
    there_and_back(
        stream=True, stream_options={"include_usage": False, "include_obfuscation": False}
    )
    there_and_back(stream=False)
    there_and_back(stream=None, stream_options=None)
    loaded = openai_chat.load_request({"model": "m", "messages": HELLO, "stream": True})
    assert "stream_options" in openai_chat.dump_request(loaded, quirks=Quirks())


def test_d101_parallel_calls_and_the_service_tier_are_sent_in_streams_too() -> None:
    body = dump(
        stream=True, settings=Settings(parallel_tool_calls=False), options={"service_tier": "flex"}
    )
    assert (body["parallel_tool_calls"], body["service_tier"]) == (False, "flex")


def test_settings_are_neutral() -> None:
    request = there_and_back(
        temperature=0.5,
        top_p=1,
        top_k=3,
        max_tokens=9,
        seed=1,
        presence_penalty=0,
        frequency_penalty=0.5,
        parallel_tool_calls=True,
        stop=["a", "b"],
    )
    assert request.settings == Settings(
        temperature=0.5,
        top_p=1,
        top_k=3,
        max_tokens=9,
        seed=1,
        presence_penalty=0,
        frequency_penalty=0.5,
        parallel_tool_calls=True,
        stop=("a", "b"),
    )
    assert request.options == {}
    assert request.native is None


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        ({"max_completion_tokens": 9}, Settings(max_tokens=9)),
        ({"max_tokens": 9, "max_completion_tokens": 8}, Settings(max_tokens=9)),
        ({"stop": "a"}, Settings(stop=("a",))),
        ({"reasoning_effort": "low"}, Settings(reasoning="low")),
        ({"reasoning_effort": "none"}, Settings(reasoning="off")),
        ({"reasoning_effort": "minimal"}, Settings(reasoning="minimal")),
        ({"reasoning": {"effort": "high"}}, Settings(reasoning="high")),
        ({"reasoning": {"max_tokens": 2000}}, Settings(reasoning=2000)),
        ({"reasoning": {"effort": "high", "exclude": True}}, Settings()),
        ({"thinking": {"type": "disabled"}}, Settings(reasoning="off")),
        ({"thinking": {"type": "enabled"}}, Settings()),
        ({"thinking": {"type": "enabled", "budget_tokens": 99}}, Settings(reasoning=99)),
        ({"enable_thinking": False}, Settings(reasoning="off")),
        ({"enable_thinking": True}, Settings()),
        ({"tool_choice": "required"}, Settings(tool_choice="required")),
        (
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
            Settings(tool_choice="f"),
        ),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": []},
                }
            },
            Settings(),
        ),
        ({"function_call": {"name": "f"}}, Settings(tool_choice="f")),
        ({"function_call": "none"}, Settings(tool_choice="none")),
        (
            {
                "temperature": None,
                "tool_choice": None,
                "stop": None,
                "max_tokens": None,
                "seed": None,
            },
            Settings(),
        ),
        ({"temperature": "hot", "stop": [1], "seed": True, "parallel_tool_calls": 1}, Settings()),
    ],
)
def test_every_spelling_of_a_setting_comes_back_as_it_was(
    fields: dict[str, Any], settings: Settings
) -> None:
    request = there_and_back(**fields)
    assert request.settings == settings
    assert not request.options.keys() & fields.keys()


def test_fields_without_a_neutral_name_are_options_and_have_the_last_word() -> None:
    request = there_and_back(n=2, logit_bias={"1": 2}, provider={"order": ["x"]}, min_p=None)
    assert request.options == {
        "n": 2,
        "logit_bias": {"1": 2},
        "provider": {"order": ["x"]},
        "min_p": None,
    }
    assert dump(settings=Settings(max_tokens=5), options={"max_tokens": 6})["max_tokens"] == 6


def test_tools_are_neutral() -> None:
    function = {"name": "f", "description": "Does f.", "parameters": OBJECT}
    request = there_and_back(tools=[{"type": "function", "function": function}])
    assert request.tools == (ToolSpec("f", "Does f.", OBJECT),)
    assert dump(tools=(ToolSpec("g"),))["tools"] == [
        {
            "type": "function",
            "function": {"name": "g", "parameters": {"type": "object", "properties": {}}},
        }
    ]


@pytest.mark.parametrize(
    "tools",
    [
        [
            {
                "type": "function",
                "function": {"name": "f", "description": "", "parameters": {}, "strict": True},
                "cache_control": {"type": "ephemeral"},
            }
        ],
        [{"type": "function", "function": {"name": "f"}}],
        [{"function": {"name": "f", "parameters": {"type": "object"}}}],
        [{"type": "function", "function": {"name": None}}],
        [{"type": None}],
        [{"type": "function", "function": {"name": "f", "description": None, "parameters": None}}],
        [{"type": "custom", "custom": {"name": "sql", "format": {"type": "grammar"}}}],
        [{"type": "openrouter:web_search", "parameters": {"max_results": 1}}],
        [],
        None,
    ],
)
def test_every_tool_comes_back_as_it_was(tools: Any) -> None:
    there_and_back(tools=tools)


def test_tools_that_the_provider_runs_are_server_tools() -> None:
    request = there_and_back(
        tools=[{"type": "openrouter:web_search", "parameters": {"max_results": 1}}]
    )
    assert request.tools == (
        ServerTool(
            "openrouter:web_search", {"parameters": {"max_results": 1}}, {"openai_chat": {}}
        ),
    )


def test_the_older_functions() -> None:
    request = there_and_back(functions=[{"name": "f", "parameters": OBJECT}], function_call="auto")
    assert request.tools == (ToolSpec("f", "", OBJECT),)
    assert openai_chat.dump_request(request, quirks=Quirks())["tools"][0]["function"]["name"] == "f"


def test_a_schema_that_was_loaded_is_sent_as_it_was() -> None:
    loose = {"type": "object", "properties": {"x": {"type": "string", "format": "date"}}}
    stated = {"name": "a", "schema": loose, "strict": False, "description": "d"}
    request = there_and_back(response_format={"type": "json_schema", "json_schema": stated})
    assert request.output_schema == loose


@pytest.mark.parametrize(
    "stated",
    [
        {"type": "json_object"},
        {"type": "text"},
        {"type": "json_object", "schema": OBJECT},
        {"type": "json_schema", "schema": OBJECT},
        None,
        "x",
    ],
)
def test_every_response_format_comes_back_as_it_was(stated: Any) -> None:
    request = there_and_back(response_format=stated)
    assert request.output_schema == (
        {"type": "object"} if stated == {"type": "json_object"} else None
    )


def test_d100_a_schema_of_ours_is_sent_strict_where_it_can_be() -> None:
    body = dump(
        output_schema={"type": "object", "properties": {"x": {"type": "string", "format": "date"}}}
    )
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "output_schema", "schema": OBJECT, "strict": True},
    }
    free = {"type": "object", "additionalProperties": {"type": "string"}}
    sent = dump(output_schema=free)["response_format"]["json_schema"]
    assert (sent["schema"], sent["strict"]) == (free, False)
    assert dump(output_schema={"type": "object"})["response_format"] == {"type": "json_object"}


def test_what_vendors_want_differently() -> None:
    settings = Settings(max_tokens=9, reasoning="high", top_k=3)
    openai = Quirks(max_tokens="max_completion_tokens", refuses=("top_k",))
    lost: list[Loss] = []
    body = dump(openai, lost, settings=settings)
    assert (body["max_completion_tokens"], body["reasoning_effort"]) == (9, "high")
    assert "top_k" not in body
    assert [(loss.message, loss.what, loss.which) for loss in lost] == [(None, "setting", "top_k")]
    assert dump(Quirks(reasoning="reasoning"), settings=settings)["reasoning"] == {"effort": "high"}
    assert dump(Quirks(reasoning="thinking"), settings=Settings(reasoning="off"))["thinking"] == {
        "type": "disabled"
    }
    assert dump(Quirks(reasoning="enable_thinking"), settings=settings)["enable_thinking"] is True
    assert "reasoning_effort" not in dump(Quirks(reasoning=None), settings=settings)
    assert "stream_options" not in dump(Quirks(refuses=("stream_options",)), stream=True)
    lost.clear()
    assert dump(Quirks(json_schema=False), lost, output_schema=OBJECT)["response_format"] == {
        "type": "json_object"
    }
    assert [loss.what for loss in lost] == ["output_schema"]


@pytest.mark.parametrize(("budget", "effort"), [(1024, "low"), (4096, "medium"), (30000, "xhigh")])
def test_a_budget_for_thinking_becomes_the_nearest_effort(budget: int, effort: str) -> None:
    assert dump(settings=Settings(reasoning=budget))["reasoning_effort"] == effort
    assert dump(Quirks(reasoning="reasoning"), settings=Settings(reasoning=budget))[
        "reasoning"
    ] == {"max_tokens": budget}


def test_a_loaded_request_for_another_vendor_is_spelled_by_its_quirks() -> None:
    request = openai_chat.load_request(
        {"model": "m", "messages": HELLO, "max_tokens": 9, "reasoning": {"effort": "low"}}
    )
    body = openai_chat.dump_request(
        request, target=Origin("openai"), quirks=Quirks(max_tokens="max_completion_tokens")
    )
    assert body == {
        "model": "m",
        "messages": HELLO,
        "max_completion_tokens": 9,
        "reasoning_effort": "low",
    }


def test_names_that_do_not_fit_are_mapped_in_tools_choice_and_history_alike() -> None:
    history = (
        Message.model(ToolCallPart("a", "my tool")),
        Message.user(ToolResultPart("a", "my tool", "1")),
    )
    request = ModelRequest("m", history, (ToolSpec("my tool"),), Settings(tool_choice="my tool"))
    body = openai_chat.dump_request(request, quirks=Quirks(max_id_length=40))
    [name] = {
        body["tools"][0]["function"]["name"],
        body["tool_choice"]["function"]["name"],
        body["messages"][0]["tool_calls"][0]["function"]["name"],
    }
    assert name != "my tool"
    assert " " not in name


@pytest.mark.parametrize("body", [{}, {"messages": None}, {"messages": [{"role": "wizard"}]}])
def test_a_body_without_a_conversation_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(HistoryError, match=r"messages|role"):
        openai_chat.load_request(body)
