"""Tool calling for models that have none: a middleware that asks by constrained decoding, and tells
calls as calls.

Each step is a request of its own, because a small model decides far better by single questions than
by one form that holds them all (SmolLM2-135M: 13 right tools of 14, and 6):

1. Which tool, or none? The answer is one of their names.
2. None: the answer, as any model gives it, streamed as it comes.
3. A tool: a list of arguments, each by the tool's schema, and so one call or several.

What the user said last leads to one round of calls: with their results the model answers. The
smallest models never see that nothing is left to call. For those that do, give more `rounds`; a
call that was answered is not made again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import cast

import msgspec

from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.event import Event, MessageFinished, MessageStarted, PartDelta, RunError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost, refusal_error
from dragoman.message import FinishReason, Message, ToolCallPart, Usage
from dragoman.model.middleware import Next
from dragoman.model.tool_prompt import (
    NO_TOOL,
    SplitConversation,
    arguments_schema,
    ask_answer,
    ask_arguments,
    ask_tool,
    call_key,
    split_conversation,
)
from dragoman.request import ModelRequest, Settings, ToolSpec
from dragoman.runtime import new_id

__all__ = ["MAX_CALLS", "JsonItems", "constrained_tools"]

MAX_CALLS = 4
"""Most calls of one round."""

_COMPLETE_REASONS = (FinishReason.stop, FinishReason.tool_calls, FinishReason.unspecified)


class _Steps:
    """What the steps before an answer cost, and what their requests had to leave out."""

    def __init__(self, losses: list[Loss]) -> None:
        self.spent: list[Usage] = []
        self.losses = losses

    def record_event(self, event: Event) -> None:
        """One event of a step that is not passed on."""
        if isinstance(event, MessageStarted):
            self.losses += event.losses
        elif isinstance(event, MessageFinished) and event.usage is not None:
            self.spent.append(event.usage)

    def complete_start(self, event: MessageStarted) -> MessageStarted:
        """The start of the message that is passed on."""
        return msgspec.structs.replace(
            event, losses=tuple(dict.fromkeys((*self.losses, *event.losses)))
        )

    def sum_usage(self, last: Usage | None = None) -> Usage | None:
        """The sum of all steps."""
        every = [*self.spent, last] if last is not None else self.spent
        return sum(every[1:], every[0]) if every else None


async def constrained_tools(
    request: ModelRequest, following: Next, *, rounds: int = 1
) -> AsyncIterator[Event]:
    """Middleware: a request with tools → requests without, and their answers → calls and text.

    `tool_choice` holds: with `none` no tool is offered, with `required` there is no way out, a name
    is taken as chosen. The answer keeps the request's `output_schema`. Where no temperature is set,
    that of a step and of an answer from results is 0. Usage is the sum of all steps.
    """
    exchange = split_conversation(request.messages)
    tools = {tool.name: tool for tool in request.tools if isinstance(tool, ToolSpec)}
    if request.settings.tool_choice == "none" or exchange.rounds >= rounds:
        tools = {}
    unknown = [tool.name for tool in request.tools if not isinstance(tool, ToolSpec)]
    steps = _Steps(
        [
            Loss(None, None, Lost.tool, "the model has no tools that its provider runs", name)
            for name in unknown
        ]
    )
    if request.on_loss == "error" and (error := refusal_error(steps.losses)) is not None:
        yield RunError(error)
        return
    name, failure = await _choose_tool(request, following, exchange, tools, steps)
    if failure is not None:
        yield failure
        return
    if name is not None:
        has_calls = False
        async for event in _stream_calls(request, following, exchange, tools[name], steps):
            has_calls = True
            yield event
        if has_calls:
            return
    settings = _without_tools(request.settings, steady=exchange.rounds > 0)
    answer = request.replace(messages=ask_answer(exchange), tools=(), settings=settings)
    async with _open_stream(following, answer) as events:
        async for event in events:
            if isinstance(event, MessageStarted):
                event = steps.complete_start(event)
            elif isinstance(event, MessageFinished):
                event = msgspec.structs.replace(event, usage=steps.sum_usage(event.usage))
            yield event


async def _choose_tool(
    request: ModelRequest,
    following: Next,
    exchange: SplitConversation,
    tools: Mapping[str, ToolSpec],
    steps: _Steps,
) -> tuple[str | None, RunError | None]:
    """The name of the tool to call, `None` for none; or why it could not be asked for."""
    choice = request.settings.tool_choice
    if choice is not None and choice in tools:
        return choice, None
    names = [*tools, NO_TOOL] if tools and choice != "required" else [*tools]
    if len(names) < 2:
        return next(iter(names), None), None
    text = ""
    async with _open_stream(
        following, _make_question(request, ask_tool(exchange, tools), {"enum": names})
    ) as events:
        async for event in events:
            steps.record_event(event)
            if isinstance(event, PartDelta):
                text += str(event.delta)
            elif isinstance(event, RunError):
                # nothing was said yet
                event.error.partial = None
                return None, event
    chosen = text.strip().strip('"')
    return (chosen if chosen in tools else None), None


async def _stream_calls(
    request: ModelRequest,
    following: Next,
    exchange: SplitConversation,
    tool: ToolSpec,
    steps: _Steps,
) -> AsyncIterator[Event]:
    """A message with calls of one tool; no event at all where none of them is new."""
    max_calls = 1 if request.settings.parallel_tool_calls is False else MAX_CALLS
    schema = arguments_schema(tool.input_schema, max_calls)
    question = _make_question(request, ask_arguments(exchange, tool, schema, max_calls), schema)
    limit = msgspec.structs.replace(question.settings, max_tokens=request.settings.max_tokens)
    reader = _CallReader(tool, exchange, steps)
    async with _open_stream(following, question.replace(settings=limit)) as events:
        async for event in events:
            for call_event in reader.feed(event):
                yield call_event


class _CallReader:
    """The events of a list of arguments → the events of a message with calls. Sans-I/O."""

    def __init__(self, tool: ToolSpec, exchange: SplitConversation, steps: _Steps) -> None:
        self._tool = tool
        self._made = set(exchange.answered)
        self._steps = steps
        self._items = JsonItems()
        self._started: MessageStarted | None = None
        self._message = Emitter(new_id)

    def feed(self, event: Event) -> list[Event]:
        """One event of the model's → those of the message."""
        message = self._message
        self._steps.record_event(event)
        if isinstance(event, MessageStarted):
            self._started = event
        elif isinstance(event, PartDelta):
            for text in self._items.feed(str(event.delta)):
                key = _call_key(self._tool, text)
                if key not in self._made:
                    self._made.add(key)
                    message.close(self._add_call(text))
        elif isinstance(event, MessageFinished):
            self._finish(event)
        elif isinstance(event, RunError):
            event.error.partial = message.build_partial_message() if message.started else None
            message.events.append(event)
        return message.take()

    def _finish(self, event: MessageFinished) -> None:
        message, reason = self._message, event.finish_reason or FinishReason.unspecified
        is_complete = reason in _COMPLETE_REASONS
        if self._items.rest:
            self._add_call(self._items.rest)
        if message.started:
            reason = FinishReason.tool_calls if is_complete else reason
            message.finish(
                reason,
                self._steps.sum_usage(),
                origin=event.origin,
                metadata=event.metadata,
                cut=not is_complete,
            )

    def _add_call(self, text: str) -> OpenPart:
        message = self._message
        if not message.started and self._started is not None:
            message.begin(self._steps.complete_start(self._started))
        part = message.ensure_part(text, ToolCallPart(new_id(), self._tool.name))
        message.add(part, text)
        return part


def _open_stream(following: Next, request: ModelRequest) -> aclosing[AsyncGenerator[Event, None]]:
    return aclosing(cast("AsyncGenerator[Event, None]", following(request)))


def _make_question(
    request: ModelRequest, messages: tuple[Message, ...], schema: JsonMap
) -> ModelRequest:
    """A step: no tools, nothing that could cut the answer, which its schema keeps short."""
    settings = msgspec.structs.replace(
        _without_tools(request.settings, steady=True), max_tokens=None, stop=None
    )
    return request.replace(
        messages=messages, tools=(), settings=settings, output_schema=schema, native=None
    )


def _without_tools(settings: Settings, *, steady: bool) -> Settings:
    temperature = 0.0 if steady and settings.temperature is None else settings.temperature
    return msgspec.structs.replace(
        settings, tool_choice=None, parallel_tool_calls=None, temperature=temperature
    )


def _call_key(tool: ToolSpec, text: str) -> tuple[str, bytes]:
    read: Callable[..., Json] = msgspec.json.decode
    try:
        return call_key(tool.name, read(text, type=dict))
    except msgspec.MsgspecError:
        return tool.name, text.encode()


# the array of arguments, as it is written


class JsonItems:
    """Cuts the text of one JSON array into the texts of its elements. What it is given may be cut
    anywhere.

    It trusts its writer to write JSON: it tells elements apart and leaves their reading, and their
    errors, to others.
    """

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._begin = 0
        self._depth = 0
        self._quoted = False

    @property
    def rest(self) -> str:
        """The text of the element that is not whole yet; `""`: none is begun. All of it, where it
        is no array."""
        return self._text[self._begin :].strip(" \t\r\n")

    def feed(self, text: str) -> list[str]:
        """More text → the elements that it completes."""
        self._text += text
        items: list[str] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            if self._quoted:
                if character == "\\":
                    if self._at + 1 == len(self._text):
                        # what it escapes is still to come
                        break
                    self._at += 1
                elif character == '"':
                    self._quoted = False
            elif character == '"':
                self._quoted = True
            elif character in "[{":
                self._depth += 1
                if self._depth == 1 and character == "[":
                    self._begin = self._at + 1
            elif character in "]}" or (character == "," and self._depth == 1):
                self._depth -= character in "]}"
                if self._depth == 0 or character == ",":
                    item = self._text[self._begin : self._at].strip(" \t\r\n")
                    items += [item] if item else []
                    self._begin = self._at + 1
            self._at += 1
        return items
