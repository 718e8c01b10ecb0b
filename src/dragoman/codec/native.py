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
        """`name`: the wire's."""
        self._fields = name
        self._notes = name + NOTES

    def is_ours(self, native: Native) -> bool:
        """Whether the value came through this wire with something of its own."""
        return bool(native) and (self._fields in native or self._notes in native)

    def is_foreign(self, native: Native) -> bool:
        """Whether the value came through other wires with something of their own, and not through
        this one."""
        return bool(native) and not self.is_ours(native)

    def fields(self, native: Native) -> Json:
        """The fields that are written as they are; a new mapping."""
        return dict(if_object(native[self._fields])) if native and self._fields in native else {}

    def notes(self, native: Native) -> Json:
        """All that was noted; not to be changed."""
        return if_object(native.get(self._notes)) if native else {}

    def form(self, native: Native) -> Json:
        """The wire form of neutral fields, where it is not the usual one."""
        notes = native.get(self._notes) if native else None
        return if_object(if_object(notes).get(_FORM)) if notes else {}

    def response(self, native: Native) -> Json:
        """Of a message: fields of the response around it."""
        return if_object(self.notes(native).get("response")) if native else {}

    def note(
        self,
        fields: JsonMap | None = None,
        form: JsonMap | None = None,
        *,
        mark: bool = False,
        **notes: Any,
    ) -> Native:
        """The native mapping of these fields, of the wire form of neutral ones, and of further
        notes. `None` where there is nothing to say, unless `mark` asks for a mark that the value
        came through this wire. A note that says nothing (`None`, empty) is left out."""
        kept: Json = {_FORM: form} if form else {}
        if notes:
            kept |= {name: value for name, value in notes.items() if value}
        native: Json = {self._fields: dict(fields or {})} if fields or mark else {}
        if kept:
            native[self._notes] = kept
        return native or None

    def with_notes(self, native: Native, **notes: Any) -> Native:
        """The same native mapping with further notes, which may be empty."""
        own = {self._fields: native[self._fields]} if native and self._fields in native else {}
        return {**own, self._notes: {**self.notes(native), **notes}}

    def with_form(self, native: Native, **form: Any) -> Native:
        """The same native mapping with more noted of the wire form."""
        return self.with_notes(native, **{_FORM: {**self.form(native), **form}})

    def without_fields(self, native: Native) -> Native:
        """What any provider may see: the wire form alone, without fields that only their own
        provider understands."""
        return self.note(form=self.form(native))

    def open_notes(self, native: Json) -> Json:
        """The notes of a part that is being streamed, to be added to."""
        return native.setdefault(self._notes, {})

    def open_form(self, native: Json) -> Json:
        """The wire form of a part that is being streamed, to be added to."""
        return self.open_notes(native).setdefault(_FORM, {})

    def open_fields(self, native: Json) -> Json:
        """The fields of a part that is being streamed, to be added to."""
        return native.setdefault(self._fields, {})


def read_signatures(native: Native) -> dict[str, str]:
    """What providers signed of a piece: name of the wire that they speak → the signature."""
    found: dict[str, str] = {}
    for wire, own in (native or {}).items():
        fields = if_object(own) if NOTES not in wire else {}
        if signed := [
            each for key in _SIGNATURES if isinstance(each := fields.get(key), str) and each
        ]:
            found[wire] = signed[0]
    return found
