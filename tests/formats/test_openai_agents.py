"""Items of the Agents SDK: exact both ways, and what other providers signed finds the way back to
them."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman import Message, ToolCallPart, ToolResultPart, formats, wires
from dragoman.codec.digest import chain_neutral_digests
from dragoman.errors import HistoryError
from dragoman.formats import openai_agents
from dragoman.loss import Loss, Lost
from dragoman.message import MarkPart, Origin, ProviderPart, ThinkingPart
from support import traffic
from support.histories import NEUTRAL

FAKE = "__fake_id__"
CLAUDE = {"model": "anthropic/claude-9", "response_id": "resp_a"}
GEMINI = {"model": "gemini/gemini-9"}
USER = {"role": "user", "content": "What is the weather?"}
OUTPUT = {"call_id": "c1", "output": "sunny", "type": "function_call_output"}


def _text(text: str, id_: str = FAKE, **more: Any) -> dict[str, Any]:
    block = {"annotations": [], "text": text, "type": "output_text", "logprobs": []}
    return {
        "id": id_,
        "content": [block],
        "role": "assistant",
        "status": "completed",
        "type": "message",
        **more,
    }


def _call(id_: str = FAKE, **more: Any) -> dict[str, Any]:
    return {
        "arguments": '{"at": "Rome"}',
        "call_id": "c1",
        "name": "weather",
        "type": "function_call",
        "id": id_,
        **more,
    }


def _thinking(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A reasoning item as the SDK makes it of such blocks."""
    texts = [block["thinking"] for block in blocks if block.get("thinking")]
    signatures = [block["signature"] for block in blocks if "signature" in block]
    item = {
        "id": FAKE,
        "summary": [{"text": "".join(texts), "type": "summary_text"}] if texts else [],
        "type": "reasoning",
        "content": [{"text": text, "type": "reasoning_text"} for text in texts],
        "provider_data": {**CLAUDE, "thinking_blocks": [*blocks]},
    }
    return {**item, **({"encrypted_content": "\n".join(signatures)} if signatures else {}), **more}


SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "S1=="}
HIDDEN = {"type": "redacted_thinking", "data": "D=="}
EMPTY = {"type": "thinking", "thinking": "", "signature": "S2=="}
RUNS: dict[str, list[dict[str, Any]]] = {
    "openai": [
        USER,
        {"id": "rs_1", "summary": [{"text": "I look.", "type": "summary_text"}], "type": "reasoning", "encrypted_content": "gAAA"},
        _text("I look.", "msg_1"),
        _call("fc_1", status="completed"),
        {**_call("fc_2"), "call_id": "c2"},
        OUTPUT,
        {**OUTPUT, "call_id": "c2"},
        _text("Sunny.", "msg_2"),
    ],
    "claude": [
        USER,
        _thinking(SIGNED),
        _text("I look.", provider_data=CLAUDE),
        _call(provider_data=CLAUDE),
        OUTPUT,
        _thinking(SIGNED, HIDDEN, EMPTY),
        _text("Sunny.", provider_data=CLAUDE),
    ],
    "gemini": [USER, _call(provider_data={**GEMINI, "thought_signature": "QUJD"}), OUTPUT, _text("Sunny.", provider_data=GEMINI)],
    "gemini of no name": [_call(provider_data={"thought_signature": "QUJD"}), OUTPUT],
    "images": [{"role": "user", "content": [{"type": "input_text", "text": "See"}, {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}]}, _text("A cat.")],
    "system": [{"role": "system", "content": "Be brief."}, USER, {"role": "developer", "content": "Now."}],
    "odd thinking": [
        _thinking(SIGNED, summary=[]),
        _thinking(SIGNED, encrypted_content="other"),
        _thinking({"type": "thinking"}, {"type": "more"}),
        _thinking(HIDDEN),
        _thinking(SIGNED, status="completed"),
        {**_thinking(SIGNED), "provider_data": {"thinking_blocks": 5}},
        {**_thinking(SIGNED), "provider_data": None},
    ],
    "odd data": [_call(provider_data={"thought_signature": 5, "model": 5}), _text("x", provider_data="x"), _call(provider_data={})],
    "mcp": [{"type": "mcp_approval_request", "id": "mcpr_1", "arguments": "{}", "name": "f", "server_label": "s"},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}],
    "none": [],
}  # fmt: skip


def written(payload: Any) -> Any:
    messages = [
        Message.from_json(message.to_json()) for message in openai_agents.load_messages(payload)
    ]
    losses: list[Loss] = []
    dumped = openai_agents.dump_messages(messages, losses=losses)
    assert losses == []
    return dumped


@pytest.mark.parametrize("name", RUNS)
def test_what_is_read_is_written_as_it_was(name: str) -> None:
    before = copy.deepcopy(RUNS[name])
    assert json.dumps(written(RUNS[name]), sort_keys=True) == json.dumps(before, sort_keys=True)


ITEMS = [item for run in RUNS.values() for item in run]


@given(st.lists(st.sampled_from(ITEMS), max_size=8))
def test_items_in_any_order_are_written_as_they_were(items: list[Any]) -> None:
    called: set[Any] = set()
    for item in items:
        assume(
            item.get("type") != "function_call_output" or item["call_id"] in called
        )  # a round is never cut so by the SDK
        called.add(item.get("call_id"))
    assert written(items) == items


def test_what_anthropic_signed_goes_back_to_it() -> None:
    messages = openai_agents.load_messages(RUNS["claude"])
    assert [message.origin for message in messages][1] == Origin(
        "anthropic", model="claude-9", response_id="resp_a"
    )
    assert messages[1].thinking == "Hm."  # once
    losses: list[Loss] = []
    payload: Any = wires.get("anthropic").dump_messages(
        messages, target=Origin("anthropic"), losses=losses
    )
    assert losses == []
    assert payload["messages"][1]["content"][0] == SIGNED
    assert payload["messages"][3]["content"][:3] == [SIGNED, HIDDEN, EMPTY]
    assert FAKE not in json.dumps(payload)


def test_what_google_signed_goes_back_to_it() -> None:
    messages = openai_agents.load_messages(RUNS["gemini"])
    payload: Any = wires.get("google").dump_messages(messages, target=Origin("google"))
    assert payload["contents"][1]["parts"][0]["thoughtSignature"] == "QUJD"


def test_what_openai_encrypted_goes_back_to_it() -> None:
    messages = openai_agents.load_messages(RUNS["openai"], origin=Origin("openai"))
    payload: Any = wires.get("openai_responses").dump_messages(messages, target=Origin("openai"))
    assert payload["input"] == RUNS["openai"]


def test_what_no_responses_api_made_is_nobodys() -> None:
    made, other = (
        openai_agents.load_messages([_text("x", id_)], origin=Origin("openai"))[0]
        for id_ in ("msg_1", FAKE)
    )
    assert (made.origin, other.origin) == (Origin("openai"), None)


def test_nothing_of_the_sdk_goes_to_another_provider() -> None:
    for run in RUNS.values():
        messages = openai_agents.load_messages(run)
        for name, provider in (
            ("openai_responses", "openai"),
            ("openai_chat", "openai"),
            ("anthropic", "anthropic"),
        ):
            sent = json.dumps(wires.get(name).dump_messages(messages, target=Origin(provider)))
            assert "provider_data" not in sent
            assert FAKE not in sent


@pytest.mark.parametrize(
    ("wire", "body", "origin"),
    [
        ("anthropic", {"messages": [USER, {"role": "assistant", "content": [SIGNED, HIDDEN, {"type": "text", "text": "x"}]}]}, Origin("anthropic", model="claude-9")),
        ("google", {"contents": [{"role": "user", "parts": [{"text": "x"}]}, {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}, "id": "c"}, "thoughtSignature": "QUJD"}]}]}, Origin("google", model="gemini-9")),
    ],
)  # fmt: skip
def test_what_a_provider_signed_comes_back_through_the_sdk(
    wire: str, body: Any, origin: Origin
) -> None:
    messages = wires.get(wire).load_messages(body, origin=origin)
    losses: list[Loss] = []
    items = openai_agents.dump_messages(messages, losses=losses)
    assert losses == []
    back = openai_agents.load_messages(json.loads(json.dumps(items)))
    assert [message.origin for message in back] == [message.origin for message in messages]
    assert wires.get(wire).dump_messages(back, target=Origin(origin.provider)) == body


def test_an_edit_of_thinking_is_written() -> None:
    message = openai_agents.load_messages([_thinking(SIGNED, HIDDEN)])[0]
    without = message.replace(content=message.content[:1])
    assert openai_agents.dump_messages([without]) == [_thinking(SIGNED)]


# ------------------------------------------------------------------ messages → items → messages


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_was_said_comes_back(name: str) -> None:
    losses: list[Loss] = []
    items = openai_agents.dump_messages(NEUTRAL[name], losses=losses)
    assert all(openai_agents.votes(item) for item in items)
    wire = wires.get("openai_responses")
    expected = wire.load_messages({"input": wire.dump_messages(NEUTRAL[name])["input"]})
    system = [message for message in NEUTRAL[name] if message.role == "system"]
    if not system:  # instructions stand in the list here
        assert chain_neutral_digests(openai_agents.load_messages(items)) == chain_neutral_digests(
            expected
        )
    else:
        assert items[0]["role"] == "system"


def test_what_cannot_be_held_is_a_loss_with_its_place() -> None:
    block = {"type": "thinking", "thinking": "a", "signature": "s"}
    signed = {"anthropic": {"signature": "s"}}
    messages = [
        Message.user("x"),
        Message.model(
            MarkPart("step"),
            ThinkingPart("a", signed),
            ThinkingPart("b", signed),
            ProviderPart("compaction", {"anthropic": {}}),
            ToolCallPart("c", "f"),
        ).replace(origin=Origin("anthropic", model="claude-9")),
        Message.user(ToolResultPart("c", "f", "no", is_error=True)),
        Message.model(ThinkingPart("y", {"mistral": {"signature": "s"}})),
    ]
    losses: list[Loss] = []
    items = openai_agents.dump_messages(messages, losses=losses)
    assert items[1]["provider_data"]["thinking_blocks"] == [block, {**block, "thinking": "b"}]
    found = {(loss.message, loss.part, loss.what) for loss in losses}
    assert found == {(1, 3, Lost.provider), (2, 0, Lost.is_error), (3, 0, Lost.signature)}


# ------------------------------------------------------------------ what is no list of items


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["assistant", "user", "reasoning", "function_call", FAKE]),
    lambda one: (
        st.lists(one, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "role",
                    "content",
                    "provider_data",
                    "thinking_blocks",
                    "summary",
                    "id",
                    "model",
                ]
            ),
            one,
            max_size=5,
        )
    ),
    max_leaves=12,
)


def with_summary(items: list[Any]) -> list[Any]:
    """The items as the wire writes them: one of reasoning always has a summary, as the API
    demands."""
    bare = [
        item.get("type") == "reasoning" and "summary" not in item and item.get("content") != []
        for item in items
    ]
    return [
        {**item, "summary": []} if lacks else item for item, lacks in zip(items, bare, strict=True)
    ]


@given(ANY)
def test_anything_is_read_or_refused(payload: Any) -> None:
    assert openai_agents.votes(payload) in (0, 1, 3)
    try:
        assert written(payload) == with_summary(payload)
    except HistoryError:
        problems: list[Any] = []
        if isinstance(payload, list):
            openai_agents.load_messages(payload, problems=problems)
            assert problems


@given(st.sampled_from(ITEMS), st.data())
def test_broken_items_are_read_or_refused(item: dict[str, Any], data: st.DataObject) -> None:
    broken = copy.deepcopy(item)
    inner = broken.get("provider_data") if data.draw(st.booleans()) else broken
    if isinstance(inner, dict) and inner:
        inner[data.draw(st.sampled_from(sorted(inner)))] = data.draw(ANY)
    openai_agents.votes(broken)
    with contextlib.suppress(HistoryError):
        assert written([broken]) == with_summary([broken])


@pytest.mark.parametrize("payload", [None, 5, "x", {}, {"input": []}])
def test_what_is_no_list_is_refused(payload: Any) -> None:
    with pytest.raises(HistoryError, match="are a list"):
        openai_agents.load_messages(payload)


def test_an_item_that_cannot_be_read_is_named() -> None:
    with pytest.raises(HistoryError, match=r"input\[1\]"):
        openai_agents.load_messages([USER, 5])
    problems: list[Any] = []
    assert len(openai_agents.load_messages([USER, {"type": 5}, USER], problems=problems)) == 2
    assert [(problem.index, problem.field) for problem in problems] == [(1, "type")]


def test_it_is_told_where_it_differs() -> None:
    assert formats.detect(RUNS["claude"]) == formats.detect(RUNS["gemini"]) == "openai_agents"
    assert formats.detect(RUNS["openai"]) == "openai_responses"  # read alike
    assert [openai_agents.votes(item) > 0 for item in RUNS["openai"]] == [True] * len(
        RUNS["openai"]
    )
    for name in {*formats.names()} - {"openai_agents"}:
        assert [
            formats.get(name).votes(item) for item in RUNS["claude"] if "provider_data" in item
        ] == [0] * 5, name


@pytest.mark.parametrize("folder", sorted({*traffic.WIRES}))
def test_no_recorded_message_is_mistaken_for_it(folder: str) -> None:
    for exchange in traffic.exchanges(folder):
        for value in (exchange.request or {}).values():
            for each in value if isinstance(value, list) else ():
                assert openai_agents.votes(each) < 3, exchange


def test_recorded_items_are_written_as_they_were() -> None:
    seen = 0
    for exchange in traffic.exchanges("openai_responses"):
        items = (exchange.request or {}).get("input")
        if not isinstance(items, list):
            continue
        try:
            messages = openai_agents.load_messages(items)
        except HistoryError:
            continue
        assert openai_agents.dump_messages(messages) == items, exchange
        seen += 1
    assert seen
