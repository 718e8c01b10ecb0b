"""What may be watched of a run: `Hooks`, functions that are called when something begins and ends,
and what they are given."""

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
    "ModelRetry",
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
    """Which run."""
    model: str
    """The model string of the model that is asked first."""
    messages: tuple[Message, ...] = ()
    """The conversation that it begins with, the prompt included."""


class RunEnd(msgspec.Struct, frozen=True, eq=False):
    """A run ended, in whatever way."""

    start: RunStart
    """What was given when it began: the same value."""
    seconds: float
    """From its beginning."""
    outcome: Literal["success", "pending", "cancelled", "error"]
    """`pending`: it waits for what is in `result.pending`."""
    result: ChatResult[str]
    """What it gave, or what there was of it."""
    error: DragomanError | None = None
    """Why it failed, where it did."""


class ModelStart(msgspec.Struct, frozen=True, eq=False):
    """A request is about to be sent to a model."""

    run: RunInfo | None
    """Which run asks; `None`: a `ChatModel` is used without one."""
    target: Origin
    """Whom: provider, endpoint and model."""
    wire: str
    """Name of the wire that is spoken."""
    request: ModelRequest
    """What is asked."""


class ModelEnd(msgspec.Struct, frozen=True, eq=False):
    """A model has answered, or failed, or was cut off."""

    start: ModelStart
    """What was given when it began: the same value."""
    seconds: float
    """From `ModelStart` to the end of the answer."""
    first_seconds: float | None = None
    """From `ModelStart` to the first that came of the answer; `None`: nothing came."""
    origin: Origin | None = None
    """Who answered, with the response's id."""
    finish_reason: FinishReason = FinishReason.unspecified
    """Why the model stopped."""
    usage: Usage | None = None
    """Tokens of this call."""
    losses: tuple[Loss, ...] = ()
    """What the request had to leave out."""
    error: DragomanError | None = None
    """Why it failed, where it did."""
    reads: Sequence[Sequence[Event]] = ()
    """The events that came, one list for each read from the network; reads that gave a delta alone
    are left out."""

    @property
    def message(self) -> Message | None:
        """What the model said, without a piece in whose middle it was cut; put together each time
        that it is asked for. `None`: nothing came."""
        events = [
            event
            for read in self.reads
            for event in read
            if not isinstance(event, (PartStarted, PartDelta))
        ]
        return next(iter(fold(events)), None)

    @property
    def cost(self) -> Decimal | None:
        """US dollars, as `ModelCall.cost`; looked up each time that it is asked for. `None`:
        unknown.

        Raises:
            SettingsError: the extra `cost` is not installed.
        """
        message = self.message or Message.model()
        return call_cost(self.origin, self.usage, message.created_at, message.native)


class ToolStart(msgspec.Struct, frozen=True, eq=False):
    """A call is about to be run. Called in the task in which the tool then runs: what is set in its
    context, the tool sees."""

    run: RunInfo | None
    """Which run calls."""
    call: ToolCallPart
    """The call."""
    description: str = ""
    """The tool's, for models."""


class ToolEnd(msgspec.Struct, frozen=True, eq=False):
    """A call was run. Called in the task of `ToolStart`."""

    start: ToolStart
    """What was given when it began: the same value."""
    seconds: float
    """How long it took."""
    result: ToolResultPart | None = None
    """What the model is told; `None`: the tool asked a person, or was cancelled."""
    error: BaseException | None = None
    """What the tool raised, where it did."""


class ModelRetry(msgspec.Struct, frozen=True, eq=False):
    """An attempt failed, and there will be another: of the same model, or of the next one of a
    fallback."""

    run: RunInfo | None
    """Which run asks, where that is known."""
    provider: str
    """Name of the provider that failed."""
    attempt: int
    """Which one failed; the first is 1."""
    wait: float = 0.0
    """Seconds until the next."""
    status: int | None = None
    """HTTP status of the answer, where there was one."""
    error: DragomanError | None = None
    """What the attempt ended with, where that is known."""
    fallback: str | None = None
    """The model string of the model that is asked next, where it is another."""


class RequestLoss(msgspec.Struct, frozen=True, eq=False):
    """A request had to leave something out that no earlier one of its run did."""

    run: RunInfo | None
    """Which run asks."""
    target: Origin
    """Who cannot take it."""
    loss: Loss
    """What was left out, and why."""


class Hooks(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Functions that are called when something happens, each with one value that says what. `None`:
    nobody wants to know.

    Those of several `Hooks` are called in order, those of an end in reverse order, and awaited
    where they are async: a slow one slows the run. One that raises breaks nothing. For each start
    there is one end, whatever happens between them. An async end may itself be cut off where its
    run is cancelled while it waits.
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
    retry: Hook[ModelRetry] | None = None
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
    """From now on these watch whatever begins in this process, beside what agents have of their
    own. `close` of what is returned takes them back; so does its end, where it is used in `with`.

    Raises:
        TypeError: something is no `Hooks`.
    """
    global _everywhere
    _everywhere = (*_everywhere, *expect_each("hooks", hooks, Hooks))
    stack = ExitStack()
    stack.callback(_take_back, hooks)
    return stack


def _take_back(hooks: Sequence[Hooks]) -> None:
    global _everywhere
    remaining = [*_everywhere]
    for hook_set in hooks:
        remaining.remove(hook_set)
    _everywhere = tuple(remaining)


def find_active_hooks(run_hooks: tuple[Hooks, ...] = ()) -> tuple[Hooks, ...]:
    """Those that watch what begins now: everybody's, and its own; each once. A run keeps them in
    `RunInfo.hooks`."""
    if _everywhere:
        return tuple(dict.fromkeys((*_everywhere, *run_hooks)))
    return run_hooks


async def call_hooks(hooks: Sequence[Hooks], name: HookName, value: object) -> None:
    """Calls what hooks have of that name. What is raised is logged; a cancellation passes, once all
    are called."""
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
    """Waits also in a scope that is cancelled: what began is told of its end."""
    with anyio.CancelScope(shield=True):
        await waits


def log_failure(hook: Callable[..., Any] | None, error: Exception) -> None:
    """Logs what a hook raised, the first time."""
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
    """What requests of the current context carry."""
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
