"""Reads and writes the content of LangChain's messages: standard blocks here, files in `media.py`,
those of providers in `provider_blocks.py`. A block without a neutral shape is kept whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_object, if_text, read_extra_fields
from dragoman.content import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Native,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.errors import HistoryError
from dragoman.formats.langchain.block_extras import (
    add_extras,
    find_foreign_fields,
    read_foreign_fields,
    split_extras,
)
from dragoman.formats.langchain.envelope import NAME, OWN
from dragoman.formats.langchain.media import MEDIA, dump_media, load_media
from dragoman.formats.langchain.message_metadata import OURS
from dragoman.formats.langchain.provider_blocks import (
    ANTHROPIC,
    RESPONSES,
    dump_blocks,
    dump_exploded,
    family,
    load_blocks,
    load_exploded,
    without_index,
)
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import NOTES, Role

__all__ = ["dump_content", "in_content", "load_content"]

Block = Json
_SIGNED = {"anthropic": "signature", "google": "thoughtSignature"}
"""Provider → the field of its native under which the signature of a piece stands."""


def load_content(
    content: object, role: Role, signer: str | None, form: Json, where: str
) -> tuple[Content, ...]:
    """Returns the pieces of the `content` of a LangChain message.

    Args:
        content: a text, or a list of texts and blocks.
        role: whose message it is.
        signer: the provider that answered.
        form: gets a note of whatever is not in the usual form.
        where: the message, for errors.

    Raises:
        HistoryError: it is neither a text nor a list of texts and blocks.
    """
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    blocks = _check_blocks(content, where)
    if not blocks or (len(blocks) == 1 and _is_plain(blocks[0])):
        form["content"] = "list"
    noise: Json = {}
    clean = [_strip_stream_fields(block, index, noise) for index, block in enumerate(blocks)]
    if noise:
        form["noise"] = noise
    pieces: list[Content] = []
    for wire, group in groupby(clean, lambda block: _find_block_family(block, role, signer)):
        if wire is not None and wire not in (ANTHROPIC, RESPONSES):
            pieces += _load_exploded(list(cast("Iterable[Block]", group)), signer)
        elif wire is None or (wire == ANTHROPIC and signer == "google"):
            pieces += [_load_langchain_block(block, signer) for block in group]
        else:
            pieces += _of_wire(wire, list(group), role)
    return tuple(pieces)


def _check_blocks(content: object, where: str) -> list[Any]:
    """Returns the list of texts and blocks that the content of a LangChain message is.

    Raises:
        HistoryError: it is no such list.
    """
    if not isinstance(content, list):
        raise HistoryError(
            f"{where}.content must be a string or a list of strings and content blocks"
        )
    blocks = cast("list[Any]", content)
    for index, block in enumerate(blocks):
        if not isinstance(block, str | dict):
            raise HistoryError(
                f"{where}.content[{index}] must be a string or an object, a content block"
            )
    return blocks


def dump_content(
    pieces: Sequence[tuple[int, Content]], role: Role, form: JsonMap, losses: list[Loss]
) -> Any:
    """Returns the field `content` of a LangChain message. `pieces`: each with its place in the
    message, which the losses name; they name no message."""
    if form.get("content") != "list" and len(pieces) <= 1:
        if not pieces:
            return ""
        piece = pieces[0][1]
        if isinstance(piece, TextPart) and not piece.native:
            return piece.text
    blocks: list[Any] = []
    for wire, group in groupby(pieces, lambda piece: _choose_block_wire(piece[1])):
        run = list(group)
        if wire is None:
            blocks += [block for _, piece in run for block in _dump_all(piece)]
            continue
        lost: list[Loss] = []
        blocks += dump_blocks(wire, [piece for _, piece in run], role, lost)
        losses += [
            msgspec.structs.replace(loss, part=None if loss.part is None else run[loss.part][0])
            for loss in lost
        ]
    if form.get("content") != "list":
        if not blocks:
            return ""
        if len(blocks) == 1 and _is_plain(blocks[0]):
            return blocks[0]["text"]
    _add_noise(blocks, if_object(form.get("noise")))
    return blocks


def _add_noise(blocks: list[Any], noise: JsonMap) -> None:
    """Gives blocks back the meaningless fields that `_strip_stream_fields` took off. `noise`: fields by the
    LangChain block's position as text, for JSON; another type of block stands there if it was
    edited."""
    for position, fields in noise.items():
        index = int(position) if position.isdecimal() else len(blocks)
        block = blocks[index] if index < len(blocks) else None
        if isinstance(block, dict) and cast("Block", block).get("type") == fields.get("type"):
            blocks[index] = {**fields, **cast("Block", block)}


def in_content(piece: ToolCallPart | ToolResultPart) -> bool:
    """True if a call or result must stand in `content`, since a list of calls or a LangChain
    message of the tool's cannot hold all of it."""
    if not piece.native:
        return piece.run_by == "provider"
    stood = OWN.form(piece.native).keys() & {"as", "wire"}
    if piece.run_by == "provider" or stood or isinstance(piece, ToolResultPart):
        return piece.run_by == "provider" or bool(stood)
    if piece.state != "complete":
        return _choose_block_wire(piece) is not None
    return _choose_block_wire(piece) is not None or bool(find_foreign_fields(piece.native))


def _find_block_family(block: object, role: Role, signer: str | None) -> str | None:
    """Returns the provider family of a LangChain block, shared by the blocks of a signed reasoning
    item."""
    if not isinstance(block, dict):
        return None
    fields = cast("Block", block)
    if (
        signer == "openai"
        and fields.get("type") == "reasoning"
        and "summary" not in fields
        and if_text(fields.get("id"))
    ):
        return f"reasoning {fields['id']}"
    return family(fields, role)


def _load_exploded(blocks: list[Block], signer: str | None) -> Sequence[Content]:
    """Returns the piece of exploded blocks, or a piece for each if they cannot be written back."""
    pieces = load_exploded(blocks)
    if len(pieces) != 1 or dump_exploded(pieces[0]) != blocks:
        return [_load_langchain_block(block, signer) for block in blocks]
    return [_note(pieces[0], **{"as": "exploded"})]


def _load_wrapped(block: Block) -> Content | None:
    """Returns a provider's block inside a standard block of LangChain content that says no more
    than it."""
    value = if_object(block.get("value"))
    wire = family(value, Role.MODEL)
    pieces = () if wire is None else _of_wire(wire, [value], Role.MODEL)
    if len(pieces) == 1:
        return _note(pieces[0], **{"as": "non_standard", "of": wire})
    return None


def _of_wire(wire: str, blocks: list[Block], role: Role) -> tuple[Content, ...]:
    """Reads LangChain content blocks by a provider's wire, and keeps those whole that it would
    write differently."""
    try:
        pieces = load_blocks(wire, blocks, role)
        again = dump_blocks(wire, pieces, role, [])
    except HistoryError:
        again, pieces = [], ()
    if again != blocks and len(blocks) > 1:
        return tuple([piece for block in blocks for piece in _of_wire(wire, [block], role)])
    if again != blocks and not (
        pieces and all(isinstance(piece, ThinkingPart) for piece in pieces)
    ):
        return (_keep_block_whole(blocks[0]),)
    return tuple(
        [
            piece if _choose_block_wire(piece) == wire else _note(piece, wire=wire)
            for piece in pieces
        ]
    )


def _note(piece: Content, **form: Any) -> Content:
    """Returns the piece, with a note of the block that it was."""
    native = {**(piece.native or {}), **(OWN.with_form(piece.native, **form) or {})}
    return msgspec.structs.replace(piece, native=native)


def _choose_block_wire(piece: Content) -> str | None:
    """Returns the wire that writes a piece; `None`: LangChain's own blocks say it."""
    if not piece.native:
        return None
    native, form = piece.native, OWN.form(piece.native)
    if "as" not in form and (noted := form.get("wire")) in (ANTHROPIC, RESPONSES):
        return noted
    if (
        NAME in native
        or "as" in form
        or isinstance(piece, (MarkPart, DataPart, LinkPart, FilePart))
    ):
        return None
    if isinstance(piece, ToolResultPart) and piece.is_content and piece.run_by == "provider":
        return None
    if (
        len(find_foreign_fields(native)) > 1
    ):  # a block of one wire has no place for what another signed
        return None
    for wire in (ANTHROPIC, RESPONSES):
        if wire in native or wire + NOTES in native:
            if _wire_takes_piece(wire, piece):
                return wire
            return None
    return None


def _wire_takes_piece(wire: str, piece: Content) -> bool:
    """True if the wire writes such a piece as a LangChain block that is known as its own."""
    fields = if_object((piece.native or {}).get(wire))
    if isinstance(piece, ProviderPart):
        return wire in (family(fields, Role.MODEL), family(fields, Role.USER))
    if wire == ANTHROPIC and isinstance(piece, TextPart):
        return bool(piece.text.strip())
    if wire == ANTHROPIC and isinstance(piece, ThinkingPart):
        return bool({"signature", "type"} & fields.keys()) or wire + NOTES in (piece.native or {})
    return True


def _strip_stream_fields(block: object, index: int, noise: Json) -> Any:
    """Returns a LangChain block without the numbers by which a stream was put together and without
    fields that say nothing, which are noted."""
    if not isinstance(block, dict):
        return block
    fields = cast("Block", block)
    quiet = {
        key: value
        for key, value in fields.items()
        if key in ("type", "id") or not (key == "index" or value is None)
    }
    if len(quiet) < len(fields):
        noise[str(index)] = {
            key: fields[key] for key in fields if key not in quiet or key == "type"
        }
    if quiet.get("type") == "reasoning" and "summary" in quiet:
        return without_index(quiet)
    return quiet


def _load_langchain_block(block: Any, signer: str | None) -> Content:
    """Returns a text, or a block of LangChain's own."""
    if isinstance(block, str):
        if block:
            return TextPart(block, OWN.note(form={"as": "string"}, mark=True))
        return _whole_text()
    block_type = if_text(block.get("type"))
    piece: Content | None = None
    if block_type == "non_standard":
        piece = _load_wrapped(block)
    elif block_type in MEDIA:
        standard, foreign = split_extras(block)
        if (piece := load_media(standard)) is not None and foreign:
            piece = msgspec.structs.replace(piece, native={**foreign, **(piece.native or {})})
    elif block_type in _LOADERS:
        piece = _LOADERS[block_type](block, signer)
    if piece is not None and _dump_langchain_block(piece) == block:
        return piece
    return _keep_block_whole(block)


def _whole_text() -> ProviderPart:
    return ProviderPart("text", OWN.note({"text": ""}, form={"as": "string"}))


def _keep_block_whole(block: Block) -> ProviderPart:
    """Keeps a LangChain block whole as a provider's part."""
    block_type = if_text(block.get("type")) or "block"
    if block_type == "non_standard" and (
        foreign := read_foreign_fields(if_object(block.get("value")))
    ):
        return ProviderPart(if_text(block["value"].get("type")) or block_type, foreign)
    return ProviderPart(block_type, OWN.note(block, mark=True))


def _dump_all(piece: Content) -> list[Any]:
    if OWN.form(piece.native).get("as") == "exploded":
        return dump_exploded(piece)
    return [_dump_langchain_block(piece)]


def _dump_langchain_block(piece: Content) -> Any:
    """Returns a piece of content as LangChain's text or block."""
    block_fields, form = OWN.fields(piece.native), OWN.form(piece.native)
    if form.get("as") == "non_standard" and form.get("of") in (ANTHROPIC, RESPONSES):
        value = dump_blocks(form["of"], [piece], Role.MODEL, [])
        return {"type": "non_standard", "value": value[0] if value else {}}
    if isinstance(piece, (DataPart, LinkPart, FilePart)):
        return add_extras(dump_media(piece), find_foreign_fields(piece.native))
    if isinstance(piece, TextPart):
        if form.get("as") == "string":
            return piece.text
        return add_extras(
            {**block_fields, "type": "text", "text": piece.text}, find_foreign_fields(piece.native)
        )
    if isinstance(piece, ProviderPart):
        if NAME in (piece.native or {}):
            if form.get("as") == "string":
                return block_fields.get("text", "")
            return block_fields
        return {
            "type": "non_standard",
            "value": {"type": piece.kind, OURS: find_foreign_fields(piece.native)},
        }
    return _DUMPERS[type(piece)](piece, block_fields, form)


def _load_text(block: Block, _: str | None) -> TextPart | None:
    """Returns a LangChain block of text as a part, or None if it is empty."""
    text = block.get("text")
    extra_fields, foreign = split_extras(read_extra_fields(block, "type", "text"))
    if isinstance(text, str) and text:
        return TextPart(text, _native(extra_fields, {}, foreign))
    return None


def _load_reasoning(block: Block, signer: str | None) -> ThinkingPart | None:
    """Returns the thinking of a LangChain standard block, or of Google's; the signature goes to the
    provider that signed it."""
    block_type = block["type"]
    field = "reasoning" if block_type == "reasoning" else "thinking"
    text = block.get(field, "")
    if not isinstance(text, str):
        return None
    extra_fields, foreign = split_extras(read_extra_fields(block, "type", field))
    form: Json = {"as": block_type, **({} if field in block else {"text": "absent"})}
    if block_type == "reasoning":
        signature = if_object(extra_fields.get("extras")).get("signature")
    else:
        signature = extra_fields.get("signature")
    if signer in _SIGNED and isinstance(signature, str) and signer not in foreign:
        form["signer"] = signer
        foreign = {**foreign, signer: {_SIGNED[signer]: signature}}
        if block_type == "reasoning":
            more = read_extra_fields(extra_fields["extras"], "signature")
            extra_fields = {
                **read_extra_fields(extra_fields, "extras"),
                **({"extras": more} if more else {}),
            }
        else:
            extra_fields = read_extra_fields(extra_fields, "signature")
    return ThinkingPart(text, _native(extra_fields, form, foreign))


def _dump_reasoning(piece: ThinkingPart, block_fields: Block, form: JsonMap) -> Block:
    """Returns thinking as a LangChain block `reasoning` or `thinking`, with its signature."""
    block_type, signer = form.get("as", "reasoning"), form.get("signer")
    field = "reasoning" if block_type == "reasoning" else "thinking"
    block = {
        **block_fields,
        "type": block_type,
        **({} if form.get("text") == "absent" and not piece.text else {field: piece.text}),
    }
    foreign = find_foreign_fields(piece.native)
    if signer in _SIGNED:
        signature = if_object(foreign.pop(signer, None)).get(_SIGNED[signer])
        if signature is not None and block_type == "reasoning":
            block["extras"] = {**if_object(block_fields.get("extras")), "signature": signature}
        elif signature is not None:
            block["signature"] = signature
    return add_extras(block, foreign)


def _load_call(block: Block, _: str | None) -> ToolCallPart | None:
    """Returns a LangChain block of a tool call as a part, or None if its shape is unknown."""
    id_, name, arguments = block.get("id"), block.get("name"), block.get("args")
    if not isinstance(id_, str) or not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    extra_fields, foreign = split_extras(read_extra_fields(block, "type", "id", "name", "args"))
    runner = "provider" if block["type"] == "server_tool_call" else "agent"
    native = _native(extra_fields, {"as": block["type"]}, foreign)
    return ToolCallPart(id_, name, cast("Block", arguments), run_by=runner, native=native)


def _dump_call(piece: ToolCallPart, block_fields: Block, _: JsonMap) -> Block:
    """Returns a tool call as a LangChain block, by who runs it and whether it is valid."""
    block_type = "server_tool_call" if piece.run_by == "provider" else "tool_call"
    block = {
        **block_fields,
        "type": block_type,
        "id": piece.id,
        "name": piece.name,
        "args": piece.arguments,
    }
    if piece.state != "complete":
        block |= {
            "type": "invalid_tool_call",
            "args": piece.raw,
            "error": block_fields.get("error"),
        }
    return add_extras(block, find_foreign_fields(piece.native))


def _load_server_result(block: Block, _: str | None) -> ToolResultPart | None:
    """Returns a LangChain block `server_tool_result` as a part, or None if its shape is unknown."""
    id_, status = block.get("tool_call_id"), block.get("status")
    if not isinstance(id_, str) or status not in ("success", "error"):
        return None
    extra_fields, foreign = split_extras(
        read_extra_fields(block, "type", "tool_call_id", "status", "output")
    )
    form = {"as": "server_tool_result", **({} if "output" in block else {"output": "absent"})}
    native = _native(extra_fields, form, foreign)
    return ToolResultPart(id_, "", block.get("output"), status == "error", "provider", native)


def _dump_result(piece: ToolResultPart, block_fields: Block, form: JsonMap) -> Block:
    """Returns a tool result as a LangChain block `server_tool_result`."""
    block: Block = {**block_fields, "type": "server_tool_result", "tool_call_id": piece.id}
    block["status"] = "error" if piece.is_error else "success"
    if form.get("output") != "absent" or piece.result is not None:
        block["output"] = (
            [_dump_langchain_block(part) for part in piece.result]
            if piece.is_content
            else piece.result
        )
    return add_extras(block, find_foreign_fields(piece.native))


def _native(extra_fields: Block, form: Json, foreign: JsonMap) -> Native:
    return {**foreign, **(OWN.note(extra_fields, form) or {})} or None


def _is_plain(block: object) -> bool:
    """Returns whether a LangChain block is a text and nothing else."""
    if not isinstance(block, dict):
        return False
    fields = cast("Block", block)
    is_text = len(fields) == 2 and fields.get("type") == "text"
    return is_text and bool(if_text(fields.get("text")))


_LOADERS = {
    "text": _load_text,
    "reasoning": _load_reasoning,
    "thinking": _load_reasoning,
    "tool_call": _load_call,
    "server_tool_call": _load_call,
    "server_tool_result": _load_server_result,
}
_DUMPERS: Mapping[type[Content], Any] = {
    ThinkingPart: _dump_reasoning,
    ToolCallPart: _dump_call,
    ToolResultPart: _dump_result,
}
