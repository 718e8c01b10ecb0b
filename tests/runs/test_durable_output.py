"""Durable runs whose output has a type or is checked: they go on from every prefix of their log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from dragoman import Agent, Capability, Limits, ModelRetry, RunRequest, ToolContext
from dragoman.errors import TypedOutputError
from dragoman.event import Custom, Event, RunError, RunFinished
from dragoman.orchestration.output_type import typed_output
from dragoman.orchestration.story_reader import read_story
from dragoman.request import ModelRequest
from dragoman.result import ChatResult
from dragoman.runs import Runs
from dragoman.runs.durable import make_request, read_result
from dragoman.runs.memory_log import MemoryLog
from dragoman.tools import handoff
from support.durable import RUN, Acts, Follower, begun, call, check_laws, durable_agent
from support.model import FORCING, PROVIDER
from support.prefixes import QUICK, finished, gone_on, same

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


class Sum(BaseModel):
    pounds: int


REQUEST = make_request("How much?", RUN, "t", None).replace(output_schema=typed_output(Sum).schema)
TWO_PHASES = msgspec.structs.replace(
    PROVIDER, capabilities=PROVIDER.capabilities - {Capability.typed_output_with_tools}
)


def result_of(events: Sequence[Event], output_type: Any = Sum) -> ChatResult[Any]:
    return read_result(read_story(events, RUN), events[-1], output_type)


async def check_every_prefix(
    make: Any, request: RunRequest, calls: int, output: Any, output_type: Any = Sum
) -> list[Event]:
    """Checks that the run gives the output from each prefix of its log. Returns the events of the
    run that nothing disturbed. `calls`: model calls that it takes."""
    before = await finished(request, make(Acts())[0])
    assert result_of(before, output_type).output == output
    for end in range(len(before)):
        told, acts = before[:end], Acts()
        a, model = make(acts)
        events = await gone_on(told, request, a)
        assert same(events[:end], told)
        check_laws(events)
        assert not {*begun(told)} & {*acts.done} & {"w1", "w2"}
        result = result_of(events, output_type)
        assert result.output == output, end
        assert result.metadata.keys() == result_of(before, output_type).metadata.keys(), end
        assert result.usage is not None
        assert result.usage.total_tokens == 11 * calls, end
        assert model.asked <= calls
    return before


async def test_typed_output_goes_on_with_what_it_was_told() -> None:
    plan = (
        ("I look.", call("look", "l1"), call("write", "w1")),
        ("five",),
        ('{"pounds":"x"}',),
        ('{"pounds":5}',),
    )

    def make(acts: Acts, **how: Any) -> tuple[Agent[Any], Follower]:
        return durable_agent(acts, plan, limits=Limits(output_retries=2, **how))

    before = await check_every_prefix(make, REQUEST, 4, Sum(pounds=5))
    # Each correction counts once, whichever process asked for it.
    for end in range(len(before)):
        a, model = durable_agent(Acts(), plan, limits=Limits(output_retries=1))
        events = await gone_on(before[:end], REQUEST, a)
        if not isinstance(events[-1], RunFinished):
            assert isinstance(events[-1], RunError)
            assert isinstance(events[-1].error, TypedOutputError)
            assert model.asked <= 3
        else:
            assert (
                sum(message.text.startswith("That is not") for message in check_laws(events)) == 2
            )


async def test_output_by_a_call_goes_on_and_is_taken_once() -> None:
    plan = (
        ("I look.", call("write", "w1")),
        ("It is five.",),
        ("So:", call("return_result", "r1", pounds="x")),
        ("Well:", call("return_result", "r2", pounds=5)),
    )

    def make(acts: Acts) -> tuple[Agent[Any], Follower]:
        return durable_agent(acts, plan, provider=FORCING, limits=Limits(output_retries=2))

    await check_every_prefix(make, REQUEST, 4, Sum(pounds=5))


class Phased(Follower):
    """Answers by the schema where it is given one."""

    def say(self, place: int, request: ModelRequest) -> Sequence[Any]:
        if request.output_schema is not None:
            return ('{"pounds":5}',)
        return self.plan[place]


async def test_output_in_two_phases_goes_on_in_its_phase() -> None:
    plan = (("I look.", call("look", "l1"), call("write", "w1")), ("It is five.",))

    def make(acts: Acts) -> tuple[Agent[Any], Follower]:
        return durable_agent(acts, plan, provider=TWO_PHASES, model=Phased)

    before = await check_every_prefix(make, REQUEST, 3, Sum(pounds=5))
    assert result_of(before).metadata["suppressedText"] == "It is five."
    # Once the first phase is over, it is not begun again.
    marked = next(
        place
        for place, event in enumerate(before)
        if isinstance(event, Custom) and event.name == "dragoman.set_aside"
    )
    a, model = make(Acts())
    await gone_on(before[: marked + 1], REQUEST, a)
    assert model.asked == 1


async def test_an_answer_that_is_stored_is_judged_again_and_not_changed_twice() -> None:
    judged: list[str] = []

    def check(_context: ToolContext[Any], output: str) -> str:
        judged.append(output)
        if "please" not in output:
            raise ModelRetry("Say please.")
        return f"{output} (checked)"

    plan = (("I write.", call("write", "w1")), ("Five.",), ("Five, please.",))

    def make(acts: Acts) -> tuple[Agent[Any], Follower]:
        return durable_agent(acts, plan, output_checks=[check], limits=Limits(output_retries=1))

    request = REQUEST.replace(output_schema=None)
    before = await check_every_prefix(make, request, 3, "Five, please. (checked)", str)
    judged.clear()
    await gone_on(before[:-1], request, make(Acts())[0])
    assert judged == ["Five, please. (checked)"]


async def test_a_hand_off_of_typed_output_goes_on() -> None:
    for provider, last in (
        (PROVIDER, ('{"pounds":5}',)),
        (FORCING, (call("return_result", "r1", pounds=5),)),
    ):

        def make(
            acts: Acts, provider: Any = provider, last: Any = last
        ) -> tuple[Agent[Any], Follower]:
            other, model = durable_agent(
                acts, (("I act.", call("write", "w9")), last), shift=1, provider=provider
            )
            plan = (("To b.", call("transfer_to_b", "t1")),)
            return durable_agent(Acts(), plan, tools=[handoff(other, "b")], provider=provider)[
                0
            ], model

        before = await finished(REQUEST, make(Acts())[0])
        assert result_of(before).output == Sum(pounds=5)
        for end in range(len(before)):
            events = await gone_on(before[:end], REQUEST, make(Acts())[0])
            check_laws(events)
            assert result_of(events).output == Sum(pounds=5), end


async def test_an_output_type_is_stored_as_its_schema() -> None:
    a, _ = durable_agent(Acts(), (('{"result":[1,2]}',),))
    async with MemoryLog() as log, Runs(log, agents={"a": a}, **QUICK) as runs:
        await runs.enqueue("a", "Two numbers.", run_id=RUN, output_type=list[int])
        assert await runs.drive(RUN) is False
        assert (await runs.result(RUN, output_type=list[int])).output == [1, 2]
        assert (await runs.result(RUN)).output == '{"result":[1,2]}'
        with pytest.raises(TypedOutputError):
            await runs.result(RUN, output_type=Sum)
