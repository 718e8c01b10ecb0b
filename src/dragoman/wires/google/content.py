"""A part of the wire ↔ a piece of content. What has no neutral shape, or is not of the documented
shape, is kept whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.native import read_signatures
from dragoman.codec.signature_check import name_part_type
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.google.content_media import dump_media, load_file, load_inline
from dragoman.wires.google.keys import part_to_snake_case, snake_form, to_camel_case
from dragoman.wires.google.quirks import NAME, OWN
from dragoman.wires.google.tools import SIGNATURE, OutgoingContents, Pairing, dump_call, load_call
from dragoman.wires.google.tools_results import (
    dump_result,
    dump_run,
    load_code,
    load_code_result,
    load_result,
    load_server_call,
    load_server_result,
)

__all__ = ["dump_block", "dump_content", "is_known", "load_block", "load_content"]

_SIDES = {ToolCallPart: Role.MODEL, ToolResultPart: Role.USER}
"""Whose messages may hold calls, and whose results."""
_Block = Json
_Fields = JsonMap


def load_content(parts: Sequence[Any], pairing: Pairing) -> tuple[Content, ...]:
    """Converts the parts of a content, each a JSON object to its pieces."""
    return tuple([load_block(part, pairing) for part in parts])


def is_known(part: _Fields) -> bool:
    """Returns True if it has the content of a part that is documented."""
    block = to_camel_case(part, set())
    return any(field in block for field in ("text", *_LOADERS))


def load_block(part: _Fields, pairing: Pairing) -> Content:
    """Converts a Gemini part to a piece of content."""
    snake: set[str] = set()
    block = to_camel_case(part, snake)
    kinds = [field for field in ("text", *_LOADERS) if field in block]
    piece: Content | None = None
    if not kinds and block and set(block) <= {"thought", SIGNATURE}:
        if block.get("thought") is True:
            absent = ("text",)
        else:
            absent = ("text", "thought")
        piece = _load_thinking("", block, snake, *absent)
    elif kinds == ["text"]:
        piece = _load_text(block["text"], read_extra_fields(block, "text"), snake)
    elif len(kinds) == 1 and isinstance(inner := block[kinds[0]], dict):
        piece = _LOADERS[kinds[0]](
            to_camel_case(if_object(inner), snake), read_extra_fields(block, kinds[0]), {}, pairing
        )
        if piece is not None and snake:
            piece = replace(piece, native=OWN.with_form(piece.native, **snake_form(snake)))
    return _whole(part) if piece is None else piece


def dump_content(content: Sequence[Content], out: OutgoingContents, position: int) -> list[_Block]:
    """Returns the Gemini parts of a message, in its order; media that a function's response cannot
    hold come last."""
    parts: list[_Block] = []
    later: list[_Block] = []
    has_reader = out.target is not None or out.unreadable[position] is not None
    unsigned = has_reader and out.quirks.signs_calls
    for index, piece in enumerate(content):
        part, following = dump_block(piece, out, position, index)
        later += following
        if part is None:
            continue
        if unsigned and "functionCall" in part:
            part.setdefault(SIGNATURE, out.quirks.placeholder)
            unsigned = False
        if piece.native and not isinstance(piece, ProviderPart):
            part = part_to_snake_case(part, OWN.form(piece.native))
        parts.append(part)
    return parts + later


def dump_block(
    piece: Content, out: OutgoingContents, position: int, index: int
) -> tuple[_Block | None, Sequence[_Block]]:
    """Converts a part of a message to Gemini's part, or None if it cannot be sent. Also returns
    Gemini parts that must follow all others of the message: files of a tool result. `position`: of
    the message in the conversation; `index`: of the part in the message."""
    if isinstance(piece, ToolResultPart) and piece.run_by != "provider":
        if _stands_on_right_side(piece, out, position, index):
            return dump_result(piece, out, position, index)
        return (None, ())
    return _DUMPERS[type(piece)](piece, out, position, index), ()


def _whole(part: _Fields) -> ProviderPart:
    """Returns a part that only the provider understands."""
    field = next((key for key in part if not key.startswith("thought")), "part")
    return ProviderPart(field, {NAME: dict(part)})


def _load_text(text: Any, block_fields: _Block, snake: set[str]) -> TextPart | ThinkingPart | None:
    """Returns a text part of Gemini's as text or thinking, or None if it says nothing."""
    if not isinstance(text, str):
        return None
    if block_fields.get("thought") is True:
        return _load_thinking(text, block_fields, snake)
    if text:
        return TextPart(text, OWN.note(block_fields, form=snake_form(snake)))
    # Decision 14.
    if SIGNATURE in block_fields:
        return _load_thinking("", block_fields, snake, "thought")
    return None


def _load_thinking(text: str, block: _Fields, snake: set[str], *absent: str) -> ThinkingPart:
    """Returns thinking with the fields of its Gemini part; `absent` names fields that it lacked."""
    block_fields = {
        key: value for key, value in block.items() if key != "thought" or value is not True
    }
    return ThinkingPart(
        text, OWN.note(block_fields, form={**dict.fromkeys(absent, "absent"), **snake_form(snake)})
    )


def _dump_text(part: TextPart, out: OutgoingContents, position: int, index: int) -> _Block:
    if not part.native:
        return {"text": part.text}
    return {**out.own(part, position, index), "text": part.text}


def _dump_thinking(
    part: ThinkingPart, out: OutgoingContents, position: int, index: int
) -> _Block | None:
    """Returns the Gemini part of thinking, or None with a loss if another provider signed it."""
    why = out.unreadable[position]
    if why is None and not OWN.is_ours(part.native) and read_signatures(part.native):
        why = "another provider signed it"
    if why is not None:
        out.lose(position, index, Lost.thinking, why)
        return None
    form = {} if part.text else OWN.form(part.native)
    fields = {"text": part.text, "thought": True}
    wire_fields = OWN.fields(part.native)
    block = {
        **wire_fields,
        **{key: value for key, value in fields.items() if form.get(key) != "absent"},
    }
    if form.get("thought") == "absent":
        return {**block, **wire_fields}
    return block


def _dump_provider(
    part: ProviderPart, out: OutgoingContents, position: int, index: int
) -> _Block | None:
    return out.signed(part, {}, position, index, f"a part of the provider's, {part.kind}")


def _dump_call(
    call: ToolCallPart, out: OutgoingContents, position: int, index: int
) -> _Block | None:
    """Returns the Gemini part of a call, or None if its message's side cannot have calls."""
    if call.run_by == "provider":
        return dump_run(call, out, position, index)
    if _stands_on_right_side(call, out, position, index):
        return dump_call(call, out, position, index)
    return None


def _stands_on_right_side(
    piece: ToolCallPart | ToolResultPart, out: OutgoingContents, position: int, index: int
) -> bool:
    """Returns True if a call or result stands in a message where Gemini takes it."""
    if out.target is None:
        return True
    if out.messages[position].role is _SIDES[type(piece)]:
        return True
    why = "the API takes calls from the model and results from the user alone"
    out.lose(position, index, name_part_type(piece), why)
    return False


_LOADERS: Mapping[str, Callable[[_Fields, _Fields, _Block, Pairing], Content | None]] = {
    "inlineData": lambda inner, own, form, _: load_inline(inner, own, form),
    "fileData": lambda inner, own, form, _: load_file(inner, own, form),
    "functionCall": load_call,
    "functionResponse": lambda inner, own, form, pairing: load_result(
        inner, own, form, pairing, lambda part: load_block(part, pairing)
    ),
    "executableCode": load_code,
    "codeExecutionResult": load_code_result,
    "toolCall": load_server_call,
    "toolResponse": load_server_result,
}
_DUMPERS: Mapping[type[Content], Callable[[Any, OutgoingContents, int, int], _Block | None]] = {
    TextPart: _dump_text,
    DataPart: dump_media,
    LinkPart: dump_media,
    FilePart: dump_media,
    ThinkingPart: _dump_thinking,
    ProviderPart: _dump_provider,
    ToolCallPart: _dump_call,
    ToolResultPart: dump_run,
}
