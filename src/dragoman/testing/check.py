"""`Check`: one behaviour that every wire, provider or store must have, as a function that raises
`CheckFailed` if it is missing.

A check gets a `Bench`, which holds what is checked and helpers to exercise it. `require` and
`require_equal` fail the check with a description; `Check.__call__` adds the rule and where to look.
`BoundCheck` is a check with its subject, which test runners call without arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar, cast
from unittest import SkipTest

import msgspec

from dragoman.json_bytes import Json
from dragoman.portal import Portal

__all__ = [
    "Bench",
    "BoundCheck",
    "Check",
    "CheckFailed",
    "Inconclusive",
    "StoreFactory",
    "Skipped",
    "attempt",
    "check_maker",
    "require",
    "unwrap_error",
    "require_equal",
]


class CheckFailed(AssertionError):
    """A behaviour is missing. The message has the rule, what happened instead, and where to
    look."""


class Skipped(SkipTest):
    """A check does not apply; the message has the reason. pytest and unittest count it as
    skipped."""


class Inconclusive(Skipped):
    """A real model did not do what it was asked, through its own fault or the provider's. Look at
    the answer, or use a better model."""


class Bench:
    """Base of what checks work with: a wire, a provider or a store, with helpers to exercise it."""

    name: str
    """The name of what is checked."""

    def find_skip_reason(self, needs: tuple[str, ...], *, live: bool) -> str | None:  # noqa: ARG002
        """Returns why a check with these needs does not apply, or None if it does. `live`: the
        check can run against a real server."""
        return None

    def is_inconclusive(self, error: Exception) -> bool:  # noqa: ARG002
        """True if an error may be a real model's own fault."""
        return False

    def locate_fault(self, error: BaseException) -> str | None:  # noqa: ARG002
        """Returns where to look for the fault of an error, or None if the check's own hint
        holds."""
        return None


B = TypeVar("B", bound=Bench)
T = TypeVar("T")


class CheckMaker(Protocol[B]):
    """Makes a check from a function. `Check` describes the arguments."""

    def __call__(
        self, *needs: str, shows: tuple[str, ...] = (), look: str = "", live: bool = False
    ) -> Callable[[Callable[[B], Awaitable[None] | None]], Check[B]]:
        """Returns the decorator."""
        ...


class Check(msgspec.Struct, Generic[B], frozen=True, kw_only=True):
    """One behaviour. Call it with a wire, a provider's record or a store factory: it returns, or
    raises `CheckFailed` or `Skipped`."""

    function: Callable[[B], Awaitable[None] | None]
    """Takes a bench, and raises if the behaviour is missing."""
    bench: Callable[..., B]
    """Makes the bench of a subject."""
    needs: tuple[str, ...] = ()
    """Capabilities of a provider, or groups of a wire's functions, without which the check does not
    apply."""
    shows: tuple[str, ...] = ()
    """Capabilities that a passing check proves beside those that it needs."""
    look: str = ""
    """Names the code where the fault is most often."""
    live: bool = False
    """True if the check can also run against a real server."""
    prefix: str = ""
    """Text before the subject's name in reports: `wire `, or nothing for a provider."""

    @property
    def name(self) -> str:
        """Returns the name of the check's function."""
        return getattr(self.function, "__name__", "check")

    @property
    def rule(self) -> str:
        """Returns the behaviour in words: the docstring of the check's function."""
        return inspect.cleandoc(self.function.__doc__ or "")

    def __call__(self, subject: Any, **options: Any) -> None:
        """Checks a wire, a provider or a store. Works with and without a running event loop.

        `options`: as for the subject's bench, such as `ProviderBench`.

        Raises:
            CheckFailed: the behaviour is missing.
            Skipped: the check does not apply.
        """
        # Hides this frame in pytest: the message says it all.
        __tracebackhide__ = True
        bench = self.bench(subject, **options)
        why = bench.find_skip_reason(self.needs, live=self.live)
        if why is not None:
            raise Skipped(why)
        try:
            waiting = self.function(bench)
            if waiting is not None:
                _wait_for_check(waiting)
        except Skipped:
            raise
        except CheckFailed as wrong:
            raise CheckFailed(self._explain(bench, str(wrong), self.look)) from wrong.__cause__
        except Exception as error:
            cause = unwrap_error(error)
            if bench.is_inconclusive(error):
                raise Inconclusive(f"{type(cause).__name__} was raised: {cause}") from error
            look = bench.locate_fault(cause) or self.look
            raise CheckFailed(
                self._explain(bench, f"{type(cause).__name__} was raised: {cause}", look)
            ) from error

    def _explain(self, bench: Bench, wrong: str, where: str) -> str:
        """Returns the message of a failure: subject, check, problem, rule, and where to look."""
        look = f"\nLook at: {where}" if where else ""
        return f"{self.prefix}{bench.name}, {self.name}: {wrong}\nThe rule: {' '.join(self.rule.split())}{look}"


def check_maker(bench: Callable[..., B], prefix: str = "") -> CheckMaker[B]:
    """Returns a decorator that makes checks from functions of a bench. `prefix`: as in `Check`."""

    def make_check(
        *needs: str, shows: tuple[str, ...] = (), look: str = "", live: bool = False
    ) -> Callable[[Callable[[B], Awaitable[None] | None]], Check[B]]:
        """Returns a decorator that makes a function a check. `look`: where to look if the check
        fails."""

        def make(function: Callable[[B], Awaitable[None] | None]) -> Check[B]:
            """Makes a function a check, named after it and described by its docstring."""
            return Check(
                function=function,
                bench=bench,
                needs=needs,
                shows=shows,
                look=look,
                live=live,
                prefix=prefix,
            )

        return make

    return make_check


class StoreFactory(msgspec.Struct, Generic[T], frozen=True):
    """Makes the store that is checked, and names it."""

    make: Callable[[], T]
    """Returns a store."""
    name: str
    """The store's name in reports."""


class BoundCheck(msgspec.Struct, frozen=True):
    """A check with its subject. `str()` of it is a name for test reports."""

    check: Check[Any]
    """The check."""
    subject: Any
    """A wire, a provider's record, or a store factory."""
    options: Json = {}
    """Options of the bench, see `checks`."""

    @property
    def name(self) -> str:
        """Returns the check's name."""
        return self.check.name

    def __call__(self) -> None:
        """Runs the check.

        Raises:
            CheckFailed: the behaviour is missing.
            Skipped: the check does not apply.
        """
        __tracebackhide__ = True
        self.check(self.subject, **self.options)

    @property
    def shows(self) -> tuple[str, ...]:
        """Returns the capabilities that the provider declares and that a passing check proves."""
        declared = getattr(self.subject, "capabilities", frozenset[str]())
        return tuple(
            capability
            for capability in (*self.check.needs, *self.check.shows)
            if capability in declared
        )

    @property
    def subject_name(self) -> str:
        """Returns the subject's name in reports."""
        return f"{self.check.prefix}{getattr(self.subject, 'name', self.subject)}"

    def __str__(self) -> str:
        return f"{self.subject_name}-{self.name}".replace(" ", "-")


def require(condition: object, problem: str) -> None:
    """Fails the check with `problem` if the condition is false."""
    if not condition:
        raise CheckFailed(problem)


def require_equal(actual: Any, wanted: Any, subject: str) -> None:
    """Fails the check it is called in if `actual` differs from `wanted`. `subject` names the value
    in the message."""
    require(
        actual == wanted,
        f"{subject} must be {_shorten_repr(wanted)} and is {_shorten_repr(actual)}",
    )


def attempt(work: Callable[[], T], what: str, *, but: tuple[type[Exception], ...] = ()) -> T | None:
    """Returns what a check's `work` returns, or None if it raises one of the errors that it may
    raise (`but`).

    Raises:
        CheckFailed: it raises anything else. `what` names its input in the message.
    """
    try:
        return work()
    except but:
        return None
    except Exception as error:
        allowed = " or ".join(error_class.__name__ for error_class in but) or "nothing"
        raise CheckFailed(
            f"{type(error).__name__} ({error}) is raised for {what}; it may raise {allowed}"
        ) from error


def unwrap_error(error: BaseException) -> BaseException:
    """Returns the first exception that a check failed with, in nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _shorten_repr(value: Any) -> str:
    """Returns the repr of a value for a failed check's message, with its middle cut out if it is
    long."""
    text = repr(value)
    if len(text) <= 400:
        return text
    return f"{text[:300]} … {text[-80:]}"


def _wait_for_check(work: Awaitable[None]) -> None:
    """Runs a coroutine to its end in its own event loop, so that checks work inside a running loop
    too."""
    portal = Portal()
    try:
        portal.call(cast("Any", work))
    finally:
        portal.close()
