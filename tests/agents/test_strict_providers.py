"""The scripted providers refuse what the real ones refuse, so that a cell that is well says something."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from agents.anthropic_api import AnthropicApi
from agents.gemini_api import GeminiApi
from agents.openai_chat_api import ChatApi
from agents.openai_responses_api import ResponsesApi
from agents.provider import Refused, check_pairs, sign

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
HEADERS = {
    "authorization": "Bearer provider-key",
    "x-api-key": "provider-key",
    "x-goog-api-key": "provider-key",
    "anthropic-version": "2023-06-01",
}
GOOD: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "anthropic": (
        AnthropicApi(),
        "/v1/messages",
        {
            "model": "m",
            "max_tokens": 99,
            "thinking": {"type": "adaptive"},
            "tools": [{"name": "read", "input_schema": SCHEMA}],
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "thinking",
                            "thinking": "Hm.",
                            "signature": sign("anthropic", "Hm."),
                        },
                        {"type": "tool_use", "id": "t1", "name": "read", "input": {}},
                    ],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}],
                },
            ],
        },
    ),
    "openai_chat": (
        ChatApi(),
        "/v1/chat/completions",
        {
            "model": "m",
            "tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}],
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "id": "t1",
                            "type": "function",
                            "function": {"name": "read", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "t1", "content": "x"},
            ],
        },
    ),
    "openai_responses": (
        ResponsesApi(),
        "/v1/responses",
        {
            "model": "m",
            "store": False,
            "tools": [{"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}],
            "input": [
                {"role": "user", "content": "hi"},
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [],
                    "encrypted_content": sign("responses", "rs_1"),
                },
                {
                    "type": "function_call",
                    "id": "fc_1_0",
                    "call_id": "t1",
                    "name": "read",
                    "arguments": "{}",
                },
                {"type": "function_call_output", "call_id": "t1", "output": "x"},
            ],
        },
    ),
    "google": (
        GeminiApi(),
        "/v1beta/models/m:streamGenerateContent",
        {
            "tools": [{"functionDeclarations": [{"name": "read", "parameters": SCHEMA}]}],
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {
                    "role": "model",
                    "parts": [
                        {
                            "functionCall": {"name": "read", "args": {}, "id": "t1"},
                            "thoughtSignature": sign("gemini", "read"),
                        }
                    ],
                },
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"name": "read", "id": "t1", "response": {"a": 1}}}
                    ],
                },
            ],
        },
    ),
}


def read(name: str, change: Callable[[dict[str, Any]], object] = lambda body: None) -> None:
    api, path, body = GOOD[name]
    body = copy.deepcopy(body)
    change(body)
    check_pairs(api.read(body, HEADERS, path).turns)


@pytest.mark.parametrize("name", list(GOOD))
def test_a_good_request_passes(name: str) -> None:
    read(name)


BAD: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "no result": ("anthropic", lambda b: b["messages"].pop()),
    "no result in chat": ("openai_chat", lambda b: b["messages"].pop()),
    "no result in Responses": ("openai_responses", lambda b: b["input"].pop()),
    "no result in Gemini": ("google", lambda b: b["contents"].pop()),
    "a strange result": (
        "openai_chat",
        lambda b: b["messages"][2].update(tool_call_id="t2"),
    ),
    "altered thinking": (
        "anthropic",
        lambda b: b["messages"][1]["content"][0].update(thinking="Ha."),
    ),
    "lost thinking": ("anthropic", lambda b: b["messages"][1]["content"].pop(0)),
    "five marks": (
        "anthropic",
        lambda b: b.update(
            system=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 5
        ),
    ),
    "a budget": ("anthropic", lambda b: b.update(thinking={"type": "enabled", "budget_tokens": 9})),
    "sampling": ("anthropic", lambda b: b.update(top_p=0.5)),
    "a beta field without its header": ("anthropic", lambda b: b.update(context_management={})),
    "an old field": ("openai_chat", lambda b: b.update(max_tokens=9)),
    "an image in a result": (
        "openai_chat",
        lambda b: b["messages"][2].update(content=[{"type": "image_url", "image_url": {}}]),
    ),
    "no tools": ("openai_chat", lambda b: b.update(tools=[])),
    "lost reasoning": ("openai_responses", lambda b: b["input"].pop(1)),
    "reasoning alone": ("openai_responses", lambda b: b["input"].insert(3, b["input"].pop(1))),
    "a strict schema with open objects": (
        "openai_responses",
        lambda b: b["tools"][0].pop("strict"),
    ),
    "a stored conversation": ("openai_responses", lambda b: b.pop("store")),
    "a lost signature": ("google", lambda b: b["contents"][1]["parts"][0].pop("thoughtSignature")),
    "a result twice in Gemini": (
        "google",
        lambda b: b["contents"][2].update(parts=b["contents"][2]["parts"] * 2),
    ),
    "a corrupted signature": (
        "google",
        lambda b: b["contents"][1]["parts"][0].update(thoughtSignature="eA=="),
    ),
    "a field of JSON Schema": (
        "google",
        lambda b: b["tools"][0]["functionDeclarations"][0].update(
            parameters={**SCHEMA, "$schema": "https://json-schema.org"}
        ),
    ),
    "an unknown field": ("google", lambda b: b.update(metadata={})),
    "a role": ("google", lambda b: b["contents"][0].update(role="system")),
}


@pytest.mark.parametrize("case", list(BAD))
def test_a_bad_one_is_refused(case: str) -> None:
    name, change = BAD[case]
    with pytest.raises(Refused):
        read(name, change)
