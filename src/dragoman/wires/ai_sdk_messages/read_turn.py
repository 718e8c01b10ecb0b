"""Reads a UI message as the messages of its turn: the model's, the user's with results, the model's …

`load_ui` reads a message of ai 5 and later; `ai4_ui_messages` and `mastra_v2_rows` read what stands around the parts in
their dialects. All of them make the messages of a turn by `turn_of` and add them to the
conversation by `add_turn`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_list, if_object, pick, read_extra_fields
from dragoman.codec.turns import holds_only_answers, make_inner_ids
from dragoman.json_bytes import Json
from dragoman.message import Message, Origin, Role
from dragoman.wires.ai_sdk_messages.dragoman_metadata import (
    EMPTY,
    JOINED,
    Expected,
    extras_of,
    with_extras,
)
from dragoman.wires.ai_sdk_messages.notes import OLD, OURS, OWN, Fields, Part, join_native
from dragoman.wires.ai_sdk_messages.provider_metadata import origin_of
from dragoman.wires.ai_sdk_messages.read_parts import (
    Reading,
    Step,
    UIDialect,
    fault,
    load_parts,
    object_in,
    role_in,
    says_behind_answers,
)
from dragoman.wires.ai_sdk_messages.steering import is_steering_part, load_steering, segments
from dragoman.wires.ai_sdk_messages.ui_messages import UI_DIALECT, filler

__all__ = [
    "Head",
    "Loading",
    "add_turn",
    "id_in",
    "load_ui",
    "metadata_in",
    "id_of_turn",
    "turn_of",
]

_ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.MODEL,
}
_READ = frozenset(["id", "role", "parts", "metadata"])


@dataclass(slots=True)
class Loading:
    """A conversation as it is read."""

    origin: Origin | None
    """Origin of model messages that name none."""
    taken: Collection[str] = ()
    """Ids of all messages."""
    messages: list[Message] = field(default_factory=list[Message])
    """The messages so far."""
    arguments: dict[tuple[str, str], Part] = field(default_factory=dict[tuple[str, str], Part])
    """Id and tool of each call so far → its arguments, for rows that leave them out with the
    result."""

    def add_plain(self, load: Callable[[Any, Message | None], Message | None], entry: Any) -> bool:
        """Adds a message of texts alone. Returns False, and adds nothing, for any other.

        Args:
            load: a function of `text_only_messages`: (message, the one before it) → a message, or None.
            entry: the message.
        """
        # An origin from the caller has to be noted, which only the long way does.
        if self.origin is not None:
            return False
        message = load(entry, self.messages[-1] if self.messages else None)
        if message is None:
            return False
        self.messages.append(message)
        return True


@dataclass(slots=True)
class Head:
    """What a message says beside its parts."""

    dialect: UIDialect
    """The table of its dialect."""
    fields: Part
    """Fields that a message has no place for."""
    form: Part
    """Notes about the form of the other fields."""
    id: str | None = None
    """Its id."""
    metadata: Fields = field(default_factory=Json)
    """The application's metadata."""
    extras: Any = None
    """What dragoman carries, or None."""
    created_at: datetime | None = None
    """Its time."""


_NOTHING = Head(UI_DIALECT, {}, {})


def load_ui(entry: Any, where: str, loading: Loading) -> None:
    """Reads a UI message, and adds it to the conversation.

    Raises:
        HistoryError: it cannot be read.
    """
    message = object_in(entry, where, "a message with a role")
    role = role_in(message, _ROLES, where)
    parts = message.get("parts")
    if type(parts) is not list:
        fault(f"{where}.parts must be a list of objects, the parts of a message")
    if message.keys() <= _READ:
        fields = {}
    else:
        fields = read_extra_fields(message, *_READ)
    head = Head(UI_DIALECT, fields, {})
    id_in(message, head)
    if "metadata" in message:
        metadata_in(message["metadata"], head)
    listed = cast("list[Any]", parts)
    if not listed:
        head.form["parts"] = EMPTY
    # The part that stands for nothing is no part of the message, unless somebody else wrote what
    # says so.
    elif listed == [filler(role)] and if_object(head.extras).get(EMPTY) is True:
        messages = turn_of(Reading(UI_DIALECT, role), head, loading)
        if OURS not in if_object(OWN.fields(messages[0].native).get("metadata")):
            add_turn(messages, head, loading)
            return
    reading = _load_steered_parts(listed, role, f"{where}.parts")
    add_turn(turn_of(reading, head, loading), head, loading)


def _load_steered_parts(parts: list[Any], role: Role, where: str) -> Reading:
    """Returns the reading of a message's parts, among them what the user said meanwhile."""
    reading = Reading(UI_DIALECT, role)
    if not reading.is_model or not any(map(is_steering_part, parts)):
        return load_parts(parts, reading, where)
    for segment in segments(parts):
        if not segment.steering:
            return load_parts(segment.parts, reading, where, segment.start)
        if segment.parts or not reading.steps:
            inner = load_parts(segment.parts, Reading(UI_DIALECT, role), where, segment.start)
            reading.steps += inner.end()
        spoken_parts = segment.steering["parts"]
        path = f"{where}[{segment.start}].parts"
        pieces = load_parts(spoken_parts, Reading(UI_DIALECT, Role.USER), path).pieces
        reading.steps.append(load_steering(segment, pieces))
    return reading


def id_in(entry: Part, head: Head) -> None:
    """Reads the id of a message, and notes it if it is absent or no text."""
    id_ = entry.get("id")
    if type(id_) is str:
        head.id = id_
    elif "id" in entry:
        head.fields["id"] = id_
    else:
        head.form["id"] = "absent"


def metadata_in(value: Any, head: Head) -> None:
    """Reads the metadata of a message: the application's, and what dragoman carries.

    What a message cannot hold stays among its fields.
    """
    if type(value) is not dict:
        head.fields["metadata"] = value
        return
    metadata = cast("Part", value)
    # `thinking` is a message's own word for what its thinking says, and never the application's.
    if "thinking" in metadata or not metadata:
        head.fields["metadata"] = pick(metadata, ("thinking",))
    if OURS in metadata and metadata[OURS] is None:
        head.fields["metadata"] = {**if_object(head.fields.get("metadata")), OURS: None}
    head.metadata, head.extras = read_extra_fields(metadata, OURS, "thinking"), metadata.get(OURS)


def id_of_turn(first: Message) -> str | None:
    """Returns the id of the UI message of a turn. `first`: the turn's first message. For a model's
    turn that is the id of the turn, otherwise the message's own."""
    own_turn = None
    if first.role is Role.MODEL:
        own_turn = first.turn
    # "made" notes that `add_turn` set the turn only to part this message from the one before it. The
    # UI message then has the id of the message itself.
    if own_turn is None or (first.native and OWN.form(first.native).get("turn") == "made"):
        return first.id
    return own_turn


def _is_shown_as(first: Message, id_: str | None) -> bool:
    """True if a turn that begins with this message would be written under this id."""
    written_id = id_of_turn(first)
    return id_ is None or written_id is None or id_ in (written_id, first.id)


def turn_of(reading: Reading, head: Head, loading: Loading) -> list[Message]:
    """Returns the messages of the turn that a UI message holds.

    Args:
        reading: the parts of a UI message.
        head: what it says beside them.
        loading: the conversation so far.
    """
    steps = reading.end()
    step = steps[0]
    if len(steps) == 1 and not isinstance(step, Message) and not (reading.is_model and step[1]):
        messages, expected = _one_message(reading, step, head, loading.origin)
    else:
        messages, expected = _messages_of(steps, head, loading)
    if head.extras is None:
        return messages
    changed = with_extras(messages, head.extras)
    if changed is not None and _is_shown_as(changed[0], head.id):
        again = _extras_again(changed, expected, reading, head)
        if again == head.extras:
            return changed
    fields = head.dialect.keep(head.fields, head.extras)
    native = join_native(messages[0].native, OWN.note(fields, head.form))
    messages[0] = messages[0].replace(native=native)
    return messages


def _one_message(
    reading: Reading, step: Step, head: Head, origin: Origin | None
) -> tuple[list[Message], list[Expected]]:
    """Returns the message of a UI message that is only one, and what its reader expects."""
    pieces, answers, provider = step
    if reading.is_model:
        notes = _origin_note(origin, provider)
    else:
        notes = {}
    native = None
    if head.fields or head.form or notes:
        native = OWN.note(head.fields, head.form, **notes)
    message = Message(
        reading.role,
        (*pieces, *answers),
        head.id,
        head.created_at,
        origin_of(provider, origin) if reading.is_model else None,
        dict(head.metadata),
        native=native,
    )
    usual = None
    if reading.is_model:
        usual = origin_of(provider, None)
    return [message], [Expected(head.id, None, usual)]


def _messages_of(
    steps: list[Step | Message], head: Head, loading: Loading
) -> tuple[list[Message], list[Expected]]:
    """Returns the messages of a turn, and what their reader expects.

    Each step is a model message and one with its results, with what the user said between them.
    """
    id_, origin = head.id, loading.origin
    ids: Iterator[str | None] = iter(lambda: None, 0)
    if id_ is not None:
        ids = make_inner_ids(id_, loading.taken)
    messages: list[Message] = []
    expected: list[Expected] = []
    for step in steps:
        if isinstance(step, Message):
            expected.append(Expected(step.id, id_, None))
            messages.append(step.replace(turn=id_))
            continue
        pieces, answers, provider = step
        source, notes = origin_of(provider, origin), _origin_note(origin, provider)
        about = _NOTHING if messages else head  # the first message has what the whole says
        message = Message(
            Role.MODEL,
            tuple(pieces),
            next(ids),
            about.created_at,
            source,
            dict(about.metadata),
            native=OWN.note(about.fields, about.form, **notes),
            turn=id_,
        )
        expected.append(Expected(message.id, id_, origin_of(provider, None)))
        messages.append(message)
        if answers:
            expected.append(Expected(next(ids), id_, None))
            messages.append(Message(Role.USER, tuple(answers), expected[-1].id, turn=id_))
    return messages, expected


def _extras_again(
    messages: list[Message], expected: list[Expected], reading: Reading, head: Head
) -> Part:
    """Returns what would be carried for the messages that were read."""
    extras, dialect = if_object(head.extras), head.dialect
    first = if_object(next(iter(if_list(extras.get("messages"))), None))
    has_order = dialect.name in OLD and head.form.get("parts") != "absent"
    return extras_of(
        messages,
        expected,
        joined=JOINED in extras,
        empty=EMPTY in extras and not reading.pieces,
        one_step=has_order and says_behind_answers(messages),
        metadata=dialect.metadata_first or "metadata" in first,
        time="created_at" in first,
    )


def _origin_note(origin: Origin | None, provider: str | None) -> Part:
    """Returns the note that a message has the origin that the caller gave."""
    if origin is None or provider is not None:
        return {}
    return {"origin": msgspec.to_builtins(origin)}


def add_turn(messages: list[Message], head: Head, loading: Loading) -> None:
    """Adds the messages of a turn to the conversation."""
    out = loading.messages
    if not out or out[-1].role is not Role.USER or not holds_only_answers(out[-1]):
        out += messages
        return
    first, before = messages[0], out[-1]
    extras = if_object(head.extras)
    if extras.get(JOINED) is True and first.role is Role.USER:
        # The results before it and what the user said are one message.
        out[-1] = first.replace(content=(*before.content, *first.content))
    elif first.role is Role.MODEL and _goes_on(first, before, extras):
        # Without a turn of its own it would be read as going on with the one before.
        native = join_native(first.native, OWN.with_form(first.native, turn="made"))
        turn = head.id
        if turn is None or turn == before.turn:
            turn = f"turn-{len(out)}"
        changed = (first.replace(native=native), *messages[1:])
        out += [message.replace(turn=turn) for message in changed]
    else:
        out += messages


def _goes_on(first: Message, before: Message, extras: Fields) -> bool:
    """True if a model message would be read as part of the turn before it."""
    return first.turn is None or (first.turn == before.turn and "turn" not in extras)
