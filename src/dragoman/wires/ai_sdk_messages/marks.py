"""Marks that two dialects have under different names, each as the other has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.codec.json_values import if_object, if_text
from dragoman.message import MarkPart, ProviderPart
from dragoman.wires.ai_sdk_messages.own import OWN, UI
from dragoman.wires.ai_sdk_messages.reading import IMPLIED, OLD, STEP

__all__ = ["OLD", "dump_mark"]

_Fields = dict[str, Any]


def dump_mark(piece: MarkPart | ProviderPart, dialect: str) -> _Fields:
    """The part of a mark; empty where the dialect has none for it."""
    fields = OWN.fields(piece.native) if piece.native else {}
    read_in = OWN.form(piece.native).get("in", UI) if piece.native else dialect
    if dialect in OLD and piece.native and OWN.form(piece.native).get(IMPLIED):
        return {}
    if read_in == dialect:
        return {"type": piece.kind, **fields}
    if piece.kind == STEP:
        return {"type": STEP}
    if piece.kind.startswith("data-"):
        return {"type": piece.kind, **{key: fields[key] for key in ("id", "data") if key in fields}}
    if (dialect in OLD) == (read_in in OLD):
        return {"type": piece.kind, **fields}
    change = (_TO_OLD if dialect in OLD else _FROM_OLD).get(piece.kind)
    return change(fields) if change else {}


def _source(fields: _Fields) -> _Fields:
    if not isinstance(fields.get("url"), str):
        return {}
    about = {key: fields[key] for key in ("title", "providerMetadata") if key in fields}
    return {
        "type": "source",
        "source": {
            "sourceType": "url",
            "id": fields.get("sourceId", ""),
            "url": fields["url"],
            **about,
        },
    }


def _source_url(fields: _Fields) -> _Fields:
    source = if_object(fields.get("source"))
    if not isinstance(source.get("url"), str):
        return {}
    about = {key: source[key] for key in ("title", "providerMetadata") if key in source}
    return {
        "type": "source-url",
        "sourceId": if_text(source.get("id")),
        "url": source["url"],
        **about,
    }


def _same(kind: str) -> Callable[[_Fields], _Fields]:
    return lambda fields: {
        "type": kind,
        **{key: value for key, value in fields.items() if key != "createdAt"},
    }


_TO_OLD: Mapping[str, Callable[[_Fields], _Fields]] = {
    "source-url": _source,
    "source-document": _same("source-document"),
}
"""Kind of a mark of UI messages of ai 5 and later → its part in ai 4 and Mastra's."""
_FROM_OLD: Mapping[str, Callable[[_Fields], _Fields]] = {
    "source": _source_url,
    "source-document": _same("source-document"),
}
"""The inverse."""
