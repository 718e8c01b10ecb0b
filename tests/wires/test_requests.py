"""The fields of a request on the wires of Anthropic, Cohere and Ollama: each setting by itself,
with its losses, there and back."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import wires
from dragoman.loss import Loss
from dragoman.message import FilePart, LinkPart, Message, Origin
from dragoman.request import ModelRequest, ServerTool, Settings
from dragoman.wires import anthropic
from support.profiles import quirks_of

HI = Message.user("hi")
SAID = [{"role": "user", "content": "hi"}]
PLAIN: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "m", "max_tokens": 32_768, "messages": SAID},
    "cohere": {"model": "m", "messages": SAID, "stream": False},
    "ollama": {"model": "m", "messages": SAID, "stream": False},
}
UNKNOWN = "the API has no such setting"


def written(wire: str, settings: Settings, model: str = "m") -> tuple[dict[str, Any], list[str]]:
    """What a request with these settings adds to the plain one, and what it loses."""
    losses: list[Loss] = []
    request = ModelRequest(model, (HI,), settings=settings)
    body = wires.get(wire).dump_request(request, losses=losses)
    plain = {**PLAIN[wire], "model": model}
    assert plain.keys() <= body.keys()
    added = {
        name: value for name, value in body.items() if name not in plain or plain[name] != value
    }
    return added, [str(loss) for loss in losses]


SETTINGS: list[tuple[str, Any, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("max_tokens", 5, {"max_tokens": 5}, {"max_tokens": 5}, {"num_predict": 5}),
    ("temperature", 0, {"temperature": 0}, {"temperature": 0}, {"temperature": 0}),
    ("temperature", 0.5, {"temperature": 0.5}, {"temperature": 0.5}, {"temperature": 0.5}),
    ("top_p", 0.5, {"top_p": 0.5}, {"p": 0.5}, {"top_p": 0.5}),
    ("top_p", 1, {"top_p": 1}, {"p": 1}, {"top_p": 1}),
    ("top_k", 3, {"top_k": 3}, {"k": 3}, {"top_k": 3}),
    ("seed", 0, {}, {"seed": 0}, {"seed": 0}),
    ("presence_penalty", 0.5, {}, {"presence_penalty": 0.5}, {"presence_penalty": 0.5}),
    ("presence_penalty", 1, {}, {"presence_penalty": 1}, {"presence_penalty": 1}),
    ("frequency_penalty", 0.5, {}, {"frequency_penalty": 0.5}, {"frequency_penalty": 0.5}),
    ("frequency_penalty", 1, {}, {"frequency_penalty": 1}, {"frequency_penalty": 1}),
    (
        "stop",
        ("a", "b"),
        {"stop_sequences": ["a", "b"]},
        {"stop_sequences": ["a", "b"]},
        {"stop": ["a", "b"]},
    ),
    ("stop", (), {"stop_sequences": []}, {"stop_sequences": []}, {"stop": []}),
    ("tool_choice", "none", {"tool_choice": {"type": "none"}}, {"tool_choice": "NONE"}, {}),
    ("tool_choice", "required", {"tool_choice": {"type": "any"}}, {"tool_choice": "REQUIRED"}, {}),
    (
        "reasoning",
        "off",
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "disabled"}},
        {},
    ),
]


@pytest.mark.parametrize(
    ("name", "value", "anthropics", "coheres", "ollamas"),
    SETTINGS,
    ids=lambda each: each if each in dir(Settings) else "",
)
def test_each_setting_has_its_field_there_and_back(
    name: str,
    value: Any,
    anthropics: dict[str, Any],
    coheres: dict[str, Any],
    ollamas: dict[str, Any],
) -> None:
    settings = Settings(**{name: value})
    options = {"think": False} if name == "reasoning" else {"options": ollamas} if ollamas else {}
    for wire, fields in (("anthropic", anthropics), ("cohere", coheres), ("ollama", options)):
        loss = [] if fields else [f"{name}: {UNKNOWN}"]
        assert written(wire, settings) == (fields, loss)
        body = {**PLAIN[wire], **fields}
        request = wires.get(wire).load_request(body)
        expected = settings if fields else Settings()
        if wire == "anthropic" and name != "max_tokens":
            expected = Settings(**({name: value} if fields else {}), max_tokens=32_768)
        assert (request.settings, request.options) == (expected, {})
        assert wires.get(wire).dump_request(request) == body


@pytest.mark.parametrize(
    ("wire", "fields"),
    [
        ("cohere", {"max_tokens": 5.5, "k": 5.5, "seed": 5.5, "p": True, "temperature": False}),
        ("cohere", {"presence_penalty": "1", "frequency_penalty": True, "stop_sequences": "a"}),
        (
            "anthropic",
            {
                "max_tokens": 5.5,
                "top_k": 5.5,
                "temperature": False,
                "top_p": "1",
                "stop_sequences": [1],
            },
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_no_setting(wire: str, fields: dict[str, Any]) -> None:
    body = {**PLAIN[wire], **fields}
    request = wires.get(wire).load_request(body)
    assert request.settings == Settings(
        max_tokens=None if wire == "cohere" or "max_tokens" in fields else 32_768
    )
    assert wires.get(wire).dump_request(request) == body


def test_an_option_of_the_wrong_type_is_no_setting() -> None:
    options = {
        "num_predict": 5.5,
        "top_k": 5.5,
        "seed": "1",
        "top_p": True,
        "temperature": "x",
        "stop": [1],
        "a": 1,
    }
    body = {**PLAIN["ollama"], "options": options}
    request = wires.get("ollama").load_request(body)
    assert (request.settings, request.options) == (Settings(), {"options": {"a": 1}})
    assert wires.get("ollama").dump_request(request) == body


def test_choices_and_losses_of_tools() -> None:
    parallel = f"parallel_tool_calls: {UNKNOWN}"
    assert written("cohere", Settings(tool_choice="auto", parallel_tool_calls=False)) == (
        {},
        [parallel],
    )
    forced = "tool_choice: the API can force a call, not that of f"
    assert written("cohere", Settings(tool_choice="f")) == ({"tool_choice": "REQUIRED"}, [forced])
    assert written("ollama", Settings(tool_choice="auto", parallel_tool_calls=True)) == (
        {},
        [parallel],
    )
    assert written("ollama", Settings(tool_choice="f")) == ({}, [f"tool_choice: {UNKNOWN}"])
    assert written("anthropic", Settings(tool_choice="f")) == (
        {"tool_choice": {"type": "tool", "name": "f"}},
        [],
    )
    for wire in ("cohere", "ollama"):
        losses: list[Loss] = []
        wires.get(wire).dump_request(ModelRequest("m", tools=(ServerTool("s"),)), losses=losses)
        assert list(map(str, losses)) == ["s: the API runs no tools of its own"]


@pytest.mark.parametrize(
    ("model", "reasoning", "think"),
    [("x-gpt-oss", 1024, "low"), ("gpt-oss", 1025, "medium"), ("gpt-oss", 4096, "medium"), ("gpt-oss", 65_536, "high"),
     ("gpt-oss", "low", "low"), ("gpt-oss", "medium", "medium"), ("m", "medium", True), ("gpt-oss", "off", False)],
)  # fmt: skip
def test_a_budget_is_the_nearest_level(model: str, reasoning: Any, think: Any) -> None:
    lost = ["reasoning"] if isinstance(reasoning, int) else []
    body, losses = written("ollama", Settings(reasoning=reasoning), model)
    assert (body, [loss.partition(":")[0] for loss in losses]) == ({"think": think}, lost)


BETAS = {
    "advisor_20260301": "advisor-tool-2026-03-01",
    "code_execution_20250522": "code-execution-2025-05-22",
    "code_execution_20250825": "code-execution-2025-08-25",
    "computer_20241022": "computer-use-2024-10-22",
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20251124": "computer-use-2025-11-24",
    "mcp_toolset": "mcp-client-2025-11-20",
    "memory_20250818": "context-management-2025-06-27",
    "web_fetch_20250910": "web-fetch-2025-09-10",
}
EDITS = {
    "compact_20260112": "compact-2026-01-12",
    "clear_thinking_20251015": "context-management-2025-06-27",
    "clear_tool_uses_20250919": "context-management-2025-06-27",
}


@pytest.mark.parametrize(
    ("fields", "beta"),
    [
        *(({"tools": [{"type": kind, "name": "t"}]}, beta) for kind, beta in BETAS.items()),
        *(({"context_management": {"edits": [{"type": kind}]}}, beta) for kind, beta in EDITS.items()),
        ({"mcp_servers": []}, "mcp-client-2025-04-04"),
        ({"output_format": {"type": "json_schema", "schema": {}}}, "structured-outputs-2025-11-13"),
        ({"output_config": {"task_budget": {"total": 1}}}, "task-budgets-2026-03-13"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_addition"}]}]},
         "mid-conversation-tool-changes-2026-07-01"),
        ({"messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}]},
         "files-api-2025-04-14"),
        ({"messages": [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": [
                {"type": "image", "source": {"type": "file", "file_id": "f"}}]}]}]}, "files-api-2025-04-14"),
        ({"tools": [{"type": "custom", "name": "computer_20250124"}]}, None),
    ],
)  # fmt: skip
def test_d114_each_feature_has_its_beta_header(fields: dict[str, Any], beta: str | None) -> None:
    body = {**PLAIN["anthropic"], **fields}
    sent = anthropic.dump_http(anthropic.load_request(body))
    assert sent.headers == {
        "anthropic-version": "2023-06-01",
        **({"anthropic-beta": beta} if beta else {}),
    }
    assert (sent.path, sent.method) == ("/messages", "POST")


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        *((name, {"type": "adaptive"}) for name in (
            "claude-fable-5", "claude-opus-4-6", "claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-4-6",
            "claude-sonnet-5")),
        ("claude-opus-9", {"type": "adaptive"}),
        ("claude-opus-4-5", {"type": "enabled", "budget_tokens": 4096}),
        ("my-claude-opus-5", {"type": "enabled", "budget_tokens": 4096}),
    ],
)  # fmt: skip
def test_an_effort_is_told_to_the_models_that_take_one(
    model: str, thinking: dict[str, Any]
) -> None:
    request = ModelRequest(model, settings=Settings(reasoning="medium"))
    losses: list[Loss] = []
    quirks = quirks_of("anthropic", model)
    body = anthropic.dump_request(request, quirks=quirks, losses=losses)
    shown = body["thinking"].pop("display", None)
    assert body["thinking"] == thinking and losses == []
    assert shown in (None, "summarized")
    assert body.get("output_config") == (
        {"effort": "medium"} if thinking == {"type": "adaptive"} else None
    )


@pytest.mark.parametrize(
    ("model", "later"),
    [
        ("claude-fable-5", True),
        ("claude-opus-4-8", True),
        ("claude-opus-4-7", False),
        ("x-claude-fable-5", False),
    ],
)
def test_d105_a_system_message_in_the_middle(model: str, later: bool) -> None:
    losses: list[Loss] = []
    target = Origin("anthropic", None, model)
    messages = [Message.system("a"), Message.user("b"), Message.model("c"), Message.system("d")]
    why = "the model takes none after the first user message; sent as a marked user text"
    quirks = quirks_of("anthropic", model)
    assert anthropic.dump_messages(messages, target=target, quirks=quirks, losses=losses) == {
        "system": "a",
        "messages": [
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": "c"},
            {"role": "system", "content": "d"}
            if later
            else {"role": "user", "content": "<system>\nd\n</system>"},
        ],
    }
    assert losses == ([] if later else [Loss(3, None, "system message", why)])


def test_a_conversation_that_the_model_began() -> None:
    losses: list[Loss] = []
    target = Origin("anthropic", None, "m")
    messages = [Message.system("s"), Message.model("a")]
    written = anthropic.dump_messages(messages, target=target, losses=losses)
    assert written["messages"] == [
        {"role": "user", "content": "."},
        {"role": "assistant", "content": "a"},
    ]
    assert losses == [
        Loss(1, None, "beginning", "the API wants the user to speak first; a placeholder does")
    ]
    assert anthropic.dump_messages(messages)["messages"] == [{"role": "assistant", "content": "a"}]


def test_what_cannot_be_sent_is_named_where_it_stood() -> None:
    losses: list[Loss] = []
    message = Message.user(
        LinkPart("https://x/a.zip", "application/zip"), FilePart("f", native={"google": {}})
    )
    assert anthropic.dump_messages([message], losses=losses)["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[media: application/zip] https://x/a.zip"},
                {"type": "text", "text": "[media: file]"},
            ],
        }
    ]
    assert [(loss.message, loss.part) for loss in losses] == [(0, 0), (0, 1)]
