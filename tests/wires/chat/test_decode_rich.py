"""An answer in which everything stands that an answer may hold, on the wires that share the shape
of Chat Completions: what is read of its stream, and what is written of it, to the last field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import wires
from dragoman.event import Event, PartDelta, PartFinished, PartStarted
from dragoman.fold import fold, unfold
from dragoman.message import (
    DataPart,
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
)  # fmt: skip

DONE = b"data: [DONE]\n\n"


def chunk(delta: dict[str, Any], finish: str | None = None, **of_choice: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, **of_choice}
    return {
        "id": "r1",
        "object": "chat.completion.chunk",
        "created": 7,
        "model": "m-1",
        "choices": [choice],
    }


CHAT_SAID: list[Any] = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "hm"}),
    chunk({"reasoning_content": "m"}),
    chunk({"reasoning_details": [{"type": "reasoning.text", "text": "d", "index": 0, "id": "x"}]}),
    chunk(
        {
            "reasoning_details": [
                {"type": "reasoning.text", "text": "e", "index": 0, "id": "x", "signature": "s"}
            ]
        }
    ),
    chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "z", "index": 1}]}),
    chunk({"content": "Hel"}),
    chunk({"content": "lo", "padding": "p"}),
    chunk({"content": [{"type": "text", "text": "!"}, {"type": "odd", "x": 1}]}),
    chunk({"refusal": "no"}),
    chunk(
        {
            "images": [
                {"type": "image_url", "image_url": {"url": "https://a.test/a.png"}, "index": 0}
            ]
        }
    ),
    chunk({"audio": {"transcript": "H"}}),
    chunk({"audio": {"data": "YWJj", "id": "a1"}}),
    chunk({"audio": {"transcript": "i", "expires_at": 9}}),
    chunk({"executed_tools": [{"index": 0, "type": "python", "arguments": "{}", "name": "n"}]}),
    chunk({"executed_tools": [{"index": 0, "type": "python", "output": "1", "took": 2}]}),
    chunk(
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "f", "arguments": ""},
                }
            ]
        }
    ),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]}),
    chunk(
        {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}, "extra_content": {"g": 1}}]}
    ),
    chunk(
        {
            "tool_calls": [
                {
                    "index": 1,
                    "type": "custom",
                    "id": "c2",
                    "custom": {"name": "sh", "input": 'ls "'},
                }
            ]
        }
    ),
    chunk({"function_call": {"name": "old", "arguments": "{}"}}),
    chunk(
        {
            "annotations": [{"type": "url_citation", "index": 0, "u": 1}],
            "extra_content": {"k": 1},
            "odd": {"y": 1},
        },
        logprobs={"content": [1]},
    ),
    chunk({}, "tool_calls", seed=3, logprobs={"content": [2]}),
    {
        "id": "other",
        "model": "m-2",
        "choices": [],
        "service_tier": "s",
        "x_groq": {"id": "g", "z": 1, "usage": {"prompt_tokens": 3}},
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 4,
            "total_tokens": 7,
            "cost": 1,
            "prompt_tokens_details": {"cached_tokens": 1, "audio_tokens": 2},
        },
    },
]

CHAT_STEPS = [
    ("start", 0),
    ("delta", 0, "hm"),
    ("delta", 0, "m"),
    ("end", 0),
    ("start", 1),
    ("delta", 1, "d"),
    ("delta", 1, "e"),
    ("end", 1),
    ("start", 2),
    ("end", 2),
    ("start", 3),
    ("delta", 3, "Hel"),
    ("delta", 3, "lo"),
    ("delta", 3, "!"),
    ("end", 3),
    ("start", 4),
    ("end", 4),
    ("start", 5),
    ("delta", 5, "no"),
    ("end", 5),
    ("start", 6),
    ("end", 6),
    ("start", 7),
    ("delta", 7, b"abc"),
    ("start", 8),
    ("delta", 8, "{}"),
    ("end", 8),
    ("start", 9),
    ("end", 9),
    ("start", 10),
    ("delta", 10, '{"a":'),
    ("delta", 10, "1}"),
    ("start", 11),
    ("delta", 11, '{"input":"'),
    ("delta", 11, 'ls \\"'),
    ("start", 12),
    ("delta", 12, "{}"),
    ("end", 10),
    ("delta", 11, '"}'),
    ("end", 11),
    ("end", 12),
    ("end", 7),
]

CHAT_READ = Message(
    Role.MODEL,
    (
        ThinkingPart(text="hmm"),
        ThinkingPart(
            text="de",
            native={
                "openai_chat": {"type": "reasoning.text", "index": 0, "id": "x", "signature": "s"}
            },
        ),
        ThinkingPart(
            text="",
            native={"openai_chat": {"type": "reasoning.encrypted", "data": "z", "index": 1}},
        ),
        TextPart(text="Hello!"),
        ProviderPart(kind="odd", native={"openai_chat": {"type": "odd", "x": 1}}),
        TextPart(text="no", native={"openai_chat:notes": {"spelling": {"field": "refusal"}}}),
        LinkPart(
            url="https://a.test/a.png",
            native={"openai_chat:notes": {"spelling": {"field": "images"}}},
        ),
        DataPart(
            data=b"abc",
            mime_type="audio/pcm",
            native={
                "openai_chat:notes": {"spelling": {"field": "audio"}},
                "openai_chat": {"transcript": "Hi", "id": "a1", "expires_at": 9},
            },
        ),
        ToolCallPart(
            id="i1", name="python", run_by="provider", native={"openai_chat": {"name": "n"}}
        ),
        ToolResultPart(
            id="i1",
            name="python",
            result="1",
            run_by="provider",
            native={"openai_chat": {"took": 2}},
        ),
        ToolCallPart(
            id="c1",
            name="f",
            arguments={"a": 1},
            native={"openai_chat": {"extra_content": {"g": 1}}},
        ),
        ToolCallPart(
            id="c2",
            name="sh",
            arguments={"input": 'ls "'},
            native={"openai_chat:notes": {"spelling": {"type": "custom"}}},
        ),
        ToolCallPart(
            id="i3",
            name="old",
            native={
                "openai_chat": {"id": None},
                "openai_chat:notes": {"spelling": {"field": "function_call"}},
            },
        ),
    ),
    id="i0",
    origin=Origin(
        provider="p", endpoint="https://e", model="asked", served_model="m-2", response_id="r1"
    ),
    finish_reason=FinishReason.tool_calls,
    usage=Usage(input_tokens=3, output_tokens=4, total_tokens=7, cache_read_tokens=1),
    native={
        "openai_chat": {
            "extra_content": {"k": 1},
            "annotations": [{"type": "url_citation", "u": 1}],
        },
        "openai_chat:notes": {
            "message": {"odd": {"y": 1}},
            "response": {
                "created": 7,
                "service_tier": "s",
                "x_groq": {"z": 1},
                "usage": {"cost": 1, "prompt_tokens_details": {"audio_tokens": 2}},
                "logprobs": {"content": [1, 2]},
                "seed": 3,
            },
        },
    },
)

CHAT_DELTAS: list[Any] = [
    {"role": "assistant", "content": ""},
    {"reasoning_content": "hm"},
    {"reasoning_content": "m"},
    {"reasoning_details": [{"type": "reasoning.text", "index": 0, "id": "x", "text": "d"}]},
    {"reasoning_details": [{"type": "reasoning.text", "index": 0, "id": "x", "text": "e"}]},
    {"reasoning_details": [{"type": "reasoning.text", "index": 0, "id": "x", "signature": "s"}]},
    {"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "z"}]},
    {"content": "Hel"},
    {"content": "lo"},
    {"content": "!"},
    {"refusal": "no"},
    {"images": [{"index": 0, "type": "image_url", "image_url": {"url": "https://a.test/a.png"}}]},
    {"executed_tools": [{"index": 0, "type": "python", "arguments": "{}", "name": "n"}]},
    {"executed_tools": [{"index": 0, "type": "python", "name": "n", "output": "1", "took": 2}]},
    {
        "tool_calls": [
            {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
        ]
    },
    {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]},
    {"function_call": {"name": "old", "arguments": ""}},
    {"function_call": {"arguments": "{}"}},
    {"tool_calls": [{"index": 0, "extra_content": {"g": 1}}]},
    {
        "tool_calls": [
            {"index": 1, "id": "c2", "type": "custom", "custom": {"name": "sh", "input": 'ls "'}}
        ]
    },
    {"audio": {"id": "a1", "data": "YWJj", "expires_at": 9, "transcript": "Hi"}},
    {
        "odd": {"y": 1},
        "extra_content": {"k": 1},
        "annotations": [{"index": 0, "type": "url_citation", "u": 1}],
    },
]

CHAT_END: list[Any] = [
    {
        "id": "r1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m-1",
        "service_tier": "s",
        "x_groq": {"z": 1},
        "choices": [
            {
                "index": 0,
                "delta": {},
                "logprobs": {"content": [1, 2]},
                "seed": 3,
                "finish_reason": "tool_calls",
            }
        ],
    },
    {
        "id": "r1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m-1",
        "service_tier": "s",
        "x_groq": {"z": 1},
        "choices": [],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 4,
            "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 1, "audio_tokens": 2},
            "cost": 1,
        },
    },
]

CHAT_WHOLE: dict[str, Any] = {
    "id": "r1",
    "object": "chat.completion",
    "created": 1,
    "model": "m-1",
    "service_tier": "s",
    "x_groq": {"z": 1},
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Hello!",
                "refusal": "no",
                "reasoning_content": "hmm",
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "index": 0,
                        "id": "x",
                        "text": "de",
                        "signature": "s",
                    },
                    {"type": "reasoning.encrypted", "index": 1, "data": "z"},
                ],
                "images": [{"type": "image_url", "image_url": {"url": "https://a.test/a.png"}}],
                "executed_tools": [
                    {
                        "index": 0,
                        "type": "python",
                        "arguments": "{}",
                        "name": "n",
                        "output": "1",
                        "took": 2,
                    }
                ],
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a":1}'},
                        "extra_content": {"g": 1},
                    },
                    {"id": "c2", "type": "custom", "custom": {"name": "sh", "input": 'ls "'}},
                ],
                "function_call": {"name": "old", "arguments": "{}"},
                "audio": {"id": "a1", "data": "YWJj", "expires_at": 9, "transcript": "Hi"},
                "odd": {"y": 1},
                "extra_content": {"k": 1},
                "annotations": [{"type": "url_citation", "u": 1}],
            },
            "logprobs": {"content": [1, 2]},
            "seed": 3,
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 1, "audio_tokens": 2},
        "cost": 1,
    },
}

MISTRAL_SAID: list[Any] = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
    chunk(
        {
            "content": [
                {
                    "type": "thinking",
                    "thinking": [{"type": "text", "text": "m"}, {"type": "text", "text": ""}],
                }
            ]
        }
    ),
    chunk(
        {
            "content": [
                {
                    "type": "thinking",
                    "thinking": [
                        {"type": "text", "text": "."},
                        {"type": "reference", "reference_ids": [1]},
                        {"type": "text", "text": "!"},
                    ],
                    "closed": True,
                    "signature": "s",
                }
            ]
        }
    ),
    chunk({"content": [{"type": "thinking", "thinking": []}]}),
    chunk({"content": [{"type": "thinking", "thinking": "two", "closed": False}]}),
    chunk({"content": [{"type": "text", "text": "Hel", "y": 2}]}),
    chunk({"content": "lo"}),
    chunk({"content": [{"type": "reference", "reference_ids": [2]}]}),
    chunk(
        {
            "content": "",
            "tool_calls": [
                {"id": "null", "index": 0, "function": {"name": "f", "arguments": '{"a":'}}
            ],
        }
    ),
    chunk(
        {
            "content": "",
            "tool_calls": [
                {"id": "null", "index": 0, "function": {"name": "", "arguments": "1}"}, "w": 1}
            ],
        }
    ),
    chunk(
        {
            "tool_calls": [
                {
                    "id": "ran000000",
                    "index": 1,
                    "type": "function",
                    "function": {"name": "web", "arguments": "{}"},
                }
            ]
        }
    ),
    {
        "id": "r1",
        "choices": [
            {
                "index": 0,
                "messages": [
                    {"role": "tool", "tool_call_id": "ran000000", "content": "out", "name": "web"},
                    {"role": "assistant", "content": "after", "odd": 2},
                ],
                "finish_reason": None,
            }
        ],
    },
    chunk({"content": "", "metadata": {"z": 1}}, logprobs={"content": [1]}),
    chunk({"content": ""}, "tool_calls", logprobs={"content": [2]}),
    {
        "id": "other",
        "model": "m-2",
        "choices": [],
        "p": "xx",
        "service": "s",
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 4,
            "total_tokens": 7,
            "num_cached_tokens": 2,
            "seconds": 5,
            "prompt_tokens_details": {"audio": 1},
        },
    },
]

MISTRAL_STEPS = [
    ("start", 0),
    ("delta", 0, "hm"),
    ("delta", 0, "m"),
    ("delta", 0, "."),
    ("delta", 0, "!"),
    ("end", 0),
    ("start", 1),
    ("delta", 1, "two"),
    ("end", 1),
    ("start", 2),
    ("delta", 2, "Hel"),
    ("delta", 2, "lo"),
    ("end", 2),
    ("start", 3),
    ("end", 3),
    ("start", 4),
    ("delta", 4, '{"a":'),
    ("delta", 4, "1}"),
    ("start", 5),
    ("delta", 5, "{}"),
    ("end", 5),
    ("start", 6),
    ("end", 6),
    ("start", 7),
    ("delta", 7, "after"),
    ("end", 7),
    ("end", 4),
]

MISTRAL_READ = Message(
    Role.MODEL,
    (
        ThinkingPart(
            text="hmm.!",
            native={
                "mistral:notes": {
                    "spelling": {"items": [4, {"type": "reference", "reference_ids": [1]}, 1]}
                },
                "mistral": {"signature": "s", "closed": True},
            },
        ),
        ThinkingPart(text="two", native={"mistral": {"closed": False}}),
        TextPart(text="Hello", native={"mistral": {"y": 2}}),
        ProviderPart(
            kind="reference", native={"mistral": {"type": "reference", "reference_ids": [2]}}
        ),
        ToolCallPart(
            id="i1", name="f", arguments={"a": 1}, native={"mistral": {"id": None, "w": 1}}
        ),
        ToolCallPart(id="ran000000", name="web", run_by="provider"),
        ToolResultPart(id="ran000000", name="web", result="out", run_by="provider"),
        TextPart(text="after"),
    ),
    id="i0",
    origin=Origin(
        provider="p", endpoint="https://e", model="asked", served_model="m-2", response_id="r1"
    ),
    finish_reason=FinishReason.tool_calls,
    usage=Usage(input_tokens=3, output_tokens=4, total_tokens=7, cache_read_tokens=2),
    native={
        "mistral:notes": {
            "message": {"odd": 2, "metadata": {"z": 1}},
            "response": {
                "created": 7,
                "service": "s",
                "usage": {"seconds": 5, "prompt_tokens_details": {"audio": 1}},
                "logprobs": {"content": [1, 2]},
            },
        }
    },
)

MISTRAL_DELTAS: list[Any] = [
    {"role": "assistant", "content": ""},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "m"}]}]},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "."}]}]},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "!"}]}]},
    {"content": [{"type": "thinking", "thinking": [], "signature": "s", "closed": True}]},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "two"}]}]},
    {"content": [{"type": "thinking", "thinking": [], "closed": False}]},
    {"content": "Hel"},
    {"content": "lo"},
    {"content": [{"type": "reference", "reference_ids": [2]}]},
    {"content": "after"},
    {
        "tool_calls": [
            {
                "id": "i1",
                "type": "function",
                "function": {"name": "f", "arguments": '{"a":1}'},
                "w": 1,
                "index": 0,
            }
        ]
    },
    {"content": "", "odd": 2, "metadata": {"z": 1}},
]

MISTRAL_END: list[Any] = [
    {
        "id": "r1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m-1",
        "service": "s",
        "choices": [
            {
                "index": 0,
                "delta": {"content": ""},
                "logprobs": {"content": [1, 2]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 4,
            "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 2, "audio": 1},
            "seconds": 5,
        },
    }
]

MISTRAL_WHOLE: dict[str, Any] = {
    "id": "r1",
    "object": "chat.completion",
    "created": 1,
    "model": "m-2",
    "service": "s",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": [
                    {
                        "type": "thinking",
                        "thinking": [
                            {"type": "text", "text": "hmm."},
                            {"type": "reference", "reference_ids": [1]},
                            {"type": "text", "text": "!"},
                        ],
                        "signature": "s",
                        "closed": True,
                    },
                    {
                        "type": "thinking",
                        "thinking": [{"type": "text", "text": "two"}],
                        "closed": False,
                    },
                    {"type": "text", "text": "Hello", "y": 2},
                    {"type": "reference", "reference_ids": [2]},
                    {"type": "text", "text": "after"},
                ],
                "tool_calls": [
                    {
                        "id": "i1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a":1}'},
                        "w": 1,
                        "index": 0,
                    }
                ],
                "odd": 2,
                "metadata": {"z": 1},
            },
            "logprobs": {"content": [1, 2]},
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 2, "audio": 1},
        "seconds": 5,
    },
}

CASES = [
    pytest.param(
        "openai_chat",
        CHAT_SAID,
        CHAT_STEPS,
        CHAT_READ,
        CHAT_DELTAS,
        CHAT_END,
        CHAT_WHOLE,
        id="openai_chat",
    ),
    pytest.param(
        "mistral",
        MISTRAL_SAID,
        MISTRAL_STEPS,
        MISTRAL_READ,
        MISTRAL_DELTAS,
        MISTRAL_END,
        MISTRAL_WHOLE,
        id="mistral",
    ),
]
every = pytest.mark.parametrize(
    ("name", "said", "steps", "message", "deltas", "end", "whole"), CASES
)


def step(event: PartStarted | PartDelta | PartFinished) -> tuple[Any, ...]:
    if isinstance(event, PartDelta):
        return "delta", event.index, event.delta
    return "start" if isinstance(event, PartStarted) else "end", event.index


def read(name: str, said: list[Any], size: int) -> list[Event]:
    numbers = iter(range(99))
    decoder = wires.get(name).decoder(
        origin=Origin("p", "https://e", "asked"), new_id=lambda: f"i{next(numbers)}"
    )
    data = b"".join([b"data: " + json.dumps(one).encode() + b"\n\n" for one in said]) + DONE
    return [
        event for at in range(0, len(data), size) for event in decoder.feed(data[at : at + size])
    ] + decoder.close()


def sent(name: str, events: list[Event]) -> list[Any]:
    encoder = wires.get(name).encoder(created=1)
    data = b"".join(map(encoder.feed, events)) + encoder.close()
    assert data.endswith(DONE)
    return [json.loads(line[6:]) for line in data.removesuffix(DONE).decode().split("\n\n") if line]


@every
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_a_stream_is_read_to_the_last_field(
    name: str, said: Any, steps: Any, message: Any, deltas: Any, end: Any, whole: Any, size: int
) -> None:
    events = read(name, said, size)
    assert [
        step(one) for one in events if isinstance(one, (PartStarted, PartDelta, PartFinished))
    ] == steps
    assert fold(events) == [message]


@every
def test_and_written_to_the_last_field(
    name: str, said: Any, steps: Any, message: Any, deltas: Any, end: Any, whole: Any
) -> None:
    events = read(name, said, 1 << 20)
    *chunks, last, counts = sent(name, events) if len(end) == 2 else [*sent(name, events), None]
    head = {"id": "r1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
    for one, delta in zip(chunks, deltas, strict=True):
        assert one == {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    assert [last, counts][: len(end)] == end
    assert wires.get(name).dump_response(events, created=1) == whole
    stored = unfold([Message.from_json(message.to_json())])
    assert {**wires.get(name).dump_response(stored, created=1), "model": ""} == {
        **whole,
        "model": "",
    }


@pytest.mark.parametrize(
    ("name", "whole"), [("openai_chat", CHAT_WHOLE), ("mistral", MISTRAL_WHOLE)]
)
def test_a_whole_answer_is_written_as_it_was_read(name: str, whole: dict[str, Any]) -> None:
    wire, whole = wires.get(name), json.loads(json.dumps(whole))
    whole["choices"][0]["message"].pop(
        "reasoning_content", None
    )  # beside details it only repeats them
    assert wire.dump_response(wire.load_response(whole)) == whole
