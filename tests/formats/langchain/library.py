"""Run in LangChain's own environment: `write` prints conversations that its classes made, `decode`
those that its models read from recorded responses, `read` says what it makes of conversations of
ours."""

from __future__ import annotations

import json
import sys
from typing import Any

import anthropic
import openai
from langchain_anthropic import ChatAnthropic
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    ToolMessageChunk,
    message_to_dict,
    messages_from_dict,
)
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import _construct_lc_result_from_responses_api

PNG = "iVBORw0KGgo="


def versions(messages: list[BaseMessage]) -> list[Any]:
    """One conversation in each form in which it is stored."""
    written = [[message_to_dict(each) for each in messages], [dumpd(each) for each in messages]]
    return json.loads(json.dumps([*written, [each.model_dump() for each in messages]]))


def write() -> list[Any]:
    calls = [
        {"name": "look", "args": {"at": 1}, "id": "c1"},
        {"name": "see", "args": {}, "id": "c2"},
    ]
    talk = [
        SystemMessage("Be brief."),
        HumanMessage("Hi.", name="bob", id="h1"),
        AIMessage("I look.", tool_calls=calls, id="run-1"),
        ToolMessage("seen", tool_call_id="c1", name="look", id="t1"),
        ToolMessage("no", tool_call_id="c2", status="error", artifact={"rows": [1]}),
        AIMessage(
            "Done.", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
        ),
        HumanMessage(
            [
                {"type": "text", "text": "See"},
                {"type": "image", "base64": PNG, "mime_type": "image/png"},
                {
                    "type": "file",
                    "base64": PNG,
                    "mime_type": "application/pdf",
                    "extras": {"filename": "a.pdf"},
                },
                {"type": "image_url", "image_url": {"url": "https://a.test/b", "detail": "low"}},
                "A string",
            ]
        ),
        AIMessage(
            "", invalid_tool_calls=[{"name": "look", "args": '{"a', "id": "c3", "error": "no JSON"}]
        ),
        AIMessage("", additional_kwargs={"function_call": {"name": "old", "arguments": "{}"}}),
        FunctionMessage("r", name="old"),
        ChatMessage("c", role="critic"),
        RemoveMessage(id="h1"),
        AIMessage(
            content_blocks=[
                {"type": "reasoning", "reasoning": "Hm."},
                {"type": "text", "text": "Ah."},
            ]
        ),
    ]
    parts = [
        AIMessageChunk(
            "",
            tool_call_chunks=[{"name": "look", "args": '{"at"', "id": "c1", "index": 0}],
            id="r1",
        ),
        AIMessageChunk(
            "", tool_call_chunks=[{"name": None, "args": ":1}", "id": None, "index": 0}]
        ),
    ]
    thinks = [
        AIMessageChunk([{"type": "thinking", "thinking": "Hm.", "index": 0}]),
        AIMessageChunk([{"type": "thinking", "signature": "c2ln", "index": 0}]),
        AIMessageChunk([{"type": "text", "text": "Ah.", "index": 1}]),
    ]
    chunks = [
        parts[0],
        parts[0] + parts[1],
        thinks[0] + thinks[1] + thinks[2],
        HumanMessageChunk("x"),
    ]
    return [*versions(talk), *versions([*chunks, ToolMessageChunk("x", tool_call_id="c1")])]


def decode(responses: list[Any]) -> list[Any]:
    """(wire, body) → for each that its models can read: wire, body, and the message in each form,
    as it is and in the standard one."""
    claude, gpt = ChatAnthropic(model="m", api_key="k"), ChatOpenAI(model="m", api_key="k")
    out: list[Any] = []
    for wire, body in responses:
        try:
            if wire == "anthropic":
                result: Any = claude._format_output(anthropic.types.Message.model_validate(body))
            elif wire == "openai_responses":
                response = openai.types.responses.Response.model_validate(body)
                result = _construct_lc_result_from_responses_api(
                    response, output_version="responses/v1"
                )
            else:
                result = gpt._create_chat_result(
                    openai.types.chat.ChatCompletion.model_validate(body)
                )
            message = result.generations[0].message
            standard = AIMessage(
                content=message.content_blocks,
                tool_calls=message.tool_calls,
                response_metadata={**message.response_metadata, "output_version": "v1"},
            )
            out.append([wire, body, [*versions([message]), *versions([standard])]])
        except Exception:
            continue
    return out


def read(conversations: list[Any]) -> list[Any]:
    """What it writes of each conversation again, having made standard blocks of it too."""
    out: list[Any] = []
    for conversation in conversations:
        messages = messages_from_dict(conversation)
        for message in messages:
            _ = message.content_blocks
        out.append([message_to_dict(message) for message in messages])
    return out


if __name__ == "__main__":
    print(
        json.dumps(
            write() if sys.argv[1] == "write" else globals()[sys.argv[1]](json.load(sys.stdin))
        )
    )
