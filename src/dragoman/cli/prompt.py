"""Reads a prompt from the command line: its text, piped input, and the files that it mentions."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import typer

from dragoman.message import Content, DataPart, TextPart

__all__ = ["is_text", "parse_prompt", "read_piped", "replace_invalid_text", "to_content"]

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
    if not is_text(data):
        problem = "the piped input is not text"
        if hint == "PROMPT":
            problem += "; attach it with -a -, or as a file: dragoman 'What is this? @FILE'"
        raise typer.BadParameter(problem, param_hint=hint)
    return data.decode("utf-8", "replace").strip("\r\n")


def is_text(data: bytes) -> bool:
    """Returns whether bytes are text, perhaps in another encoding than UTF-8."""
    text = data.decode("utf-8", "replace")
    # Text in another encoding has some invalid bytes; an image or archive has many, or a NUL.
    invalid = text.count("\ufffd") - data.count(_REPLACED)
    return b"\0" not in data and invalid <= len(text) // 10


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
    """Returns a file that a prompt mentions."""
    try:
        part = DataPart.from_file(path)
    except OSError as error:
        raise typer.BadParameter(
            f"cannot attach {path}: {error.strerror}. Write @@ for an @ that names no file",
            param_hint="PROMPT",
        ) from error
    return to_content(part)


def to_content(file: DataPart) -> Content:
    """Returns a file as what is sent of it: of a text file the text, which every model reads."""
    if file.mime_type.startswith(_MEDIA):
        return file
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        return file
    return TextPart(f'<file name="{file.name or "input"}">\n{text}\n</file>')
