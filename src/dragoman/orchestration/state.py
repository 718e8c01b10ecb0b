"""What an orchestrator knows while a run goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import is_
from typing import Any, cast

from dragoman.codec.turns import holds_only_answers, next_turn_id
from dragoman.errors import DragomanError
from dragoman.event import Event, PartStarted
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Message, Role, ToolCallPart
from dragoman.orchestration.accumulator import Intake, MessageAccumulator
from dragoman.orchestration.iteration import UNSAID, OutputText
from dragoman.orchestration.resume import ResumePlan
from dragoman.orchestration.seal import Seal
from dragoman.orchestration.shown import is_text
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
from dragoman.tools.inner import Account
from dragoman.tools.record import CallRecords

__all__ = ["Claim", "StreamingState"]

Claim = Callable[[str, str, str], bool | Awaitable[bool]]
"""Takes the ids of a conversation, of what was answered in it, and of the run that is about to act
on that → whether no other run did."""
_UNSEALED = Seal()


class StreamingState:
    """The mutable part of one run: its history, its tools, and where in the loop it is."""

    def __init__(
        self,
        conversation_history: Iterable[Message],
        tools: Iterable[Tool | Toolset] | Mapping[str, Tool] = (),
        *,
        request: ModelRequest | None = None,
        executor: ToolExecutor | None = None,
        accumulator: Callable[[], MessageAccumulator] = MessageAccumulator,
        validate: Callable[[str], Any] | None = None,
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
        plan: ResumePlan | None = None,
    ) -> None:
        """The history is copied. `tools` may be a mapping of them by name.

        Raises:
            ToolError: two tools have one name.
        """
        self._history = list(conversation_history)
        self.turn = next_turn_id(self._history)
        """The turn in which the next message of the model stands; `None`: it begins one; empty: it
        goes on with one that has no name."""
        if isinstance(tools, Mapping):
            tools = cast("Mapping[str, Tool]", tools).values()
        self.fixed_tools, self.toolset = split_tools(tools)
        """The tools that are always there, by name; and all in one set, where some come from
        sets."""
        self._entered = False
        self.tool_map = self.fixed_tools
        """The tools of this step, by name: those that the model was offered, and that are run."""
        self.specs = tuple(tool.spec for tool in self.tool_map.values())
        """The same for requests."""
        self.request = request or ModelRequest("")
        """Settings, options and server tools of every request of this run."""
        self.outbox = Outbox()
        """What tools have emitted and the run has not told yet."""
        self.executor = BoundExecutor(
            executor or ParallelToolExecutor(), self.tool_context, self._count_tool_calls
        )
        self.seal = seal
        """Signs what the run waits for."""
        self.claim = claim
        """Says whether a call that was allowed may be run now; `None`: nobody keeps account."""
        self.plan = plan
        """What is to be done before the model is asked, where the conversation waited."""
        self.records = CallRecords()
        """What is known of the calls that are run."""
        self.tool_id_coordinator = ToolIdCoordinator()
        self.validate = validate
        """Tells whether the output is of the wanted type; raises `ValueError` with words for the
        model."""
        self.output_retries = output_retries
        """How often a wrong output may still go back to the model."""
        self.new_id = new_id
        self.clock = clock
        self.deps = deps
        self.run_id = run_id
        self.thread_id = thread_id
        self.resource_id = resource_id
        self.context = context
        """What the client told beside the conversation."""
        self.shared = SharedState(shared, self.outbox)
        """The state that client and agent share."""
        self.metadata = metadata
        self.asked: Sequence[Message] = ()
        """The messages that the run was asked with."""
        self.done = False
        self.should_prefix_next_message = False
        self.empty_after_tools_continuations = 0
        self.account = Account()
        """What the run and those in its tools have taken."""
        self.losses: dict[Loss, None] = {}
        """What the requests of the run had to leave out, each once and in order."""
        self.calls = self.account.calls
        """The calls of models that have ended, those of agents within tools included."""
        self.output: str | None = None
        """The output where it is not the text of the messages (a `return_result` call)."""
        self.suppressed_text = ""
        self.set_aside: Json | None = None
        """Metadata of the message that ended the first of two phases; `None`: there is one phase,
        or it is the first."""
        self.output_options: JsonMap = {}
        """By which options of a send the output is held to its type."""
        self.transfer: Transfer | None = None
        """To which agent the conversation is handed over, once what was called beside it is
        done."""
        self.failure: DragomanError | None = None
        """Why the run cannot go on, once what it has done is told."""
        self.new_accumulator = accumulator
        self.shows: Callable[[PartStarted], bool] = is_text
        """Which parts of the model's messages are the run's output."""
        self.output_text: OutputText | None = OutputText()
        """Reads the output of a built-in orchestrator's steps; `None`: nobody wraps it, and nobody
        asks for it."""
        self.stands_alone = True
        """Whether no run shows the steps: the output has the newline between messages itself
        then."""
        self.accumulator = accumulator()
        """Builds the message that is being streamed; a new one for each."""
        self.intake: Intake | None = None
        """The message that is being streamed; `None` once it is whole."""
        self.tool_round: ToolRound | None = None
        """The tools that run; `None` once their results are told."""
        self.is_first_chunk_of_message = True
        """Whether nothing of the message has been shown."""
        self.last_result: ChatResult[Message] | None = None
        """The last chunk of `ChatModel.send_stream`, for an orchestrator that keeps it here."""
        self._accumulated: Message | None = None

    def tool_context(self) -> ToolContext[Any]:
        """What tools may know."""
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
        )

    async def enter(self) -> None:
        """Enters the sets, where there are some.

        Raises:
            ToolError: one cannot be entered; none is then.
        """
        if self.toolset is not None:
            await self.toolset.__aenter__()
            self._entered = True

    async def leave(self) -> None:
        """Leaves the sets, where they were entered."""
        if self.toolset is not None and self._entered:
            self._entered = False
            await self.toolset.__aexit__(None, None, None)

    async def list_tools(self) -> bool:
        """Asks the sets for the tools of the next step → whether they are others. What has not
        changed stays the same object in requests.

        Raises:
            ToolError: a set cannot tell its tools, or two have one name.
        """
        if self.toolset is None:
            return False
        self.tool_map = {
            tool.name: tool for tool in await self.toolset.list_tools(self.tool_context())
        }
        specs = [tool.spec for tool in self.tool_map.values()]
        if _same(specs, self.specs):
            return False
        before = {spec.name: spec for spec in self.specs}
        # An equal spec stays the same object, so that a request's prefix can be compared by
        # identity.
        specs = [before[spec.name] if before.get(spec.name) == spec else spec for spec in specs]
        if _same(specs, self.specs):
            return False
        self.specs = tuple(specs)
        return True

    def _count_tool_calls(self, calls: int) -> None:
        self.account.begin(tool_calls=calls)

    def begin(
        self,
        history: list[Message],
        opening: tuple[Message, ...],
        losses: Sequence[Loss] = (),
        plan: ResumePlan | None = None,
    ) -> tuple[Message, ...]:
        """Sets how the run begins. Returns the messages that are its own.

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

    @property
    def conversation_history(self) -> tuple[Message, ...]:
        """All messages so far."""
        return tuple(self._history)

    def add_to_history(self, *messages: Message) -> None:
        """Appends messages."""
        self._history.extend(messages)
        for message in messages:
            if message.role is Role.MODEL:
                self.turn = message.turn or ""
            elif not holds_only_answers(message):
                self.turn = None

    @property
    def accumulated_message(self) -> Message:
        """The message that is being streamed, as far as it has come: as it was set here, else as
        the events tell it."""
        if self._accumulated is None and self.intake is not None:
            return self.intake.message()
        return self._accumulated or Message.model()

    @accumulated_message.setter
    def accumulated_message(self, message: Message) -> None:
        self._accumulated = message

    def reset_for_new_message(self, shows: Callable[[PartStarted], bool] = is_text) -> Intake:
        """Before each model call. `shows` tells which parts are output."""
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
        """Begins a round of tools, in which these calls are answered."""
        self.tool_round = ToolRound(calls, self.outbox, self.new_id, self.clock, self.turn or None)
        return self.tool_round

    def replace_in_history(self, message: Message) -> None:
        """Puts a message in the place of the last one that has its id."""
        for position in reversed(range(len(self._history))):
            if self._history[position].id == message.id:
                self._history[position] = message
                return

    def output_of(self, events: Sequence[Event]) -> str:
        """The text that events of the model show, for whoever wraps the orchestrator."""
        if self.output_text is None:
            return UNSAID
        text = self.output_text.read(events, self.shows)
        if text and self.stands_alone:
            prefix = (
                "\n" if self.should_prefix_next_message and self.is_first_chunk_of_message else ""
            )
            self.is_first_chunk_of_message = False
            return prefix + text
        return text

    def request_next_message_prefix(self) -> None:
        """From now on a newline stands before each model message's first output, if there was
        output before. For an orchestrator that shows text by itself: where results of tools are
        told, it is so without."""
        self.should_prefix_next_message = True

    def complete(self) -> None:
        """The run is at its end."""
        self.done = True

    @property
    def has_recent_tool_execution(self) -> bool:
        """Whether a tool result stands among the last two messages."""
        return any(
            message.role is Role.USER and message.tool_results for message in self._history[-2:]
        )


def _same(these: Sequence[ToolSpec], those: Sequence[ToolSpec]) -> bool:
    """Whether these are the very same."""
    return len(these) == len(those) and all(map(is_, these, those))
