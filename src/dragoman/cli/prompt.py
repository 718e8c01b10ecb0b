"""What is asked, from the command line: the prompt's text, what is piped in, and the files that it
mentions."""

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
    """Text as a command line or a terminal gives it → text that can be sent: what is no UTF-8 is
    replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read_piped(hint: str = "PROMPT") -> str:
    """What is piped in; `""` at a terminal.

    Raises:
        BadParameter: it is no text; `hint` is the argument that it stands for.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    data = sys.stdin.buffer.read()
    text = data.decode("utf-8", "replace")
    if b"\0" in data or text.count("\ufffd") - data.count(_REPLACED) > len(text) // 10:
        attach = (
            "; attach it as a file: dragoman chat 'What is this? @FILE'" if hint == "PROMPT" else ""
        )
        raise typer.BadParameter(f"what is piped in is no text{attach}", param_hint=hint)
    return text.strip("\r\n")


def parse_prompt(prompt: str, after: str = "") -> list[Content]:
    """A prompt, and text that follows it → its text and the files that it mentions: `@path`, `@"a
    path"` or `"@a path"`.

    In the text a file is called by its name. `@@` stands for an `@`. Files are looked for in
    `prompt` only.

    Raises:
        BadParameter: a file cannot be read.
    """
    files: list[Content] = []

    def replace_mention(mention: re.Match[str]) -> str:
        if literal := mention["literal"]:
            return literal
        quoted = mention["whole"] or mention["path"]
        path, trailing = (quoted, "") if quoted else _split_punctuation(mention["word"])
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
    """A path that stands in a sentence → the path, and the punctuation that is not its own."""
    path = mention if Path(mention).expanduser().exists() else mention.rstrip(_PUNCTUATION)
    return path, mention[len(path) :]


def _load_attachment(path: Path) -> Content:
    """A file → text where it is text, which every model reads; else its bytes."""
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
