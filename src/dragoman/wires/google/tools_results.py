"""What came of tools ↔ content: functions' responses, and the calls and results of tools that the
provider runs itself.

The API wants an object as a `response`: a string that is a JSON object is that object, any other
value is `{"result": value}`, and what went wrong is `{"error": …}`. Media stand beside it, in
`parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, if_text, read_extra_fields, text_or_json
from dragoman.codec.media import Media
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Native,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.google.content_media import dump_media
from dragoman.wires.google.keys import merged, part_to_snake_case
from dragoman.wires.google.quirks import OWN
from dragoman.wires.google.tools import OutgoingContents, Pairing, dump_id, load_id

__all__ = [
    "dump_result",
    "dump_run",
    "load_code",
    "load_code_result",
    "load_result",
    "load_server_call",
    "load_server_result",
]

_CODE = "codeExecution"
"""Name of the tool whose calls are `executableCode`, and whose results are
`codeExecutionResult`."""
_OK = ("OUTCOME_OK", 1)
"""By its name, and by its number as `$alt=json;enum-encoding=int` gives it."""
_MEDIA = (DataPart, LinkPart, FilePart)
_Fields = JsonMap


def load_result(
    inner: _Fields,
    block_fields: _Fields,
    form: Json,
    pairing: Pairing,
    load_block: Callable[[_Fields], Content],
) -> ToolResultPart:
    """Converts a `functionResponse` to the result. `own`: the Gemini part's other fields;
    `load_block` reads the media in it."""
    name = if_text(inner.get("name"))
    id_, unnamed = load_id(inner, form)
    if inner.get("name") != name:
        form["name"] = inner.get("name", "absent")
    read = ["id", "name"]
    result, is_error = None, False
    if isinstance(inner.get("response"), dict):
        response = if_object(inner["response"])
        read.append("response")
        result, is_error = _load_response(response)
        media = _with_media(response, inner.get("parts"), load_block)
        if media is not None:
            read.append("parts")
            result, form["parts"] = media, "inside"
    else:
        form["response"] = "as is"
    further = read_extra_fields(inner, *read)
    native = OWN.note(
        {**block_fields, **unnamed, **({"functionResponse": further} if further else {})}, form=form
    )
    return ToolResultPart(pairing.result(id_, name), name, result, is_error, native=native)


def dump_result(
    result: ToolResultPart, out: OutgoingContents, position: int, index: int
) -> tuple[Json, list[Json]]:
    """Returns the inverse, and the Gemini parts that follow the message's own: media that a
    function's response cannot hold."""
    name = result.name or out.functions.get(result.id, "")
    inner: Json = {"name": out.name(name), **out.id_field(result, position, index)}
    if not (result.native or result.is_content):
        inner["response"] = _dump_response(result.result, is_error=result.is_error)
        return {"functionResponse": inner}, []
    wire_fields, form = out.own(result, position, index), OWN.form(result.native)
    if not result.name and "name" in form:
        inner["name"] = form["name"]
        if form["name"] == "absent":
            del inner["name"]
    later: list[Json] = []
    if result.is_content:
        text, media = (
            _text(result.result),
            [piece for piece in result.result if isinstance(piece, _MEDIA)],
        )
        if text or result.is_error:
            inner["response"] = _dump_response(text, is_error=result.is_error)
        else:
            inner["response"] = {}
        if media and tuple(result.result[-len(media) :]) != tuple(media):
            out.lose(
                position, index, Lost.order, "a function's response has its text before its media"
            )
        parts = [dump_media(piece, out, position, index) for piece in media]
        if form.get("parts") == "inside" or out.quirks.allows("result_media"):
            parts = [
                part_to_snake_case(part, OWN.form(piece.native))
                for part, piece in zip(parts, media, strict=True)
            ]
            inner["parts"] = [part for part in parts if "text" not in part]
            later = [part for part in parts if "text" in part]
        elif media:
            later = [{"text": f"[result of {name or result.id}]"}, *parts]
            why = "the model takes none inside a function's response; they follow it"
            out.lose(position, index, Lost.media, why)
    elif form.get("response") != "as is" or result.result is not None:
        inner["response"] = _dump_response(result.result, is_error=result.is_error)
    return merged(wire_fields, {"functionResponse": inner}), later


def load_code(inner: _Fields, block_fields: _Fields, form: Json, pairing: Pairing) -> ToolCallPart:
    """Converts Gemini's `executableCode` to the call of the tool that ran it."""
    id_, unnamed = load_id(inner, form)
    native = _native(block_fields, unnamed, form)
    return ToolCallPart(
        pairing.run(id_), _CODE, read_extra_fields(inner, "id"), run_by="provider", native=native
    )


def load_code_result(
    inner: _Fields, block_fields: _Fields, form: Json, pairing: Pairing
) -> ToolResultPart:
    """Reads Gemini's `codeExecutionResult` as a tool result."""
    id_, unnamed = load_id(inner, form)
    native = _native(block_fields, unnamed, form)
    failed = inner.get("outcome") not in _OK
    return ToolResultPart(
        pairing.ran(id_), _CODE, read_extra_fields(inner, "id"), failed, "provider", native
    )


def load_server_call(
    inner: _Fields, block_fields: _Fields, form: Json, pairing: Pairing
) -> ToolCallPart | None:
    """Converts Gemini's `toolCall` to the call; `None` where it is of another shape."""
    name, arguments = inner.get("toolType"), inner.get("args", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    if "args" not in inner:
        form["args"] = "absent"
    id_, unnamed = load_id(inner, form)
    further = read_extra_fields(inner, "id", "toolType", "args")
    native = _native({**block_fields, **({"toolCall": further} if further else {})}, unnamed, form)
    return ToolCallPart(
        pairing.run(id_), name, if_object(arguments), run_by="provider", native=native
    )


def load_server_result(
    inner: _Fields, block_fields: _Fields, form: Json, pairing: Pairing
) -> ToolResultPart | None:
    """Converts Gemini's `toolResponse` to the result; `None` where it is of another shape."""
    name = inner.get("toolType")
    if not isinstance(name, str):
        return None
    if "response" not in inner:
        form["response"] = "absent"
    id_, unnamed = load_id(inner, form)
    further = read_extra_fields(inner, "id", "toolType", "response")
    native = _native(
        {**block_fields, **({"toolResponse": further} if further else {})}, unnamed, form
    )
    return ToolResultPart(
        pairing.ran(id_), name, inner.get("response"), run_by="provider", native=native
    )


def dump_run(
    piece: ToolCallPart | ToolResultPart, out: OutgoingContents, position: int, index: int
) -> Json | None:
    """Converts a call or result of a tool that the provider ran to the Gemini part as it came;
    `None` where it may not go back."""
    calls = isinstance(piece, ToolCallPart)
    id_, value = dump_id(piece.native, piece.id), piece.arguments if calls else piece.result
    if piece.name == _CODE:
        key, inner = (
            "executableCode" if calls else "codeExecutionResult",
            {**if_object(value), **id_},
        )
    else:
        key, field = ("toolCall", "args") if calls else ("toolResponse", "response")
        absent = OWN.form(piece.native).get(field) == "absent"
        inner = {"toolType": piece.name, **id_, **({} if absent else {field: value})}
    which = f"a {'call' if calls else 'result'} of {piece.name}, which the provider ran"
    return out.signed(piece, {key: inner}, position, index, which)


def _load_response(response: _Fields) -> tuple[Any, bool]:
    """Converts the `response` of a Gemini function response to the result, and whether it tells of
    an error."""
    if set(response) == {"result"}:
        value = response["result"]
        if not isinstance(value, dict) and _dump_response(value) == response:
            return value, False
    return dict(response), set(response) == {"error"}


def _dump_response(result: Any, *, is_error: bool = False) -> Json:
    """Converts a result that is no media to the `response` of a Gemini function response."""
    if isinstance(result, str):
        read = _parse_object(result)
        result = result if read is None else read
    key = "error" if is_error else "result"
    if isinstance(result, dict) and (not is_error or key in result):
        return cast("Json", result)
    return {key: result}


def _with_media(
    response: _Fields, parts: Any, load_block: Callable[[_Fields], Content]
) -> tuple[TextPart | Media, ...] | None:
    """Converts Gemini's `response` of a function and its media to the result's parts, the text
    first; `None` where parts cannot say it all."""
    if not isinstance(parts, list) or not parts:
        return None
    loaded = [
        load_block(cast("_Fields", part))
        for part in cast("list[Any]", parts)
        if isinstance(part, dict)
    ]
    media = [piece for piece in loaded if isinstance(piece, _MEDIA)]
    if len(media) < len(cast("list[Any]", parts)):
        return None
    value, _ = _load_response(response)
    text = text_or_json(value) if value else ""
    if not text:
        return None if response else tuple(media)
    if _dump_response(text) == response:
        return (TextPart(text), *media)
    return None


def _text(parts: Sequence[Content]) -> str:
    return "\n".join([part.text for part in parts if isinstance(part, TextPart)])


def _parse_object(text: str) -> Json | None:
    """Returns the JSON object that a text in a Gemini tool result is; `None`: it is none."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return cast("Json", json_bytes.decode(text))
    except ValueError:
        return None


def _native(block_fields: _Fields, unnamed: _Fields, form: _Fields) -> Native:
    return OWN.note({**block_fields, **unnamed}, mark=True, form=form)
