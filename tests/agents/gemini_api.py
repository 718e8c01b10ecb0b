"""Google's Gemini API of a model that signs its calls (gemini-3-pro-preview)."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from agents.provider import Refused, Seen, Step, Turn, event, sign
from agents.schemas import check_name, check_openapi, check_schema

__all__ = ["GeminiApi"]

_FIELDS = {
    "contents",
    "tools",
    "toolConfig",
    "safetySettings",
    "systemInstruction",
    "generationConfig",
    "cachedContent",
    "model",
}
_GENERATION = {
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseModalities",
    "candidateCount",
    "maxOutputTokens",
    "temperature",
    "topP",
    "topK",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseLogprobs",
    "logprobs",
    "thinkingConfig",
    "mediaResolution",
    "speechConfig",
    "imageConfig",
}
_PARTS = {
    "text",
    "thought",
    "thoughtSignature",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "videoMetadata",
    "mediaResolution",
    "partMetadata",
}
_DECLARATION = {
    "name",
    "description",
    "parameters",
    "parametersJsonSchema",
    "response",
    "responseJsonSchema",
    "behavior",
}
_SKIPPED = {
    "skip_thought_signature_validator",
    base64.b64encode(b"skip_thought_signature_validator").decode(),
    "context_engineering_is_the_way_to_go",
}
"""Signatures that Google takes for calls of other models."""


def _only(where: str, content: Any, known: set[str]) -> None:
    if extra := set(content) - known:
        raise Refused(
            f"Invalid JSON payload received. Unknown name \"{min(extra)}\" at '{where}': Cannot find field."
        )


class GeminiApi:
    """See the module."""

    def __init__(self) -> None:
        self.skipped = 0
        """Calls that came with a signature for calls of other models."""

    def read(self, body: Any, headers: Mapping[str, str], path: str) -> Seen:
        if ":streamGenerateContent" not in path and ":generateContent" not in path:
            raise Refused(f"{path}: Not Found")
        if headers.get("x-goog-api-key") != "provider-key":
            raise Refused("API key not valid. Please pass a valid API key.")
        _only("", body, _FIELDS)
        _only("generation_config", body.get("generationConfig") or {}, _GENERATION)
        thinking = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
        _only(
            "thinking_config",
            thinking,
            {"includeThoughts", "thinkingBudget", "thinkingLevel"},
        )
        if {"thinkingBudget", "thinkingLevel"} <= set(thinking):
            raise Refused("You can only set only one of thinking budget and thinking level.")
        tools = self._read_tools(body.get("tools") or [], body.get("toolConfig"))
        turns = [
            self._read_content(index, content) for index, content in enumerate(body["contents"])
        ]
        self._check_order(body["contents"])
        pieces = [body.get("tools"), body.get("systemInstruction")]
        pieces += [
            [content["role"], part] for content in body["contents"] for part in content["parts"]
        ]
        return Seen(turns, tools, pieces)

    def _read_tools(self, given: Any, config: Any) -> dict[str, Any]:
        tools: dict[str, Any] = {}
        for tool in given:
            _only(
                "tools",
                tool,
                {"functionDeclarations", "googleSearch", "urlContext", "codeExecution"},
            )
            for function in tool.get("functionDeclarations", ()):
                name = function["name"]
                _only("function_declarations", function, _DECLARATION)
                check_name(name, r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
                if "parametersJsonSchema" in function:
                    check_schema(name, function["parametersJsonSchema"])
                elif "parameters" in function:
                    check_openapi(name, function["parameters"])
                tools[name] = function
        served = any(set(tool) - {"functionDeclarations"} for tool in given)
        told = (config or {}).get("includeServerSideToolInvocations")
        if tools and served and not told:
            raise Refused("Please enable tool_config.include_server_side_tool_invocations")
        return tools

    def _read_content(self, index: int, content: Any) -> Turn:
        where = f"contents[{index}]"
        _only(where, content, {"role", "parts"})
        if content.get("role") not in ("user", "model"):
            raise Refused("Please use a valid role: user, model.")
        if not content.get("parts"):
            raise Refused(f"{where}.parts must not be empty.")
        turn = Turn(content["role"])
        for part in content["parts"]:
            _only(f"{where}.parts", part, _PARTS)
            kinds = set(part) & {
                "text",
                "inlineData",
                "fileData",
                "functionCall",
                "functionResponse",
            }
            if len(kinds) != 1:
                raise Refused(
                    f"{where}.parts: required oneof field 'data' must have one, not {part}"
                )
            turn.text += "" if part.get("thought") else part.get("text", "")
            turn.images += "inlineData" in part
            if call := part.get("functionCall"):
                _only(f"{where}.function_call", call, {"name", "args", "id"})
                turn.calls.append(call.get("id") or f"{index}:{len(turn.calls)}:{call['name']}")
            if response := part.get("functionResponse"):
                _only(
                    f"{where}.function_response",
                    response,
                    {"name", "response", "id", "parts", "willContinue", "scheduling"},
                )
                if not isinstance(response["response"], dict):
                    raise Refused(f"{where}.function_response.response: must be a Struct")
                id_ = response.get("id") or f"{index - 1}:{len(turn.results)}:{response['name']}"
                turn.results.append(id_)
                turn.images += sum("inlineData" in inner for inner in response.get("parts", ()))
        return turn

    def _check_order(self, contents: list[Any]) -> None:
        asked = max(
            (
                index
                for index, content in enumerate(contents)
                if content["role"] == "user" and any("text" in part for part in content["parts"])
            ),
            default=0,
        )
        for index, content in enumerate(contents):
            calls = [part for part in content["parts"] if "functionCall" in part]
            if not calls:
                continue
            if index == 0 or contents[index - 1]["role"] != "user":
                raise Refused("a function call turn comes after a user turn or a function response")
            after = contents[index + 1]["parts"] if index + 1 < len(contents) else []
            results = [part for part in after if "functionResponse" in part]
            if len(calls) != len(results):
                raise Refused(
                    "the number of function response parts must be that of the function call parts"
                )
            signature = calls[0].get("thoughtSignature")
            if signature in _SKIPPED:
                self.skipped += 1
            elif signature is None:
                # Google wants it in the turn that runs. A gateway must not lose the others either.
                if index > asked:
                    raise Refused("Function call is missing a thought_signature")
                self.skipped += 1
            elif signature != sign("gemini", calls[0]["functionCall"]["name"]):
                raise Refused("Corrupted thought signature.")

    def write(self, step: Step, number: int, body: Any) -> Iterator[bytes]:
        def chunk(parts: list[Any], reason: str | None = None) -> bytes:
            candidate: Any = {"content": {"parts": parts, "role": "model"}, "index": 0}
            if reason:
                candidate["finishReason"] = reason
            usage = {
                "promptTokenCount": 9,
                "candidatesTokenCount": 20,
                "thoughtsTokenCount": 5,
                "totalTokenCount": 34,
            }
            return event(
                {
                    "candidates": [candidate],
                    "usageMetadata": usage,
                    "modelVersion": "gemini-3-pro-preview",
                    "responseId": f"r{number}",
                }
            )

        config = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
        if config.get("includeThoughts"):
            yield chunk([{"text": f"Thought {number}.", "thought": True}])
        if step.text:
            yield chunk([{"text": step.text}])
        for place, call in enumerate(step.calls):
            part: Any = {
                "functionCall": {
                    "name": call.name,
                    "args": dict(call.arguments),
                    "id": f"fc{number}x{place}",
                }
            }
            if place == 0:
                part["thoughtSignature"] = sign("gemini", call.name)
            yield chunk([part])
        yield chunk([{"text": ""}], "STOP")

    def error(self, words: str) -> Any:
        return {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}

    def count(self, path: str, size: int) -> Any:
        return {"totalTokens": size // 4} if ":countTokens" in path else None
