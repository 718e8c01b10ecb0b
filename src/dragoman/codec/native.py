"""One wire's part of `native`: its own fields of a value beyond the neutral ones, and its notes
about them.

They stand in two rooms. `native[wire]` holds fields of the wire's own JSON object, under their own
names; a dump writes them as they are. `native[wire + ":notes"]` holds what the wire noted while it
read: the form in which it had neutral fields, where that is not the usual one, `response` (what
stood around a message in a response; never sent), and what else a wire needs. No field that a
provider, a client or a stored file could hold reaches the notes.
"""

from __future__ import annotations

from typing import Any

from dragoman.codec.json_values import if_object
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import NOTES, Native

__all__ = ["WireNative", "read_signatures"]

_SIGNATURES = ("signature", "thoughtSignature", "encrypted_content", "data")
"""Fields under which a provider signs, or hides, what its model said."""

_FORM = "spelling"
"""Under which the wire form is stored."""


class WireNative:
    """Reads and makes the `native` of one wire."""

    def __init__(self, name: str) -> None:
        """Creates access to one wire's native fields. `name`: the wire's name."""
        self._fields = name
        self._notes = name + NOTES

    def is_ours(self, native: Native) -> bool:
        """True if the value came through this wire and has fields or notes of it."""
        return bool(native) and (self._fields in native or self._notes in native)

    def is_foreign(self, native: Native) -> bool:
        """True if the value has fields or notes of other wires and none of this one."""
        return bool(native) and not self.is_ours(native)

    def shapes(self, native: Native) -> bool:
        """True if the value has fields of this wire, or a form of neutral ones that is not the
        usual: else it is written as if it had nothing native."""
        return bool(native) and (self._fields in native or bool(self.form(native)))

    def fields(self, native: Native) -> Json:
        """Returns the native fields that are written as they are; a new mapping."""
        if native and self._fields in native:
            return dict(if_object(native[self._fields]))
        return {}

    def notes(self, native: Native) -> Json:
        """Returns all notes. Do not change them."""
        return if_object(native.get(self._notes)) if native else {}

    def form(self, native: Native) -> Json:
        """Returns the wire form of neutral fields, where it is not the usual one."""
        notes = native.get(self._notes) if native else None
        return if_object(if_object(notes).get(_FORM)) if notes else {}

    def response(self, native: Native) -> Json:
        """Returns the native fields of the response around a message."""
        if native:
            return if_object(self.notes(native).get("response"))
        return {}

    def note(
        self,
        fields: JsonMap | None = None,
        form: JsonMap | None = None,
        *,
        mark: bool = False,
        **notes: Any,
    ) -> Native:
        """Builds the `native` of a value from its fields, the wire form of neutral ones, and
        further notes. Returns None if all are empty, unless `mark` asks for a mark that the value
        came through this wire."""
        all_notes: Json = {_FORM: form} if form else {}
        if notes:
            all_notes |= {name: value for name, value in notes.items() if value}
        native: Json = {}
        if fields or mark:
            native[self._fields] = dict(fields or {})
        if all_notes:
            native[self._notes] = all_notes
        return native or None

    def with_notes(self, native: Native, **notes: Any) -> Native:
        """Returns the same native mapping with further notes, which may be empty."""
        native_fields: Json = {}
        if native and self._fields in native:
            native_fields[self._fields] = native[self._fields]
        return {**native_fields, self._notes: {**self.notes(native), **notes}}

    def with_form(self, native: Native, **form: Any) -> Native:
        """Returns the same native mapping with more noted of the wire form."""
        return self.with_notes(native, **{_FORM: {**self.form(native), **form}})

    def without_fields(self, native: Native) -> Native:
        """Returns what any provider may see: the wire form alone, without fields that only their
        own provider understands."""
        return self.note(form=self.form(native))

    def open_notes(self, native: Json) -> Json:
        """Returns the notes of a part that is being streamed, to be added to."""
        return native.setdefault(self._notes, {})

    def open_form(self, native: Json) -> Json:
        """Returns the wire form of a part that is being streamed, to be added to."""
        return self.open_notes(native).setdefault(_FORM, {})

    def open_fields(self, native: Json) -> Json:
        """Returns the fields of a part that is being streamed, to be added to."""
        return native.setdefault(self._fields, {})


def read_signatures(native: Native) -> dict[str, str]:
    """Returns from a piece's `native` what providers signed: the signature by the wire's name."""
    signatures: dict[str, str] = {}
    for wire, wire_fields in (native or {}).items():
        # Notes are dragoman's own; no provider signs there.
        if NOTES in wire:
            continue
        fields = if_object(wire_fields)
        if signed := [
            signature
            for key in _SIGNATURES
            if isinstance(signature := fields.get(key), str) and signature
        ]:
            signatures[wire] = signed[0]
    return signatures
