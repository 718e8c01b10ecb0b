"""What the allow lists of gateways are made of: the fields of the official libraries, those of
compatible vendors, and what names an account's objects, other models or who pays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any

from typing_extensions import get_type_hints

from dragoman import wires
from dragoman.codec.allow_list import parse_kinds
from dragoman.wires.serving import get_serving
from support.rules.bedrock_converse import service
from support.sdk_fields import Fields, kinds_of

__all__ = ["REFUSED", "allow_list", "kinds"]

REFUSED: Mapping[str, tuple[str, ...]] = {
    "anthropic": (
        "request.billing_policy",
        "request.container",
        "request.diagnostics",
        "request.fallback_credit_token",
        "request.fallbacks",
        "request.mcp_servers",
        "request.thread",
        "request.user_profile_id",
        "request.workspace_id",
        "AdvisorTool20260301",  # names another model
        "ContainerUploadBlock",
        "FileDocumentSource",
        "FileImageSource",
        "CodeExecutionOutputBlock",  # a file of a container
        "BashCodeExecutionOutputBlock",
        "CitationCharLocation.file_id",
        "CitationContentBlockLocation.file_id",
        "CitationPageLocation.file_id",
        "FallbackInfo.model",
    ),
    "openai_chat": (
        "request.moderation",  # names another model
        "AssistantMessageParam.audio",
        "FileFile.file_id",
        "VoiceID",
    ),
    "openai_responses": (
        "request.background_options",
        "request.moderation",
        "request.prompt",
        "AnnotationContainerFileCitation",
        "AnnotationFileCitation",
        "AnnotationFilePath",
        "ContainerReferenceParam",
        "ItemReference",
        "SkillReferenceParam",
        "FileSearchToolParam",
        "Mcp",
        "McpCall",
        "McpApprovalResponse",
        "McpApprovalRequest",
        "McpListTools",
        "ToolMcp",
        "ToolChoiceMcpParam",
        "ContainerAutoParam.file_ids",
        "CodeInterpreterContainerCodeInterpreterToolAuto.file_ids",
        "ToolCodeInterpreterContainerCodeInterpreterToolAuto.file_ids",
        "ResponseCodeInterpreterToolCallParam",
        "ImageGeneration.model",
        "ImageGenerationSvg.model",
        "ImageGenerationInputImageMask.file_id",
        "ImageGenerationCallSvgUsage.model",
        "ToolImageGeneration.model",
        "ToolImageGenerationSvg.model",
        "ToolImageGenerationInputImageMask.file_id",
        "PromptCacheOptions.comparison_response_id",
        "Result.file_id",
        "ResponseInputFileContentParam.file_id",
        "ResponseInputFileParam.file_id",
        "ResponseInputImageContentParam.file_id",
        "ResponseInputImageParam.file_id",
        "ResponseComputerToolCallOutputScreenshotParam.file_id",
    ),
    "google": (
        "GenerationConfig.modelSelectionConfig",
        "GenerationConfig.routingConfig",
        "Tool.exaAiSearch",
        "Tool.fileSearch",
        "Tool.mcpServers",
        "Tool.parallelAiSearch",
        "Tool.retrieval",
        "GoogleMaps.authConfig",
        "VideoResponseFormat.gcsUri",
    ),
    "google_interactions": (
        "request.background",
        "request.cached_content",
        "request.continuation_token",
        "request.environment",
        "request.previous_interaction_id",
        "request.webhook_config",
        "FileCitation",
        "FileSearch",
        "MCPServer",
        "MCPServerToolCallStep",
        "MCPServerToolResultStep",
        "Retrieval",
        "TextResponseFormat.schema_",
        "VideoResponseFormat.gcs_uri",
    ),
    "bedrock_converse": (
        "request.modelId",  # it stands in the path
        "request.guardrailConfig",
        "request.projectIdentifier",
        "request.promptVariables",
        "S3Location",
        "ToolReference.serverName",
    ),
    "mistral": (
        "request.guardrails",
        "CustomConnector",
        "DocumentLibraryTool",
        "FileChunk",
        "UnknownContentChunk",
        "UnknownResourceChunkContent",
    ),
    "cohere": (),
    "ollama": (),
}
"""Wire → `Kind`, or `Kind.field`, that the libraries have and the allow list has not."""

MARKS: Mapping[str, Mapping[str, str]] = {
    "openai_chat": {"FileFile.file_id": "!"},
    "openai_responses": {
        **{
            f"{kind}.file_id": "!"
            for kind in (
                "ResponseInputFileContentParam", "ResponseInputFileParam", "ResponseInputImageContentParam",
                "ResponseInputImageParam", "ResponseComputerToolCallOutputScreenshotParam",
            )
        },
        "CodeInterpreter.container": "*",
        "ToolCodeInterpreter.container": "*",
    },
    "google": {"FileData.fileUri": "%", "FunctionResponseFileData.fileUri": "%"},
    "google_interactions": {
        **{f"{kind}Content.uri": "%" for kind in ("Audio", "Document", "Image", "Video")},
        "FunctionResultStep.result": "~",
    },
    "mistral": {"DocumentURLChunk.document_url": "%", "ResourceChunk.uri": "%", "ResourceLinkChunk.uri": "%"},
}  # fmt: skip
"""Wire → field → its mark, see `codec.allow_list`."""

EXTRA: Mapping[str, str] = {
    "anthropic": """
request: effort output_format temperature top_k top_p
""",
    "openai_chat": """
request: cache_control chat_template_kwargs clear_thinking enable_thinking grammar guided_choice guided_grammar
    guided_json guided_regex ignore_eos include_reasoning length_penalty min_p min_tokens parse_tool_calls
    plugins provider reasoning reasoning_format reasoning_split repetition_penalty return_citations
    search_context_size search_parameters skip_special_tokens stop_token_ids thinking thinking_budget
    tool_stream top_a top_k transforms usage venice_parameters verbosity
DeveloperMessageParam: cache_control content=ContentPartImageParam|File
SystemMessageParam: cache_control content=ContentPartImageParam|File
UserMessageParam: cache_control content=FileUrl|VideoUrl
ToolMessageParam: cache_control content=ContentPartImageParam|ContentPartInputAudioParam|File|VideoUrl name
AssistantMessageParam: annotations cache_control content=ContentPartImageParam|ThinkingPart images prefix reasoning
    reasoning_content reasoning_details thinking
ContentPartTextParam: cache_control
ContentPartImageParam: cache_control
File: cache_control
FunctionToolParam: cache_control
ServerTool type=openrouter:web_search: parameters type
MessageFunctionToolCallParam: cache_control extra_content index
VideoUrl type=video_url: cache_control type video_url
FileUrl type=file_url: file_url type
ThinkingPart type=thinking: signature thinking type
""",
    "openai_responses": """
OutputText type=output_text: annotations logprobs text type
Refusal type=refusal: refusal type
""",
    "google": """
request: labels model serviceTier store
Part: thoughtSignature
""",
    "google_interactions": """
FunctionCallStep: signature
FunctionResultStep: signature
UserInputStep: content=FunctionResultStep
TextResponseFormat: schema
""",
    "bedrock_converse": "",
    "mistral": """
ToolCall: type
""",
    "cohere": """
request: stream
JsonObjectResponseFormatV2: schema
""",
    "ollama": """
request: tool_choice
Options: min_p draft_num_predict num_predict
Message: tool_call_id tool_name
ToolCall: id index type
""",
}
"""Wire → further kinds and fields, as a table: of compatible vendors, of recordings, of older
versions."""

OPAQUE: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("Tool.input_schema", "MCPToolParam.input_schema"),
    "cohere": ("request.documents", "ToolV2Function.parameters"),
    "google": (
        "FunctionDeclaration.parameters",
        "FunctionDeclaration.response",
        "GenerationConfig.responseSchema",
    ),
    "google_interactions": (
        "Function.parameters",
        "ToolSearch.parameters",
        "FunctionCallStep.arguments",
        "TextResponseFormat.schema",
    ),
    "ollama": ("Function.parameters",),
}
"""Wire → fields whose content is a client's own, such as the schema of a tool."""

PLACES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "openai_chat": {"request.tools": ("ServerTool",)},
    "openai_responses": {"EasyInputMessageParam.content": ("OutputText", "Refusal")},
}
"""Wire → field → further kinds of what is in it."""

UNTAGGED: Mapping[str, tuple[str, ...]] = {
    "openai_chat": ("NamedToolChoiceParam", "MessageFunctionToolCallParam")
}
"""Wire → kinds whose tag some clients leave out, and their vendors do not miss."""

MEDIA = """images: aspect_ratio background complexity frame_count frame_duration_ms guidance height image=ImageReference images=ImageReference
    input_fidelity mask=ImageReference model moderation n negative_prompt output_compression output_format partial_images prompt
    quality resolution response_format safety_identifier seed size steps stream style user width
ImageReference: image_url% type url%
speech: input instructions language model response_format sample_rate speed stream_format voice=nothing
transcription: chunking_strategy file include keywords known_speaker_names known_speaker_references language languages model
    prompt response_format stream temperature timestamp_granularities
"""
"""The fields of OpenAI's requests for media and of those that took them, without what names an account's
voices, files or other models (`voice.id`, `image.file_id`, `svg.model`)."""

ROOTS = ("request", "embeddings", "images", "speech", "transcription")
"""The kinds that the bodies of requests are of."""

EMBEDDINGS: Mapping[str, str] = {
    "openai_chat": """
embeddings: dimensions encoding_format input input_type model truncate user
"""
    + MEDIA,
    "openai_responses": """
embeddings: dimensions encoding_format input model user
"""
    + MEDIA,
    "google": """
embeddings: content=Content model outputDimensionality requests=embeddings taskType title
""",
    "mistral": """
embeddings: encoding_format input metadata model output_dimension output_dtype
transcription: context_bias diarize file file_url% language model stream temperature timestamp_granularities
""",
    "cohere": """
embeddings: embedding_types images input_type inputs=EmbedInput max_tokens model output_dimension priority texts truncate
EmbedInput: content=ImageUrlContent|TextContent
""",
    "ollama": """
embeddings: dimensions input keep_alive model options=Options prompt truncate
""",
}
"""Wire → the fields of its requests for vectors and for media."""


def allow_list(wire: str) -> str:
    """The table of a wire, as its package has it."""
    return rendered(minimized(wire, derived(wire)))


def derived(wire: str) -> dict[str, Fields]:
    """The table of a wire's official library, with what is added and without what is refused."""
    refused, marks, opaque = set(REFUSED[wire]), MARKS.get(wire, {}), OPAQUE.get(wire, ())
    found = {name: kind for name, kind in kinds(wire).items() if _plain(name) not in refused}
    added = {**_parsed(EXTRA[wire]), **_parsed(EMBEDDINGS.get(wire, ""))}
    out: dict[str, Fields] = {"nothing": Fields("type", frozenset(), False, {})}
    for name, kind in {
        **{name: kind for name, kind in added.items() if name not in found},
        **found,
    }.items():
        plain = _plain(name)
        fields: dict[str, tuple[str, ...]] = {}
        for field, inner in kind.fields.items():
            path = f"{plain}.{field}"
            if path in refused and path not in marks:
                continue
            more = PLACES.get(wire, {}).get(path, ())
            passing = tuple(each for each in (*inner, *more) if _plain(each) not in refused)
            fields[field + marks.get(path, "")] = (
                () if path in opaque else passing or ("nothing",) * bool(inner)
            )
        for field, inner in added[plain].fields.items() if plain in added else ():
            fields[field] = (
                *fields.get(field, ()),
                *(each for each in inner if each not in fields.get(field, ())),
            )
        optional = kind.optional or plain in UNTAGGED.get(wire, ())
        out[name] = Fields(kind.tag, kind.values, optional, fields)
    return _reachable(out)


def _parsed(table: str) -> dict[str, Fields]:
    return {
        name: Fields(
            kind.tag,
            kind.values,
            kind.optional,
            {field + mark: inner for field, (mark, inner) in kind.fields.items()},
        )
        for name, kind in parse_kinds(table).items()
    }


def _plain(name: str) -> str:
    """A kind's name as the library has it."""
    return name.partition("~")[0]


def minimized(wire: str, kinds: Mapping[str, Fields]) -> dict[str, Fields]:
    """The same table, in which kinds that have the same fields, all the way down, are one: but none
    that have the tag of one that is refused, which would pass as another."""
    library = _library(wire)
    gone = {
        value
        for name, kind in library.items()
        if _plain(name) in REFUSED[wire]
        for value in kind.values
    }
    alone = {
        name for name, kind in kinds.items() if name in (*ROOTS, "nothing") or kind.values & gone
    }
    group = {
        name: name if name in alone else f"{kind.tag} {kind.optional}"
        for name, kind in kinds.items()
    }
    while True:
        finer = {
            name: repr((group[name], sorted((field, sorted({group[each] for each in inner})) for field, inner in kind.fields.items())))
            for name, kind in kinds.items()
        }  # fmt: skip
        numbers = {key: str(number) for number, key in enumerate(dict.fromkeys(finer.values()))}
        new = {name: numbers[key] for name, key in finer.items()}
        if len(set(new.values())) == len(set(group.values())):
            break
        group = new
    members: dict[str, list[str]] = {}
    for name, number in group.items():
        members.setdefault(number, []).append(name)
    title = {
        number: min(names, key=lambda name: (len(name), name)) for number, names in members.items()
    }
    out: dict[str, Fields] = {}
    for number, names in members.items():
        first = kinds[names[0]]
        fields = {
            field: tuple(dict.fromkeys(title[group[each]] for each in inner))
            for field, inner in first.fields.items()
        }
        values = frozenset().union(*[kinds[name].values for name in names])
        out[title[number]] = Fields(first.tag, values, first.optional, fields)
    return out


def rendered(kinds: Mapping[str, Fields]) -> str:
    """A table as the text that an `Allowed` reads."""
    lines: list[str] = []
    for name, kind in kinds.items():
        tag = (
            f" {kind.tag}{'?' * kind.optional}={','.join(sorted(kind.values))}" if kind.tag else ""
        )
        fields = [
            field + ("=" + "|".join(inner) if inner else "")
            for field, inner in sorted(kind.fields.items())
        ]
        lines.append(
            "\n".join(
                wrap(
                    f"{name}{tag}: {' '.join(fields)}",
                    98,
                    subsequent_indent="    ",
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )
        )
    return "\n".join(lines) + "\n"


def _reachable(kinds: Mapping[str, Fields]) -> dict[str, Fields]:
    found: dict[str, Fields] = {}
    waiting = [name for name in reversed(ROOTS) if name in kinds]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = kinds[name]
            waiting += sorted(
                {each for inner in kinds[name].fields.values() for each in inner}, reverse=True
            )
    return found


def kinds(wire: str) -> dict[str, Fields]:
    """All fields of a wire's official library."""
    return dict(_library(wire))


@cache
def _library(wire: str) -> Mapping[str, Fields]:
    if wire == "bedrock_converse":
        return _of_shapes()
    root, renamed = _ROOTS[wire]()
    return kinds_of(root, renamed)


def _of_shapes() -> Mapping[str, Fields]:
    """The fields of the shapes that botocore's model has of a request to Converse."""
    found: dict[str, Fields] = {}
    waiting: list[tuple[str, Any]] = [
        ("request", service().operation_model("Converse").input_shape)
    ]
    while waiting:
        name, shape = waiting.pop()
        if name in found:
            continue
        inner: dict[str, tuple[str, ...]] = {}
        found[name] = Fields("", frozenset(), False, inner)
        for field, member in shape.members.items():
            while member.type_name == "list":
                member = member.member
            is_open = member.type_name != "structure" or member.is_document_type
            inner[field] = () if is_open else (member.name,)
            waiting += [] if is_open else [(member.name, member)]
    return found


def _anthropic() -> Any:
    from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming

    return MessageCreateParamsStreaming, lambda name: re.sub(r"^Beta|Params?$", "", name)


def _openai_chat() -> Any:
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    return CompletionCreateParamsStreaming, lambda name: name.removeprefix("ChatCompletion")


def _openai_responses() -> Any:
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    return ResponseCreateParamsStreaming, lambda name: name


def _google() -> Any:
    from google.genai import types

    fields = {
        "contents": list[types.Content],
        "systemInstruction": types.Content,
        "tools": list[types.Tool],
        "toolConfig": types.ToolConfig,
        "safetySettings": list[types.SafetySetting],
        "generationConfig": types.GenerationConfig,
    }
    return fields, lambda name: name


def _google_interactions() -> Any:
    from google.genai._gaos.types.interactions import CreateModelInteractionParam

    return CreateModelInteractionParam, lambda name: name.removesuffix("Param").removesuffix(
        "TypedDict"
    )


def _mistral() -> Any:
    from mistralai.client.models import ChatCompletionRequest

    return ChatCompletionRequest, lambda name: name


def _cohere() -> Any:
    from cohere.v2.raw_client import RawV2Client

    hints = get_type_hints(RawV2Client.chat_stream)
    return {
        name: hint for name, hint in hints.items() if name not in ("return", "request_options")
    }, lambda name: name


def _ollama() -> Any:
    from ollama._types import ChatRequest, GenerateRequest

    fields = {**GenerateRequest.model_fields, **ChatRequest.model_fields}
    return {name: field.annotation for name, field in fields.items()}, lambda name: name


_ROOTS: Mapping[str, Callable[[], Any]] = {
    "anthropic": _anthropic,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "google": _google,
    "google_interactions": _google_interactions,
    "mistral": _mistral,
    "cohere": _cohere,
    "ollama": _ollama,
}


def main() -> None:
    """Writes the tables into the packages of the wires."""
    for wire in REFUSED:
        path = Path(wires.__file__).parent / wire / "serving_allowed.py"
        allowed = get_serving(wires.get(wire)).allowed
        if allowed is None:
            continue
        before, _, after = path.read_text().partition(allowed.table)
        path.write_text(f"{before}\n{allow_list(wire)}{after}")


if __name__ == "__main__":
    main()
