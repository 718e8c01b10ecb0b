"""What stands in `native` of this family: the fields of an object that differ from what would be written for the neutral piece alone, so
that whatever is read is written again as it was, and nothing is held twice.

They belong to the dialect in which they were read. Another one writes of them what it has too (`applied`, its `shared`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dragoman.codec.json_values import if_list, if_object
from dragoman.codec.native import Own
from dragoman.message import Native

__all__ = ["NAME", "OURS", "OWN", "UI", "applied", "dialect_of", "is_same", "joined", "noted"]

NAME = "ai_sdk"
OWN = Own(NAME)
"""Its part of `native`."""
OURS = "dragoman"
"""Key in metadata under which stands what the family has no field for."""
UI = "ui"
"""The dialect that is not noted: UI messages of ai 5 and later."""
_VALUES = frozenset(
    ["text", "input", "args", "rawInput", "output", "result", "errorText", "url", "data", "image", "toolCallId", "toolName", "reasoning"]
)  # fmt: skip
"""Fields that say what the neutral piece says: as they were they are written only while that is what it was."""


def is_same(made: Any, read: Any) -> bool:
    """Whether two values are the same JSON; of objects and lists only the very same ones, or those of texts alone."""
    return made is read or (type(made) is type(read) and made == read)


def noted(
    read: Mapping[str, Any],
    made: Mapping[str, Any],
    dialect: str,
    native: Native = None,
    form: Mapping[str, Any] = {},
    left: Mapping[str, Any] = {},
) -> Native:
    """`native` with a note of how an object that was read differs from `made`, which would be written for its piece. `form`: what else is
    noted; `left`: metadata that no wire has."""
    own: dict[str, Any] = {}
    values: dict[str, Any] = {}
    absent: list[str] = []
    for key, value in read.items():
        if key not in made:
            own[key] = value
        elif not is_same(made[key], value):
            if key in _VALUES:
                values[key] = [made[key], value]
            else:
                own[key] = value
    for key, value in made.items():
        if key not in read:
            if key in _VALUES:
                values[key] = [value]
            else:
                absent.append(key)
    form = {
        **form,
        **{key: value for key, value in (("values", values), ("absent", absent)) if value},
    }
    if (own or form) and dialect != UI:
        form["in"] = dialect
    return joined(native, OWN.note(own, form, left=left))


def applied(
    native: Native,
    made: dict[str, Any],
    dialect: str,
    shared: Collection[str] | Mapping[str, str] = (),
) -> dict[str, Any]:
    """The inverse: what would be written for a piece alone → the object as it was read. `shared`: fields of other dialects that this
    one has too."""
    if not native or not OWN.is_ours(native):
        return made
    own, form = OWN.fields(native), OWN.form(native)
    if form.get("in", UI) != dialect:
        return {**made, **{key: own[key] for key in shared if key in own and key not in made}}
    absent, values = if_list(form.get("absent")), if_object(form.get("values"))
    out = {key: value for key, value in made.items() if key not in absent}
    for key, pair in values.items():
        if key in out and is_alike(pair[0], out[key]):
            if len(pair) > 1:
                out[key] = pair[1]
            else:
                del out[key]
    return {**out, **own}


def is_alike(one: Any, other: Any) -> bool:
    """Whether two values are equal; what was stored as JSON in between counts as equal too."""
    return one is other or (type(one) is type(other) and one == other)


def joined(one: Native, other: Native) -> Native:
    """Both."""
    return {**one, **other} if one and other else one or other


def dialect_of(native: Native) -> str | None:
    """The dialect in which a message was read, where that is noted."""
    found = OWN.form(native).get("in") if native else None
    return found if isinstance(found, str) else None
