"""The `extras` of LangChain's blocks, in which the fields of other formats travel."""

from __future__ import annotations

from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.content import Native
from dragoman.formats.langchain.envelope import NAME
from dragoman.formats.langchain.message_metadata import OURS
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import NOTES

__all__ = ["add_extras", "find_foreign_fields", "read_foreign_fields", "split_extras"]


def split_extras(block_fields: Json) -> tuple[Json, Json]:
    """Splits the fields of a block into LangChain's own and the `native` of other formats that
    dragoman wrote into `extras`."""
    extras = if_object(block_fields.get("extras"))
    if not (foreign := read_foreign_fields(extras)):
        return block_fields, {}
    more = read_extra_fields(extras, OURS)
    return {
        **read_extra_fields(block_fields, "extras"),
        **({"extras": more} if more else {}),
    }, foreign


def read_foreign_fields(fields_around: JsonMap) -> Json:
    """Returns the fields of other formats in the `extras` of a LangChain block, never their notes,
    which nobody else may write."""
    fields = if_object(fields_around.get(OURS))
    fine = fields and all(
        isinstance(value, dict) and NOTES[0] not in key for key, value in fields.items()
    )
    if fine:
        return fields
    return {}


def find_foreign_fields(native: Native) -> Json:
    """Returns the fields that a piece has of other formats, for the extras of its LangChain
    block."""
    return {
        key: value for key, value in (native or {}).items() if key != NAME and NOTES[0] not in key
    }


def add_extras(block: Json, foreign: JsonMap) -> Json:
    """Returns a LangChain block with the fields of other formats in its `extras`."""
    if foreign:
        return {**block, "extras": {**if_object(block.get("extras")), OURS: dict(foreign)}}
    return block
