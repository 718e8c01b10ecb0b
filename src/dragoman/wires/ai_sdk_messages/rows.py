"""Rows of Mastra's storage (V2): what they are read and written by, and a row around its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from dragoman.codec.json_values import if_object, if_text
from dragoman.codec.media import Media
from dragoman.message import (
    MarkPart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk_messages.details import dump_details, load_details, with_details
from dragoman.wires.ai_sdk_messages.dialect import Dialect, Envelope, Part, Parts
from dragoman.wires.ai_sdk_messages.file_data import dump_attachment, dump_data, load_data
from dragoman.wires.ai_sdk_messages.invocations import (
    INVOCATION,
    dump_invocation,
    dump_invocation_result,
    load_invocation,
)
from dragoman.wires.ai_sdk_messages.marks import dump_mark
from dragoman.wires.ai_sdk_messages.mirrors import ALONE, alone_in, mirrored
from dragoman.wires.ai_sdk_messages.nested import nested
from dragoman.wires.ai_sdk_messages.old_text import dump_empty_text, dump_old_text, load_old_text
from dragoman.wires.ai_sdk_messages.own import OURS, OWN
from dragoman.wires.ai_sdk_messages.reading import STEP
from dragoman.wires.ai_sdk_messages.threads import thread_of
from dragoman.wires.ai_sdk_messages.times import js_date

__all__ = ["CONTENT", "ROW", "ROW_DIALECT"]

ROW = "mastra_v2"
"""The dialect."""
CONTENT = frozenset(
    ["format", "parts", "content", "toolInvocations", "reasoning", "experimental_attachments", "annotations", "metadata", "providerMetadata"]
)  # fmt: skip
"""Fields of a row's content."""


def _beside(piece: TextPart | ThinkingPart | Media | ToolCallPart, part: Part, value: Any) -> Part:
    """The part, or, where the piece stands in a field beside the parts, what it is there."""
    field = alone_in(piece.native)
    if field is None:
        return part
    step = OWN.form(piece.native).get("step") is True
    return {"type": ALONE, "field": field, "value": value, **({"step": True} if step else {})}


def _text(piece: TextPart, is_model: bool) -> Part:  # noqa: ARG001 it is the same for all
    return _beside(piece, dump_old_text(piece, ROW), piece.text)


def _thinking(pieces: Sequence[ThinkingPart]) -> Parts:
    parts: Parts = []
    at = 0
    while at < len(pieces):
        same = with_details(pieces, at)
        at += len(same)
        if OWN.form(same[0].native).get("text") == "empty" and not same[0].text:
            parts.append(dump_empty_text(same[0], ROW))
        else:
            parts.append(_beside(same[0], dump_details(same, ROW), same[0].text))
    return parts


def _file(piece: Media, is_model: bool) -> Part:  # noqa: ARG001 it is the same for all
    if alone_in(piece.native) is None:
        return dump_data(piece, ROW)
    return _beside(piece, {}, dump_attachment(piece, ROW))


def _call(call: ToolCallPart, answered: bool, step: int) -> Part:  # noqa: ARG001 the marks tell the step
    part = dump_invocation(call, ROW, answered=answered)
    return _beside(call, part, part["toolInvocation"])


def _result(part: Part, result: ToolResultPart, call: ToolCallPart) -> Part:
    if part["type"] != ALONE:
        return dump_invocation_result(part, result, call, ROW)
    both = dump_invocation_result(
        {"type": INVOCATION, "toolInvocation": part["value"]}, result, call, ROW
    )
    return {**part, "value": both["toolInvocation"]}


def _mark(mark: MarkPart | ProviderPart) -> Part:
    return dump_mark(mark, ROW)


def _envelope(given: Envelope) -> dict[str, Any]:
    first = given.first
    form = OWN.form(first.native) if first.native else {}
    read_here = form.get("in") == ROW
    form = form if read_here else {}
    outer, within = nested(OWN.fields(first.native) if read_here else {}, CONTENT)
    if not read_here:
        outer = thread_of(first.native)
    row: dict[str, Any] = {} if given.id is None else {"id": given.id}
    row["role"] = "signal" if form.get("role") == "signal" else given.role
    if first.created_at is not None:
        as_date = form.get("created_at")
        row["createdAt"] = (
            first.created_at if as_date == "datetime"
            else first.created_at.replace(tzinfo=None) if as_date == "naive"
            else js_date(first.created_at)
        )  # fmt: skip
        if "createdAt" in outer and form.get("created_at") != row["createdAt"]:
            del outer["createdAt"]
    parts, alone = _apart(given.parts)
    beside = mirrored(parts, form.get("mirrors"))
    for field, values in alone.items():
        beside[field] = "".join(values) if field in ("content", "reasoning") else values
    content: dict[str, Any] = {"format": 2, "parts": parts, **beside}
    if form.get("parts") == "absent" and not parts:
        del content["parts"]
    metadata = dict(first.own_metadata) if first.metadata and OURS not in first.metadata else {}
    if given.extras:
        metadata[OURS] = given.extras
    kept = within.pop("metadata", ())
    if isinstance(kept, dict):
        content["metadata"] = {**metadata, **cast("dict[str, Any]", kept)}
    elif metadata or kept != ():
        content["metadata"] = metadata or kept
    return {**row, "content": {**content, **within}, **outer}


def _apart(given: Parts) -> tuple[Parts, dict[str, list[Any]]]:
    """The parts, and what stands in fields beside them. A step that begins with nothing but that is none."""
    parts: Parts = []
    alone: dict[str, list[Any]] = {}
    for part in given:
        if part["type"] != ALONE:
            parts.append(part)
            continue
        alone.setdefault(if_text(part["field"]), []).append(part["value"])
        if part.get("step") and parts and parts[-1] == {"type": STEP}:
            parts.pop()
    return parts, alone


def _keep(own: dict[str, Any], extras: Any) -> dict[str, Any]:
    return {**own, "metadata": {**if_object(own.get("metadata")), OURS: extras}}


ROW_DIALECT = Dialect(
    ROW,
    {
        "text": load_old_text,
        "reasoning": load_details,
        "file": load_data,
        INVOCATION: load_invocation,
    },
    {},
    _text,
    _thinking,
    _file,
    _call,
    _result,
    _mark,
    _envelope,
    _keep,
    silent=False,
    times=True,
)
"""What a row's parts are read and written by."""
