"""Streamed answers of every wire, as its documentation shows them: made here, recorded nowhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["CALLS", "TEXT", "WIRES", "tool_round", "words"]

_WORDS = (
    "The ",
    "quic",
    "k br",
    "own ",
    "fox ",
    "jump",
    "s ov",
    "er t",
    "he l",
    "azy ",
    "dog.",
    ' "Q"',
    "ué—1",
    "and\n",
)
_USAGE = {"prompt_tokens": 23, "completion_tokens": 412, "total_tokens": 435}
CALLS = [
    {"place": place, "number": number}
    for number, place in enumerate(("Amsterdam, NL", "Kyoto, JP", "Oslo, NO"))
]
"""The arguments of the calls in a tool round."""


def words(n: int) -> list[str]:
    return [_WORDS[i % len(_WORDS)] for i in range(n)]


def event(data: Any, *, named: bool = False) -> bytes:
    """A Server-Sent Event; `named`: it repeats its type in a field of its own."""
    head = b"event: " + data["type"].encode() + b"\n" if named else b""
    return (
        head
        + b"data: "
        + json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()
        + b"\n\n"
    )


_END = b"data: [DONE]\n\n"


def openai_chat(texts: list[str]) -> list[bytes]:
    chunks = [
        _chat({"role": "assistant", "content": "", "refusal": None}),
        *[_chat({"content": t}) for t in texts],
    ]
    return [*chunks, _chat({}, "stop"), _chat(None), _END]


def _chat(delta: dict[str, Any] | None, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1763760000,
        "model": "gpt-4o-2024-08-06",
    }
    around = {"service_tier": "default", "system_fingerprint": "fp_1", "obfuscation": "aB3xYz"}
    usage = _USAGE if delta is None else None
    return event(
        {**head, **around, "choices": [choice] if delta is not None else [], "usage": usage}
    )


def tool_round() -> list[bytes]:
    """Three calls side by side, their arguments in pieces of four characters (openai_chat)."""
    chunks: list[bytes] = []
    for index, arguments in enumerate(CALLS):
        function = {"name": "look", "arguments": ""}
        call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        chunks.append(
            _chat(
                {"role": "assistant", "content": None, "tool_calls": [call]}
                if not index
                else {"tool_calls": [call]}
            )
        )
        text = json.dumps(arguments)
        for start in range(0, len(text), 4):
            piece = {"index": index, "function": {"arguments": text[start : start + 4]}}
            chunks.append(_chat({"tool_calls": [piece]}))
    return [*chunks, _chat({}, "tool_calls"), _chat(None), _END]


def openai_responses(texts: list[str]) -> list[bytes]:
    out: list[bytes] = []
    place: dict[str, Any] = {"item_id": "msg_1", "output_index": 0, "content_index": 0}

    def say(kind: str, **told: Any) -> None:
        out.append(event({"type": kind, "sequence_number": len(out), **told}, named=True))

    def response(status: str, **told: Any) -> dict[str, Any]:
        head = {
            "id": "resp_1",
            "object": "response",
            "created_at": 1763760000,
            "model": "gpt-4o-2024-08-06",
        }
        return {
            **head,
            "status": status,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "output": [],
            **told,
        }

    said = {"type": "output_text", "annotations": [], "logprobs": [], "text": "".join(texts)}
    item = {"id": "msg_1", "type": "message", "role": "assistant"}
    done = {**item, "status": "completed", "content": [said]}
    usage = {"input_tokens": 23, "output_tokens": 412, "total_tokens": 435}
    say("response.created", response=response("in_progress"))
    say("response.in_progress", response=response("in_progress"))
    say(
        "response.output_item.added",
        output_index=0,
        item={**item, "status": "in_progress", "content": []},
    )
    say("response.content_part.added", **place, part={**said, "text": ""})
    for text in texts:
        say("response.output_text.delta", **place, delta=text, logprobs=[], obfuscation="aB3xYz")
    say("response.output_text.done", **place, text=said["text"], logprobs=[])
    say("response.content_part.done", **place, part=said)
    say("response.output_item.done", output_index=0, item=done)
    say("response.completed", response=response("completed", output=[done], usage=usage))
    return out


def anthropic(texts: list[str]) -> list[bytes]:
    head = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [],
    }
    usage = {"input_tokens": 23, "output_tokens": 1}
    start = {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}
    block, stop = {"type": "text", "text": ""}, {"stop_reason": "end_turn", "stop_sequence": None}
    events = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "ping"},
        *[
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": t}}
            for t in texts
        ],
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 412}},
        {"type": "message_stop"},
    ]
    return [event(one, named=True) for one in events]


def google(texts: list[str]) -> list[bytes]:
    def chunk(text: str, count: int, **told: Any) -> bytes:
        usage = {
            "promptTokenCount": 23,
            "candidatesTokenCount": count,
            "totalTokenCount": 23 + count,
        }
        candidate = {"content": {"parts": [{"text": text}], "role": "model"}, **told, "index": 0}
        names = {"modelVersion": "gemini-2.5-flash", "responseId": "mAitaLmkHPPlz7IPvtfUqQ4"}
        body = {"candidates": [candidate], "usageMetadata": usage, **names}
        return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\r\n\r\n"

    return [
        *[chunk(text, i + 1) for i, text in enumerate(texts)],
        chunk("", len(texts), finishReason="STOP"),
    ]


def mistral(texts: list[str]) -> list[bytes]:
    def chunk(delta: dict[str, Any], reason: str | None = None, **told: Any) -> bytes:
        head = {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1763760000,
            "model": "mistral-large-latest",
        }
        return event(
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **told}
        )

    first = chunk({"role": "assistant", "content": ""})
    return [
        first,
        *[chunk({"content": text}) for text in texts],
        chunk({"content": ""}, "stop", usage=_USAGE),
        _END,
    ]


def cohere(texts: list[str]) -> list[bytes]:
    message = {
        "role": "assistant",
        "content": [],
        "tool_plan": "",
        "tool_calls": [],
        "citations": [],
    }
    usage = {
        "billed_units": {"input_tokens": 23, "output_tokens": 412},
        "tokens": {"input_tokens": 23, "output_tokens": 412},
    }
    block = {"type": "text", "text": ""}
    events = [
        {
            "id": "29f14a5a-11de-4cae-9800-25e4747408ea",
            "type": "message-start",
            "delta": {"message": message},
        },
        {"type": "content-start", "index": 0, "delta": {"message": {"content": block}}},
        *[
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": text}}}}
            for text in texts
        ],
        {"type": "content-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}},
    ]
    return [event(one, named=True) for one in events] + [_END]


def ollama(texts: list[str]) -> list[bytes]:
    def line(text: str, *, done: bool = False, **told: Any) -> bytes:
        head = {"model": "llama3.2", "created_at": "2025-11-22T00:00:00.314639Z"}
        body = {**head, "message": {"role": "assistant", "content": text}, "done": done, **told}
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"

    counts = {"total_duration": 3722518334, "prompt_eval_count": 23, "eval_count": 412}
    return [*map(line, texts), line("", done=True, done_reason="stop", **counts)]


WIRES: dict[str, Callable[[list[str]], list[bytes]]] = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic": anthropic,
    "google": google,
    "mistral": mistral,
    "cohere": cohere,
    "ollama": ollama,
}
TEXT = words(1000)
