"""A piece of content → a block of the wire. What the wire or its target cannot hold is told to `losses`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.media import label, text_of
from dragoman.loss import Loss
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
)
from dragoman.wires.anthropic.media import dump_media, told
from dragoman.wires.anthropic.quirks import NAME, OWN, Quirks

__all__ = ["Writer", "result_text"]


class Writer(msgspec.Struct, frozen=True):
    """What the pieces of one message share while they are written."""

    quirks: Quirks
    losses: list[Loss]
    ids: Mapping[tuple[int, int], str] = {}
    """Place of a call or result → the id to send."""
    names: Mapping[str, str] = {}
    """Name of a tool → the name to send."""
    message: int = 0
    """Position of the message that is being written."""
    role: Role = Role.USER
    """Who speaks in it."""
    unreadable: str | None = None
    """Why what the provider signed in it must not be sent; `None`: it may."""
    answer: bool = False
    """It is written into a response, whose client is told even what no request may hold."""

    def lose(self, part: int | None, what: str, why: str) -> None:
        """Notes something that is left out or changed."""
        self.losses.append(Loss(self.message, part, what, why))

    def blocks(self, content: tuple[Content, ...]) -> list[dict[str, Any]]:
        """The blocks of a message, in its order."""
        blocks = [self._block(piece, place) for place, piece in enumerate(content)]
        sent = [block for block in blocks if block is not None]
        if self.unreadable is None:
            return sent
        ordered = sorted(sent, key=lambda block: block.get("type") == "tool_use")
        if ordered != sent:
            self.lose(None, "order", "the API wants a message's calls after everything else")
        return ordered

    def _block(self, piece: Content, place: int) -> dict[str, Any] | None:
        if isinstance(piece, TextPart):
            return self._text(piece, place)
        if isinstance(piece, (DataPart, LinkPart, FilePart)):
            return self._media(piece, place)
        if isinstance(piece, ThinkingPart):
            return self._thinking(piece, place)
        if isinstance(piece, ProviderPart):
            return self._signed(piece, {}, place, f"a block of the provider's, {piece.kind}")
        if piece.run_by == "provider":
            if isinstance(piece, ToolCallPart):
                held = {"id": piece.id, "name": piece.name, "input": piece.arguments}
                return self._signed(piece, held, place, f"a call of {piece.name}, which the provider ran")
            held = {"tool_use_id": piece.id, "content": piece.result, **({"is_error": True} if piece.is_error else {})}
            return self._signed(piece, held, place, f"a result of {piece.name}, which the provider ran")
        if self.role is not (Role.MODEL if isinstance(piece, ToolCallPart) else Role.USER):
            self.lose(place, "a call or result", "the API takes calls from the model and results from the user alone")
            return None
        id_ = self.ids.get((self.message, place), piece.id)
        if isinstance(piece, ToolCallPart):
            return self._call(piece, id_)
        block: dict[str, Any] = {"type": "tool_result", **self._fields(piece), "tool_use_id": id_}
        spelled = OWN.form(piece.native).get("content")
        if piece.is_content:
            parts = cast("tuple[TextPart | DataPart | LinkPart | FilePart, ...]", piece.result)
            blocks = [self._text(p, place) if isinstance(p, TextPart) else self._media(p, place) for p in parts]
            block["content"] = [part for part in blocks if part is not None]
        elif spelled == "blocks" and isinstance(cast("object", piece.result), list):
            block["content"] = piece.result
        elif piece.result is not None or (spelled != "absent" and "content" not in block):
            block["content"] = result_text(piece.result)
        if piece.is_error:
            block["is_error"] = True
        return block

    def _text(self, part: TextPart, place: int) -> dict[str, Any] | None:
        if not part.text.strip() and not self.answer:
            self.lose(place, "blank text", "the API refuses it")
            return None
        return {"type": "text", **self._fields(part), "text": part.text}

    def _media(self, part: DataPart | LinkPart | FilePart, place: int) -> dict[str, Any]:
        block, lost = dump_media(part)
        if self.role is not Role.USER and block["type"] in ("image", "document"):
            block, lost = told(part), None
            if text_of(part) is None:
                lost = label(part), "the API takes media from the user alone"
        if lost is not None:
            self.lose(place, *lost)
        return block

    def _thinking(self, part: ThinkingPart, place: int) -> dict[str, Any] | None:
        own = OWN.fields(part.native)
        signed = "signature" in own or "type" in own or OWN.form(part.native).get("signature") == "absent"
        why = self.unreadable
        if why is None and not (signed or self.answer or self.quirks.unsigned_thinking):
            why = "it has no signature"
        if why is not None:
            self.lose(place, "thinking", why)
            return None
        if not signed and self.answer:
            own = {"signature": ""}  # the official clients demand one
        return {"type": "thinking", **own, **({} if "type" in own else {"thinking": part.text})}

    def _signed(self, piece: Content, held: dict[str, Any], place: int, what: str) -> dict[str, Any] | None:
        """A block that goes back to its own origin and to nobody else."""
        why = self.unreadable or (None if NAME in (piece.native or ()) else "it is another provider's")
        if why is not None:
            self.lose(place, what, why)
            return None
        return {**OWN.fields(piece.native), **held}

    def _call(self, call: ToolCallPart, id_: str) -> dict[str, Any]:
        block = {"type": "tool_use", **self._fields(call), "id": id_, "name": self.names.get(call.name, call.name)}
        if call.state == "complete" or "input" not in block:
            block["input"] = call.arguments  # `{}` for what is cut or invalid
        return block

    def _fields(self, piece: Content) -> dict[str, Any]:
        """The piece's own fields; towards an origin that does not read them, cache marks alone."""
        own = OWN.fields(piece.native)
        return own if self.unreadable is None else {key: own[key] for key in ("cache_control",) if key in own}


def result_text(result: Any) -> str:
    """What a tool returned, as text: a string as it is, else JSON."""
    return result if isinstance(result, str) else json_bytes.encode(result).decode()
