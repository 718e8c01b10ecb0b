"""Reads and writes messages of Chat Completions where they hold more than the family's.

Models' messages have further fields (`FIELDS`): refusals, images, audio, tools that the vendor ran,
and the older `function_call`. A piece remembers the field that it came in as the wire form `field`.
`fit` turns a vendor's quirks into the fields of an `OutgoingChat`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.codec.fit_ids import NameRule, fit_names, map_call_ids
from dragoman.codec.format_layout import Layout
from dragoman.codec.json_values import if_object, if_objects, if_text
from dragoman.codec.media import describe_as_text, guess_media_type
from dragoman.codec.outgoing_conversation import is_provider_tool
from dragoman.json_bytes import Json
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ToolSpec
from dragoman.wires.chat import messages
from dragoman.wires.chat.content import dump_block, find_loss, load_block
from dragoman.wires.chat.record import DialectRecord, OutgoingChat, find_named_pieces
from dragoman.wires.openai_chat.quirks import NAME, OWN, Quirks
from dragoman.wires.openai_chat.tools import (
    dump_executed_tool,
    load_executed_tools,
    load_function_call,
)

__all__ = [
    "EVIDENCE",
    "FIELDS",
    "ROLES",
    "call_votes",
    "dump_piece",
    "note_field",
    "fit",
    "dump_noted_block",
    "explain_unsendable",
    "LAYOUT",
]

LAYOUT = Layout(
    fields=("messages", "conversations"),
    distinctive=frozenset(
        [
            "stream_options",
            "max_completion_tokens",
            "logprobs",
            "logit_bias",
            "functions",
            "modalities",
            "reasoning_effort",
        ]
    ),
    of_tools=frozenset(["function"]),
)
"""Where the messages stand in the body of a request."""

ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER}
_OLDER_ROLES = {"system": Role.SYSTEM, "user": Role.USER}
_SAFE_ID_LENGTH = 40
"""Length of an id, in characters, that every known vendor takes."""


def note_field(field: str, part: Content) -> Content:
    """Returns a part with the note that it stands in a field of its own, beside the message's
    content."""
    return replace(part, native=OWN.with_form(part.native, field=field))


def _refusal(_: DialectRecord, value: Any, __: Iterator[str]) -> list[Content]:
    if not isinstance(value, str) or not value:
        return []
    return [note_field("refusal", TextPart(value))]


def _images(chat: DialectRecord, value: Any, _: Iterator[str]) -> list[Content]:
    return [note_field("images", load_block(chat, image)) for image in if_objects(value)]


def _load_audio_reference(_: DialectRecord, value: Any, __: Iterator[str]) -> list[Content]:
    """Reads the field `audio` of an OpenAI Chat answer in a request, which refers to audio by its
    id alone."""
    audio_id = if_text(if_object(value).get("id"))
    # A request refers to audio of an earlier answer by its id alone.
    if not audio_id or value != {"id": audio_id}:
        return []
    return [note_field("audio", FilePart(audio_id))]


FIELDS = {
    "refusal": _refusal,
    "images": _images,
    "audio": _load_audio_reference,
    "executed_tools": load_executed_tools,
    "function_call": load_function_call,
}
"""Fields of the model's message beside content, thinking and calls, in the order in which they are
read."""


EVIDENCE = {
    **dict.fromkeys(
        ("function", "refusal", "function_call", "executed_tools", "reasoning_details"), 3
    ),
    **dict.fromkeys(("input_audio", "video_url", "audio_url", "file_url"), 3),
    **dict.fromkeys(
        ("developer", "image_url", "file", "audio", "annotations", "reasoning_content"), 2
    ),
}
"""Roles, types of blocks and fields of the model's message that tell this format from others."""


def call_votes(call_id: str) -> int:
    """Returns how surely an id of a call belongs to the OpenAI Chat format."""
    if call_id.startswith("call_"):
        return 3
    return 2


def dump_piece(out: OutgoingChat, position: int, index: int, piece: Content) -> tuple[str, Any]:
    """Returns the field of the message that holds a piece of the model's, and the value that it
    adds there."""
    content = out.messages[position].content
    if isinstance(piece, ToolResultPart):
        return "executed_tools", _dump_executed_result(out, position, index, piece)
    if isinstance(piece, ToolCallPart) and piece.run_by == "provider":
        return "executed_tools", _dump_executed_call(content, index, piece)
    field = OWN.form(piece.native).get("field") if out.returns_to_origin(position) else None
    if field == "refusal" and isinstance(piece, TextPart):
        return "refusal", piece.text
    if field == "audio":
        if isinstance(piece, FilePart):
            return "audio", {"id": piece.id}
        return "audio", {"id": OWN.fields(piece.native).get("id")}
    family_field, value = messages.dump_piece(out, position, index, piece)
    if field == "function_call" and isinstance(piece, ToolCallPart) and "function" in value:
        return "function_call", value["function"]
    is_text = family_field == "content" and value is not None
    if is_text and out.target is None and _is_after_provider_tool(content, index):
        why = "this format has all text before the tools that the vendor ran"
        out.lose(position, index, Lost.order, why)
    return "images" if field == "images" else family_field, value


def _dump_executed_call(content: Sequence[Content], index: int, call: ToolCallPart) -> Json:
    """Writes in an OpenAI Chat Completions message a tool that the vendor ran, together with its
    result."""
    results = {piece.id: piece for piece in content if isinstance(piece, ToolResultPart)}
    earlier_calls = [
        piece
        for piece in content[:index]
        if isinstance(piece, ToolCallPart) and piece.run_by == "provider"
    ]
    return dump_executed_tool(call, results.get(call.id), len(earlier_calls))


def _dump_executed_result(
    out: OutgoingChat, position: int, index: int, result: ToolResultPart
) -> None:
    """Writes nothing, since a result stands with its call. Notes a result without one as lost."""
    content = out.messages[position].content
    if not any(isinstance(piece, ToolCallPart) and piece.id == result.id for piece in content):
        out.lose(position, index, Lost.tool_result, "it stands with its call, which is not there")


def _is_after_provider_tool(content: Sequence[Content], index: int) -> bool:
    """True if in an OpenAI Chat Completions message a tool that the vendor ran stands between a
    piece and the text before it."""
    for earlier in range(index - 1, -1, -1):
        if isinstance(content[earlier], (TextPart, DataPart, LinkPart, FilePart)):
            return False
        if getattr(content[earlier], "run_by", "") == "provider":
            return True
    return False


def explain_unsendable(out: OutgoingChat, position: int, piece: Content) -> str | None:
    """Returns why a piece of a model's message cannot be sent, or None if it can."""
    reason = out.unreadable[position]
    if isinstance(piece, ThinkingPart):
        has_field = NAME in (piece.native or ()) or out.quirks.thinking is not None
        if not has_field and out.target is not None:
            return reason or "the vendor takes no thinking back"
    if is_provider_tool(piece):
        if reason is None and out.target is not None and not out.quirks.executed_tools:
            return "the vendor takes no record of tools that it ran"
        return reason
    return messages.explain_unsendable(out, position, piece)


def dump_noted_block(out: OutgoingChat, position: int, index: int, piece: Content) -> Json | None:
    """Returns the content block that is sent for a piece, or None. Notes what the block leaves out.

    A link to something other than an image becomes a text. A target would take it for a broken
    image and refuse the conversation.
    """
    block = dump_block(out.chat, piece, out.blocks)
    if block is None:
        return None
    if out.target and isinstance(piece, LinkPart) and block["type"] == "image_url":
        mime_type = piece.mime_type or guess_media_type(piece.url) or "image/*"
        if not mime_type.startswith("image/"):
            block = {"type": "text", "text": describe_as_text(piece)}
    if (loss := find_loss(piece, block)) is not None:
        out.lose(position, index, *loss)
    return block


def fit(
    chat: DialectRecord,  # noqa: ARG001 as of a method
    conversation: Sequence[Message],
    target: Origin | None,
    quirks: Quirks,
    tools: Sequence[ToolSpec],
) -> Json:
    """Returns the fields of an `OutgoingChat` by which a conversation fits the vendor. `tools`: the
    request's."""
    ids, names = _fit_names(conversation, target, quirks, tools)
    return {
        "ids": ids,
        "names": names,
        "blocks": quirks.blocks,
        "roles": ROLES if quirks.developer else _OLDER_ROLES,
        "string_only": quirks.string_content,
        "alternates": quirks.alternates,
        "thinking": quirks.thinking,
        "json_schema": quirks.json_schema,
        "refuses": quirks.refuses,
        "ways": {
            "max_tokens": quirks.max_tokens,
            # An empty way writes nothing: the vendor has no such setting.
            "reasoning": quirks.reasoning or "",
            "cache": quirks.cache or "",
        },
    }


def _fit_names(
    conversation: Sequence[Message],
    target: Origin | None,
    quirks: Quirks,
    tools: Sequence[ToolSpec],
) -> tuple[dict[tuple[int, int], str], dict[str, str]]:
    """Returns the ids and names that the vendor of an OpenAI-compatible API takes for those of a
    conversation. Without a target and a limit all stay as they are."""
    limit = quirks.max_id_length
    if target is None and limit is None:
        return {}, {}
    named_pieces = find_named_pieces(conversation, tools)
    if not named_pieces:
        return {}, {}
    vendor_pieces = set[int]()
    if limit is None and target is not None:
        # An id that the vendor gave goes back as it is, whatever it looks like.
        vendor_pieces = {
            id(piece)
            for message in conversation
            if message.origin is not None and message.origin.provider == target.provider
            for piece in message.content
        }
    rule = NameRule(most=limit or _SAFE_ID_LENGTH)
    ids = map_call_ids(conversation, rule, as_is=lambda piece: id(piece) in vendor_pieces)
    return ids, fit_names([piece.name for piece in named_pieces])
