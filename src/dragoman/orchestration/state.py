"""The state of a run, as its orchestrator sees it.

A run makes one `StreamingState` and passes it to every method of its orchestrator. It holds what
lasts for the whole run (request, tools, limits, shared state) and what one step replaces: the
`Intake` of the message that streams and the `ToolRound` of its calls.

`reset_for_new_message` begins a model call, `begin_round` a round of tools, and `add_to_history`
ends either. `conversation_history`, `add_to_history` and `request_next_message_prefix` have the
names of the seeds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from operator import is_
from typing import Any, cast

import msgspec

from dragoman.codec.turns import holds_only_answers, next_turn_id
from dragoman.errors import DragomanError
from dragoman.event import CALLS_BEGUN, SET_ASIDE, Custom, Event, PartStarted
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Message, Role, ToolCallPart, ToolResultPart
from dragoman.orchestration.accumulator import Intake, MessageAccumulator
from dragoman.orchestration.iteration import UNSAID, OutputText
from dragoman.orchestration.output_checks import OutputChecks
from dragoman.orchestration.resume import CallPlan, ResumePlan
from dragoman.orchestration.seal import SIGNED, Seal
from dragoman.orchestration.shown_output import is_text
from dragoman.orchestration.story import Story
from dragoman.orchestration.tool_round import ToolRound
from dragoman.request import ModelRequest, ToolSpec
from dragoman.result import ChatResult
from dragoman.runtime import now
from dragoman.tools import (
    BoundExecutor,
    Outbox,
    ParallelToolExecutor,
    SharedState,
    Tool,
    ToolContext,
    ToolExecutor,
    ToolIdCoordinator,
    Toolset,
    split_tools,
)
from dragoman.tools.agent_tool import Transfer
from dragoman.tools.call_record import CallRecords
from dragoman.tools.inner_runs import Account
from dragoman.tools.tool_result import to_json_value

__all__ = ["Claim", "StreamingState", "claim_within"]

Claim = Callable[[str, str, str], bool | Awaitable[bool]]
"""Function of the ids of a conversation, of an answer in it, and of the run that acts on it.
Returns True if no other run did."""
_UNSEALED = Seal()


class StreamingState:
    """The mutable state of one run: its history, its tools, and its place in the loop."""

    def __init__(
        self,
        conversation_history: Iterable[Message],
        tools: Iterable[Tool | Toolset] | Mapping[str, Tool] = (),
        *,
        request: ModelRequest | None = None,
        executor: ToolExecutor | None = None,
        accumulator: Callable[[], MessageAccumulator] = MessageAccumulator,
        validate: Callable[[str], Any] | None = None,
        checks: OutputChecks | None = None,
        output_retries: int = 1,
        new_id: Callable[[], str] | None = None,
        clock: Callable[[], datetime] = now,
        deps: Any = None,
        run_id: str = "",
        thread_id: str = "",
        resource_id: str | None = None,
        context: tuple[Any, ...] = (),
        shared: Any = None,
        metadata: JsonMap = {},
        seal: Seal = _UNSEALED,
        claim: Claim | None = None,
        plan: ResumePlan | CallPlan | None = None,
        story: Story | None = None,
    ) -> None:
        """Creates the state of a run, with a copy of the history. `tools` may be a mapping by name.

        Raises:
            ToolError: two tools have one name.
        """
        self._history = list(conversation_history)
        self.turn = next_turn_id(self._history)
        """Turn of the model's next message; `None`: it begins one; empty: it continues an unnamed
        one."""
        if isinstance(tools, Mapping):
            tools = cast("Mapping[str, Tool]", tools).values()
        self.fixed_tools, self.toolset = split_tools(tools)
        """The tools that are always there, by name; and all in one set, where some come from
        sets."""
        self._entered = False
        self.tool_map = self.fixed_tools
        """Tools of this step, by name: those that the model was offered and that may run."""
        self.specs = tuple(tool.spec for tool in self.tool_map.values())
        """Specifications of the step's tools, for requests."""
        self.request = request or ModelRequest("")
        """Settings, options and server tools of every request of this run."""
        self.outbox = Outbox()
        """Events that tools emitted and the run has not shown yet."""
        self.executor = BoundExecutor(
            executor or ParallelToolExecutor(), self.tool_context, self._begin_calls
        )
        self.call_id: str | None = None
        """Id of the call in whose tool the run works; `None`: it works in none."""
        self.seal = seal
        """Signs the run's interrupts."""
        self.claim = claim
        """Returns True if an allowed call may run now; `None`: claims are not recorded."""
        self.stored: Callable[[], Awaitable[None]] | None = None
        """Waits until all events of the run so far are stored; `None`: no log stores them."""
        self.plan = plan
        """What to do before the model is asked, if the conversation waited or the run goes on."""
        self.story = story
        """What the log tells of the run's earlier processes; `None`: the run is not durable."""
        self._inner = {} if story is None else dict(story.inner)
        """Stories of runs of agents, which have not been taken up again yet."""
        self.records = CallRecords()
        """Records of the calls that are running."""
        self.tool_id_coordinator = ToolIdCoordinator()
        self.validate = validate
        """Checks the type of the output; raises `ValueError` with a message for the model."""
        self.checks = checks
        """Functions of the user's that judge a valid output; `None`: there are none."""
        self.refused: str | None = None
        """Words for the model from the check that sent its last output back."""
        self.output_retries = output_retries - (0 if story is None else story.corrections)
        """Number of corrections that the model may still be asked for."""
        self.new_id = new_id
        self.clock = clock
        self.deps = deps
        self.run_id = run_id
        self.thread_id = thread_id
        self.resource_id = resource_id
        self.context = context
        """Context that the client sent besides the conversation."""
        if story is not None and story.has_state:
            shared = story.state
        self.shared = SharedState(shared, self.outbox)
        """The state that client and agent share."""
        self.metadata = metadata
        self.asked: Sequence[Message] = ()
        """The messages of this run's request."""
        self.done = False
        self.should_prefix_next_message = False
        self.empty_after_tools_continuations = 0
        self.account = Account()
        """Calls and tokens of the run and of the runs inside its tools."""
        self.losses: dict[Loss, None] = {}
        """Losses of the run's requests, each once and in order."""
        self.calls = self.account.calls
        """Model calls that have ended, also those of agents inside tools."""
        self.output: str | None = None
        """The output where it is not the text of the messages (a `return_result` call)."""
        self.suppressed_text = ""
        self.set_aside: Json | None = None
        """Metadata of the message that ended the first of two phases; `None` before that, or with
        one phase."""
        self.output_options: JsonMap = {}
        """Options that set the type of the output."""
        self.transfer: Transfer | None = None
        """The hand-off that follows the round's other calls."""
        self.failure: DragomanError | None = None
        """The error that ends the run after its results are shown."""
        self.new_accumulator = accumulator
        self.shows: Callable[[PartStarted], bool] = is_text
        """True for parts of model messages that are output."""
        self.output_text: OutputText | None = OutputText()
        """Reads the output of a built-in orchestrator's steps; `None` if no code wraps it."""
        self.stands_alone = True
        """True if no run shows the steps, so that the output itself contains the newlines between
        messages."""
        self.accumulator = accumulator()
        """Builds the message that is being streamed; a new one for each message."""
        self.intake: Intake | None = None
        """Takes the message that is being streamed; `None` once it is finished."""
        self.tool_round: ToolRound | None = None
        """The running tools; `None` once their results are shown."""
        self.is_first_chunk_of_message = True
        """True while nothing of the message was shown."""
        self.last_result: ChatResult[Message] | None = None
        """The last chunk of `ChatModel.send_stream`, for a custom orchestrator that keeps it
        here."""
        self._accumulated: Message | None = None

    def tool_context(self) -> ToolContext[Any]:
        """Returns from the run's state the context that the tools of a run receive."""
        return ToolContext(
            self.deps,
            self.run_id,
            self.conversation_history,
            thread_id=self.thread_id,
            resource_id=self.resource_id,
            context=self.context,
            metadata=self.metadata,
            state=self.shared,
            outbox=self.outbox,
            records=self.records,
            run=self.request.run,
            account=self.account,
            stored=None if self.stored is None else self._wait_until_stored,
            steps={} if self.story is None else self.story.steps,
            past=None if self.story is None else self._take_story,
        )

    async def enter(self) -> None:
        """Enters the toolsets of the run's state, if there are any.

        Raises:
            ToolError: one cannot be entered; none is then.
        """
        if self.toolset is not None:
            await self.toolset.__aenter__()
            self._entered = True

    async def leave(self) -> None:
        """Leaves the toolsets of the run's state, if they were entered."""
        if self.toolset is not None and self._entered:
            self._entered = False
            await self.toolset.__aexit__(None, None, None)

    async def list_tools(self) -> bool:
        """Asks the toolsets of the run's state for the tools of the next step. Returns True if they
        changed. Unchanged tools stay the same objects in requests.

        Raises:
            ToolError: a set cannot tell its tools, or two have one name.
        """
        if self.toolset is None:
            return False
        # Sets may change between steps; this step runs only the tools that the model is offered.
        self.tool_map = {
            tool.name: tool for tool in await self.toolset.list_tools(self.tool_context())
        }
        specs = [tool.spec for tool in self.tool_map.values()]
        if _are_identical(specs, self.specs):
            return False
        before = {spec.name: spec for spec in self.specs}
        # An equal spec stays the same object, so that a request's prefix can be compared by
        # identity.
        specs = [before[spec.name] if before.get(spec.name) == spec else spec for spec in specs]
        if _are_identical(specs, self.specs):
            return False
        self.specs = tuple(specs)
        return True

    def _begin_calls(self, calls: Sequence[ToolCallPart]) -> Awaitable[None] | None:
        """Counts in the run's state calls that are about to be run against the limits. With a log,
        returns what to await before they are run."""
        self.account.begin(tool_calls=len(calls))
        if self.stored is None:
            return None
        return self._store_begun(calls)

    async def _store_begun(self, calls: Sequence[ToolCallPart]) -> None:
        """Waits until the run's log holds these calls, and a mark that they begin. If the process
        dies later, the log tells which calls may have acted."""
        self.outbox.put([Custom(CALLS_BEGUN, [call.id for call in calls])])
        await self._wait_until_stored()

    async def _wait_until_stored(self) -> None:
        """Waits until all events so far are stored, also those in the outbox."""
        await self.outbox.passed()
        if self.stored is not None:
            await self.stored()

    def settle_calls(
        self, calls: Sequence[ToolCallPart], without: Collection[int]
    ) -> dict[int, ToolResultPart]:
        """Returns the results in the run's state of calls that an earlier process has begun, by
        their indexes, so that they are not run again. `without`: indexes to leave out."""
        if not isinstance(self.plan, CallPlan):
            return {}
        settled = self.plan.settle(calls, self.tool_map)
        return {index: part for index, part in settled.items() if index not in without}

    def asks_about(self, call: ToolCallPart) -> bool:
        """True if by the run's state a person is to be asked about a call, because it may have
        acted in an earlier process."""
        plan = self.plan
        if not isinstance(plan, CallPlan) or not plan.asks or plan.find_known(call) is not None:
            return False
        return plan.is_doubtful(call, self.tool_map)

    def _take_story(self, call_id: str, number: int) -> Story:
        """Returns the story of a run that a call's tool begins, once; the empty one if no earlier
        process has begun it."""
        return self._inner.pop((call_id, number), Story())

    def note_set_aside(self, metadata: Json) -> list[Event]:
        """Sets the metadata of the message that ends the first of two phases. Returns the mark of it
        for the log of a durable run."""
        self.set_aside = metadata
        if self.story is None or not self.calls:
            return []
        call = msgspec.to_builtins(self.calls[-1])
        return [Custom(SET_ASIDE, {"metadata": to_json_value(metadata), "call": call})]

    def begin(
        self,
        history: list[Message],
        opening: tuple[Message, ...],
        losses: Sequence[Loss] = (),
        plan: ResumePlan | CallPlan | None = None,
    ) -> tuple[Message, ...]:
        """Sets in the state how the run begins. Returns the messages that are its own.

        Args:
            history: the conversation that it goes on with; with a `plan`, without what the plan adds.
            opening: those messages of it that are the run's own.
            losses: what was made up in them.
            plan: what is to be done first; `None`: the model is asked.
        """
        self._history, self.plan = history, plan
        self.turn = next_turn_id(self._history)
        self.losses |= dict.fromkeys(losses)
        return opening

    def take_over_opening(
        self, opening: Sequence[Message], stored: Sequence[Message]
    ) -> tuple[Message, ...]:
        """Puts into the run's state messages that an earlier process has told in the place of those
        that the opening has for them. Returns the rest of the opening."""
        start = len(self._history) - len(opening)
        self._history[start : start + len(stored)] = stored
        return tuple(opening[len(stored) :])

    def name_state(self) -> None:
        """Names the present shared state in requests: a remote agent is told it."""
        if self.request.run is not None:
            run = msgspec.structs.replace(self.request.run, state=self.shared.value)
            self.request = self.request.replace(run=run)

    @property
    def conversation_history(self) -> tuple[Message, ...]:
        """Returns all messages so far."""
        return tuple(self._history)

    def add_to_history(self, *messages: Message) -> None:
        """Appends messages to the history in the run's state, and updates its turn."""
        self._history.extend(messages)
        for message in messages:
            if message.role is Role.MODEL:
                self.turn = message.turn or ""
            elif not holds_only_answers(message):
                self.turn = None

    @property
    def accumulated_message(self) -> Message:
        """Returns the message that is being streamed: the one that was set here, otherwise what the
        events say."""
        if self._accumulated is None and self.intake is not None:
            return self.intake.message()
        return self._accumulated or Message.model()

    @accumulated_message.setter
    def accumulated_message(self, message: Message) -> None:
        self._accumulated = message

    def reset_for_new_message(self, shows: Callable[[PartStarted], bool] = is_text) -> Intake:
        """Prepares the state for a model call. `shows`: True for parts that are output."""
        self.shows = shows
        self.accumulator = self.new_accumulator()
        self.is_first_chunk_of_message = True
        self.last_result = self._accumulated = None
        client_tools = [name for name, tool in self.tool_map.items() if tool.handler is None]
        self.intake = Intake(
            self.accumulator,
            self.losses,
            client_tools,
            calls=self.calls,
            run_id=self.run_id,
            turn=self.turn,
            shared=self.shared,
        )
        return self.intake

    def begin_round(self, calls: Sequence[ToolCallPart]) -> ToolRound:
        """Begins a round of tools for these calls."""
        self.tool_round = ToolRound(calls, self.outbox, self.new_id, self.clock, self.turn or None)
        return self.tool_round

    def replace_in_history(self, message: Message) -> None:
        """Replaces the last message with the same id in the state's history."""
        for position in reversed(range(len(self._history))):
            if self._history[position].id == message.id:
                self._history[position] = message
                return

    def output_of(self, events: Sequence[Event]) -> str:
        """Returns the text that events of the model show in this state, for code that wraps the
        orchestrator."""
        if self.output_text is None:
            return UNSAID
        text = self.output_text.read(events, self.shows)
        if text and self.stands_alone:
            if self.should_prefix_next_message and self.is_first_chunk_of_message:
                text = "\n" + text
            self.is_first_chunk_of_message = False
        return text

    def request_next_message_prefix(self) -> None:
        """Puts a newline before each later message's first output, if there was output before. For
        an orchestrator that shows text itself; after tool results this happens anyway."""
        self.should_prefix_next_message = True

    def complete(self) -> None:
        """Marks the run as done."""
        self.done = True

    @property
    def has_recent_tool_execution(self) -> bool:
        """True if one of the last two messages in the state contains tool results."""
        return any(
            message.role is Role.USER and message.tool_results for message in self._history[-2:]
        )


def _are_identical(these: Sequence[ToolSpec], those: Sequence[ToolSpec]) -> bool:
    """True if both sequences contain the same objects."""
    return len(these) == len(those) and all(map(is_, these, those))


def claim_within(
    claim: Callable[[str, str, str], Awaitable[bool]], owner: str | None, conversation: str
) -> Callable[[str, str, str], Awaitable[bool]]:
    """Returns the `claim` of a run of a server. A signed answer has its own nonce, so it counts once
    for its owner, wherever it is sent. One without a signature counts once in its conversation."""

    async def claim_answer(_: str, name: str, run_id: str) -> bool:
        scope = f"owner:{owner}" if name.startswith(SIGNED) else conversation
        return await claim(scope, name, run_id)

    return claim_answer
