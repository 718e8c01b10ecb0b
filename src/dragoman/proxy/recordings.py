"""The recordings in a folder, and which of them answers a request.

A request gets the recording with the same method, path, query and body; its host does not count.
Of several the first request gets the first one, the next request the next one, and all further ones
the last. Only a key's digest is held in memory; the file is read again when it answers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from dragoman.errors import DecodeError
from dragoman.transport.exchange import Exchange, load_exchange
from dragoman.transport.exchange_file import ExchangeFolder
from dragoman.transport.matching import ExchangeKey, explain_difference, find_nearest, make_key
from dragoman.transport.retry import RETRY_STATUSES

__all__ = ["Nearest", "Recording", "RecordingIndex", "load_recording", "path_key"]

_MOST_COMPARED = 200
"""Recordings that are compared with a request that none of them answers, the newest."""


class Recording(NamedTuple):
    """An exchange in a file."""

    file: Path
    """Where it is."""
    digest: bytes
    """Of its key."""
    path: str
    """Method and path, without the query."""
    is_final: bool
    """False if a client would try again: the connection broke, or a status asks for it."""

    @property
    def id(self) -> str:
        """Returns the file's name without its ending."""
        return self.file.stem


class Nearest(NamedTuple):
    """The recording that is most like a request, and how the request differs from it."""

    recording: Recording
    """Its file."""
    exchange: Exchange
    """What is in it."""
    difference: list[str]
    """Lines as of `diff -u`."""


def path_key(method: str, url: str, body: Any) -> ExchangeKey:
    """Returns the key of a request without its host, and with its query in a fixed order."""
    parts = urlsplit(url)
    query = "&".join(sorted(filter(None, parts.query.split("&"))))
    return make_key(method, f"{parts.path}?{query}" if query else parts.path, body)


def load_recording(file: Path) -> tuple[Recording, Exchange]:
    """Reads a recording from its file.

    Raises:
        DecodeError: it is none, or cannot be read.
    """
    try:
        exchange = load_exchange(file)
    except (OSError, ValueError, RecursionError) as error:
        raise DecodeError(f"{file} cannot be read: {error}") from error
    key = path_key(exchange.method, exchange.url or "", exchange.request_body)
    is_final = exchange.status not in RETRY_STATUSES and exchange.cut_after is None
    return Recording(file, _digest(key), _place(key), is_final), exchange


class RecordingIndex:
    """The recordings in a folder.

    Attributes:
        folder: where they are.
        problems: why files of the folder are left out.
    """

    def __init__(self, folder: ExchangeFolder) -> None:
        """Reads the recordings of a folder."""
        self.folder = folder
        self.problems: list[str] = []
        self._by_digest: dict[bytes, list[Recording]] = defaultdict(list)
        self._by_path: dict[str, list[Recording]] = defaultdict(list)
        self._turns: Counter[bytes] = Counter()
        for file in folder.files():
            try:
                self._index(load_recording(file)[0])
            except DecodeError as error:
                self.problems.append(str(error))

    def add(self, text: bytes) -> Recording:
        """Writes a recording, which answers requests from now on. See `ExchangeFolder.add`."""
        recording, _ = load_recording(self.folder.add(text))
        self._index(recording)
        return recording

    def find(self, key: ExchangeKey, *, only_final: bool) -> tuple[Recording, Exchange] | None:
        """Returns the recording that answers a request, or None.

        `only_final`: leaves out those after which a client would try again.

        Raises:
            DecodeError: its file was changed meanwhile.
        """
        digest = _digest(key)
        recorded = self._by_digest.get(digest, [])
        final = [recording for recording in recorded if recording.is_final]
        # A client that tried again was answered by a later recording.
        candidates = final if final or only_final else recorded
        if not candidates:
            return None
        turn = self._turns[digest]
        self._turns[digest] += 1
        return load_recording(candidates[min(turn, len(candidates) - 1)].file)

    def find_nearest(self, key: ExchangeKey) -> Nearest | None:
        """Returns the recording of the same method and path that is most like a request, or None if
        there is none."""
        recorded = list(self._load_like(key))
        request_lines = key.format_lines()
        lines = [
            path_key(exchange.method, exchange.url or "", exchange.request_body).format_lines()
            for _, exchange in recorded
        ]
        position = find_nearest(request_lines, lines)
        if position < 0:
            return None
        recording, exchange = recorded[position]
        return Nearest(recording, exchange, explain_difference(lines[position], request_lines))

    def _load_like(self, key: ExchangeKey) -> Iterator[tuple[Recording, Exchange]]:
        """Yields the newest recordings of a request's method and path, the oldest of them first."""
        for recording in self._by_path.get(_place(key), [])[-_MOST_COMPARED:]:
            try:
                yield load_recording(recording.file)
            except DecodeError:
                continue

    def _index(self, recording: Recording) -> None:
        self._by_digest[recording.digest].append(recording)
        self._by_path[recording.path].append(recording)


def _digest(key: ExchangeKey) -> bytes:
    return blake2b(msgspec.json.encode(key, order="deterministic"), digest_size=16).digest()


def _place(key: ExchangeKey) -> str:
    return f"{key.method} {key.url.partition('?')[0]}"
