"""The openai_responses wire on recorded traffic: every response in every chunking, every request
there and back, the SDK as judge."""

from __future__ import annotations

import json
from functools import cache, partial

import httpx2
import msgspec
import pytest
from openai import OpenAI
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter, ValidationError

from dragoman.event import RunError
from dragoman.fold import compact, fold
from dragoman.message import (
    DataPart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import openai_responses as wire
from support.traffic import decode as decode_by
from support.traffic import exchanges
from support.traffic_checks import check_chunkings, check_renamed, check_requests

decode = partial(decode_by, wire)

SAMPLE = (
    "pydantic-test-openai-responses-test-openai-responses-phase-streamed-on-part-start-00",  # two ciphertexts, phase
    "rubyllm-providers-bedrock-mantle-responses-chat-streams-through-the-responses-surface-00",  # reasoning_text
    "pydantic-test-openai-responses-test-openai-responses-model-file-search-tool-stream-03",
    "vercel-openai-responses-openai-image-generation-tool-1-00",
    "mirascope-input-test-web-search-tool-stream-openai-gpt-4o-responses-00",  # annotations
    "rig-openai-refusal-matrix-responses-agent-streaming-refusal-surfaces-00",
    "pydantic-test-openai-responses-test-openai-responses-stream-00",  # no sequence numbers
    "chatlas-test-chat-test-chat-tool-request-reject-01",  # keepalive
    "rig-xai-agent-tool-sessions-parallel-tool-calls-single-turn-streaming-00",
    "mirascope-output-max-tokens-openai-responses-returns-max-tokens-finish-reason-fo",
)
OTHER_OBJECTS = ("compact", "count_tokens")
"""Endpoints whose answers are no responses; they are read all the same."""
NOT_AS_TYPED = (
    "rig-openrouter-openai-responses-compat",  # a reasoning item with a null summary beside a `format`
    "vercel-openai-responses-programmatic-tool-calling-3",
    "vercel-xai-responses-xai-code-execution-tool-1",  # a code_interpreter_call without a container
)
"""Recordings whose items are not of the official types, and are written as they came."""


def bodies():
    return [e for e in exchanges("openai_responses") if e.request is not None]


def answers():
    return [e for e in exchanges("openai_responses") if e.status == 200]


@cache
def decoded():
    return [(e, decode(e.body)) for e in answers()]


def responses():
    return [(e, events) for e, events in decoded() if e.endpoint not in OTHER_OBJECTS]


def final(exchange):
    """The response as the provider last sent it."""
    if exchange.framing == "json":
        return json.loads(exchange.body)
    lines = [
        line[5:].strip() for line in exchange.body.decode().splitlines() if line.startswith("data:")
    ]
    return [json.loads(line) for line in lines if line != "[DONE]"][-1]["response"]


def test_every_good_answer_decodes_without_an_error():
    seen = decoded()
    assert len(seen) > 560
    for exchange, events in seen:
        assert not [event for event in events if isinstance(event, RunError)], exchange
        (message,) = fold(events)
        assert message.finish_reason is not None, exchange
        assert Message.from_json(message.to_json()) == message, exchange
        pending = exchange.endpoint == "count_tokens" or final(exchange).get("status") in (
            "queued",
            "in_progress",
        )
        assert pending or (message.usage is not None and message.origin.response_id), exchange


def test_every_stream_is_its_terminal_response():
    """What was streamed, and the whole response that its last event holds, are the same message."""
    compared = 0
    for exchange, events in decoded():
        if exchange.framing == "sse":
            assert fold(events) == fold(wire.load_response(final(exchange))), exchange
            compared += 1
    assert compared > 120


def test_every_answer_is_the_same_in_random_chunkings():
    check_chunkings(wire, decoded())


def test_a_sample_is_the_same_byte_by_byte():
    sample = [(e, events) for e, events in decoded() if e.path.stem.startswith(SAMPLE)]
    assert len(sample) >= len(SAMPLE)
    whole = [(e, events) for e, events in decoded() if e.framing == "json" and len(e.body) < 4000][
        :40:3
    ]
    for exchange, _ in sample + whole:
        body = exchange.body
        once = decode(body)
        if len(body) < 60_000:
            assert decode(body, range(1, len(body))) == once, exchange
        assert decode(body, range(1, len(body), 13)) == once, exchange
        assert fold(compact(once)) == fold(once), exchange


def test_every_stream_cut_early_keeps_what_came_and_says_so():
    for exchange, events in decoded()[::3]:
        if exchange.framing != "sse":
            continue
        end = max(
            exchange.body.rfind(mark) for mark in (b"response.completed", b"response.incomplete")
        )
        start = exchange.body.rindex(b"\n\n", 0, end)
        cut = decode(exchange.body[: start + 2])
        assert isinstance(cut[-1], RunError), exchange
        assert type(cut[-1].error).__name__ == "StreamCutError", exchange
        partial = cut[-1].error.partial
        assert partial is not None and partial.text == fold(events)[0].text, exchange


def without_empty(value):
    if isinstance(value, dict):
        kept = {key: without_empty(one) for key, one in value.items()}
        return {key: one for key, one in kept.items() if one not in (None, [], {}, 0)}
    return [without_empty(one) for one in value] if isinstance(value, list) else value


def without_addresses(item):
    """Fields that stand in an item by a vendor's mistake stay aside: they say where it is."""
    return {key: value for key, value in item.items() if key not in ("item_id", "output_index")}


def test_a_whole_answer_is_written_back_as_it_was():
    """But for what it says again of its request, and for what is empty, null or zero."""
    for exchange, events in responses():
        recorded, ours = final(exchange), wire.dump_response(events)
        for field in (
            "id",
            "model",
            "created_at",
            "status",
            "incomplete_details",
            "service_tier",
            "usage",
        ):
            assert without_empty(ours.get(field)) == without_empty(recorded.get(field)), (
                exchange,
                field,
            )
        items = [without_empty(without_addresses(item)) for item in ours["output"]]
        assert [
            {key: value for key, value in item.items() if key != "id" or "id" in theirs}
            for item, theirs in zip(items, recorded["output"], strict=True)
        ] == [without_empty(without_addresses(item)) for item in recorded["output"]], exchange


def counted(message):
    """Without what the official types cannot leave out: counts that are not known, and an absent
    list of annotations."""
    usage = message.usage and msgspec.structs.replace(
        message.usage,
        **{
            name: getattr(message.usage, name) or 0
            for name in ("cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
        },
    )
    return message.replace(usage=usage)


def test_every_answer_survives_the_encoder():
    for exchange, events in responses():
        encoder = wire.encoder()
        written = b"".join(map(encoder.feed, events)) + encoder.close()
        if exchange.vendor == "mistral.rs" or any(
            "id" not in item for item in final(exchange)["output"]
        ):
            continue  # it tells no annotations, or no id of an item: the official types demand both
        (before,), (after,) = fold(events), fold(decode(written))
        assert counted(after) == counted(before), exchange


@pytest.mark.slow
def test_every_written_event_is_of_the_official_type_and_in_order():
    event_type = TypeAdapter(ResponseStreamEvent)
    checked = 0
    for exchange, events in responses()[::2]:
        encoder = wire.encoder()
        written = b"".join(map(encoder.feed, events)) + encoder.close()
        sent = [
            json.loads(line[6:])
            for line in written.decode().splitlines()
            if line.startswith("data: ")
        ]
        names = [line[7:] for line in written.decode().splitlines() if line.startswith("event: ")]
        assert [event["type"] for event in sent] == names, exchange
        assert [event["sequence_number"] for event in sent] == list(range(len(sent))), exchange
        assert names[:2] == ["response.created", "response.in_progress"], exchange
        assert names[-1] in ("response.completed", "response.incomplete"), exchange
        added = [
            event["output_index"] for event in sent if event["type"] == "response.output_item.added"
        ]
        done = [
            event["output_index"] for event in sent if event["type"] == "response.output_item.done"
        ]
        assert added == done == list(range(len(added))), exchange
        ids = [
            event["item"]["id"] for event in sent if event["type"] == "response.output_item.added"
        ]
        assert all(
            ids[event["output_index"]] == event["item_id"] for event in sent if "item_id" in event
        ), exchange
        if not exchange.path.stem.startswith(NOT_AS_TYPED):
            for event in sent:
                if usage := (event.get("response") or {}).get(
                    "usage"
                ):  # the types demand it, servers leave it out
                    usage["input_tokens_details"].setdefault("cache_write_tokens", 0)
                try:
                    event_type.validate_python(event)
                except ValidationError as error:
                    raise AssertionError((exchange, event["type"], str(error)[:600])) from None
            checked += 1
    assert checked > 250


def test_every_request_body_survives_exactly_also_through_storage_and_loses_nothing():
    check_requests(wire, bodies(), 530)


def test_an_appended_message_changes_exactly_that():
    """An input that was one string becomes the list of two messages."""
    for exchange in bodies():
        request = wire.load_request(exchange.request)
        longer = request.replace(messages=(*request.messages, Message.user("and now?")))
        before = exchange.request["input"]
        items = [{"role": "user", "content": before}] if isinstance(before, str) else before
        expected = {**exchange.request, "input": [*items, {"role": "user", "content": "and now?"}]}
        assert wire.dump_request(longer) == expected, exchange


def test_a_renamed_tool_changes_exactly_its_name():
    check_renamed(wire, bodies(), 250)


def test_options_hold_no_conversation_and_nothing_that_has_a_neutral_name():
    neutral = {
        "model", "input", "instructions", "messages", "max_output_tokens", "temperature", "top_p", "stream", "tools",
        "tool_choice", "parallel_tool_calls", "reasoning", "text",
    }  # fmt: skip
    for exchange in bodies():
        assert not neutral & set(wire.load_request(exchange.request).options), exchange


def test_native_repeats_no_text_that_the_neutral_fields_say():
    def check(message, exchange):
        for piece in message.content:
            own = json.dumps((piece.native or {}).get("openai_responses", {}))
            if isinstance(piece, ToolCallPart) and len(json.dumps(piece.arguments)) > 20:
                assert json.dumps(piece.arguments) not in own, exchange
            text = getattr(piece, "text", "")
            assert len(text) < 12 or text not in own or "logprobs" in own, exchange

    for exchange in bodies():
        for message in wire.load_request(exchange.request).messages:
            check(message, exchange)
    for exchange, events in decoded():
        check(fold(events)[0], exchange)


def test_every_conversation_loads_as_messages_alone():
    for exchange in bodies():
        payload = {
            key: exchange.request[key]
            for key in ("instructions", "input")
            if exchange.request.get(key)
        }
        payload.setdefault("input", [])
        assert wire.dump_messages(wire.load_messages(payload)) == payload, exchange


def test_results_know_their_tools_and_roles_are_right():
    named = 0
    for exchange in bodies():
        for message in wire.load_request(exchange.request).messages:
            if message.tool_results:
                assert message.role is Role.USER
                named += all(result.name for result in message.tool_results)
            assert not message.tool_calls or message.role is Role.MODEL
    assert named > 90


def test_every_answer_goes_back_as_the_provider_told_it():
    """Append-only, and byte-exact: an answer sent back is its output, but for what a request may
    not have."""
    unsent = {"logprobs", "item_id", "output_index"}

    def sent(item):
        item = {
            key: value for key, value in item.items() if key not in unsent and value is not None
        }
        if item["type"] in ("reasoning", "custom_tool_call"):
            item.pop("status", None)
        if isinstance(item.get("content"), list):
            item["content"] = [
                {k: v for k, v in block.items() if k not in unsent} for block in item["content"]
            ]
        return item

    for exchange, events in responses():
        (message,) = fold(events)
        if any(call.state != "complete" for call in message.tool_calls):
            continue  # what was cut is sent back without its arguments
        again = wire.dump_messages([Message.from_json(message.to_json())])["input"]
        assert [sent(item) for item in again] == [
            sent(item) for item in final(exchange)["output"]
        ], exchange


def sdk_response(exchange):
    """The official client's own accumulation of the same bytes."""
    content_type = "text/event-stream" if exchange.framing == "sse" else "application/json"
    response = httpx2.Response(200, headers={"content-type": content_type}, content=exchange.body)
    with httpx2.Client(transport=httpx2.MockTransport(lambda _: response)) as http:
        client = OpenAI(api_key="k", http_client=http, max_retries=0)
        if exchange.framing == "json":
            return client.responses.create(model="m", input="?")
        with client.responses.stream(model="m", input="?") as stream:
            return stream.get_final_response()


def plain_stream(exchange):
    """Whether the official helper can read it: it wants `created`, `completed`, and content indexes
    that begin with 0."""
    text = exchange.body.decode().replace(" ", "")
    ends = all(f'"type":"response.{mark}"' in text for mark in ("created", "completed"))
    return ends and exchange.vendor != "bedrock-mantle"


@pytest.mark.parametrize("framing", ["sse", "json"])
@pytest.mark.slow
def test_the_official_client_reads_the_same(framing):
    compared = 0
    seen = [(e, events) for e, events in responses() if e.framing == framing]
    seen = [(e, events) for e, events in seen if plain_stream(e)] if framing == "sse" else seen[::3]
    for exchange, events in seen:
        theirs: Response = sdk_response(exchange)
        (ours,) = fold(events)
        said = [block for item in theirs.output if item.type == "message" for block in item.content]
        assert ours.text == "".join(
            getattr(block, "text", "") or getattr(block, "refusal", "") for block in said
        ), exchange
        calls = [
            (call.id, call.name, call.arguments)
            for call in ours.tool_calls
            if call.state == "complete"
        ]
        functions = [item for item in theirs.output if item.type == "function_call"]
        others = ("local_shell_call", "apply_patch_call", "tool_search_call", "custom_tool_call", "mcp_approval_request")  # fmt: skip
        if not any(item.type in others for item in theirs.output):
            assert calls == [
                (i.call_id, i.name, json.loads(i.arguments or "{}")) for i in functions
            ], exchange
        thoughts = [item for item in theirs.output if item.type == "reasoning"]
        pieces = [
            ["\n\n".join(p.text for p in [*(i.summary or ()), *(i.content or ())])]
            for i in thoughts
        ]
        assert (ours.thinking or "") == "".join(piece for (piece,) in pieces), exchange
        assert wire.dump_response(events)["status"] == (theirs.status or "completed"), exchange
        if theirs.usage is not None:
            assert ours.usage.input_tokens == theirs.usage.input_tokens, exchange
            assert ours.usage.output_tokens == theirs.usage.output_tokens, exchange
            assert ours.usage.total_tokens == theirs.usage.total_tokens, exchange
        compared += 1
    assert compared > 100


def test_what_the_provider_ran_is_kept_and_shown_as_run_by_it():
    kinds = {}
    for _, events in decoded():
        for piece in fold(events)[0].content:
            if isinstance(piece, (ToolCallPart, ToolResultPart)) and piece.run_by == "provider":
                kinds.setdefault(piece.name, set()).add(type(piece).__name__)
            elif isinstance(piece, ProviderPart):
                kinds.setdefault(piece.kind, set()).add("ProviderPart")
    assert kinds["web_search"] == {"ToolCallPart"}
    assert (
        kinds["code_interpreter"]
        == kinds["file_search"]
        == kinds["tool_search"]
        == {"ToolCallPart", "ToolResultPart"}
    )
    assert kinds["compaction"] == kinds["mcp_list_tools"] == {"ProviderPart"}


def test_made_images_are_data():
    images = [
        p for _, events in decoded() for p in fold(events)[0].content if isinstance(p, DataPart)
    ]
    assert len(images) >= 4
    assert {image.name for image in images} <= {"image_0.png", "image_0.jpeg"}
    assert all(image.data for image in images)


def test_thinking_and_text_keep_the_providers_order():
    for exchange, events in responses():
        types = {"message": TextPart, "reasoning": ThinkingPart}
        order = [types[item["type"]] for item in final(exchange)["output"] if item["type"] in types]
        ours = [type(piece) for piece in fold(events)[0].content if type(piece) in types.values()]
        assert [a for a, b in zip(order, [None, *order], strict=False) if a is not b] == [
            a for a, b in zip(ours, [None, *ours], strict=False) if a is not b
        ] or TextPart not in ours, exchange


def test_recorded_errors_have_their_classes():
    seen = [e for e in exchanges("openai_responses") if e.status >= 400]
    assert len(seen) > 20
    names = set()
    for exchange in seen:
        error = wire.load_error(exchange.status, exchange.headers, exchange.body)
        body = json.loads(exchange.body)
        words = body["error"] if isinstance(body["error"], str) else body["error"]["message"]
        code = None if isinstance(body["error"], str) else body["error"]["code"]
        expected = {
            "invalid_api_key": "AuthenticationError",
            "model_not_found": "ModelNotFoundError",
            "context_length_exceeded": "ContextLengthError",
            "insufficient_quota": "RateLimitError",
        }.get(code, "AuthenticationError" if "API key" in words else "InvalidRequestError")
        assert type(error).__name__ == expected, exchange
        assert words.rstrip(".") in error.message, exchange
        assert error.request_id == exchange.headers.get("x-request-id"), exchange
        assert (error.status, error.body) == (exchange.status, exchange.body), exchange
        names.add(expected)
    assert len(names) >= 5
