"""Fields of tools that some APIs have: carried to another wire, or told as a loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import wires
from dragoman.codec.json_values import if_object
from dragoman.codec.tool_fields import fit_tools
from dragoman.formats.conversion import convert
from dragoman.history import plan
from dragoman.loss import Loss, Lost
from dragoman.message import Message
from dragoman.model_profile import ModelProfile
from dragoman.request import ModelRequest, ServerTool, ToolSpec
from dragoman.wires.anthropic.quirks import Quirks
from dragoman.wires.openai_chat.quirks import Quirks as ChatQuirks
from support.traffic import FOLDER, WIRES, Exchange

MODELS = wires.names("model")
CLOSED = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
OPEN = {"type": "object", "properties": {"city": {"type": "string"}}}
MARK = {"type": "ephemeral"}
SAID = [{"role": "user", "content": "hi"}]
SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
FIELDS: dict[str, Any] = {
    "strict": True,
    "defer_loading": True,
    "allowed_callers": ["code_execution_20260120"],
    "input_examples": [{"city": "Rome"}],
    "cache_control": MARK,
    "eager_input_streaming": True,
}
CARRIED = {
    "openai_responses": {"strict", "defer_loading"},
    "openai_chat": {"strict"},
    "mistral": {"strict"},
    "google_interactions": {"defer_loading"},
    "bedrock_converse": {"strict"},
}
"""What of `FIELDS` each wire has for a closed schema, beside a tool that searches."""


def body_of(*tools: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": SAID, "tools": list(tools)}


def flat(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool's fields, wherever the API has them."""
    return {**tool, **tool.get("function", {}), **tool.get("toolSpec", {})}


def listed(body: Any) -> Any:
    """The tools of a body, wherever the API has them."""
    return body.get("tools") or body.get("toolConfig", {}).get("tools")


def told(losses: list[Loss] | tuple[Loss, ...]) -> set[str]:
    return {loss.which.removeprefix("tools.") for loss in losses if loss.what is Lost.field}


@pytest.mark.parametrize("to", [name for name in MODELS if name != "anthropic"])
def test_each_field_is_carried_or_told(to: str) -> None:
    body = body_of({"name": "f", "input_schema": CLOSED, **FIELDS}, SEARCH)
    converted = convert(body, to, whole=True)
    carried = CARRIED.get(to, set())
    tools = listed(converted.payload)
    function = flat(tools[0].get("functionDeclarations", [tools[0]])[0])
    assert {name for name in FIELDS if function.get(name)} == carried
    assert {name: function[name] for name in carried} == {name: FIELDS[name] for name in carried}
    assert told(converted.losses) == FIELDS.keys() - carried
    assert all(loss.is_minor for loss in converted.losses if loss.what is Lost.field)
    found = plan([Message.user("hi")], to, request=wires.get("anthropic").load_request(body))
    assert told(found.settings) == FIELDS.keys() - carried
    assert told(found.losses) == set()
    assert "nothing is lost" not in str(found)


def test_an_open_schema_is_not_strict_elsewhere() -> None:
    tools = [{"name": name, "input_schema": OPEN, "strict": True} for name in "abcdef"]
    converted = convert(body_of(*tools), "openai_chat", whole=True)
    assert not any("strict" in flat(tool) for tool in converted.payload["tools"])
    [loss] = [loss for loss in converted.losses if loss.what is Lost.field]
    assert loss.which == "tools.strict"
    assert loss.why.endswith("(a, b, c and 3 more)")


def test_tools_are_deferred_only_where_something_finds_them() -> None:
    deferred = {"name": "f", "input_schema": CLOSED, "defer_loading": True}
    alone = convert(body_of(deferred), "openai_responses", whole=True)
    assert "defer_loading" not in alone.payload["tools"][0]
    assert told(alone.losses) == {"defer_loading"}
    found = convert(body_of(deferred, SEARCH), "openai_responses", whole=True)
    assert found.payload["tools"][0]["defer_loading"] is True
    assert found.payload["tools"][1] == {"type": "tool_search"}
    back = convert(found.payload, "anthropic", whole=True)
    assert back.payload["tools"][0]["defer_loading"] is True
    assert back.payload["tools"][1] == SEARCH


def test_a_profile_that_takes_no_schema_or_search_is_heard() -> None:
    spec = ToolSpec("f", "", CLOSED, {"openai_responses": {"strict": True, "defer_loading": True}})
    request = ModelRequest("m", (Message.user("hi"),), (spec, ServerTool("tool_search")))
    losses: list[Loss] = []
    quirks = Quirks(profile=ModelProfile(schema=False, tool_search=False))
    body = wires.get("anthropic").dump_request(request, quirks=quirks, losses=losses)
    assert body["tools"][0].keys() == {"name", "input_schema"}
    assert told(losses) == {"strict", "defer_loading"}


def test_a_cache_mark_goes_where_the_vendor_takes_it() -> None:
    body = body_of({"name": "f", "input_schema": CLOSED, "cache_control": MARK})
    request = wires.get("anthropic").load_request(body)
    losses: list[Loss] = []
    dumped = wires.get("openai_chat").dump_request(
        request, quirks=ChatQuirks(cache="cache_control"), losses=losses
    )
    assert dumped["tools"][0]["cache_control"] == MARK
    assert told(losses) == set()


def test_what_says_nothing_is_no_loss_and_own_fields_are_not_touched() -> None:
    silent: dict[str, Any] = {
        "strict": False,
        "defer_loading": False,
        "allowed_callers": ["direct"],
        "input_examples": [],
        "cache_control": None,
    }
    body = body_of({"name": "f", "input_schema": CLOSED, **silent})
    assert told(convert(body, "ollama", whole=True).losses) == set()
    assert convert(body, "anthropic", whole=True).payload == body
    both = ToolSpec("f", native={"anthropic": {"strict": True}, "openai_chat": {"x": 1}})
    request = ModelRequest("m", tools=(both,))
    losses: list[Loss] = []
    assert fit_tools(request, "openai_chat", {}, None, losses) is request
    assert not losses


_SOME = st.fixed_dictionaries(
    {},
    optional={
        "strict": st.sampled_from([True, False, None]),
        "defer_loading": st.booleans(),
        "allowed_callers": st.lists(st.sampled_from(["direct", "programmatic"]), max_size=2),
        "input_examples": st.lists(st.just({"city": "Rome"}), max_size=2),
        "cache_control": st.sampled_from([MARK, None]),
        "x": st.integers() | st.text(max_size=3),
    },
)


@given(
    st.sampled_from(MODELS), st.sampled_from(MODELS), _SOME, st.sampled_from([OPEN, CLOSED]), st.booleans()
)  # fmt: skip
def test_what_comes_back_differs_only_in_what_was_named(
    source: str, to: str, some: dict[str, Any], schema: dict[str, Any], search: bool
) -> None:
    inside = source in ("openai_chat", "mistral", "cohere", "ollama")
    native = {source: {"function": some} if inside else some}
    tools = (ToolSpec("f", "d", schema, native), *([ServerTool("tool_search")] if search else []))
    there: list[Loss] = []
    request = ModelRequest("m", (Message.user("hi"),), tools)
    sent = wires.get(to).dump_request(request, losses=there)
    arrived = wires.get(to).load_request(sent, path="/models/m:generateContent").tools[0]
    back: list[Loss] = []
    returned = wires.get(source).dump_request(
        request.replace(tools=(arrived, *tools[1:])), losses=back
    )
    original = wires.get(source).dump_request(request)

    def fields(body: dict[str, Any]) -> dict[str, Any]:
        tool = listed(body)[0]
        found = flat(tool.get("functionDeclarations", [tool])[0])
        silent = {"strict": False, "allowed_callers": ["direct"]}
        return {
            name: value
            for name, value in found.items()
            if name in some and value and value != silent.get(name)
        }

    before, after = fields(original), fields(returned)
    named = told(there) | told(back)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed <= named
    assert source != to or not named


def _recorded() -> list[tuple[str, Path]]:
    folders = [folder for folder in FOLDER.glob("*") if folder.name in WIRES]
    return [(WIRES[folder.name], path) for folder in folders for path in folder.glob("*.json")]


def test_recorded_tools_lose_nothing_untold_on_any_other_wire() -> None:
    if not FOLDER.is_dir():
        pytest.skip(f"no recordings at {FOLDER}")
    seen: set[str] = set()
    for source, path in _recorded():
        if b'"strict"' not in (data := path.read_bytes()) and b'"defer_loading"' not in data:
            continue
        body = Exchange(path).request
        if not isinstance(body, dict) or not isinstance(body.get("tools"), list):
            continue
        tools = wires.get(source).load_request(body, path="/m:generateContent", problems=[]).tools
        key = json.dumps(body["tools"], sort_keys=True)
        if key in seen:
            continue
        seen.add(key)
        for to in MODELS:
            losses: list[Loss] = []
            request = ModelRequest("m", (Message.user("hi"),), tools)
            sent = json.dumps(listed(wires.get(to).dump_request(request, losses=losses)))
            for name in ("strict", "defer_loading"):
                if any(_says(tool, name) for tool in body["tools"]) and source != to:
                    assert f'"{name}": true' in sent or name in told(losses), (path.name, to)
    assert len(seen) > 50


def _says(tool: Any, name: str) -> bool:
    return flat(if_object(tool)).get(name) is True
