"""Numbers that processes count in memory which they share, each in a part of its own.

A part begins with the bytes that are in use and the id of its process. Then follows a record for
each key: the lengths of the key and of its numbers, the key, and the numbers. A process writes only
its own part and reads all. The memory outlives a process that is killed, and the one that replaces
it goes on with the numbers.
"""

from __future__ import annotations

import mmap
import operator
import os
import struct
from collections.abc import Iterator, Sequence

import msgspec

from dragoman.logs import logger

__all__ = ["COUNT_BYTES", "Counts", "Key"]

Key = tuple[str, ...]
"""What is counted: the name of a metric and the values of its labels."""
COUNT_BYTES = 8 * 1024 * 1024
"""Size of the part of a process: some 50,000 keys. What is not in use takes no memory."""
_LOG = logger("serve")
_HEAD, _LENGTHS, _NUMBER = struct.Struct("=QQ"), struct.Struct("=II"), struct.Struct("=d")


class Counts:
    """Counts of this process, and those of the processes that share its memory."""

    def __init__(self) -> None:
        """Creates counts of this process alone."""
        self._parts = [mmap.mmap(-1, COUNT_BYTES)]
        self._take_part(0)

    def share(self, descriptors: Sequence[int], index: int) -> None:
        """Counts from now on in memory that processes share. `descriptors`: files of `COUNT_BYTES`,
        one for each process. `index`: this process's."""
        self._parts = [mmap.mmap(descriptor, COUNT_BYTES) for descriptor in descriptors]
        self._take_part(index)

    def add(self, key: Key, amount: float, position: int = 0, size: int = 1) -> None:
        """Adds to one of the `size` numbers of a key."""
        if (start := self._find(key, size)) is not None:
            offset = start + position * _NUMBER.size
            (before,) = _NUMBER.unpack_from(self._written, offset)
            _NUMBER.pack_into(self._written, offset, before + amount)

    def set(self, key: Key, amount: float) -> None:
        """Sets the number of a key."""
        if (start := self._find(key, 1)) is not None:
            _NUMBER.pack_into(self._written, start, amount)

    def sums(self, *, of_living: Sequence[str] = ()) -> dict[Key, list[float]]:
        """Returns the sums over all processes. `of_living`: names of metrics of which only
        processes count that still live."""
        sums: dict[Key, list[float]] = {}
        for part in self._parts:
            is_alive = _is_alive(_HEAD.unpack_from(part)[1])
            for key, start, count in _read_records(part):
                if not is_alive and key[0] in of_living:
                    continue
                numbers = struct.unpack_from(f"={count}d", part, start)
                before = sums.get(key, [0.0] * count)
                sums[key] = list(map(operator.add, before, numbers))
        return sums

    def _take_part(self, index: int) -> None:
        """Goes on with what a part holds."""
        self._written = self._parts[index]
        used, _ = _HEAD.unpack_from(self._written)
        _HEAD.pack_into(self._written, 0, max(used, _HEAD.size), os.getpid())
        self._starts = {key: start for key, start, _ in _read_records(self._written)}
        self._is_full = False

    def _find(self, key: Key, size: int) -> int | None:
        """Returns where the numbers of a key begin, or None if there is no room for a new key."""
        start = self._starts.get(key)
        if start is None:
            name = msgspec.json.encode(key)
            # Numbers begin at multiples of their size, so that none is read half written.
            name += b" " * (-len(name) % _NUMBER.size)
            used, process = _HEAD.unpack_from(self._written)
            start = used + _LENGTHS.size + len(name)
            end = start + size * _NUMBER.size
            if end > COUNT_BYTES:
                if not self._is_full:
                    _LOG.error("metrics have more labels than there is room for; new ones are lost")
                self._is_full = True
                return None
            _LENGTHS.pack_into(self._written, used, len(name), size)
            self._written[used + _LENGTHS.size : start] = name
            # Last, so that others never read a record that is not complete.
            _HEAD.pack_into(self._written, 0, end, process)
            self._starts[key] = start
        return start


def _read_records(part: mmap.mmap) -> Iterator[tuple[Key, int, int]]:
    """Yields the keys of a part, each with the place and count of its numbers."""
    used, _ = _HEAD.unpack_from(part)
    offset = _HEAD.size
    while offset < used:
        length, count = _LENGTHS.unpack_from(part, offset)
        offset += _LENGTHS.size
        key = msgspec.json.decode(part[offset : offset + length], type=Key)
        offset += length
        yield key, offset, count
        offset += count * _NUMBER.size


def _is_alive(process: int) -> bool:
    """True if there is a process with this id."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return process > 0
