"""Hooks: functions that are called when runs, model calls and tools begin and end, and the values
that they receive.

An agent has hooks (`Agent(hooks=…)`), and `add_global_hooks` adds some for the whole process. A run
collects both once, in `RunInfo.hooks`; the loop, the model layer and the tools call them through
`call_hooks`, which never lets a hook's exception reach the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from decimal import Decimal
from inspect import isawaitable
from typing import Any, Literal, TypeAlias, TypeVar
from weakref import ref

import anyio
import msgspec

from dragoman.arguments import expect_callable, expect_each
from dragoman.cost import call_cost
from dragoman.errors import DragomanError
from dragoman.event import Event, PartDelta, PartStarted
from dragoman.fold import fold
from dragoman.logs import logger
from dragoman.loss import Loss
from dragoman.message import FinishReason, Message, Origin, ToolCallPart, ToolResultPart, Usage
from dragoman.request import ModelRequest, RunInfo
from dragoman.result import ChatResult

__all__ = [
    "Hook",
    "HookName",
    "Hooks",
    "ModelEnd",
    "RequestRetry",
    "ModelStart",
    "RequestLoss",
    "RunEnd",
    "RunStart",
    "ToolEnd",
    "ToolStart",
    "find_active_hooks",
    "add_global_hooks",
    "log_failure",
    "call_hooks",
    "collect_headers",
]

T = TypeVar("T")

Hook: TypeAlias = Callable[[T], Awaitable[None] | None]
"""A function, plain or async, of what happened. What it raises is logged, once for each function,
and changes nothing."""


class RunStart(msgspec.Struct, frozen=True, eq=False):
    """A run begins."""

    run: RunInfo
    """The run."""
    model: str
    """Model string of the model that is asked first."""
    messages: tuple[Message, ...] = ()
    """The conversation at the beginning, with the prompt."""


class RunEnd(msgspec.Struct, frozen=True, eq=False):
    """A run ended."""

    start: RunStart
    """The value of its start."""
    seconds: float
    """Seconds since the start."""
    outcome: Literal["success", "pending", "cancelled", "error"]
    """How it ended. `pending`: it waits for the interrupts in `result.pending`."""
    result: ChatResult[str]
    """The result, or as much as there was."""
    error: DragomanError | None = None
    """Why it failed; `None` if it did not."""


class ModelStart(msgspec.Struct, frozen=True, eq=False):
    """A request is about to be sent to a model."""

    run: RunInfo | None
    """The run that asks; `None` if a `ChatModel` is used without a run."""
    target: Origin
    """Provider, endpoint and model."""
    wire: str
    """Name of the wire."""
    request: ModelRequest
    """The request."""


class ModelEnd(msgspec.Struct, frozen=True, eq=False):
    """A model has answered, or failed, or was cut off."""

    start: ModelStart
    """The value of its start."""
    seconds: float
    """Seconds from `ModelStart` to the end of the answer."""
    first_seconds: float | None = None
    """Seconds from `ModelStart` to the first event of the answer; `None` if nothing came."""
    origin: Origin | None = None
    """Provider and model that answered, with the response's id."""
    finish_reason: FinishReason = FinishReason.unspecified
    """Why the model stopped."""
    usage: Usage | None = None
    """Tokens of this call."""
    losses: tuple[Loss, ...] = ()
    """What the request had to leave out."""
    error: DragomanError | None = None
    """Why it failed; `None` if it did not."""
    reads: Sequence[Sequence[Event]] = ()
    """The events that came, one list per network read, without reads of a single delta."""

    @property
    def message(self) -> Message | None:
        """Returns for hooks the model's message without a piece that was cut, built anew on each
        access, or None if nothing came. `None` if nothing came."""
        events = [
            event
            for read in self.reads
            for event in read
            if not isinstance(event, (PartStarted, PartDelta))
        ]
        return next(iter(fold(events)), None)

    @property
    def cost(self) -> Decimal | None:
        """Returns for hooks the cost in US dollars, as `ModelCall.cost`, or None if unknown. It is
        looked up on each access. `None`: unknown.

        Raises:
            SettingsError: the extra `cost` is not installed.
        """
        message = self.message or Message.model()
        return call_cost(self.origin, self.usage, message.created_at, message.native)


class ToolStart(msgspec.Struct, frozen=True, eq=False):
    """A call is about to be run. The hook runs in the task of the tool, so the tool sees context
    variables that the hook sets."""

    run: RunInfo | None
    """The run that makes the call."""
    call: ToolCallPart
    """The call."""
    description: str = ""
    """Description of the tool for models."""


class ToolEnd(msgspec.Struct, frozen=True, eq=False):
    """A call was run. The hook runs in the task of `ToolStart`."""

    start: ToolStart
    """The value of its start."""
    seconds: float
    """Seconds that the call took."""
    result: ToolResultPart | None = None
    """The result for the model; `None` if the tool asked a person, or was cancelled."""
    error: BaseException | None = None
    """The exception that the tool raised; `None` if it did not."""


class RequestRetry(msgspec.Struct, frozen=True, eq=False):
    """An attempt failed, and another follows: with the same model, or the next one of a
    fallback."""

    run: RunInfo | None
    """The run that asks, if it is known."""
    provider: str
    """Name of the provider that failed."""
    attempt: int
    """Number of the failed attempt, from 1 on."""
    wait: float = 0.0
    """Seconds until the next attempt."""
    status: int | None = None
    """HTTP status of the answer, if there was one."""
    error: DragomanError | None = None
    """The error of the attempt, if it is known."""
    fallback: str | None = None
    """Model string of the model that is asked next; `None` for the same model."""


class RequestLoss(msgspec.Struct, frozen=True, eq=False):
    """A request had to leave something out that no earlier one of its run did."""

    run: RunInfo | None
    """The run that asks."""
    target: Origin
    """Provider and model that cannot take it."""
    loss: Loss
    """What was left out, and why."""


class Hooks(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Functions that are called when something happens, each with one value that describes it.

    Functions of several `Hooks` are called in order, those for an end in reverse order. Async ones
    are awaited, so a slow hook slows the run. A hook that raises breaks nothing. Each start has
    exactly one end, whatever happens between them. An async end may be cut off if the run is
    cancelled while it waits.
    """

    run_start: Hook[RunStart] | None = None
    """Before a run's first event."""
    run_end: Hook[RunEnd] | None = None
    """After its last one, also when it failed, was cancelled or was left."""
    model_start: Hook[ModelStart] | None = None
    """Before each request to a model, those of a fallback included."""
    model_end: Hook[ModelEnd] | None = None
    """After each, whatever came of it."""
    tool_start: Hook[ToolStart] | None = None
    """Before a tool is run."""
    tool_end: Hook[ToolEnd] | None = None
    """After it."""
    retry: Hook[RequestRetry] | None = None
    """Before a failed request is sent again, or another model is asked in its place."""
    loss: Hook[RequestLoss] | None = None
    """For each thing that a request has to leave out."""
    model_context: Callable[[ModelStart], AbstractContextManager[Any]] | None = None
    """Stands around the sending of a request, until the beginning of its answer: what it sets in
    the context, `propagate` and the HTTP client see."""
    propagate: Callable[[], Mapping[str, str]] | None = None
    """Headers that requests of the current context carry, such as `traceparent`."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            expect_callable(name, getattr(self, name), "a function")


HookName = Literal[
    "run_start", "run_end", "model_start", "model_end", "tool_start", "tool_end", "retry", "loss"
]
"""Name of one of the functions of `Hooks`."""

_LOG = logger("hooks")
_ENDS = ("run_end", "model_end", "tool_end")
_everywhere: tuple[Hooks, ...] = ()
_failures: dict[int, object] = {}
"""Id of a function that has failed → a reference to it, which goes when the function does."""


def add_global_hooks(*hooks: Hooks) -> ExitStack:
    """Adds hooks for everything that begins in this process from now on, beside those of agents.

    Returns a context manager: its `close()`, or the end of its `with` block, removes them.

    Raises:
        TypeError: an argument is not a `Hooks`.
    """
    global _everywhere
    _everywhere = (*_everywhere, *expect_each("hooks", hooks, Hooks))
    stack = ExitStack()
    stack.callback(_take_back, hooks)
    return stack


def _take_back(hooks: Sequence[Hooks]) -> None:
    """Removes global hooks that were added."""
    global _everywhere
    remaining = [*_everywhere]
    for hook_set in hooks:
        remaining.remove(hook_set)
    _everywhere = tuple(remaining)


def find_active_hooks(run_hooks: tuple[Hooks, ...] = ()) -> tuple[Hooks, ...]:
    """Returns the active hooks: the global ones and a run's own, each once. A run keeps them in
    `RunInfo.hooks`."""
    if _everywhere:
        return tuple(dict.fromkeys((*_everywhere, *run_hooks)))
    return run_hooks


async def call_hooks(hooks: Sequence[Hooks], name: HookName, value: object) -> None:
    """Calls the hook functions with a name. Exceptions are logged; a cancellation is raised once
    all functions were called."""
    stopped: BaseException | None = None
    is_end = name in _ENDS
    # Ends in reverse, so that hooks nest as blocks do.
    for hook_set in reversed(hooks) if is_end else hooks:
        hook = getattr(hook_set, name)
        if hook is None:
            continue
        try:
            waits = hook(value)
            if waits is not None and isawaitable(waits):
                await (_await_shielded(waits) if is_end else waits)
        except Exception as error:  # noqa: BLE001 - whatever code of the user's raises
            log_failure(hook, error)
        except BaseException as error:  # noqa: BLE001 - raised below
            stopped = stopped or error
    if stopped is not None:
        raise stopped


async def _await_shielded(waits: Awaitable[Any]) -> None:
    """Awaits the end of something even in a cancelled scope, since its start was reported."""
    with anyio.CancelScope(shield=True):
        await waits


def log_failure(hook: Callable[..., Any] | None, error: Exception) -> None:
    """Logs the failure of a hook, the first time."""
    key = id(hook)
    if key in _failures:
        return
    try:
        _failures[key] = ref(hook, lambda _: _failures.pop(key, None))
    except TypeError:
        # Of a class without weak references.
        _failures[key] = hook
    _LOG.error("a hook failed, and is called all the same: %r", hook, exc_info=error)


def collect_headers(hooks: Iterable[Hooks]) -> dict[str, str]:
    """Returns the headers, from hooks, that requests of the current context carry, from every
    `propagate`."""
    merged: dict[str, str] = {}
    for hook_set in hooks:
        propagate = hook_set.propagate
        if propagate is None:
            continue
        try:
            more: dict[Any, Any] = dict(propagate())
            for name, text in more.items():
                if not (isinstance(name, str) and isinstance(text, str)):
                    raise TypeError(f"headers are texts: {more!r:.200}")  # noqa: TRY301 - as what a hook raises
            merged |= more
        except Exception as error:  # noqa: BLE001 - whatever code of the user's raises
            log_failure(propagate, error)
    return merged
