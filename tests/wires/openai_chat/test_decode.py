"""The decoder of the openai_chat wire, rule by rule."""

from __future__ import annotations

import json
from base64 import b64encode
from itertools import count
from typing import Any

import pytest

from dragoman import wires
from dragoman.errors import DecodeError, OverloadedError, RateLimitError, StreamCutError
from dragoman.event import Event, MessageStarted, PartDelta, PartFinished, RunError
from dragoman.fold import fold
from dragoman.message import (
    Citation,
    DataPart,
    FinishReason,
    Message,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.wires import openai_chat

DONE = b"data: [DONE]\n\n"


def chunk(delta: Any = None, finish: str | None = None, index: int = 0, **beside: Any) -> bytes:
    choices = (
        []
        if delta is None and finish is None
        else [{"index": index, "delta": delta or {}, "finish_reason": finish}]
    )
    return (
        b"data: "
        + json.dumps(
            {"id": "r1", "model": "m-1", "created": 7, "choices": choices, **beside}
        ).encode()
        + b"\n\n"
    )


def read(*chunks: bytes, ids: bool = False) -> list[Event]:
    numbers = count()
    decoder = openai_chat.decoder(new_id=(lambda: f"new-{next(numbers)}") if ids else None)
    return [event for piece in chunks for event in decoder.feed(piece)] + decoder.close()


def message(*chunks: bytes, **how: Any) -> Message:
    [only] = fold(read(*chunks, **how))
    return only


def whole(said: dict[str, Any], finish: str | None = "stop", **beside: Any) -> Message:
    body = {
        "id": "r1",
        "model": "m-1",
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        **beside,
    }
    [only] = fold(openai_chat.load_response(json.dumps(body).encode()))
    return only


def tool(
    index: int | None = 0, id: Any = None, name: Any = None, arguments: Any = None, **more: Any
) -> dict[str, Any]:
    function = {
        key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None
    }
    call = {"index": index, "id": id, "function": function, **more}
    return {"tool_calls": [{key: value for key, value in call.items() if value is not None}]}


def error(*chunks: bytes) -> Any:
    events = read(*chunks)
    assert isinstance(events[-1], RunError)
    return events[-1].error


def response_of(said: Message) -> dict[str, Any]:
    return said.native["openai_chat:notes"]["response"] if said.native else {}


# ------------------------------------------------------------------ text and its place


def test_d33_d36_decision_2_text_on_both_sides_of_a_call_stays_there() -> None:
    said = message(
        chunk({"role": "assistant", "content": "be"}),
        chunk({"content": "fore"}),
        chunk(tool(0, "a", "f", "{}")),
        chunk({"content": "after"}),
        chunk({}, "tool_calls"),
        DONE,
    )
    assert [type(part) for part in said.content] == [TextPart, ToolCallPart, TextPart]
    assert [part.text for part in said.content if isinstance(part, TextPart)] == ["before", "after"]


def test_d97_text_before_a_call_is_told_once() -> None:
    events = read(
        chunk({"content": "hm"}), chunk(tool(0, "a", "f", "{}")), chunk({}, "tool_calls"), DONE
    )
    assert [event.delta for event in events if isinstance(event, PartDelta)] == ["hm", "{}"]


def test_decision_14_empty_text_is_no_part() -> None:
    assert (
        message(chunk({"role": "assistant", "content": ""}), chunk({}, "stop"), DONE).content == ()
    )
    assert whole({"role": "assistant", "content": None}).content == ()


def test_content_that_is_an_object_is_told_as_json() -> None:
    assert whole({"content": {"a": 1}}).text == '{"a":1}'


def test_content_in_blocks_keeps_what_is_no_text_for_its_provider() -> None:
    said = whole(
        {
            "content": [
                {"type": "text", "text": "a"},
                {"type": "odd", "x": 1},
                {"type": "text", "text": "b"},
            ]
        }
    )
    assert [type(part) for part in said.content] == [TextPart, ProviderPart, TextPart]
    assert said.content[1].native == {"openai_chat": {"type": "odd", "x": 1}}


# ------------------------------------------------------------------ tool calls


def test_d34_d95_pieces_of_parallel_calls_go_to_the_call_of_their_index() -> None:
    said = message(
        chunk(tool(0, "a", "f", '{"x"')),
        chunk(tool(1, "b", "g", '{"y"')),
        chunk(tool(0, arguments=":1}")),
        chunk(tool(1, arguments=":2}")),
        chunk({}, "tool_calls"),
        DONE,
    )
    assert [(call.id, call.name, call.arguments) for call in said.tool_calls] == [
        ("a", "f", {"x": 1}),
        ("b", "g", {"y": 2}),
    ]


def test_decision_13_without_an_index_the_id_tells() -> None:
    said = message(
        chunk(tool(None, "a", "f", '{"x"')),
        chunk(tool(None, "b", "g", "{}")),
        chunk(tool(None, "a", None, ":1}")),
        chunk({}, "tool_calls"),
        DONE,
    )
    assert [(call.id, call.arguments) for call in said.tool_calls] == [("a", {"x": 1}), ("b", {})]


def test_decision_13_where_the_index_is_repeated_the_id_tells() -> None:
    said = message(
        chunk(tool(0, "a", "f", '{"x"')),
        chunk(tool(0, "b", "g", "{")),
        chunk(tool(0, "a", None, ":1}")),
        chunk(tool(0, "b", None, "}")),
        chunk({}, "tool_calls"),
        DONE,
    )
    assert [(call.id, call.arguments) for call in said.tool_calls] == [("a", {"x": 1}), ("b", {})]


def test_calls_of_one_id_and_different_indexes_stay_two() -> None:
    said = message(
        chunk(tool(0, "a", "f", '{"x"')),
        chunk(tool(1, "a", "f", '{"y"')),
        chunk(tool(0, "a", None, ":1}")),
        chunk(tool(1, "a", None, ":2}")),
        chunk({}, "tool_calls"),
        DONE,
    )
    assert [call.arguments for call in said.tool_calls] == [{"x": 1}, {"y": 2}]


def test_decision_13_calls_under_one_index_without_ids_are_told_apart_by_their_names() -> None:
    said = message(
        chunk(tool(0, "", "f", '{"x":1}')),
        chunk(tool(0, "", "f", '{"x":2}')),
        chunk(tool(0, "", "g", "{}")),
        chunk({}, "stop"),
        DONE,
    )
    assert [(call.name, call.arguments) for call in said.tool_calls] == [
        ("f", {"x": 1}),
        ("f", {"x": 2}),
        ("g", {}),
    ]


def test_a_name_in_every_piece_is_one_call() -> None:
    said = message(
        chunk(tool(0, "a", "f", '{"x"')),
        chunk(tool(0, None, "f", ":1")),
        chunk(tool(0, None, "f", "}")),
        chunk(tool(0, "", "f", "")),
        chunk({}, "stop"),
        DONE,
    )
    assert [call.arguments for call in said.tool_calls] == [{"x": 1}]


@pytest.mark.parametrize(
    "stray",
    [
        tool(None, None, None, "{}"),
        tool(3, None, None, "{}"),
        {"function_call": {"arguments": "{}"}},
        {"tool_calls": [7]},
    ],
)
def test_decision_13_a_piece_that_names_nothing_known_is_an_error_value(
    stray: dict[str, Any],
) -> None:
    wrong = error(
        chunk({"content": "so far"}),
        chunk(tool(0, "a", "f", '{"x"')),
        chunk(stray),
        chunk({"content": "!"}),
        DONE,
    )
    assert isinstance(wrong, DecodeError)
    assert wrong.body
    assert wrong.partial is not None
    assert wrong.partial.text == "so far"
    assert wrong.partial.tool_calls[0].state == "cut"


def test_d95_decision_12_an_empty_or_missing_id_is_minted_once() -> None:
    for nothing in ("", None):
        said = message(
            chunk(tool(0, nothing, "f", "{")),
            chunk(tool(0, "", None, "}")),
            chunk({}, "tool_calls"),
            DONE,
            ids=True,
        )
        assert [call.id for call in said.tool_calls] == ["new-1"]
        assert said.tool_calls[0].native == {"openai_chat": {"id": None}}
        assert said.id == "new-0"
    said = whole(
        {
            "tool_calls": [
                {"function": {"name": "f", "arguments": "{}"}},
                {"function": {"name": "g", "arguments": "{}"}},
            ]
        }
    )
    assert [call.id for call in said.tool_calls] == ["call-0", "call-1"]
    assert said.id == "message-0"


def test_d31_calls_of_one_id_in_a_whole_answer_stay_two() -> None:
    same = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert len(whole({"tool_calls": [same, same]}, "tool_calls").tool_calls) == 2


@pytest.mark.parametrize("arguments", ["", "null", " ", None])
def test_d96_no_arguments_are_an_empty_object(arguments: str | None) -> None:
    said = message(chunk(tool(0, "a", "f", arguments)), chunk({}, "tool_calls"), DONE)
    assert [(call.arguments, call.state) for call in said.tool_calls] == [({}, "complete")]


def test_d96_arguments_are_parsed_at_the_end_only() -> None:
    decoder = openai_chat.decoder()
    events = decoder.feed(chunk(tool(0, "a", "f", '{"x":1}')))
    assert not any(isinstance(event, PartFinished) for event in events)


@pytest.mark.parametrize(
    ("arguments", "state"), [('{"x', "cut"), ("", "cut"), ('{"x":1}', "complete")]
)
def test_a_call_that_the_token_limit_cut_is_never_complete(arguments: str, state: str) -> None:
    said = message(chunk(tool(0, "a", "f", arguments)), chunk({}, "length"), DONE)
    assert said.tool_calls[0].state == state
    assert said.finish_reason is FinishReason.length


def test_arguments_that_are_no_object_are_invalid() -> None:
    said = message(chunk(tool(0, "a", "f", '{"x')), chunk({}, "tool_calls"), DONE)
    assert (said.tool_calls[0].state, said.tool_calls[0].raw) == ("invalid", '{"x')


def test_calls_in_the_chunk_that_ends_it() -> None:
    assert message(chunk(tool(0, "a", "f", "{}"), "tool_calls"), DONE).tool_calls[0].name == "f"


def test_a_name_that_comes_late_is_taken() -> None:
    said = message(
        chunk(tool(0, "a")), chunk(tool(0, None, "f", "{}")), chunk({}, "tool_calls"), DONE
    )
    assert said.tool_calls[0].name == "f"


def test_the_older_function_call() -> None:
    said = message(
        chunk({"function_call": {"name": "f", "arguments": '{"x"'}}),
        chunk({"function_call": {"arguments": ":1}"}}),
        chunk({}, "function_call"),
        DONE,
    )
    assert said.tool_calls[0].arguments == {"x": 1}
    assert said.finish_reason is FinishReason.tool_calls
    assert response_of(said)["finish_reason"] == "function_call"
    [dumped] = openai_chat.dump_messages([said])
    assert dumped == {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": '{"x":1}'},
    }


def test_a_custom_tool_has_its_text_as_the_argument_input() -> None:
    first = {
        "index": 0,
        "id": "a",
        "type": "custom",
        "custom": {"name": "sql", "input": 'SELECT "'},
    }
    said = message(
        chunk({"tool_calls": [first]}),
        chunk({"tool_calls": [{"index": 0, "type": "custom", "custom": {"input": 'ü"\n'}}]}),
        chunk({}, "tool_calls"),
        DONE,
    )
    assert said.tool_calls[0].arguments == {"input": 'SELECT "ü"\n'}
    assert said.tool_calls[0].state == "complete"
    [dumped] = openai_chat.dump_messages([said])
    assert dumped["tool_calls"] == [
        {"id": "a", "type": "custom", "custom": {"name": "sql", "input": 'SELECT "ü"\n'}}
    ]


def test_a_signature_on_a_call_is_kept_and_goes_back() -> None:
    signed = {"extra_content": {"google": {"thought_signature": "s="}}}
    said = message(chunk(tool(0, "a", "f", "{}", **signed)), chunk({}, "tool_calls"), DONE)
    assert said.tool_calls[0].native == {"openai_chat": signed}
    assert (
        openai_chat.dump_messages([said])[0]["tool_calls"][0]["extra_content"]
        == signed["extra_content"]
    )


def test_decision_22_what_the_vendor_ran_itself_is_no_call_to_answer() -> None:
    ran = {
        "index": 0,
        "type": "search",
        "arguments": '{"query":"x"}',
        "output": "found",
        "search_results": {"n": 1},
    }
    said = whole({"content": "It is so.", "executed_tools": [ran]})
    assert said.tool_calls == ()
    assert said.finish_reason is FinishReason.stop
    call, result = (part for part in said.content if not isinstance(part, TextPart))
    assert isinstance(call, ToolCallPart)
    assert isinstance(result, ToolResultPart)
    assert (call.run_by, call.arguments, result.result, result.id) == (
        "provider",
        {"query": "x"},
        "found",
        call.id,
    )
    streamed = message(
        chunk({"executed_tools": [{"index": 0, "type": "search", "arguments": '{"query":"x"}'}]}),
        chunk({"executed_tools": [ran]}),
        chunk({"content": "It is so."}),
        chunk({}, "stop"),
        DONE,
    )
    assert sorted(map(repr, streamed.content)) == sorted(map(repr, said.content))


@pytest.mark.parametrize("more", ["", " Surely."])
def test_sources_that_come_after_the_tools_that_found_them_are_the_texts(more: str) -> None:
    """Groq Compound streams its text, then the tools that it ran, then their sources."""
    ran = {"index": 0, "type": "search", "arguments": "{}", "output": "found"}
    source = {"type": "url_citation", "url_citation": {"url": "https://a.test", "title": "A"}}
    chunks = [
        chunk({"content": "It is "}),
        chunk({"content": "so."}),
        chunk({"executed_tools": [ran]}),
        *([chunk({"content": more})] if more else []),
        chunk({"annotations": [source]}),
        chunk({}, "stop"),
        DONE,
    ]
    said = message(*chunks)
    kinds = [type(part) for part in said.content]
    assert kinds == [TextPart, ToolCallPart, ToolResultPart, *([TextPart] if more else [])]
    assert said.text == f"It is so.{more}"
    cited = [part for part in said.content if isinstance(part, TextPart) and part.citations]
    assert [part.text for part in cited] == [more or "It is so."]
    assert cited[0].citations == (Citation("https://a.test", "A"),)
    for wire in ("anthropic", "openai_responses", "google"):
        out = wires.get(wire).encoder()
        decoder = openai_chat.decoder()
        data = b"".join(out.feed(event) for event in decoder.feed(b"".join(chunks)))
        data += b"".join(out.feed(event) for event in decoder.close()) + out.close()
        [again] = fold(wires.get(wire).load_response(data))
        assert again.text == said.text


# ------------------------------------------------------------------ thinking


def test_d146_thinking_is_hidden_content_in_the_field_it_came_in() -> None:
    for field in ("reasoning_content", "reasoning"):
        said = message(
            chunk({field: "hm"}),
            chunk({field: "m"}),
            chunk({"content": "Yes"}),
            chunk({}, "stop"),
            DONE,
        )
        assert (said.thinking, said.text, [type(part) for part in said.parts]) == (
            "hmm",
            "Yes",
            [TextPart],
        )
        assert openai_chat.dump_messages([said]) == [
            {"role": "assistant", "content": "Yes", field: "hmm"}
        ]


def test_thinking_in_two_fields_at_once_is_told_once() -> None:
    said = message(
        chunk({"reasoning_content": "hm", "reasoning": "hm"}),
        chunk({"content": "Yes"}, "stop"),
        DONE,
    )
    assert said.thinking == "hm"
    [dumped] = openai_chat.dump_messages([said])
    assert (dumped["reasoning"], dumped["reasoning_content"]) == ("hm", "hm")


def test_details_of_thinking_come_together_by_type_and_index_with_a_late_signature() -> None:
    def detail(**fields: Any) -> bytes:
        entry = {"type": "reasoning.text", "index": 0, "format": None, **fields}
        return chunk({"content": "", "reasoning": fields.get("text"), "reasoning_details": [entry]})

    said = message(
        detail(text="h"),
        detail(text="m"),
        detail(signature="s="),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "index": 0, "data": "x="}]}),
        chunk(tool(0, "a", "f", "{}")),
        chunk({}, "tool_calls"),
        DONE,
    )
    assert [part.text for part in said.content if isinstance(part, ThinkingPart)] == ["hm", ""]
    [dumped] = openai_chat.dump_messages([said])
    assert dumped["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "format": None, "text": "hm", "signature": "s="},
        {"type": "reasoning.encrypted", "index": 0, "data": "x="},
    ]
    assert "reasoning" not in dumped


def test_whole_details_are_one_part_each() -> None:
    details = [{"type": "reasoning.text", "index": 0, "text": text} for text in ("one", "two")]
    said = whole({"content": "Yes", "reasoning": "onetwo", "reasoning_details": details})
    assert [part.text for part in said.content if isinstance(part, ThinkingPart)] == ["one", "two"]
    assert openai_chat.dump_messages([said])[0]["reasoning_details"] == details


# ------------------------------------------------------------------ refusals, media, citations


def test_decision_21_a_refusal_is_streamed_text() -> None:
    said = message(chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk({}, "stop"), DONE)
    assert (said.text, said.finish_reason) == ("I cannot.", FinishReason.refusal)
    assert openai_chat.dump_messages([said]) == [
        {"role": "assistant", "content": None, "refusal": "I cannot."}
    ]
    assert (
        whole({"content": None, "refusal": "No."}, "content_filter").finish_reason
        is FinishReason.refusal
    )


def test_spoken_audio_is_data_with_its_transcript_as_native() -> None:
    first, second = b64encode(b"ab\0").decode(), b64encode(b"cd").decode()
    said = message(
        chunk({"audio": {"id": "audio_1", "transcript": "He"}}),
        chunk({"audio": {"data": first, "transcript": "llo"}}),
        chunk({"audio": {"data": second, "expires_at": 9}}),
        chunk({}, "stop"),
        DONE,
    )
    [spoken] = said.content
    assert isinstance(spoken, DataPart)
    assert (spoken.data, spoken.mime_type) == (b"ab\0cd", "audio/pcm")
    assert spoken.native is not None
    assert spoken.native["openai_chat"]["transcript"] == "Hello"
    assert openai_chat.dump_messages([said]) == [
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}
    ]
    played = whole(
        {
            "content": None,
            "audio": {"id": "a", "data": b64encode(b"RIFF....WAVE").decode(), "transcript": "x"},
        }
    )
    assert isinstance(played.content[0], DataPart)
    assert played.content[0].mime_type == "audio/wav"


def test_audio_that_is_no_base64_is_an_error_value() -> None:
    assert isinstance(error(chunk({"audio": {"id": "a", "data": "?"}}), DONE), DecodeError)


def test_an_image_in_the_answer_is_data() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    for said in (
        message(
            chunk({"content": "Look"}),
            chunk({"images": [{"index": 0, **image}]}),
            chunk({}, "stop"),
            DONE,
        ),
        whole({"content": "Look", "images": [image]}),
    ):
        assert isinstance(said.content[1], DataPart)
        assert said.content[1].data == b"hi"
        assert openai_chat.dump_messages([said]) == [
            {"role": "assistant", "content": "Look", "images": [image]}
        ]


def test_citations_and_probabilities_are_kept() -> None:
    said = message(
        chunk(
            {
                "content": "a",
                "annotations": [{"type": "url_citation", "url_citation": {"url": "u"}}],
            }
        ),
        chunk({"annotations": [{"type": "url_citation", "url_citation": {"url": "v"}}]}, "stop"),
        DONE,
    )
    assert said.native is not None
    assert [one["url_citation"]["url"] for one in said.native["openai_chat"]["annotations"]] == [
        "u",
        "v",
    ]
    one = {
        "index": 0,
        "delta": {"content": "a"},
        "logprobs": {"content": [{"token": "a"}], "refusal": None},
    }
    two = {
        "index": 0,
        "delta": {"content": "b"},
        "logprobs": {"content": [{"token": "b"}]},
        "finish_reason": "stop",
    }
    said = message(
        *(
            b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
            for choice in (one, two)
        ),
        DONE,
    )
    assert said.text == "ab"
    assert response_of(said)["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("refusal", "No."),
        ("reasoning", "hm"),
        ("reasoning_content", "hm"),
        ("reasoning_details", [{"type": "reasoning.text", "text": "hm"}]),
        ("function_call", {"name": "f"}),
        ("audio", {"id": "a"}),
        ("images", [{"type": "image_url", "image_url": {"url": "https://x"}}]),
        ("annotations", [{"type": "x"}]),
        ("executed_tools", [{"type": "search"}]),
        ("extra_content", {"google": 1}),
        *tool(0, "a", "f", "{}").items(),
    ],
)
def test_nothing_that_stands_beside_text_in_a_chunk_is_lost(field: str, value: Any) -> None:
    plain = message(chunk({"content": "a"}), chunk({"content": "b"}), chunk({}, "stop"), DONE)
    said = message(
        chunk({"content": "a"}), chunk({"content": "b", field: value}), chunk({}, "stop"), DONE
    )
    assert "ab" in said.text.replace("No.", "")
    assert len(said.content) > 1 or said.native != plain.native


# ------------------------------------------------------------------ reasons, usage, metadata


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", FinishReason.stop),
        ("eos", FinishReason.stop),
        ("length", FinishReason.length),
        ("content_filter", FinishReason.content_filter),
        ("tool_calls", FinishReason.tool_calls),
        ("function_call", FinishReason.tool_calls),
        ("", FinishReason.unspecified),
        ("whatever", FinishReason.unspecified),
    ],
)
def test_d98_reasons_to_stop(word: str, reason: FinishReason) -> None:
    said = whole({"content": "a"}, word)
    assert said.finish_reason is reason
    assert response_of(said).get("finish_reason") == (
        word if word in ("eos", "function_call", "whatever") else None
    )


def test_stop_with_calls_to_answer_means_the_calls() -> None:
    said = message(chunk(tool(0, "a", "f", "{}")), chunk({}, "stop"), DONE)
    assert said.finish_reason is FinishReason.tool_calls
    assert response_of(said)["finish_reason"] == "stop"


def test_d99_metadata_and_origin() -> None:
    said = message(
        chunk({"content": "a"}, system_fingerprint="fp", service_tier="default"),
        chunk({}, "stop"),
        DONE,
    )
    assert response_of(said) == {
        "created": 7,
        "system_fingerprint": "fp",
        "service_tier": "default",
    }
    assert said.origin == Origin("", served_model="m-1", response_id="r1")


def test_the_origin_that_is_given_is_filled_in() -> None:
    decoder = openai_chat.decoder(origin=Origin("openai", "https://x", "m"))
    events = decoder.feed(chunk({"content": "a"})) + decoder.close()
    assert isinstance(events[0], MessageStarted)
    assert events[0].origin == Origin("openai", "https://x", "m", "m-1", "r1")


def test_decision_3_usage_stands_once_and_its_last_word_counts() -> None:
    counts = {"prompt_tokens": 5, "completion_tokens": None, "total_tokens": None}
    events = read(
        chunk({"content": "a"}, usage=counts),
        chunk(
            {"content": "b"}, usage={"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
        ),
        chunk({}, "stop", usage=None),
        chunk(usage={"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7, "cost": 0.5}),
        chunk(usage=counts),
        chunk(usage=None),
        DONE,
    )
    assert [usage for event in events if (usage := getattr(event, "usage", None))] == [
        Usage(input_tokens=5, output_tokens=2, total_tokens=7)
    ]
    assert response_of(fold(events)[0])["usage"] == {"cost": 0.5}


def test_usage_tells_cache_and_thinking_as_parts_of_the_totals() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 8,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 6},
    }
    assert whole({"content": "a"}, usage=usage).usage == Usage(
        input_tokens=10,
        output_tokens=8,
        total_tokens=18,
        cache_read_tokens=4,
        cache_write_tokens=2,
        reasoning_tokens=6,
    )


def test_thinking_that_a_vendor_counts_beside_the_answer_is_counted_in() -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 334}
    usage |= {"completion_tokens_details": {"reasoning_tokens": 320}}
    told = whole({"content": "a"}, usage=usage).usage
    assert told == Usage(input_tokens=12, output_tokens=322, total_tokens=334, reasoning_tokens=320)


def test_usage_beside_the_choices_of_groq() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    said = message(
        chunk({"content": "a"}), chunk({}, "stop", x_groq={"id": "req", "usage": usage}), DONE
    )
    assert said.usage == Usage(input_tokens=1, output_tokens=2, total_tokens=3)


# ------------------------------------------------------------------ the shape of the stream


def test_several_candidates_are_several_messages() -> None:
    events = read(
        chunk({"content": "a"}),
        chunk({"content": "x"}, index=1),
        chunk({}, "stop"),
        chunk({}, "length", 1),
        chunk(usage={"prompt_tokens": 1}),
        DONE,
    )
    started = [event for event in events if isinstance(event, MessageStarted)]
    assert [(event.candidate, event.message_id) for event in started] == [
        (0, "message-0"),
        (1, "message-1"),
    ]
    [first] = fold(events)
    assert first.text == "a"
    assert first.usage == Usage(input_tokens=1)


def test_two_chunks_with_a_reason_are_one_end() -> None:
    said = message(
        chunk({"content": "a"}),
        chunk({"content": ""}, "stop"),
        chunk({"content": ""}, "stop", usage={"prompt_tokens": 1}),
        DONE,
    )
    assert (said.text, said.finish_reason, said.usage) == (
        "a",
        FinishReason.stop,
        Usage(input_tokens=1),
    )


def test_comments_leading_white_space_and_carriage_returns_are_passed_over() -> None:
    body = (
        b"\n \n: PROCESSING\r\n\r\n"
        + chunk({"content": "a"}).replace(b"\n", b"\r\n")
        + b": still\n\n"
        + chunk({}, "stop")
        + DONE
    )
    assert message(body).text == "a"
    assert (
        fold(openai_chat.load_response(b'\n   \n {"choices":[{"message":{"content":"b"}}]}'))[
            0
        ].text
        == "b"
    )


def test_without_the_end_mark_a_reason_is_the_end() -> None:
    assert message(chunk({"content": "a"}), chunk({}, "stop")).finish_reason is FinishReason.stop


def test_without_a_reason_the_end_mark_is_the_end() -> None:
    assert message(chunk({"content": "a"}), DONE).finish_reason is FinishReason.unspecified
    assert message(chunk(tool(0, "a", "f", "{}")), DONE).finish_reason is FinishReason.tool_calls


def test_without_either_the_stream_is_cut() -> None:
    cut = error(chunk({"content": "so "}), chunk({"content": "far"}))
    assert isinstance(cut, StreamCutError)
    assert cut.partial is not None
    assert cut.partial.text == "so far"
    assert isinstance(error(), StreamCutError)


def test_one_candidate_that_has_no_end_is_cut_too() -> None:
    events = read(chunk({"content": "a"}), chunk({"content": "x"}, index=1), chunk({}, "stop", 1))
    assert isinstance(events[-1], RunError)
    assert isinstance(events[-1].error, StreamCutError)


def test_an_error_in_the_stream_is_of_its_kind_and_the_last_word() -> None:
    wrong = error(
        chunk({"content": "a"}),
        b'data: {"error":{"message":"Slow down","code":429}}\n\n',
        chunk({"content": "b"}),
        DONE,
    )
    assert isinstance(wrong, RateLimitError)
    assert wrong.partial is not None
    assert wrong.partial.text == "a"
    assert isinstance(
        error(b'{"error":{"message":"Overloaded","type":"overloaded_error"}}'), OverloadedError
    )
    assert isinstance(
        error(chunk({"content": "a"}, "error", error={"code": 502, "message": "upstream"})),
        Exception,
    )


@pytest.mark.parametrize(
    "rubbish",
    [
        b"data: {not json\n\n",
        b"<html>busy</html>",
        b'data: {"choices": 7}\n\n',
        b'data: {"choices": [7]}\n\n',
        b'data: {"choices": [{"delta": "x"}]}\n\n',
        b"data: 7\n\n",
        b'{"detail": "no"}',
        b'data: {"choices":[{"delta":{"tool_calls":{}}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n',
        b"[" * 100_000,
    ],
)
def test_rubbish_is_an_error_value(rubbish: bytes) -> None:
    assert isinstance(error(rubbish), DecodeError)


def test_a_dictionary_is_read_like_its_bytes() -> None:
    body = {"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]}
    assert openai_chat.load_response(body) == openai_chat.load_response(json.dumps(body).encode())


@pytest.mark.parametrize(
    "beside", [{}, {"reasoning": "long"}, {"reasoning": "short"}, {"reasoning": "other"}]
)
def test_thinking_that_a_whole_answer_tells_in_other_words_than_its_details_is_kept(
    beside: dict[str, str],
) -> None:
    detail = {"type": "reasoning.text", "text": "long", "signature": "s"}
    message = {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "short",
        **beside,
        "reasoning_details": [detail],
    }
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    events = openai_chat.load_response({"id": "r", "choices": [choice]})
    [sent] = openai_chat.dump_messages(fold(events))
    assert sent["reasoning_content"] == "short" and sent["reasoning_details"] == [detail]
    again = openai_chat.dump_response(events)["choices"][0]["message"]
    assert {**again, "reasoning_details": [detail]} == {**message, "refusal": None}
