"""A part of the wire ↔ a piece of content. What has no neutral shape, or is not of the documented
shape, is kept whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.native import read_signatures
from dragoman.codec.replay import name_part_type
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
from dragoman.wires.google.keys import camelled, snake_form, snaked_part
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

_Block = Json
_Fields = JsonMap


def load_content(parts: Sequence[Any], pairing: Pairing) -> tuple[Content, ...]:
    """The parts of a content, each a JSON object → its pieces."""
    return tuple([load_block(part, pairing) for part in parts])


def is_known(part: _Fields) -> bool:
    """Whether it has the content of a part that is documented."""
    block = camelled(part, set())
    return any(kind in block for kind in ("text", *_LOADERS))


def load_block(part: _Fields, pairing: Pairing) -> Content:
    """A part → a piece of content."""
    snake: set[str] = set()
    block = camelled(part, snake)
    kinds = [kind for kind in ("text", *_LOADERS) if kind in block]
    piece: Content | None = None
    if not kinds and block and set(block) <= {"thought", SIGNATURE}:
        absent = ("text",) if block.get("thought") is True else ("text", "thought")
        piece = _thinking("", block, snake, *absent)
    elif kinds == ["text"]:
        piece = _load_text(block["text"], read_extra_fields(block, "text"), snake)
    elif len(kinds) == 1 and isinstance(inner := block[kinds[0]], dict):
        piece = _LOADERS[kinds[0]](
            camelled(if_object(inner), snake), read_extra_fields(block, kinds[0]), {}, pairing
        )
        if piece is not None and snake:
            piece = replace(piece, native=OWN.with_form(piece.native, **snake_form(snake)))
    return _whole(part) if piece is None else piece


def dump_content(content: Sequence[Content], out: OutgoingContents, position: int) -> list[_Block]:
    """The parts of a message, in its order; media that a function's response cannot hold come
    last."""
    parts: list[_Block] = []
    later: list[_Block] = []
    unsigned = (
        out.target is not None or out.unreadable[position] is not None
    ) and out.quirks.signs_calls
    for place, piece in enumerate(content):
        part, following = dump_block(piece, out, position, place)
        later += following
        if part is None:
            continue
        if unsigned and "functionCall" in part:
            part.setdefault(SIGNATURE, out.quirks.placeholder)
            unsigned = False
        parts.append(
            part if isinstance(piece, ProviderPart) else snaked_part(part, OWN.form(piece.native))
        )
    return parts + later


def dump_block(
    piece: Content, out: OutgoingContents, position: int, place: int
) -> tuple[_Block | None, Sequence[_Block]]:
    """A piece → its part (`None`: it cannot be sent), and parts that follow all others of its
    message."""
    if isinstance(piece, ToolResultPart) and piece.run_by != "provider":
        return (
            dump_result(piece, out, position, place)
            if _has_side(piece, out, position, place)
            else (None, ())
        )
    return _DUMPERS[type(piece)](piece, out, position, place), ()


def _whole(part: _Fields) -> ProviderPart:
    """A part that only the provider understands."""
    kind = next((key for key in part if not key.startswith("thought")), "part")
    return ProviderPart(kind, {NAME: dict(part)})


def _load_text(text: Any, own: _Block, snake: set[str]) -> TextPart | ThinkingPart | None:
    if not isinstance(text, str):
        return None
    if own.get("thought") is True:
        return _thinking(text, own, snake)
    if text:
        return TextPart(text, OWN.note(own, form=snake_form(snake)))
    return _thinking("", own, snake, "thought") if SIGNATURE in own else None  # decision 14


def _thinking(text: str, block: _Fields, snake: set[str], *absent: str) -> ThinkingPart:
    own = {key: value for key, value in block.items() if key != "thought" or value is not True}
    return ThinkingPart(
        text, OWN.note(own, form={**dict.fromkeys(absent, "absent"), **snake_form(snake)})
    )


def _dump_text(part: TextPart, out: OutgoingContents, position: int, place: int) -> _Block:
    return {**out.own(part, position, place), "text": part.text}


def _dump_thinking(
    part: ThinkingPart, out: OutgoingContents, position: int, place: int
) -> _Block | None:
    why = out.unreadable[position]
    if why is None and not OWN.is_ours(part.native) and read_signatures(part.native):
        why = "another provider signed it"
    if why is not None:
        out.lose(position, place, Lost.thinking, why)
        return None
    form = {} if part.text else OWN.form(part.native)
    fields = {"text": part.text, "thought": True}
    own = OWN.fields(part.native)
    block = {**own, **{key: value for key, value in fields.items() if form.get(key) != "absent"}}
    return {**block, **own} if form.get("thought") == "absent" else block


def _dump_provider(
    part: ProviderPart, out: OutgoingContents, position: int, place: int
) -> _Block | None:
    return out.signed(part, {}, position, place, f"a part of the provider's, {part.kind}")


def _dump_call(
    call: ToolCallPart, out: OutgoingContents, position: int, place: int
) -> _Block | None:
    if call.run_by == "provider":
        return dump_run(call, out, position, place)
    return dump_call(call, out, position, place) if _has_side(call, out, position, place) else None


def _has_side(
    piece: ToolCallPart | ToolResultPart, out: OutgoingContents, position: int, place: int
) -> bool:
    """Whether a call or result stands where a target takes it."""
    side = Role.MODEL if isinstance(piece, ToolCallPart) else Role.USER
    if out.target is None or out.messages[position].role is side:
        return True
    why = "the API takes calls from the model and results from the user alone"
    out.lose(position, place, name_part_type(piece), why)
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
