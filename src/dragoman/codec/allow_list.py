"""Which fields of a client's body may go on to a provider: an allow list, one table for each wire.

A table is text, one kind of object a line: `kind tag=value,value: field field=kind|kind`. A field
without kinds passes with all that is in it. A list is no level of its own. Where an object may be
one of several kinds, the value of the tag's field says which; an object whose value is in no kind
is refused. A tag with a `?` may be absent. Behind a field's name stand:

- `!`: it names an object of an account, so that whatever holds it is refused too
- `*`: it passes as an object alone; a mere text there would be a name
- `~`: an object in it, which is in no list, is the client's own and passes whole
- `%`: it passes as an address of the open web, or as data; other addresses are names in an account

What is refused takes along what it stands in, up to the next element of a list, or the field of the
body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from dragoman.json_bytes import Json, JsonMap

__all__ = ["AllowList", "ObjectKind", "parse_kinds"]

_MARKS = "!*%~"
_ACCOUNT_HOSTS = (
    "generativelanguage.googleapis.com",
    "storage.googleapis.com",
    "api.mistral.ai",
    "api.openai.com",
)
"""Hosts at which an address names a file of whoever has the key."""
_WEB = ("http", "https", "data")
_FREE = ("", ())
"""Mark and kinds of a field that passes with all that is in it."""
_EMPTY: tuple[Any, ...] = (None, "", [], {})
"""Values that name nothing."""


class ObjectKind(NamedTuple):
    """A kind of object, as a line of a table has it."""

    tag: str
    """The field that says that an object is of this kind; empty: none does."""
    values: frozenset[str]
    """What that field holds."""
    optional: bool
    """True if the tag may be absent."""
    fields: Mapping[str, tuple[str, tuple[str, ...]]]
    """Field → its mark, and the kinds of the objects in it."""


class _Refused(Exception):
    """An object may not pass, by the field at this path."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def parse_kinds(table: str) -> dict[str, ObjectKind]:
    """Returns the kinds of object in an allow list's table, by their names."""
    kinds: dict[str, ObjectKind] = {}
    for line in re.sub(r"\n +", " ", table.strip()).splitlines():
        head, _, listed = line.partition(": ")
        name, _, tag = head.removesuffix(":").partition(" ")
        field, _, values = tag.partition("=")
        fields: dict[str, tuple[str, tuple[str, ...]]] = {}
        for entry in listed.split():
            written, _, inner = entry.partition("=")
            plain = written.rstrip(_MARKS)
            # Not `"".split("|")`, which would be one kind without a name.
            kind_names = tuple(inner.split("|")) if inner else ()
            fields[plain] = (written[len(plain) :], kind_names)
        optional = field.endswith("?")
        kinds[name] = ObjectKind(
            field.rstrip("?"), frozenset(filter(None, values.split(","))), optional, fields
        )
    return kinds


class AllowList:
    """The allow list of a wire. `spell`: a key as clients write it → as the table has it."""

    def __init__(self, table: str, spell: Callable[[str], str] | None = None) -> None:
        """Creates an allow list from the table of a provider's SDK types. `spell`: returns a
        field's name in the table's spelling."""
        self.table = table
        """As text."""
        if spell is None:
            self._spell = None
        else:
            self._spell = lru_cache(4096)(spell)
        self._merged = cache(self._merge_kinds)

    def filter_body(
        self, body: JsonMap, root: str = "request", extra_fields: Container[str] = ()
    ) -> tuple[JsonMap, list[str]]:
        """Returns a body without what the allow list refuses, and the paths of that, each once. The
        body itself where all of it may.

        `root`: the kind that the body is of; `known`: further fields of it that may pass.
        """
        left_out: list[str] = []
        fields = self._allowed_fields((root,), body)
        if fields is None:
            return body, []
        out: Json = {}
        for key, value in body.items():
            try:
                is_known = key in extra_fields and not self._is_listed(fields, key)
                if is_known:
                    out[key] = value
                else:
                    out[key] = self._filter_field(fields, key, value, key, left_out)
            except _Refused as refused:
                left_out.append(refused.path)
        if left_out:
            return (out, list(dict.fromkeys(left_out)))
        return (body, [])

    @cached_property
    def _kinds(self) -> dict[str, ObjectKind]:
        return parse_kinds(self.table)

    def _filter_field(
        self, fields: JsonMap, key: str, value: Any, path: str, left_out: list[str]
    ) -> Any:
        """Returns a field's value as it may pass the allow list.

        Raises:
            _Refused: it may not.
        """
        entry = fields.get(self._spell_in(fields, key))
        if entry is None:
            if value in _EMPTY:
                return value
            raise _Refused(path)
        mark, kinds = entry
        if _is_refused(mark, value):
            raise _Refused(path)
        is_free = mark == "~" and isinstance(value, dict)
        if kinds and not is_free:
            return self._filter_value(kinds, value, path, left_out)
        return cast("Any", value)

    def _spell_in(self, fields: JsonMap, key: str) -> str:
        """Returns a key as the allow list's table has it: as it is, or in the table's spelling."""
        if self._spell is None or key in fields:
            return key
        return self._spell(key)

    def _filter_value(
        self, kinds: tuple[str, ...], value: Any, path: str, left_out: list[str]
    ) -> Any:
        """Returns what the allow list lets through of a value: a list, an object or a scalar."""
        if isinstance(value, list):
            return self._filter_elements(kinds, cast("list[Any]", value), path, left_out)
        if isinstance(value, dict):
            return self._filter_object(kinds, cast("Json", value), path, left_out)
        return value

    def _filter_elements(
        self, kinds: tuple[str, ...], values: list[Any], path: str, left_out: list[str]
    ) -> list[Any]:
        """Returns the elements of a list that the allow list lets through; refused ones are left
        out."""
        out: list[Any] = []
        is_whole = True
        for value in values:
            try:
                passed = self._filter_value(kinds, value, path, left_out)
            except _Refused as refused:
                left_out.append(refused.path)
                is_whole = False
                continue
            is_whole = is_whole and passed is value
            out.append(passed)
        return values if is_whole else out

    def _filter_object(
        self, kinds: tuple[str, ...], value: Json, path: str, left_out: list[str]
    ) -> Json:
        """Returns the fields of an object that the allow list lets through. Raises `_Refused` if it
        refuses the object."""
        fields = self._allowed_fields(kinds, value)
        if fields is None:
            raise _Refused(self._path_of_kind(kinds, value, path))
        out: Json = {}
        is_whole = True
        for key, inner in value.items():
            # As nearly all: a field that passes with all that is in it.
            if fields.get(key) == _FREE:
                out[key] = inner
                continue
            below = f"{path}.{key}"
            try:
                passed = out[key] = self._filter_field(fields, key, inner, below, left_out)
            except _Refused as refused:
                # Refused from further below, or a field that the table marks: both refuse the object.
                if refused.path != below or self._is_listed(fields, key):
                    raise
                left_out.append(below)
                is_whole = False
                continue
            is_whole = is_whole and passed is inner
        if not out and not is_whole:
            # An empty object asks for nothing.
            raise _Refused(left_out.pop())
        return value if is_whole else out

    def _is_listed(self, fields: JsonMap, key: str) -> bool:
        """Returns True if the table has a field. One that is refused refuses its object too; any
        other is merely left out."""
        return self._spell_in(fields, key) in fields

    def _allowed_fields(self, kinds: tuple[str, ...], value: JsonMap) -> JsonMap | None:
        """Returns the fields that the allow list has for these kinds of object, or None if it has
        none for them."""
        tag, untagged = self._find_type_field(kinds)
        if not tag:
            return self._merged(untagged)
        return self._merged(self._choose_kinds(kinds, self._read_tag(kinds, value)) or untagged)

    def _path_of_kind(self, kinds: tuple[str, ...], value: JsonMap, path: str) -> str:
        """Returns the path by which the allow list refuses an object: with its kind, if it names
        one."""
        tag_value = self._read_tag(kinds, value)
        if tag_value is None:
            return path
        return f"{path}.{tag_value}"

    def _read_tag(self, kinds: tuple[str, ...], value: JsonMap) -> str | None:
        """Returns the text by which an object names its kind in the allow list, or an empty
        text."""
        tag_value = value.get(self._find_type_field(kinds)[0])
        if isinstance(tag_value, str):
            return tag_value
        return None

    @cache  # noqa: B019 tables live as long as the process
    def _find_type_field(self, kinds: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Returns the field by which the allow list tells these kinds of object apart, and the
        kinds that lack it."""
        kind_table = self._kinds
        tag = next(
            (kind_table[kind_name].tag for kind_name in kinds if kind_table[kind_name].tag), ""
        )
        return tag, tuple([kind for kind in kinds if not kind_table[kind].tag])

    @lru_cache(8192)  # noqa: B019 the same; clients choose the values
    def _choose_kinds(self, kinds: tuple[str, ...], value: str | None) -> tuple[str, ...]:
        """Returns the kinds of object in the allow list that a tag field's value selects."""
        kind_table = self._kinds
        if value is None:
            return tuple(
                [kind for kind in kinds if kind_table[kind].tag and kind_table[kind].optional]
            )
        return tuple([kind_name for kind_name in kinds if value in kind_table[kind_name].values])

    def _merge_kinds(
        self, kinds: tuple[str, ...]
    ) -> Mapping[str, tuple[str, tuple[str, ...]]] | None:
        """Returns the fields of several kinds of object in the allow list, merged."""
        if not kinds:
            return None
        fields: dict[str, tuple[str, tuple[str, ...]]] = {}
        for kind_name in kinds:
            for name, (mark, inner) in self._kinds[kind_name].fields.items():
                before = fields.get(name)
                if before is None:
                    fields[name] = (mark, inner)
                else:
                    fields[name] = (before[0] or mark, _union(before[1], inner))
        return fields


def _union(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*first, *second]))


def _is_refused(mark: str, value: Any) -> bool:
    """True if the mark of a field in the allow list forbids this value."""
    if mark == "!":
        return value not in _EMPTY
    if mark == "*":
        return isinstance(value, str)
    return mark == "%" and not _is_public(value)


def _is_public(value: Any) -> bool:
    """For the allow list, returns whether a URL is a data URL or a web address outside of the
    provider's account."""
    if not isinstance(value, str):
        return not value
    if value[:5].lower() == "data:":
        return True
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    # `HOST.` with the dot of the root is the same host.
    host = (parts.hostname or "").rstrip(".").lower()
    return parts.scheme.lower() in _WEB and bool(host) and host not in _ACCOUNT_HOSTS
