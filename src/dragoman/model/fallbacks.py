"""A fallback: where a model fails, the next one is asked. See `fallback`."""

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
from dragoman.hooks import ModelRetry, call_hooks, find_active_hooks
from dragoman.logs import logger
from dragoman.message import FinishReason, Message, Origin
from dragoman.model.breaker import Breaker, endpoint_key
from dragoman.model.middleware import Batches, Target
from dragoman.model.strings import ModelString, parse_model_string
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
# characters of each earlier error in a message
_EXCERPT_LENGTH = 200

On: TypeAlias = type[DragomanError] | Callable[[DragomanError], bool]
"""A class of errors, or a function that says of an error whether it is one."""

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
    """Whether it is the provider, the account there or the way to it that failed, and not the
    request: then another model may well do better."""
    return isinstance(error, _FAULTS) or type(error) is ProviderError


class Fallback(msgspec.Struct, frozen=True, eq=False):
    """Models of which the next one is asked where one fails. Made by `fallback`; it stands for a
    model, or as a middleware."""

    models: tuple[str | Provider, ...]
    """In the order in which they are asked."""
    on: Callable[[DragomanError], bool] = provider_failed
    """Which errors lead to the next one."""
    on_answer: Callable[[Message], bool | Awaitable[bool]] | None = None
    """Which whole answers do; `None`: every answer is taken."""
    breaker: Breaker | None = None
    """Leaves models alone whose endpoint failed often."""
    retries: int = 0
    """How often a failed request is sent again before the next model is asked."""

    async def batches(
        self, request: ModelRequest, following: Batches, target: Target
    ) -> AsyncGenerator[list[Event], None]:
        """See `BatchMiddleware`."""
        models = self._order_models(request, target)
        failures: list[tuple[str, DragomanError]] = []
        for index, model in enumerate(models):
            is_last = index == len(models) - 1
            retries = request.retries if is_last else self.retries
            open_messages: list[str] = []
            answer: list[Event] | None = None if is_last or self.on_answer is None else []
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
        return (
            following(request)
            if self.breaker is None
            else self.breaker.batches(request, following, target)
        )

    def _order_models(self, request: ModelRequest, target: Target) -> list[str]:
        """The model strings to ask, each model once. A turn that its provider paused goes on there
        and nowhere else."""
        by_target = {_find_destination(request, target): request.model}
        for model in map(model_string, self.models):
            by_target.setdefault(_find_destination(request.replace(model=model), target), model)
        last = request.messages[-1] if request.messages else None
        if (
            last is None
            or last.finish_reason is not FinishReason.pause
            or (origin := last.origin) is None
        ):
            return [*by_target.values()]
        whose = (origin.provider, origin.model)
        return [
            next(
                (model for to, model in by_target.items() if (to.provider, to.model) == whose),
                request.model,
            )
        ]

    async def _is_refused(self, events: Iterable[Event]) -> bool:
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
    """Models of which the next one is asked where one fails, also in the middle of an answer, which
    is then taken back.

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
"""A model string, a provider's record, or several of them: a fallback, or a list, which is one
too."""


def split_choice(model: ModelChoice) -> tuple[str | Provider, Fallback | None]:
    """The model to ask first, and what may be asked in its place.

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
    """The model string of a string or a record.

    Raises:
        SettingsError: the string is malformed.
    """
    if isinstance(model, Provider):
        return str(ModelString(model.name, model.chat_model))
    parse_model_string(model)
    return model


def _track_messages(events: Iterable[Event], open_messages: list[str]) -> None:
    """Keeps the ids of messages that have begun and were not taken back."""
    for event in events:
        if type(event) is MessageStarted:
            open_messages.append(event.message_id)
        elif type(event) is MessageDropped and event.message_id in open_messages:
            open_messages.remove(event.message_id)


def _find_destination(request: ModelRequest, target: Target) -> Origin:
    """Whom a request goes to, for comparison."""
    whom = target(request)
    return Origin("", None, request.model) if whom is None else endpoint_key(whom, "model")


async def _report_fallback(
    request: ModelRequest, target: Target, attempt: int, error: DragomanError | None, following: str
) -> None:
    """Says that another model is asked: in the log, and to hooks."""
    what = "gave an answer that is not taken" if error is None else f"failed ({error})"
    _LOG.warning("%s %s; %s is asked", request.model, what, following)
    if watching := find_active_hooks(()) if request.run is None else request.run.hooks:
        provider = (error and error.provider) or _find_destination(request, target).provider
        status = None if error is None else error.status
        retry = ModelRetry(
            request.run, provider, attempt, status=status, error=error, fallback=following
        )
        await call_hooks(watching, "retry", retry)


def _make_condition(on: On | Iterable[On]) -> Callable[[DragomanError], bool]:
    """One function that says whether an error is one of those."""
    conditions = (
        (on,)
        if callable(on)
        else expect_sequence("on", on, "classes of DragomanError, or functions of an error")
    )
    for condition in conditions:
        if not (
            issubclass(condition, DragomanError)
            if isinstance(condition, type)
            else callable(condition)
        ):
            raise wrong_type_error(
                "on", condition, "classes of DragomanError, or functions of an error"
            )

    def rule(error: DragomanError) -> bool:
        return any(
            isinstance(error, condition) if isinstance(condition, type) else condition(error)
            for condition in conditions
        )

    return rule


def _attach_earlier(
    error: DragomanError, failures: Sequence[tuple[str, DragomanError]]
) -> DragomanError:
    """The error of the last model, which tells those of the others too."""
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
    return text if len(text) <= _EXCERPT_LENGTH else f"{text[:_EXCERPT_LENGTH]}…"
