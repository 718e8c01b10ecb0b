"""Writes exchanges into the files of a folder, without keys, in the form that `load_exchange` reads.

Of headers only those of a list are written. Keys are removed twice: by name from query and fields,
and then by value from the finished text, because an answer may repeat a key. A file appears under
its name only when it is whole, and several processes may write into one folder.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from dragoman.errors import SettingsError
from dragoman.request import HttpRequest
from dragoman.transport.exchange import request_body
from dragoman.transport.redaction import find_secrets, hide_secrets, public_body, public_url

__all__ = ["ExchangeFolder", "format_exchange"]

_FRAMINGS = {"text/event-stream": "sse", "application/x-ndjson": "ndjson"}
_PUBLIC_HEADER = re.compile(
    r"accept|anthropic-(beta|version|ratelimit-.*)|content-(language|type)|date|(x-)?request-id|"
    r"openai-(beta|processing-ms|version)|retry-after(-ms)?|user-agent|x-goog-api-client|"
    r"x-ratelimit-.*|x-should-retry|x-stainless-.*"
)
"""Names of the headers that are written. None of them holds a key or the name of an account."""


def format_exchange(
    request: HttpRequest,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    cut: bool = False,
    notes: Mapping[str, str] = {},
) -> bytes:
    """Returns an exchange as the text of its file.

    Args:
        request: what was sent.
        status: the HTTP status of the answer.
        headers: those of the answer, with names in lower case.
        body: what of the answer's body arrived, decompressed.
        cut: whether the connection broke after that.
        notes: further keys for the file.
    """
    sent_body = request_body(request)
    framing = _FRAMINGS.get(headers.get("content-type", "").partition(";")[0].strip(), "json")
    record = {
        **notes,
        "provenance": "recorded",
        "framing": framing,
        "request": {
            "method": request.method,
            "url": public_url(request.path),
            "headers": _public_headers(request.headers),
            **_body_fields("body", public_body(sent_body)),
        },
        "response": {
            "status": status,
            "headers": _public_headers(headers),
            **_body_fields("body_text", body),
            **({"cut": True} if cut else {}),
        },
    }
    # Masked in the finished text, because a body may repeat a key anywhere.
    text = msgspec.json.format(msgspec.json.encode(record))
    return hide_secrets(
        text,
        find_secrets(request.path, request.headers, sent_body)
        | find_secrets("", body=_load_json(body)),
    )


class ExchangeFolder:
    """A folder whose files are exchanges: `0001.json` and on.

    Args:
        path: is made where it does not exist.
        most_bytes: of all files together; `None`: no limit.
    """

    def __init__(self, path: Path | str, most_bytes: int | None = None) -> None:
        """Opens a folder, and makes nothing yet."""
        self.path = Path(path)
        self._most_bytes = most_bytes
        files = self.files()
        self._count = len(files)
        self._bytes = sum(file.stat().st_size for file in files) if most_bytes is not None else 0

    def files(self) -> list[Path]:
        """Returns the files in the order of their names."""
        return sorted(self.path.glob("*.json"))

    def add(self, text: bytes) -> Path:
        """Writes an exchange under the next free number. Returns its file.

        Raises:
            SettingsError: the folder would be larger than it may be.
            OSError: it cannot be written.
        """
        if self._most_bytes is not None and self._bytes + len(text) > self._most_bytes:
            raise SettingsError(
                f"{self.path} holds {self._bytes} bytes, and {len(text)} more are over its limit of "
                f"{self._most_bytes}: delete what is not needed, or give it more"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        unfinished = self.path / f".{uuid4().hex}.unfinished"
        unfinished.write_bytes(text)
        try:
            return self._move(unfinished, len(text))
        finally:
            unfinished.unlink(missing_ok=True)

    def _move(self, unfinished: Path, size: int) -> Path:
        """Gives a whole file the next free number."""
        while True:
            self._count += 1
            file = self.path / f"{self._count:04d}.json"
            try:
                # Unlike a rename, a link fails where another process took the number.
                os.link(unfinished, file)
            except FileExistsError:
                continue
            except OSError:
                # A file system without links: the number is taken first.
                with suppress(FileExistsError):
                    file.touch(exist_ok=False)
                    unfinished.replace(file)
                if unfinished.exists():
                    continue
            self._bytes += size
            return file


def _public_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns the headers that are written, with names in lower case."""
    lower = {name.lower(): text for name, text in headers.items()}
    return {name: text for name, text in lower.items() if _PUBLIC_HEADER.fullmatch(name)}


def _body_fields(name: str, body: Any) -> dict[str, Any]:
    """Returns the fields of a file for a body: JSON or text under `name`, otherwise base64."""
    if not isinstance(body, bytes):
        return {name: body}
    try:
        return {"body_text": body.decode(), **({} if name == "body_text" else {name: None})}
    except UnicodeDecodeError:
        return {name: None, "body_base64": base64.b64encode(body).decode()}


def _load_json(body: bytes) -> Any:
    """Returns the JSON of an answer's body, or None if it is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
