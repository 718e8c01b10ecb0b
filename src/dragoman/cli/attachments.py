"""Files and texts of a prompt that options name: `-a`, `--at`, `-f` and `--sf`, and `dragoman
fragments`.

A source is a path, a URL, `-` for standard input, for fragments also the name of a stored text or
`PREFIX:…` of a plug-in. An attachment is a file with a type, and a fragment is text that stands
before the prompt. URLs are opened as those of strangers are, since templates name some, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

from dragoman.cli.config_files import find_config_folder
from dragoman.cli.prompt import is_text, to_content
from dragoman.errors import InvalidRequestError
from dragoman.message import Content, DataPart, TextPart

if TYPE_CHECKING:
    from dragoman.transport import AddressPolicy

__all__ = ["fetch_file", "find_fragment_file", "load_attachments", "load_fragments", "read_text"]

_MAX_BYTES = 64 * 2**20
"""Of an attachment or a fragment."""
_SECONDS = 30.0
"""For a URL."""
_ATTACHMENT, _FRAGMENT = "--attachment", "--fragment"


def load_attachments(sources: Iterable[str], types: Mapping[str, str]) -> list[Content]:
    """Returns the files at paths, at URLs or on standard input (`-`).

    Args:
        sources: files whose type is told by their name or first bytes.
        types: further files, with their MIME types.

    Raises:
        BadParameter: one cannot be read, is empty, or is too large.
    """
    for source, mime_type in types.items():
        if "/" not in mime_type.strip("/"):
            raise typer.BadParameter(
                f"{source}: {mime_type!r} is no type; write one such as image/png",
                param_hint="--attachment-type",
            )
    files = [to_content(read_file(source, _ATTACHMENT)) for source in sources]
    return files + [
        DataPart(file.data, mime_type, file.name)
        for source, mime_type in types.items()
        for file in [read_file(source, "--attachment-type")]
    ]


def load_fragments(sources: Iterable[str], option: str = _FRAGMENT) -> list[Content]:
    """Returns the texts that fragments name, and the files that plug-ins load for them.

    Raises:
        BadParameter: one cannot be read, is no text, or is too large.
    """
    return [part for source in sources for part in _load_fragment(source, option)]


def _load_fragment(source: str, option: str) -> list[Content]:
    """Returns the parts of one fragment."""
    is_prefixed = ":" in source and "://" not in source and not Path(source).exists()
    if not is_prefixed:
        text = read_text(source, option)
        return [TextPart(text)] if text.strip() else []
    from dragoman.cli.plugins import load_by_prefix

    parts = load_by_prefix("fragment_loaders", source, option)
    return [
        TextPart(part) if isinstance(part, str) else part
        for part in ([parts] if isinstance(parts, str) else parts)
        if part
    ]


def read_text(source: str, option: str = _FRAGMENT) -> str:
    """Returns the text that a fragment names: a stored one, a file's, a URL's, or standard input.

    Raises:
        BadParameter: it cannot be read, is no text, or is too large.
    """
    # As in `llm`, a stored text goes before a file of the same name.
    stored = find_fragment_file(source)
    file = read_file(str(stored) if stored is not None and stored.exists() else source, option)
    if not is_text(file.data):
        raise typer.BadParameter(
            f"{source} is not text; attach it with -a {source}", param_hint=option
        )
    return file.data.decode("utf-8", "replace")


def find_fragment_file(name: str) -> Path | None:
    """Returns the file in which a text with this name is stored, or None if it can be no name."""
    is_name = name.replace("-", "_").replace(".", "_").isidentifier()
    return find_config_folder() / "fragments" / name if is_name else None


def read_file(source: str, option: str) -> DataPart:
    """Returns the file at a path, at a URL, or on standard input (`-`).

    Raises:
        BadParameter: it cannot be read, is empty, or is too large.
    """
    if source == "-":
        file = _read_standard_input(option)
    elif "://" in source:
        file = fetch_file(source, option, _MAX_BYTES)
    else:
        path = Path(source).expanduser()
        try:
            with path.open("rb") as opened:
                file = _make_part(opened.read(_MAX_BYTES + 1), path.name)
        # A path from a template may hold anything.
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise typer.BadParameter(
                f"cannot read {source}: {reason}", param_hint=option
            ) from error
    if not file.data:
        problem = f"{source} is empty"
        if source == "-":
            problem = "standard input is empty; it can be read once"
        raise typer.BadParameter(problem, param_hint=option)
    if len(file.data) > _MAX_BYTES:
        raise typer.BadParameter(
            f"{source} is larger than {_MAX_BYTES >> 20} MB", param_hint=option
        )
    return file


def _make_part(content: bytes, name: str) -> DataPart:
    from dragoman.content import guess_mime_type

    return DataPart(content, guess_mime_type(name, content), name or None)


def _read_standard_input(option: str) -> DataPart:
    """Returns what is piped in.

    Raises:
        BadParameter: nothing is.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise typer.BadParameter("- is standard input; pipe something in", param_hint=option)
    return _make_part(sys.stdin.buffer.read(_MAX_BYTES + 1), "")


def fetch_file(url: str, option: str, max_bytes: int) -> DataPart:
    """Downloads the file at a public URL.

    Raises:
        BadParameter: the URL is refused, or there is no file, or it is too large.
        ProviderError: its server failed.
    """
    import asyncio

    from dragoman.transport.fetching import fetch

    try:
        return asyncio.run(fetch(url, make_policy(url), max_bytes=max_bytes, seconds=_SECONDS))
    except InvalidRequestError as error:
        raise typer.BadParameter(
            f"{url}: {error.message}; or pipe it in: curl … | dragoman {option} -",
            param_hint=option,
        ) from error


def make_policy(url: str) -> AddressPolicy:
    """Returns the policy for a URL on a command line: any public host, at the URL's port."""
    from dragoman.transport.address_policy import AddressPolicy

    try:
        port = urlsplit(url).port
    except ValueError:
        port = None
    return AddressPolicy(
        ["*"], schemes=("https", "http"), ports=None if port is None else (port, 443)
    )
