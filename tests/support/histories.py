"""Conversations to switch providers with: neutral ones of every kind, and ones in each wire's own
language."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from dragoman import wires
from dragoman.message import (
    DataPart,
    FilePart,
    FinishReason,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ToolSpec

__all__ = ["NATIVE", "NEUTRAL", "called", "declared", "native"]

PNG = b"\x89PNG\r\n\x1a\n picture"
PDF = b"%PDF-1.7 page"
WAV = b"RIFF\x04\0\0\0WAVE sound"
_ASK, _MORE = Message.user("What is it?"), Message.user("And now?")


def _call(id_: str, name: str = "look", **arguments: Any) -> ToolCallPart:
    return ToolCallPart(id_, name, arguments)


def _round(
    call: ToolCallPart, result: Any, *, is_error: bool = False, before: tuple[Any, ...] = ()
) -> list[Message]:
    answer = ToolResultPart(call.id, call.name, result, is_error)
    return [Message.model(*before, call), Message.user(answer)]


def _said(*content: Any, **how: Any) -> list[Message]:
    return [_ASK, Message.model(*content).replace(**how), _MORE]


NEUTRAL: dict[str, list[Message]] = {
    "text": [Message.system("Be brief."), _ASK, Message.model("A cat."), _MORE],
    "several texts": [Message.user("one", "two"), Message.model("three", "four"), _MORE],
    "image": [Message.user("See", DataPart(PNG, "image/png")), Message.model("A cat."), _MORE],
    "image of another kind": [Message.user(DataPart(b"MM\0*", "image/tiff"))],
    "image by URL": [Message.user("See", LinkPart("https://host.test/cat.png", "image/png"))],
    "link of no kind": [Message.user("See", LinkPart("https://host.test/cat"))],
    "PDF": [Message.user("Read", DataPart(PDF, "application/pdf", "a.pdf"))],
    "PDF by URL": [Message.user("Read", LinkPart("https://host.test/a.pdf", "application/pdf", "a.pdf"))],
    "audio": [Message.user("Hear", DataPart(WAV, "audio/wav"))],
    "audio by URL": [Message.user("Hear", LinkPart("https://host.test/a.wav", "audio/wav"))],
    "video": [Message.user(DataPart(b"....ftypmp42", "video/mp4"))],
    "text file": [Message.user("Read", DataPart(b"hello", "text/plain", "a.txt"), DataPart(b"\xff\xfe", "text/plain"))],
    "data of no kind": [Message.user(DataPart(b"\0\1", "application/octet-stream"))],
    "file of a provider": [Message.user("Read", FilePart("file-1", "application/pdf", "a.pdf"))],
    "named image": [Message.user(DataPart(PNG, "image/png", "cat.png"))],
    "call": [_ASK, *_round(_call("c1", at="home"), "a cat"), Message.model("A cat."), _MORE],
    "call after text": [_ASK, *_round(_call("c1"), "a cat", before=("I look.",)), _MORE],
    "text after call": [_ASK, Message.model("I look.", _call("c1"), "Wait."), Message.user(ToolResultPart("c1", "look"))],
    "parallel calls": [
        _ASK,
        Message.model(_call("c1", at="home"), _call("c2", "hear"), _call("c3", at="work")),
        Message.user(*(ToolResultPart(*told) for told in (("c3", "look", 3), ("c1", "look", 1), ("c2", "hear", 2)))),
        _MORE,
    ],
    "results and words": [
        _ASK,
        Message.model(_call("c1")),
        Message.user("First", ToolResultPart("c1", "look", "a cat"), "then this.", DataPart(PNG, "image/png")),
    ],
    "results of every kind": [
        message
        for n, result in enumerate(["", "text", None, 0, 1.5, True, [], {}, [1, {"a": None}], {"a": [1]}, '{"a": 1}'])
        for message in _round(_call(f"c{n}"), result)
    ],
    "result of parts": [
        _ASK,
        *_round(_call("c1"), (TextPart("See"), DataPart(PNG, "image/png"), TextPart("and"), TextPart("read"))),
        *_round(_call("c2"), (LinkPart("https://host.test/cat.png", "image/png"), DataPart(PDF, "application/pdf"))),
        *_round(_call("c3"), (DataPart(WAV, "audio/wav"), FilePart("file-1"))),
        _MORE,
    ],
    "failed tools": [
        _ASK,
        *_round(_call("c1"), "it is dark", is_error=True),
        *_round(_call("c2"), {"error": "dark"}, is_error=True),
        *_round(_call("c3"), (TextPart("dark"), DataPart(PNG, "image/png")), is_error=True),
    ],
    "thinking": _said(ThinkingPart("Hm."), "A cat."),
    "thinking alone": _said(ThinkingPart("Hm.")),
    "thinking in a round": [_ASK, *_round(_call("c1"), "a cat", before=(ThinkingPart("Hm."), "I look.")), _MORE],
    "cut answer": _said("A c", finish_reason=FinishReason.length),
    "broken answer": _said("A c", finish_reason=FinishReason.error),
    "cut call": [
        _ASK,
        Message.model("I look.", ToolCallPart("c1", "look", raw='{"at": "ho', state="cut")),
        Message.user("Go on."),
    ],
    "invalid call": [_ASK, *_round(ToolCallPart("c1", "look", raw="[1]", state="invalid"), "no", is_error=True)],
    "refusal": _said("I will not.", finish_reason=FinishReason.refusal),
    "filtered answer": [_ASK, Message.model().replace(finish_reason=FinishReason.content_filter), _MORE],
    "system in the middle": [Message.system("A"), _ASK, Message.model("x"), Message.system("Now B."), _MORE],
    "several systems": [Message.system("A"), Message.system("B", "C"), _ASK],
    "system alone and an image in it": [Message.system("A", DataPart(PNG, "image/png")), _ASK],
    "empty answer": [_ASK, Message.model(), _MORE],
    "empty question": [Message.user(), Message.model("What?"), _MORE],
    "blank text": [Message.user(" "), Message.model("\n"), _MORE],
    "white space at the ends": [Message.user(" a "), Message.model(" b \n"), Message.user("c\n")],
    "model first": [Message.system("A"), Message.model("Welcome."), _ASK],
    "calls first": [*_round(_call("c1"), "a cat"), _MORE],
    "users in a row": [_ASK, _MORE, Message.model("A cat."), _MORE, _ASK],
    "models in a row": [_ASK, Message.model("A"), Message.model("cat."), *_round(_call("c1"), 1), _MORE],
    "calling models in a row": [
        _ASK,
        Message.model(_call("c1")),
        Message.model(_call("c2")),
        Message.user(ToolResultPart("c1", "look", 1), ToolResultPart("c2", "look", 2)),
        _MORE,
    ],
    "repeated ids": [
        _ASK,
        *_round(_call("c1", at="a"), 1),
        *_round(_call("c1", at="b"), 2),
        Message.model(_call("c1", at="c"), _call("c1", at="d")),
        Message.user(ToolResultPart("c1", "look", 3), ToolResultPart("c1", "look", 4)),
    ],
    "empty ids": [
        _ASK,
        Message.model(_call("", at="a"), _call("", "hear")),
        Message.user(ToolResultPart("", "look", 1), ToolResultPart("", "hear", 2)),
        *_round(_call(""), 3),
    ],
    "odd ids": [
        m for id_ in ("a" * 70, "x|y z", "ü", "functions.look:0", "call_" + "9" * 40) for m in _round(_call(id_), id_)
    ],
    "odd names": [
        message
        for n, name in enumerate(("1st", "a.b", "a b", "grüße", "x" * 70, "-a", "a:b", "return_result"))
        for message in _round(_call(f"c{n}", name), n)
    ],
    "orphaned call": [_ASK, Message.model("I look.", _call("c1"), _call("c2")), _MORE],
    "half a round": [_ASK, Message.model(_call("c1"), _call("c2")), Message.user(ToolResultPart("c2", "look", 2)), _MORE],
    "orphaned result": [_ASK, Message.model("x"), Message.user(ToolResultPart("c9", "look", 1), "And?")],
    "result twice": [_ASK, *_round(_call("c1"), 1), Message.user(ToolResultPart("c1", "look", 2))],
    "late result": [_ASK, Message.model(_call("c1")), _MORE, Message.user(ToolResultPart("c1", "look", 1))],
    "result without a name": [_ASK, Message.model(_call("c1")), Message.user(ToolResultPart("c1", "", 1))],
    "run by the provider": _said(
        ToolCallPart("s1", "web_search", {"query": "cat"}, run_by="provider"),
        ToolResultPart("s1", "web_search", [{"url": "https://host.test"}], run_by="provider"),
        "A cat.",
    ),
    "run by the provider, alone": _said(ToolCallPart("s1", "web_search", {"query": "cat"}, run_by="provider")),
    "provider's result in a question": [Message.user(ToolResultPart("s1", "web_search", 1, run_by="provider"), "So?")],
    "block of another provider": _said(ProviderPart("compaction"), "A cat."),
    "media of the model": _said("See", DataPart(PNG, "image/png"), LinkPart("https://host.test/cat.png", "image/png")),
    "calls and results in wrong places": [Message.user(_call("c1"), "x"), Message.model(ToolResultPart("c1", "look"), "y"), _MORE],
}  # fmt: skip

_IMAGE, _DOCUMENT = b64encode(PNG).decode(), b64encode(PDF).decode()
_SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}}

NATIVE: dict[str, list[Any]] = {
    "openai_chat": [
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "name": "ann", "content": [
                {"type": "text", "text": "See"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_IMAGE}", "detail": "low"}},
                {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{_DOCUMENT}", "filename": "a.pdf"}},
                {"type": "input_audio", "input_audio": {"data": b64encode(WAV).decode(), "format": "wav"}},
            ]},
            {"role": "assistant", "content": None, "reasoning_content": "Secret hm.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{ "at": "home" }'}},
                {"id": "call_2", "type": "custom", "custom": {"name": "patch", "input": "a\nb"}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "a cat"}]},
            {"role": "tool", "tool_call_id": "call_2", "content": "done"},
            {"role": "assistant", "content": None, "refusal": "I will not.", "annotations": []},
            {"role": "user", "content": "Why?"},
            {"role": "assistant", "content": "Well.", "audio": {"id": "audio_foreign_1"}, "reasoning_details": [
                {"type": "reasoning.text", "text": "Secret.", "signature": "signature-foreign-chat"},
                {"type": "reasoning.encrypted", "data": "encrypted-foreign-chat", "id": "rs_foreign_chat"},
            ]},
            {"role": "user", "content": "So?"},
        ],
        [
            {"role": "user", "content": "Old"},
            {"role": "assistant", "content": "", "function_call": {"name": "look", "arguments": ""}},
            {"role": "function", "name": "look", "content": "a cat"},
            {"role": "assistant", "content": "Searched.", "executed_tools": [
                {"index": 0, "type": "search", "arguments": "{}", "output": "found it"}
            ]},
            {"role": "user", "content": "So?"},
        ],
    ],
    "openai_responses": [
        {"instructions": "Be brief.", "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "See"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{_IMAGE}", "detail": "low"},
                {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{_DOCUMENT}"},
                {"type": "input_file", "file_url": "https://host.test/a.pdf"},
            ]},
            {"type": "reasoning", "id": "rs_foreign_1", "summary": [{"type": "summary_text", "text": "Secret hm."}],
             "encrypted_content": "encrypted-foreign-responses"},
            {"type": "function_call", "id": "fc_foreign_1", "call_id": "call_1", "name": "look", "arguments": '{"at":"home"}'},
            {"type": "custom_tool_call", "id": "ctc_foreign_1", "call_id": "call_2", "name": "patch", "input": "a\nb"},
            {"type": "function_call_output", "call_id": "call_1", "output": [
                {"type": "input_text", "text": "a cat"}, {"type": "input_image", "image_url": f"data:image/png;base64,{_IMAGE}"}
            ]},
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": "done"},
            {"type": "web_search_call", "id": "ws_foreign_1", "status": "completed", "action": {"type": "search", "query": "cat"}},
            {"type": "message", "id": "msg_foreign_1", "role": "assistant", "status": "completed", "content": [
                {"type": "output_text", "text": "A cat.", "annotations": [
                    {"type": "url_citation", "url": "https://host.test", "title": "t", "start_index": 0, "end_index": 1}
                ]},
                {"type": "refusal", "refusal": "No more."},
            ]},
            {"role": "developer", "content": "Now B."},
            {"role": "user", "content": "So?"},
        ]},
        {"input": [
            {"role": "user", "content": "Compute"},
            {"type": "reasoning", "id": "rs_foreign_2", "summary": []},
            {"type": "code_interpreter_call", "id": "ci_foreign_1", "code": "1+1", "container_id": "cntr_foreign",
             "status": "completed", "outputs": [{"type": "logs", "logs": "2"}]},
            {"type": "image_generation_call", "id": "ig_foreign_1", "status": "completed", "result": _IMAGE},
            {"type": "mcp_call", "id": "mcp_foreign_1", "name": "find", "arguments": "{}", "server_label": "s", "output": "x"},
            {"type": "message", "id": "msg_foreign_2", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "2", "annotations": []}]},
            {"role": "user", "content": "So?"},
        ]},
    ],
    "anthropic": [
        {"system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}], "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "See"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _IMAGE}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": _DOCUMENT}, "title": "a"},
                {"type": "document", "source": {"type": "file", "file_id": "file_foreign_1"}, "citations": {"enabled": True}},
                {"type": "image", "source": {"type": "url", "url": "https://host.test/cat.png"}},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Secret hm.", "signature": "signature-foreign-anthropic"},
                {"type": "redacted_thinking", "data": "redacted-foreign-anthropic"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "home"}},
                {"type": "tool_use", "id": "toolu_2", "name": "hear", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [
                    {"type": "text", "text": "a cat"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _IMAGE}},
                ]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "deaf", "is_error": True},
                {"type": "text", "text": "Well?"},
            ]},
            {"role": "assistant", "content": [
                {"type": "server_tool_use", "id": "srvtoolu_foreign_1", "name": "web_search", "input": {"query": "cat"}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_foreign_1", "content": [
                    {"type": "web_search_result", "url": "https://host.test", "title": "t", "encrypted_content": "encrypted-foreign-anthropic"}
                ]},
                {"type": "server_tool_use", "id": "srvtoolu_foreign_2", "name": "bash_code_execution", "input": {"command": "ls"}},
                {"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_foreign_2",
                 "content": {"type": "bash_code_execution_result", "stdout": "x", "stderr": "", "return_code": 0, "content": []}},
                {"type": "text", "text": "A cat.", "citations": [
                    {"type": "web_search_result_location", "url": "https://host.test", "title": "t",
                     "encrypted_index": "index-foreign-anthropic", "cited_text": "cat"}
                ]},
            ]},
            {"role": "user", "content": "So?"},
        ]},
    ],
    "google": [
        {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [
            {"role": "user", "parts": [
                {"text": "See"}, {"inlineData": {"mimeType": "image/png", "data": _IMAGE}},
                {"inlineData": {"mimeType": "video/mp4", "data": _IMAGE}, "videoMetadata": {"fps": 1}},
                {"fileData": {"fileUri": "https://host.test/a.pdf", "mimeType": "application/pdf"}},
                {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/x1", "mimeType": "audio/mpeg"}},
            ]},
            {"role": "model", "parts": [
                {"text": "Secret hm.", "thought": True},
                {"text": "I look.", "thoughtSignature": "c2lnbmF0dXJlLWZvcmVpZ24tZ29vZ2xl"},
                {"functionCall": {"name": "look", "args": {"at": "home"}}, "thoughtSignature": "c2lnbmF0dXJlLTItZm9yZWlnbg=="},
                {"functionCall": {"name": "look", "args": {"at": "work"}}},
                {"functionCall": {"name": "a.b", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "look", "response": {"result": "a cat"}}},
                {"functionResponse": {"name": "look", "response": {"error": "dark"}}},
                {"functionResponse": {"name": "a.b", "response": {"x": 1}, "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": _IMAGE}}
                ]}},
            ]},
            {"role": "model", "parts": [
                {"executableCode": {"language": "PYTHON", "code": "1+1"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
                {"text": "2"}, {"text": "", "thoughtSignature": "c2lnbmF0dXJlLTMtZm9yZWlnbg=="},
            ]},
            {"role": "user", "parts": [{"text": "So?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": "again"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "a dog"}}}]},
        ]},
    ],
    "mistral": [
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "See"}, {"type": "image_url", "image_url": f"data:image/png;base64,{_IMAGE}"},
                {"type": "document_url", "document_url": "https://host.test/a.pdf", "document_name": "a.pdf"},
                {"type": "input_audio", "input_audio": b64encode(WAV).decode()},
                {"type": "file", "file_id": "file-foreign-1"},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Secret hm."}], "signature": "signature-foreign-mistral"},
                {"type": "text", "text": "I look."},
            ], "tool_calls": [
                {"id": "abcDEF123", "type": "function", "function": {"name": "look", "arguments": '{"at": "home"}'}, "index": 0},
                {"id": "abcDEF124", "type": "function", "function": {"name": "hear", "arguments": ""}, "index": 1},
            ]},
            {"role": "tool", "tool_call_id": "abcDEF123", "name": "look", "content": "a cat"},
            {"role": "tool", "tool_call_id": "abcDEF124", "name": "hear", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "A cat"}, {"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "."}
            ]},
            {"role": "user", "content": "So?"},
        ],
    ],
    "ollama": [
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "See", "images": [_IMAGE]},
            {"role": "assistant", "content": "I look.", "thinking": "Secret hm.", "tool_calls": [
                {"function": {"name": "look", "arguments": {"at": "home"}}},
                {"function": {"name": "look", "arguments": {"at": "work"}}},
            ]},
            {"role": "tool", "tool_name": "look", "content": "a cat"},
            {"role": "tool", "tool_name": "look", "content": "", "images": [_IMAGE]},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "call_x1", "function": {"index": 0, "name": "hear", "arguments": {}}}]},
            {"role": "tool", "tool_call_id": "call_x1", "tool_name": "hear", "content": "b"},
            {"role": "user", "content": "So?"},
        ],
    ],
    "cohere": [
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_IMAGE}", "detail": "low"}}
            ]},
            {"role": "assistant", "tool_plan": "Secret plan.", "tool_calls": [
                {"id": "look_abc", "type": "function", "function": {"name": "look", "arguments": '{"at": "home"}'}}
            ]},
            {"role": "tool", "tool_call_id": "look_abc", "content": [{"type": "document", "document": {"data": {"a": 1}}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Secret hm."}, {"type": "text", "text": "A cat."}
            ], "citations": [{"start": 0, "end": 1, "text": "A", "sources": [{"type": "tool", "id": "look_abc:0"}]}]},
            {"role": "user", "content": "So?"},
        ],
    ],
    "google_interactions": [
        {"system_instruction": "Be brief.", "input": [
            {"type": "user_input", "content": [
                {"type": "text", "text": "See"}, {"type": "image", "data": _IMAGE, "mime_type": "image/png", "resolution": "low"},
                {"type": "document", "uri": "https://host.test/a.pdf", "mime_type": "application/pdf"},
                {"type": "audio", "uri": "https://generativelanguage.googleapis.com/v1beta/files/x1", "mime_type": "audio/mpeg"},
            ]},
            {"type": "thought", "signature": "signature-foreign-interactions", "summary": [{"type": "text", "text": "Secret hm."}]},
            {"type": "model_output", "content": [{"type": "text", "text": "I look."}]},
            {"type": "function_call", "id": "fc_1", "name": "look", "arguments": {"at": "home"}},
            {"type": "function_call", "id": "fc_2", "name": "hear", "arguments": {}},
            {"type": "function_result", "call_id": "fc_1", "name": "look", "result": [
                {"type": "text", "text": "a cat"}, {"type": "image", "data": _IMAGE, "mime_type": "image/png"}
            ]},
            {"type": "function_result", "call_id": "fc_2", "name": "hear", "result": "deaf", "is_error": True},
            {"type": "google_search_call", "id": "gs_1", "arguments": {"queries": ["cat"]}, "signature": "signature-2-foreign-interactions"},
            {"type": "google_search_result", "call_id": "gs_1", "result": [{"search_suggestions": "<b>cat</b>"}], "signature": "signature-3-foreign-interactions"},
            {"type": "model_output", "content": [{"type": "text", "text": "A cat.", "annotations": [
                {"type": "url_citation", "url": "https://host.test", "title": "t", "start_index": 0, "end_index": 5}
            ]}]},
            {"type": "user_input", "content": [{"type": "text", "text": "So?"}]},
        ]},
    ],
    "bedrock_converse": [
        {"system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}], "messages": [
            {"role": "user", "content": [
                {"text": "See"}, {"image": {"format": "png", "source": {"bytes": _IMAGE}}},
                {"document": {"format": "pdf", "name": "a report", "source": {"s3Location": {"uri": "s3://bucket/a.pdf"}}}},
            ]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "Secret hm.", "signature": "signature-foreign-bedrock"}}},
                {"reasoningContent": {"redactedContent": "c2lnbmF0dXJlLTItZm9yZWlnbg=="}},
                {"text": "I look."},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "look", "input": {"at": "home"}}},
                {"toolUse": {"toolUseId": "tooluse_2", "name": "hear", "input": {}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "a cat"}, {"image": {"format": "png", "source": {"bytes": _IMAGE}}}]}},
                {"toolResult": {"toolUseId": "tooluse_2", "content": [{"json": {"deaf": True}}], "status": "error"}},
                {"cachePoint": {"type": "default", "ttl": "1h"}},
            ]},
            {"role": "assistant", "content": [{"citationsContent": {
                "content": [{"text": "A cat."}],
                "citations": [{"title": "t", "sourceContent": [{"text": "cat"}], "location": {"web": {"url": "https://host.test", "domain": "host.test"}}}],
            }}]},
            {"role": "user", "content": [{"text": "So?"}]},
        ]},
    ],
}  # fmt: skip


def native(wire: str, origin: Origin) -> list[list[Message]]:
    """The conversations of a wire's own, loaded as its provider's."""
    return [wires.get(wire).load_messages(payload, origin=origin) for payload in NATIVE[wire]]


def called(messages: list[Message]) -> list[str]:
    """Names of the tools that are called, each once."""
    return list(dict.fromkeys(call.name for message in messages for call in message.tool_calls))


def declared(messages: list[Message]) -> tuple[ToolSpec, ...]:
    """Tools for all calls of a conversation, and one more."""
    return tuple(
        ToolSpec(name, f"Does {name}.", _SCHEMA)
        for name in dict.fromkeys([*called(messages), "look"])
    )
