"""Ids and tool names that a wire does not take, made fit for it: per request, pure, never stored.

Every provider has rules of its own for ids and tool names (letters, length, no repetition).
`fit_names` maps names and `map_call_ids` maps the ids of calls and results; both are bijections, and what
is fit already stays as it is. The same conversation, grown by a message, keeps the ids and names
that it had.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from itertools import count

import msgspec

from dragoman.codec.marks import collect_part_types
from dragoman.message import Message, Role, ToolCallPart, ToolResultPart

__all__ = [
    "TOOL_NAMES",
    "CALL_IDS",
    "DistinctIds",
    "NameRule",
    "map_call_ids",
    "fit_names",
    "invert_names",
    "list_calls",
]

_DIGEST_LENGTH = 8
_CALL_OR_RESULT = (ToolCallPart, ToolResultPart)


class DistinctIds:
    """Ids that must differ, though whoever made them gave one twice. Linear in what comes, however
    often one id does."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._repeats: dict[str, int] = {}

    def __contains__(self, id_: str) -> bool:
        return id_ in self._taken

    def take(self, id_: str) -> str:
        """Returns this id fitted: itself, or one like it if it is empty or taken, and marks that as
        taken."""
        free = id_
        while not free or free in self._taken:
            repeat = self._repeats[id_] = self._repeats.get(id_, 1) + 1
            free = f"{id_}~{repeat}"
        self._taken.add(free)
        return free


class NameRule(msgspec.Struct, frozen=True):
    """What ids or names a wire takes."""

    letters: str = "a-zA-Z0-9_-"
    """The allowed characters, as in the brackets of a regular expression. They include lower-case
    letters and digits."""
    most: int = 64
    """The maximum length in characters."""
    least: int = 1
    """Length at least, in characters; not over 32."""
    first: str = ""
    """The characters that may come first, where not all may; `_` at least."""

    def fits(self, name: str) -> bool:
        """Returns True if it may be sent as it is."""
        fits = self.least <= len(name) <= self.most and _all_of(self.letters)(name) is not None
        return fits and self.begins(name)

    def begins(self, name: str) -> bool:
        """Returns True if its first character may be one."""
        return not self.first or (name != "" and _all_of(self.first)(name[0]) is not None)


@cache
def _all_of(letters: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(f"[{letters}]*").fullmatch


CALL_IDS = NameRule()
"""What every provider's own ids look like, and what all but a few take."""
TOOL_NAMES = NameRule(first="a-zA-Z_")
"""What all take as the name of a tool: Google's begin with a letter or an underscore."""


def fit_names(
    names: Iterable[str], rule: NameRule = TOOL_NAMES, *, as_is: Collection[str] = ()
) -> dict[str, str]:
    """Returns for each name the one to send, which fits the provider's rule. `as_is`: names that
    are sent whatever the rule says.

    The inverse tells which tool a model means when it calls one by the name that it was sent.
    """
    names = dict.fromkeys(names)
    if _all_fit(names, rule):
        return dict(zip(names, names, strict=True))
    out = {name: name for name in names if name in as_is or rule.fits(name)}
    fresh = _Fresh(rule, set(out.values()))
    for name in names:
        if name not in out:
            out[name] = fresh(name)
            fresh.taken.add(out[name])
    return out


def _all_fit(names: Collection[str], rule: NameRule) -> bool:
    """True if all names fit the rule, told by one match over all of them: an agent may have
    hundreds of tools, a conversation thousands of calls, and nearly all fit."""
    matcher, joined = _compile_matcher(rule), "".join([f"{name}\n" for name in names])
    # A name that holds a newline would look like two.
    return matcher is not None and joined.count("\n") == len(names) and bool(matcher(joined))


@cache
def _compile_matcher(rule: NameRule) -> Callable[[str], re.Match[str] | None] | None:
    """Returns a matcher for names that fit a rule, all at once, each followed by a newline; None if
    the rule allows newlines."""
    if _all_of(rule.letters)("\n"):
        return None
    first = f"(?=[{rule.first}])" if rule.first else ""
    return re.compile(f"(?:{first}[{rule.letters}]{{{rule.least},{rule.most}}}\\n)*").fullmatch


def invert_names(names: Mapping[str, str]) -> dict[str, str]:
    """Returns the original name for each name that was sent as another: the inverse of
    `fit_names`."""
    return {sent_name: name for name, sent_name in names.items() if sent_name != name}


def map_call_ids(
    messages: Sequence[Message],
    rule: NameRule = CALL_IDS,
    *,
    as_is: Callable[[ToolCallPart | ToolResultPart], bool] | None = None,
) -> dict[tuple[int, int], str]:
    """Returns the fitted id to send for every call and result that is not the provider's own, by
    the position of its message and its index in the content.

    An id that was used before, in this round or an earlier one, gets another. A result has the id
    of its call: the first call of its round that has the same id and no result yet, else the latest
    one with that id. `as_is` tells the pieces whose id is sent whatever the rule says.
    """
    if collect_part_types(messages).isdisjoint(_CALL_OR_RESULT):
        return {}
    if (own_ids := _own_ids(messages, rule, as_is)) is not None:
        return own_ids
    out: dict[tuple[int, int], str] = {}
    fresh = _Fresh(rule, set())
    taken = fresh.taken
    waiting: dict[str, deque[str]] = {}
    latest: dict[str, str] = {}
    before: Role | None = None
    for position, message in enumerate(messages):
        # A new round: calls of the last one that got no result stay without.
        if message.role is Role.MODEL and before is not Role.MODEL:
            waiting = {}
        before = message.role
        for index, piece in enumerate(message.content):
            if not isinstance(piece, _CALL_OR_RESULT) or piece.run_by == "provider":
                continue
            keep = as_is is not None and as_is(piece)
            if isinstance(piece, ToolCallPart):
                if keep or (piece.id not in taken and rule.fits(piece.id)):
                    sent_id = piece.id
                else:
                    sent_id = fresh(piece.id)
                waiting.setdefault(piece.id, deque()).append(sent_id)
                latest[piece.id] = sent_id
            elif answered := waiting.get(piece.id):
                sent_id = answered.popleft()
            elif latest_id := latest.get(piece.id):
                # A second result of a call, or one that came a round late.
                sent_id = latest_id
            elif keep or rule.fits(piece.id):
                sent_id = piece.id
            else:
                sent_id = fresh(piece.id)
            taken.add(sent_id)
            out[position, index] = sent_id
    return out


def list_calls(
    messages: Sequence[Message], ids: Iterable[tuple[int, int]]
) -> list[tuple[int, ToolCallPart]]:
    """Returns the calls that the provider did not run, each with the position of its message.
    `ids`: the places that `map_call_ids` gave ids."""
    return [
        (position, piece)
        for position, index in ids
        if isinstance(piece := messages[position].content[index], ToolCallPart)
    ]


def _own_ids(
    messages: Sequence[Message],
    rule: NameRule,
    as_is: Callable[[ToolCallPart | ToolResultPart], bool] | None,
) -> dict[tuple[int, int], str] | None:
    """Returns the call ids unchanged, as `map_call_ids` does, if all may be sent as they are and
    none belongs to two calls; else None."""
    out: dict[tuple[int, int], str] = {}
    first: dict[str, ToolCallPart | ToolResultPart] = {}
    for position, message in enumerate(messages):
        for index, piece in enumerate(message.content):
            if not isinstance(piece, _CALL_OR_RESULT) or piece.run_by == "provider":
                continue
            if piece.id not in first:
                # Ids of one origin are alike: where the first does not fit, nor do the others.
                if not (first or _may_stay([piece], rule, as_is)):
                    return None
                first[piece.id] = piece
            elif isinstance(piece, ToolCallPart):
                return None
            out[position, index] = piece.id
    if _all_fit(first, rule) or _may_stay(first.values(), rule, as_is):
        return out
    return None


def _may_stay(
    pieces: Iterable[ToolCallPart | ToolResultPart],
    rule: NameRule,
    as_is: Callable[[ToolCallPart | ToolResultPart], bool] | None,
) -> bool:
    """True if the ids of all calls and results fit the rule, or are sent whatever it says."""
    return all((as_is is not None and as_is(piece)) or rule.fits(piece.id) for piece in pieces)


class _Fresh:
    """Fit stand-ins for names, made from the name itself and, where that is taken, from how often
    it was tried.

    What was tried once stays taken, so that a name which comes again goes on from there.
    """

    def __init__(self, rule: NameRule, taken: set[str]) -> None:
        """Creates the maker of stand-ins for ids and names that break a provider's rule. `taken`:
        those in use."""
        self.taken = taken
        self._rule = rule
        if re.fullmatch(f"[{rule.letters}]", "_"):
            self._filler = "_"
        else:
            self._filler = ""
        self._tries: dict[str, count[int]] = {}

    def __call__(self, name: str) -> str:
        """Returns the stand-in for an id or name that does not fit the provider's rule."""
        candidates = (
            self._make_stand_in(name, tries) for tries in self._tries.setdefault(name, count())
        )
        return next(candidate for candidate in candidates if candidate not in self.taken)

    def _make_stand_in(self, name: str, tries: int) -> str:
        """Returns one stand-in for a name that does not fit the rule: what is readable of it, with
        a digest."""
        rule, filler = self._rule, self._filler
        # What is left of the name comes first, for people who read requests; the digest tells
        # names apart that look alike by then.
        readable = re.sub(f"[^{rule.letters}]", filler, name)[
            : max(0, rule.most - _DIGEST_LENGTH - 1)
        ]
        digest = blake2b(
            f"{tries} {name}".encode(errors="surrogatepass"), digest_size=16
        ).hexdigest()
        tail = digest[: max(_DIGEST_LENGTH, rule.least - len(readable))][: rule.most]
        fits = readable and len(readable) + len(filler) + len(tail) <= rule.most
        candidate = f"{readable}{filler}{tail}" if fits else tail
        if rule.begins(candidate):
            return candidate
        return f"_{candidate}"[: rule.most]
