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
from functools import reduce
from operator import add
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
"""The most tool calls in one round."""

_COMPLETE_REASONS = (FinishReason.stop, FinishReason.tool_calls, FinishReason.unspecified)


class _Steps:
    """Sums the usage and losses of the steps before an answer."""

    def __init__(self, losses: list[Loss]) -> None:
        self.spent: list[Usage] = []
        self.losses = losses

    def record_event(self, event: Event) -> None:
        """Records usage and losses from an event of a step of constrained calling that stays
        hidden."""
        if isinstance(event, MessageStarted):
            self.losses += event.losses
        elif isinstance(event, MessageFinished) and event.usage is not None:
            self.spent.append(event.usage)

    def complete_start(self, event: MessageStarted) -> MessageStarted:
        """Returns the start of the visible message with the losses of all steps of constrained
        calling."""
        return msgspec.structs.replace(
            event, losses=tuple(dict.fromkeys((*self.losses, *event.losses)))
        )

    def sum_usage(self, last: Usage | None = None) -> Usage | None:
        """Returns the usage of all steps, with `last`, the answer's own."""
        usages = [*self.spent, *([last] if last is not None else [])]
        return reduce(add, usages) if usages else None


async def constrained_tools(
    request: ModelRequest, following: Next, *, rounds: int = 1
) -> AsyncIterator[Event]:
    """Gives tool calling to a model without it: asks step by step without tools and turns the
    answers into calls and text. A middleware.

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
    """Asks a model without tool calling, by constrained output, which tool to call. Returns its
    name (None: no tool), and the error if asking failed."""
    choice = request.settings.tool_choice
    if choice is not None and choice in tools:
        return choice, None
    names = [*tools]
    if tools and choice != "required":
        names.append(NO_TOOL)
    # One choice, or none: nothing to ask.
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
                # The partial message is the answer to this question, which the user never sees.
                event.error.partial = None
                return None, event
    chosen = text.strip().strip('"')
    # A model that ignores the schema and answers something else wants no tool.
    return (chosen if chosen in tools else None), None


async def _stream_calls(
    request: ModelRequest,
    following: Next,
    exchange: SplitConversation,
    tool: ToolSpec,
    steps: _Steps,
) -> AsyncIterator[Event]:
    """Asks by constrained output for a tool's arguments and yields a message with its calls; yields
    nothing if no call is new."""
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
    """Turns the events of a list of arguments into those of a message with tool calls. Sans-I/O."""

    def __init__(self, tool: ToolSpec, exchange: SplitConversation, steps: _Steps) -> None:
        """Prepares to read calls from the constrained output of a model without tool calls."""
        self._tool = tool
        self._made = set(exchange.answered)
        self._steps = steps
        self._items = JsonItems()
        self._started: MessageStarted | None = None
        self._message = Emitter(new_id)

    def feed(self, event: Event) -> list[Event]:
        """Takes an event of the constrained model and returns those of the message with calls."""
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
            self._finish_with_calls(event)
        elif isinstance(event, RunError):
            event.error.partial = message.build_partial_message() if message.started else None
            message.events.append(event)
        return message.take()

    def _finish_with_calls(self, event: MessageFinished) -> None:
        """Ends the message with constrained calls, with the usage of all steps."""
        message, reason = self._message, event.finish_reason or FinishReason.unspecified
        is_complete = reason in _COMPLETE_REASONS
        if self._items.rest:
            self._add_call(self._items.rest)
        if message.started:
            if is_complete:
                reason = FinishReason.tool_calls
            message.finish(
                reason,
                self._steps.sum_usage(),
                origin=event.origin,
                metadata=event.metadata,
                cut=not is_complete,
            )

    def _add_call(self, text: str) -> OpenPart:
        """Opens a constrained tool call in the message and adds the text of its arguments."""
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
    """Returns the request for a step of constrained calling: no tools, and no limit that could cut
    the answer. Its schema keeps the answer short."""
    settings = msgspec.structs.replace(
        _without_tools(request.settings, steady=True), max_tokens=None, stop=None
    )
    return request.replace(
        messages=messages, tools=(), settings=settings, output_schema=schema, native=None
    )


def _without_tools(settings: Settings, *, steady: bool) -> Settings:
    """Returns the settings of a constrained request, without tool options. `steady`: temperature 0
    unless one is set."""
    temperature = settings.temperature
    if steady and temperature is None:
        temperature = 0.0
    return msgspec.structs.replace(
        settings, tool_choice=None, parallel_tool_calls=None, temperature=temperature
    )


def _call_key(tool: ToolSpec, text: str) -> tuple[str, bytes]:
    """Returns a key that is equal for equal constrained calls, also if the arguments do not
    parse."""
    read: Callable[..., Json] = msgspec.json.decode
    try:
        return call_key(tool.name, read(text, type=dict))
    except msgspec.MsgspecError:
        return tool.name, text.encode()


# the array of arguments, as it is written


class JsonItems:
    """Cuts the text of a JSON array into the texts of its elements. The input may be cut anywhere.

    It trusts its writer to write JSON: it tells elements apart and leaves their reading, and their
    errors, to others.
    """

    def __init__(self) -> None:
        """Starts before the first item of a JSON list of calls that streams."""
        self._text = ""
        self._position = 0
        self._begin = 0
        self._depth = 0
        self._quoted = False

    @property
    def rest(self) -> str:
        """Returns the text of the unfinished element, `""` if there is none, or all text if it is
        not an array."""
        return self._text[self._begin :].strip(" \t\r\n")

    def feed(self, text: str) -> list[str]:
        """Takes more text of constrained calls and returns the elements of the list that it
        completes."""
        self._text += text
        items: list[str] = []
        while self._position < len(self._text):
            character = self._text[self._position]
            if self._quoted:
                if character == "\\":
                    if self._position + 1 == len(self._text):
                        # The escaped character is still to come.
                        break
                    self._position += 1
                elif character == '"':
                    self._quoted = False
            elif character == '"':
                self._quoted = True
            elif character in "[{":
                self._depth += 1
                if self._depth == 1 and character == "[":
                    self._begin = self._position + 1
            elif character in "]}":
                self._depth -= 1
                if self._depth == 0:
                    self._end_item(items)
            elif character == "," and self._depth == 1:
                self._end_item(items)
            self._position += 1
        return items

    def _end_item(self, items: list[str]) -> None:
        """Adds the element of the streamed list that ends here, unless it is empty."""
        item = self._text[self._begin : self._position].strip(" \t\r\n")
        if item:
            items.append(item)
        self._begin = self._position + 1
