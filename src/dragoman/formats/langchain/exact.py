"""Fields that neutral ones do not give back as they were (mirrors that differ, odd shapes): noted with a digest of the content, they
stand again while that has not changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from dragoman.codec.json_values import if_object, rest
from dragoman.content import MarkPart, Native, ToolResultPart
from dragoman.formats.langchain.envelope import OWN
from dragoman.message import Message

__all__ = ["as_was", "exactly"]

_MISSING = object()


def exactly(
    value: Message | ToolResultPart, native: Native, again: Mapping[str, Any], data: Mapping[str, Any]
) -> Native:
    """`native` with a note of the fields that neutral ones do not give back as they were. `again`: the message that they give."""
    inner = if_object(again.get("data")) or if_object(again.get("kwargs")) or again
    differ = {key: each for key, each in data.items() if inner.get(key, _MISSING) != each}
    dropped = [key for key in inner if key not in data]
    return {
        **(native or {}),
        **(OWN.with_form(native, exact={"fields": differ, "dropped": dropped, "digest": _digest(value)}) or {}),
    }


def as_was(value: Message | ToolResultPart, fields: dict[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as they were noted, while the content is as it was."""
    exact = if_object(form.get("exact"))
    if not exact or exact.get("digest") != _digest(value):
        return fields
    return {**rest(fields, *exact["dropped"]), **if_object(exact.get("fields"))}


def _digest(value: Message | ToolResultPart) -> str:
    substance: Any = (
        [each for each in value.content if not isinstance(each, MarkPart)]
        if isinstance(value, Message)
        else (value.id, value.result, value.is_error)
    )
    return blake2b(repr(substance).encode(errors="surrogatepass"), digest_size=8).hexdigest()
