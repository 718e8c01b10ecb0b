"""Messages of the AI SDK, as its library writes them."""

from __future__ import annotations

from typing import Any

PNG = "data:image/png;base64,iVBORw0KGgo="


def ui(id_: str, role: str, *parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A UI message."""
    return {"id": id_, "role": role, "parts": list(parts), **fields}


def text(words: str, state: str | None = "done", **fields: Any) -> dict[str, Any]:
    """A text of the model's; without a state, of the user's."""
    return {"type": "text", "text": words, **({"state": state} if state else {}), **fields}


def tool(id_: str, name: str, output: Any, /, **given: Any) -> dict[str, Any]:
    """A call that was answered."""
    return {
        "type": f"tool-{name}",
        "toolCallId": id_,
        "state": "output-available",
        "input": given,
        "output": output,
    }


STEP = {"type": "step-start"}
OPENAI = {"itemId": "rs_1", "reasoningEncryptedContent": "enc"}
TALK = [
    ui("u1", "user", text("How warm is it in Rome?", None)),
    ui("a1", "assistant", STEP, tool("c1", "weather", {"degrees": 21}, city="Rome"), STEP, text("21."), metadata={"model": "x"}),
]  # fmt: skip
EVERY_PART = [
    ui("s", "system", text("Be brief.", None)),
    ui("u", "user", text("See", None), {"type": "file", "mediaType": "image/png", "url": PNG, "filename": "a.png"},
       {"type": "file", "mediaType": "application/pdf", "url": "https://a.test/b"}, {"type": "file", "mediaType": "image/jpeg", "url": PNG},
       {"type": "file", "mediaType": "image/png", "url": "", "providerReference": {"openai": "file-1"}}, {"type": "data-note", "id": "1", "data": [1]}),
    ui("a", "assistant", STEP, STEP, text("", None), text("Hm", "streaming"), text("Hm", None, citations=[]),
       {"type": "reasoning", "text": "One.", "state": "done", "providerMetadata": {"openai": {**OPENAI, "reasoningEncryptedContent": None}}},
       {"type": "reasoning", "text": "Two.", "state": "done", "providerMetadata": {"openai": OPENAI}},
       {"type": "reasoning", "text": "Three.", "state": "done", "providerMetadata": {"google": {"thoughtSignature": "Z3M", "x": 1}}},
       text("Said.", "done", providerMetadata={"openai": {"itemId": "msg_1"}}), text("More.", "done", providerMetadata={"openai": {"itemId": "msg_1"}}),
       text("", "done", providerMetadata={"google": {"thoughtSignature": "Z3M"}}),
       {"type": "source-url", "sourceId": "s1", "url": "https://a.test", "title": "A"},
       {"type": "source-document", "sourceId": "s2", "mediaType": "text/plain", "title": "B"}, {"type": "unknown", "of": {"a": 1}}, {"type": "custom", "kind": "openai.x"},
       {"type": "tool-f", "toolCallId": "1", "state": "input-streaming"}, {"type": "tool-f", "toolCallId": "2", "state": "input-streaming", "input": {"a": "b"}},
       {"type": "tool-f", "toolCallId": "3", "state": "input-available", "input": {"a": 1}, "callProviderMetadata": {"openai": {"itemId": "fc_1"}}, "title": "F"},
       {"type": "tool-f", "toolCallId": "4", "state": "approval-requested", "input": {}, "approval": {"id": "p1"}},
       {"type": "tool-f", "toolCallId": "5", "state": "approval-responded", "input": {}, "approval": {"id": "p2", "approved": True, "reason": "ok"}},
       {"type": "tool-f", "toolCallId": "6", "state": "output-error", "input": {}, "errorText": "no"},
       {"type": "tool-f", "toolCallId": "7", "state": "output-error", "rawInput": "{x", "errorText": "no"},
       {"type": "tool-f", "toolCallId": "8", "state": "output-error", "input": None, "rawInput": {"a": 1}, "errorText": ""},
       {"type": "tool-f", "toolCallId": "9", "state": "output-denied", "input": {}, "approval": {"id": "p3", "approved": False, "reason": "no"}},
       {"type": "tool-f", "toolCallId": "10", "state": "output-available", "input": {}, "output": [1], "preliminary": True, "approval": {"id": "p4", "approved": True}},
       {"type": "dynamic-tool", "toolName": "g", "toolCallId": "11", "state": "output-available", "input": "text", "output": None},
       {"type": "tool-web", "toolCallId": "12", "state": "output-available", "input": {"q": 1}, "output": {"r": []}, "providerExecuted": True,
        "resultProviderMetadata": {"openai": {"x": 1}}},
       {"type": "tool-f", "toolCallId": "13", "state": "output-available", "input": {}, "output": {"type": "content", "value": [{"type": "text", "text": "a"}]}},
       STEP, metadata={"thinking": "own", "at": [1]}, extra={"x": None}),
    {"role": "assistant", "parts": [tool("q", "f", 1)]}, {"role": "assistant", "parts": [text("x")], "metadata": {}},
    {"id": 7, "role": "assistant", "parts": [], "metadata": None},
    ui("d", "assistant", STEP, metadata={"dragoman": {"messages": [{"id": 1}]}}),
]  # fmt: skip


def invocation(state: str, id_: str, name: str, step: int = 0, /, **fields: Any) -> dict[str, Any]:
    """A part of ai 4 with a call."""
    return {
        "type": "tool-invocation",
        "toolInvocation": {
            "state": state,
            "step": step,
            "toolCallId": id_,
            "toolName": name,
            **fields,
        },
    }


_CALL = invocation("result", "c1", "weather", args={"city": "Rome"}, result={"degrees": 21})
_HINT = {"type": "reasoning", "reasoning": "Hm. So.", "details": [
    {"type": "text", "text": "Hm. ", "signature": "c2ln"}, {"type": "redacted", "data": "eA"}, {"type": "text", "text": "So."}]}  # fmt: skip
AI_4: list[Any] = [
    {"id": "u1", "role": "user", "content": "See", "createdAt": "2026-01-02T03:04:05.678Z", "parts": [{"type": "text", "text": "See"}],
     "experimental_attachments": [{"name": "a.png", "contentType": "image/png", "url": PNG}, {"contentType": "text/plain", "url": "https://a.test/b"}]},
    {"id": "a1", "role": "assistant", "content": "21.", "reasoning": "Hm. So.", "toolInvocations": [_CALL["toolInvocation"]], "annotations": [{"x": 1}], "revisionId": "r",
     "parts": [{"type": "step-start"}, _HINT, _CALL, {"type": "step-start"}, {"type": "text", "text": "21."},
               {"type": "source", "source": {"sourceType": "url", "id": "s1", "url": "https://a.test", "title": "A"}}, {"type": "file", "mimeType": "image/png", "data": PNG[22:]},
               invocation("call", "c2", "f", 1, args={}), invocation("partial-call", "c3", "f", 1)][:-2]},
    {"id": "a2", "role": "assistant", "content": "", "toolInvocations": [invocation("call", "c2", "f", args={})["toolInvocation"]], "parts": [invocation("call", "c2", "f", args={}), invocation("partial-call", "c3", "f")]},
    {"id": "old", "role": "assistant", "content": "So.", "reasoning": "Hm.", "toolInvocations": [{"state": "result", "toolCallId": "c", "toolName": "f", "args": {}, "result": 1}]},
    {"id": "d", "role": "data", "content": "", "data": {"a": 1}}, {"role": "user", "content": "x", "parts": [{"type": "text", "text": "another"}], "createdAt": "yesterday"},
]  # fmt: skip
_RESULT = {"type": "tool-result", "toolCallId": "c1", "toolName": "weather"}
_ASKED = {"type": "tool-approval-request", "approvalId": "p1", "toolCallId": "c1"}
MODEL_TALK: list[Any] = [
    {"role": "system", "content": "Be brief.", "providerOptions": {"anthropic": {"cacheControl": {"type": "ephemeral"}}}},
    {"role": "user", "content": "How warm is it in Rome?"},
    {"role": "assistant", "content": [{"type": "reasoning", "text": "Hm.", "providerOptions": {"anthropic": {"signature": "c2ln"}}},
                                      {"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": {"city": "Rome"}}]},
    {"role": "tool", "content": [{**_RESULT, "output": {"type": "json", "value": {"degrees": 21}}}]},
    {"role": "assistant", "content": "21."},
]  # fmt: skip
MODEL_PARTS: list[Any] = [
    {"role": "user", "content": [
        {"type": "text", "text": "See"}, {"type": "image", "image": PNG[22:]}, {"type": "image", "image": "https://a.test/c", "mediaType": "image/jpeg"},
        {"type": "file", "data": PNG, "mediaType": "image/png", "filename": "a.png"}, {"type": "file", "data": PNG[22:], "mediaType": "image/png"},
        {"type": "file", "data": {"type": "url", "url": "https://a.test/b.pdf"}, "mediaType": "application/pdf"}, {"type": "file", "data": {"0": 1, "1": 2}, "mediaType": "a/b"},
        {"type": "file", "data": {"type": "Buffer", "data": [1, 2]}, "mediaType": "a/b"}, {"type": "file", "data": "file-1", "mediaType": "application/pdf"},
        {"type": "file", "data": {"type": "reference", "reference": {"openai": "file-2"}}, "mediaType": "application/pdf"}]},
    {"role": "assistant", "content": [
        {"type": "text", "text": "", "providerOptions": {"x": {"y": 1}}}, {"type": "custom", "kind": "openai.x"}, {"type": "reasoning-file", "data": "AA==", "mediaType": "a/b"},
        {"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": {}}, _ASKED, {"type": "tool-call", "toolCallId": "w", "toolName": "web", "input": "q", "providerExecuted": True},
        {"type": "tool-result", "toolCallId": "w", "toolName": "web", "output": {"type": "json", "value": [1]}}]},
    {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "p1", "approved": True, "reason": "ok"}]},
    {"role": "tool", "content": [{**_RESULT, "output": {"type": kind, "value": value}} for kind, value in (("text", "a"), ("json", "a"), ("error-text", "a"), ("error-json", {"a": 1}))]
     + [{**_RESULT, "output": {"type": "execution-denied", "reason": "no"}}, {**_RESULT, "output": {"type": "content", "value": [
         {"type": "text", "text": "a"}, {"type": "media", "data": "AA==", "mediaType": "image/png"}, {"type": "image-data", "data": "AA==", "mediaType": "image/png"}, {"type": "file-url", "url": "https://a.test"}]}}]},
    {"role": "assistant", "content": []}, {"role": "assistant", "content": ""}, {"role": "assistant", "content": [{"type": "text", "text": "listed"}]}, {"role": "tool", "content": []},
]  # fmt: skip
CORE: list[Any] = [
    {"role": "user", "content": [{"type": "image", "image": PNG[22:], "mimeType": "image/png"}, {"type": "file", "data": PNG[22:], "mimeType": "application/pdf"}]},
    {"role": "assistant", "content": [{"type": "reasoning", "text": "Hm.", "signature": "c2ln"}, {"type": "redacted-reasoning", "data": "eA"}, {"type": "tool-call", "toolCallId": "c1", "toolName": "f", "args": {}}], "id": "m1"},
    {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "f", "result": "no", "isError": True}]},
    {"role": "assistant", "content": "So."},
]  # fmt: skip
