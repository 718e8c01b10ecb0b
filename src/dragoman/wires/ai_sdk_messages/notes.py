"""What is in `native` of this family: the fields of an object that differ from what would be
written for the neutral piece alone.

Everything that is read is written again as it was, and nothing is held twice. `note` compares an
object that was read with the one that would be written for its piece, and keeps the difference;
`restore` applies it to what is written later. A difference belongs to the dialect in which it was
read. Another dialect writes of it only the fields that both have (`shared`).

An object inside another (`toolInvocation` in its part, `content` in a row) is compared as one
object with it: `Nesting` makes the two one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import msgspec

from dragoman.codec.format_layout import FormatFields
from dragoman.codec.json_values import drop_empty, if_list, if_object, pick
from dragoman.codec.native import WireNative
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Native

__all__ = [
    "CORE",
    "Fields",
    "MESSAGE_FIELDS",
    "MODEL",
    "NAME",
    "OLD",
    "OURS",
    "OWN",
    "ROW",
    "ROW_FIELDS",
    "UI",
    "V4",
    "Nesting",
    "Part",
    "Parts",
    "dialect_of",
    "flags",
    "is_same",
    "join_native",
    "note",
    "present",
    "restore",
    "text_in",
    "thread_of",
]

Fields = JsonMap
"""A JSON object that is only read."""
Part = Json
"""A JSON object that is written: a part, the message around it, or something inside one."""
Parts = list[Part]
NAME = "ai_sdk"
OWN = WireNative(NAME)
"""The family's part of `native`."""
OURS = "dragoman"
"""Metadata key that holds what the family has no field for."""
UI, V4, ROW, MODEL, CORE = "ui", "v4", "mastra_v2", "model", "core"
"""Names of the dialects: UI messages of ai 5 and later and of ai 4, Mastra's rows, model messages
of ai 5 and later and of ai 4. A note that names no dialect is of UI."""
OLD = frozenset([V4, ROW])
"""Dialects with parts as ai 4 has them."""
_VALUES = frozenset(
    ["text", "input", "args", "rawInput", "output", "result", "errorText", "url", "data", "image", "toolCallId", "toolName", "reasoning"]
)  # fmt: skip
"""Fields that repeat what the piece says. Their original form is restored only while the piece
still says that."""
_THREAD = ("threadId", "resourceId")
_LISTS = (list, tuple)


def is_same(value: Any, other: Any) -> bool:
    """True if two values in AI SDK notes are the same JSON at every depth. `1`, `1.0` and `True`
    are three values; a tuple is a list."""
    if value is other:
        return True
    if isinstance(value, dict):
        fields, other_fields = cast("Part", value), if_object(other)
        is_alike = isinstance(other, dict) and fields.keys() == other_fields.keys()
        return is_alike and all(is_same(fields[key], other_fields[key]) for key in fields)
    if isinstance(value, _LISTS):
        values, more = cast("list[Any]", value), cast("list[Any]", other)
        is_alike = isinstance(other, _LISTS) and len(values) == len(more)
        return is_alike and all(map(is_same, values, more))
    return type(value) is type(other) and value == other


def note(
    read: Fields,
    written: Fields,
    dialect: str,
    native: Native = None,
    form: Fields = {},
    unknown: Fields = {},
) -> Native:
    """Returns `native` with a note of how an AI SDK object that was read differs from what would be
    written.

    Args:
        read: the object.
        written: what would be written for its piece.
        dialect: name of the dialect in which it was read.
        native: of the piece so far.
        form: further notes about the object's form.
        unknown: metadata that no wire has.
    """
    fields, values = _find_differences(read, written)
    unread = [key for key in written if key not in read]
    values |= {key: [written[key]] for key in unread if key in _VALUES}
    absent = [key for key in unread if key not in _VALUES]
    form = {**form, **drop_empty({"values": values, "absent": absent})}
    # Most messages are of the newest dialect, which is therefore not noted.
    if (fields or form) and dialect != UI:
        form["in"] = dialect
    return join_native(native, OWN.note(fields, form, left=unknown))


def _find_differences(read: Fields, written: Fields) -> tuple[Part, Part]:
    """Returns the fields to note, which would be written differently or not at all. For fields that
    the piece itself says, returns both values."""
    fields: Part = {}
    values: Part = {}
    for key, value in read.items():
        if key not in written:
            fields[key] = value
        elif is_same(written[key], value):
            continue
        # What the piece says too is kept with what would be written for it: an edited piece is
        # written anew.
        elif key in _VALUES:
            values[key] = [written[key], value]
        else:
            fields[key] = value
    return fields, values


def restore(
    native: Native,
    written: Part,
    dialect: str,
    shared: Collection[str] = (),
) -> Part:
    """Returns an AI SDK object as it was read, from what would be written for its piece. The
    inverse of `note`.

    Args:
        native: of the piece.
        written: what would be written.
        dialect: name of the dialect in which it is written.
        shared: fields of other dialects that this one has too.
    """
    if not native or not OWN.is_ours(native):
        return written
    fields, form = OWN.fields(native), OWN.form(native)
    # A field of the same name may mean something else elsewhere, so that only what is known to be
    # shared goes over.
    if form.get("in", UI) != dialect:
        return {**pick(fields, shared), **written}
    absent = if_list(form.get("absent"))
    restored = {key: value for key, value in written.items() if key not in absent}
    for key, (written_value, *read_values) in if_object(form.get("values")).items():
        if key not in restored or not is_same(written_value, restored[key]):
            continue
        del restored[key]
        # An empty list says that the field was absent.
        if read_values:
            restored[key] = read_values[0]
    return {**restored, **fields}


def join_native(native: Native, more: Native) -> Native:
    """Returns the native fields of both mappings, with the AI SDK notes of both."""
    if native and more:
        return {**native, **more}
    return native or more


def dialect_of(native: Native) -> str | None:
    """Returns the dialect in which an AI SDK message was read, or None if none is noted."""
    name = None
    if native:
        name = OWN.form(native).get("in")
    return name if isinstance(name, str) else None


def present(**fields: Any) -> Part:
    """Returns the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def flags(**are_set: bool) -> Part:
    """Returns the flags that are set. JSON leaves the others out."""
    return {name: True for name, is_set in are_set.items() if is_set}


def text_in(fields: Fields, name: str) -> str | None:
    """Returns a field that is a string, or None for anything else."""
    value = fields.get(name)
    return value if isinstance(value, str) else None


class Nesting(msgspec.Struct, frozen=True):
    """An object inside another, and how their fields are named when both are one object."""

    holder: str
    """Field of the outer object that holds the inner one."""
    inner_names: frozenset[str]
    """Fields of the inner object, which have no prefix."""
    inner: str = "inner/"
    """Prefix of the inner object's other fields."""
    outer: str = "outer/"
    """Prefix of fields of the outer object whose names the inner one uses."""

    def flatten(self, outer: Fields, inner: Fields) -> Part:
        """Returns the fields of both AI SDK objects as one, without the holder."""
        fields = {
            self.outer + key if key in self.inner_names else key: value
            for key, value in outer.items()
            if key != self.holder
        }
        for key, value in inner.items():
            fields[key if key in self.inner_names else self.inner + key] = value
        return fields

    def is_clear(self, fields: Fields) -> bool:
        """True if no field has a name that `flatten` makes."""
        return not any(key.startswith((self.inner, self.outer)) for key in fields)

    def nest(self, fields: Fields) -> tuple[Part, Part]:
        """Returns the outer AI SDK object without its holder, and the inner one. The inverse of
        `flatten`."""
        outer: Part = {}
        inner: Part = {}
        for key, value in fields.items():
            if key in self.inner_names:
                inner[key] = value
            elif key.startswith(self.inner):
                inner[key.removeprefix(self.inner)] = value
            else:
                outer[key.removeprefix(self.outer)] = value
        return outer, inner


def thread_of(native: Native) -> Part:
    """Returns the fields in which a Mastra row names its thread and owner, or an empty object."""
    if not native or not OWN.is_ours(native):
        return {}
    # A message that was several rows of Mastra's first version has the notes of each, and all are
    # of one thread. A message that is one row of it has the fields in its own notes.
    row = if_object(OWN.notes(native).get("row"))
    rows = if_list(row.get("rows"))
    fields = if_object((if_object(rows[0]) if rows else row).get("fields"))
    if OWN.form(native).get("in") == ROW:
        fields = OWN.fields(native)
    return {key: fields[key] for key in _THREAD if isinstance(fields.get(key), str)}


def _find_thread(native: Native) -> Part:
    """Returns the thread that a message names: in its own fields, or in the Mastra row that it was
    read from."""
    if not native:
        return {}
    return {**pick(if_object(native.get(NAME)), _THREAD), **thread_of(native)}


MESSAGE_FIELDS = FormatFields(
    NAME,
    approval="approval",
    step_time="createdAt",
    step_model="model",
)
"""The fields of AI SDK messages that a history uses."""
ROW_FIELDS = msgspec.structs.replace(
    MESSAGE_FIELDS,
    thread="threadId",
    resource="resourceId",
    thread_of=_find_thread,
    seal=("mastra", "sealed"),
    done=("completionResult", "isTaskCompleteResult"),
)
"""The fields of Mastra's rows that a history uses."""
