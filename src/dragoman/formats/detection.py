"""Which format a conversation is written in, told by its structure: each format votes on each
message, fields beside them say the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, cast

import msgspec

from dragoman.codec.digest import chain_neutral_digests
from dragoman.codec.format_layout import Layout
from dragoman.codec.json_values import check_depth, if_object, if_text
from dragoman.errors import HistoryError
from dragoman.formats import registry
from dragoman.formats.registry import Format
from dragoman.json_bytes import JsonMap

__all__ = [
    "Detected",
    "OpenedConversation",
    "detect",
    "detect_list",
    "detect_conversation",
    "field_of",
    "open_conversation",
    "open_decoded",
    "payload_of",
]

_PLAIN = ("user", "assistant", "system")
"""Roles of messages that nearly all formats have with a text alone: what they vote on one they vote
on all."""
_SAMPLE = (
    "system",
    "user",
    "assistant",
    "user",
    "user",
    "assistant",
    "assistant",
    "system",
    "user",
)
"""Roles of messages with a text alone, in orders that a format could read otherwise than others."""
_OF_MESSAGES = frozenset(["role", "from", "call_id", "kind"])
"""Fields that a message may have, and no body of a request."""
_SURE = 3
"""The vote of a format that hardly another can be."""
_MOST_SHAPES = 1024
"""Shapes whose votes are kept at most: ids of calls may begin in many ways."""
_LONGEST_PREFIX = 32
"""Characters of an id in which its prefix stands."""

_Shape = str | tuple[str, str | None, frozenset[tuple[str, int, bool]]]
"""What of a usual message a vote depends on: of a plain text the role; of an answer with calls, or
the result of one, role, content (any text is like another) and how its ids look."""


class _Function(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: str


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    type: Literal["function"]
    function: _Function


class _Answer(
    msgspec.Struct, frozen=True, tag_field="role", tag="assistant", forbid_unknown_fields=True
):
    """An answer with calls as most APIs of the family of Chat Completions have it."""

    content: str | None
    tool_calls: Annotated[list[_Call], msgspec.Meta(min_length=1)]


class _Result(
    msgspec.Struct, frozen=True, tag_field="role", tag="tool", forbid_unknown_fields=True
):
    """The result of such a call."""

    content: str
    tool_call_id: str


_USUAL: Mapping[str, type[_Answer | _Result]] = {"assistant": _Answer, "tool": _Result}
"""By role: a union of them would be taken apart for each message."""


class _Facts(NamedTuple):
    """What there is to know of the formats, whatever is read."""

    formats: dict[str, Format]
    layouts: dict[str, Layout]
    lists: list[str]
    """The fields of bodies that may hold the messages."""
    usual: dict[_Shape, dict[str, int]]
    """The votes on usual messages so far; on those that have a text alone from the beginning."""
    read: dict[str, tuple[str, ...]]
    """Name → what it makes of such messages."""


_last: list[_Facts] = []


def _load_facts() -> _Facts:
    """Returns the layouts and sample votes of all formats, cached while the formats stay the
    same."""
    formats = registry.detectable()
    if not _last or _last[0].formats is not formats:
        layouts = registry.layouts()
        fields = [field for layout in layouts.values() for field in layout.fields or ()]
        plain = {
            role: _ballots({"role": role, "content": "text"}, formats, formats) for role in _PLAIN
        }
        read = _read_samples(formats, plain)
        _last[:] = [_Facts(formats, layouts, [*dict.fromkeys(fields)], {**plain}, read)]
    return _last[0]


def _read_samples(
    formats: Iterable[str], plain: Mapping[str, Mapping[str, int]]
) -> dict[str, tuple[str, ...]]:
    """Returns what each format makes of messages that have a text alone. `plain`: the votes on such
    messages by their role."""
    sample = [{"role": role, "content": f"{index}"} for index, role in enumerate(_SAMPLE)]
    readers = [name for name in formats if all(name in votes for votes in plain.values())]
    # A format that does not have all roles is like no other: its name stands for what it makes.
    return {
        name: _digest_reading(name, sample, {}) if name in readers else (name,) for name in formats
    }


class OpenedConversation(NamedTuple):
    """A conversation, and what is around it."""

    messages: Sequence[Any]
    """As they were given."""
    field: str
    """Of the body that holds them; empty: none does."""
    body: JsonMap
    """That body."""


class _Run(NamedTuple):
    """Messages beside each other that one format has."""

    start: int
    messages: list[Any]
    ballots: dict[str, int]
    """The highest vote of each format that has them all."""
    names: Sequence[str]
    """The formats that were asked."""
    is_plain: bool
    """Whether each of them has a role and a text alone."""


class Detected(NamedTuple):
    """Messages of one format that stand beside each other."""

    format: str
    """Its name."""
    payload: Any
    """What its `load_messages` takes."""
    start: int = 0
    """Position of the first in the list that was given."""


def detect(value: object) -> str:
    """Returns the name of the format of a conversation in JSON (a list of messages, one message, or
    the whole body of a request). If several formats read it alike, the most usual of them. Where
    several formats have it and all read it alike, the most usual of them.

    Raises:
        HistoryError: no format has it, several have it and read it differently, or it is of several.
    """
    runs = detect_list(value)
    if len({run.format for run in runs}) > 1:
        formats = " and ".join(dict.fromkeys(run.format for run in runs))
        raise HistoryError(
            f"the messages are of several formats: {formats}; give each of them by itself"
        )
    return runs[0].format


def detect_list(value: object, *, near: str | None = None) -> list[Detected]:
    """Detects the formats in a list whose messages may be of several: the runs of one format, in
    order. Ambiguous messages get the format of the nearest that are not, if they may have it.
    `near`: the format of what stands before the list.

    Raises:
        HistoryError: a message is of no format, or it is ambiguous of which.
    """
    return detect_conversation(open_conversation(value), near=near)


def detect_conversation(
    conversation: OpenedConversation, *, near: str | None = None
) -> list[Detected]:
    """Detects the formats in a conversation that is already opened, as `detect_list` does.

    Raises:
        HistoryError: as for `detect_list`.
    """
    facts = _load_facts()
    elements, field, body = conversation
    holders = _find_holders(field, facts)
    if len(holders) == 1:  # no other format has that field
        _refute_format(elements, holders[0], facts)
        return [Detected(holders[0], facts.layouts[holders[0]].payload(elements, body))]
    if isinstance(body.get(field), str):  # what stands beside a text tells
        name = max(holders, key=lambda holder: facts.layouts[holder].evidence(body))
        return [Detected(name, facts.layouts[name].payload(elements, body))]
    names = [*holders, *(name for name, layout in facts.layouts.items() if layout.fields is None)]
    runs = list(_split_by_format(elements, names if field else [*facts.layouts], facts))
    if not runs:
        raise HistoryError("there is no message in it, so its format cannot be told: pass format=")
    best = [_choose_best_formats(run, body, facts, None if run.start else near) for run in runs]
    detected_runs: list[Detected] = []
    for index, run in enumerate(runs):
        name = _choose_format(best, index, near)
        if name is None:
            if len(runs) > 1:
                where = f"those from position {run.start} on"
            else:
                where = "they"
            raise HistoryError(
                f"{where} may be messages of {' or '.join(best[index])}, which read them differently: pass format="
            )
        detected_runs.append(
            Detected(name, facts.layouts[name].payload(run.messages, body), run.start)
        )
    return detected_runs


def _find_holders(field: str, facts: _Facts) -> list[str]:
    """Returns the formats of bodies that hold their messages in this field."""
    return [name for name, layout in facts.layouts.items() if field in (layout.fields or ())]


def payload_of(value: object, name: str) -> Any:
    """Returns the part of a conversation in JSON that `load_messages` of the named format takes.

    Raises:
        HistoryError: there is no conversation in it.
    """
    elements, _, body = open_conversation(value)
    return registry.layout(name).payload(elements, body)


def field_of(value: object) -> str:
    """Returns the field of a body that holds the conversation; empty: the value is a list of
    messages or one of them, or none at all."""
    try:
        return open_conversation(value).field
    except HistoryError:
        return ""


def open_conversation(value: object) -> OpenedConversation:
    """Returns the messages of a conversation in JSON, and the body around them.

    Raises:
        HistoryError: there is no conversation in it, or it nests too deep.
    """
    return open_decoded(check_depth(value))


def open_decoded(value: object) -> OpenedConversation:
    """Returns the messages of a conversation in JSON whose depth has been checked, as
    `open_conversation` does."""
    facts = _load_facts()
    if isinstance(value, list):
        return OpenedConversation(cast("list[Any]", value), "", {})
    body = if_object(value)
    if not _OF_MESSAGES.isdisjoint(body):
        return OpenedConversation((value,), "", {})
    if field := _find_list(body, facts):
        return OpenedConversation(body[field], field, body)
    if any(format_.votes(body) == _SURE for format_ in facts.formats.values()):
        return OpenedConversation((value,), "", {})
    if field := _find_text(body, facts):
        return OpenedConversation((), field, body)
    if not body:
        raise HistoryError(
            f"a conversation is a list of messages or the body of a request, not {value!r:.100}"
        )
    return OpenedConversation((value,), "", {})


def _find_list(body: JsonMap, facts: _Facts) -> str:
    """Returns the field of a body that holds a list of messages; empty if there is none.

    Raises:
        HistoryError: several fields hold messages.
    """
    list_fields = [field for field in facts.lists if isinstance(body.get(field), list)]
    full = [field for field in list_fields if body[field]]
    if len(full) > 1:
        raise HistoryError(
            f"there is a list in each of {' and '.join(full)}: give one of them, or pass format="
        )
    return next(iter(full or list_fields), "")


def _find_text(body: JsonMap, facts: _Facts) -> str:
    """Returns the field of a body that holds the prompt as a text; empty if there is none. The body
    must name a model, or hold nothing that is foreign to the format."""
    for layout in facts.layouts.values():
        if not layout.text or not layout.fields:
            continue
        field = layout.fields[0]
        if not isinstance(body.get(field), str):
            continue
        if "model" in body or body.keys() <= {field, *(layout.beside or ())}:
            return field
    return ""


def _refute_format(elements: Sequence[Any], name: str, facts: _Facts) -> None:
    """Raises where an element cannot be of a format, and may be of another."""
    for position, element in enumerate(elements):
        if not facts.formats[name].votes(element) and any(
            format_.votes(element) for format_ in facts.formats.values()
        ):
            raise HistoryError(
                f"the message at position {position} is not of {name}, as where it stands says: pass format="
            )


def _split_by_format(
    elements: Sequence[Any], names: Sequence[str], facts: _Facts
) -> Iterator[_Run]:
    """Yields the longest pieces of a list that one format has."""
    start, ballots, is_plain = 0, dict.fromkeys(names, 1), True
    # What usual messages were voted on: one more of the same shape changes no vote.
    counted: set[_Shape] = set()
    for position, element in enumerate(elements):
        if isinstance(element, str):
            is_plain = False
            continue
        shape = _shape(element)
        if shape in counted:
            continue
        votes = _count_format_votes(element, shape, ballots, facts)
        if not votes:
            if not (votes := _count_format_votes(element, shape, names, facts)):
                raise HistoryError(
                    f"no format has a message like that at position {position}: {element!r:.200}"
                )
            yield _Run(start, list(elements[start:position]), ballots, names, is_plain)
            start, ballots, is_plain = position, {}, True
            counted.clear()
        ballots = {name: max(ballots.get(name, 0), vote) for name, vote in votes.items()}
        is_plain = is_plain and shape in _PLAIN
        if shape:
            counted.add(shape)
    if elements:
        yield _Run(start, list(elements[start:]), ballots, names, is_plain)


def _count_format_votes(
    element: object, shape: _Shape, names: Iterable[str], facts: _Facts
) -> dict[str, int]:
    """Returns the votes of those formats that may have a message. `shape`: as `_shape` gives it."""
    if not shape:
        return _ballots(element, names, facts.formats)
    if shape not in facts.usual:
        if len(facts.usual) >= _MOST_SHAPES:
            return _ballots(element, names, facts.formats)
        facts.usual[shape] = _ballots(element, facts.formats, facts.formats)
    usual = facts.usual[shape]
    return {name: usual[name] for name in names if name in usual}


def _shape(element: object) -> _Shape:
    """Returns the shape of a usual message; empty: it is another."""
    if role := _plain_role(element):
        return role
    usual_type = _USUAL.get(if_text(if_object(element).get("role")))
    try:
        usual = usual_type and msgspec.convert(element, usual_type)
    except ValueError:  # it is another, or holds half a character
        usual = None
    if usual is None:
        return ""
    content = usual.content
    # A shape is kept, so it holds nothing of any length that a peer chose.
    if content:
        content = "any text" if content.strip() else " "
    if isinstance(usual, _Result):
        return ("tool", content, frozenset([_look_of(usual.tool_call_id)]))
    return ("assistant", content, frozenset([_look_of(call.id) for call in usual.tool_calls]))


def _look_of(call_id: str) -> tuple[str, int, bool]:
    """Returns by what formats tell ids apart: how one begins, its length and its characters."""
    begins = call_id[: call_id.find("_", 0, _LONGEST_PREFIX) + 1]
    return begins, len(call_id), call_id.isascii() and call_id.isalnum()


def _plain_role(element: object) -> str:
    """Returns the role of a message that has nothing else but a text; empty: it is another."""
    fields = if_object(element)
    if len(fields) != 2:
        return ""
    text, role = fields.get("content"), if_text(fields.get("role"))
    if role in _PLAIN and isinstance(text, str) and text.strip():
        return role
    return ""


def _ballots(
    element: object, names: Iterable[str], formats: Mapping[str, Format]
) -> dict[str, int]:
    return {name: vote for name in names if (vote := formats[name].votes(element))}


def _choose_best_formats(run: _Run, body: JsonMap, facts: _Facts, near: str | None) -> list[str]:
    """Returns the formats that messages are most likely of; the first of them if all read the
    messages alike. `near`: the format of the messages before them, which is chosen, without
    reading any, if it is one of the most likely."""
    evidence = {
        name: (vote, facts.layouts[name].evidence(body)) for name, vote in run.ballots.items()
    }
    most = max(evidence.values())
    best = [name for name, votes in evidence.items() if votes == most]
    # (1, 0) says only that the messages could be of a format. One faulty message must not decide
    # then, so formats that have some of the messages count, too.
    if most == (1, 0):
        best += _find_partial(run, best, facts)
    if near in best:
        return [near]
    if len(best) == 1 or _read_alike(best, run, body, facts):
        return best[:1]
    return best


def _find_partial(run: _Run, best: Sequence[str], facts: _Facts) -> list[str]:
    """Returns the formats beside the best ones that may have at least one of the messages."""
    some = {
        name
        for element in run.messages
        if not isinstance(element, str)
        for name in _count_format_votes(element, _shape(element), run.names, facts)
    }
    return [name for name in run.names if name in some and name not in best]


def _read_alike(names: Sequence[str], run: _Run, body: JsonMap, facts: _Facts) -> bool:
    """True if all of these formats read the messages as the same conversation."""
    if run.is_plain and len({facts.read[name] for name in names}) == 1:
        return True
    sample = list(_find_sample(run.messages))
    return len({_digest_reading(name, sample, body) for name in names}) == 1


def _find_sample(messages: Sequence[Any]) -> Sequence[Any]:
    """Returns the messages that tell how a format reads all of them: the first few if user and
    model say plain texts in turn, else every one."""
    roles = [
        role
        for element in messages
        if (role := _plain_role(element)) and "<" not in element["content"]
    ]
    start = 1 if roles[:1] == ["system"] else 0
    alternate = all(
        role == ("user", "assistant")[index % 2] for index, role in enumerate(roles[start:])
    )
    if alternate and len(roles) == len(messages):
        return messages[: start + 3]
    return messages


def _choose_format(best: Sequence[list[str]], index: int, near: str | None) -> str | None:
    """Chooses the format of the list's element at `index` among its likely ones, or None if it and
    all beside it are ambiguous."""
    if len(best[index]) == 1:
        return best[index][0]
    sure = [names[0] if len(names) == 1 else None for names in best]
    nearest = (*reversed(sure[:index]), near, *sure[index + 1 :])
    return next((name for name in nearest if name in best[index]), None)


def _digest_reading(name: str, part: list[Any], body: JsonMap) -> tuple[str, ...]:
    """Returns what a format makes of messages: a digest of each."""
    try:
        payload = registry.layout(name).payload(part, body)
        return tuple(chain_neutral_digests(registry.get(name).load_messages(payload)))
    except HistoryError:
        return ()
