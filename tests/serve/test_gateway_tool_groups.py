"""A gateway: tools that only the Responses API has, such as those that Codex groups, go to other
providers as functions, and their calls come back as the client knows them (issue R)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, ToolCallPart, ToolResultPart, serve
from dragoman.event import Event
from dragoman.fold import fold, unfold
from dragoman.message import Role
from dragoman.request import HttpRequest, ModelRequest, ToolSpec
from dragoman.testing import ScriptedModel
from dragoman.wires import openai_responses
from support.gateway import AsgiTransport

pytestmark = pytest.mark.anyio

TARGETS = ("anthropic", "openai_chat", "google", "mistral", "ollama", "cohere")
NOTE = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
LONG = "a_server_with_a_name_that_is_as_long_as_one_may_be_in_this_api_"
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Changes files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin Patch" /.+/'},
}


def function(name: str) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "description": f"It does {name}.",
        "strict": False,
        "parameters": NOTE,
    }


def group(name: str, *tools: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": f"Of {name}.", "tools": list(tools)}


TOOLS = [
    function("search"),
    function("web__search"),
    group("web", function("search"), function("open")),
    group("mcp__notes__", function("search"), PATCH),
    group(LONG, function("search")),
    PATCH,
]
CALLS = [
    ("search", None),
    ("web__search", None),
    ("search", "web"),
    ("open", "web"),
    ("search", "mcp__notes__"),
    ("apply_patch", "mcp__notes__"),
    ("search", LONG),
    ("apply_patch", None),
]
"""Name and namespace of each of them, in the order in which they are sent."""


class Codex:
    """A client of the Responses API before a provider whose model calls all tools that it is told
    of, in each of its answers."""

    def __init__(self, wire: str, *, stream: bool, tools: Any = TOOLS) -> None:
        self.upstream = ScriptedModel(self.answer, wire=wire)
        self.transport = AsgiTransport(serve.app(gateway=serve.Gateway({"m": self.upstream})))
        self.stream, self.tools = stream, tools
        self.input: list[Any] = [{"role": "user", "content": "Note it."}]
        self.seen: list[ModelRequest] = []

    def answer(self, request: ModelRequest) -> Message:
        self.seen.append(request)
        turn = sum(message.role is Role.MODEL for message in request.messages)
        calls = [
            ToolCallPart(f"call_{turn}_{place}", tool.name, self.arguments(tool))
            for place, tool in enumerate(request.tools)
            if isinstance(tool, ToolSpec)
        ]
        return Message.model(f"Step {turn}.", *calls)

    def arguments(self, tool: ToolSpec) -> dict[str, Any]:
        return dict.fromkeys(tool.input_schema["properties"], f"a {tool.name}")

    async def ask(self) -> list[Any]:
        """Asks, runs the calls and returns their items."""
        body = {
            "model": "m",
            "store": False,
            "stream": self.stream,
            "tools": self.tools,
            "input": self.input,
        }
        headers = {"content-type": "application/json", "authorization": "Bearer none"}
        response = await self.transport.send(HttpRequest("http://h/v1/responses", headers, body))
        text = b""
        while data := await response.read():
            text += data
        assert response.status == 200, text
        output = _last_output(text) if self.stream else msgspec.json.decode(text)["output"]
        calls = [item for item in output if item["type"].endswith("call")]
        self.input += output
        for call in calls:
            kind = f"{call['type']}_output"
            self.input.append({"type": kind, "call_id": call["call_id"], "output": "done"})
        return calls


def _last_output(text: bytes) -> list[Any]:
    """The items of a stream, each as it is told when it is done and again at the end."""
    events = [msgspec.json.decode(line[6:]) for line in text.splitlines() if line[:6] == b"data: "]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert events[-1]["response"]["output"] == done
    added = [event["item"] for event in events if event["type"] == "response.output_item.added"]
    for before, after in zip(added, done, strict=True):
        assert [before.get(name) for name in ("type", "name", "namespace")] == [
            after.get(name) for name in ("type", "name", "namespace")
        ]
    return done


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", TARGETS)
async def test_calls_of_grouped_tools_come_back_as_such(wire: str, stream: bool) -> None:
    client = Codex(wire, stream=stream)
    for turn in range(3):
        calls = await client.ask()
        assert [(call["name"], call.get("namespace")) for call in calls] == CALLS
        assert len({call["call_id"] for call in calls}) == len(CALLS)
        request = client.seen[-1]
        sent = [tool.name for tool in request.tools if isinstance(tool, ToolSpec)]
        assert len(set(sent)) == len(CALLS)
        # Ollama takes any name.
        fit = re.compile(".*" if wire == "ollama" else "[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
        assert all(map(fit.fullmatch, sent))
        # The conversation has the names that the tools have, and the very same ones each time.
        named = [call.name for message in request.messages for call in message.tool_calls]
        assert named == sent * turn
        assert sent == [tool.name for tool in client.seen[0].tools]
        if wire in ("google", "ollama"):
            results = [
                piece.name
                for message in request.messages
                for piece in message.content
                if isinstance(piece, ToolResultPart)
            ]
            assert results == sent * turn
    assert "tool;which" not in client.transport.headers[-1].get("dragoman-loss", "")


async def test_a_custom_tool_is_a_function_of_a_text() -> None:
    client = Codex("openai_chat", stream=True)
    calls = await client.ask()
    patches = [call for call in calls if call["name"] == "apply_patch"]
    assert [call["type"] for call in patches] == ["custom_tool_call"] * 2
    assert patches[-1]["input"] == "a apply_patch"
    assert "arguments" not in patches[-1]
    [tool] = [tool for tool in client.seen[0].tools if tool.name == "apply_patch"]
    assert isinstance(tool, ToolSpec)
    assert tool.description.startswith("Changes files.")
    assert "lark grammar:\nstart:" in tool.description
    # That the grammar binds nobody is told.
    assert 'field;which="tools.format"' in client.transport.headers[-1]["dragoman-loss"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [({"input": "x"}, "x"), ({}, "{}"), ({"input": 5}, '{"input":5}'), ({"a": 1}, '{"a":1}')],
)
async def test_arguments_that_are_no_text_are_the_text(
    arguments: dict[str, Any], text: str
) -> None:
    client = Codex("openai_chat", stream=False, tools=[PATCH])
    client.arguments = lambda _: arguments  # type: ignore[method-assign]
    [call] = await client.ask()
    assert call["input"].replace(" ", "") == text
    assert call["type"] == "custom_tool_call"


async def test_the_first_function_of_a_group_says_what_the_group_is_for() -> None:
    client = Codex("anthropic", stream=False)
    await client.ask()
    said = {
        tool.name: tool.description for tool in client.seen[0].tools if isinstance(tool, ToolSpec)
    }
    assert said["mcp__notes__search"] == "mcp__notes__: Of mcp__notes__.\n\nIt does search."
    assert said["web__open"] == "It does open."


@pytest.mark.parametrize(
    ("tool", "lost"),
    [
        # what no client of a gateway may name is not in the group any more
        (group("web", {"type": "mcp", "server_label": "x"}), "tools.tools.mcp"),
        ({"type": "namespace", "name": "web", "tools": "none"}, "namespace"),
        ({"type": "namespace", "tools": [function("search")]}, "namespace"),
        ({"type": "custom", "name": 5}, "custom"),
        (group("web", group("inner", function("search"))), "tools.tools.namespace"),
        (group("web", {"type": "custom"}), "custom"),
        (group("web"), "namespace"),
    ],
)
@pytest.mark.parametrize("beside", [(), (group("good", function("read")),)], ids=["alone", "not"])
async def test_what_cannot_be_a_function_is_named_as_lost(
    tool: Any, lost: str, beside: tuple[Any, ...]
) -> None:
    tools = [function("open"), *beside, tool]
    client = Codex("openai_chat", stream=False, tools=tools)
    assert [call["name"] for call in await client.ask()] == ["open", "read"][: 1 + len(beside)]
    assert f'which="{lost}"' in client.transport.headers[-1]["dragoman-loss"]


async def test_a_call_whose_group_is_no_text_is_a_plain_one() -> None:
    client = Codex("openai_chat", stream=False)
    [first, *_] = await client.ask()
    for item in client.input:
        if item.get("call_id") == first["call_id"] and item["type"] == "function_call":
            item["namespace"] = ["web"]
    await client.ask()


async def test_a_provider_of_the_same_api_gets_the_groups() -> None:
    client = Codex("openai_responses", stream=False)
    await client.ask()
    assert client.upstream.bodies[-1]["tools"] == TOOLS


NAMES = st.text(alphabet="a_1é.", min_size=1, max_size=4) | st.text(min_size=1, max_size=70)
DRAWN = st.lists(st.tuples(NAMES, st.none() | NAMES, st.booleans()), max_size=12, unique=True)


def draw_tools(drawn: list[tuple[str, str | None, bool]]) -> Iterator[Mapping[str, Any]]:
    for name, inside, custom in drawn:
        tool = {**PATCH, "name": name} if custom else function(name)
        yield tool if inside is None else group(inside, tool)


@given(DRAWN)
def test_names_of_functions_are_distinct_and_lead_back(
    drawn: list[tuple[str, str | None, bool]],
) -> None:
    """P: whatever tools and groups are called, also by the same names."""
    groups = openai_responses.request_fields.groups
    assert groups is not None
    plain = {name for name, inside, _ in drawn if inside is None}
    # One API has no two tools of a name.
    drawn = [
        (name, inside, custom)
        for name, inside, custom in drawn
        if inside is not None or (name, None, not custom) not in drawn
    ]
    request = openai_responses.load_request(
        {"model": "m", "input": "hi", "tools": list(draw_tools(drawn))}
    )
    sent = groups.ungroup(request)
    assert all(isinstance(tool, ToolSpec) for tool in sent.tools)
    names = [tool.name for tool in sent.tools]
    assert len(names) == len(set(names))
    assert {
        tool.name for tool, made in zip(sent.tools, drawn, strict=True) if made[1] is None
    } <= plain
    # Nothing that follows changes them.
    assert [tool.name for tool in groups.ungroup(request).tools] == names
    restore = groups.regroup(request.tools) or _same
    for index, (tool, (name, inside, custom)) in enumerate(zip(sent.tools, drawn, strict=True)):
        call = ToolCallPart(f"c{index}", tool.name, {"input": "x"})
        events = [restore(event) for event in unfold([Message.model(call)])]
        [item] = openai_responses.dump_response(events)["output"]
        assert (item["name"], item.get("namespace")) == (name, inside)
        assert item["type"] == ("custom_tool_call" if custom else "function_call")
        # In the next request the call has the function's name again.
        result = Message.user(ToolResultPart(call.id, name, "y"))
        again = groups.ungroup(request.replace(messages=(*fold(events), result)))
        assert {piece.name for each in again.messages for piece in each.content} == {tool.name}


def _same(event: Event) -> Event:
    return event
