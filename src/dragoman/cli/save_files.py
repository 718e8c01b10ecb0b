"""Writes the files of an answer. Their names come from a provider, so only a safe last part counts.

Nothing that exists is overwritten unless the user says so: a file is created by the system only if
there is none, and another number is tried for a name that is taken.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import typer

from dragoman.message import DataPart

__all__ = ["Output", "check_output", "guess_types", "save_files"]

_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|\u200e\u200f\u2028-\u202e\u2066-\u2069]+')
_MOST_CHARACTERS = 100
_SUFFIXES = {"image/jpeg": ".jpg", "text/plain": ".txt", "audio/mpeg": ".mp3"}
"""Where the system's table prefers a rare suffix."""


class Output(NamedTuple):
    """Where files go."""

    path: Path
    """A file, or a folder."""
    is_folder: bool
    """Whether it is a folder, which may be still to make."""


def guess_types(output: str | None, mime_types: Sequence[str] | None) -> list[str]:
    """Returns the MIME types to ask for: those that were given, else that of the output's name,
    else an image's.

    Raises:
        BadParameter: the name says no type.
    """
    if mime_types:
        return list(mime_types)
    suffix = Path(output or "").suffix
    if not suffix or _is_folder(output):
        return ["image/png"]
    mime_type = mimetypes.guess_type(output or "")[0]
    if mime_type is None:
        raise typer.BadParameter(
            f"{suffix} says no MIME type; add --mime-type, such as image/png",
            param_hint="--output",
        )
    return [mime_type]


def check_output(output: str | None, *, force: bool) -> Output:
    """Returns where the files go, before they are asked for.

    Raises:
        BadParameter: there is a file already, or no folder to write it to.
    """
    path = Path(output or ".").expanduser()
    if _is_folder(output):
        if path.exists() and not path.is_dir():
            raise typer.BadParameter(f"{path} is a file", param_hint="--output")
        return Output(path, is_folder=True)
    if not path.parent.is_dir():
        raise typer.BadParameter(f"the folder {path.parent} does not exist", param_hint="--output")
    if path.exists() and not force:
        raise typer.BadParameter(f"{path} exists; add --force to replace it", param_hint="--output")
    return Output(path, is_folder=False)


def save_files(
    files: Iterable[DataPart], output: Output, mime_types: Sequence[str], *, force: bool
) -> list[Path]:
    """Writes files to a folder under their own names, or to a file: the first of an asked type
    there, the others beside it with a number. Returns where they are."""
    files = sorted(files, key=lambda file: file.mime_type not in mime_types)
    path = output.path
    if output.is_folder:
        path.mkdir(parents=True, exist_ok=True)
        return [_write(file, path / _make_name(file), force=False) for file in files]
    saved: list[Path] = []
    for file in files:
        is_first = not saved
        target = path if is_first else path.with_suffix(_find_suffix(file) or path.suffix)
        saved.append(_write(file, target, force=force and is_first))
    return saved


def _write(file: DataPart, path: Path, *, force: bool) -> Path:
    """Writes a file, under another number if the name is taken. Returns its path."""
    if force:
        path.write_bytes(file.data)
        return path
    for candidate in _number(path):
        try:
            with candidate.open("xb") as opened:
                opened.write(file.data)
        except FileExistsError:
            continue
        return candidate
    raise AssertionError("numbers do not end")


def _number(path: Path) -> Iterator[Path]:
    """Yields a path, and the same with numbers from 2."""
    yield path
    for number in count(2):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")


def _make_name(file: DataPart) -> str:
    """Returns a name for a file in a folder: its own as far as it is safe, with a suffix."""
    name = _UNSAFE.sub("_", file.name or "").strip(". ")[-_MOST_CHARACTERS:].lstrip(". ")
    if not name:
        name = file.mime_type.partition("/")[0] or "file"
    if not Path(name).suffix:
        name += _find_suffix(file)
    return name


def _find_suffix(file: DataPart) -> str:
    mime_type = file.mime_type.partition(";")[0].strip()
    return _SUFFIXES.get(mime_type) or mimetypes.guess_extension(mime_type) or ""


def _is_folder(output: str | None) -> bool:
    return not output or output.endswith(("/", "\\")) or Path(output).expanduser().is_dir()
