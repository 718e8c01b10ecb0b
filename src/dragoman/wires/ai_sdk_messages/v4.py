"""UI messages of ai 4: their parts, and the fields beside them that say the same again (`content`, `toolInvocations`, `reasoning`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object, if_text, rest
from dragoman.codec.media import Media
from dragoman.codec.timing import in_utc
from dragoman.message import MarkPart, Message, Origin, ProviderPart, Role
from dragoman.wires.ai_sdk_messages.dialect import ATTACHMENT, Dialect, Envelope, Part, Parts
from dragoman.wires.ai_sdk_messages.envelope import ONE_STEP
from dragoman.wires.ai_sdk_messages.old_text import dump_old_text, load_old_text
from dragoman.wires.ai_sdk_messages.own import OURS, OWN, dialect_of
from dragoman.wires.ai_sdk_messages.plain_v4 import load_plain_v4
from dragoman.wires.ai_sdk_messages.reading import Reading, fault, load_parts
from dragoman.wires.ai_sdk_messages.ui_load import add_turn, given_id, turn_of
from dragoman.wires.ai_sdk_messages.v4_parts import (
    V4,
    dump_file,
    dump_mark,
    dump_reasoning,
    load_attachment,
    load_file,
    load_reasoning,
    load_source,
)
from dragoman.wires.ai_sdk_messages.v4_tools import (
    dump_invocation,
    dump_invocation_result,
    load_invocation,
)

__all__ = ["V4_DIALECT", "load_v4", "read_time", "written_time"]

ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.MODEL,
    "data": Role.USER,
}
_MIRRORS = ("content", "toolInvocations", "reasoning")
_READ = frozenset(
    ["id", "role", "parts", "createdAt", "experimental_attachments", "annotations", *_MIRRORS]
)
_ATTACHED = "experimental_attachments"


def load_v4(
    entry: dict[str, Any],
    where: str,
    origin: Origin | None,
    taken: Collection[str],
    out: list[Message],
) -> None:
    """A UI message of ai 4, added to `out`. `taken`: ids of all messages of the conversation.

    Raises:
        HistoryError: it cannot be read.
    """
    plain = load_plain_v4(entry, out[-1] if out else None) if origin is None else None
    if plain is not None:
        out.append(plain)
        return
    role = ROLES.get(if_text(entry.get("role")))
    if role is None:
        fault(f"{where}.role must be one of {', '.join(ROLES)}, not {entry.get('role')!r:.50}")
    own, form = rest(entry, *_READ), dict[str, Any]({"in": V4})
    if entry["role"] == "data":
        form["role"] = "data"
    id_ = given_id(entry, own, form)
    parts = entry.get("parts")
    if not isinstance(parts, list):
        parts = _parts_of(entry, where)
        form["parts"] = "absent"
        own |= {"parts": entry["parts"]} if "parts" in entry else {}
    reading = Reading(V4, role)
    extras = _annotations(entry, own)
    # Fields beside each other have no order, so that nothing in them stands behind a call.
    has_order = form.get("parts") != "absent"
    reading.implies_steps = (
        reading.implies_steps and has_order and ONE_STEP not in if_object(extras)
    )
    load_parts(
        cast("list[Any]", parts), reading, V4_DIALECT.loaders, V4_DIALECT.prefixed, f"{where}.parts"
    )
    attached = entry.get(_ATTACHED)
    if isinstance(attached, list):
        for at, each in enumerate(cast("list[Any]", attached)):
            load_attachment(each, reading, f"{where}.{_ATTACHED}[{at}]")
    if _ATTACHED in entry and not (attached and isinstance(attached, list)):
        own[_ATTACHED] = attached
    created_at = read_time(entry.get("createdAt"))
    if "createdAt" in entry and (
        created_at is None or written_time(created_at) != entry["createdAt"]
    ):
        form["createdAt"] = [
            None if created_at is None else written_time(created_at),
            entry["createdAt"],
        ]
    _note_mirrors(entry, mirrors(cast("Parts", parts), role), form)
    messages = turn_of(reading, id_, origin, taken, own, form, {}, extras, V4_DIALECT)
    if created_at is not None:
        messages[0] = messages[0].replace(created_at=created_at)
    add_turn(messages, id_, extras, out)


def mirrors(parts: Parts, role: Role) -> dict[str, Any]:
    """The fields that say again what the parts say."""
    made: dict[str, Any] = {
        "content": "".join([if_text(part.get("text")) for part in parts if part["type"] == "text"])
    }
    if invocations := [
        part["toolInvocation"] for part in parts if part["type"] == "tool-invocation"
    ]:
        made["toolInvocations"] = invocations
    thinking = [if_text(part.get("reasoning")) for part in parts if part["type"] == "reasoning"]
    if thinking and role is Role.MODEL:
        made["reasoning"] = "".join(thinking)
    return made


def read_time(value: Any) -> datetime | None:
    """A time as JSON has it, or as Python does → the time; `None` where it is none."""
    if isinstance(value, datetime):
        return value
    try:
        time = datetime.fromisoformat(value)
        return None if time.tzinfo is None else time.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def written_time(time: datetime) -> str:
    """The inverse, as JavaScript writes it."""
    return in_utc(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _note_mirrors(entry: Mapping[str, Any], made: Mapping[str, Any], form: dict[str, Any]) -> None:
    """Notes the mirrors that are not what the parts say, with a digest of what those say."""
    differ = {
        key: [_digest(made.get(key)), *([entry[key]] if key in entry else [])]
        for key in _MIRRORS
        if (key in made or key in entry)
        and (key not in made or key not in entry or made[key] != entry[key])
    }
    if differ:
        form["mirrors"] = differ


def _with_mirrors(made: dict[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    for key, pair in if_object(form.get("mirrors")).items():
        if key in _MIRRORS and _digest(made.get(key)) == pair[0]:
            made.pop(key, None)
            made |= {key: pair[1]} if len(pair) > 1 else {}
    return made


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _parts_of(entry: Mapping[str, Any], where: str) -> Parts:
    """The parts of a message that has none: its calls, thinking and text."""
    content = entry.get("content", "")
    if not isinstance(content, str):
        fault(f"{where}.content must be a string, or there are parts")
    parts: Parts = [
        {"type": "tool-invocation", "toolInvocation": each}
        for each in if_list(entry.get("toolInvocations"))
    ]
    if thinking := if_text(entry.get("reasoning")):
        parts.append(
            {
                "type": "reasoning",
                "reasoning": thinking,
                "details": [{"type": "text", "text": thinking}],
            }
        )
    return [*parts, {"type": "text", "text": content}] if content else parts


def _annotations(entry: Mapping[str, Any], own: dict[str, Any]) -> Any:
    """What stands among the annotations of a message under our key; the others are added to `own`."""
    given = entry.get("annotations")
    if "annotations" not in entry:
        return None
    listed = if_list(given)
    last = if_object(listed[-1]) if listed else {}
    ours = last.get(OURS) if last.keys() == {OURS} else None
    kept = listed[:-1] if ours is not None else given
    if kept or ours is None:
        own["annotations"] = kept
    return ours


def _envelope(given: Envelope) -> dict[str, Any]:
    first = given.first
    is_own = dialect_of(first.native) == V4
    own = OWN.fields(first.native) if is_own else {}
    form = OWN.form(first.native) if is_own else {}
    parts = [part for part in given.parts if part["type"] != ATTACHMENT]
    attached = [rest(part, "type") for part in given.parts if part["type"] == ATTACHMENT]
    made: dict[str, Any] = {} if given.id is None else {"id": given.id}
    time = None if first.created_at is None else written_time(first.created_at)
    noted = if_list(form.get("createdAt"))
    if noted and noted[0] == time:
        made["createdAt"] = noted[1]
    elif time is not None:
        made["createdAt"] = time
    made |= {"role": if_text(form.get("role")) or given.role}
    made |= _with_mirrors(mirrors(parts, first.role), form)
    if form.get("parts") != "absent":
        made["parts"] = parts
    if attached:
        made[_ATTACHED] = attached
    annotations = if_list(own.get("annotations"))
    if given.extras:
        own["annotations"] = [*annotations, {OURS: given.extras}]
    return {**made, **own}


def _file(piece: Media, is_model: bool) -> Part:
    return dump_file(piece, V4, attached=not is_model)


def _mark(mark: MarkPart | ProviderPart) -> Part:
    return dump_mark(mark, V4)


V4_DIALECT = Dialect(
    V4,
    {
        "text": load_old_text, "reasoning": load_reasoning, "file": load_file, "source": load_source,
        "tool-invocation": load_invocation,
    },
    {},
    lambda piece, _: dump_old_text(piece, V4),
    lambda pieces: dump_reasoning(pieces, V4),
    _file,
    lambda call, answered, step: dump_invocation(call, V4, answered, step),
    lambda part, result, call: dump_invocation_result(part, result, call, V4),
    _mark,
    _envelope,
    lambda own, extras: {**own, "annotations": [*if_list(own.get("annotations")), {OURS: extras}]},
    metadata_first=True,
    times=True,
)  # fmt: skip
