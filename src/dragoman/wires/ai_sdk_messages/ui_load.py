"""A UI message → the messages of its turn: the model's, the user's with results, the model's …"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_list, if_object, rest
from dragoman.codec.turns import inner_ids, only_answers
from dragoman.message import Message, Origin, Role
from dragoman.wires.ai_sdk_messages.dialect import Dialect
from dragoman.wires.ai_sdk_messages.envelope import EMPTY, JOINED, Expected, extras_of, with_extras
from dragoman.wires.ai_sdk_messages.own import OURS, OWN, UI, joined
from dragoman.wires.ai_sdk_messages.reading import (
    OLD,
    Reading,
    fault,
    load_parts,
    says_behind_answers,
)
from dragoman.wires.ai_sdk_messages.signatures import origin_of
from dragoman.wires.ai_sdk_messages.steering import has_steering, load_steering, segments
from dragoman.wires.ai_sdk_messages.ui import UI_DIALECT, filler

__all__ = ["add_turn", "given_id", "load_ui", "metadata_of", "shown_id", "turn_of"]

ROLES: Mapping[str, Role] = {"system": Role.SYSTEM, "user": Role.USER, "assistant": Role.MODEL}
_READ = frozenset(["id", "role", "parts", "metadata"])


def load_ui(
    given: Any, where: str, origin: Origin | None, taken: Collection[str], out: list[Message]
) -> None:
    """A UI message, added to `out`. `taken`: ids of all messages of the conversation.

    Raises:
        HistoryError: it cannot be read.
    """
    if type(given) is not dict:
        fault(f"{where} must be an object, a message with a role")
    entry = cast("dict[str, Any]", given)
    role = ROLES.get(entry["role"]) if type(entry.get("role")) is str else None
    if role is None:
        fault(f"{where}.role must be one of {', '.join(ROLES)}, not {entry.get('role')!r:.50}")
    parts = entry.get("parts")
    if type(parts) is not list:
        fault(f"{where}.parts must be a list of objects, the parts of a message")
    own: dict[str, Any] = (
        {} if entry.keys() <= _READ else {key: entry[key] for key in entry if key not in _READ}
    )
    form: dict[str, Any] = {}
    id_ = given_id(entry, own, form)
    metadata: Mapping[str, Any] = {}
    extras: Any = None
    if "metadata" in entry:
        metadata, extras = metadata_of(entry["metadata"], own)
    given_parts = cast("list[Any]", parts)
    if not given_parts:
        form["parts"] = EMPTY
    elif given_parts == [filler(role)] and if_object(extras).get(EMPTY) is True:
        messages = turn_of(
            Reading(UI, role), id_, origin, taken, own, form, metadata, extras, UI_DIALECT
        )
        if OURS not in if_object(OWN.fields(messages[0].native).get("metadata")):
            add_turn(messages, id_, extras, out)
            return
    reading = _read(given_parts, role, f"{where}.parts")
    messages = turn_of(reading, id_, origin, taken, own, form, metadata, extras, UI_DIALECT)
    add_turn(messages, id_, extras, out)


def _read(parts: list[Any], role: Role, where: str) -> Reading:
    """The parts of a message, and what the user said among them."""
    it = Reading(UI, role)
    loaders, prefixed = UI_DIALECT.loaders, UI_DIALECT.prefixed
    if not it.is_model or not has_steering(parts):
        return load_parts(parts, it, loaders, prefixed, where)
    for start, own, part, form in segments(parts):
        if not part:
            return load_parts(own, it, loaders, prefixed, where, start)
        if own or not it.steps:
            it.steps += load_parts(own, Reading(UI, role), loaders, prefixed, where, start).end()
        words = load_parts(
            part["parts"], Reading(UI, Role.USER), loaders, {}, f"{where}[{start}].parts"
        ).pieces
        it.steps.append(load_steering(part, form, words))
    return it


def given_id(entry: Mapping[str, Any], own: dict[str, Any], form: dict[str, Any]) -> str | None:
    """The id of a message. Where it is none, `own` or `form` says so."""
    id_ = entry.get("id")
    if type(id_) is str:
        return id_
    if "id" in entry:
        own["id"] = id_
    else:
        form["id"] = "absent"
    return None


def shown_id(first: Message) -> str | None:
    """The id of the UI message that begins with this one."""
    own_turn = first.turn if first.role is Role.MODEL else None
    if own_turn is None or (first.native and OWN.form(first.native).get("turn") == "made"):
        return first.id
    return own_turn


def _is_shown_as(first: Message, id_: str | None) -> bool:
    """Whether a message with this id, or without one, is what would be written for a turn that begins so."""
    shown = shown_id(first)
    return id_ is None or shown is None or id_ in (shown, first.id)


def turn_of(
    reading: Reading,
    id_: str | None,
    origin: Origin | None,
    taken: Collection[str],
    own: dict[str, Any],
    form: dict[str, Any],
    metadata: Mapping[str, Any],
    extras: Any,
    dialect: Dialect,
    created_at: datetime | None = None,
) -> list[Message]:
    """The parts of a message, its id, its time and what else it says → the messages of its turn."""
    steps = reading.end()
    is_model = reading.is_model
    head = steps[0]
    if len(steps) == 1 and not isinstance(head, Message) and (not is_model or not head[1]):
        pieces, answers, provider = head
        source = origin_of(provider, origin) if is_model else None
        note = _given(origin, provider) if is_model else {}
        native = OWN.note(own, form, **note) if own or form or note else None
        content = (*pieces, *answers)
        messages = [
            Message(
                reading.role, content, id_, created_at, source, dict(metadata), None, None, native
            )
        ]
        expected = [Expected(id_, None, origin_of(provider, None) if is_model else None)]
    else:
        messages, expected = list[Message](), list[Expected]()
        ids: Iterator[str | None] = (
            inner_ids(id_, taken) if id_ is not None else iter(lambda: None, 0)
        )
        for step in steps:
            if isinstance(step, Message):
                expected.append(Expected(step.id, id_, None))
                messages.append(step.replace(turn=id_))
                continue
            pieces, answers, provider = step
            first = not messages
            note = _given(origin, provider)
            native = OWN.note(own if first else {}, form if first else {}, **note)
            expected.append(Expected(next(ids), id_, origin_of(provider, None)))
            messages.append(
                Message(
                    Role.MODEL, tuple(pieces), expected[-1].id, origin=origin_of(provider, origin), native=native, turn=id_,
                    metadata=dict(metadata) if first else {}, created_at=created_at if first else None,
                )
            )  # fmt: skip
            if answers:
                expected.append(Expected(next(ids), id_, None))
                messages.append(Message(Role.USER, tuple(answers), expected[-1].id, turn=id_))
    if extras is None:
        return messages
    found = with_extras(messages, extras)
    if found is not None and _is_shown_as(found[0], id_):
        held = if_object(extras)
        listed = if_object(next(iter(if_list(held.get("messages"))), None))
        with_metadata = dialect.metadata_first or "metadata" in listed
        if (
            extras_of(
                found,
                expected,
                joined=JOINED in held,
                empty=EMPTY in held and not reading.pieces,
                one_step=dialect.name in OLD
                and form.get("parts") != "absent"
                and says_behind_answers(found),
                metadata=with_metadata,
                time="created_at" in listed,
            )
            == extras
        ):
            return found
    kept = dialect.keep(own, extras)
    messages[0] = messages[0].replace(
        native={**(messages[0].native or {}), **(OWN.note(kept, form) or {})}
    )
    return messages


def metadata_of(value: Any, own: dict[str, Any]) -> tuple[Mapping[str, Any], Any]:
    """The metadata of a message: the application's, and what stands under our key. What a message of ours cannot hold is added to `own`."""
    if type(value) is not dict:
        own["metadata"] = value
        return {}, None
    fields = cast("dict[str, Any]", value)
    if "thinking" in fields or not fields:
        own["metadata"] = {key: fields[key] for key in fields if key == "thinking"}
    if OURS in fields and fields[OURS] is None:
        own["metadata"] = {**if_object(own.get("metadata")), OURS: None}
    return rest(fields, OURS, "thinking"), fields.get(OURS)


def _given(origin: Origin | None, provider: str | None) -> dict[str, Any]:
    return {} if origin is None or provider is not None else {"origin": msgspec.to_builtins(origin)}


def add_turn(messages: list[Message], id_: str | None, extras: Any, out: list[Message]) -> None:
    """Adds the messages of a turn to those before it."""
    first, before = messages[0], out[-1] if out else None
    if before is None or before.role is not Role.USER or not only_answers(before):
        out += messages
    elif extras is not None and if_object(extras).get(JOINED) is True and first.role is Role.USER:
        out.append(first.replace(content=(*out.pop().content, *first.content)))
    elif first.role is Role.MODEL and (
        first.turn is None or (first.turn == before.turn and "turn" not in if_object(extras))
    ):
        form = {"turn": "made"}
        own = first.replace(native=joined(first.native, OWN.with_form(first.native, **form)))
        turn = id_ if id_ is not None and id_ != before.turn else f"turn-{len(out)}"
        out += [message.replace(turn=turn) for message in (own, *messages[1:])]
    else:
        out += messages
