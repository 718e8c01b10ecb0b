"""What a format is, and which there are, by name.

A format is looked up among dragoman's own, then the registered ones, the wires, and the plug-ins
of installed distributions. Modules of built-in formats are imported when they are first asked
for; a plug-in is loaded once and then counts as registered. Optional features of a format are
attributes such as `layout` and `fields`, which are looked up by name, so that a small format
need not define them. `detectable` lists the formats that detection may ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from dragoman import wires
from dragoman.codec.format_layout import FormatFields, Layout
from dragoman.codec.plug_ins import load_plug_in, plug_ins
from dragoman.codec.serving import Problem
from dragoman.errors import SettingsError
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.wires.ai_sdk_messages.notes import MESSAGE_FIELDS, ROW_FIELDS

__all__ = [
    "ENTRY_POINTS",
    "Format",
    "detectable",
    "get",
    "history_fields",
    "layout",
    "layouts",
    "names",
    "register",
    "ui_formats",
]


class Format(Protocol):
    """A way to write conversations as JSON, both ways. Sans-I/O, as a wire.

    It may have an attribute `layout`, a `Layout`: where its messages stand in the body of a
    request. Without one they are a list alone, which any body may hold. What a model reads has
    `mended`, the function by which a conversation is repaired before it is written
    (`repair.traced`, most often); wires need none. `fields`, a `FormatFields`, names its own fields
    that a history acts on. Where there are several versions of it, `versions` names them, and
    `dump_messages` takes one as `version=`.
    """

    @property
    def name(self) -> str:
        """Returns the name of the format. An attribute."""
        ...

    def votes(self, message: object) -> int:
        """Returns how surely one element of a conversation, as JSON has it, is of this format: 0 it
        cannot be, 1 it could be, 2 it is likely, 3 it is hardly anything else. Never raises."""
        ...

    def load_messages(
        self,
        payload: object,
        *,
        origin: Origin | None = None,
        problems: list[Problem] | None = None,
    ) -> list[Message]:
        """Reads a conversation of the format as messages. `origin` is given to the model's messages
        where the format does not say whose they are. With `problems`, an element that cannot be
        read is left out and noted there.

        Raises:
            HistoryError: the payload is not of this format.
        """
        ...

    def dump_messages(
        self,
        messages: Iterable[Message],
        *,
        target: Origin | None = None,
        losses: list[Loss] | None = None,
    ) -> Any:
        """Writes messages as a conversation of the format. What it cannot hold is added to
        `losses`."""
        ...


_ANY = Layout()
_NAMES = (
    "ai_sdk_model", "ai_sdk_ui", "dragoman", "langchain", "mastra_v1", "mastra_v2", "openai_agents", "pydantic_ai", "sharegpt",
)  # fmt: skip
_OWN_FIELDS = (MESSAGE_FIELDS, ROW_FIELDS)
"""The `fields` of dragoman's own formats, each once; named here so that no format is imported to
learn them."""
_REGISTERED: dict[str, Format] = {}
"""Those of the process: registered in code, or loaded from an entry point."""

ENTRY_POINTS = "dragoman.formats"
"""Group of the entry points by which a distribution brings formats: name of the format → the
format, a module most often."""


def names() -> list[str]:
    """Returns the names of all formats: the wires first, then dragoman's other ones, those
    registered, those of plug-ins."""
    return list(
        dict.fromkeys(
            [
                *wires.names(),
                *_NAMES,
                *_REGISTERED,
                *(entry.name for entry in plug_ins(ENTRY_POINTS)),
            ]
        )
    )


def get(name: str) -> Format:
    """Returns the registered format with a name.

    Raises:
        SettingsError: there is none, or its plug-in is broken.
    """
    if name in _NAMES:
        return _load_built_in(name)
    if name in _REGISTERED:
        return _REGISTERED[name]
    if wires.is_known(name):
        return wires.get(name)
    plug_in = load_plug_in(ENTRY_POINTS, name, "format")
    if plug_in is None:
        raise SettingsError(f"no format is named {name!r}; there are {', '.join(names())}")
    _REGISTERED[name] = cast("Format", plug_in)
    return _REGISTERED[name]


def layout(name: str) -> Layout:
    """Returns where the messages of the format of that name stand: its `layout`, else a list alone
    that any body may hold.

    Raises:
        SettingsError: there is none of that name, or its plug-in is broken.
    """
    return getattr(get(name), "layout", _ANY)


def history_fields() -> list[FormatFields]:
    """Returns the records `fields` of all formats that have one, each once: dragoman's own, then
    those that were registered or loaded."""
    registered = [getattr(format_, "fields", None) for format_ in _REGISTERED.values()]
    return [*_OWN_FIELDS, *(fields for fields in registered if isinstance(fields, FormatFields))]


def detectable() -> dict[str, Format]:
    """Returns all formats that can be detected, by name. A plug-in that is broken is passed
    over."""
    known = (
        tuple(_REGISTERED.values()),
        wires.registered(),
        plug_ins(ENTRY_POINTS),
        plug_ins(wires.ENTRY_POINTS),
    )
    # Asked for each conversation, and nearly always the same.
    if not _DETECTABLE or _DETECTABLE[0][0] != known:
        formats = _find_detectable()
        _DETECTABLE[:] = [(known, formats, {name: layout(name) for name in formats})]
    return _DETECTABLE[0][1]


_DETECTABLE: list[tuple[object, dict[str, Format], dict[str, Layout]]] = []
"""What formats there were when those of `detectable` were found, these, and their layouts."""


def _find_detectable() -> dict[str, Format]:
    """Returns the formats that can be detected, by name."""
    formats: dict[str, Format] = {}
    for name in names():
        try:
            format_ = wires.get(name) if wires.is_known(name) else get(name)
        except SettingsError:
            continue
        # Messages with `same_as` are another format's.
        if hasattr(format_, "votes") and not hasattr(format_, "same_as"):
            formats[name] = format_
    return formats


def layouts() -> dict[str, Layout]:
    """Returns the layouts of all formats that can be detected, by name."""
    detectable()
    return _DETECTABLE[0][2]


def ui_formats() -> Any:
    """Returns the format of the messages that user interfaces show: beside `dump_messages` it has
    `dump_shown`, a message a turn."""
    return get("ai_sdk_ui")


@cache
def _load_built_in(name: str) -> Format:
    return cast("Format", import_module(f"dragoman.formats.{name}"))


def register(new_format: Format, *, replace: bool = False) -> None:
    """Makes a format known by its name.

    Raises:
        SettingsError: the name is dragoman's own or a wire's, or, without `replace`, already registered.
    """
    taken = new_format.name in (*_NAMES, *wires.names()) or (
        new_format.name in _REGISTERED and not replace
    )
    if taken:
        raise SettingsError(
            f"a format is named {new_format.name!r} already; give yours another name"
        )
    _REGISTERED[new_format.name] = new_format
