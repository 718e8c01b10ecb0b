"""Reads and writes the steps of a model's answer. A step `model_output` holds content, a `thought`
its summary and a signature; calls and results are steps of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from dragoman.codec.json_values import if_list, if_object, if_objects, if_text, read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    Native,
    ProviderPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.google_interactions.content import is_block, load_content
from dragoman.wires.google_interactions.quirks import OWN
from dragoman.wires.google_interactions.tools import (
    RESULT,
    dump_call,
    dump_result,
    load_call,
    load_result,
)

__all__ = [
    "INPUT",
    "OUTPUT",
    "THOUGHT",
    "StepList",
    "dump_step",
    "load_model_step",
    "load_thought",
    "read_step_start",
]

INPUT, OUTPUT, THOUGHT = "user_input", "model_output", "thought"


class StepList:
    """The steps of one message while they are written. Blocks of content that follow each other
    share a step."""

    def __init__(self, step_type: str, fields: JsonMap | None = None) -> None:
        """Starts without steps. `step_type`: that of steps with content. `fields`: further fields
        of the first such step."""
        self.steps: list[Json] = []
        self._type = step_type
        self._fields: JsonMap = fields or Json()
        self._blocks: list[Json] | None = None

    def add_block(self, block: Json, begun: JsonMap | None = None) -> None:
        """Adds a content block. `begun`: the fields of the Interactions step that it begins."""
        if self._blocks is None or begun is not None:
            self._blocks = list[Json]()
            step: Json = {"type": self._type, **(self._fields if begun is None else begun)}
            self.steps.append(step | {"content": self._blocks})
            self._fields = Json()
        self._blocks.append(block)

    def add_step(self, step: Json) -> None:
        """Adds a step that is no content."""
        self._blocks = None
        self.steps.append(step)


def read_step_start(native: Native) -> Json | None:
    """Returns the further fields of the Interactions step that begins with this piece; None if
    nothing says that one does."""
    notes = OWN.notes(native)
    return dict(if_object(notes["step"])) if "step" in notes else None


def load_model_step(
    step: JsonMap, names: Mapping[str, str], before: Content | None
) -> list[Content]:
    """Reads a step of an answer of the Interactions API. A step of an unknown shape is kept whole.
    `names`: id of each call so far → its tool; `before`: the piece before it."""
    step_type = if_text(step.get("type"))
    part: Content | None = None
    if step_type == OUTPUT:
        if pieces := _load_output(step, before):
            return pieces
    elif step_type == THOUGHT:
        part = load_thought(step)
        # Thinking with nothing of this API's would not be sent, as that of another format.
        if part == ThinkingPart():
            part = ThinkingPart(native=OWN.note(form={"summary": "absent"}))
    elif step_type.endswith("_call"):
        part = load_call(step)
    elif step_type.endswith("_result") and step_type != RESULT:
        part = load_result(step, names)
    return [part or ProviderPart(step_type, OWN.note(step, mark=True))]


def load_thought(step: JsonMap) -> ThinkingPart:
    """Reads a thought of the Interactions API: its summary is the text."""
    summary = step.get("summary")
    pieces = if_objects(summary)
    texts = [if_text(piece.get("text")) for piece in pieces]
    form: Json = {}
    if pieces and summary == [{"type": "text", "text": text} for text in texts] and all(texts):
        # One piece is the usual form.
        if len(texts) > 1:
            form["pieces"] = [len(text) for text in texts]
    elif "summary" in step:
        form["summary"] = summary
    native = OWN.note(read_extra_fields(step, "type", "summary"), form=form)
    return ThinkingPart("".join(texts), native)


def dump_step(piece: Content, call_id: str = "", name: str = "") -> Json | None:
    """Returns a piece of an answer as the Interactions step that it is; None if it is none here.
    `call_id` and `name`: what is sent in place of a call's own."""
    if isinstance(piece, ThinkingPart):
        return _dump_thought(piece)
    if isinstance(piece, ToolCallPart):
        return dump_call(piece, call_id or piece.id, name or piece.name)
    if isinstance(piece, ToolResultPart):
        return dump_result(piece, call_id or piece.id, name or piece.name)
    if isinstance(piece, ProviderPart) and OWN.is_ours(piece.native):
        return OWN.fields(piece.native)
    return None


def _load_output(step: JsonMap, before: Content | None) -> list[Content]:
    """Reads the content of a `model_output`; an empty list if there is none. Its first piece notes
    the step's further fields, and that a step begins there if it follows content."""
    blocks = if_list(step.get("content"))
    pieces = load_content(if_objects(blocks))
    fields = read_extra_fields(step, "type", "content")
    if pieces and (fields or (before is not None and is_block(before))):
        pieces[0] = replace(pieces[0], native=OWN.with_notes(pieces[0].native, step=fields))
    return pieces


def _dump_thought(part: ThinkingPart) -> Json:
    """Writes thinking as a thought of the Interactions API."""
    form = OWN.form(part.native)
    step: Json = {"type": THOUGHT, **OWN.fields(part.native)}
    summary = form.get("summary")
    texts = [if_text(piece.get("text")) for piece in if_objects(summary)]
    if "summary" in form and "".join(texts) == part.text:
        if summary != "absent":
            step["summary"] = summary
    elif part.text:
        step["summary"] = [
            {"type": "text", "text": text} for text in _cut(part.text, if_list(form.get("pieces")))
        ]
    return step


def _cut(text: str, lengths: Sequence[int]) -> list[str]:
    """Returns a text in pieces of these lengths; whole if they are not its own."""
    if not lengths or sum(lengths) != len(text):
        return [text]
    pieces: list[str] = []
    start = 0
    for length in lengths:
        pieces.append(text[start : start + length])
        start += length
    return pieces
