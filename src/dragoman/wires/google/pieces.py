"""A piece of content → parts of the wire. What the wire or its target cannot hold is told to `losses`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.codec.media import ELSEWHERE, as_text, label
from dragoman.codec.media import text_of as media_text
from dragoman.codec.replay import kind_of
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
    ToolResultPart,
)
from dragoman.wires.google.keys import merged, snaked, snakes
from dragoman.wires.google.media import dump_media, is_taken
from dragoman.wires.google.pairing import given_id
from dragoman.wires.google.parts import CODE
from dragoman.wires.google.quirks import OWN, Quirks
from dragoman.wires.google.results import dump_response_object, media_of, text_of

__all__ = ["Writer"]

_SIGNATURE = "thoughtSignature"
_Part = dict[str, Any]


class Writer(msgspec.Struct, frozen=True):
    """What the pieces of one message share while they are written."""

    quirks: Quirks
    losses: list[Loss]
    names: Mapping[str, str] = {}
    """Name of a function → the name to send."""
    unnamed: Collection[str] = frozenset()
    """Ids of the calls that came without one: neither they nor their results are sent with it."""
    called: Mapping[str, str] = {}
    """Id of a call → its function, for results that do not tell it."""
    model: str = ""
    """The target's model; `""` where it is not known."""
    message: int = 0
    """Position of the message that is being written."""
    role: Role = Role.USER
    unreadable: str | None = None
    """Why what the provider signed in it must not be sent; `None`: it may."""
    ids: Mapping[tuple[int, int], str] = {}
    """Place of a call or result → the id to send, where it has one."""
    strict: bool = False
    """It goes to a target, which takes each piece from its own side alone."""

    def lose(self, part: int | None, what: str, why: str) -> None:
        """Notes something that is left out or changed."""
        self.losses.append(Loss(self.message, part, what, why))

    def parts(self, content: tuple[Content, ...]) -> list[_Part]:
        """The parts of a message, in its order; media that a function's response cannot hold come last."""
        parts: list[_Part] = []
        later: list[_Part] = []
        first = (self.strict or self.unreadable is not None) and not self.quirks.is_older(self.model)
        for place, piece in enumerate(content):
            part = self._part(piece, place, later)
            if part is not None and first and "functionCall" in part:
                part.setdefault(_SIGNATURE, self.quirks.placeholder)
                first = False
            if part is not None:
                parts.append(self._spelled(part, piece))
        return parts + later

    def _part(self, piece: Content, place: int, later: list[_Part]) -> _Part | None:
        if isinstance(piece, TextPart):
            return {**self._own(piece, place), "text": piece.text}
        if isinstance(piece, (DataPart, LinkPart, FilePart)):
            return merged(self._own(piece, place), self._media(piece, place))
        if isinstance(piece, ThinkingPart):
            return self._thinking(piece, place)
        if isinstance(piece, ProviderPart):
            return self._signed(piece, {}, place, f"a part of the provider's, {piece.kind}")
        if piece.run_by == "provider":
            return self._run(piece, place)
        if self.strict and self.role is not (Role.MODEL if isinstance(piece, ToolCallPart) else Role.USER):
            self.lose(place, kind_of(piece), "the API takes calls from the model and results from the user alone")
            return None
        if isinstance(piece, ToolCallPart):
            return self._call(piece, place)
        return self._result(piece, place, later)

    def _thinking(self, part: ThinkingPart, place: int) -> _Part | None:
        why = self.unreadable
        if why is None and part.native and not OWN.is_ours(part.native):
            why = "another provider signed it"
        if why is not None:
            self.lose(place, "thinking", why)
            return None
        told: Mapping[str, Any] = {} if part.text else OWN.form(part.native)
        own = OWN.fields(part.native)
        block = {**own, "text": part.text, "thought": True}
        for key in ("text", "thought"):
            if told.get(key) == "absent":
                del block[key]
        return {**block, **own} if told.get("thought") == "absent" else block

    def _call(self, call: ToolCallPart, place: int) -> _Part:
        inner: _Part = {"name": self.names.get(call.name, call.name), "args": call.arguments, **self._id(call, place)}
        told = OWN.form(call.native)
        if "args" in told and not call.arguments:
            inner["args"] = None
            if told["args"] == "absent":
                del inner["args"]
        return merged(self._own(call, place), {"functionCall": inner})

    def _result(self, result: ToolResultPart, place: int, later: list[_Part]) -> _Part:
        own = self._own(result, place)
        name = result.name or self.called.get(result.id, "")
        inner: _Part = {"name": self.names.get(name, name), **self._id(result, place)}
        if not result.name and "name" in (told := OWN.form(result.native)):
            inner["name"] = told["name"]
            if told["name"] == "absent":
                del inner["name"]
        if result.is_content:
            inner["response"], media = self._response(result), media_of(result.result)
            if media and tuple(result.result[-len(media) :]) != tuple(media):
                self.lose(place, "order", "a function's response has its text before its media")
            if OWN.form(result.native).get("parts") == "inside" or self._takes_media():
                parts = [self._spelled(self._media(piece, place), piece) for piece in media]
                inner["parts"] = [part for part in parts if "text" not in part]
                later += [part for part in parts if "text" in part]
            elif media:
                later.append({"text": f"[result of {name or result.id}]"})
                later += [self._media(piece, place) for piece in media]
                self.lose(place, "media", "the model takes none inside a function's response; they follow it")
        elif OWN.form(result.native).get("response") != "as is" or result.result is not None:
            inner["response"] = dump_response_object(result.result, is_error=result.is_error)
        return merged(own, {"functionResponse": inner})

    def _response(self, result: ToolResultPart) -> _Part:
        text = text_of(result.result)
        return dump_response_object(text, is_error=result.is_error) if text or result.is_error else {}

    def _takes_media(self) -> bool:
        return not self.quirks.is_older(self.model)

    def _run(self, piece: ToolCallPart | ToolResultPart, place: int) -> _Part | None:
        """What the provider ran goes back as it came."""
        told = OWN.form(piece.native)
        if isinstance(piece, ToolCallPart):
            key, held, value = ("toolCall", "args", piece.arguments)
        else:
            key, held, value = ("toolResponse", "response", piece.result)
        if piece.name == CODE:
            key = "executableCode" if isinstance(piece, ToolCallPart) else "codeExecutionResult"
            inner = {**if_object(value), **given_id(piece.native, piece.id)}
        else:
            inner = {
                "toolType": piece.name,
                **given_id(piece.native, piece.id),
                **({} if told.get(held) == "absent" else {held: value}),
            }
        return self._signed(piece, {key: inner}, place, f"{piece.name}, which the provider ran")

    def _signed(self, piece: Content, told: _Part, place: int, what: str) -> _Part | None:
        """A part that goes back to its own origin and to nobody else."""
        why = self.unreadable or (None if OWN.is_ours(piece.native) else "it is another provider's")
        if why is not None:
            self.lose(place, what, why)
            return None
        own = OWN.fields(piece.native) if isinstance(piece, ProviderPart) else _without_id(OWN.fields(piece.native))
        return merged(own, told)

    def _media(self, part: DataPart | LinkPart | FilePart, place: int) -> _Part:
        block = None if self.strict and not is_taken(part) else dump_media(part)
        if block is None:
            if media_text(part) is None:
                held = isinstance(part, FilePart)
                self.lose(place, label(part), ELSEWHERE if held else f"the API takes no {part.mime_type}")
            return {"text": as_text(part)}
        return merged(_without_id(OWN.fields(part.native)), block)

    def _own(self, piece: Content, place: int) -> _Part:
        """The piece's own fields, without a signature that the target does not read."""
        own = _without_id(OWN.fields(piece.native))
        if self.unreadable is not None and own.pop(_SIGNATURE, None) is not None:
            self.lose(place, "signature", self.unreadable)
        return own

    def _id(self, piece: ToolCallPart | ToolResultPart, place: int) -> dict[str, Any]:
        given = given_id(piece.native, piece.id)
        if given.get("id") != piece.id:
            return given
        return {} if piece.id in self.unnamed else {"id": self.ids.get((self.message, place), piece.id)}

    def _spelled(self, part: _Part, piece: Content) -> _Part:
        """The part with the keys in snake_case that came so, also those one level deeper."""
        snake = snakes(OWN.form(piece.native))
        if not snake or isinstance(piece, ProviderPart):
            return part
        deeper = {
            key: snaked(cast("_Part", value), snake) if isinstance(value, dict) else value
            for key, value in part.items()
        }
        return snaked(deeper, snake)


def _without_id(own: Mapping[str, Any]) -> _Part:
    return {key: value for key, value in own.items() if key != "id" or value is not None}
