"""Asks on the terminal for what a run waits for: approvals, answers to questions, sign-ins, and
results of client tools.

Each reason of an interrupt has a function in `_ASKERS` that reads lines until an answer is valid. A
line may have two meanings, JSON or plain text: `_choose_valid` takes the first one that the run
accepts. What comes from a model is shown with every character visible, since an approval must show
what will run.
"""

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
from dragoman.pending_text import WAITS, describe_call, visible_json

__all__ = ["Terminal", "ask_all"]

_VERDICT = re.compile(
    r"(?P<yes>y|yes)|(?P<no>n|no)(?:[\s,:]+(?P<why>.+))?|(?P<edit>e|edit)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Terminal:
    """The terminal that questions go to."""

    read: Callable[[str, str], Awaitable[str]]
    """Takes a prompt and the initial text of the line, and returns what was typed."""
    say: Callable[[str], None]
    """Shows lines."""
    check: Callable[[Resume], object]
    """Raises `ResumeError` if an answer is invalid."""


async def ask_all(pending: Sequence[Interrupt], terminal: Terminal) -> list[Resume]:
    """Asks for one answer after another, each until it is valid.

    Raises:
        Exception: what `read` raises if nobody answers.
    """
    answers: list[Resume] = []
    for interrupt in pending:
        terminal.say(_describe_question(interrupt))
        answers.append(await _ASKERS[interrupt.reason](interrupt, terminal))
    return answers


def _describe_question(interrupt: Interrupt) -> str:
    """Returns what the user is shown above a question of a waiting run: reason, call, message,
    address and schema."""
    url = interrupt.metadata.get("url")
    lines = [
        f"[{WAITS[interrupt.reason]}]",
        describe_call(interrupt, pretty=True),
        to_one_line(interrupt.message or ""),
        to_one_line(url) if isinstance(url, str) else "",
        ""
        if interrupt.schema is None
        else f"JSON Schema of the answer: {visible_json(interrupt.schema)}",
    ]
    return "\n".join(line for line in lines if line)


async def _read_until_valid(
    terminal: Terminal, read: Callable[[], Awaitable[Sequence[Resume]]]
) -> Resume:
    """Asks the user until one of the possible meanings of a line is valid, and shows the error of
    the first one otherwise."""
    while True:
        try:
            return _choose_valid(await read(), terminal)
        except (ValueError, ResumeError) as error:
            terminal.say(f"error: {to_one_line(str(error))}")


def _choose_valid(meant: Sequence[Resume], terminal: Terminal) -> Resume:
    """Asks on the terminal until an answer is one of the choices.

    Raises:
        ResumeError: none is valid; the error is that of the first.
    """
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
    """Asks whether a call may run; for an editable tool also for other arguments."""
    choices = "y/n/edit" if interrupt.editable else "y/n"

    async def verdict() -> Sequence[Resume]:
        """Asks at the terminal until the approval is decided."""
        match = _VERDICT.fullmatch((await terminal.read(f"run it? {choices}> ", "")).strip())
        if match is None or (match["edit"] and not interrupt.editable):
            raise ValueError(f"answer with {choices}; behind n there may be a reason")
        if match["edit"]:
            return [await _read_arguments(interrupt, terminal)]
        return [interrupt.approve() if match["yes"] else interrupt.deny(match["why"])]

    return await _read_until_valid(terminal, verdict)


async def _read_arguments(interrupt: Interrupt, terminal: Terminal) -> Resume:
    """Asks the user for edited arguments and returns the approval with them. After an error the
    line has the typed text again."""
    text = "{}"
    if interrupt.call is not None:
        text = visible_json(interrupt.call.arguments)

    async def arguments() -> Sequence[Resume]:
        """Asks at the terminal for edited arguments until they are a JSON object."""
        # The next line starts with what was typed, to be corrected.
        nonlocal text
        text = await terminal.read("arguments> ", text)
        return [interrupt.approve(_decode_json_answer(text, Json))]

    return await _read_until_valid(terminal, arguments)


async def _ask_question(interrupt: Interrupt, terminal: Terminal) -> Resume:
    """Asks for an answer: text if the schema takes text or there is none, else JSON, or text that
    is valid as it is."""
    schema = interrupt.schema

    async def answer() -> Sequence[Resume]:
        """Asks at the terminal until the answer fits the question's schema."""
        text = (await terminal.read("answer> ", "")).strip()
        if schema is None or schema.get("type") == "string":
            return [interrupt.answer(text)]
        try:
            # Both meanings: `5` is a number for one schema and a text for another.
            return [interrupt.answer(_decode_json_answer(text)), interrupt.answer(text)]
        except ValueError:
            return [interrupt.answer(text)]

    return await _read_until_valid(terminal, answer)


async def _ask_sign_in(interrupt: Interrupt, terminal: Terminal) -> Resume:
    """Asks for Enter after a sign-in, or for its result."""

    async def done() -> Sequence[Resume]:
        """Asks at the terminal whether the user has signed in."""
        return [
            interrupt.answer(
                (await terminal.read("Enter when it is done, or what came of it> ", "")).strip()
                or True
            )
        ]

    return await _read_until_valid(terminal, done)


async def _ask_result(interrupt: Interrupt, terminal: Terminal) -> Resume:
    """Asks for the result of a client tool, as JSON."""

    async def result() -> Sequence[Resume]:
        return [
            interrupt.answer(_decode_json_answer(await terminal.read("its result, as JSON> ", "")))
        ]

    return await _read_until_valid(terminal, result)


def _decode_json_answer(text: str, wanted_type: Any = Any) -> Any:
    """Returns the user's answer in JSON as a value of the type.

    Raises:
        ValueError: it is not JSON, or of another type.
    """
    try:
        return msgspec.json.decode(text, type=wanted_type)
    except msgspec.ValidationError:
        raise ValueError("that is not a JSON object") from None
    except ValueError as error:
        raise ValueError(f"that is not JSON ({error}); put a text in quotes") from error


_ASKERS: Mapping[Reason, Callable[[Interrupt, Terminal], Awaitable[Resume]]] = MappingProxyType(
    {
        "approval": _ask_approval,
        "input": _ask_question,
        "auth": _ask_sign_in,
        "tool": _ask_result,
        "doubt": _ask_approval,
    }
)
