"""What the wires of Anthropic, Cohere and Ollama write of one answer, whole and streamed, to the
last field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import errors, wires
from dragoman.event import Event, MessageFinished, MessageStarted
from dragoman.fold import unfold
from dragoman.message import (
    DataPart,
    FilePart,
    FinishReason,
    Message,
    Origin,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)


def answer(wire: str, thinking: Any = None, fields: Any = None, **response: Any) -> Message:
    return Message.model(
        ThinkingPart("hm", thinking),
        "Hi",
        ToolCallPart("c1", "f", {"x": 1}),
        ToolCallPart("c2", "g"),
        ToolCallPart("c3", "h", raw='{"x', state="cut"),
        ToolCallPart("c4", "i", {"y": 2}, run_by="provider", native={"elsewhere": {"type": "own"}}),
        ToolResultPart("c4", "i", "z", run_by="provider"),
        DataPart(b"abc", "image/png", "a.png"),
        FilePart("file_1"),
        "bye",
    ).replace(
        id="m",
        origin=Origin("p", None, "asked", served_model="served", response_id="resp"),
        finish_reason=FinishReason.length,
        usage=Usage(
            input_tokens=9,
            output_tokens=4,
            total_tokens=13,
            cache_read_tokens=2,
            reasoning_tokens=1,
        ),
        native={wire: fields or {}, f"{wire}:notes": {"response": response}},
    )


def streamed(wire: str, events: list[Event], **envelope: Any) -> list[Any]:
    """The lines, or the data of the events, whose name is the type that they tell."""
    encoder = wires.get(wire).encoder(**envelope)
    lines = (b"".join(map(encoder.feed, events)) + encoder.close()).split(b"\n")
    data = [line.removeprefix(b"data: ") for line in lines if line.startswith((b"{", b"data: "))]
    found = [json.loads(each) if each != b"[DONE]" else "[DONE]" for each in data]
    names = [line[7:].decode() for line in lines if line.startswith(b"event: ")]
    assert names == (
        [] if wire == "ollama" else [each["type"] for each in found if each != "[DONE]"]
    )
    return found


def test_anthropic() -> None:
    native = {"anthropic": {"signature": "sig"}}
    events = unfold(
        [
            answer(
                "anthropic",
                native,
                container={"id": "k"},
                usage={"service_tier": "standard"},
                diagnostics=1,
            )
        ]
    )
    counts = {
        "input_tokens": 7, "output_tokens": 4, "cache_read_input_tokens": 2, "output_tokens_details": {"thinking_tokens": 1},
    }  # fmt: skip
    calls = [("c1", "f", {"x": 1}), ("c2", "g", {}), ("c3", "h", {})]
    assert wires.get("anthropic").dump_response(events) == {
        "id": "resp",
        "type": "message",
        "role": "assistant",
        "model": "served",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "Hi"},
            *(
                {"type": "tool_use", "id": id_, "name": name, "input": given}
                for id_, name, given in calls
            ),
            {"type": "text", "text": "[media: image/png] a.png"},
            {"type": "text", "text": "[media: file]"},
            {"type": "text", "text": "bye"},
        ],
        "stop_reason": "max_tokens",
        "stop_sequence": None,
        "usage": {"service_tier": "standard", **counts},
        "container": {"id": "k"},
        "diagnostics": 1,
    }
    blocks = [
        ({"type": "thinking", "thinking": "", "signature": ""},
         {"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "sig"}),
        ({"type": "text", "text": ""}, {"type": "text_delta", "text": "Hi"}),
        *(({"type": "tool_use", "id": id_, "name": name, "input": {}}, {"type": "input_json_delta", "partial_json": text})
          for id_, name, text in (("c1", "f", '{"x":1}'), ("c2", "g", "{}"), ("c3", "h", '{"x'))),
        *(({"type": "text", "text": ""}, {"type": "text_delta", "text": text})
          for text in ("[media: image/png] a.png", "[media: file]", "bye")),
    ]  # fmt: skip
    message = {
        "id": "resp",
        "type": "message",
        "role": "assistant",
        "model": "served",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0, "service_tier": "standard"},
    }
    assert streamed("anthropic", events) == [
        {"type": "message_start", "message": message},
        *(
            event
            for index, (block, *deltas) in enumerate(blocks)
            for event in (
                {"type": "content_block_start", "index": index, "content_block": block},
                *(
                    {"type": "content_block_delta", "index": index, "delta": delta}
                    for delta in deltas
                ),
                {"type": "content_block_stop", "index": index},
            )
        ),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "max_tokens", "stop_sequence": None, "container": {"id": "k"}},
            "usage": counts,
            "diagnostics": 1,
        },
        {"type": "message_stop"},
    ]


def test_cohere() -> None:
    """What is neither text nor thinking stands whole in the start of its block, in the stream as in
    the whole answer."""
    native = {"cohere:notes": {"spelling": {"field": "tool_plan"}}}
    fields = {"citations": [{"start": 0}, {"start": 5}], "x": 1}
    billed = {"billed_units": {"input_tokens": 3}}
    events = unfold([answer("cohere", native, fields, logprobs=[1], usage=billed)])
    calls = [("c1", "f", '{"x":1}'), ("c2", "g", "{}"), ("c3", "h", '{"x')]
    blocks = [
        {"type": "text", "text": "Hi"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}},
        {"type": "text", "text": "[media: file]"},
        {"type": "text", "text": "bye"},
    ]
    end = {
        "finish_reason": "MAX_TOKENS",
        "usage": {
            **billed,
            "tokens": {"input_tokens": 9, "output_tokens": 4, "reasoning_tokens": 1},
            "cached_tokens": 2,
        },
        "logprobs": [1],
    }

    def call(id_: str, name: str, text: str) -> dict[str, Any]:
        return {"id": id_, "type": "function", "function": {"name": name, "arguments": text}}

    assert wires.get("cohere").dump_response(events) == {
        "id": "resp",
        "message": {
            "role": "assistant",
            "tool_plan": "hm",
            "content": blocks,
            "tool_calls": [call(*each) for each in calls],
            **fields,
        },
        **end,
    }

    def event(kind: str, index: int | None = None, **message: Any) -> dict[str, Any]:
        place = {} if index is None else {"index": index}
        return {"type": kind, **place, **({"delta": {"message": message}} if message else {})}

    def text(index: int, said: str) -> list[dict[str, Any]]:
        return [
            event("content-start", index, content={"type": "text", "text": ""}),
            event("content-delta", index, content={"text": said}),
            event("content-end", index),
        ]

    start = event(
        "message-start",
        role="assistant",
        content=[],
        tool_plan="",
        tool_calls=[],
        citations=[],
        x=1,
    )
    assert streamed("cohere", events) == [
        {**start, "id": "resp"},
        event("tool-plan-delta", tool_plan="hm"),
        *text(0, "Hi"),
        *(
            each
            for index, (id_, name, said) in enumerate(calls)
            for each in (
                event("tool-call-start", index, tool_calls=call(id_, name, "")),
                event("tool-call-delta", index, tool_calls={"function": {"arguments": said}}),
                event("tool-call-end", index),
            )
        ),
        event("content-start", 1, content=blocks[1]),
        event("content-end", 1),
        event("content-start", 2, content=blocks[2]),
        event("content-end", 2),
        *text(3, "bye"),
        event("citation-start", 0, citations={"start": 0}),
        event("citation-end", 0),
        event("citation-start", 1, citations={"start": 5}),
        event("citation-end", 1),
        {"type": "message-end", "delta": end},
        "[DONE]",
    ]


def test_ollama() -> None:
    events = unfold([answer("ollama", None, {"x": 1}, created_at="then", total_duration=5)])
    calls = [
        {"id": id_, "function": {"index": index, "name": name, "arguments": given}}
        for index, (id_, name, given) in enumerate(
            (("c1", "f", {"x": 1}), ("c2", "g", {}))
        )  # not the one that was cut
    ]
    head = {"model": "served", "created_at": "then"}
    end = {
        "done": True,
        "done_reason": "length",
        "prompt_eval_count": 9,
        "eval_count": 4,
        "total_duration": 5,
    }
    body: dict[str, Any] = {
        "role": "assistant",
        "content": "Hibye",
        "thinking": "hm",
        "images": ["YWJj"],
        "x": 1,
    }
    assert wires.get("ollama").dump_response(events) == {
        **head,
        "message": {**body, "tool_calls": calls},
        **end,
    }

    def line(**message: Any) -> dict[str, Any]:
        return {**head, "message": {"role": "assistant", "content": "", **message}, "done": False}

    assert streamed("ollama", events) == [
        line(thinking="hm"),
        line(content="Hi"),
        *(line(tool_calls=[call]) for call in calls),
        line(images=["YWJj"]),
        line(content="bye"),
        line(x=1) | end,
    ]


PLAIN = {
    "anthropic": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "",
        "content": [],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    },
    "cohere": {"id": "m", "message": {"role": "assistant"}, "finish_reason": "COMPLETE"},
    "ollama": {
        "model": "",
        "created_at": "1970-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
    },
}


@pytest.mark.parametrize("wire", sorted(PLAIN))
def test_an_answer_that_says_nothing(wire: str) -> None:
    events: list[Event] = [MessageStarted("m", Role.MODEL), MessageFinished("m")]
    assert wires.get(wire).dump_response(events) == PLAIN[wire]
    first, last = streamed(wire, events)[0], streamed(wire, events)[-1]
    assert (first.get("id") or first.get("message", {}).get("id")) == (
        None if wire == "ollama" else "m"
    )
    assert (
        last
        == {"anthropic": {"type": "message_stop"}, "cohere": "[DONE]", "ollama": PLAIN["ollama"]}[
            wire
        ]
    )


@pytest.mark.parametrize(
    ("wire", "envelope", "fields"),
    [
        ("anthropic", {"id": "E", "model": "M"}, {"id": "E", "model": "M"}),
        ("cohere", {"id": "E"}, {"id": "E"}),
        ("ollama", {"model": "M", "created_at": "C"}, {"model": "M", "created_at": "C"}),
    ],
)
def test_the_envelope_goes_before_what_the_events_tell(
    wire: str, envelope: dict[str, Any], fields: dict[str, Any]
) -> None:
    events = unfold([answer(wire)])
    assert fields.items() <= wires.get(wire).dump_response(events, **envelope).items()
    first, last = streamed(wire, events, **envelope)[0], streamed(wire, events, **envelope)[-1]
    assert fields.items() <= (first["message"] if wire == "anthropic" else first).items()
    assert wire != "ollama" or fields.items() <= last.items()


COHERE = {
    "AuthenticationError": (401, "invalid api token: "),
    "ContentRefusedError": (400, "blocked output: "),
    "ContextLengthError": (400, "too many tokens: "),
    "HistoryError": (400, ""),
    "InvalidRequestError": (400, ""),
    "ModelNotFoundError": (404, "model not found: "),
    "OverloadedError": (503, "overloaded: "),
    "PermissionDeniedError": (403, ""),
    "ProviderConnectionError": (502, ""),
    "ProviderError": (500, ""),
    "ProviderTimeoutError": (504, ""),
    "RateLimitError": (429, "too many requests: "),
    "SettingsError": (500, ""),
}
OLLAMA = {
    **COHERE,
    "AuthenticationError": (401, "unauthorized: "),
    "ContentRefusedError": (500, ""),
    "ContextLengthError": (400, "prompt too long: "),
    "OverloadedError": (503, "server busy: "),
}
ANTHROPIC = {
    "AuthenticationError": (401, "authentication_error", ""),
    "ContentRefusedError": (400, "invalid_request_error", "blocked by content filtering policy: "),
    "ContextLengthError": (400, "invalid_request_error", "prompt is too long: "),
    "HistoryError": (400, "invalid_request_error", ""),
    "InvalidRequestError": (400, "invalid_request_error", ""),
    "ModelNotFoundError": (404, "not_found_error", "model: "),
    "OverloadedError": (529, "overloaded_error", ""),
    "PermissionDeniedError": (403, "permission_error", ""),
    "ProviderConnectionError": (502, "api_error", ""),
    "ProviderError": (500, "api_error", ""),
    "ProviderTimeoutError": (504, "timeout_error", ""),
    "RateLimitError": (429, "rate_limit_error", ""),
    "SettingsError": (500, "api_error", ""),
}


@pytest.mark.parametrize("kind", sorted(COHERE))
def test_each_error_has_its_status_and_the_words_by_which_it_is_known(kind: str) -> None:
    plain, named = (
        getattr(errors, kind)("It failed"),
        getattr(errors, kind)("It failed", request_id="r"),
    )
    status, words = COHERE[kind]
    cohere = wires.get("cohere").dump_error
    headers = {"content-type": "application/json"}
    assert cohere(plain) == (status, headers, {"message": f"{words}It failed"})
    assert cohere(named) == (status, headers, {"id": "r", "message": f"{words}It failed"})
    assert words == "" or cohere(getattr(errors, kind)(f"{words}x")) == (
        status,
        headers,
        {"message": f"{words}x"},
    )
    status, words = OLLAMA[kind]
    assert wires.get("ollama").dump_error(named)[::2] == (status, {"error": f"{words}It failed"})
    status, type_, words = ANTHROPIC[kind]
    body = {"type": "error", "error": {"type": type_, "message": f"{words}It failed"}}
    assert wires.get("anthropic").dump_error(plain) == (status, headers, body)
    assert wires.get("anthropic").dump_error(named) == (
        status,
        headers,
        {**body, "request_id": "r"},
    )
