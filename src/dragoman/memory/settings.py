"""Settings of a memory, and checks of the arguments that its methods take.

Every method of `Memory` passes its arguments through here before it asks a store, so that all
stores refuse the same values with the same message. The checks are as strict as the strictest
database: Postgres takes no U+0000, indexes limit the length of ids, and metadata must be JSON.
`make_window` turns the three arguments on the window into one `Window`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dragoman.arguments import expect_each, wrong_type_error
from dragoman.errors import HistoryError, SettingsError
from dragoman.json_bytes import Json

__all__ = [
    "Window",
    "check_filter",
    "check_id",
    "check_ids",
    "check_metadata",
    "check_optional_id",
    "check_page",
    "check_text",
    "check_title",
    "make_window",
]

_DEFAULT_MESSAGES = 10
"""Messages that an agent is given by default."""
_MAX_ID_BYTES = 1000
"""Most bytes of an id; database indexes limit it."""


class Window(msgspec.Struct, frozen=True):
    """Limits on the messages and tokens of a thread that an agent is given."""

    messages: int | None
    """Most messages; `None`: no limit."""
    tokens: int | None
    """Most tokens of the whole conversation, estimated; `None`: no limit."""
    remove: int
    """Tokens that a cut leaves free, so that the window does not move every turn."""


def make_window(last_messages: Any, tokens: Any, remove_tokens: Any) -> Window:
    """Returns the window that these arguments of `Memory` describe.

    Raises:
        SettingsError: one is no number, or out of range.
    """
    # `False` is Mastra's way to say none; `True` says nothing, and is refused below.
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
        if last_messages is None:
            last_messages = _DEFAULT_MESSAGES
        return Window(last_messages, None, 0)
    if remove_tokens is None:
        remove_tokens = tokens // 4
    if remove_tokens > tokens:
        raise SettingsError(
            f"remove_tokens ({remove_tokens}) must not be more than tokens ({tokens})"
        )
    return Window(last_messages, tokens, remove_tokens)


def check_id(name: str, value: Any) -> str:
    """Returns an id given to `Memory` if every store can hold it.

    Raises:
        TypeError: it is no string.
        HistoryError: it is empty, too long, or holds what databases refuse.
    """
    if not isinstance(value, str):
        raise wrong_type_error(name, value, "a string")
    if not value:
        raise HistoryError(f"{name} is empty: give an id")
    return check_text(name, value, _MAX_ID_BYTES)


def check_metadata(name: str, value: Any) -> Json:
    """Returns a plain copy of metadata given to `Memory`, which every store can hold.

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
    # Postgres cannot hold this character, even escaped within JSON.
    if rb"\u0000" in encoded:
        raise HistoryError(f"{name} holds the character U+0000, which databases refuse")
    return plain


def check_filter(metadata: Any) -> Json:
    """Checks the argument `metadata` of `Memory.threads`: returns the fields that threads are
    searched by. Raises as `check_metadata` does."""
    fields = check_metadata("metadata", metadata)
    for name, value in fields.items():
        if isinstance(value, (dict, list)):
            raise HistoryError(
                f"metadata[{name!r}] is an object or a list: search threads by texts, numbers, booleans or None"
            )
    return fields


def check_page(page: Any, per_page: Any) -> None:
    """Raises `HistoryError` if the page numbers given to `Memory` are invalid."""
    if not _is_count(page):
        raise HistoryError(f"page must be a non-negative integer, not {page!r}")
    if per_page is not None and not _is_count(per_page):
        raise HistoryError(
            f"per_page must be a non-negative integer, or None for all, not {per_page!r}"
        )
    if per_page is None and page:
        raise HistoryError("per_page=None is all messages: there is page 0 only")


def check_ids(ids: Iterable[str]) -> list[str]:
    """Returns the message ids if every store can hold them. Raises as `check_id` does."""
    return [check_id("an id in ids", message_id) for message_id in expect_each("ids", ids, str)]


def check_optional_id(name: str, value: str | None) -> str | None:
    """Returns None, or the id if every store can hold it. Raises as `check_id` does."""
    return None if value is None else check_id(name, value)


def check_title(value: Any) -> str | None:
    """Returns None, or the title given to `Memory` if every store can hold it.

    Raises:
        TypeError: it is no string.
        HistoryError: it holds what databases refuse.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong_type_error("title", value, "a string")
    return check_text("title", value)


def check_text(name: str, value: str, max_bytes: int | None = None) -> str:
    """Returns the text given to `Memory` if every store can hold it.

    Raises:
        HistoryError: databases refuse it, or it has over `max_bytes` bytes.
    """
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise HistoryError(f"{name} holds half a character: {value!r}") from error
    if "\x00" in value:
        raise HistoryError(f"{name} holds the character U+0000, which databases refuse: {value!r}")
    if max_bytes is not None and size > max_bytes:
        raise HistoryError(f"{name} is {size} bytes long; {max_bytes} are the most")
    return value


def _is_count(value: Any) -> bool:
    """True for an integer of 0 or more that is no boolean."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
