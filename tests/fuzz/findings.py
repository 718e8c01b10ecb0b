"""What a run finds: which input, what it raised and where, and the same made small."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from time import thread_time
from typing import Any, NamedTuple

from dragoman.testing.hostile import Case, run_case

TRIES = 1_500
DEEPEST = 12
ENDLESS = 20.0
"""Seconds of one processor after which an input is given up."""
SLOW = 1.0
"""Seconds of one processor that one input may take."""


class Cause(NamedTuple):
    """What distinguishes one fault from another."""

    error: str
    place: str
    """File and line, the innermost of the library's outside of the kit."""


class Finding(NamedTuple):
    """An input that raised what it must not, or took too long."""

    index: int
    wire: str
    door: str
    cause: Cause
    words: str


def cause_of(case: Case, *, timed: bool = False) -> tuple[Cause, str] | None:
    """What is wrong with a case and in which words; `None`: nothing is."""
    began = thread_time()
    try:
        with _limit() if timed else nullcontext():
            run_case(case)
    except Exception as error:
        place = _place(error)
        return Cause(type(error).__name__, place), str(error)[:200]
    taken = thread_time() - began
    return (Cause("TooSlow", case.door), f"{taken:.2f} s") if timed and taken > SLOW else None


class EndlessError(Exception):
    """An input was given up."""


@contextmanager
def _limit() -> Iterator[None]:
    """Raises where something takes so long that it may never end."""

    def give_up(*_: object) -> None:
        raise EndlessError(f"not done after {ENDLESS} s")

    signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, ENDLESS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _place(error: Exception) -> str:
    """The innermost line of the library's outside of the kit."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "/dragoman/" in file and (
            "/dragoman/testing/" not in file or not place or place.startswith("testing/")
        ):
            place = f"{file.rpartition('/dragoman/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def smaller(case: Case, cause: Cause) -> Case:
    """A case with the same cause and as little else as can be: parts are left out one by one while
    it stays the same."""
    timed = cause.error == "TooSlow"
    tried = 0
    going = True
    while going and tried < TRIES:
        going = False
        for value in _simpler(case.value):
            tried += 1
            found = cause_of(case._replace(value=value), timed=timed)
            if found is not None and found[0] == cause:
                case, going = case._replace(value=value), True
                break
            if tried >= TRIES:
                break
    return case


def _simpler(value: Any, depth: int = 0) -> Iterator[Any]:
    match value:
        case _ if depth > DEEPEST:
            return
        case bytes() | str() if value:
            step = max(1, len(value) // 2)
            while step:
                yield from (
                    value[:at] + value[at + step :]
                    for at in range(0, min(len(value), 60 * step), step)
                )
                step //= 2
        case dict():
            yield from ({name: one for name, one in value.items() if name != key} for key in value)
            for key, inner in value.items():
                yield from ({**value, key: less} for less in _simpler(inner, depth + 1))
        case list():
            step = max(1, len(value) // 2)
            while value and step:
                yield from (value[:at] + value[at + step :] for at in range(0, len(value), step))
                step //= 2
            for at, inner in enumerate(value):
                yield from (
                    [*value[:at], less, *value[at + 1 :]] for less in _simpler(inner, depth + 1)
                )
        case _:
            return
