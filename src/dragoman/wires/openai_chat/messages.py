"""Messages of Chat Completions, where they are more than the family's: further fields of the
model's message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.codec.ids import NameRule, fit_names, map_call_ids
from dragoman.codec.json_values import if_object, if_objects, if_text
from dragoman.codec.layout import Layout
from dragoman.codec.media import describe_as_text, guess_media_type
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
    own=frozenset(
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
"""Where its messages stand."""

ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER}
_OLDER_ROLES = {"system": Role.SYSTEM, "user": Role.USER}
_SHORTEST = 40
"""How long an id may be for every vendor that is known."""


def note_field(field: str, part: Content) -> Content:
    """A part that stands in a field of its own, beside the message's content."""
    return replace(part, native=OWN.with_form(part.native, field=field))


def _refusal(_: DialectRecord, value: Any, __: Iterator[str]) -> list[Content]:
    return [note_field("refusal", TextPart(value))] if isinstance(value, str) and value else []


def _images(chat: DialectRecord, value: Any, _: Iterator[str]) -> list[Content]:
    return [note_field("images", load_block(chat, image)) for image in if_objects(value)]


def _audio(_: DialectRecord, value: Any, __: Iterator[str]) -> list[Content]:
    audio_id = if_text(if_object(value).get("id"))
    return (
        [note_field("audio", FilePart(audio_id))] if value == {"id": audio_id} and audio_id else []
    )


FIELDS = {
    "refusal": _refusal,
    "images": _images,
    "audio": _audio,
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
"""What tells this format: roles, types of blocks, fields of the model's message."""


def call_votes(call_id: str) -> int:
    """How surely an id of a call is of this format."""
    return 3 if call_id.startswith("call_") else 2


def dump_piece(out: OutgoingChat, position: int, index: int, piece: Content) -> tuple[str, Any]:
    """A piece of the model's message → the field of the message that holds it, and what it adds to
    that."""
    content = out.messages[position].content
    field = OWN.form(piece.native).get("field") if out.returns_to_origin(position) else None
    # stands with its call
    if isinstance(piece, ToolResultPart):
        if not any(
            isinstance(other_piece, ToolCallPart) and other_piece.id == piece.id
            for other_piece in content
        ):
            out.lose(
                position, index, Lost.tool_result, "it stands with its call, which is not there"
            )
        return "executed_tools", None
    if isinstance(piece, ToolCallPart) and piece.run_by == "provider":
        results = {
            other_piece.id: other_piece
            for other_piece in content
            if isinstance(other_piece, ToolResultPart)
        }
        before = [
            other_piece
            for other_piece in content[:index]
            if isinstance(other_piece, ToolCallPart) and other_piece.run_by == "provider"
        ]
        return "executed_tools", dump_executed_tool(piece, results.get(piece.id), len(before))
    if field == "refusal" and isinstance(piece, TextPart):
        return "refusal", piece.text
    if field == "audio":
        return "audio", {
            "id": piece.id if isinstance(piece, FilePart) else OWN.fields(piece.native).get("id")
        }
    into, value = messages.dump_piece(out, position, index, piece)
    if field == "function_call" and isinstance(piece, ToolCallPart) and "function" in value:
        return "function_call", value["function"]
    if (
        into == "content"
        and value is not None
        and out.target is None
        and _is_after_provider_tool(content, index)
    ):
        out.lose(
            position,
            index,
            Lost.order,
            "this format has all text before the tools that the vendor ran",
        )
    return "images" if field == "images" else into, value


def _is_after_provider_tool(content: Sequence[Content], index: int) -> bool:
    """Whether a tool that the vendor ran stands between a piece and the text before it."""
    for earlier in range(index - 1, -1, -1):
        if isinstance(content[earlier], (TextPart, DataPart, LinkPart, FilePart)):
            return False
        if getattr(content[earlier], "run_by", "") == "provider":
            return True
    return False


def explain_unsendable(out: OutgoingChat, position: int, piece: Content) -> str | None:
    """Why a piece of a model's message cannot be sent; `None`: it can."""
    reason = out.unreadable[position]
    homeless = isinstance(piece, ThinkingPart) and NAME not in (piece.native or ())
    if homeless and out.quirks.thinking is None and out.target is not None:
        return reason or "the vendor takes no thinking back"
    if isinstance(piece, (ToolCallPart, ToolResultPart)) and piece.run_by == "provider":
        taken = out.target is None or out.quirks.executed_tools
        return reason or (None if taken else "the vendor takes no record of tools that it ran")
    return messages.explain_unsendable(out, position, piece)


def dump_noted_block(out: OutgoingChat, position: int, index: int, piece: Content) -> Json | None:
    """A piece → the block under which it is sent; what that does not hold is noted.

    A target would take a link to something else for a broken image, and refuse the conversation.
    """
    block = dump_block(out.chat, piece, out.blocks)
    if block is None:
        return None
    if out.target and isinstance(piece, LinkPart) and block["type"] == "image_url":
        is_image = (piece.mime_type or guess_media_type(piece.url) or "image/*").startswith(
            "image/"
        )
        block = block if is_image else {"type": "text", "text": describe_as_text(piece)}
    if (what := find_loss(piece, block)) is not None:
        out.lose(position, index, *what)
    return block


def fit(
    chat: DialectRecord,  # noqa: ARG001 as of a method
    conversation: Sequence[Message],
    target: Origin | None,
    quirks: Quirks,
    tools: Sequence[ToolSpec],
) -> Json:
    """The fields of an `Outgoing` by which a conversation fits the vendor. `tools`: those of the
    request."""
    ids: dict[tuple[int, int], str] = {}
    names: dict[str, str] = {}
    limit = quirks.max_id_length
    if (target is not None or limit is not None) and (
        named := find_named_pieces(conversation, tools)
    ):
        given_by_vendor = set[int]()
        if limit is None and target is not None:
            # What the vendor gave itself goes back as it is, whatever it looks like.
            given_by_vendor = {
                id(piece)
                for message in conversation
                if message.origin is not None and message.origin.provider == target.provider
                for piece in message.content
            }
        rule = NameRule(most=limit or _SHORTEST)
        ids = map_call_ids(conversation, rule, as_is=lambda piece: id(piece) in given_by_vendor)
        names = fit_names([piece.name for piece in named])
    return {
        "ids": ids,
        "names": names,
        "blocks": quirks.blocks,
        "roles": ROLES if quirks.developer else _OLDER_ROLES,
        "string_only": quirks.string_content,
        "thinking": quirks.thinking,
        "json_schema": quirks.json_schema,
        "refuses": quirks.refuses,
        "ways": {
            "max_tokens": quirks.max_tokens,
            "reasoning": quirks.reasoning or "",
            "cache": quirks.cache or "",
        },
    }
