"""Which answer a request gets: the next of a list, the next of its conversation, or what a function says."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, TypeAlias, cast, get_args

from dragoman.arguments import wrong
from dragoman.errors import DragomanError
from dragoman.event import Event
from dragoman.message import Content, Message, Role
from dragoman.request import ModelRequest
from dragoman.testing.outline import outline
from dragoman.testing.scripted_answer import Answer, Answerable, Answering, check_answer
from dragoman.transport.exchange import Exchange

__all__ = ["Answers", "Script", "ScriptError", "first_prompt"]

Answers: TypeAlias = Answerable | Answering | Iterable[Answerable | Answering]
"""One answer, several in order, or a function that gives them."""

_ONE: tuple[type, ...] = (
    str,
    bytes,
    Message,
    Answer,
    Exchange,
    Exception,
    *get_args(Content),
    *get_args(Event),
)
_LAST = 3
"""How many messages of a request are shown."""


class ScriptError(DragomanError, AssertionError):
    """The test's script is wrong: it has no answer left, or answers that nobody asked for."""

    def __str__(self) -> str:
        return self.message


def first_prompt(request: ModelRequest) -> str:
    """The text of a conversation's first user message."""
    return next((message.text for message in request.messages if message.role is Role.USER), "")


class Script:
    """Gives each request its answer. May be called from several threads.

    Args:
        answers: for all requests, or by the key of a conversation.
        by: a request → the key of its conversation, where `answers` is a mapping.
    """

    def __init__(
        self, answers: Answers | Mapping[Any, Answers], by: Callable[[ModelRequest], Hashable]
    ) -> None:
        self._by = by
        self._scripts: dict[Any, _Answers] | None = None
        self._script = _Answers(())
        if isinstance(answers, Mapping):
            given = cast("Mapping[Any, Answers]", answers)
            self._scripts = {key: _Answers(each) for key, each in given.items()}
        else:
            self._script = _Answers(answers)
        self._lock = Lock()
        self._unanswered: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> Any:
        """The answer to a request, which may be a function still.

        Raises:
            ScriptError: there is none.
        """
        key = None if self._scripts is None else self._by(request)
        with self._lock:
            script = self._script if self._scripts is None else self._scripts.get(key)
            if script is not None and script.has_next():
                return script.next()
            self._unanswered.append(request)
        if script is None:
            raise _error(
                f"the script has no conversation {key!r}; it has {', '.join(map(repr, self._scripts or ())) or 'none'}",
                request,
            )
        raise _error(
            f"request {script.given + 1} has no answer: the script has {script.given}; give it another, or a function",
            request,
        )

    def check(self) -> None:
        """Raises `ScriptError` where a request got no answer, or an answer is left."""
        if self._unanswered:
            raise _error(
                f"{len(self._unanswered)} requests got no answer from the script",
                self._unanswered[-1],
            )
        scripts = {"": self._script} if self._scripts is None else self._scripts
        for key, script in scripts.items():
            if left := script.left():
                where = f" of the conversation {key!r}" if key else ""
                raise ScriptError(
                    f"{len(left)} answers{where} were not asked for; the next is {left[0]!r:.200}"
                )


class _Answers:
    """Answers in order, pulled when they are needed: they may be without end."""

    def __init__(self, answers: Answers) -> None:
        self.given = 0
        self._function: Any = answers if callable(answers) else None
        alone = isinstance(answers, _ONE)
        every: Iterable[Any] = (
            () if callable(answers) else (answers,) if alone else cast("Iterable[Any]", answers)
        )
        if not isinstance(cast(object, every), Iterable):
            raise wrong("answers", every, "an answer, a sequence of them, or a function")
        self._counted = isinstance(every, Sequence)
        if isinstance(every, Sequence):
            for each in every:
                check_answer(each)
        self._rest: Iterator[Any] = iter(every)
        self._next: list[Any] = []

    def has_next(self) -> bool:
        if self._function is not None or self._next:
            return True
        self._next = [each for _, each in zip(range(1), self._rest, strict=False)]
        return bool(self._next)

    def next(self) -> Any:
        self.given += 1
        return self._next.pop(0) if self._function is None else self._function

    def left(self) -> list[Any]:
        """Those that nobody asked for; of an iterator that cannot be known."""
        if not self._counted or self._function is not None:
            return []
        self._next += self._rest
        return self._next


def _error(problem: str, request: ModelRequest) -> ScriptError:
    shown = "\n".join(f"  {line}" for line in outline(request.messages[-_LAST:]))
    return ScriptError(f"{problem}. The last request ended with:\n{shown}")
