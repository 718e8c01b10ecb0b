"""What an orchestrator knows while a run goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from dragoman.event import PartStarted
from dragoman.loss import Loss
from dragoman.message import Message, Role
from dragoman.model.chat_model import now
from dragoman.orchestration.accumulator import MessageAccumulator
from dragoman.orchestration.intake import Intake
from dragoman.request import ModelRequest
from dragoman.tools import ParallelToolExecutor, Tool, ToolExecutor, ToolIdCoordinator

__all__ = ["StreamingState"]


class StreamingState:
    """The mutable part of one run: its history, its tools, and where in the loop it is."""

    def __init__(
        self,
        conversation_history: Iterable[Message],
        tools: Iterable[Tool] = (),
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
    ) -> None:
        """Tools are keyed by name; of two with one name the later wins (D-12). The history is copied (D-04)."""
        self._history = list(conversation_history)
        self.tool_map: dict[str, Tool] = {tool.name: tool for tool in tools}
        self.specs = tuple(tool.spec for tool in self.tool_map.values())
        self.request = request or ModelRequest("")
        """Settings, options and server tools of every request of this run."""
        self.executor = executor or ParallelToolExecutor()
        self.tool_id_coordinator = ToolIdCoordinator()
        self.validate = validate
        """Tells whether the output is of the wanted type; raises `ValueError` with words for the model."""
        self.output_retries = output_retries
        """How often a wrong output may still go back to the model (decision 10)."""
        self.new_id = new_id
        self.clock = clock
        self.deps = deps
        self.run_id = run_id
        self.done = False
        self.should_prefix_next_message = False
        self.empty_after_tools_continuations = 0
        self.tool_calls_made = 0
        self.check_tool_calls: Callable[[int], None] = lambda calls: None  # noqa: ARG005
        """Raises `LimitReachedError` where so many more calls would pass a limit."""
        self.losses: dict[Loss, None] = {}
        """What the requests of the run had to leave out, each once and in order (decision 25)."""
        self.output: str | None = None
        """The output where it is not the text of the messages (a `return_result` call)."""
        self.suppressed_text = ""
        self.set_aside: dict[str, Any] | None = None
        """Metadata of the message that ended the first of two phases; `None`: there is one phase, or it is the first."""
        self.new_accumulator = accumulator
        self.intake: Intake | None = None
        """The message that is being streamed; `None` once it is whole."""

    @property
    def conversation_history(self) -> tuple[Message, ...]:
        """All messages so far."""
        return tuple(self._history)

    def add_to_history(self, *messages: Message) -> None:
        """Appends messages."""
        self._history.extend(messages)

    def reset_for_new_message(self, shows: Callable[[PartStarted], bool]) -> Intake:
        """Before each model call (D-21). `shows` tells which parts are output."""
        self.intake = Intake(
            self.new_accumulator(), newline=self.should_prefix_next_message, shows=shows, losses=self.losses
        )
        return self.intake

    def request_next_message_prefix(self) -> None:
        """From now on each model message's first output is prefixed with a newline (D-24)."""
        self.should_prefix_next_message = True

    def complete(self) -> None:
        """The run is at its end."""
        self.done = True

    @property
    def has_recent_tool_execution(self) -> bool:
        """Whether a tool result stands among the last two messages (D-29)."""
        return any(message.role is Role.USER and message.tool_results for message in self._history[-2:])
