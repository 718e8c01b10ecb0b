"""ShareGPT, the usual form of conversations in training data: `{"conversations": [{"from": "human",
"value": "…"}, …]}`, with `system`, `tools` and any other field beside the turns; or the list of
turns alone.

Three dialects are read: plain text, Hermes' (`<tool_call>`, `<tool_response>` and `<think>` in the
text) and LLaMA-Factory's (turns `function_call` and `observation`). Each is written as it was; what
comes from elsewhere is written as Hermes' models know it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec.format_layout import Layout
from dragoman.codec.json_values import check_depth, if_object, if_text, read_extra_fields
from dragoman.codec.serving import Problem, note_problem
from dragoman.errors import HistoryError
from dragoman.formats.sharegpt_dump import dump_messages
from dragoman.formats.sharegpt_tags import (
    dump_function_call,
    load_answer,
    load_function_call,
    load_results,
)
from dragoman.formats.sharegpt_tools import OWN, Called, OpenCalls
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, Message, Origin, Role, TextPart, ToolCallPart, ToolResultPart

__all__ = ["dump_messages", "layout", "load_messages", "name", "votes"]

name = "sharegpt"
layout = Layout(fields=("conversations",), whole=True)
"""Where its turns stand."""
_ROLES: Mapping[str, Role] = {
    "human": Role.USER,
    "user": Role.USER,
    "gpt": Role.MODEL,
    "assistant": Role.MODEL,
    "chatgpt": Role.MODEL,
    "model": Role.MODEL,
    "bot": Role.MODEL,
    "bing": Role.MODEL,
    "bard": Role.MODEL,
    "function_call": Role.MODEL,
    "system": Role.SYSTEM,
}
"""`from` → whose turn it is; the first of each role is the usual one."""
_RESULTS = ("tool", "observation", "function_response", "function", "ipython")
"""`from` of the turns that hold results."""


def votes(message: object) -> int:
    """Returns how surely an object is a ShareGPT turn: 0 = cannot be, 1 = could be, 2 = likely, 3 =
    hardly anything else."""
    fields = if_object(message)
    speaker = if_text(fields.get("from"))
    is_speaker = speaker in _ROLES or speaker in _RESULTS
    if is_speaker and "value" in fields and isinstance(fields["value"], str | None):
        return 3
    return 0


def load_messages(
    payload: object, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """Reads a conversation: `{"conversations": […], …}`, or the list alone. `origin` is given to
    the model's. With `problems`, a turn that cannot be read is left out and noted there.

    Raises:
        HistoryError: it is no such conversation, or a turn cannot be read and no problems are noted.
    """
    if problems is None:
        payload = check_depth(payload)
    document: Json = {"conversations": payload} if isinstance(payload, list) else if_object(payload)
    turns = document.get("conversations")
    if not isinstance(turns, list):
        raise HistoryError(
            'a conversation of ShareGPT is {"conversations": [{"from": …, "value": …}, …]}'
        )
    reader = _Reader(origin)
    extra = read_extra_fields(document, "conversations")
    if system := if_text(extra.get("system")):
        reader.messages.append(
            Message.system(system).replace(native=OWN.note(form={"place": "system"}))
        )
        del extra["system"]
    for index, turn in enumerate(cast("list[Any]", turns)):
        try:
            reader.read(_check_turn(turn if problems is None else check_depth(turn), index))
        except HistoryError as error:
            note_problem(error, problems, index, _field_at_fault(turn))
    _note_document(reader.messages, extra, problems, is_list=isinstance(payload, list))
    return reader.messages


def _note_document(
    messages: list[Message], extra: Json, problems: list[Problem] | None, *, is_list: bool
) -> None:
    """Notes on the first message what stands around the ShareGPT turns: nothing where they came as
    a list, else the fields `extra` of their conversation.

    Raises:
        HistoryError: no message can keep the fields, and no problems are noted.
    """
    if not messages:
        if extra:
            note_problem(
                HistoryError("a conversation without turns has no message to keep its fields with"),
                problems,
                -1,
                None,
            )
    elif is_list:
        messages[0] = messages[0].replace(native=OWN.with_form(messages[0].native, payload="list"))
    elif extra:
        try:
            messages[0] = messages[0].replace(
                native=OWN.with_notes(messages[0].native, document=check_depth(extra))
            )
        except HistoryError as error:
            note_problem(error, problems, -1, None)


def _check_turn(turn: object, index: int) -> Json:
    """Checks the shape of one ShareGPT turn and returns it. Raises `HistoryError` if it is
    invalid."""
    if not isinstance(turn, dict):
        raise HistoryError(f'"conversations[{index}]" must be an object with "from" and "value"')
    fields = cast("Json", turn)
    speaker, value = fields.get("from"), fields.get("value", 0)
    if not isinstance(speaker, str) or (speaker not in _ROLES and speaker not in _RESULTS):
        speakers = ", ".join((*_ROLES, *_RESULTS))
        raise HistoryError(
            f'"from" of "conversations[{index}]" must be one of {speakers}, not {speaker!r:.100}'
        )
    if not isinstance(value, str | None):
        raise HistoryError(f'"value" of "conversations[{index}]" must be a text')
    return fields


def _field_at_fault(turn: object) -> str | None:
    """Returns the field of an invalid ShareGPT turn that is at fault, or None."""
    if not isinstance(turn, dict):
        return None
    fields = cast("Json", turn)
    speaker = fields.get("from")
    if not isinstance(speaker, str) or (speaker not in _ROLES and speaker not in _RESULTS):
        return "from"
    if not isinstance(fields.get("value", 0), str | None):
        return "value"
    return None


class _Reader:
    """Gathers turns into messages; consecutive turns of results are one message."""

    def __init__(self, origin: Origin | None) -> None:
        """Creates the reader of a ShareGPT conversation."""
        self.messages: list[Message] = []
        self._origin = origin
        self._pairing = OpenCalls()
        self._minted = (f"call-{number}" for number in count())
        self._after_results = False

    def read(self, turn: JsonMap) -> None:
        """Reads the next turn of a ShareGPT conversation."""
        speaker, value, fields = (
            str(turn["from"]),
            turn["value"],
            read_extra_fields(turn, "from", "value"),
        )
        form: Json = {} if isinstance(value, str) else {"value": None}
        if speaker in _RESULTS or _ROLES[speaker] is Role.USER:
            self._pairing.end()
        if speaker in _RESULTS:
            self._read_results(speaker, if_text(value), fields, form)
            return
        self._after_results = False
        role = _ROLES[speaker]
        content, more = self._load_turn_content(role, speaker, if_text(value))
        form |= more
        if speaker not in ("human", "gpt", "system"):
            form["from"] = speaker
        origin = self._origin if role is Role.MODEL else None
        self.messages.append(
            Message(role, tuple(content), origin=origin, native=OWN.note(fields, form))
        )

    def _load_turn_content(
        self, role: Role, speaker: str, value: str
    ) -> tuple[list[Content], Json]:
        """Returns the pieces of a ShareGPT turn that holds no results, and the wire form of the
        message."""
        if role is not Role.MODEL:
            return ([TextPart(value)] if value else []), {}
        if speaker == "function_call":
            calls = load_function_call(value)
        else:
            calls = None
        pieces = list(self._name_results(load_answer(value) if calls is None else calls))
        if calls is None:
            return pieces, {}
        own_ids = {id(call): call.id for call in calls}
        usual = dump_function_call(calls, None, lambda call: own_ids[id(call)] or None)
        return pieces, {"calls": True if value == usual else value}

    def _name_results(self, pieces: Iterable[Any]) -> Iterator[Content]:
        """Returns the pieces of a ShareGPT turn, in which each call has an id."""
        for piece in pieces:
            if not isinstance(piece, ToolCallPart):
                yield piece
                continue
            if piece.id:
                call = piece
            else:
                call = replace(piece, id=self._pairing.fresh(self._minted))
            self._pairing.call(Called(call.id, call.name))
            yield call

    def _read_results(self, speaker: str, value: str, fields: Json, form: Json) -> None:
        """Reads the results in a tool's turn, and joins them to those of the ShareGPT turn
        before."""
        parts: list[Content] = [self._pair_call(part) for part in load_results(value)]
        usual = speaker == "tool" and not fields and not form and not self._after_results
        if not usual:
            first = cast("ToolResultPart", parts[0])
            turn = {"from": speaker, **({"fields": fields} if fields else {}), **form}
            parts[0] = replace(first, native=OWN.with_notes(first.native, turn=turn))
        if self._after_results:
            before = self.messages.pop().content
        else:
            before = ()
        self.messages.append(Message(Role.USER, (*before, *parts)))
        self._after_results = True

    def _pair_call(self, part: ToolResultPart) -> ToolResultPart:
        """Returns a result of a ShareGPT conversation with the id and the name of its call."""
        called = self._pairing.find(part.id, part.name)
        if called is None:
            if part.id:
                return part
            native = OWN.with_form(part.native, made="id")
            return replace(part, id=self._pairing.fresh(self._minted), native=native)
        self._pairing.answer(called)
        return replace(part, id=called.id, name=part.name or called.name)
