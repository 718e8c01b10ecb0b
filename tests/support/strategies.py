"""Hypothesis strategies for the ground: any message, any history, and any stream of events that
tells of one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from dragoman.event import (
    Custom,
    Event,
    MessageStarted,
    PartDelta,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepFinished,
    StepStarted,
    ToolStarted,
)
from dragoman.fold import parse_call, unfold
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    FinishReason,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

T = TypeVar("T")

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
some_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
name = st.sampled_from(["weather", "f", "Grüße", "a_b-c"])
call_id = st.sampled_from(["", "a", "b", "call_1"])
"""Few, so that histories repeat them."""
json_value = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        -(2**70),
        1.0,
        1e300,
        -0.5,
        "",
        "ü\n\0",
        "\U0001f600",
        [],
        {},
        [[], {"": [None]}],
        {"b": 1, "a": {"c": [1.5]}},
    ]
)
json_object = st.dictionaries(st.sampled_from(["", "a", "city", "ä"]), json_value, max_size=2)
native = st.none() | st.dictionaries(
    st.sampled_from(["openai_chat", "anthropic"]), json_object, max_size=2
)
mime = st.sampled_from(["image/png", "application/pdf"])

texts = st.builds(TextPart, some_text, native)
data = st.builds(DataPart, st.binary(max_size=12), mime, st.none() | text, native)
links = st.builds(LinkPart, text, st.none() | mime, st.none() | text, native)
files = st.builds(FilePart, text, st.none() | mime, st.none() | text, native)
thinking = st.builds(ThinkingPart, text, native)
provider_parts = st.builds(ProviderPart, st.sampled_from(["compaction", "mcp"]), native)
run_by = st.sampled_from(["agent", "agent", "client", "provider"])

raw_arguments = (
    json_object.map(lambda value: msgspec.json.encode(value).decode())
    | json_object.map(lambda value: msgspec.json.format(msgspec.json.encode(value)).decode())
    | st.sampled_from(["", " ", "null", "[]", '{"a', "{}x", '{"a": 1, "a": 2}', "1", "{} "])
)


def _call(id_: str, name: str, raw: str, run_by: Any, cut: bool, native: Any) -> ToolCallPart:
    call = ToolCallPart(id_, name, run_by=run_by, native=native)
    return msgspec.structs.replace(call, raw=raw, state="cut") if cut else parse_call(call, raw)


calls = st.builds(_call, call_id, name, raw_arguments, run_by, st.booleans(), native) | st.builds(
    ToolCallPart, call_id, name, json_object, run_by=run_by, native=native
)
result_content = st.lists(texts | data | links | files, min_size=1, max_size=3).map(tuple)
results = st.builds(
    ToolResultPart,
    call_id,
    st.just("") | name,
    json_value | result_content,
    st.booleans(),
    run_by,
    native,
)
content: st.SearchStrategy[Content] = st.one_of(
    texts, data, links, files, calls, calls, results, results, thinking, provider_parts
)

count = st.none() | st.integers(0, 10**6)
usages = st.builds(Usage, **dict.fromkeys(Usage.__struct_fields__, count))
origins = st.builds(
    Origin,
    st.sampled_from(["anthropic", "openai", "deepseek"]),
    st.none() | st.sampled_from(["https://one.test", "https://two.test"]),
    st.none() | text,
    st.none() | text,
    st.none() | text,
    st.none() | st.just("f" * 32),
)
zones = st.none() | st.just(UTC) | st.just(timezone(timedelta(hours=5, minutes=30)))
times = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=zones)
metadata = st.dictionaries(st.sampled_from(["", "note", "thinking"]), json_value, max_size=2)


def message(roles: Sequence[Role] = tuple(Role), max_size: int = 5) -> st.SearchStrategy[Message]:
    """Any message of these roles; ids are few, so that they repeat."""
    return st.builds(
        Message,
        st.sampled_from(roles),
        st.lists(content, max_size=max_size).map(tuple),
        st.none() | st.sampled_from(["m1", "#0", "#0'"]) | text,
        st.none() | times,
        st.none() | origins,
        metadata,
        st.none() | st.sampled_from(FinishReason),
        st.none() | usages,
        native,
    )


messages = message()
histories = st.lists(messages, max_size=5)


def plain(
    pieces: st.SearchStrategy[Content], roles: Sequence[Role] = (Role.USER, Role.MODEL)
) -> Any:
    """Messages of nothing but these pieces."""
    return st.builds(Message, st.sampled_from(roles), st.lists(pieces, max_size=4).map(tuple))


tool_histories: st.SearchStrategy[list[Message]] = st.lists(
    plain(
        st.builds(ToolCallPart, call_id, name, run_by=run_by)
        | st.builds(ToolResultPart, call_id, st.just("") | name, st.integers(0, 99), run_by=run_by)
        | st.builds(TextPart, some_text),
        (Role.USER, Role.USER, Role.MODEL, Role.MODEL, Role.SYSTEM),
    ),
    max_size=8,
)
"""Histories that are mostly calls and results, in every disorder."""

others: st.SearchStrategy[Event] = st.sampled_from(
    [
        RunStarted("r"),
        StepStarted("s"),
        StepFinished("s"),
        StateSnapshot({"a": 1}),
        StateDelta(()),
        Custom("c", [1]),
        ToolStarted("c", "t", {"a": 1}),
        StepStarted("s", at=datetime(2026, 11, 26, 9, 0, 0, 123456, UTC)),
    ]
)


@st.composite
def streams(
    draw: Any, histories: st.SearchStrategy[list[Message]] = histories
) -> tuple[list[Message], list[Event]]:
    """A stream, and the messages that it tells of, in order of their start: deltas split anywhere,
    the parts of a message open side by side, messages side by side (of one id one after the other),
    other events in between.
    """
    history = draw(histories)
    by_id: dict[str, list[tuple[Event, Message]]] = {}
    for message, block in zip(history, _blocks(unfold(history)), strict=True):
        parts: dict[int, list[Event]] = {}
        for event in block[1:-1]:
            parts.setdefault(event.index, []).extend(_split(draw, event))
        told = [block[0], *interleave(draw, list(parts.values())), block[-1]]
        by_id.setdefault(block[0].message_id, []).extend((event, message) for event in told)
    body = interleave(draw, list(by_id.values()))
    expected = [message for event, message in body if isinstance(event, MessageStarted)]
    events = [event for event, _ in body]
    return expected, interleave(draw, [events, draw(st.lists(others, max_size=3))])


def interleave(draw: Any, lists: Sequence[Sequence[T]]) -> list[T]:
    """The lists side by side, each in its own order."""
    queues = [list(reversed(items)) for items in lists if items]
    out: list[T] = []
    while queues:
        queue = queues[draw(st.integers(0, len(queues) - 1)) if len(queues) > 1 else 0]
        out.append(queue.pop())
        queues = [queue for queue in queues if queue]
    return out


def _blocks(events: Sequence[Event]) -> list[list[Any]]:
    """The events of each message."""
    blocks: list[list[Any]] = []
    for event in events:
        if isinstance(event, MessageStarted):
            blocks.append([])
        blocks[-1].append(event)
    return blocks


def _split(draw: Any, event: Event) -> list[Event]:
    """An event; a delta as several, some of them empty."""
    if not isinstance(event, PartDelta):
        return [event]
    ends = [
        0,
        *sorted(draw(st.lists(st.integers(0, len(event.delta)), max_size=3))),
        len(event.delta),
    ]
    return [PartDelta(event.message_id, event.index, event.delta[a:b]) for a, b in pairwise(ends)]
