"""The short way of a turn that holds texts, calls and their results, without anything of a format's
own, as nearly all are.

It reads and writes what `read_turn` and `write_turn` would, and returns None for every other turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.codec.turns import holds_only_answers, make_inner_ids
from dragoman.message import (
    Content,
    MarkPart,
    Message,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk_messages.dragoman_metadata import Expected, extras_of
from dragoman.wires.ai_sdk_messages.notes import OURS, Part, Parts
from dragoman.wires.ai_sdk_messages.read_parts import STEP
from dragoman.wires.ai_sdk_messages.tool_output import as_result
from dragoman.wires.ai_sdk_messages.ui_messages import UI_DIALECT
from dragoman.wires.ai_sdk_messages.ui_tool_parts import (
    dump_call,
    dump_result,
    has_no_form,
    is_plain_answer,
)

__all__ = ["dump_plain_turn", "load_plain_turn"]

_NOTHING = (None,) * 4
_BARE_STEP = MarkPart(STEP)
_NAMES = {Role.USER: "user", Role.MODEL: "assistant"}
_ROLES = {name: role for role, name in _NAMES.items()}
_STATES: Mapping[Role, Part] = {Role.USER: {}, Role.MODEL: {"state": "done"}}
_STEP: Part = {"type": STEP}
_Open = deque[tuple[ToolCallPart, Part]]
"""The calls without a result so far, each with its part."""


_Step = tuple[list[Content], list[ToolResultPart]]
"""What the model said in a step, and the results of its calls."""


def load_plain_turn(
    entry: Any, before: Message | None, taken: Collection[str]
) -> list[Message] | None:
    """Returns the messages of a turn in a UI message of AI SDK 5 and later, or None.

    Args:
        entry: the UI message.
        before: the message before it.
        taken: ids of all messages.
    """
    fields = if_object(entry)
    id_, role = fields.get("id"), _ROLES.get(if_text(fields.get("role")))
    # Behind results a message of the model's may need a turn of its own.
    if len(fields) != 3 or type(id_) is not str or role is None:
        return None
    if before and holds_only_answers(before):
        return None
    steps = _load_steps(if_list(fields.get("parts")), _STATES[role])
    if not steps:
        return None
    if len(steps) == 1 and not steps[0][1]:
        return [Message(role, tuple(steps[0][0]), id_)]
    return list(_make_messages(steps, make_inner_ids(id_, taken), id_))


def _make_messages(steps: Sequence[_Step], ids: Iterator[str], turn: str) -> Iterator[Message]:
    """Yields the messages of an AI SDK turn: the model's of each step, and the results behind
    it."""
    for pieces, answers in steps:
        yield Message(Role.MODEL, tuple(pieces), next(ids), turn=turn)
        if answers:
            yield Message(Role.USER, tuple(answers), next(ids), turn=turn)


def _load_steps(parts: Sequence[Any], state: Part) -> list[_Step] | None:
    """Returns the steps of an AI SDK message, or None. `state`: the further field of its texts,
    empty for a user's."""
    steps: list[_Step] = [([], [])]
    for part in parts:
        pieces, answers = steps[-1]
        if part != _STEP:
            if not _load_part(if_object(part), state, pieces, answers):
                return None
        elif answers:
            steps.append(([], []))
        elif state and (pieces or len(steps) == 1):
            pieces.append(_BARE_STEP)
        else:
            return None
    return steps if steps[-1][0] else None


def _load_part(
    part: Part, state: Part, pieces: list[Content], answers: list[ToolResultPart]
) -> bool:
    """Reads an AI SDK text, or a call with its result. Returns False at any other part."""
    type_, text, id_ = part.get("type"), part.get("text"), part.get("toolCallId")
    if text and type(text) is str:
        pieces.append(TextPart(text))
        return part == {"type": "text", "text": text, **state}
    if not state or type(type_) is not str or type(id_) is not str or len(part) != 5:
        return False
    if not type_.startswith("tool-") or not is_plain_answer(part):
        return False
    name = type_.removeprefix("tool-")
    pieces.append(ToolCallPart(id_, name, part["input"]))
    answers.append(ToolResultPart(id_, name, as_result(part["output"])))
    return True


def dump_plain_turn(
    messages: Sequence[Message], id_: str, taken: Collection[str], *, carries: bool
) -> Part | None:
    """Returns a turn as a UI message of AI SDK 5 and later, or None.

    Args:
        messages: those of the turn.
        id_: its id.
        taken: ids of all messages.
        carries: True to carry what such a message has no field for.
    """
    name, parts = _NAMES.get(messages[0].role), _dump_parts(messages)
    if not parts or name is None:
        return None
    entry: Part = {"id": id_, "role": name, "parts": parts}
    if not carries:
        return entry
    turn, ids = None if len(messages) == 1 else id_, make_inner_ids(id_, taken)
    expected = [Expected(next(ids), turn, None) for _ in messages]
    is_bare = all(map(_says_no_more, messages, expected))
    if not is_bare and (extras := extras_of(messages, expected)):
        entry["metadata"] = {OURS: extras}
    return entry


def _says_no_more(message: Message, usual: Expected) -> bool:
    """True if an AI SDK message of a turn has nothing beside its content that must be carried."""
    about = (message.created_at, message.origin, message.usage, message.finish_reason)
    return (message.id, message.turn) == usual[:2] and about == _NOTHING


def _dump_parts(messages: Sequence[Message]) -> Parts | None:
    """Returns the AI SDK parts of a turn, or None."""
    parts: Parts = []
    waiting: _Open = deque()
    for message in messages:
        if message.native is not None or message.metadata:
            return None
        if message is not messages[0] and _begins_step(message):
            parts.append({"type": STEP})
        write = _take_results
        if message.role is Role.MODEL or message is messages[0]:
            write = _write_said
        if not write(message, parts, waiting):
            return None
    return None if waiting else parts


def _begins_step(message: Message) -> bool:
    """True if a step must be written before an AI SDK message within a turn."""
    first = message.content[0] if message.content else None
    return message.role is Role.MODEL and not (type(first) is MarkPart and first.kind == STEP)


def _write_said(message: Message, parts: Parts, waiting: _Open) -> bool:
    """Writes the AI SDK parts of texts, calls and steps. Returns False at any other piece."""
    state = _STATES.get(message.role, {})
    for piece in message.content:
        if piece.native is not None:
            return False
        if type(piece) is TextPart:
            parts.append({"type": "text", "text": piece.text, **state})
        elif type(piece) is ToolCallPart and has_no_form(piece):
            part = dump_call(piece, UI_DIALECT, answered=True)
            waiting.append((piece, part))
            parts.append(part)
        elif type(piece) is MarkPart and piece.kind == STEP:
            parts.append({"type": STEP})
        else:
            return False
    return True


def _take_results(message: Message, _: Parts, waiting: _Open) -> bool:
    """Writes results into the AI SDK parts of their calls. Returns False where one is no plain
    result of the call that waits longest."""
    for piece in message.content:
        if type(piece) is not ToolResultPart or piece.native is not None or not waiting:
            return False
        call, part = waiting.popleft()
        if call.id != piece.id or piece.is_error or piece.denied:
            return False
        part |= dump_result(piece, UI_DIALECT, call)
    return True
