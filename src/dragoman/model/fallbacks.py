"""Fallbacks: if a model fails, the next one is asked. See `fallback`.

`fallback` checks its arguments and makes a `Fallback`, which is a middleware. `Fallback.batches`
asks one model after another and passes their events on at once. If a model fails with an error
that counts, or `on_answer` refuses its answer, `MessageDropped` retracts the messages it began,
hooks are told, and the next model is asked. The last model's error is final, and names those of
the models before it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from copy import copy
from inspect import isawaitable
from typing import TypeAlias

import msgspec

from dragoman.arguments import expect, expect_callable, expect_sequence, wrong_type_error
from dragoman.errors import (
    AuthenticationError,
    BudgetError,
    CircuitOpenError,
    DecodeError,
    DragomanError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    SettingsError,
)
from dragoman.event import Event, MessageDropped, MessageStarted, PartDelta, RunError
from dragoman.fold import fold
from dragoman.hooks import RequestRetry, call_hooks, find_active_hooks
from dragoman.logs import logger
from dragoman.message import FinishReason, Message, Origin
from dragoman.model.breaker import Breaker, endpoint_key
from dragoman.model.middleware import Batches, Target
from dragoman.model.resolve_model import ModelString, parse_model_string
from dragoman.providers.provider import Provider
from dragoman.request import ModelRequest

__all__ = [
    "Fallback",
    "ModelChoice",
    "On",
    "split_choice",
    "fallback",
    "model_string",
    "provider_failed",
]

_LOG = logger("model.fallback")
_EXCERPT_LENGTH = 200
"""Characters of each earlier error in a message."""

On: TypeAlias = type[DragomanError] | Callable[[DragomanError], bool]
"""A class of errors, or a function that returns True for an error that counts."""

_FAULTS = (
    AuthenticationError,
    DecodeError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderConnectionError,
    ProviderTimeoutError,
    RateLimitError,
)


def provider_failed(error: DragomanError) -> bool:
    """True if the provider, the account or the network failed, so that another model may succeed;
    False if the request itself is at fault, or its caller's budget is spent."""
    if isinstance(error, BudgetError):
        return False
    return isinstance(error, _FAULTS) or type(error) is ProviderError


class Fallback(msgspec.Struct, frozen=True, eq=False):
    """A list of models, tried in order until one answers. Made by `fallback`; usable as a model or
    as a middleware."""

    models: tuple[str | Provider, ...]
    """Tried in this order."""
    on: Callable[[DragomanError], bool] = provider_failed
    """True for errors that lead to the next model."""
    on_answer: Callable[[Message], bool | Awaitable[bool]] | None = None
    """True for whole answers that lead to the next model; `None`: every answer is accepted."""
    breaker: Breaker | None = None
    """Skips models whose endpoint failed often."""
    retries: int = 0
    """Number of retries of a failed request before the next model is asked."""

    async def batches(
        self, request: ModelRequest, following: Batches, target: Target
    ) -> AsyncGenerator[list[Event], None]:
        """Sends a request to the first model, then to its fallbacks. See `BatchMiddleware`."""
        models = self._order_models(request, target)
        failures: list[tuple[str, DragomanError]] = []
        for index, model in enumerate(models):
            is_last = index == len(models) - 1
            # Fewer retries than usual while another model can take over.
            retries = request.retries if is_last else self.retries
            open_messages: list[str] = []
            # Collected only if `on_answer` may refuse it; the last model's answer always counts.
            answer: list[Event] | None = None
            if self.on_answer is not None and not is_last:
                answer = []
            error: DragomanError | None = None
            async with aclosing(
                self._ask(request.replace(model=model, retries=retries), following, target)
            ) as batches:
                async for events in batches:
                    if type(last := events[-1]) is RunError:
                        error, events = last.error, events[:-1]
                    if len(events) != 1 or type(events[0]) is not PartDelta:
                        _track_messages(events, open_messages)
                    if answer is not None:
                        answer += events
                    if events:
                        yield events
            if error is None:
                if answer is None or not await self._is_refused(answer):
                    return
            elif is_last or not (isinstance(error, CircuitOpenError) or self.on(error)):
                yield [RunError(_attach_earlier(error, failures))]
                return
            else:
                failures.append((model, error))
            if open_messages:
                yield [MessageDropped(message_id, _DROP_REASON) for message_id in open_messages]
            await _report_fallback(
                request.replace(model=model), target, index + 1, error, models[index + 1]
            )

    def _ask(
        self, request: ModelRequest, following: Batches, target: Target
    ) -> AsyncGenerator[list[Event], None]:
        """Sends the request to one model of the fallback, through the breaker if there is one."""
        if self.breaker is None:
            return following(request)
        return self.breaker.batches(request, following, target)

    def _order_models(self, request: ModelRequest, target: Target) -> list[str]:
        """Returns the model strings of the fallback to ask, each model once. A turn that its
        provider paused can only continue there."""
        by_target = {_find_destination(request, target): request.model}
        for model in map(model_string, self.models):
            by_target.setdefault(_find_destination(request.replace(model=model), target), model)
        paused = [
            message.origin
            for message in request.messages[-1:]
            if message.finish_reason is FinishReason.pause and message.origin is not None
        ]
        if not paused:
            return [*by_target.values()]
        for destination, model in by_target.items():
            if (destination.provider, destination.model) == (paused[0].provider, paused[0].model):
                return [model]
        return [request.model]

    async def _is_refused(self, events: Iterable[Event]) -> bool:
        """True if the fallback's `on_answer` refuses the answer that these events tell."""
        answer = next(iter(fold(events)), None)
        if self.on_answer is None or answer is None:
            return False
        verdict = self.on_answer(answer)
        return await verdict if isawaitable(verdict) else verdict


_DROP_REASON = "the model failed; another one is asked"


def fallback(
    *models: str | Provider,
    on: On | Iterable[On] = provider_failed,
    on_answer: Callable[[Message], bool | Awaitable[bool]] | None = None,
    breaker: Breaker | None = None,
    retries: int = 0,
) -> Fallback:
    """Makes a list of models that are tried in order: if one fails, even mid-answer, its answer is
    retracted and the next one is asked.

    ```python
    agent = Agent(fallback("openai:gpt-4o", "anthropic:claude-sonnet-4-5"))     # or Agent(["openai:gpt-4o", …])
    agent = Agent("openai:gpt-4o", middleware=[fallback("anthropic:claude-sonnet-4-5")])
    ```

    Args:
        models: model strings, or providers' records.
        on: which errors lead to the next model: classes, or functions of the error; left out, what is the provider's, the
            account's or the network's fault (`provider_failed`), but not what another model would refuse as well.
        on_answer: a function, plain or async, of a whole answer: `True` takes it back and asks the next model. The last one's is taken.
        breaker: leaves models alone whose endpoint failed often.
        retries: how often the transport sends a failed request again before the next model is asked. The last model is asked as often
            as the transport does by itself.

    Raises:
        SettingsError: there is no model, a model string is malformed, or `retries` is below 0.
        TypeError: an argument is of another type.
    """
    if not models:
        raise SettingsError(
            'fallback() needs a model at least, such as fallback("anthropic:claude-sonnet-4-5")'
        )
    for index, model in enumerate(models):
        expect(f"models[{index}]", model, str, Provider)
        model_string(model)
    expect_callable("on_answer", on_answer, "a function of a message")
    expect("retries", retries, int)
    if retries < 0:
        raise SettingsError(f"fallback(retries={retries}) must be 0 or more")
    if breaker is not None:
        expect("breaker", breaker, Breaker)
    return Fallback(models, _make_condition(on), on_answer, breaker, retries)


ModelChoice: TypeAlias = str | Provider | Fallback | Sequence[str | Provider]
"""A model string, a provider's record, a fallback, or a list of models, which becomes a
fallback."""


def split_choice(model: ModelChoice) -> tuple[str | Provider, Fallback | None]:
    """Returns the first model of a choice, and its fallback if it has one.

    Raises:
        SettingsError: it is an empty list.
        TypeError: it is no model.
    """
    if isinstance(model, str | Provider):
        return model, None
    if not isinstance(model, Fallback):
        model = fallback(*model)
    return model.models[0], model


def model_string(model: str | Provider) -> str:
    """Returns for fallbacks the model string of a model string or a provider's record.

    Raises:
        SettingsError: the string is malformed.
    """
    if isinstance(model, Provider):
        return str(ModelString(model.name, model.chat_model))
    parse_model_string(model)
    return model


def _track_messages(events: Iterable[Event], open_messages: list[str]) -> None:
    """Updates the ids of messages that a fallback must retract: those that have started and were
    not retracted."""
    for event in events:
        if type(event) is MessageStarted:
            open_messages.append(event.message_id)
        elif type(event) is MessageDropped and event.message_id in open_messages:
            open_messages.remove(event.message_id)


def _find_destination(request: ModelRequest, target: Target) -> Origin:
    """Returns the provider, endpoint and model of a request, to compare it with other fallbacks."""
    destination = target(request)
    # An unknown model differs from all others by its model string.
    if destination is None:
        return Origin("", None, request.model)
    return endpoint_key(destination, "model")


async def _report_fallback(
    request: ModelRequest, target: Target, attempt: int, error: DragomanError | None, following: str
) -> None:
    """Reports to the log and to hooks that the next model is asked."""
    outcome = "gave an answer that was refused" if error is None else f"failed ({error})"
    _LOG.warning("%s %s; %s is asked", request.model, outcome, following)
    hooks = request.run.hooks if request.run is not None else find_active_hooks(())
    if not hooks:
        return
    provider = (error and error.provider) or _find_destination(request, target).provider
    status = error.status if error is not None else None
    retry = RequestRetry(
        request.run, provider, attempt, status=status, error=error, fallback=following
    )
    await call_hooks(hooks, "retry", retry)


def _make_condition(on: On | Iterable[On]) -> Callable[[DragomanError], bool]:
    """Returns one function for the error condition, or several, of a fallback."""
    expected = "classes of DragomanError, or functions of an error"
    conditions = (on,) if callable(on) else expect_sequence("on", on, expected)
    classes: list[type[DragomanError]] = []
    functions: list[Callable[[DragomanError], bool]] = []
    for condition in conditions:
        if isinstance(condition, type) and issubclass(condition, DragomanError):
            classes.append(condition)
        elif not isinstance(condition, type) and callable(condition):
            functions.append(condition)
        else:
            raise wrong_type_error("on", condition, expected)

    def is_match(error: DragomanError) -> bool:
        return isinstance(error, tuple(classes)) or any(matches(error) for matches in functions)

    return is_match


def _attach_earlier(
    error: DragomanError, failures: Sequence[tuple[str, DragomanError]]
) -> DragomanError:
    """Returns a copy of the last model's error that also names the failures before the
    fallbacks."""
    if not failures:
        return error
    final = copy(error)
    final.__cause__ = error.__cause__
    reports = [
        f"{model}: {type(failure).__name__}, {_shorten(failure.message)}"
        for model, failure in failures
    ]
    final.message = f"{error.message} Before it failed {'; '.join(reports)}"
    final.earlier = tuple(failure for _, failure in failures)
    return final


def _shorten(text: str) -> str:
    """Cuts a provider's error message for the log of a fallback after `_EXCERPT_LENGTH`
    characters."""
    if len(text) <= _EXCERPT_LENGTH:
        return text
    return f"{text[:_EXCERPT_LENGTH]}…"
