"""`formats.convert`: a conversation of one format, written in another."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Origin, formats, wires
from dragoman.codec.digest import chain_neutral_digests
from dragoman.errors import HistoryError, SettingsError
from dragoman.formats.conversion import place_in_body
from dragoman.loss import Lost
from dragoman.request import ToolSpec

TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Look."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "look", "arguments": '{"at": "it"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "1"},
    {"role": "assistant", "content": "Seen."},
]
SIGNED = {
    "messages": [
        {"role": "user", "content": "Hi."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "text", "text": "Ho."},
            ],
        },
    ]
}


@pytest.mark.parametrize("name", formats.names())
def test_a_conversation_is_the_same_in_every_format(name: str) -> None:
    made = formats.convert(TALK, name)
    assert (made.format, made.field, made.problems) == ("openai_chat", "", [])
    there = formats.get(name).load_messages(made.payload)
    assert chain_neutral_digests(there) == chain_neutral_digests(
        formats.get("openai_chat").load_messages(TALK)
    )


def test_into_its_own_format_it_is_as_it_was() -> None:
    assert formats.convert(TALK, "openai_chat").payload == TALK
    assert formats.convert(SIGNED, "anthropic").payload == SIGNED


def test_what_the_new_format_does_not_hold_is_a_loss() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}
    made = formats.convert(
        [{"role": "user", "content": [{"type": "text", "text": "See."}, picture]}], "cohere"
    )
    assert made.losses == []
    made = formats.convert(
        [{"role": "user", "content": [{"type": "text", "text": "See."}, picture]}], "ollama"
    )
    assert [(loss.message, loss.part, loss.what) for loss in made.losses if not loss.is_minor] == [
        (0, 1, Lost.link)
    ]


def test_fields_of_a_body_beside_the_conversation_are_losses() -> None:
    body = {"messages": TALK, "tools": [], "temperature": 0, "seed": None}
    made = formats.convert(body, "openai_chat")
    assert (made.payload, made.field) == (TALK, "messages")
    assert [(loss.message, loss.what, loss.which) for loss in made.losses] == [
        (None, Lost.option, "tools"),
        (None, Lost.option, "temperature"),
    ]
    whole = {"id": 7, "conversations": [{"from": "human", "value": "Hi."}]}
    assert formats.convert(whole, "sharegpt") == (whole, "sharegpt", [], "conversations", [])
    assert formats.convert({"system": "Be brief.", **SIGNED}, "anthropic").losses == []


LOOK: dict[str, Any] = {
    "name": "look",
    "description": "Looks.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
}
BODY: dict[str, Any] = {
    "model": "gpt-5",
    "messages": TALK,
    "tools": [{"type": "function", "function": LOOK}],
    "tool_choice": "required",
    "temperature": 0.5,
    "max_tokens": 90,
    "seed": 3,
    "user": "me",
}


@pytest.mark.parametrize("name", wires.names("model"))
def test_a_body_between_two_wires_keeps_its_tools_and_settings(name: str) -> None:
    """Whatever of it does not come back is a loss."""
    made = formats.convert(BODY, name, whole=True)
    asked, there = (
        wires.get("openai_chat").load_request(BODY),
        wires.get(name).load_request(made.payload),
    )
    assert chain_neutral_digests(there.messages) == chain_neutral_digests(asked.messages)
    (tool,) = there.tools
    assert isinstance(tool, ToolSpec)
    assert (tool.name, tool.description, tool.input_schema) == (
        "look",
        "Looks.",
        LOOK["parameters"],
    )
    told = {loss.which for loss in made.losses if loss.message is None}
    gone = {"model"} if there.model != "gpt-5" else set[str]()
    gone |= {"user"} if made.payload.get("user") != "me" else set()
    gone |= {
        field
        for field in asked.settings.__struct_fields__
        if getattr(asked.settings, field) != getattr(there.settings, field)
    }
    assert told == gone
    assert gone <= {"model", "user", "seed", "tool_choice"}
    assert (made.payload == BODY) == (name == "openai_chat")


def test_a_body_has_the_model_of_who_reads_it() -> None:
    claude = Origin("anthropic", None, "claude-x")
    made = formats.convert(BODY, "anthropic", target=claude, whole=True)
    assert made.payload["model"] == "claude-x"
    assert {loss.which for loss in made.losses} == {"seed", "user"}


@pytest.mark.parametrize(
    ("body", "lost"),
    [
        ({"messages": TALK}, []),
        ({"messages": TALK, "id": 7, "tools": []}, ["id", "tools"]),
        ({"messages": TALK, "model": "m", "tools": "look"}, None),
        ({"messages": TALK, "tools": [5], "seed": [1]}, None),
    ],
)
def test_what_is_no_request_is_a_conversation_with_fields_beside_it(
    body: dict[str, Any], lost: list[str] | None
) -> None:
    made = formats.convert(body, "anthropic", whole=True)
    if lost is not None:
        assert made == formats.convert(body, "anthropic")
        assert [loss.which for loss in made.losses] == lost
    else:
        assert {"model", "tools", "seed"} & body.keys() <= {loss.which for loss in made.losses}


def test_what_a_target_may_not_read_is_left_out() -> None:
    claude, gpt = Origin("anthropic", None, "m"), Origin("openai", None, "m")
    assert formats.convert(SIGNED, "anthropic", origin=claude, target=claude).payload == SIGNED
    made = formats.convert(SIGNED, "anthropic", origin=gpt, target=claude)
    assert "c2ln" not in str(made.payload)
    assert [(loss.message, loss.part, loss.what) for loss in made.losses] == [(1, 0, Lost.thinking)]


def test_a_body_is_made_of_a_list_where_the_format_has_bodies() -> None:
    assert place_in_body([1], "openai_chat", in_body=True) == {"messages": [1]}
    assert place_in_body([1], "openai_chat", in_body=False) == [1]
    assert place_in_body([1], "langchain", in_body=True) == [1]
    assert place_in_body({"contents": []}, "google", in_body=True) == {"contents": []}


def test_a_version_is_one_of_those_that_there_are() -> None:
    assert formats.convert(TALK, "langchain", version="constructor").payload[0]["lc"] == 1
    with pytest.raises(
        SettingsError, match="langchain has no version 'v9'; there are dict, constructor, plain"
    ):
        formats.convert(TALK, "langchain", version="v9")
    with pytest.raises(SettingsError, match="openai_chat has one version only"):
        formats.convert(TALK, "openai_chat", version="v5")
    with pytest.raises(SettingsError, match="no format is named 'nonsense'"):
        formats.convert(TALK, "nonsense")


@pytest.mark.parametrize("name", formats.names())
def test_every_version_that_a_format_names_can_be_written(name: str) -> None:
    for version in getattr(formats.get(name), "versions", ()):
        made = formats.convert(TALK, name, version=version)
        assert chain_neutral_digests(
            formats.get(name).load_messages(made.payload)
        ) == chain_neutral_digests(formats.get("openai_chat").load_messages(TALK)), version


@pytest.mark.parametrize("value", [None, 5, [], {}, [5], {"messages": []}])
def test_what_is_no_conversation_is_refused(value: Any) -> None:
    with pytest.raises(HistoryError):
        formats.convert(value, "google")


def test_what_cannot_be_read_raises_or_is_noted() -> None:
    broken = [*TALK, {"role": "robot", "content": "Beep."}]
    with pytest.raises(HistoryError):
        formats.convert(broken, "google", format="openai_chat")
    made = formats.convert(broken, "google", format="openai_chat", errors="collect")
    assert made.payload == formats.convert(TALK, "google").payload
    assert [problem.index for problem in made.problems] == [5]
