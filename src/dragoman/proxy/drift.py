"""Finds what of recorded answers dragoman does not know (drift): answers that it cannot decode, and
names that it does not know, see `answer_names.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from dragoman import wires
from dragoman.errors import DecodeError, DragomanError, StreamCutError
from dragoman.proxy.answer_names import AnswerNames, decode_answer
from dragoman.proxy.recordings import Recording
from dragoman.proxy.wire_of import WireRoute, find_wire
from dragoman.transport.exchange import Exchange

__all__ = ["DriftReport", "DriftFinding", "find_drift"]

_MOST_DECODED = 2**23
"""Bytes of an answer beyond which its names are not looked at."""
_KINDS = ("fails", "type", "dropped", "kept")
"""The worst first."""


class DriftFinding(NamedTuple):
    """Something in answers that dragoman does not know."""

    kind: str
    """`fails`: the answer is not decoded; `type`: of an event or a part; `dropped`: a field that is
    in nothing that is decoded; `kept`: a field that is in `native`."""
    wire: str
    """The name of the wire."""
    what: str
    """A path, in which `<text>` is the type of the object; of `fails` the error."""
    answers: int
    """How many have it."""
    example: str
    """Id of a recording."""

    def __str__(self) -> str:
        return f"{self.kind:<8}{self.wire:<18}{self.answers:>5}  {self.what}  ({self.example})"


class DriftReport:
    """The findings of many recordings."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._examples: dict[tuple[str, str, str], str] = {}
        self._decoded = 0
        self._unread: Counter[str] = Counter()
        """Paths of recordings that no wire decodes."""

    def add_all(self, recordings: Iterable[tuple[Recording, Exchange]]) -> None:
        """Adds the findings of recordings."""
        for recording, exchange in recordings:
            findings = find_drift(exchange)
            if findings is None:
                self._unread[recording.path] += 1
                continue
            self._decoded += 1
            for problem, path in findings:
                finding = (problem, _wire_name(exchange), path)
                self._counts[finding] += 1
                self._examples.setdefault(finding, recording.id)

    def list_findings(self, without: DriftReport | None = None) -> list[DriftFinding]:
        """Returns the findings, the worst first. `without`: a report whose findings are left
        out."""
        reported = without._counts if without is not None else Counter[tuple[str, str, str]]()
        findings = [
            DriftFinding(*finding, number, self._examples[finding])
            for finding, number in self._counts.items()
            if finding not in reported
        ]
        return sorted(
            findings,
            key=lambda finding: (
                _KINDS.index(finding.kind),
                finding.wire,
                -finding.answers,
                finding.what,
            ),
        )

    def format_totals(self) -> str:
        """Returns how many recordings were decoded, and which were not."""
        undecoded = ", ".join(f"{path} ({number})" for path, number in self._unread.most_common(5))
        more = f"; {self._unread.total()} have no wire: {undecoded}" if undecoded else ""
        return f"{self._decoded} answers decoded{more}"


def _wire_name(exchange: Exchange) -> str:
    """Returns the name of an exchange's wire, or an empty text."""
    route = find_wire(exchange.method, exchange.url or "")
    return "" if route is None else route.wire


def find_drift(exchange: Exchange) -> list[tuple[str, str]] | None:
    """Returns the findings of one answer, each as its kind and what it is of; None if no wire
    decodes it."""
    route = find_wire(exchange.method, exchange.url or "")
    if route is None or route.purpose not in ("chat", "embeddings"):
        return None
    try:
        failure = _find_failure(exchange, route)
    except Exception as error:  # noqa: BLE001 - that a decoder must not raise is what is looked for
        failure = f"{type(error).__name__}: {error}"
    if failure is not None:
        return [("fails", failure)]
    if exchange.status >= 400 or route.purpose != "chat" or len(exchange.body) > _MOST_DECODED:
        return []
    names = AnswerNames(route.wire, exchange.body, exchange.request_body)
    return list(names.find_unknown())


def _find_failure(exchange: Exchange, route: WireRoute) -> str | None:
    """Returns why an answer is not decoded, or None."""
    if exchange.status >= 400:
        wires.get(route.wire).load_error(exchange.status, exchange.headers, exchange.body)
        return None
    if route.purpose == "embeddings":
        reader = wires.embeddings(route.wire)
        if reader is not None:
            reader.load_response(exchange.body)
        return None
    _, errors = decode_answer(route.wire, exchange.body)
    unread = [error for error in errors if _is_unread(error, exchange)]
    return str(unread[0]) if unread else None


def _is_unread(error: DragomanError, exchange: Exchange) -> bool:
    """True if an error says that an answer could not be read, and not what a provider tells."""
    if isinstance(error, StreamCutError):
        return exchange.cut_after is None
    return isinstance(error, DecodeError)
