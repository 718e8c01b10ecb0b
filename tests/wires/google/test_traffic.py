"""The google wire on recorded traffic: every response in every chunking, every request there and
back, the SDK as judge."""

from __future__ import annotations

import base64
import json
import random
from functools import cache, partial

import httpx2
import pytest
from google import genai
from google.genai import types

from dragoman.event import RunError
from dragoman.fold import compact, fold
from dragoman.message import DataPart, FinishReason, Message, ToolCallPart, ToolResultPart
from dragoman.request import ToolSpec
from dragoman.wires import google as wire
from support.traffic import decode as decode_by
from support.traffic import exchanges, through_storage

decode = partial(decode_by, wire)

SAMPLE = (
    "chatlas-test-echo-display-providers-test-google-fetch-panel-00",  # urlContext, grounding, CRLF
    "chatlas-test-provider-google-test-google-mixed-tools-end-to-end-06",
    "mirascope-input-web-search-tool-google-streams-with-web-search-tool-01",  # grounding in several chunks, non-ASCII
    "pydantic-test-google-test-google-model-file-search-grounding-gemini-3-true-03",  # toolCall, toolResponse
    "rig-gemini-stream-terminal-matrix-two-terminal-stream-agent-prompt-keeps-the-answer-00",  # two finish reasons
    "rig-gemini-thought-text-matrix-text-response-across-two-candidates-00",
    "vercel-google-google-stream-tool-call-arguments-00",  # two calls, their arguments in pieces
    "vercel-google-google-stream-tool-call-array-arguments-missing-terminal-function-call-00",
    "vercel-google-google-reasoning-gemini3-00",
)
HOST = "generativelanguage.googleapis.com"


def bodies():
    return [
        e
        for e in exchanges("google")
        if e.request and e.request.keys() & {"contents", "generateContentRequest"}
    ]


def request_of(body):
    """The request itself, also where a request to count its tokens holds it."""
    return body.get("generateContentRequest", body)


def load(exchange):
    return wire.load_request(exchange.request, path=exchange.url)


def answers():
    return [
        e
        for e in exchanges("google")
        if e.status == 200
        and "enerateContent" in e.url
        and not e.body.lstrip().startswith(b'{"embedding')
    ]


@cache
def decoded():
    return [(e, decode(e.body)) for e in answers() if b'"embedding' not in e.body[:200]]


def chunks(exchange):
    lines = exchange.body.decode().splitlines() if exchange.framing == "sse" else []
    return [json.loads(line[5:]) for line in lines if line.startswith("data:")] or [
        json.loads(exchange.body)
    ]


def test_every_good_answer_decodes_without_an_error():
    seen = decoded()
    assert len(seen) > 500
    reasons = {}
    for exchange, events in seen:
        assert not [event for event in events if isinstance(event, RunError)], exchange
        (message,) = fold(events)
        reasons[message.finish_reason] = reasons.get(message.finish_reason, 0) + 1
        assert message.origin is not None and message.origin.served_model, exchange
        assert Message.from_json(message.to_json()) == message, exchange
        counts = chunks(exchange)[-1]["usageMetadata"]
        if "promptTokenCount" in counts:
            usage = message.usage
            assert usage.input_tokens == counts["promptTokenCount"] + counts.get(
                "toolUsePromptTokenCount", 0
            ), exchange
            thoughts = counts.get("thoughtsTokenCount") or 0
            assert (usage.output_tokens or 0) == counts.get("candidatesTokenCount", 0) + thoughts, (
                exchange
            )
            assert usage.total_tokens == counts["totalTokenCount"], exchange
    assert set(reasons) == {
        FinishReason.stop, FinishReason.tool_calls, FinishReason.length, FinishReason.content_filter, FinishReason.error,
    }  # fmt: skip


def test_every_answer_is_the_same_in_random_chunkings():
    chance = random.Random(1)
    for exchange, events in decoded():
        cuts = sorted(
            chance.sample(
                range(1, len(exchange.body)), min(chance.randint(1, 40), len(exchange.body) - 1)
            )
        )
        assert decode(exchange.body, cuts) == events, exchange


def test_a_sample_is_the_same_byte_by_byte():
    sample = [(e, events) for e, events in decoded() if e.path.stem in SAMPLE]
    assert len(sample) == len(SAMPLE)
    small = [(e, events) for e, events in decoded() if len(e.body) < 3000 and e.framing == "sse"][
        :40:3
    ]
    for exchange, events in sample + small:
        body = exchange.body
        if len(body) < 30_000:
            assert decode(body, range(1, len(body))) == events, exchange
        assert decode(body, range(1, len(body), 13)) == events, exchange
        assert fold(compact(events)) == fold(events), exchange


def test_every_stream_cut_early_keeps_what_came_and_says_so():
    cut = 0
    for exchange, events in decoded():
        if (
            exchange.framing != "sse"
            or sum("finishReason" in str(chunk) for chunk in chunks(exchange)) > 1
        ):
            continue
        end = exchange.body.rindex(b"data:")
        if b"finishReason" in exchange.body[:end] or end == 0:
            continue
        broken = decode(exchange.body[:end])
        assert isinstance(broken[-1], RunError), exchange
        assert type(broken[-1].error).__name__ == "StreamCutError", exchange
        assert fold(events)[0].text.startswith(broken[-1].error.partial.text), exchange
        cut += 1
    assert cut > 40


def test_a_whole_answer_is_written_back_as_it_was():
    """But for what means the same: an absent index, role or content, and candidates beyond the
    first."""

    def plain(body):
        body = {"candidates": [], **json.loads(json.dumps(body))}
        for candidate in body["candidates"]:
            candidate.setdefault("index", 0)
            candidate.setdefault("content", {}).setdefault("role", "model")
            for part in candidate["content"].get("parts", ()):
                if part.get("functionCall") and not part["functionCall"].get("args"):
                    part["functionCall"].pop("args", None)
            if candidate["content"].get("parts") == [{"text": ""}]:
                del candidate["content"]["parts"]
        return {**body, "candidates": body["candidates"][:1]}

    written = 0
    for exchange, events in decoded():
        if exchange.framing == "json":
            body = json.loads(exchange.body)
            body["usageMetadata"] = {
                key: value for key, value in body["usageMetadata"].items() if value is not None
            }
            assert plain(wire.dump_response(events)) == plain(body), exchange
            written += 1
    assert written > 350


def test_every_answer_survives_the_encoder():
    for exchange, events in decoded():
        encoder = wire.encoder()
        written = b"".join(map(encoder.feed, events)) + encoder.close()
        (again,), (once,) = fold(decode(written)), fold(events)
        assert again == once, exchange


def test_every_request_body_survives_exactly_also_through_storage():
    seen = bodies()
    assert len(seen) > 500
    for exchange in seen:
        assert wire.dump_request(through_storage(load(exchange))) == exchange.request, exchange


def test_every_request_goes_to_the_path_that_it_came_from():
    for exchange in bodies():
        if HOST in exchange.url and "enerateContent" in exchange.url:
            path = wire.dump_http(load(exchange)).path
            assert exchange.url.split("&key=")[0].split("?key=")[0].endswith("/v1beta" + path), (
                exchange
            )


def test_no_request_loses_anything():
    for exchange in bodies():
        losses = []
        wire.dump_request(load(exchange), losses=losses)
        assert not losses, exchange


def test_an_appended_message_changes_exactly_that():
    for exchange in bodies():
        request = load(exchange)
        longer = request.replace(messages=(*request.messages, Message.user("and now?")))
        expected = json.loads(json.dumps(exchange.request))
        request_of(expected)["contents"].append({"role": "user", "parts": [{"text": "and now?"}]})
        assert wire.dump_request(longer) == expected, exchange


def test_a_renamed_tool_changes_exactly_its_name():
    renamed = 0
    for exchange in bodies():
        request = load(exchange)
        for place, tool in enumerate(request.tools):
            if not isinstance(tool, ToolSpec):
                continue
            other = ToolSpec("another_name", tool.description, tool.input_schema, tool.native)
            tools = [*request.tools[:place], other, *request.tools[place + 1 :]]
            expected = json.loads(json.dumps(exchange.request))
            entries = request_of(expected)["tools"]
            for entry in [entries] if isinstance(entries, dict) else entries:
                for function in (
                    entry.get("functionDeclarations") or entry.get("function_declarations") or ()
                ):
                    if function["name"] == tool.name:
                        function["name"] = "another_name"
            assert wire.dump_request(request.replace(tools=tools)) == expected, exchange
            renamed += 1
    assert renamed > 300


def test_options_hold_no_conversation_and_nothing_that_has_a_neutral_name():
    neutral = {"contents", "systemInstruction", "tools", "model"}
    inside = {
        "temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "seed", "presencePenalty", "frequencyPenalty",
        "responseSchema", "responseJsonSchema",
    }  # fmt: skip
    for exchange in bodies():
        options = load(exchange).options
        assert not neutral & set(options), exchange
        config = options.get("generationConfig", {})
        assert not inside & set(config), exchange
        thinking = config.get("thinkingConfig", {})
        assert (
            not thinking
            or thinking.get("thinkingBudget", thinking.get("thinking_budget", -1)) == -1
        ), exchange
        calling = options.get("toolConfig", {}).get("functionCallingConfig", {})
        assert (
            not calling
            or calling["mode"] == "VALIDATED"
            or len(calling["allowedFunctionNames"]) > 1
        ), exchange


def test_native_repeats_nothing_that_the_neutral_fields_say():
    for exchange in bodies():
        for message in load(exchange).messages:
            for piece in message.content:
                own = json.dumps((piece.native or {}).get("google", {}))
                if isinstance(piece, ToolCallPart) and len(json.dumps(piece.arguments)) > 20:
                    assert json.dumps(piece.arguments) not in own, exchange
                text = getattr(piece, "text", "")
                assert len(text) < 10 or text not in own, exchange


def test_every_conversation_loads_as_messages_alone():
    for exchange in bodies():
        body = request_of(exchange.request)
        payload = {
            key: body[key] for key in ("systemInstruction", "contents") if body.get(key) is not None
        }
        assert wire.dump_messages(wire.load_messages(payload)) == payload, exchange


def test_d_122_calls_without_ids_get_distinct_ones_and_their_results_find_them():
    unnamed = 0
    for exchange in bodies():
        messages = load(exchange).messages
        calls = [call for message in messages for call in message.tool_calls]
        minted = [call.id for call in calls if "id" in (call.native or {}).get("google", {})]
        assert len(set(minted)) == len(minted), exchange
        waiting = {}
        for message in messages:
            waiting |= {call.id: call.name for call in message.tool_calls}
            for result in message.tool_results:
                assert waiting.pop(result.id) == result.name, exchange
        unnamed += len(minted)
    assert unnamed > 100


def test_what_an_answer_signed_goes_back_byte_exact_and_in_its_place():
    signed = 0
    for exchange, events in decoded():
        candidates = [
            c
            for chunk in chunks(exchange)
            for c in chunk.get("candidates", ())
            if not c.get("index")
        ]
        parts = [
            p
            for c in candidates
            for p in c.get("content", {}).get("parts", ())
            if p not in ({"text": ""}, {})
        ]
        if any("willContinue" in str(part) for part in parts):
            continue
        (content,) = wire.dump_messages(fold(events))["contents"] or [{"parts": []}]
        if exchange.framing == "json":
            assert content["parts"] == parts, exchange
        else:
            signed_parts = [part for part in parts if "thoughtSignature" in part]
            assert [
                part for part in content["parts"] if "thoughtSignature" in part
            ] == signed_parts, exchange
        signed += sum("thoughtSignature" in part for part in parts)
    assert signed > 200


@cache
def sdk():
    """The official client, and what its next request will be answered."""
    answer = {}

    def respond(_):
        return httpx2.Response(
            200, headers={"content-type": answer["type"]}, content=answer["body"]
        )

    http = httpx2.Client(transport=httpx2.MockTransport(respond))
    return genai.Client(
        api_key="k", http_options=types.HttpOptions(httpx_client=http)
    ).models, answer


def sdk_chunks(exchange):
    """What the official client reads of the same bytes."""
    models, answer = sdk()
    answer["body"] = exchange.body
    answer["type"] = "text/event-stream" if exchange.framing == "sse" else "application/json"
    if exchange.framing == "json":
        return [models.generate_content(model="m", contents="?")]
    return list(models.generate_content_stream(model="m", contents="?"))


@pytest.mark.parametrize("framing", ["sse", "json"])
@pytest.mark.slow
def test_the_official_client_reads_the_same(framing):
    compared = 0
    seen = [(e, events) for e, events in decoded() if e.framing == framing]
    for exchange, events in seen if framing == "sse" else seen[::3]:
        theirs = sdk_chunks(exchange)
        (ours,) = fold(events)
        parts = [
            p
            for chunk in theirs
            for c in chunk.candidates or ()
            if not c.index
            for p in (c.content and c.content.parts) or ()
        ]
        assert ours.text == "".join(
            part.text for part in parts if part.text and not part.thought
        ), exchange
        assert (ours.thinking or "") == "".join(p.text for p in parts if p.text and p.thought), (
            exchange
        )
        calls = [p.function_call for p in parts if p.function_call]
        if not any(
            call.partial_args or call.will_continue for call in calls
        ):  # the client leaves these to its user
            assert [(c.name, c.arguments) for c in ours.tool_calls] == [
                (c.name, c.args or {}) for c in calls
            ], exchange
            assert all(
                not theirs.id or theirs.id == mine.id
                for theirs, mine in zip(calls, ours.tool_calls, strict=True)
            )
        signatures = [p.thought_signature for p in parts if p.thought_signature]
        kept = [(p.native or {}).get("google", {}).get("thoughtSignature") for p in ours.content]
        assert [base64.b64decode(s.translate({45: 43, 95: 47})) for s in kept if s] == signatures, (
            exchange
        )
        assert [p.data for p in ours.content if isinstance(p, DataPart)] == [
            p.inline_data.data for p in parts if p.inline_data
        ]
        ran = [
            p
            for p in ours.content
            if isinstance(p, ToolCallPart | ToolResultPart) and p.run_by == "provider"
        ]
        codes = [
            p
            for p in parts
            if p.executable_code or p.code_execution_result or p.tool_call or p.tool_response
        ]
        assert len(ran) == len(codes), exchange
        reasons = [
            c.finish_reason.value
            for chunk in theirs
            for c in chunk.candidates or ()
            if c.finish_reason
        ]
        if reasons:
            assert wire.dump_response(events)["candidates"][0]["finishReason"] == reasons[-1], (
                exchange
            )
        usage = theirs[-1].usage_metadata
        if usage is not None and usage.prompt_token_count is not None:
            assert ours.usage.input_tokens == usage.prompt_token_count + (
                usage.tool_use_prompt_token_count or 0
            )
            counted = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
            assert (ours.usage.output_tokens or 0) == counted, exchange
            assert ours.usage.cache_read_tokens == usage.cached_content_token_count, exchange
        compared += 1
    assert compared > 100


def test_recorded_errors_have_their_classes():
    seen = [e for e in exchanges("google") if e.status >= 400]
    assert len(seen) == 12
    classes = {}
    for exchange in seen:
        error = wire.load_error(exchange.status, exchange.headers, exchange.body)
        classes.setdefault(type(error).__name__, []).append(exchange)
        assert json.loads(exchange.body)["error"]["message"].rstrip(".") in error.message, exchange
        assert (error.status, error.body) == (exchange.status, exchange.body), exchange
    assert {name: len(found) for name, found in classes.items()} == {
        "AuthenticationError": 4,
        "ModelNotFoundError": 4,
        "InvalidRequestError": 2,
        "ContextLengthError": 1,
        "RateLimitError": 1,
    }
