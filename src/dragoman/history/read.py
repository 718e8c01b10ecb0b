"""Whatever stands for messages → messages: strings, messages of our own, elements and bodies of any format, lists of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, cast

from dragoman import formats
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.formats.detection import payload_of
from dragoman.formats.registry import layouts
from dragoman.history.format_fields import thread_names
from dragoman.json_bytes import replace_halves
from dragoman.message import Message

__all__ = ["Given", "read", "unreadable"]

_SPEAKING = ("user", "system", "developer")
"""Roles of messages that always say something."""
_BARE = frozenset(
    ["role", "content", "parts", "id", "name", "createdAt", "metadata", *thread_names()]
)
"""Fields beside which a message needs a content."""
_EXPECTED = "a message is a string, a Message, or an object as a format has it"


class Given(NamedTuple):
    """What was given, read."""

    messages: list[Message]
    """In order."""
    problems: list[Problem]
    """What could not be read. An index counts elements as they were given; elements of lists within each other count on."""
    format: str | None
    """The format of the last of them that was JSON."""
    is_lone: bool
    """It was one message, and no list."""


def read(
    given: object,
    format: str | None = None,  # noqa: A002 what it is called everywhere
    near: str | None = None,
    speak: Callable[..., Message] = Message.user,
) -> Given:
    """Whatever stands for messages → messages. What is empty is left out. `format`: in which JSON is, else it is found out; `near`: the format
    of what stands beside it, for a message that says too little; `speak`: a string → a message."""
    given = replace_halves(given, "the messages")
    if (ours := _all_ours(given)) is not None:
        return Given(ours, [], format or near, is_lone=False)
    problems: list[Problem] = []
    messages: list[Message] = []
    position, last = 0, format or near
    for kind, run in groupby(_flat(given), _kind):
        elements = list(run)
        if kind == "object":
            loaded, last = _objects(elements, position, format, last, problems)
            messages += loaded
        elif kind == "string":
            messages += map(speak, elements)
        elif kind == "message":
            messages += elements
        else:
            problems += [
                Problem(at, *_fault(element)) for at, element in enumerate(elements, position)
            ]
        position += len(elements)
    return Given(messages, problems, last, _is_lone(given))


def _all_ours(given: object) -> list[Message] | None:
    """A list of messages and nothing else."""
    elements = cast("Sequence[Any]", given) if isinstance(given, (list, tuple)) else ()
    return list(elements) if set(map(type, elements)) == {Message} else None


def _flat(given: object) -> Iterator[Any]:
    """The elements of lists within each other, without those that are empty."""
    stack: list[Iterator[Any]] = [iter((given,))]
    open_: dict[int, None] = {}  # the lists that it is within, in order
    while stack:
        for element in stack[-1]:
            if isinstance(element, Message):
                yield element
            elif (
                element is None
                or element in ("", b"")
                or (isinstance(element, Mapping) and not element)
            ):
                continue
            elif isinstance(element, (str, bytes, Mapping)) or not isinstance(element, Iterable):
                yield element
            else:
                inner = cast("Iterable[Any]", element)
                if id(inner) in open_:
                    raise HistoryError("the list of messages holds itself")
                open_[id(inner)] = None
                stack.append(iter(inner))
                break
        else:
            stack.pop()
            if open_:
                open_.popitem()


def _is_lone(given: object) -> bool:
    if isinstance(given, Mapping):
        return not _bodies()(cast("Mapping[str, Any]", given))
    return isinstance(given, (str, Message))


def _kind(element: object) -> str:
    if isinstance(element, Message):
        return "message"
    if isinstance(element, dict):
        fields = cast("dict[str, Any]", element)
        says_nothing = (
            not _says(fields) and fields.get("role") in _SPEAKING and fields.keys() <= _BARE
        )
        return "other" if says_nothing else "object"
    return "string" if isinstance(element, str) else "other"


def _says(fields: Mapping[str, Any]) -> bool:
    return fields.get("content") is not None or fields.get("parts") is not None


def _fault(element: object) -> tuple[str | None, str]:
    """The field at fault, and what is wrong."""
    if isinstance(element, dict):
        role = cast("dict[str, Any]", element)["role"]
        return (
            "content",
            f"a message of the role {role!r} has neither content nor parts; an empty string is fine",
        )
    return None, f"{_EXPECTED}, not {type(element).__name__}"


def _objects(
    elements: Sequence[dict[str, Any]],
    start: int,
    name: str | None,
    near: str | None,
    problems: list[Problem],
) -> tuple[list[Message], str | None]:
    """JSON objects beside each other → messages, and the format of the last."""
    messages: list[Message] = []
    for is_body, run in groupby(elements, _bodies()):
        part = list(run)
        for element in part if is_body else (part,):
            loaded, near = _run(element, start, name, near, problems)
            messages += loaded
            start += 1 if is_body else len(part)
    return messages, near


def _bodies() -> Callable[[Mapping[str, Any]], bool]:
    """Whether an element is the body of a request, and no message."""
    known = layouts().values()
    lists = frozenset(field for layout in known for field in layout.fields or ())
    texts = [layout.fields[0] for layout in known if layout.text and layout.fields]

    def is_body(element: Mapping[str, Any]) -> bool:
        if isinstance(element.get("role"), str) or lists.isdisjoint(element):
            return False
        if any(isinstance(element.get(field), list) for field in lists):
            return True
        return "type" not in element and any(isinstance(element.get(field), str) for field in texts)

    return is_body


def _run(
    value: Any, start: int, name: str | None, near: str | None, problems: list[Problem]
) -> tuple[list[Message], str | None]:
    """Messages beside each other, or the body of a request."""
    try:
        if name is not None:
            return _load(name, payload_of(value, name), start, problems), name
        try:
            found = formats.detected(value, near=near)
        except HistoryError:
            if not isinstance(value, list):
                raise
            return _one_by_one(cast("list[Any]", value), start, near, problems)
        messages: list[Message] = []
        for each in found:
            messages += _load(each.format, each.payload, start + each.start, problems)
        return messages, found[-1].format
    except HistoryError as error:
        problems.append(Problem(start, None, error.message))
        return [], near


def _one_by_one(
    elements: list[Any], start: int, near: str | None, problems: list[Problem]
) -> tuple[list[Message], str | None]:
    """Messages of which one is of no format: each by itself."""
    names: list[str | None] = []
    errors: dict[int, str] = {}
    for place, element in enumerate(elements):
        try:
            near = formats.detected([element], near=near)[0].format
            names.append(near)
        except HistoryError as error:
            names.append(None)
            errors[place] = error.message
    messages: list[Message] = []
    for name, run in groupby(range(len(elements)), names.__getitem__):
        places = list(run)
        if name is None:
            problems += [Problem(start + place, None, errors[place]) for place in places]
        else:
            payload = payload_of([elements[place] for place in places], name)
            messages += _load(name, payload, start + places[0], problems)
            near = name
    return messages, near


def _load(name: str, payload: Any, start: int, problems: list[Problem]) -> list[Message]:
    found: list[Problem] = []
    messages = formats.get(name).load_messages(payload, problems=found)
    problems += [
        Problem(each.index if each.index < 0 else start + each.index, each.field, each.error)
        for each in found
    ]
    return messages


def unreadable(problems: Sequence[Problem]) -> HistoryError:
    """The error of what could not be read."""
    first = problems[0]
    where = "beside the messages" if first.index < 0 else f"messages[{first.index}]"
    field = f", field {first.field!r}" if first.field else ""
    more = f" ({len(problems) - 1} more cannot be read either)" if len(problems) > 1 else ""
    return HistoryError(f"{where}{field}: {first.error}{more}")
