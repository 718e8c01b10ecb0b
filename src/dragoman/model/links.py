"""Files by their URL in a conversation: which there are, which of them a target cannot take, and the message with their bytes instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dragoman import wires
from dragoman.loss import Loss, Lost
from dragoman.message import NOTES, Content, DataPart, LinkPart, Message, ToolResultPart
from dragoman.model.middleware import Destination
from dragoman.request import ModelRequest

__all__ = ["Places", "link_places", "links_in", "unsendable", "with_files"]

Places = Mapping[int, Sequence[int]]
"""Position of a message → positions of pieces in its content."""
_HOLDERS = (LinkPart, ToolResultPart)


def link_places(messages: Sequence[Message]) -> Places:
    """Where files stand that a URL of HTTP names, those in results of tools included."""
    places: dict[int, list[int]] = {}
    for number, message in enumerate(messages):
        for at, piece in enumerate(message.content):
            if type(piece) in _HOLDERS and any(links_in(piece)):
                places.setdefault(number, []).append(at)
    return places


def links_in(piece: Content) -> Iterator[LinkPart]:
    """The files by their URL that a piece is, or holds."""
    if isinstance(piece, LinkPart):
        if piece.url[:8].lower().startswith(("http://", "https://")):
            yield piece
    elif isinstance(piece, ToolResultPart) and piece.is_content and piece.run_by != "provider":
        for part in piece.result:
            if isinstance(part, LinkPart):
                yield from links_in(part)


def unsendable(request: ModelRequest, places: Places, to: Destination) -> Places:
    """Those of the places whose files the target is not sent by their URL. They are written as they would be for it, with as little else as it
    takes."""
    wire = wires.client(to.wire) or wires.get(to.wire)
    numbers = sorted(places)
    losses: list[Loss] = []
    tried = request.replace(
        model=to.model or "",
        messages=tuple(request.messages[number] for number in numbers),
        on_loss="tell",
        run=None,
    )
    wire.dump_request(tried, target=to, quirks=to.quirks, losses=losses)
    lost = {
        (numbers[loss.message], loss.part)
        for loss in losses
        if loss.message is not None and loss.part is not None and loss.what is Lost.link
    }
    found = {
        number: [at for at in positions if (number, at) in lost]
        for number, positions in places.items()
    }
    return {number: positions for number, positions in found.items() if positions}


def with_files(
    message: Message, positions: Sequence[int], files: Mapping[str, DataPart]
) -> Message:
    """The message, with files by their bytes where there are some for the URLs at these positions."""
    content = list(message.content)
    for at in positions:
        content[at] = _with_file(content[at], files)
    return message.replace(content=tuple(content))


def _with_file(piece: Content, files: Mapping[str, DataPart]) -> Content:
    if isinstance(piece, ToolResultPart):
        return msgspec.structs.replace(
            piece, result=tuple(_with_file(part, files) for part in piece.result)
        )
    if not isinstance(piece, LinkPart) or (file := files.get(piece.url)) is None:
        return piece
    own = {
        name: fields for name, fields in (piece.native or {}).items() if not name.endswith(NOTES)
    }
    return msgspec.structs.replace(file, name=piece.name or file.name, native=own or None)
