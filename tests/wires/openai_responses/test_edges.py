"""The openai_responses wire at the edges of its tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartFinished,
    PartStarted,
    RunError,
)
from dragoman.fold import fold, unfold
from dragoman.loss import Loss
from dragoman.message import (
    DataPart,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import openai_responses as wire
from dragoman.wires.openai_responses.quirks import Quirks

HERE = Origin("deepseek", None, "m")


def told(data: bytes) -> list[dict[str, Any]]:
    return [
        json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")
    ]


def written(events: list[Event]) -> list[dict[str, Any]]:
    encoder = wire.encoder()
    return told(b"".join(map(encoder.feed, events)) + encoder.close())


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": True},
        {"max_output_tokens": True},
        {"parallel_tool_calls": 1},
        {"tool_choice": {"type": "function", "name": "f", "own": 1}},
        {"tool_choice": {"type": "function", "name": "auto"}},
    ],
)
def test_a_setting_of_another_type_or_with_more_to_it_goes_back_as_it_was(
    fields: dict[str, Any],
) -> None:
    body = {"model": "m", "input": "hi", **fields}
    request = wire.load_request(body)
    settings = request.settings
    assert (settings.temperature, settings.max_tokens, settings.parallel_tool_calls) == (
        None,
        None,
        None,
    )
    assert settings.tool_choice is None
    assert wire.dump_request(request) == body


def test_a_text_that_came_whole_is_streamed_in_one_delta() -> None:
    events: list[Event] = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, OpenText()),
        PartFinished("m", 0, TextPart("abc")),
        MessageFinished("m"),
    ]
    deltas = [event for event in written(events) if event["type"].endswith(".delta")]
    [delta] = deltas
    assert (delta["type"], delta["delta"], delta["logprobs"]) == (
        "response.output_text.delta",
        "abc",
        [],
    )


def test_a_call_of_another_provider_that_failed_is_told_with_its_error() -> None:
    call = ToolCallPart("c1", "search", {"q": "x"}, run_by="provider")
    result = ToolResultPart("c1", "search", {"code": 5}, is_error=True, run_by="provider")
    [item] = written(unfold([Message.model(call, result)]))[-1]["response"]["output"]
    text = {"type": "text", "text": '{"code":5}'}
    assert item["error"] == {"type": "mcp_tool_execution_error", "content": [text]}
    assert item["output"] is None


def test_an_image_without_bytes_stays_in_the_result_of_the_code() -> None:
    empty = {"type": "image", "url": "data:image/png;base64,"}
    outputs = [empty, {"type": "image", "url": "data:image/png;base64,aGk="}]
    ran = {
        "type": "code_interpreter_call",
        "id": "ci",
        "code": "x",
        "container_id": "c",
        "status": "completed",
    }
    response = {
        "id": "r",
        "object": "response",
        "status": "completed",
        "output": [{**ran, "outputs": outputs}],
    }
    events = wire.load_response(response)
    _, result, image = fold(events)[0].content
    assert isinstance(result, ToolResultPart)
    assert result.result == [empty]
    assert isinstance(image, DataPart)
    assert (image.data, image.name) == (b"hi", "image_0.png")
    assert wire.dump_response(events)["output"] == response["output"]


def test_thinking_without_text_is_no_plain_thinking() -> None:
    losses: list[Loss] = []
    answers = [Message.model(ThinkingPart(text), "x").replace(origin=HERE) for text in ("", "hm")]
    items = wire.dump_messages(
        answers, target=HERE, quirks=Quirks(plain_thinking=True), losses=losses
    )["input"]
    assert [item.get("type", "message") for item in items] == ["message", "reasoning", "message"]
    assert [(loss.message, loss.what) for loss in losses] == [(0, "thinking")]


def test_what_is_told_of_a_text_in_a_request_goes_back_as_it_was() -> None:
    block = {"type": "output_text", "text": "a", "annotations": [], "logprobs": [{"token": "a"}]}
    payload = {"input": [{"role": "user", "content": [block]}]}
    messages = wire.load_messages(payload)
    assert wire.dump_messages(messages) == payload


IN_PROGRESS = {"id": "r", "object": "response", "model": "m", "status": "in_progress", "output": []}


def streamed(*events: dict[str, Any]) -> list[Event]:
    decoder = wire.decoder()
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    return [*decoder.feed(data), *decoder.close()]


@pytest.mark.parametrize(("model", "again"), [("m", False), ("m-2", True)])
def test_the_origin_is_told_again_where_the_end_knows_more_of_it(model: str, again: bool) -> None:
    end = {**IN_PROGRESS, "status": "completed", "model": model}
    start, finish = streamed(
        {"type": "response.created", "response": IN_PROGRESS},
        {"type": "response.completed", "response": end},
    )
    assert isinstance(start, MessageStarted)
    assert isinstance(finish, MessageFinished)
    assert start.origin == Origin("", served_model="m", response_id="r")
    assert finish.origin == (Origin("", served_model="m-2", response_id="r") if again else None)


def test_a_message_that_stayed_incomplete_goes_out_so() -> None:
    text = {"type": "output_text", "text": "ab", "annotations": []}
    item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "in_progress",
        "content": [],
    }
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    whole = {**item, "status": "incomplete", "content": [text]}
    over = {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [whole],
    }
    events = streamed(
        {"type": "response.created", "response": IN_PROGRESS},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **place, "part": {**text, "text": ""}},
        {"type": "response.output_text.delta", **place, "delta": "ab"},
        {"type": "response.output_text.done", **place, "text": "ab"},
        {"type": "response.content_part.done", **place, "part": text},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {"type": "response.incomplete", "response": {**IN_PROGRESS, **over}},
    )
    items = [
        event["item"] for event in written(events) if event["type"] == "response.output_item.done"
    ]
    assert [(item["id"], item["status"]) for item in items] == [("msg_1", "incomplete")]


def test_a_schema_without_a_name_leaves_nothing_of_the_text_settings() -> None:
    schema = {"type": "object", "properties": {}}
    request = wire.load_request(
        {"model": "m", "input": "hi", "text": {"format": {"type": "json_schema", "schema": schema}}}
    )
    assert (request.output_schema, request.options, request.native) == (schema, {}, None)


def test_ids_of_items_begin_as_the_vendors_do() -> None:
    call = ToolCallPart("c1", "f", {})
    message = Message.model(ThinkingPart("hm"), "hi", call).replace(id="m")
    output = written(unfold([message]))[-1]["response"]["output"]
    assert [item["id"] for item in output] == ["rs_m_0", "msg_m_1", "fc_m_2"]


def test_a_plain_message_says_nothing_of_its_own() -> None:
    assert wire.load_messages({"input": [{"role": "user", "content": "hi"}]}) == [
        Message.user("hi")
    ]


def test_a_picture_of_another_provider_is_a_generated_image() -> None:
    message = Message.model(DataPart(b"hi", "image/png")).replace(id="m")
    [item] = written(unfold([message]))[-1]["response"]["output"]
    made = {"type": "image_generation_call", "status": "completed", "result": "aGk="}
    assert item == {**made, "id": "image_generation_call_m_0"}


def test_a_text_that_ends_twice_is_written_once() -> None:
    end = PartFinished("m", 0, TextPart("abc"))
    events: list[Event] = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, OpenText()),
        end,
        end,
        MessageFinished("m"),
    ]
    [item] = written(events)[-1]["response"]["output"]
    assert item == {
        "type": "message",
        "id": "msg_m_0",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "abc", "annotations": [], "logprobs": []}],
    }


def test_a_response_that_waits_in_the_queue_has_begun() -> None:
    queued = {**IN_PROGRESS, "status": "queued"}
    start, *_, cut = streamed({"type": "response.queued", "response": queued})
    assert isinstance(start, MessageStarted)
    assert start.origin == Origin("", served_model="m", response_id="r")
    assert isinstance(cut, RunError)


def test_items_that_the_end_lists_in_another_order_are_known_by_their_ids() -> None:
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{n}",
            "call_id": f"c{n}",
            "name": "f",
            "arguments": f'{{"n":{n}}}',
        }
        for n in range(2)
    ]
    added = [
        {"type": "response.output_item.added", "output_index": n, "item": {**call, "arguments": ""}}
        for n, call in enumerate(calls)
    ]
    end = {**IN_PROGRESS, "status": "completed", "output": calls[::-1]}
    events = streamed(
        {"type": "response.created", "response": IN_PROGRESS},
        *added,
        {"type": "response.completed", "response": end},
    )
    [message] = fold(events)
    assert [(call.id, call.arguments) for call in message.tool_calls] == [
        ("c0", {"n": 0}),
        ("c1", {"n": 1}),
    ]


def test_a_users_item_goes_to_its_own_provider_under_its_id_where_nothing_is_stored() -> None:
    answer = {
        "type": "mcp_approval_response",
        "id": "mr_1",
        "approval_request_id": "a",
        "approve": True,
    }
    messages = wire.load_messages({"input": [{"role": "user", "content": "hi"}, answer]})
    losses: list[Loss] = []
    sent = wire.dump_messages(
        messages, target=Origin("openai", None, "m"), quirks=Quirks(links=False), losses=losses
    )
    assert sent["input"] == [{"role": "user", "content": "hi"}, answer]
    assert losses == []


def test_what_was_said_around_an_answer_does_not_end_it_before_its_time() -> None:
    encoder = wire.encoder(status="incomplete", output=["x"], background=True)
    events = unfold([Message.model("hi").replace(id="m")])
    data = told(b"".join(map(encoder.feed, events)) + encoder.close())
    first, last = data[0]["response"], data[-1]["response"]
    assert (first["status"], first["output"], first["background"]) == ("in_progress", [], True)
    assert (last["status"], [item["type"] for item in last["output"]]) == (
        "incomplete",
        ["message"],
    )
