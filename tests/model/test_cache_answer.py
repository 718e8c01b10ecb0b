"""What an answer is found by: any change of what a model is told is another key, and nothing else
is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.message import (
    DataPart,
    FilePart,
    FinishReason,
    LinkPart,
    MarkPart,
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
from dragoman.model.cache_answer import cache_key
from dragoman.model.middleware import Destination
from dragoman.request import ModelRequest, RunInfo, ServerTool, Settings, ToolSpec
from dragoman.wires import names
from support.answers import MODELS
from support.strategies import messages

TO = {
    wire: Destination(
        model.partition(":")[0],
        "https://api.example.com/v1",
        model.partition(":")[2],
        wire=wire,
        headers="h",
        credentials="c",
    )
    for wire, model in MODELS.items()
}
IGNORED = {
    ModelRequest: {"run", "retries"},
    Message: {"id", "created_at", "metadata", "usage", "turn"},
    Destination: {"served_model", "response_id", "prefix"},
}
"""What only tells a request from others: it is in no key."""
OTHER_VALUES: dict[type, list[Any]] = {
    Role: [Role.USER, Role.MODEL],
    FinishReason: [FinishReason.stop, FinishReason.length],
}
CHOICES = {
    "state": "cut",
    "run_by": "client",
    "on_loss": "error",
    "prefix": "break",
    "reasoning": "high",
    "cache": "long",
}
"""Fields that take some words alone → another one of these."""


def changed(value: Any, name: str = "") -> Iterator[Any]:
    """The same, each time with one thing of it changed."""
    if type(value) in OTHER_VALUES:
        yield from (other for other in OTHER_VALUES[type(value)] if other is not value)
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            if field in IGNORED.get(type(value), ()):
                continue
            made = (
                msgspec.structs.replace(value, **{field: each})
                for each in changed(getattr(value, field), field)
            )
            yield from (
                other for other in made if other != value
            )  # some fields are derived from others
    elif isinstance(value, bool):
        yield not value
    elif name in CHOICES and isinstance(value, str):
        yield CHOICES[name]
    elif isinstance(value, int | float):
        yield value + 1 if value + 1 != value else 0.25
    elif isinstance(value, str):
        yield value + "x"
    elif isinstance(value, bytes):
        yield value + b"x"
    elif isinstance(value, Mapping):
        yield {**value, "one more": 1}
        for key, entry in value.items():
            yield {other: each for other, each in value.items() if other != key}
            yield from ({**value, key: other} for other in changed(entry))
    elif isinstance(value, tuple | list):
        kind = type(value)
        if value:
            yield kind([*value, value[0]])
        for place, entry in enumerate(value):
            yield kind([*value[:place], *value[place + 1 :]])
            yield from (
                kind([*value[:place], other, *value[place + 1 :]]) for other in changed(entry)
            )


def full(conversation: list[Message], wire: str) -> ModelRequest:
    """A request that says something in each of its fields."""
    return ModelRequest(
        MODELS[wire],
        tuple(conversation),
        (ToolSpec("look", "Looks.", {"type": "object", "properties": {"x": {"type": "string"}}}), ServerTool("web", {"most": 3})),
        Settings(
            temperature=0.5, max_tokens=10, top_p=0.5, top_k=3, presence_penalty=0.1, frequency_penalty=0.1, stop=("a", "b"), seed=1,
            tool_choice="auto", parallel_tool_calls=True, reasoning="low", cache="short",
        ),
        {"type": "object"},
        True,
        {"user": "u", "deep": {"list": [1, {"a": None}]}},
        {wire: {"form": "x"}},
        "tell",
        wire,
        RunInfo("r", "t", "ann"),
        2,
        True,
        {"model": "m"},
    )  # fmt: skip


CONVERSATION = [
    Message.system("Be brief.").replace(native={"openai_chat": {"role": "developer"}}),
    Message.user("Hi", DataPart(b"x", "image/png", "a.png"), LinkPart("https://a", "image/png"), FilePart("f", "text/plain")),
    Message.model(
        ThinkingPart("Hm.", {"anthropic": {"signature": "s"}}),
        TextPart("So."),
        ToolCallPart("c", "look", {"x": "y"}),
        ProviderPart("search", {"anthropic": {"type": "search"}}),
    ).replace(
        origin=Origin("p", "https://p", "m", "m-1", "r1", "d"),
        finish_reason=FinishReason.tool_calls,
        usage=Usage(input_tokens=1),
        id="m1",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    ),
    Message.user(ToolResultPart("c", "look", {"found": [1, "a"]})),
]  # fmt: skip


@pytest.mark.parametrize("wire", MODELS)
def test_any_single_change_is_another_key(wire: str) -> None:
    request = full(CONVERSATION, wire)
    assert None not in msgspec.structs.asdict(request).values()
    key = cache_key(request, TO[wire])
    others = [cache_key(other, TO[wire]) for other in changed(request)]
    others += [cache_key(request, to) for to in changed(TO[wire])]
    others += [cache_key(request, TO[other]) for other in MODELS if other != wire]
    others += [
        cache_key(request.replace(**{name: None}), TO[wire])
        for name in ("output_schema", "native", "wire")
    ]
    others += [cache_key(request, TO[wire], scope) for scope in ("", "a", "b")]
    others += [
        cache_key(request.replace(run=run), TO[wire])
        for run in (None, RunInfo("r", "t", "bob"), RunInfo("r", "t", ""))
    ]
    others += [cache_key(request.replace(run=None), TO[wire], "ann")]
    # with a user, who he is counts, and not his key
    others.remove(key)
    assert key not in others
    assert len({*others}) > 100


@pytest.mark.parametrize("wire", MODELS)
@settings(max_examples=25, deadline=None)
@given(data=st.data(), conversation=st.lists(messages, min_size=1, max_size=4))
def test_any_single_change_of_any_conversation_is_another_key(
    wire: str, conversation: list[Message], data: st.DataObject
) -> None:
    plain = [
        message.replace(
            content=[part for part in message.content if not isinstance(part, MarkPart)]
        )
        for message in conversation
    ]
    request = full(plain, wire)
    key = cache_key(request, TO[wire])
    other = data.draw(st.sampled_from([*changed(request)]))
    if key is not None:
        assert cache_key(other, TO[wire]) != key


@settings(max_examples=25, deadline=None)
@given(conversation=st.lists(messages, max_size=4))
def test_what_only_tells_a_request_from_others_is_in_no_key(conversation: list[Message]) -> None:
    request = full(conversation, "anthropic")
    renamed = [
        message.replace(
            content=[*message.content, MarkPart("step")],
            id=f"other {place}",
            created_at=datetime(2020, 1, 1, tzinfo=UTC),
            metadata={"note": place},
            usage=Usage(output_tokens=place),
            turn="turn",
        )
        for place, message in enumerate(conversation)
    ]
    again = full(renamed, "anthropic").replace(
        run=RunInfo("another", "thread", "ann", "parent", "agent"), retries=0
    )
    assert cache_key(again, TO["anthropic"]) == cache_key(request, TO["anthropic"])


def test_a_key_counts_where_there_is_neither_a_user_nor_a_scope() -> None:
    request, to = full(CONVERSATION, "anthropic"), TO["anthropic"]
    other = msgspec.structs.replace(to, credentials="another")
    for run, scope, is_same in [
        (None, None, False),
        (RunInfo("r"), None, False),
        (None, "team", True),
        (RunInfo("r", None, "ann"), None, True),
    ]:
        mine, theirs = (cache_key(request.replace(run=run), each, scope) for each in (to, other))
        assert (mine == theirs) is is_same


def test_the_four_wires_are_wires() -> None:
    assert set(MODELS) <= set(names())
