"""Formats: ways to write a conversation as JSON. Every wire is one; those beside them have no
model's API behind them.

name = formats.detect(payload)
messages = formats.get(name).load_messages(payload)
"""

from __future__ import annotations

from dragoman.codec.format_layout import Layout
from dragoman.formats.conversion import ConversationLine, Converted, convert, read_jsonl
from dragoman.formats.detection import Detected, detect, detect_list
from dragoman.formats.registry import Format, get, names, register, ui_formats

__all__ = [
    "Converted",
    "Detected",
    "Format",
    "Layout",
    "ConversationLine",
    "convert",
    "detect",
    "detect_list",
    "get",
    "names",
    "read_jsonl",
    "register",
    "ui_formats",
]
