"""Fields that neutral ones do not give back as they were (mirrors that differ, odd shapes): noted with a digest of the content, they
stand again while that has not changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, cast

from dragoman.codec.json_values import if_object, rest
from dragoman.content import MarkPart, Native, ToolResultPart
from dragoman.formats.langchain.carriage import OURS, dump_usage, load_usage
from dragoman.formats.langchain.envelope import OWN, THINKING, Opened, base_type, defaults
from dragoman.message import Message, Role

__all__ = ["as_was", "exactly", "is_usual", "is_usual_result"]

_MISSING = object()


def is_usual(it: Opened, role: Role) -> bool:
    """Whether the fields of a message are known to come back as they are, but for `response_metadata`; any other is written to see."""
    data, usual = it.data, defaults(it.type, it.form.get("wrap", "dict"))
    kwargs = data.get("additional_kwargs", {})
    if (
        not isinstance(data.get("content"), str)
        or not isinstance(kwargs, dict)
        or not _is_usual_extra(kwargs, "turn")
    ):
        return False
    if role is not Role.MODEL:
        return True
    calls, usage = data.get("tool_calls"), data.get("usage_metadata")
    return (
        base_type(it.type) == "ai"
        and isinstance(calls, list)
        and all(map(_is_usual_call, cast("list[Any]", calls)))
        and data.get("invalid_tool_calls") == []
        and not data.get("tool_call_chunks")
        and THINKING not in kwargs
        and "function_call" not in kwargs
        and all(
            data.get(key) != {} or key in usual
            for key in ("additional_kwargs", "response_metadata")
        )
        and (usage is None or _is_usual_usage(usage))
    )


def is_usual_result(it: Opened) -> bool:
    """The same of a result."""
    data, usual = it.data, defaults(it.type, it.form.get("wrap", "dict"))
    name, kwargs = data.get("name"), data.get("additional_kwargs", {})
    return (
        base_type(it.type) == "tool"
        and isinstance(data.get("content"), str)
        and isinstance(kwargs, dict)
        and _is_usual_extra(kwargs, "turn", "id")
        and (
            (isinstance(name, str) and bool(name))
            or (name is None and ("name" in usual or "name" not in data))
        )
    )


def _is_usual_extra(kwargs: Any, *known: str) -> bool:
    """Whether what LangChain has no field for is nothing, or texts under these names."""
    if OURS not in kwargs:
        return True
    ours = if_object(kwargs[OURS])
    return bool(ours) and all(
        key in known and isinstance(each, str) and each for key, each in ours.items()
    )


def _is_usual_call(call: Any) -> bool:
    fields = if_object(call)
    return (
        fields.get("type") == "tool_call"
        and isinstance(fields.get("id"), str)
        and isinstance(fields.get("name"), str)
        and isinstance(fields.get("args"), dict)
    )


def _is_usual_usage(usage: Any) -> bool:
    found, more = load_usage(usage)
    return found is not None and dump_usage(found, more) == usage


def exactly(
    value: Message | ToolResultPart,
    native: Native,
    again: Mapping[str, Any],
    data: Mapping[str, Any],
) -> Native:
    """`native` with a note of the fields that neutral ones do not give back as they were. `again`: the message that they give."""
    inner = if_object(again.get("data")) or if_object(again.get("kwargs")) or again
    differ = {key: each for key, each in data.items() if inner.get(key, _MISSING) != each}
    dropped = [key for key in inner if key not in data]
    return {
        **(native or {}),
        **(
            OWN.with_form(
                native, exact={"fields": differ, "dropped": dropped, "digest": _digest(value)}
            )
            or {}
        ),
    }


def as_was(
    value: Message | ToolResultPart, fields: dict[str, Any], form: Mapping[str, Any]
) -> dict[str, Any]:
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
