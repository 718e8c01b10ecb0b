"""A part of the wire → a piece of content. What has no neutral shape, or is not of the documented shape, is kept whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from dragoman.codec.ids import NAMES
from dragoman.codec.json_values import if_object
from dragoman.message import Content, Native, ProviderPart, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires.google.keys import camelled, not_usual
from dragoman.wires.google.media import load_file, load_inline
from dragoman.wires.google.pairing import Pairing
from dragoman.wires.google.quirks import NAME, OWN
from dragoman.wires.google.results import load_response_object, with_media

__all__ = ["CODE", "load_part", "whole"]

CODE = "codeExecution"
"""Name of the tool whose calls are `executableCode`, and whose results are `codeExecutionResult`."""


_OK = ("OUTCOME_OK", 1)
"""By its name, and by its number as `$alt=json;enum-encoding=int` gives it."""
_Fields = Mapping[str, Any]


def load_part(part: _Fields, pairing: Pairing) -> Content:
    """A part → a piece of content."""
    snake: set[str] = set()
    block = camelled(part, snake)
    kinds = [kind for kind in ("text", *_LOADERS) if kind in block]
    if not kinds and set(block) <= {"thought", "thoughtSignature"} and block:
        return _thinking({"text": "absent"}, "", block, snake)
    if len(kinds) != 1:
        return whole(part)
    kind = kinds[0]
    own = {key: value for key, value in block.items() if key != kind}
    inner = block[kind]
    if kind == "text":
        return (_text(inner, own, snake) if isinstance(inner, str) else None) or whole(part)
    if not isinstance(inner, dict):
        return whole(part)
    piece = _LOADERS[kind](camelled(if_object(inner), snake), own, {}, pairing)
    return whole(part) if piece is None else _with_snake(piece, snake)


def whole(part: _Fields) -> ProviderPart:
    """A part that only the provider understands."""
    kind = next((key for key in part if not key.startswith("thought")), "part")
    return ProviderPart(kind, {NAME: dict(part)})


def _text(text: str, own: dict[str, Any], snake: set[str]) -> TextPart | ThinkingPart | None:
    if own.get("thought") is True:
        return _thinking({}, text, own, snake)
    if text:
        return TextPart(text, OWN.note(own, form=_snake(snake)))
    if "thoughtSignature" in own:  # decision 14
        return _thinking({"thought": "absent"}, "", own, snake)
    return None


def _thinking(told: _Fields, text: str, block: _Fields, snake: set[str]) -> ThinkingPart:
    own = {key: value for key, value in block.items() if key != "thought" or value is not True}
    if told.get("text") == "absent" and block.get("thought") is not True:
        told = {**told, "thought": "absent"}
    return ThinkingPart(text, OWN.note(own, form={**told, **_snake(snake)}))


def _inline(inner: _Fields, own: _Fields, told: dict[str, Any], _: Pairing) -> Content | None:
    return load_inline(inner, own, told)


def _file(inner: _Fields, own: _Fields, told: dict[str, Any], _: Pairing) -> Content | None:
    return load_file(inner, own, told)


def _call(inner: _Fields, own: _Fields, told: dict[str, Any], pairing: Pairing) -> ToolCallPart | None:
    name, arguments = inner.get("name"), inner.get("args")
    if not isinstance(name, str) or not name:
        return None
    id_, unnamed = _id(inner, told)
    rest = {key: value for key, value in inner.items() if key not in ("id", "name", "args")}
    kept = {**own, **unnamed, **({"functionCall": rest} if rest else {})}
    if not NAMES.fits(name):
        told["name"] = "as is"
    call = ToolCallPart(pairing.call(id_, name), name)
    if isinstance(arguments, dict):
        return msgspec.structs.replace(call, arguments=if_object(arguments), native=OWN.note(kept, form=told))
    if arguments is None:
        told["args"] = not_usual(inner, "args")
        return msgspec.structs.replace(call, native=OWN.note(kept, form=told))
    return None


def _result(inner: _Fields, own: _Fields, told: dict[str, Any], pairing: Pairing) -> ToolResultPart:
    name = inner.get("name")
    name = name if isinstance(name, str) else ""
    id_, unnamed = _id(inner, told)
    known = {"id", "name"}
    if inner.get("name") != name:
        told["name"] = inner.get("name", "absent")
    result, is_error = None, False
    if isinstance(response := inner.get("response"), dict):
        known.add("response")
        result, is_error = load_response_object(cast("dict[str, Any]", response))
        media = with_media(cast("dict[str, Any]", response), inner.get("parts"), lambda part: load_part(part, pairing))
        if media is not None:
            known.add("parts")
            result, told["parts"] = media, "inside"
    else:
        told["response"] = "as is"
    rest = {key: value for key, value in inner.items() if key not in known}
    kept = {**own, **unnamed, **({"functionResponse": rest} if rest else {})}
    return ToolResultPart(pairing.result(id_, name), name, result, is_error, native=OWN.note(kept, form=told))


def _code(inner: _Fields, own: _Fields, told: dict[str, Any], pairing: Pairing) -> ToolCallPart:
    id_, unnamed = _id(inner, told)
    arguments = {key: value for key, value in inner.items() if key != "id"}
    return ToolCallPart(pairing.run(id_), CODE, arguments, run_by="provider", native=_kept(own, unnamed, told))


def _code_result(inner: _Fields, own: _Fields, told: dict[str, Any], pairing: Pairing) -> ToolResultPart:
    id_, unnamed = _id(inner, told)
    result = {key: value for key, value in inner.items() if key != "id"}
    failed = inner.get("outcome") not in _OK
    return ToolResultPart(pairing.ran(id_), CODE, result, failed, "provider", _kept(own, unnamed, told))


def _server_call(inner: _Fields, own: _Fields, told: dict[str, Any], pairing: Pairing) -> ToolCallPart | None:
    name, arguments = inner.get("toolType"), inner.get("args", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    if "args" not in inner:
        told["args"] = "absent"
    id_, unnamed = _id(inner, told)
    rest = {key: value for key, value in inner.items() if key not in ("id", "toolType", "args")}
    native = _kept({**own, **({"toolCall": rest} if rest else {})}, unnamed, told)
    return ToolCallPart(pairing.run(id_), name, cast("dict[str, Any]", arguments), run_by="provider", native=native)


def _server_result(inner: _Fields, own: _Fields, told: dict[str, Any], pairing: Pairing) -> ToolResultPart | None:
    name = inner.get("toolType")
    if not isinstance(name, str):
        return None
    if "response" not in inner:
        told["response"] = "absent"
    id_, unnamed = _id(inner, told)
    rest = {key: value for key, value in inner.items() if key not in ("id", "toolType", "response")}
    native = _kept({**own, **({"toolResponse": rest} if rest else {})}, unnamed, told)
    return ToolResultPart(pairing.ran(id_), name, inner.get("response"), run_by="provider", native=native)


def _id(inner: _Fields, told: dict[str, Any]) -> tuple[str | None, dict[str, None]]:
    """The id that was given, and the mark where none was."""
    id_ = inner.get("id")
    if isinstance(id_, str) and id_:
        return id_, {}
    if "id" in inner:
        told["id"] = id_
    return None, {"id": None}


def _kept(own: _Fields, unnamed: _Fields, told: _Fields) -> Native:
    return OWN.note({**own, **unnamed}, mark=True, form=told)


def _snake(snake: set[str]) -> dict[str, list[str]]:
    return {"snake": sorted(snake)} if snake else {}


def _with_snake(piece: Content, snake: set[str]) -> Content:
    if not snake:
        return piece
    return msgspec.structs.replace(piece, native=OWN.with_form(piece.native, **_snake(snake)))


_Loader = Callable[[_Fields, _Fields, dict[str, Any], Pairing], Content | None]
_LOADERS: Mapping[str, _Loader] = {
    "inlineData": _inline,
    "fileData": _file,
    "functionCall": _call,
    "functionResponse": _result,
    "executableCode": _code,
    "codeExecutionResult": _code_result,
    "toolCall": _server_call,
    "toolResponse": _server_result,
}
