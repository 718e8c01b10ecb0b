"""What a memory is set to, and its arguments, checked where they are given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dragoman.arguments import expect_each, wrong_type_error
from dragoman.errors import HistoryError, SettingsError
from dragoman.json_bytes import Json

__all__ = [
    "Window",
    "check_id",
    "check_ids",
    "check_metadata",
    "check_optional_id",
    "check_page",
    "check_title",
    "window",
]

_LAST = 10
"""Messages that an agent is given where nothing else is wanted."""
_LONGEST = 1000
"""Bytes of an id; indexes of databases bound them."""


class Window(msgspec.Struct, frozen=True):
    """How much of a thread an agent is given."""

    messages: int | None
    """Most messages; `None`: no bound."""
    tokens: int | None
    """Most tokens of the whole conversation, about; `None`: no bound."""
    remove: int
    """Tokens that are left free once there are too many, so that not every turn begins
    elsewhere."""


def window(last_messages: Any, tokens: Any, remove_tokens: Any) -> Window:
    """Returns the window that these arguments of `Memory` mean.

    Raises:
        SettingsError: one is no number, or out of range.
    """
    if last_messages is False:
        last_messages = 0
    if last_messages is not None and not _is_count(last_messages):
        raise SettingsError(
            f"last_messages must be a finite non-negative integer or False, not {last_messages!r}"
        )
    for name, value in (("tokens", tokens), ("remove_tokens", remove_tokens)):
        if value is not None and not _is_count(value):
            raise SettingsError(f"{name} must be a finite non-negative integer, not {value!r}")
    if tokens is None:
        if remove_tokens is not None:
            raise SettingsError("remove_tokens is for a budget: give tokens, too")
        return Window(_LAST if last_messages is None else last_messages, None, 0)
    remove = tokens // 4 if remove_tokens is None else remove_tokens
    if remove > tokens:
        raise SettingsError(f"remove_tokens ({remove}) must not be more than tokens ({tokens})")
    return Window(last_messages, tokens, remove)


def check_id(name: str, value: Any) -> str:
    """Returns an id that every store takes.

    Raises:
        TypeError: it is no string.
        HistoryError: it is empty, too long, or holds what databases refuse.
    """
    if not isinstance(value, str):
        raise wrong_type_error(name, value, "a string")
    if not value:
        raise HistoryError(f"{name} is empty: give an id")
    return _check_text(name, value, _LONGEST)


def check_metadata(name: str, value: Any) -> Json:
    """Metadata that every store takes.

    Raises:
        TypeError: it is no mapping.
        HistoryError: it is not JSON.
    """
    if not isinstance(value, Mapping):
        raise wrong_type_error(name, value, "a mapping")
    try:
        encoded = msgspec.json.encode(value)
        plain = msgspec.json.decode(encoded, type=Json)
    except (TypeError, ValueError, RecursionError) as error:
        raise HistoryError(f"{name} cannot be stored as JSON: {error}") from error
    if rb"\u0000" in encoded:
        raise HistoryError(f"{name} holds the character U+0000, which databases refuse")
    return plain


def check_page(page: Any, per_page: Any) -> None:
    """Raises `HistoryError` where there is no such page."""
    if not _is_count(page):
        raise HistoryError(f"page must be a non-negative integer, not {page!r}")
    if per_page is not None and not _is_count(per_page):
        raise HistoryError(
            f"per_page must be a non-negative integer, or None for all, not {per_page!r}"
        )
    if per_page is None and page:
        raise HistoryError("per_page=None is all messages: there is page 0 only")


def check_ids(ids: Iterable[str]) -> list[str]:
    """Returns ids of messages that every store takes. Raises as `check_id` does."""
    return [check_id("an id in ids", message_id) for message_id in expect_each("ids", ids, str)]


def check_optional_id(name: str, value: str | None) -> str | None:
    """Returns an id that every store takes, or `None`. Raises as `check_id` does."""
    return None if value is None else check_id(name, value)


def check_title(value: Any) -> str | None:
    """Returns a title that every store takes.

    Raises:
        TypeError: it is no string.
        HistoryError: it holds what databases refuse.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong_type_error("title", value, "a string")
    return _check_text("title", value, None)


def _check_text(name: str, value: str, longest: int | None) -> str:
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise HistoryError(f"{name} holds half a character: {value!r}") from error
    if "\x00" in value:
        raise HistoryError(f"{name} holds the character U+0000, which databases refuse: {value!r}")
    if longest is not None and size > longest:
        raise HistoryError(f"{name} is {size} bytes long; {longest} are the most")
    return value


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
