"""The Interactions wire: every step of a request and of an answer comes back as it was, also of
kinds and with fields that nobody knows yet."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.event import PartFinished, RunError
from dragoman.fold import fold, unfold
from dragoman.message import DataPart, Message, dump_messages, load_messages
from dragoman.wires import google_interactions as wire
from dragoman.wires.google_interactions.content import dump_block, load_block

TEXTS = st.text(min_size=1, max_size=8)
IDS = st.sampled_from(["c1", "c2", "c 3"])
OBJECTS = st.dictionaries(
    st.sampled_from(["a", "b"]), st.integers() | TEXTS | st.none(), max_size=2
)
FURTHER = st.dictionaries(
    st.sampled_from(["signature", "x_new", "metadata"]), st.integers(0, 3) | TEXTS, max_size=2
)


def made(step: dict[str, Any], further: Any = FURTHER, **optional: Any) -> Any:
    """A step or a block with these fields, and perhaps others."""
    fixed = {
        name: value if isinstance(value, st.SearchStrategy) else st.just(value)
        for name, value in step.items()
    }
    known = st.fixed_dictionaries(fixed, optional=optional)
    return st.builds(lambda known, further: {**further, **known}, known, further)


ANNOTATIONS = st.lists(
    made(
        {"type": st.sampled_from(["url_citation", "place_citation", "word_info"])},
        start_index=st.integers(0, 9),
        end_index=st.integers(0, 9) | st.none(),
        url=TEXTS,
        title=TEXTS,
    ),
    max_size=2,
)
BLOCKS = st.one_of(
    made({"type": "text", "text": TEXTS}, annotations=ANNOTATIONS),
    made({"type": "text", "text": ""}),
    made({"type": "image", "data": b64encode(b"x").decode(), "mime_type": "image/png"}),
    made(
        {"type": st.sampled_from(["image", "audio", "video", "document"]), "uri": TEXTS},
        mime_type=st.sampled_from(["image/png", "text/x", None]),
    ),
    made({"type": "image", "data": "no base64", "mime_type": "image/png"}),
    made({"type": st.sampled_from(["hologram", "image"])}),
)
VALUES = st.one_of(
    TEXTS, OBJECTS, st.lists(BLOCKS, max_size=2), st.lists(st.integers(), max_size=2), st.none()
)
RESULTS = made(
    {"type": "function_result", "call_id": IDS},
    result=VALUES,
    name=st.sampled_from(["f", "g"]),
    is_error=st.booleans(),
)
SUMMARIES = st.lists(made({"type": "text", "text": TEXTS}, st.just({})) | BLOCKS, max_size=3)
MODEL_STEPS = st.one_of(
    made({"type": "model_output"}, content=st.lists(BLOCKS, max_size=3), error=OBJECTS),
    made({"type": "thought"}, summary=SUMMARIES | st.none()),
    made(
        {"type": "function_call", "id": IDS, "name": st.sampled_from(["f", "g"])},
        arguments=OBJECTS | st.none(),
    ),
    made({"type": "google_search_call", "id": IDS}, arguments=OBJECTS),
    made({"type": "google_search_result", "call_id": IDS}, result=VALUES, is_error=st.booleans()),
    made({"type": "mcp_server_tool_call", "id": IDS, "name": "f"}, arguments=OBJECTS),
    made({"type": "mcp_server_tool_result", "call_id": IDS}, result=VALUES, name=TEXTS),
    made({"type": st.sampled_from(["new_call", "new_result", "something_new"])}),
)
STEPS = st.one_of(
    MODEL_STEPS,
    RESULTS,
    made({"type": "function_result"}),
    made({"type": "user_input"}, content=st.lists(BLOCKS | RESULTS, max_size=3) | st.none()),
)


@given(st.lists(STEPS, max_size=6), st.sampled_from(["", "Be brief."]))
def test_a_conversation_comes_back_as_it_was(steps: list[Any], instruction: str) -> None:
    payload = {"input": steps}
    if instruction:
        payload = {"system_instruction": instruction, **payload}
    messages = wire.load_messages(payload)
    assert wire.dump_messages(messages) == payload
    assert wire.dump_messages(load_messages(dump_messages(messages))) == payload


@given(st.lists(BLOCKS, min_size=1, max_size=3))
def test_an_input_without_steps_comes_back_as_it_was(blocks: list[Any]) -> None:
    known = [block for block in blocks if block["type"] != "hologram"]
    for given_ in ("Hello.", known, *known):
        if given_:
            (message,) = wire.load_messages({"input": given_})
            assert wire.dump_messages([message]) == {"input": given_}
            longer = wire.dump_messages([message, Message.user("So?")])["input"]
            assert [step["type"] for step in longer] == ["user_input", "user_input"]


@given(st.lists(MODEL_STEPS, max_size=5))
def test_an_answer_comes_back_whole_and_streamed(steps: list[Any]) -> None:
    whole = {
        "id": "v1_x", "object": "interaction", "model": "m", "status": "completed", "steps": steps
    }  # fmt: skip
    events = wire.load_response(whole)
    assert not [event for event in events if isinstance(event, RunError)]
    assert wire.dump_response(events) == whole
    assert wire.dump_response(unfold(fold(events))) == whole
    encoder = wire.encoder()
    data = b"".join(map(encoder.feed, events)) + encoder.close()
    decoder = wire.decoder()
    again = [*decoder.feed(data), *decoder.close()]
    assert not [event for event in again if isinstance(event, RunError)]
    said = [event.part for event in again if isinstance(event, PartFinished)]
    assert [type(part) for part in said] == [type(part) for part in fold(events)[0].content]
    assert fold(again)[0].text == fold(events)[0].text


@pytest.mark.parametrize("rate", [8_000, 24_000])
def test_the_rate_of_raw_samples_has_a_field_of_its_own(rate: int) -> None:
    block = {"type": "audio", "data": "AAAA", "mime_type": "audio/l16", "sample_rate": rate}
    part = load_block(block)
    assert isinstance(part, DataPart)
    assert part.mime_type == f"audio/l16;rate={rate}"
    assert dump_block(part) == (block, None)
    from_gemini = DataPart(bytes(3), f"audio/L16;codec=pcm;rate={rate}")
    assert dump_block(from_gemini) == (block, None)


@pytest.mark.parametrize("rate", [True, -1, 10**9, "8000"])
def test_a_rate_that_is_none_stays_as_it_came(rate: object) -> None:
    block = {"type": "audio", "data": "AAAA", "mime_type": "audio/l16", "sample_rate": rate}
    assert dump_block(load_block(block)) == (block, None)
