"""Reads a prompt from the command line: its text, piped input, and the files that it mentions."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import typer

from dragoman.message import Content, DataPart, TextPart

__all__ = ["replace_invalid_text", "read_piped", "parse_prompt"]

_MENTION = re.compile(
    r'(?<!\S)(?:"@(?P<whole>[^"]+)"|@"(?P<path>[^"]+)"|@(?P<word>[^\s@]\S*)|@(?P<literal>@\S*))'
)
_PUNCTUATION = ".,;:!?)"
_REPLACED = "\ufffd".encode()
_MEDIA = ("image/", "audio/", "video/", "application/pdf")


def replace_invalid_text(text: str) -> str:
    """Returns text from a command line or terminal with invalid UTF-8 replaced, so that it can be
    sent."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read_piped(hint: str = "PROMPT") -> str:
    """Returns piped input for a prompt, or an empty text at a terminal.

    Raises:
        BadParameter: it is not text. `hint`: the argument that it replaces, for the error.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    data = sys.stdin.buffer.read()
    text = data.decode("utf-8", "replace")
    # Text in another encoding has some invalid bytes; an image or archive has many, or a NUL.
    if b"\0" in data or text.count("\ufffd") - data.count(_REPLACED) > len(text) // 10:
        problem = "the piped input is not text"
        if hint == "PROMPT":
            problem += "; attach it as a file: dragoman chat 'What is this? @FILE'"
        raise typer.BadParameter(problem, param_hint=hint)
    return text.strip("\r\n")


def parse_prompt(prompt: str, after: str = "") -> list[Content]:
    """Returns the text of a prompt and the files that it mentions as `@path`, `@"a path"` or `"@a
    path"`.

    The text has the file's name in place of its path. `@@` is an `@`. `after` is text that follows,
    in which no files are looked for.

    Raises:
        BadParameter: a file cannot be read.
    """
    files: list[Content] = []

    def replace_mention(mention: re.Match[str]) -> str:
        if literal := mention["literal"]:
            return literal
        quoted = mention["whole"] or mention["path"]
        path, trailing = (quoted, "") if quoted else _split_punctuation(mention["word"])
        # The shell expands `~` only at the start of a word, not after an `@`.
        part = _load_attachment(Path(path).expanduser())
        files.append(part)
        return Path(path).name + trailing

    text = "\n\n".join(
        piece
        for piece in (_MENTION.sub(replace_mention, replace_invalid_text(prompt)), after)
        if piece.strip()
    )
    return [TextPart(text), *files] if text else files


def _split_punctuation(mention: str) -> tuple[str, str]:
    """Returns a path in a prompt, and the punctuation after it."""
    path = mention
    # A file name may itself end with punctuation.
    if not Path(mention).expanduser().exists():
        path = mention.rstrip(_PUNCTUATION)
    return path, mention[len(path) :]


def _load_attachment(path: Path) -> Content:
    """Returns a file that a prompt mentions: a text file as text, which every model reads, and
    other files as data."""
    try:
        part = DataPart.from_file(path)
    except OSError as error:
        raise typer.BadParameter(
            f"cannot attach {path}: {error.strerror}. Write @@ for an @ that names no file",
            param_hint="PROMPT",
        ) from error
    if part.mime_type.startswith(_MEDIA):
        return part
    try:
        text = part.data.decode()
    except UnicodeDecodeError:
        return part
    return TextPart(f'<file name="{path.name}">\n{text}\n</file>')
