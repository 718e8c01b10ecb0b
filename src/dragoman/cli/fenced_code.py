"""Finds fenced code blocks in an answer, for `--extract`."""

from __future__ import annotations

import re

__all__ = ["extract_code"]

_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<label>[^`\n]*)")


def extract_code(text: str, *, last: bool = False) -> str:
    """Returns the content of the first or last fenced code block of Markdown, or the whole text if
    there is none. A block ends with a fence of the same sign that is at least as long; one that
    does not end is no block."""
    block: str | None = None
    fence, lines = "", list[str]()
    for line in text.splitlines(keepends=True):
        match = _FENCE.fullmatch(line.rstrip())
        if not fence:
            if match is not None:
                fence, lines = match["fence"], []
        elif match is not None and not match["label"] and match["fence"].startswith(fence):
            block, fence = "".join(lines), ""
            if not last:
                break
        else:
            lines.append(line)
    return text if block is None else block
