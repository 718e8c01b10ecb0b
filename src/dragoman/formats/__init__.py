"""Formats: ways to write a conversation as JSON. Every wire is one; those beside them have no model's API behind them.

name = formats.detect(payload)
messages = formats.get(name).load_messages(payload)
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from dragoman import wires
from dragoman.errors import SettingsError
from dragoman.formats.detection import Detected, detect, detected
from dragoman.formats.format import Format
from dragoman.formats.jsonl import Line, read_jsonl

__all__ = ["Detected", "Format", "Line", "detect", "detected", "get", "names", "read_jsonl", "register"]

_NAMES = ("dragoman", "langchain", "openai_agents", "pydantic_ai", "sharegpt")
_REGISTERED: dict[str, Format] = {}


def names() -> list[str]:
    """The names of all formats: the wires first, then dragoman's other ones, then those registered."""
    return list(dict.fromkeys([*wires.names(), *_NAMES, *_REGISTERED]))


def get(name: str) -> Format:
    """The format of that name.

    Raises:
        SettingsError: there is none.
    """
    if name in _NAMES:
        return cast("Format", import_module(f"dragoman.formats.{name}"))
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name in wires.names():
        return wires.get(name)
    raise SettingsError(f"no format is named {name!r}; there are {', '.join(names())}")


def register(given: Format, *, replace: bool = False) -> None:
    """Makes a format known by its name.

    Raises:
        SettingsError: the name is dragoman's own or a wire's, or, without `replace`, already registered.
    """
    taken = given.name in (*_NAMES, *wires.names()) or (given.name in _REGISTERED and not replace)
    if taken:
        raise SettingsError(f"a format is named {given.name!r} already; give yours another name")
    _REGISTERED[given.name] = given
