"""Conversations in one format → their messages, or another format; and files with a conversation on
each line.

`read` finds out the format, loads the messages and notes what cannot be read. `convert` writes them
in the other format: between two wires a body that holds more than the conversation stays one.
`read_jsonl` holds one line at a time in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from inspect import signature
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from dragoman import json_bytes, wires
from dragoman.codec.json_values import check_depth, if_list, if_object, read_extra_fields
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError, SettingsError
from dragoman.formats.detection import (
    Detected,
    OpenedConversation,
    detect_conversation,
    open_decoded,
)
from dragoman.formats.registry import get, layout
from dragoman.json_bytes import Json, replace_halves
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Origin
from dragoman.request import ModelRequest

__all__ = [
    "LoadedConversation",
    "Converted",
    "ConversationLine",
    "check_version",
    "convert",
    "convert_and_read",
    "decode_line",
    "keep_training_fields",
    "place_in_body",
    "read",
    "read_jsonl",
    "read_request",
]


class LoadedConversation(NamedTuple):
    """What a conversation is read as."""

    format: str
    """Name of its format, of the first where there are several; empty: plain texts."""
    field: str
    """Field of the body that held it; empty: none did."""
    messages: list[Message]
    """All of it."""


def read(
    value: object,
    format_name: str | None,
    problems: list[Problem] | None,
    origin: Origin | None = None,
) -> LoadedConversation:
    """Reads a conversation, decoded JSON whose depth has been checked, as messages. `format_name`:
    its format, which otherwise is told by its structure. `origin` is given to the model's messages
    where they do not say whose they are. With `problems`, what cannot be read is left out and noted
    there.

    Raises:
        HistoryError: it is no conversation, or something in it cannot be read and no problems are noted.
    """
    detected: list[Detected] = []
    messages: list[Message] = []
    start, field = 0, ""
    for is_plain, part in _split_into_runs(value):
        if is_plain:
            messages += [Message.user(text) for text in part if text]
        else:
            conversation = open_decoded(part)
            field = conversation.field
            runs = _find_runs(conversation, format_name)
            detected += runs
            for name, payload, offset in runs:
                run_problems: list[Problem] = []
                noted = None if problems is None else run_problems
                messages += get(name).load_messages(payload, origin=origin, problems=noted)
                if problems is not None:
                    problems += [_move_problem(problem, start + offset) for problem in run_problems]
        start += len(if_list(part))
    return LoadedConversation(detected[0].format if detected else "", field, messages)


def _find_runs(conversation: OpenedConversation, format_name: str | None) -> list[Detected]:
    """Returns the messages of a conversation by their format: all of them if it is named."""
    if format_name is None:
        return detect_conversation(conversation)
    payload = layout(format_name).payload(conversation.messages, conversation.body)
    return [Detected(format_name, payload)]


def _move_problem(problem: Problem, offset: int) -> Problem:
    """Returns a problem whose index counts from the start of the whole conversation. A negative
    index is of the body, and stays."""
    if problem.index < 0:
        return problem
    return Problem(offset + problem.index, problem.field, problem.error)


def _split_into_runs(value: object) -> Iterator[tuple[bool, Any]]:
    """Yields a conversation in runs: plain texts of the user, and everything else. Each comes with
    whether it is plain texts."""
    if isinstance(value, str):
        yield True, [value]
    elif not isinstance(value, list):
        yield False, value
    elif not any(isinstance(element, str) for element in cast("list[Any]", value)):
        yield False, cast("list[Any]", value)
    else:
        for plain, part in groupby(
            cast("list[Any]", value), lambda element: isinstance(element, str)
        ):
            yield plain, list(part)


class ConversationLine(NamedTuple):
    """A line that holds a conversation."""

    number: int
    """Of the line in the file, from 1."""
    format: str
    """Name of the format of its messages, of the first where there are several; empty: plain texts,
    or nothing that can be read."""
    messages: list[Message]
    """The conversation."""
    problems: list[Problem]
    """What of it could not be read; index -1: the line as a whole."""


def read_jsonl(
    source: str | Path | Iterable[bytes | str],
    *,
    format: str | None = None,  # noqa: A002 the word that the whole library has for it
    errors: Literal["raise", "collect"] = "raise",
) -> Iterator[ConversationLine]:
    """Yields the conversations of a file, one after the other: a line is a list of messages, the
    body of a request or any other object that holds such a list, or a text, which is the user's.
    Lines that are empty are passed over.

    `source`: the file's path, or what gives its lines, such as an open file. `format`: of all
    lines; otherwise it is told of each. `errors`: what is to be done where something cannot be
    read: raise, or note it in the line's problems and go on.

    Raises:
        HistoryError: a line cannot be read and `errors` is "raise"; it names the line.
        OSError: the file cannot be read.
    """
    if isinstance(source, str | Path):
        with Path(source).open("rb") as file:
            yield from read_jsonl(file, format=format, errors=errors)
        return
    for number, text in enumerate(source, start=1):
        if not text.strip():
            continue
        problems: list[Problem] | None = None
        if errors == "collect":
            problems = []
        try:
            name, _, messages = read(decode_line(text), format, problems)
        except HistoryError as error:
            if problems is None:
                raise HistoryError(f"line {number}: {error.message}") from error
            name, messages = "", []
            problems.append(Problem(-1, None, error.message))
        yield ConversationLine(number, name, messages, problems or [])


def decode_line(text: bytes | str) -> Any:
    """Decodes one line of a JSONL file.

    Raises:
        HistoryError: it is no JSON.
    """
    try:
        return json_bytes.decode(text)
    except ValueError as error:
        raise HistoryError(f"it is no JSON: {error}") from error


_NOTHING = ModelRequest("")


class Converted(NamedTuple):
    """A conversation in another format."""

    payload: Any
    """As `load_messages` of that format takes it, or the body of a request."""
    format: str
    """Name of the format that it had, of its first messages where there were several; empty: plain
    texts."""
    losses: list[Loss]
    """What the new format does not hold. Positions are those of messages, results of one round
    being one. A field of the body that stood beside the conversation has none, and `which` is its
    name."""
    field: str
    """Field of the body in which it stood; empty: in none."""
    problems: list[Problem]
    """What of the conversation could not be read, where that is no error."""


def convert(
    payload: Any,
    to: str,
    *,
    format: str | None = None,  # noqa: A002 the word that the whole library has for it
    version: str | None = None,
    origin: Origin | None = None,
    target: Origin | None = None,
    errors: Literal["raise", "collect"] = "raise",
    whole: bool = False,
) -> Converted:
    """Converts a conversation in JSON (a list of messages, one message, the body of a request, a
    text) to the format named `to`.

    `format`: that it has; otherwise it is told by its structure. `version`: of the format `to`,
    where it has several. `origin`: who wrote it, where its format does not say. `target`: who will
    read it; what another provider signed is left out then. `errors`: whether what cannot be read
    raises, or is left out and noted. `whole`: between two wires a body that holds more than the
    conversation stays one, with its tools and settings; its model is that of `target`, or of the
    body where the wire is the same.

    Raises:
        HistoryError: it is no conversation, its format is ambiguous, or something in it cannot be read and `errors` is "raise".
        SettingsError: there is no such format, or no such version of it.
    """
    problems: list[Problem] | None = None
    if errors == "collect":
        problems = []
    return convert_and_read(
        check_depth(replace_halves(payload, "the conversation")),
        to,
        format_name=format,
        version=version,
        origin=origin,
        target=target,
        problems=problems,
        whole=whole,
    )[0]


def convert_and_read(
    payload: Any,
    to: str,
    *,
    format_name: str | None = None,
    version: str | None = None,
    origin: Origin | None = None,
    target: Origin | None = None,
    problems: list[Problem] | None = None,
    whole: bool = False,
) -> tuple[Converted, list[Message]]:
    """Converts a conversation as `convert`, and returns its messages, too. `payload`: as
    `decode_line` returns it. With `problems`, what cannot be read is left out and noted there.

    Raises:
        HistoryError, SettingsError: as for `convert`.
    """
    check_version(to, version)
    name, field, messages = read(payload, format_name, problems, origin)
    losses: list[Loss] = []
    request = None
    if whole and field and wires.is_model(to):
        request = read_request(payload, name, messages, origin)
    if request is not None:
        body = _convert_body(request, name, to, target, losses)
        return Converted(body, name, losses, field, problems or []), messages
    options = {} if version is None else {"version": version}
    converted = get(to).dump_messages(messages, target=target, losses=losses, **options)
    losses += _find_body_options(payload, field, name)
    return Converted(converted, name, losses, field, problems or []), messages


def place_in_body(payload: object, to: str, *, in_body: bool) -> Any:
    """Returns the payload of a format as it is, or `in_body`: in the body of a request that holds
    nothing else, where the format has such bodies."""
    fields = layout(to).fields
    if in_body and fields and isinstance(payload, list):
        return {fields[0]: cast("list[Any]", payload)}
    return payload


def keep_training_fields(payload: object, to: str) -> Any:
    """Returns a body of a format with its conversation and tools alone, without the model, limits and
    other settings, as files for fine-tuning want it. Other payloads are returned as they are."""
    if not isinstance(payload, dict):
        return payload
    body, to_layout = cast("Json", payload), layout(to)
    wanted = {*(to_layout.fields or body), *(to_layout.beside or ()), "tools"}
    return {key: body[key] for key in body if key in wanted}


def check_version(name: str, version: str | None) -> None:
    """Refuses a version that a format does not have.

    Raises:
        SettingsError: it has others, or but one; or there is no such format.
    """
    target_format = get(name)
    versions: tuple[str, ...] = getattr(target_format, "versions", ())
    if version is None or version in versions:
        return
    if versions:
        raise SettingsError(
            f"the format {name} has no version {version!r}; there are {', '.join(versions)}"
        )
    if "version" not in signature(target_format.dump_messages).parameters:
        raise SettingsError(f"the format {name} has one version only; leave the version out")


def read_request(
    payload: object, name: str, messages: Sequence[Message], origin: Origin | None = None
) -> ModelRequest | None:
    """Returns a body as the request of its wire that it is.

    Args:
        payload: as JSON has it.
        name: of its format.
        messages: the conversation that was read of it.
        origin: who wrote it, where its format does not say.

    Returns:
        The request, or None: there is nothing of one beside the conversation, or its format is no
        wire of models.
    """
    payload = if_object(payload)
    if name:
        conversation_fields = {*(layout(name).fields or ()), *(layout(name).beside or ())}
    else:
        conversation_fields = set[str]()
    if payload.keys() <= conversation_fields or not wires.is_model(name):
        return None
    try:
        request = wires.get(name).load_request(payload, origin=origin, problems=[])
    except HistoryError:  # fields beside the conversation are not as the wire has them
        return None
    alone = request.replace(messages=(), options={}, native=None, wire=None) == _NOTHING
    if alone or list(request.messages) != list(messages):
        return None
    return request


def _convert_body(
    request: ModelRequest, name: str, to: str, target: Origin | None, losses: list[Loss]
) -> Json:
    """Converts a request of the wire `name` to a body of the wire `to`, without a model if none is
    known there."""
    model = (target and target.model) or (request.model if name == to else "")
    if request.model and not model:
        losses.append(
            Loss(
                None,
                None,
                Lost.option,
                "it is known to its provider alone: name the target",
                "model",
            )
        )
    body = wires.get(to).dump_request(request.replace(model=model), target=target, losses=losses)
    if model:
        return body
    return read_extra_fields(body, "model")


def _find_body_options(source: object, field: str, name: str) -> list[Loss]:
    """Returns the fields of a body that are no part of the conversation."""
    body = if_object(source)
    if not field or not name or layout(name).whole:
        return []
    conversation_fields = {field, *(layout(name).beside or ())}
    why = "it stands beside the conversation"
    return [
        Loss(None, None, Lost.option, why, key)
        for key in body
        if key not in conversation_fields and body[key] is not None
    ]
