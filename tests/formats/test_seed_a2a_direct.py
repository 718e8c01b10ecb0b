"""The seed's map-reduce-map and the direct way, over documents of its time: the same messages."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.formats import seed_a2a
from dragoman.wires import a2a, openai_chat

Json = dict[str, Any]
words = st.sampled_from(["Hi.", "72°F", "a", "x y"])
value = st.sampled_from(["x", {"a": 1}, [1, "b"], "", {"b": {"c": None}}])
arguments = st.dictionaries(
    st.sampled_from(["a", "city"]), st.sampled_from([1, "Rome", None, [1]]), max_size=2
)


def marked(role: str, part: list[Json], kind: str, *, with_type: bool) -> Json:
    return {
        "role": role,
        "parts": part,
        **({"metadata": {"canonical_type": kind}} if with_type else {}),
    }


@st.composite
def documents(draw: Any) -> list[Json]:
    """Turns of a conversation as an agent of the time keeps them: chunks, calls in pieces, results,
    answers."""
    document: list[Json] = []
    with_type = draw(st.booleans())
    for turn in range(draw(st.integers(0, 3))):
        asked = [{"kind": "text", "text": draw(words)}]
        document.append(marked("user", asked, "TextMessageContentEvent", with_type=with_type))
        if draw(st.booleans()):
            ids = [f"call_{turn}_{n}" for n in range(draw(st.integers(1, 2)))]
            steps = draw(st.integers(0, 2))
            final = [{"call_id": id_, "name": "f", "arguments": draw(arguments)} for id_ in ids]
            for _ in range(steps):
                pieces = [{**call, "arguments": draw(arguments)} for call in final]
                part = [{"kind": "data", "data": {"tool_calls": pieces}}]
                document.append(marked("agent", part, "ToolCallArgsEvent", with_type=True))
            said = [{"kind": "text", "text": draw(words)}] if draw(st.booleans()) else []
            part = [*said, {"kind": "data", "data": {"tool_calls": final}}]
            document.append(marked("agent", part, "ToolCallStartEvent", with_type=with_type))
            results = [{"call_id": id_, "name": "f", "output": draw(value)} for id_ in ids]
            part = [
                {"kind": "text", "text": ""},
                {"kind": "data", "data": {"tool_results": results}},
            ]
            document.append(marked("user", part, "ToolCallResultEvent", with_type=with_type))
        text = ""
        for _ in range(draw(st.integers(0, 2))):
            text += draw(words)
            chunk = [{"kind": "text", "text": text}]
            document.append(marked("agent", chunk, "TextMessageChunkEvent", with_type=True))
        if not text or draw(st.booleans()):
            whole = [{"kind": "text", "text": text + draw(words)}]
            document.append(marked("agent", whole, "TextMessageEndEvent", with_type=with_type))
    return document


def plain(message: Json) -> Json:
    """A message of Chat, without what says the same in two ways."""
    calls = [
        {
            **call,
            "function": {
                **call["function"],
                "arguments": json.loads(call["function"]["arguments"]),
            },
        }
        for call in message.get("tool_calls", [])
    ]
    content = message.get("content") or ""
    if message["role"] == "tool":
        with contextlib.suppress(ValueError):
            content = json.loads(content)
    return {**message, "content": content, **({"tool_calls": calls} if calls else {})}


def by_way_of_events(document: list[Json]) -> list[Json]:
    events = seed_a2a.compact_events(
        [seed_a2a.convert_a2a_message_to_agui_event(each) for each in document]
    )
    pairs = [seed_a2a.convert_agui_event_to_openai_chat(event) for event in events]
    return [each for message, tools in pairs for each in [*tools, *([message] if message else [])]]


@given(documents())
def test_both_ways_lead_to_the_same_messages(document: list[Json]) -> None:
    direct = openai_chat.dump_messages(a2a.load_messages(document))
    assert [plain(each) for each in direct] == [plain(each) for each in by_way_of_events(document)]
