"""A check: one behaviour that every wire or provider must have, as a function that says what is
wrong where it is not there."""

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
    """A behaviour is not there. The message says which, what came in its place, and where to
    look."""


class Skipped(SkipTest):
    """A check does not apply; the message says why. pytest and unittest count it as skipped."""


class Inconclusive(Skipped):
    """What a real model said is not what was asked for. Its own fault, or the provider's: look
    yourself, or take a better model."""


class Bench:
    """What a check works on: a wire, a provider or a store, with all that is needed to try it."""

    name: str
    """Who is checked."""

    def find_skip_reason(self, needs: tuple[str, ...], *, live: bool) -> str | None:  # noqa: ARG002
        """Returns why a check with these needs does not apply, or None if it does. `live`: the
        check can run against a real server."""
        return None

    def is_inconclusive(self, error: Exception) -> bool:  # noqa: ARG002
        """Returns whether an error may be a real model's own fault."""
        return False

    def locate_fault(self, error: BaseException) -> str | None:  # noqa: ARG002
        """Returns where the fault of an error lies, whatever was checked, or None if where the
        check says."""
        return None


B = TypeVar("B", bound=Bench)
T = TypeVar("T")


class CheckMaker(Protocol[B]):
    """Makes a check of a function: see `Check` for the arguments."""

    def __call__(
        self, *needs: str, shows: tuple[str, ...] = (), look: str = "", live: bool = False
    ) -> Callable[[Callable[[B], Awaitable[None] | None]], Check[B]]:
        """Returns the decorator."""
        ...


class Check(msgspec.Struct, Generic[B], frozen=True, kw_only=True):
    """One behaviour. Call it with a wire or a provider's record; it returns, or raises
    `CheckFailed` or `Skipped`."""

    function: Callable[[B], Awaitable[None] | None]
    """Takes a bench; raises where the behaviour is not there."""
    bench: Callable[..., B]
    """Makes the bench of what is checked."""
    needs: tuple[str, ...] = ()
    """Capabilities of a provider, or groups of a wire's operations, without which it does not
    apply."""
    shows: tuple[str, ...] = ()
    """Capabilities that are seen when it passes, besides those that it needs."""
    look: str = ""
    """Where the fault lies, most often."""
    live: bool = False
    """Whether it can also run against a real server."""
    prefix: str = ""
    """What is checked, before its name: `wire `, or nothing for a provider."""

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", "check")

    @property
    def rule(self) -> str:
        """What it demands."""
        return inspect.cleandoc(self.function.__doc__ or "")

    def __call__(self, subject: Any, **options: Any) -> None:
        """Checks a wire or a provider. `options`: as for `checks`. Needs no event loop, and works
        inside one.

        Raises:
            CheckFailed: the behaviour is not there.
            Skipped: it need not be.
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
                _wait(waiting)
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
        look = f"\nLook at: {where}" if where else ""
        return f"{self.prefix}{bench.name}, {self.name}: {wrong}\nThe rule: {' '.join(self.rule.split())}{look}"


def check_maker(bench: Callable[..., B], prefix: str = "") -> CheckMaker[B]:
    """Returns a decorator that makes checks of functions on a bench. `kind`: as in `Check`."""

    def make_check(
        *needs: str, shows: tuple[str, ...] = (), look: str = "", live: bool = False
    ) -> Callable[[Callable[[B], Awaitable[None] | None]], Check[B]]:
        def make(function: Callable[[B], Awaitable[None] | None]) -> Check[B]:
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
    """How a store is made, and what it is called."""

    make: Callable[[], T]
    """Makes one."""
    name: str
    """For reports."""


class BoundCheck(msgspec.Struct, frozen=True):
    """A check and what it checks. `str()` of it is a name for test reports."""

    check: Check[Any]
    """The check."""
    subject: Any
    """A wire, or a provider's record."""
    options: Json = {}
    """What the check is told beside it: see `checks`."""

    @property
    def name(self) -> str:
        """The check's name."""
        return self.check.name

    def __call__(self) -> None:
        """Runs the check.

        Raises:
            CheckFailed: the behaviour is not there.
            Skipped: it need not be.
        """
        __tracebackhide__ = True
        self.check(self.subject, **self.options)

    @property
    def shows(self) -> tuple[str, ...]:
        """The capabilities that the provider declares and that are seen when the check passes."""
        declared = getattr(self.subject, "capabilities", frozenset[str]())
        return tuple(
            capability
            for capability in (*self.check.needs, *self.check.shows)
            if capability in declared
        )

    @property
    def subject_name(self) -> str:
        """What is checked, for people."""
        return f"{self.check.prefix}{getattr(self.subject, 'name', self.subject)}"

    def __str__(self) -> str:
        return f"{self.subject_name}-{self.name}".replace(" ", "-")


def require(condition: object, problem: str) -> None:
    """Fails the check where the condition does not hold. `wrong` says what is the case in its
    place."""
    if not condition:
        raise CheckFailed(problem)


def require_equal(actual: Any, wanted: Any, subject: str) -> None:
    """Fails the check where something is not what it must be."""
    require(actual == wanted, f"{subject} must be {_short(wanted)} and is {_short(actual)}")


def attempt(work: Callable[[], T], what: str, *, but: tuple[type[Exception], ...] = ()) -> T | None:
    """Calls something that must not raise, for `what` → what it gives; `None`: it raised one of
    `but`, as it may."""
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
    """Returns the one exception in a task group's."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:300]} … {text[-80:]}"


def _wait(work: Awaitable[None]) -> None:
    """Runs a coroutine to its end in an event loop of its own, whether or not one runs here."""
    portal = Portal()
    try:
        portal.call(cast("Any", work))
    finally:
        portal.close()
