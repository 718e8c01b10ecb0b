"""What providers' lists of models say of what each accepts."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from dragoman.model.profile_from_list import load_listed_profile
from dragoman.model_profile import ModelProfile
from support.traffic import exchanges

YES, NO = {"supported": True}, {"supported": False}


@pytest.mark.parametrize(
    ("fields", "profile"),
    [
        (
            {
                "max_input_tokens": 1_000_000,
                "max_tokens": 128_000,
                "capabilities": {
                    "effort": {"low": YES, "medium": YES, "high": YES, "xhigh": YES, "max": NO},
                    "image_input": YES,
                    "pdf_input": NO,
                    "structured_outputs": YES,
                    "thinking": {"supported": True, "types": {"adaptive": YES, "enabled": NO}},
                },
            },
            ModelProfile(
                input=1_000_000, output=128_000, schema=True, ways=("adaptive",),
                efforts=("low", "medium", "high", "xhigh"), inputs=("image",),
            ),
        ),
        # a list that does not speak of an effort is old, and says nothing of efforts
        ({"capabilities": {"effort": {"low": YES, "medium": YES, "high": YES, "max": YES}}}, None),
        (
            {"max_context_length": 131_072, "deprecation": "2026-05-31T12:00:00Z",
             "capabilities": {"vision": True, "function_calling": True, "completion_chat": True}},
            ModelProfile(window=131_072, inputs=("image",), tools=True, retires=date(2026, 5, 31)),
        ),
        (
            {"inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536, "maxTemperature": 2, "thinking": True},
            ModelProfile(input=1_048_576, output=65_536, ranges={"temperature": (0, 2)}),
        ),
        (
            {"context_length": 200_000, "architecture": {"input_modalities": ["text", "image", "file"]},
             "top_provider": {"max_completion_tokens": 64_000},
             "reasoning": {"mandatory": True, "supported_efforts": ["low", "high"]}},
            ModelProfile(
                window=200_000, output=64_000, inputs=("image", "pdf"), thinks="always", efforts=("low", "high"),
            ),
        ),
        (
            {"context_window": 131_072, "max_completion_tokens": 65_536, "input_modalities": ["text"],
             "supported_features": ["tools", "structured_outputs"]},
            ModelProfile(window=131_072, output=65_536, schema=True, tools=True),
        ),
        ({"features": ["tools", "vision"], "is_deprecated": True}, ModelProfile(tools=True, inputs=("image",), retired=True)),
        ({"capabilities": ["completion", "tools"]}, ModelProfile(tools=True)),
        ({"meta": {"n_ctx": 4096}}, ModelProfile(window=4096)),
        ({"id": "gpt-4o", "owned_by": "openai"}, None),
        ({"max_tokens": "many", "capabilities": 7, "context_length": True, "expiration_date": "soon"}, None),
    ],
)  # fmt: skip
def test_each_shape_is_read(fields: dict[str, Any], profile: ModelProfile | None) -> None:
    assert load_listed_profile(fields) == profile


def test_recorded_lists_agree_with_the_table() -> None:
    """Where both speak of how a model thinks, and of its limits."""
    from dragoman import profiles

    compared = 0
    for exchange in exchanges("anthropic", "google"):
        if "/models" not in (exchange.url or "") or exchange.request or exchange.status != 200:
            continue
        if not exchange.body.startswith(b"{"):
            continue
        body = json.loads(exchange.body)
        for entry in body.get("data") or body.get("models") or []:
            listed = load_listed_profile(entry)
            name = (entry.get("id") or entry.get("name", "")).removeprefix("models/")
            table = profiles.get(f"{exchange.vendor}:{name}")
            if listed is None or listed.ways is None or table.ways is None:
                continue
            compared += 1
            assert listed.ways == table.ways, name
    assert compared > 5
