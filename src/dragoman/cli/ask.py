"""What a run waits for, asked on the terminal: approvals, questions, sign-ins, results of calls
that the client runs."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from dragoman.cli.terminal import to_one_line
from dragoman.errors import ResumeError
from dragoman.interrupt import Interrupt, Reason, Resume
from dragoman.json_bytes import Json

__all__ = ["Terminal", "ask_all", "summarize"]

_VERDICT = re.compile(
    r"(?P<yes>y|yes)|(?P<no>n|no)(?:[\s,:]+(?P<why>.+))?|(?P<edit>e|edit)",
    re.IGNORECASE | re.DOTALL,
)
_WIDTH = 100
"""Longest JSON that stands in one line."""


@dataclass(frozen=True)
class Terminal:
    """Who is asked."""

    read: Callable[[str, str], Awaitable[str]]
    """(what stands before the line, what stands in it) → what was typed."""
    say: Callable[[str], None]
    """Shows lines."""
    check: Callable[[Resume], object]
    """Raises `ResumeError` where an answer does not fit."""


async def ask_all(pending: Sequence[Interrupt], terminal: Terminal) -> list[Resume]:
    """Asks for one answer after the other, each until it fits.

    Raises:
        Exception: what `read` raises where nobody answers.
    """
    answers: list[Resume] = []
    for interrupt in pending:
        terminal.say(_describe_question(interrupt))
        answers.append(await _ASKERS[interrupt.reason](interrupt, terminal))
    return answers


def summarize(interrupt: Interrupt) -> str:
    """What is waited for, in one line."""
    about = [_describe_call(interrupt), to_one_line(interrupt.message or "")]
    return f"{_WAITS[interrupt.reason]}: {' – '.join(piece for piece in about if piece)}"


def _describe_question(interrupt: Interrupt) -> str:
    """What stands above the line on which it is answered."""
    url = interrupt.metadata.get("url")
    lines = [
        f"[{_WAITS[interrupt.reason]}]",
        _describe_call(interrupt, pretty=True),
        to_one_line(interrupt.message or ""),
        to_one_line(url) if isinstance(url, str) else "",
        ""
        if interrupt.schema is None
        else f"JSON Schema of the answer: {_visible_json(interrupt.schema)}",
    ]
    return "\n".join(line for line in lines if line)


def _describe_call(interrupt: Interrupt, *, pretty: bool = False) -> str:
    call = interrupt.call
    return (
        ""
        if call is None
        else f"{to_one_line(call.name)} {_visible_json(call.arguments, pretty=pretty)}"
    )


def _visible_json(value: Any, *, pretty: bool = False) -> str:
    """JSON without signs that a terminal does not show as they are: what is approved must be what
    is read."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
    if pretty and len(text) > _WIDTH:
        text = msgspec.json.format(text)
    return "".join(c if c == "\n" or c.isprintable() else _escape_character(c) for c in text)


def _escape_character(sign: str) -> str:
    units = sign.encode("utf-16-be")
    return "".join(f"\\u{units[index : index + 2].hex()}" for index in range(0, len(units), 2))


async def _read_until_valid(
    terminal: Terminal, read: Callable[[], Awaitable[Sequence[Resume]]]
) -> Resume:
    """Reads until one of the answers that a line may mean fits; where none does, says what is wrong
    with the first."""
    while True:
        try:
            return _choose_valid(await read(), terminal)
        except (ValueError, ResumeError) as error:
            terminal.say(f"error: {to_one_line(str(error))}")


def _choose_valid(meant: Sequence[Resume], terminal: Terminal) -> Resume:
    wrong: list[ResumeError] = []
    for resume in meant:
        try:
            terminal.check(resume)
        except ResumeError as error:
            wrong.append(error)
        else:
            return resume
    raise wrong[0]


async def _ask_approval(interrupt: Interrupt, terminal: Terminal) -> Resume:
    choices = "y/n/edit" if interrupt.editable else "y/n"

    async def verdict() -> Sequence[Resume]:
        match = _VERDICT.fullmatch((await terminal.read(f"run it? {choices}> ", "")).strip())
        if match is None or (match["edit"] and not interrupt.editable):
            raise ValueError(f"answer with {choices}; behind n there may be a reason")
        if match["edit"]:
            return [await _read_arguments(interrupt, terminal)]
        return [interrupt.approve() if match["yes"] else interrupt.deny(match["why"])]

    return await _read_until_valid(terminal, verdict)


async def _read_arguments(interrupt: Interrupt, terminal: Terminal) -> Resume:
    """An approval with other arguments. What was typed and does not fit stands in the line
    again."""
    text = _visible_json(interrupt.call.arguments if interrupt.call is not None else {})

    async def arguments() -> Sequence[Resume]:
        nonlocal text
        text = await terminal.read("arguments> ", text)
        return [interrupt.approve(_decode(text, Json))]

    return await _read_until_valid(terminal, arguments)


async def _ask_question(interrupt: Interrupt, terminal: Terminal) -> Resume:
    """Text where the schema takes text or there is none; else JSON, or text that fits as it is."""
    schema = interrupt.schema

    async def answer() -> Sequence[Resume]:
        text = (await terminal.read("answer> ", "")).strip()
        if schema is None or schema.get("type") == "string":
            return [interrupt.answer(text)]
        try:
            return [interrupt.answer(_decode(text)), interrupt.answer(text)]
        except ValueError:
            return [interrupt.answer(text)]

    return await _read_until_valid(terminal, answer)


async def _ask_sign_in(interrupt: Interrupt, terminal: Terminal) -> Resume:
    async def done() -> Sequence[Resume]:
        return [
            interrupt.answer(
                (await terminal.read("Enter when it is done, or what came of it> ", "")).strip()
                or True
            )
        ]

    return await _read_until_valid(terminal, done)


async def _ask_result(interrupt: Interrupt, terminal: Terminal) -> Resume:
    async def result() -> Sequence[Resume]:
        return [interrupt.answer(_decode(await terminal.read("its result, as JSON> ", "")))]

    return await _read_until_valid(terminal, result)


def _decode(text: str, wanted_type: Any = Any) -> Any:
    try:
        return msgspec.json.decode(text, type=wanted_type)
    except msgspec.ValidationError:
        raise ValueError("that is no JSON object") from None
    except ValueError as error:
        raise ValueError(f"that is no JSON ({error}); a text stands in quotes") from error


_WAITS: Mapping[Reason, str] = MappingProxyType(
    {
        "approval": "waits for approval",
        "input": "asks you",
        "auth": "waits for a sign-in",
        "tool": "is yours to run",
    }
)
_ASKERS: Mapping[Reason, Callable[[Interrupt, Terminal], Awaitable[Resume]]] = MappingProxyType(
    {"approval": _ask_approval, "input": _ask_question, "auth": _ask_sign_in, "tool": _ask_result}
)
