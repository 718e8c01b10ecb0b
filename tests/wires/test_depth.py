"""What nests too deep ends in an answer or in an error of ours, wherever it stands in the event
that a stream mostly consists of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman import wires

USUAL: dict[str, Any] = {
    "anthropic": {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "a"},
    },
    "cohere": {
        "type": "content-delta",
        "index": 0,
        "delta": {"message": {"content": {"text": "a"}}},
    },
    "google": {
        "candidates": [{"content": {"parts": [{"text": "a"}], "role": "model"}}],
        "usageMetadata": {"a": 1},
    },
    "mistral": {
        "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}],
        "usage": None,
    },
    "ollama": {
        "message": {"role": "assistant", "content": "a"},
        "model": "m",
        "created_at": "x",
        "done": False,
    },
    "openai_chat": {
        "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}],
        "usage": None,
    },
    "openai_responses": {
        "type": "response.output_text.delta",
        "delta": "a",
        "output_index": 0,
        "content_index": 0,
        "logprobs": [],
    },
}
HERE = "here it stands"


def replaced(value: Any) -> Iterator[Any]:
    """The value with `HERE` in the place of each of its pieces, and as a further field of each
    object."""
    yield HERE
    if isinstance(value, dict):
        yield {**value, "further": HERE}
        for name, inner in value.items():
            yield from ({**value, name: other} for other in replaced(inner))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from ([*value[:place], other, *value[place + 1 :]] for other in replaced(inner))


def turned(value: Any) -> Any:
    """The value with the fields of its objects in the opposite order."""
    if isinstance(value, dict):
        return {name: turned(inner) for name, inner in reversed(value.items())}
    return [turned(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "deep", [b"[" * 3000 + b"]" * 3000, b'{"text":' * 3000 + b"0" + b"}" * 3000], ids=["[", "{"]
)
@pytest.mark.parametrize("name", sorted(USUAL))
def test_d6_no_depth_makes_a_decoder_raise(name: str, deep: bytes) -> None:
    for event in replaced(USUAL[name]):
        for each in (event, turned(event)):
            line = json.dumps(each).encode().replace(json.dumps(HERE).encode(), deep)
            decoder = wires.get(name).decoder()
            assert [
                *decoder.feed(line + b"\n" if name == "ollama" else b"data: " + line + b"\n\n"),
                *decoder.close(),
            ]
