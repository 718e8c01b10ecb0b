"""The beginning of a run: the conversation that it continues, and its own first messages
(`RunBeginning`).

The history may have to be read from a thread, and answers to its interrupts may depend on tools
that toolsets list only later. A durable run may have begun in an earlier process: it goes on from
what its log tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Literal

import msgspec

from dragoman.arguments import expect_each
from dragoman.errors import InvalidRequestError, ResumeError
from dragoman.hooks import Hooks
from dragoman.interrupt import Resume
from dragoman.limits import Limits
from dragoman.loss import Loss, refusal_error
from dragoman.memory.conversation import ConversationRecorder
from dragoman.memory.memory import Memory
from dragoman.message import MarkPart, Message, Role, ToolCallPart, ToolResultPart
from dragoman.model.agent_models import Models
from dragoman.orchestration import MessageAccumulator, StreamingOrchestrator, StreamingState
from dragoman.orchestration.going_on import find_calls, find_transfer, settle_decisions
from dragoman.orchestration.interrupts import WaitingCall, find_waiting_calls, has_new_prompt
from dragoman.orchestration.output_checks import OutputCheck
from dragoman.orchestration.resume import CallPlan, Decision, ResumePlan, decide_calls
from dragoman.orchestration.seal import Seal
from dragoman.orchestration.story import Story
from dragoman.prompt import RunOptions, suggest_place
from dragoman.repair import OpenCall, find_missing_results, find_open_calls
from dragoman.request import ModelRequest
from dragoman.tools import Tool, ToolExecutor, Toolset
from dragoman.tools.agent_tool import Transfer

__all__ = ["OnDoubt", "RunBeginning", "RunDefaults"]


OnDoubt = Literal["tell", "ask"]
"""What is done with a call that may have acted before its process ended."""


class RunDefaults(msgspec.Struct, frozen=True, eq=False):
    """The parts of an agent that all of its runs share."""

    models: Models
    """Makes the chat model of a run."""
    tools: tuple[Tool | Toolset, ...]
    """The agent's tools."""
    system: Message | None
    """Goes before conversations that do not begin with a system message of the same text."""
    request: ModelRequest
    """Settings, options and server tools."""
    hooks: tuple[Hooks, ...]
    """Hooks of its runs."""
    limits: Limits
    """How far a run may go."""
    on_doubt: OnDoubt
    """Whether the model is told of a call that may have acted, or a person is asked."""
    approval_key: bytes | None
    """Signs interrupts."""
    executor: ToolExecutor | None
    """Runs tools; `None`: the default executor."""
    orchestrator: Callable[[], StreamingOrchestrator] | StreamingOrchestrator | None
    """Replaces the provider's and the default orchestrators."""
    accumulator: Callable[[], MessageAccumulator] | None
    """Replaces the provider's and the default accumulators."""
    output_checks: tuple[OutputCheck, ...]
    """Judge the output of its runs."""
    memory: Memory | None
    """Stores conversations that have a thread."""
    display_name: str
    """The agent's name for people."""
    new_id: Callable[[], str]
    """Makes the id of a message or a run."""
    clock: Callable[[], datetime]
    """Returns the time."""


class RunBeginning:
    """The beginning of a run: its new messages, and the history once it is known.

    The run's own messages are the new ones and, before or in the first of them, an error result for
    each open call at the end of the history. Whatever was sent once stays in the history, even when
    the real result comes later. If the conversation waits for something, answers come first; while
    it still waits and the user said nothing else, they are the only messages.
    """

    def __init__(
        self,
        agent: RunDefaults,
        run_options: RunOptions,
        state: StreamingState,
        conversation: ConversationRecorder | None,
    ) -> None:
        """Prepares the beginning of a run."""
        self._agent, self._options = agent, run_options
        self._state, self._conversation = state, conversation
        self._has_toolsets = state.toolset is not None

    def begin_now(self) -> tuple[Message, ...] | None:
        """Begins the run at once and returns its own messages. `None` if the thread must be read
        first, or if tools of sets decide something: `begin` does it then, once the run has begun.

        Raises:
            ResumeError: an answer does not fit what the conversation waits for.
            InvalidRequestError: there is nothing to send, or a result had to be made up and `on_loss` is `error`.
            TypeError: the history holds something that is no `Message`.
        """
        if self._conversation is not None and self._conversation.reads:
            return None
        if self._has_toolsets:
            tools = None
        else:
            tools = self._state.tool_map
        return self._begin(self._options.get("history", ()), tools)

    async def begin(self) -> tuple[Message, ...]:
        """Begins the run and returns its own messages once the thread is read and the tools of sets
        are listed; raises as `begin_now`."""
        history = await self._history()
        if self._conversation is not None and self._conversation.restore_state():
            self._state.name_state()
        return self._begin(history, self._state.tool_map) or ()

    async def messages(self) -> Sequence[Message]:
        """Returns the conversation that the run begins with, as far as it is known before the tools
        of sets are."""
        return self._with_system([*await self._history(), *self._state.asked])

    async def _history(self) -> Iterable[Message]:
        """Returns the history that the run starts with, from the options or from its stored
        conversation."""
        history = self._options.get("history", ())
        if self._conversation is None:
            return history
        return await self._conversation.load(history, self._state.asked)

    def _with_system(self, messages: list[Message]) -> list[Message]:
        """Returns the messages that a run begins with, and the agent's system message before them
        unless they begin with its words."""
        system = self._agent.system
        if not messages or system is None:
            return messages
        first = messages[0]
        has_system = first.role is Role.SYSTEM and first.text == system.text
        if has_system:
            return messages
        return [system, *messages]

    def _begin(
        self, history: Iterable[Message], tools: Mapping[str, Tool] | None
    ) -> tuple[Message, ...] | None:
        """Begins the state. Returns the run's own messages; `None` if tools decide how it begins,
        and are not known. `tools`: `None` if those of sets are not listed yet."""
        history = expect_each("history", history, Message, hint=suggest_place)
        story = self._state.story
        if story is None:
            return self._begin_new(history, tools)
        # A thread holds messages of this run, too.
        own_ids = {message.id for message in (*story.messages, *self._state.asked)}
        history = [*takewhile(lambda message: message.id not in own_ids, history)]
        if story.has_answer or self._has_results(story):
            return self._go_on(story, history, tools)
        opening = self._begin_new(history, tools)
        if opening is None:
            return None
        return self._state.take_over_opening(opening, story.messages)

    def _has_results(self, story: Story) -> bool:
        """True if at the run's beginning the results of the calls that were answered are told."""
        asked_ids = {message.id for message in self._state.asked}
        return bool(self._options.get("resume")) and any(
            message.id not in asked_ids for message in story.messages
        )

    def _go_on(
        self, story: Story, history: list[Message], tools: Mapping[str, Tool] | None
    ) -> tuple[Message, ...] | None:
        """Begins a run that goes on where an earlier process of the run has stopped. Returns those
        of the run's own messages that are not told yet; `None` if the tools are not known yet."""
        told_ids = {message.id for message in story.messages}
        untold = [message for message in self._state.asked if message.id not in told_ids]
        if story.has_answer:
            untold = []
        messages = self._with_system([*history, *story.messages, *untold])
        if tools is None:
            self._state.begin(messages, ())
            return None
        asks = self._agent.on_doubt == "ask"
        plan = find_calls(messages, story, asks=asks) or self._still_waiting(messages, tools)
        if plan is None and story.is_returned:
            plan = CallPlan((), {}, ())
        if plan is None and (accepted := find_transfer(messages, story, tools)):
            self._state.transfer = self._resume_transfer(*accepted, history, tools)
        return self._state.begin(messages, tuple(untold), plan=plan)

    def _resume_transfer(
        self,
        call: ToolCallPart,
        transfer: Transfer,
        history: Sequence[Message],
        tools: Mapping[str, Tool],
    ) -> Transfer:
        """Returns a hand-off with the other agent's run and the answers, if it is an answered one."""
        resume = expect_each("resume", self._options.get("resume", ()), Resume)
        if not resume:
            return transfer
        messages = self._with_system([*history, *self._state.asked])
        waiting, forged = self._waiting(messages, tools)
        for decision in self._decide(messages, resume, tools, waiting, forged):
            if decision.waiting.call.call.id == call.id:
                new = self._state.asked[self._count_answers() :]
                return Transfer(transfer.tool, decision.runs, decision.resume, tuple(new))
        return transfer

    def _count_answers(self) -> int:
        """Returns how many of the new messages come before the first one that says something."""
        speaks = [has_new_prompt([message]) for message in self._state.asked]
        return [*speaks, True].index(True)

    def _decide(
        self,
        messages: Sequence[Message],
        resume: Sequence[Resume],
        tools: Mapping[str, Tool],
        waiting: Sequence[WaitingCall],
        forged: Sequence[OpenCall],
    ) -> list[Decision]:
        """Returns the decisions about the calls of a conversation that are answered."""
        return decide_calls(
            resume,
            waiting,
            messages,
            tools,
            self._state.seal,
            self._agent.clock(),
            has_toolsets=self._has_toolsets,
            forged=forged,
        )

    def _still_waiting(
        self, messages: Sequence[Message], tools: Mapping[str, Tool]
    ) -> ResumePlan | None:
        """Returns the plan that a run begins with if the conversation waits and nothing was
        decided, else `None`."""
        if has_new_prompt(messages) or not (waiting := self._waiting(messages, tools)[0]):
            return None
        return ResumePlan(unanswered=tuple(waiting))

    def _begin_new(
        self, history: list[Message], tools: Mapping[str, Tool] | None
    ) -> tuple[Message, ...] | None:
        """Begins a run that has told nothing but some of its first messages. See `_begin`."""
        resume = expect_each("resume", self._options.get("resume", ()), Resume)
        messages = self._with_system([*history, *self._state.asked])
        made_up, losses = find_missing_results(messages)
        if resume or made_up:
            if tools is None:
                self._state.begin(messages, ())
                return None
            if (resumed := self._resume(messages, resume, tools, losses)) is not None:
                return resumed
        if not messages or messages[-1].role is not Role.USER:
            raise InvalidRequestError(
                "nothing to send: without a prompt the history must end in a user message or in tool results"
            )
        self._refuse(losses)
        own = self._with_results(self._state.asked, made_up)
        messages[len(messages) - len(self._state.asked) :] = own
        return self._state.begin(messages, tuple(own), losses)

    def _with_results(
        self, asked: Sequence[Message], results: Sequence[ToolResultPart]
    ) -> list[Message]:
        """Returns a run's new messages with results of calls that nobody answered: in the first
        message if that has results, else before it."""
        own = [*asked]
        if not results:
            return own
        if own and own[0].tool_results:
            own[0] = own[0].replace(content=(*own[0].content, *results))
            return own
        message = Message.user(*results)
        own.insert(0, message.replace(id=self._agent.new_id(), created_at=self._agent.clock()))
        return own

    def _resume(
        self,
        messages: list[Message],
        resume: Sequence[Resume],
        tools: Mapping[str, Tool],
        losses: Sequence[Loss],
    ) -> tuple[Message, ...] | None:
        """Begins a run that goes on with a conversation that waits. Returns the run's own messages;
        `None` if nothing was answered, and nothing is waited for any longer."""
        waiting, forged = self._waiting(messages, tools)
        decided = self._decide(messages, resume, tools, waiting, forged)
        _check_trust(decided, self._options, self._state.seal, forged)
        if (story := self._state.story) is not None:
            asks, opened = self._agent.on_doubt == "ask", find_open_calls(messages)
            decided = settle_decisions(decided, opened, story, tools, asks=asks)
        answered = [decision.waiting.call for decision in decided]
        unanswered = tuple([call for call in waiting if call.call not in answered])
        is_speaking = has_new_prompt(messages)
        goes_on_waiting = bool(unanswered) and not is_speaking
        if not resume and not goes_on_waiting:
            return None
        answers = self._state.asked[: self._count_answers()]
        plan = ResumePlan(
            tuple(decided), unanswered, tuple(self._state.asked[len(answers) :]), is_speaking
        )
        # While it waits, calls without a result are no loss: their answers may still come.
        gone: list[Loss] = []
        if not goes_on_waiting:
            gone = _without_calls(losses, answered)
        self._refuse(gone)
        end = len(messages) - len(self._state.asked) + len(answers)
        return self._state.begin(messages[:end], tuple(answers), gone, plan)

    def _waiting(
        self, messages: Sequence[Message], tools: Mapping[str, Tool]
    ) -> tuple[list[WaitingCall], list[OpenCall]]:
        """Returns the calls that wait when a run begins, and which of them a client may have made
        up."""
        seal, has_toolsets = self._state.seal, self._has_toolsets
        waiting = find_waiting_calls(messages, tools, seal, has_toolsets=has_toolsets)
        if self._options.get("trusted_history", True):
            return waiting, []
        if self._conversation is None:
            stored = ()
        else:
            stored = self._conversation.loaded or ()
        # A call that a client may have made up is not signed: its signature would be the agent's
        # word for it.
        unsigned = find_waiting_calls(messages, tools, Seal(), has_toolsets=has_toolsets)
        checked: list[WaitingCall] = []
        forged: list[OpenCall] = []
        for signed_call, unsigned_call in zip(waiting, unsigned, strict=True):
            if _is_stored(signed_call, messages, stored):
                checked.append(signed_call)
            else:
                checked.append(unsigned_call)
                forged.append(unsigned_call.call)
        return checked, forged

    def _refuse(self, losses: Sequence[Loss]) -> None:
        if self._state.request.on_loss == "error" and (error := refusal_error(losses)) is not None:
            raise error


def _without_calls(losses: Iterable[Loss], calls: Iterable[OpenCall]) -> list[Loss]:
    """Returns the losses that are not of these calls."""
    slots = {(call.position, call.place) for call in calls}
    return [loss for loss in losses if (loss.message, loss.part) not in slots]


def _is_stored(
    waiting: WaitingCall, messages: Sequence[Message], stored: Sequence[Message]
) -> bool:
    """True if a call that waits when a run begins, and all that is noted of it, comes from a
    memory."""
    ids = {message.id for message in stored}
    behind = messages[waiting.call.position :]
    noted = [
        message
        for message in behind
        if any(isinstance(piece, MarkPart) for piece in message.content)
    ]
    return all(message.id in ids for message in (behind[0], *noted))


def _check_trust(
    decided: Sequence[Decision], run_options: RunOptions, seal: Seal, forged: Sequence[OpenCall]
) -> None:
    """Raises an error if a run is to begin with a call that cannot be justified, or not be noted.
    `forged`: calls that may be made up."""
    run = [decision for decision in decided if decision.result is None]
    if not run:
        return
    if seal.key is None and any(decision.waiting.call in forged for decision in run):
        raise ResumeError(
            "a call is to be run that a history from a client says was asked for and approved, and nothing shows that it was: "
            "give the agent an approval_key, or take the history from a store of your own"
        )
    if run_options.get("claim") is not None and not (
        run_options.get("thread_id") or run_options.get("run_id")
    ):
        raise InvalidRequestError(
            "an answer is noted under its conversation: a send with claim= needs a thread_id="
        )
