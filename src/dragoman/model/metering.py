"""Who pays for the calls of models that a task makes: `charge` sets the payer, and each call is
reserved with it before it is made and settled afterwards (`meter`, `meter_vectors`).

The payer is in the task's context, so that it also pays for what the task starts: tools, agents that
tools ask, and other tasks. Without a payer nothing is done.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from decimal import Decimal
from functools import reduce
from math import ceil
from operator import add
from typing import NamedTuple, Protocol

import msgspec

from dragoman.cost import find_call_cost
from dragoman.errors import DragomanError
from dragoman.event import Event, MessageFinished, MessageStarted, PartDelta, RunError
from dragoman.message import Origin, Usage
from dragoman.result import BatchEmbeddingsResult

__all__ = [
    "Hold",
    "Payer",
    "PlannedCall",
    "SpentCall",
    "charge",
    "find_payer",
    "meter",
    "meter_vectors",
]

_CHARACTERS_A_TOKEN = 3
"""By which the tokens of an answer that broke off are estimated."""


class PlannedCall(NamedTuple):
    """A call of a model before it is made."""

    origin: Origin
    """Provider, endpoint and model."""
    count_input: Callable[[], int]
    """Estimates the tokens of its prompt."""
    output_tokens: int | None
    """The most tokens of its answer; `None`: the request sets no limit."""


class SpentCall(NamedTuple):
    """What a call took. An answer that broke off before its provider told is estimated."""

    usage: Usage
    """Its tokens."""
    cost: Decimal | None
    """In US dollars; `None`: the price is not known."""


class Hold(Protocol):
    """What is reserved for one call."""

    def settle(self, spent: SpentCall | None) -> None:
        """Replaces what is reserved by what was spent; `None`: nothing, the call failed. It does not
        wait, and is called once."""
        ...


class Payer(Protocol):
    """Pays for calls of models."""

    async def reserve(self, planned: PlannedCall) -> Hold:
        """Reserves what a call may take at most.

        Raises:
            BudgetError: there is not so much left.
            DragomanError: the call may not be made for another reason.
        """
        ...


_PAYER: ContextVar[Payer | None] = ContextVar("dragoman_payer", default=None)


def find_payer() -> Payer | None:
    """Returns who pays for calls that are made here, or None."""
    return _PAYER.get()


@contextmanager
def charge(payer: Payer | None) -> Generator[None]:
    """Has a payer pay for the calls that are made in the block, and by tasks that it starts."""
    token = _PAYER.set(payer)
    try:
        yield
    finally:
        _PAYER.reset(token)


def meter(
    batches: AsyncGenerator[list[Event], None], plan: Callable[[], PlannedCall]
) -> AsyncGenerator[list[Event], None]:
    """Returns the events of a call, which the payer pays for. If the payer refuses, the call is not
    made, and the only event is a `RunError`."""
    payer = _PAYER.get()
    return batches if payer is None else _meter(batches, plan(), payer)


async def _meter(
    batches: AsyncGenerator[list[Event], None], planned: PlannedCall, payer: Payer
) -> AsyncGenerator[list[Event], None]:
    """Yields the events of a call between its reservation and its settlement."""
    try:
        hold = await payer.reserve(planned)
    except DragomanError as error:
        # It was never started, so that closing it does nothing but say so.
        await batches.aclose()
        yield [RunError(error)]
        return
    tally = _Tally(planned)
    try:
        async with aclosing(batches):
            async for events in batches:
                tally.add(events)
                yield events
    finally:
        # Also if the reader leaves, or the task is cancelled.
        hold.settle(tally.sum_up())


async def meter_vectors(
    send: Callable[[], Awaitable[BatchEmbeddingsResult]], plan: Callable[[], PlannedCall]
) -> BatchEmbeddingsResult:
    """Returns the answer of an embeddings model, which the payer pays for.

    Raises:
        DragomanError: the payer refuses, or the call failed.
    """
    payer = _PAYER.get()
    if payer is None:
        return await send()
    planned = plan()
    hold, spent = await payer.reserve(planned), None
    try:
        result = await send()
        usage = msgspec.structs.replace(result.usage or Usage(), output_tokens=0)
        spent = SpentCall(usage, find_call_cost(planned.origin, usage))
    finally:
        hold.settle(spent)
    return result


class _Tally:
    """Counts what a call takes."""

    __slots__ = ("_characters", "_finishes", "_has_begun", "_planned")

    def __init__(self, planned: PlannedCall) -> None:
        self._planned = planned
        self._characters, self._has_begun = 0, False
        self._finishes: list[MessageFinished] = []

    def add(self, events: Sequence[Event]) -> None:
        """Takes the events of one network read."""
        for event in events:
            # Exact types: this runs for every event of every stream.
            if type(event) is PartDelta and type(event.delta) is str:
                self._characters += len(event.delta)
            elif type(event) is MessageStarted:
                self._has_begun = True
            elif type(event) is MessageFinished and _is_counted(event.usage):
                self._finishes.append(event)

    def sum_up(self) -> SpentCall | None:
        """Returns what the call took, as the provider told it, else an estimate; None: nothing came
        of it."""
        origin = self._planned.origin
        if not self._finishes:
            if not self._has_begun:
                return None
            usage = Usage(
                input_tokens=self._planned.count_input(),
                output_tokens=ceil(self._characters / _CHARACTERS_A_TOKEN),
            )
            return SpentCall(usage, find_call_cost(origin, usage))
        usages = [finish.usage for finish in self._finishes if finish.usage is not None]
        costs = [_find_cost(finish, origin) for finish in self._finishes]
        prices = [cost for cost in costs if cost is not None]
        cost = sum(prices, Decimal(0)) if len(prices) == len(costs) else None
        return SpentCall(reduce(add, usages), cost)


def _is_counted(usage: Usage | None) -> bool:
    return usage is not None and usage.input_tokens is not None


def _find_cost(finish: MessageFinished, planned: Origin) -> Decimal | None:
    """Returns the cost of a message; by the price of the model that was asked if that of the one that
    answered is not known."""
    origins = [planned] if finish.origin is None else [finish.origin, planned]
    costs = (find_call_cost(origin, finish.usage, None, finish.native) for origin in origins)
    return next((cost for cost in costs if cost is not None), None)
