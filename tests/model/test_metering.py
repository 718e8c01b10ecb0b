"""What a payer is told of a call."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from dragoman.event import Event, MessageFinished, MessageStarted
from dragoman.message import FinishReason, Origin, Role, Usage
from dragoman.model import metering
from dragoman.model.metering import PlannedCall, SpentCall, charge, meter

pytestmark = pytest.mark.anyio

ASKED = Origin("vendor-without-prices", None, "m")
USED = Usage(input_tokens=3, output_tokens=4)


class Payer:
    """Notes what it pays."""

    def __init__(self) -> None:
        self.paid: list[SpentCall | None] = []

    async def reserve(self, planned: PlannedCall) -> Payer:
        assert planned.origin == ASKED
        return self

    def settle(self, spent: SpentCall | None) -> None:
        self.paid.append(spent)


@pytest.mark.parametrize("told", [None, Origin("another-without-prices", None, "n")])
async def test_a_price_that_nobody_knows_is_looked_up_once_for_each_model(
    told: Origin | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced: list[Origin | None] = []
    find = metering.find_call_cost

    def count(origin: Origin | None, *rest: object) -> object:
        priced.append(origin)
        return find(origin, *rest)  # pyright: ignore[reportArgumentType] - passed on

    async def answer() -> AsyncGenerator[list[Event], None]:
        yield [MessageStarted("1", Role.MODEL)]
        yield [MessageFinished("1", FinishReason.stop, USED, origin=told)]

    monkeypatch.setattr(metering, "find_call_cost", count)
    payer = Payer()
    with charge(payer):
        events = [
            event
            async for page in meter(answer(), lambda: PlannedCall(ASKED, lambda: 3, None))
            for event in page
        ]
    assert len(events) == 2
    assert payer.paid == [SpentCall(USED, None)]
    assert priced == [*filter(None, [told]), ASKED]
