"""This wire's own fields of a value, and its notes about them. Beside those that every wire has it notes:

- `item`: of a piece of a message item's content, the fields of the item that it begins; a piece without goes on with the
  item before, where that has such a note, and is else an item of its own;
- `digest`: of a message, that of its content as it came, to know that it was not edited since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_object
from dragoman.codec.native import Own
from dragoman.message import Native

__all__ = ["NAME", "OWN", "begun_item", "fields", "is_foreign", "is_ours", "note", "response", "spelled", "spelling"]

NAME = "openai_responses"

OWN = Own(NAME)
fields = OWN.fields
is_foreign = OWN.is_foreign
is_ours = OWN.is_ours
note = OWN.note
response = OWN.response
spelled = OWN.spelled
spelling = OWN.spelling


def begun_item(native: Native) -> Mapping[str, Any] | None:
    """Fields of the message item that begins with this piece; `None`: it begins none."""
    notes = OWN.notes(native)
    return if_object(notes["item"]) if "item" in notes else None
