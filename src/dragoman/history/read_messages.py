"""Whatever stands for messages → messages: strings, messages of our own, elements and bodies of any
format, lists of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, cast

from dragoman import formats
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.formats.detection import payload_of
from dragoman.formats.registry import layouts
from dragoman.history.format_fields import thread_names
from dragoman.json_bytes import Json, JsonMap, replace_halves
from dragoman.message import Message

__all__ = ["LoadedMessages", "read", "unreadable_error"]

_SPEAKING = ("user", "system", "developer")
"""Roles of messages that always say something."""
_BARE = frozenset(
    ["role", "content", "parts", "id", "name", "createdAt", "metadata", *thread_names()]
)
"""Fields beside which a message needs a content."""
_EXPECTED = "a message is a string, a Message, or an object as a format has it"


class LoadedMessages(NamedTuple):
    """What was given, read."""

    messages: list[Message]
    """In order."""
    problems: list[Problem]
    """What could not be read. An index counts elements as they were given; elements of lists within
    each other count on."""
    format: str | None
    """The format of the last of them that was JSON."""
    is_lone: bool
    """It was one message, and no list."""


def read(
    value: object,
    format: str | None = None,  # noqa: A002 what it is called everywhere
    near: str | None = None,
    speak: Callable[..., Message] = Message.user,
) -> LoadedMessages:
    """Reads messages from whatever stands for them: strings, `Message`s, JSON of any format, lists
    of them. Empty values are skipped. `format`: the format of JSON, else it is detected. `near`:
    the format of the messages beside it, for a message that says too little. `speak`: makes a
    message of a string."""
    value = replace_halves(value, "the messages")
    if (own_messages := _all_ours(value)) is not None:
        return LoadedMessages(own_messages, [], format or near, is_lone=False)
    problems: list[Problem] = []
    messages: list[Message] = []
    position, last = 0, format or near
    for element_kind, run in groupby(_flatten_input(value), _kind_of_input):
        elements = list(run)
        if element_kind == "object":
            loaded, last = _read_objects(elements, position, format, last, problems)
            messages += loaded
        elif element_kind == "string":
            messages += map(speak, elements)
        elif element_kind == "message":
            messages += elements
        else:
            problems += [
                Problem(index, *_find_input_fault(element))
                for index, element in enumerate(elements, position)
            ]
        position += len(elements)
    return LoadedMessages(messages, problems, last, _is_lone(value))


def _all_ours(value: object) -> list[Message] | None:
    """Returns the input if it is a list of `Message`s and nothing else, or None."""
    if isinstance(value, (list, tuple)):
        elements = cast("Sequence[Any]", value)
    else:
        elements = ()
    if set(map(type, elements)) == {Message}:
        return list(elements)
    return None


def _flatten_input(value: object) -> Iterator[Any]:
    """Yields the elements of lists within each other, without those that are empty."""
    stack: list[Iterator[Any]] = [iter((value,))]
    open_: dict[int, None] = {}  # the lists that it is within, in order
    while stack:
        for element in stack[-1]:
            if isinstance(element, Message):
                yield element
            elif _is_empty(element):
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


def _is_empty(element: object) -> bool:
    """True if an input element is `None`, an empty text or an empty object."""
    if isinstance(element, Mapping):
        return not element
    return element is None or element in ("", b"")


def _is_lone(value: object) -> bool:
    if isinstance(value, Mapping):
        return not _make_body_check()(cast("JsonMap", value))
    return isinstance(value, (str, Message))


def _kind_of_input(element: object) -> str:
    """Returns the kind of an input element: message, JSON object, text or something else."""
    if isinstance(element, Message):
        return "message"
    if isinstance(element, dict):
        fields = cast("Json", element)
        says_nothing = (
            not _says(fields) and fields.get("role") in _SPEAKING and fields.keys() <= _BARE
        )
        if says_nothing:
            return "other"
        return "object"
    if isinstance(element, str):
        return "string"
    return "other"


def _says(fields: JsonMap) -> bool:
    return fields.get("content") is not None or fields.get("parts") is not None


def _find_input_fault(element: object) -> tuple[str | None, str]:
    """Returns the field that makes an input element unreadable, and what is wrong with it."""
    if isinstance(element, dict):
        role = cast("Json", element)["role"]
        return (
            "content",
            f"a message of the role {role!r} has neither content nor parts; an empty string is fine",
        )
    return None, f"{_EXPECTED}, not {type(element).__name__}"


def _read_objects(
    elements: Sequence[Json],
    start: int,
    name: str | None,
    near: str | None,
    problems: list[Problem],
) -> tuple[list[Message], str | None]:
    """Reads adjacent JSON objects as messages. Returns them, and the format of the last."""
    messages: list[Message] = []
    for is_body, run in groupby(elements, _make_body_check()):
        part = list(run)
        for element in part if is_body else (part,):
            loaded, near = _read_adjacent_messages(element, start, name, near, problems)
            messages += loaded
            start += 1 if is_body else len(part)
    return messages, near


def _make_body_check() -> Callable[[JsonMap], bool]:
    """Returns a function that says if an input element is the body of a request, and no message."""
    layouts_known = layouts().values()
    lists = frozenset(field for layout in layouts_known for field in layout.fields or ())
    texts = [layout.fields[0] for layout in layouts_known if layout.text and layout.fields]
    return partial(_is_body, lists=lists, texts=texts)


def _is_body(element: JsonMap, *, lists: frozenset[str], texts: Sequence[str]) -> bool:
    """True if an input element to read as messages is the body of a request. `lists`, `texts`: the
    fields in which bodies have messages, as a list or as a text."""
    if isinstance(element.get("role"), str) or lists.isdisjoint(element):
        return False
    if any(isinstance(element.get(field), list) for field in lists):
        return True
    # A custom tool call of OpenAI has a text as its `input` as well, and a type.
    return "type" not in element and any(isinstance(element.get(field), str) for field in texts)


def _read_adjacent_messages(
    value: object, start: int, name: str | None, near: str | None, problems: list[Problem]
) -> tuple[list[Message], str | None]:
    """Reads messages beside each other, or the body of a request."""
    try:
        if name is not None:
            return _load_payload(name, payload_of(value, name), start, problems), name
        try:
            runs = formats.detect_list(value, near=near)
        except HistoryError:
            if not isinstance(value, list):
                raise
            return _one_by_one(cast("list[Any]", value), start, near, problems)
        messages: list[Message] = []
        for run in runs:
            messages += _load_payload(run.format, run.payload, start + run.start, problems)
        return messages, runs[-1].format
    except HistoryError as error:
        problems.append(Problem(start, None, error.message))
        return [], near


def _one_by_one(
    elements: list[Any], start: int, near: str | None, problems: list[Problem]
) -> tuple[list[Message], str | None]:
    """Reads messages of which one is of no format: each by itself."""
    names: list[str | None] = []
    errors: dict[int, str] = {}
    for index, element in enumerate(elements):
        try:
            near = formats.detect_list([element], near=near)[0].format
            names.append(near)
        except HistoryError as error:
            names.append(None)
            errors[index] = error.message
    messages: list[Message] = []
    for name, run in groupby(range(len(elements)), names.__getitem__):
        indexes = list(run)
        if name is None:
            problems += [Problem(start + index, None, errors[index]) for index in indexes]
        else:
            payload = payload_of([elements[index] for index in indexes], name)
            messages += _load_payload(name, payload, start + indexes[0], problems)
            near = name
    return messages, near


def _load_payload(name: str, payload: object, start: int, problems: list[Problem]) -> list[Message]:
    """Reads the messages of a payload in a named format, and notes its problems by their place in
    the whole input, of which it is a piece. A negative index means the payload itself."""
    faults: list[Problem] = []
    messages = formats.get(name).load_messages(payload, problems=faults)
    problems += [
        Problem(fault.index if fault.index < 0 else start + fault.index, fault.field, fault.error)
        for fault in faults
    ]
    return messages


def unreadable_error(problems: Sequence[Problem]) -> HistoryError:
    """Returns the error of a message that could not be read."""
    first = problems[0]
    if first.index < 0:
        where = "beside the messages"
    else:
        where = f"messages[{first.index}]"
    field = f", field {first.field!r}" if first.field else ""
    if len(problems) > 1:
        more = f" ({len(problems) - 1} more cannot be read either)"
    else:
        more = ""
    return HistoryError(f"{where}{field}: {first.error}{more}")
