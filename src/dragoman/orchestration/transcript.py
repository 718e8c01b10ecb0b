"""The record of a run: its messages, output and cost so far, and the end of a message that was
interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import msgspec

from dragoman.event import Event, MessageDropped
from dragoman.fold import unfold
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import Json
from dragoman.message import FinishReason, Message, Role, Usage
from dragoman.orchestration.iteration import Rewriting, StreamingIterationResult, collect_metadata
from dragoman.orchestration.partial_output import OutputEvents
from dragoman.orchestration.shown_output import ShownOutput
from dragoman.orchestration.state import StreamingState
from dragoman.orchestration.story import Story
from dragoman.result import ChatResult, ModelCall, sum_cost, sum_usage

__all__ = ["Transcript"]


class Transcript:
    """Takes the steps of a run, each once."""

    def __init__(self, state: StreamingState, *, typed: bool, has_schema: bool) -> None:
        """Creates the transcript of a run. `typed`: only the last message is output. `has_schema`:
        it is JSON."""
        self._state, self._typed = state, typed
        self._metadata: Json = {}
        self.messages: list[Message] = []
        """Finished messages."""
        self.shown = ShownOutput(
            typed=typed, has_schema=has_schema, state=lambda: state.shared.value
        )
        self.usage: Usage | None = None
        self.finish_reason = FinishReason.unspecified
        self.pending: tuple[Interrupt, ...] = ()
        self.model_calls = 0
        self._counted = self._priced = 0
        self._cost: Decimal | None = Decimal(0)
        self.output_events: OutputEvents | None = None
        """Tells a typed output while it is being written; `None`: nobody asked for that."""
        self.chunks = True
        """True if the steps' `chunks()` are read."""
        self.rewriting: Rewriting | None = None
        """Knows the output that an orchestrator changed."""
        self.is_complete = False
        """True once the run has ended and nothing is open."""

    def go_on(self, story: Story) -> None:
        """Takes over into the transcript what earlier processes of the run have told."""
        state = self._state
        self.messages += story.messages
        self.model_calls = story.model_steps
        state.calls.extend(story.calls)
        self._count_calls()
        visible = story.messages
        spoken = [message for message in visible if message.role is Role.MODEL]
        if spoken and spoken[-1].finish_reason is not None:
            self.finish_reason = spoken[-1].finish_reason
        if spoken and self._typed:
            visible = story.messages[story.messages.index(spoken[-1]) :]
        self.shown.feed(unfold(visible), state.shows, chunks=False)
        self._metadata.update(story.set_aside or {})
        if any(message.tool_results for message in story.messages):
            state.request_next_message_prefix()

    def absorb(self, step: StreamingIterationResult) -> StreamingIterationResult:
        """Records in the transcript a step's messages, usage and metadata, and returns it as
        `record` does."""
        self.messages += step.messages
        if step.usage is not None or step.messages:
            step = self._add_calls(step)
        if step.finish_reason is not FinishReason.unspecified:
            self.finish_reason = step.finish_reason
        if step.metadata:
            self._metadata.update(step.metadata)
        self.pending += step.pending
        return self.record(step)

    def record(self, step: StreamingIterationResult) -> StreamingIterationResult:
        """Records a step in the transcript: returns it with its visible output, and with events for
        messages that have none."""
        view, state, events = self.shown, self._state, step.events
        # Events of tools that come after their round's last read are told before the next step.
        if state.outbox.events and state.tool_round is None:
            events = [*state.outbox.take(), *events]
        output_pieces = view.add_plain(step.output) if step.output and not events else []
        wants_pieces = self.chunks or self.output_events is not None
        pieces = view.feed(events, state.shows, chunks=wants_pieces)
        # A custom orchestrator may finish messages without events: they are unfolded here.
        if step.messages and (
            without := [message for message in step.messages if not view.has_finished(message.id)]
        ):
            more = self._unfold_again(without)
            events = [*events, *more]
            pieces += view.feed(more, state.shows)
        if state.is_first_chunk_of_message:
            state.is_first_chunk_of_message = not view.has_begun()
        if self.output_events is not None:
            told = self.output_events.feed(output_pieces + pieces)
            events = [*events, *told] if told else events
        if not self.chunks and events is step.events:
            return step
        return msgspec.structs.replace(
            step, events=events, pieces=output_pieces + pieces, message_id=view.message_id
        )

    def cut(self, reason: FinishReason) -> list[Event]:
        """Ends the transcript's message in whose middle the run ended, with what was shown of it.
        Returns the closing events."""
        tool_round, self._state.tool_round = self._state.tool_round, None
        if (intake := self._state.intake) is not None:
            intake.end_call()
        self._count_calls()
        if tool_round is not None:
            self.messages += filter(None, (tool_round.message(),))
            return [*tool_round.close()]
        message = self._cut_message(reason)
        if message is None:
            return []
        self._state.intake = None
        events = intake.cut(reason) if intake is not None and self.rewriting is None else []
        events = events or self._unfold_again([message])
        self.messages.append(message)
        self.finish_reason = reason
        self.shown.feed(events, self._state.shows)
        return events

    def result(self) -> ChatResult[str]:
        """Returns from the transcript the result so far, with output as text. An unfinished message
        is included as far as it was shown."""
        state = self._state
        partial = self._cut_message(FinishReason.cancelled)
        results = state.tool_round.message() if state.tool_round is not None else None
        messages = [*self.messages, *filter(None, (partial, results))]
        spoken = [message for message in messages if message.role is Role.MODEL]
        metadata = collect_metadata(spoken)
        metadata.update(self._metadata)
        thinking = "".join([message.thinking or "" for message in spoken]) or None
        if thinking is not None:
            metadata["thinking"] = thinking
        return ChatResult(
            self.shown.text(),
            tuple(messages),
            self.finish_reason,
            self.usage,
            thinking,
            metadata,
            (spoken[-1].id or "") if spoken else "",
            self.pending,
            tuple(state.losses),
            state.shared.value,
            calls=tuple(state.calls),
        )

    def cost(self) -> Decimal | None:
        """Returns from the transcript the US dollars of the finished model calls, or None if one
        has no known price.

        Raises:
            SettingsError: the extra `cost` is not installed.
        """
        new_cost = sum_cost(self._state.calls[self._priced :])
        self._priced = len(self._state.calls)
        # One unknown price makes the sum unknown for good.
        if new_cost is None:
            self._cost = None
        elif self._cost is not None:
            self._cost += new_cost
        return self._cost

    def _add_calls(self, step: StreamingIterationResult) -> StreamingIterationResult:
        """Returns for the transcript the step with the model calls that have ended since the last
        one. If a custom orchestrator reads the model its own way, the step's usage stands for a
        call."""
        calls = self._state.calls
        if step.usage is not None and len(calls) == self._counted:
            origin = next(
                (message.origin for message in step.messages if message.origin is not None), None
            )
            calls.append(ModelCall(origin, step.usage, self._state.run_id, self._state.clock()))
        new, usage = self._count_calls()
        if not new:
            return step
        return msgspec.structs.replace(step, calls=new, usage=usage)

    def _count_calls(self) -> tuple[tuple[ModelCall, ...], Usage | None]:
        """Returns the model calls that the transcript has not counted yet, and their usage."""
        new = tuple(self._state.calls[self._counted :])
        self._counted += len(new)
        if (usage := sum_usage(new)) is not None:
            self.usage = usage if self.usage is None else self.usage + usage
        return new, usage

    def _unfold_again(self, messages: Sequence[Message]) -> list[Event]:
        """Returns for the transcript the events of whole messages, and first those that retract the
        parts already shown."""
        dropped = [
            message.id for message in messages if message.id and self.shown.is_open(message.id)
        ]
        return [
            *[MessageDropped(message_id, "told whole") for message_id in dropped],
            *unfold(messages),
        ]

    def _cut_message(self, reason: FinishReason) -> Message | None:
        """Returns for the transcript the unfinished message as far as it was shown, or None."""
        intake = self._state.intake
        if self.is_complete:
            return None
        if intake is not None and intake.has_shown:
            message = (
                intake.message()
                if self.rewriting is None
                else self.rewriting.rewrite_message(intake.message())
            )
            if not message.content:
                return None
            whole = message.finish_reason not in (None, FinishReason.pause)
            return message if whole else message.replace(finish_reason=reason)
        if text := self.shown.open_text():
            is_open = self.shown.is_open(self.shown.message_id)
            message_id = (
                self.shown.message_id if is_open else f"{self._state.run_id}-{self.model_calls}"
            )
            return Message.model(text).replace(id=message_id, finish_reason=reason)
        return None
