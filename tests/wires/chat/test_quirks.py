"""Quirks of the wires of the Chat family: what is usual, and what each changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman import wires
from dragoman.loss import Loss, Lost
from dragoman.message import (
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ModelRequest, Settings

CHAT = wires.get("openai_chat")
NAMES = ("openai_chat", "mistral")
named = pytest.mark.parametrize("name", NAMES)
DONE = b"data: [DONE]\n\n"


def test_what_is_usual() -> None:
    assert msgspec.structs.asdict(import_quirks("openai_chat")()) == {
        "reads": (), "max_tokens": "max_tokens", "reasoning": "reasoning_effort", "cache": None,
        "thinking": "reasoning_content", "developer": True, "string_content": False, "tool_media": False, "blocks": {},
        "json_schema": True, "refuses": (), "executed_tools": False, "max_id_length": None,
        "alternates": False, "same_strict": False, "image_edits": "form",
    }  # fmt: skip
    mistral = import_quirks("mistral")()
    assert (mistral.reads, mistral.bridge, mistral.thinking, mistral.tool_media) == (
        (),
        None,
        True,
        False,
    )
    assert (mistral.ids.letters, mistral.ids.least, mistral.ids.most) == ("a-zA-Z0-9", 9, 9)


def import_quirks(name: str) -> Any:
    return wires.get(name).Quirks


@named
def test_why_thinking_is_not_taken_back(name: str) -> None:
    quirks = import_quirks(name)(thinking=None if name == "openai_chat" else False)
    said = Message(Role.MODEL, (ThinkingPart("t"), "a"), origin=Origin("p"))
    for target, why in (
        (
            "p",
            "the vendor takes no thinking back"
            if name == "openai_chat"
            else "the server takes no thinking back",
        ),
        ("q", "it comes from p, which q does not read"),
    ):
        losses: list[Loss] = []
        dumped = wires.get(name).dump_messages(
            [said], target=Origin(target), quirks=quirks, losses=losses
        )
        assert dumped == [{"role": "assistant", "content": "a"}]
        assert losses == [Loss(0, 0, "thinking", why)]


def test_ids_go_back_to_who_gave_them_unless_they_are_limited() -> None:
    odd = "call:1/" + "x" * 60
    said = [
        Message(Role.MODEL, (ToolCallPart(odd, "f"),), origin=Origin("p")),
        Message.user(ToolResultPart(odd, "f", 1)),
    ]

    def ids(target: str, **quirks: Any) -> set[str]:
        dumped = CHAT.dump_messages(
            said, target=Origin(target), quirks=import_quirks("openai_chat")(**quirks)
        )
        return {dumped[0]["tool_calls"][0]["id"], dumped[1]["tool_call_id"]}

    assert ids("p") == {odd}
    (other,) = ids("q")
    (limited,) = ids("p", max_id_length=20)
    assert len(other) == 40 and len(limited) == 20


def test_what_a_quirk_changes_of_a_request() -> None:
    quirks = import_quirks("openai_chat")
    request = ModelRequest(
        "m",
        (Message.system("s"), Message.user(TextPart("a"), TextPart("b"))),
        settings=Settings(max_tokens=5, reasoning="low", cache="long", seed=1),
        output_schema={"type": "object", "properties": {}, "additionalProperties": False},
        stream=True,
    )
    plain = {
        "model": "m",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "ab"}],
    }
    losses: list[Loss] = []
    how = quirks(
        max_tokens="max_completion_tokens",
        reasoning=None,
        string_content=True,
        json_schema=False,
        refuses=("seed",),
    )
    assert CHAT.dump_request(request, quirks=how, losses=losses) == {
        **plain, "max_completion_tokens": 5, "response_format": {"type": "json_object"}, "stream": True,
        "stream_options": {"include_usage": True},
    }  # fmt: skip
    assert losses == [
        Loss(None, None, Lost.setting, "the vendor cannot be told 'low' as it is", "reasoning"),
        Loss(None, None, "output_schema", "the vendor knows JSON mode only"),
        Loss(None, None, Lost.setting, "the vendor refuses it", "seed"),
    ]
    for field, setting, told in [
        ("reasoning", "off", {"effort": "none"}), ("reasoning", 99, {"max_tokens": 99}), ("thinking", "off", {"type": "disabled"}),
        ("thinking", 99, {"type": "enabled", "budget_tokens": 99}), ("enable_thinking", "off", False),
    ]:  # fmt: skip
        losses = []
        asked = ModelRequest("m", settings=Settings(reasoning=setting))
        assert (
            CHAT.dump_request(asked, quirks=quirks(reasoning=field), losses=losses)[field] == told
            and losses == []
        )
    for field, setting in (
        ("enable_thinking", "low"),
        ("thinking", "high"),
        ("reasoning_effort", 2048),
    ):
        losses = []
        asked = ModelRequest("m", settings=Settings(reasoning=setting))
        CHAT.dump_request(asked, quirks=quirks(reasoning=field), losses=losses)
        assert losses == [
            Loss(
                None,
                None,
                Lost.setting,
                f"the vendor cannot be told {setting!r} as it is",
                "reasoning",
            )
        ]
    for cache, told in (
        ("short", {"type": "ephemeral"}),
        ("long", {"type": "ephemeral", "ttl": "1h"}),
    ):
        asked = ModelRequest("m", settings=Settings(cache=cache))
        assert (
            CHAT.dump_request(asked, quirks=quirks(cache="cache_control"))["cache_control"] == told
        )


@named
@pytest.mark.parametrize(
    ("budget", "effort"),
    [(1024, "low"), (1025, "medium"), (4096, "medium"), (4097, "high"), (65_537, "max")],
)
def test_a_budget_is_the_nearest_level(name: str, budget: int, effort: str) -> None:
    body = wires.get(name).dump_request(ModelRequest("m", settings=Settings(reasoning=budget)))
    assert body == {"model": "m", "messages": [], "reasoning_effort": effort}


def test_a_cache_that_the_vendor_does_not_know_is_not_asked_for() -> None:
    quirks = import_quirks("openai_chat")(cache="prompt_cache_retention")
    for cache, told in (("short", {}), ("long", {"prompt_cache_retention": "24h"})):
        request = ModelRequest("m", settings=Settings(cache=cache))
        assert CHAT.dump_request(request, quirks=quirks) == {"model": "m", "messages": [], **told}
        assert CHAT.dump_request(request) == {"model": "m", "messages": []}
