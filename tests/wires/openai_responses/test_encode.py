"""The openai_responses encoder: every event is of the official types, and the official helper
follows their order."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import httpx2
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
)
from dragoman.event import (
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.fold import fold, unfold
from dragoman.message import (
    DataPart,
    FilePart,
    FinishReason,
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
from dragoman.request import ModelRequest
from dragoman.wires import openai_responses as wire
from support.responses import COMPLETED_HEAD, decode, events_in, odd_message, pieces, write_all


def events_of(*content, reason=FinishReason.stop, usage=None, origin=None):
    return unfold(
        [Message.model(*content).replace(id="m1", finish_reason=reason, usage=usage, origin=origin)]
    )


def written(events, **envelope):
    encoder = wire.encoder(**envelope)
    return b"".join(map(encoder.feed, events)) + encoder.close()


EVENT = TypeAdapter(ResponseStreamEvent)


def with_count(event):
    """The event with a count that the official types demand, and that neither older servers nor we
    make up."""
    event = json.loads(json.dumps(event))
    if usage := (event.get("response") or {}).get("usage"):
        usage["input_tokens_details"].setdefault("cache_write_tokens", 0)
    return event


def check(data):
    """Every event is of the official type, in an order that the official helper can follow."""
    events = events_in(data)
    for event in events:
        EVENT.validate_python(with_count(event))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=data)
    with httpx2.Client(transport=httpx2.MockTransport(lambda _: answer)) as http:
        client = OpenAI(api_key="k", http_client=http, max_retries=0)
        with client.responses.stream(model="m", input="?") as stream:
            return stream.get_final_response()


@pytest.mark.slow
def test_the_whole_sequence_of_events():
    data = written(
        events_of(
            ThinkingPart("hm"),
            "Hi",
            ToolCallPart("c1", "f", {"a": 1}),
            reason=FinishReason.tool_calls,
        )
    )
    assert [event["type"].removeprefix("response.") for event in events_in(data)] == [
        "created", "in_progress",
        "output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta",
        "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done",
        "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    final = check(data)
    assert final.output_text == "Hi"
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call"]
    assert final.output[2].arguments == '{"a":1}'


def test_the_envelope_goes_before_the_events_own():
    origin = Origin("x", served_model="theirs", response_id="resp_9")
    assert wire.dump_response(events_of("a", origin=origin))["id"] == "resp_9"
    tools = [{"type": "function", "name": "f", "parameters": {}, "strict": False}]
    body = wire.dump_response(
        events_of("a", origin=origin), id="resp_2", model="m", created_at=5, tools=tools
    )
    assert (body["id"], body["model"], body["created_at"], body["tools"]) == (
        "resp_2",
        "m",
        5,
        tools,
    )
    TypeAdapter(Response).validate_python(body)


def test_a_whole_answer_is_what_the_last_event_holds():
    events = events_of(
        ThinkingPart("hm"),
        "Hi",
        ToolCallPart("c1", "f"),
        usage=Usage(input_tokens=1, output_tokens=2),
    )
    assert events_in(written(events))[-1]["response"] == wire.dump_response(events)


def test_cut_calls_are_told_as_far_as_they_came():
    call = ToolCallPart("c1", "f", raw='{"a', state="cut")
    body = wire.dump_response(events_of(call, reason=FinishReason.length))
    assert body["output"][0]["arguments"] == '{"a' and body["output"][0]["status"] == "incomplete"
    assert (body["status"], body["incomplete_details"]) == (
        "incomplete",
        {"reason": "max_output_tokens"},
    )
    assert (
        events_in(written(events_of(call, reason=FinishReason.length)))[-1]["type"]
        == "response.incomplete"
    )


def test_parts_that_are_open_side_by_side_are_told_one_after_the_other():
    events = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, ThinkingPart()),
        PartStarted("m", 1, OpenText()),
        PartDelta("m", 0, "hm"),
        PartDelta("m", 1, "H"),
        PartDelta("m", 0, "!"),
        PartFinished("m", 1, TextPart("H")),
        PartFinished("m", 0, ThinkingPart("hm!")),
        MessageFinished("m", FinishReason.stop),
    ]
    final = check(written(events))
    assert [item.type for item in final.output] == ["reasoning", "message"]
    assert final.output_text == "H"


def test_what_another_provider_ran_is_told_as_an_mcp_call():
    call = ToolCallPart("s1", "web_search", {"q": "x"}, run_by="provider")
    result = ToolResultPart("s1", "web_search", {"hits": 1}, run_by="provider")
    failed = ToolResultPart("s2", "fetch", "no", is_error=True, run_by="provider")
    final = check(
        written(
            events_of(call, result, ToolCallPart("s2", "fetch", run_by="provider"), failed, "done")
        )
    )
    assert [item.type for item in final.output] == ["mcp_call", "mcp_call", "message"]
    assert (final.output[0].name, final.output[0].arguments, final.output[0].output) == (
        "web_search",
        '{"q":"x"}',
        '{"hits":1}',
    )


def test_a_result_without_its_call_is_not_told():
    lone = ToolResultPart("s1", "web_search", "x", run_by="provider")
    assert [item["type"] for item in wire.dump_response(events_of(lone, "a", lone))["output"]] == [
        "message"
    ]


def test_a_call_is_done_as_soon_as_it_is_whole():
    encoder = wire.encoder()
    told_ = [encoder.feed(event) for event in events_of(ToolCallPart("c1", "f"), "later")]
    assert b"output_item.done" in told_[3] and b"call_id" in told_[3]


def test_media_and_blocks_of_others():
    body = wire.dump_response(
        events_of(
            DataPart(b"\x89PNG", "image/png"),
            FilePart("f1", name="a.txt"),
            ProviderPart("x", {"anthropic": {}}),
        )
    )
    assert [item["type"] for item in body["output"]] == ["image_generation_call", "message"]
    assert body["output"][0]["result"] == "iVBORw=="
    assert body["output"][1]["content"][0]["text"] == "[media: file] a.txt"


def test_several_messages_become_the_items_of_one_response():
    """A run whose tools were its own: what the user's side said is not told."""
    call = ToolCallPart("c1", "f")
    events = [
        *unfold([Message.model("a", call).replace(id="m1", usage=Usage(output_tokens=1))]),
        *unfold([Message.user(ToolResultPart("c1", "f", "x")).replace(id="u1")]),
        *unfold(
            [
                Message.model("b").replace(
                    id="m2", usage=Usage(output_tokens=2), finish_reason=FinishReason.stop
                )
            ]
        ),
    ]
    final = check(written([*events, RunFinished("r")]))
    assert final.output_text == "ab" and final.usage.output_tokens == 3


def test_a_dropped_message_ends_what_was_open():
    events = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, OpenText()),
        PartDelta("m", 0, "x"),
        MessageDropped("m"),
    ]
    retried = [
        *events,
        *unfold([Message.model("y").replace(id="m2", finish_reason=FinishReason.stop)]),
    ]
    assert [item.type for item in check(written(retried)).output][-1] == "message"


def test_other_candidates_and_other_speakers_are_not_told():
    events = [
        MessageStarted("m", Role.MODEL, 1),
        PartStarted("m", 0, OpenText()),
        PartDelta("m", 0, "x"),
    ]
    assert (
        written([*events, *unfold([Message.user("q").replace(id="u")])]).count(b"output_item") == 0
    )


STATUSES = {
    AuthenticationError: 401, PermissionDeniedError: 403, ModelNotFoundError: 404, RateLimitError: 429,
    OverloadedError: 503, ProviderTimeoutError: 504, ProviderError: 500,
}  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        AuthenticationError, PermissionDeniedError, ModelNotFoundError, ContextLengthError, ContentRefusedError,
        InvalidRequestError, RateLimitError, OverloadedError, ProviderTimeoutError, ProviderError,
    ],
)  # fmt: skip
def test_an_error_is_told_as_what_it_is_before_and_within_a_response(kind):
    early = written([RunError(kind("what happened"))])
    assert events_in(early)[0]["type"] == "error"
    late = written([*events_of("x")[:-1], RunError(kind("what happened"))])
    assert events_in(late)[-1]["type"] == "response.failed"
    for data in (early, late):
        for event in events_in(data):
            EVENT.validate_python(event)
        error = decode(data)[-1].error
        assert type(error) is kind and "what happened" in error.message
    status, _, body = wire.dump_error(kind("what happened"))
    assert status == STATUSES.get(kind, 400)
    assert type(wire.load_error(status, {}, json.dumps(body).encode())) is kind
    assert wire.dump_response([RunError(kind("what happened"))]) == body


@settings(max_examples=60)
@given(st.lists(pieces, max_size=5))
@pytest.mark.slow
def test_what_is_written_is_read_back(content):
    answer = Message.model(
        *[
            msgspec.structs.replace(p, id=f"c{n}") if isinstance(p, ToolCallPart) else p
            for n, p in enumerate(content)
        ]
    )
    reason = FinishReason.tool_calls if answer.tool_calls else FinishReason.stop
    events = unfold(
        [
            answer.replace(
                id="m",
                finish_reason=reason,
                usage=Usage(input_tokens=1, output_tokens=2, total_tokens=3),
            )
        ]
    )

    def bare(message_):
        return [msgspec.structs.replace(piece, native=None) for piece in message_.content]

    for back in (
        fold(decode(written(events))),
        fold(wire.load_response(wire.dump_response(events))),
    ):
        assert bare(back[0]) == list(answer.content)
        assert back[0].finish_reason is reason
        assert back[0].usage.total_tokens == 3
    requested = wire.load_messages(wire.dump_messages([Message.user("x"), answer]))[1:]
    assert [piece for message_ in requested for piece in bare(message_)] == list(answer.content)


def test_what_a_response_says_again_of_its_request_is_written_again():
    fields = {
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}, "verbosity": "low"},
        "tool_choice": "required", "top_p": 0.5, "prompt_cache_retention": "24h", "reasoning": {"effort": "high", "summary": None},
    }  # fmt: skip
    body = {
        **COMPLETED_HEAD,
        **fields,
        "output": [odd_message("a")],
        "instructions": "long",
        "tools": [{"type": "web_search"}],
    }
    events = wire.load_response(body)
    (message,) = fold(events)
    for again in (
        wire.dump_response(events),
        wire.dump_response(unfold([Message.from_json(message.to_json())])),
    ):
        assert {key: again[key] for key in fields} == fields
        assert (again["instructions"], again["tools"]) == (None, [])
    assert all(
        event["response"]["tool_choice"] == "required"
        for event in events_in(write_all(events))
        if "response" in event
    )
    assert "long" not in message.to_json().decode()
    plain = fold(
        wire.load_response(
            {
                **COMPLETED_HEAD,
                "output": [odd_message("a")],
                "tool_choice": "auto",
                "reasoning": "words",
            }
        )
    )[0]
    assert "echo" not in plain.native["openai_responses:notes"]


def dropped(part, *deltas):
    return [
        MessageStarted("m", Role.MODEL), PartStarted("m", 0, part), *[PartDelta("m", 0, delta) for delta in deltas],
        PartStarted("m", 1, OpenText()), PartDelta("m", 1, "waits"), MessageDropped("m"),
        *unfold([Message.model("good").replace(id="m", finish_reason="stop")]),
    ]  # fmt: skip


def test_a_message_that_was_dropped_leaves_nothing_in_a_whole_response():
    body = wire.dump_response(dropped(OpenText(), "half ", "an answer"))
    assert [block["text"] for item in body["output"] for block in item["content"]] == ["good"]
    assert (
        wire.dump_response(dropped(ToolCallPart("c", "f"), '{"a'))["output"][0]["type"] == "message"
    )


@pytest.mark.parametrize("part", [OpenText(), ToolCallPart("c", "f")])
def test_what_a_stream_calls_done_is_what_its_deltas_were(part):
    data = write_all(dropped(part, '{"half', ": "))
    deltas, done = {}, {}
    for event in events_in(data):
        if event["type"].endswith(".delta"):
            key = event["item_id"], event.get("content_index")
            deltas[key] = deltas.get(key, "") + event["delta"]
        elif event["type"] in (
            "response.output_text.done",
            "response.function_call_arguments.done",
        ):
            done[event["item_id"], event.get("content_index")] = event.get(
                "text", event.get("arguments")
            )
    assert done == deltas and list(done.values()) == ['{"half: ', "good"]


@pytest.mark.slow
def test_many_parts_may_be_open_side_by_side():
    """Each waits for its turn: what they wait for is no depth of calls of ours."""
    count = 2000
    events = [
        MessageStarted("m", Role.MODEL), *[PartStarted("m", n, OpenText()) for n in range(count)],
        *[PartDelta("m", n, "x") for n in range(count)],
        *[PartFinished("m", n, TextPart("x")) for n in reversed(range(count))], MessageFinished("m", FinishReason.stop),
    ]  # fmt: skip
    assert write_all(events).count(b'"response.output_text.done","sequence_number"') == count


NOW = datetime(2026, 1, 2, 3, 4, 5, 600000, UTC)
ASKED = {
    "model": "gpt-5", "instructions": "Be brief.", "input": "Hi", "stream": True, "store": False, "temperature": 0.5, "metadata": {"a": "b"},
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}], "tool_choice": "required",
    "reasoning": {"effort": "low"}, "text": {"verbosity": "low"}, "previous_response_id": "resp_0", "include": [],
}  # fmt: skip


def test_the_envelope_is_what_the_api_repeats_of_a_request():
    envelope = wire.envelope(wire.load_request(ASKED), id="1", now=NOW)
    same = (
        "model",
        "instructions",
        "store",
        "temperature",
        "metadata",
        "tools",
        "tool_choice",
        "previous_response_id",
    )
    assert envelope == {
        "id": "resp_1",
        "created_at": 1767323045,
        **{field: ASKED[field] for field in same},
        "reasoning": {"effort": "low", "summary": None},
        "text": {"format": {"type": "text"}, "verbosity": "low"},
    }
    whole = wire.dump_response(events_of("Hello."), **envelope)
    Response.model_validate(whole, strict=True)
    assert whole | envelope == whole
    encoder = wire.encoder(**envelope)
    stream = events_in(b"".join([*map(encoder.feed, events_of("Hello.")), encoder.close()]))
    for event in (stream[0], stream[-1]):
        EVENT.validate_python(event)
        assert event["response"] | envelope == event["response"]


def test_an_envelope_without_a_request_and_of_the_least():
    assert wire.envelope(None, id="resp_1", now=NOW) == {"id": "resp_1", "created_at": 1767323045}
    request = ModelRequest(
        "", (Message.user("Hi"), Message.system("later")), options={"raw": True}, wire="ollama"
    )
    assert wire.envelope(request, id="1", now=NOW) == {"id": "resp_1", "created_at": 1767323045}


def test_a_stream_is_kept_open_by_what_no_reader_sees():
    assert wire.stream_type == "text/event-stream"
    encoder = wire.encoder()
    pieces_ = [*map(encoder.feed, events_of("Hello.")), encoder.close()]
    assert decode(wire.ping.join([b"", *pieces_])) == decode(b"".join(pieces_))
    assert not events_in(wire.ping)


_KINDS = {
    "call": ToolCallPart("c", "t", {"x": 1}),
    "thinking": ThinkingPart("Hm."),
    "text": TextPart("Hello."),
    "image": DataPart(b"x", "image/png"),
}


@pytest.mark.mend("4.6")
@pytest.mark.parametrize("deltas", [0, 1])
@pytest.mark.parametrize("last", _KINDS)
@pytest.mark.parametrize("first", ["call", "thinking", "text"])
def test_a_part_may_end_as_another_kind_than_it_began(first: str, last: str, deltas: int) -> None:
    """What was streamed of it is ended as what it began as; the rest is as if nothing had been."""
    begun = {
        "call": ToolCallPart("c", "t", {}),
        "thinking": ThinkingPart(""),
        "text": TextPart("H"),
    }[first]
    events = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, begun),
        *[PartDelta("m", 0, "{") for _ in range(deltas)],
        PartFinished("m", 0, _KINDS[last]),
        MessageFinished("m", FinishReason.stop),
    ]
    whole = wire.dump_response([MessageStarted("m", Role.MODEL), *events[-2:]])["output"]
    output = wire.dump_response(events)["output"]
    if first != "text" or last != "image":  # a message and a picture are two items anyway
        assert len(output) == (2 if deltas and first != last else 1)
    assert output[-1] == {**whole[-1], "id": output[-1].get("id")} or first == last
    encoder = wire.encoder(id="r", model="m")
    assert b"".join([*map(encoder.feed, events), encoder.close()]).count(b"response.completed") >= 1
