"""Marks (steps, sources, data parts): kinds that two dialects have under different names, each as
the other has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman.codec.json_values import if_object, if_text, pick, read_extra_fields
from dragoman.message import MarkPart, ProviderPart
from dragoman.wires.ai_sdk_messages.notes import OLD, OWN, UI, Fields, Part
from dragoman.wires.ai_sdk_messages.read_parts import (
    IMPLIED,
    STEP,
    MessageDialect,
    Reading,
    load_mark,
)

__all__ = ["dump_mark", "dump_old_mark", "load_source"]

_SOURCE = frozenset(["id", "url", "title", "providerMetadata"])
_ABOUT = ("title", "providerMetadata")


def load_source(part: Part, reading: Reading, where: str) -> None:
    """Reads a source of ai 4 as the mark that ai 5 has for it."""
    source = if_object(part.get("source"))
    is_url = source.get("sourceType") == "url" and {"id", "url"} <= source.keys()
    fields = read_extra_fields(source, "sourceType")
    if len(part) != 2 or not is_url or not fields.keys() <= _SOURCE:
        load_mark(part, reading, where)
        return
    fields["sourceId"] = fields.pop("id")
    reading.add(MarkPart("source-url", OWN.note(fields)))


def dump_mark(mark: MarkPart | ProviderPart, dialect: MessageDialect) -> Part:
    """Returns the part of a mark, or an empty object if the dialect has none."""
    name = dialect.name
    fields, form = OWN.fields(mark.native), OWN.form(mark.native)
    read_in = name
    if mark.native:
        read_in = form.get("in", UI)
    whole = {"type": mark.kind, **fields}
    if name in OLD and form.get(IMPLIED):
        return {}
    if read_in == name:
        return whole
    if mark.kind == STEP:
        return {"type": STEP}
    if mark.kind.startswith("data-"):
        return pick(whole, ("type", "id", "data"))
    if (name in OLD) == (read_in in OLD):
        return whole
    change = (_TO_OLD if name in OLD else _FROM_OLD).get(mark.kind)
    return change(fields) if change else {}


def dump_old_mark(mark: MarkPart | ProviderPart, dialect: MessageDialect) -> Part:
    """Returns the part of a mark in a UI message of ai 4. A step that nobody wrote has none."""
    fields, form = OWN.fields(mark.native), OWN.form(mark.native)
    if form.get(IMPLIED):
        return {}
    if mark.kind != "source-url" or form.get("in") == dialect.name:
        return {"type": mark.kind, **fields}
    renamed = {"id" if key == "sourceId" else key: value for key, value in fields.items()}
    return {"type": "source", "source": {"sourceType": "url", **renamed}}


def _to_source(fields: Fields) -> Part:
    """Returns a source of ai 5 as ai 4 writes it."""
    if not isinstance(fields.get("url"), str):
        return {}
    about = pick(fields, _ABOUT)
    source = {
        "sourceType": "url",
        "id": fields.get("sourceId", ""),
        "url": fields["url"],
        **about,
    }
    return {"type": "source", "source": source}


def _from_source(fields: Fields) -> Part:
    """Returns a source of ai 4 as ai 5 writes it."""
    source = if_object(fields.get("source"))
    if not isinstance(source.get("url"), str):
        return {}
    about = pick(source, _ABOUT)
    id_ = if_text(source.get("id"))
    return {
        "type": "source-url",
        "sourceId": id_,
        "url": source["url"],
        **about,
    }


def _copy_document(fields: Fields) -> Part:
    """Returns a source document, which both write alike except for its time."""
    return {"type": "source-document", **read_extra_fields(fields, "createdAt")}


_Change = Callable[[Fields], Part]
_TO_OLD: Mapping[str, _Change] = {"source-url": _to_source, "source-document": _copy_document}
"""Kind of a mark of ai 5 and later → a function that writes its part for ai 4 and Mastra."""
_FROM_OLD: Mapping[str, _Change] = {"source": _from_source, "source-document": _copy_document}
"""Kind of a mark of ai 4 and Mastra → a function that writes its part for ai 5 and later."""
