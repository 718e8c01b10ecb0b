"""The response cache: middleware that answers repeated requests without asking the model. See
`cache`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Self

from dragoman.arguments import expect, expect_callable
from dragoman.errors import SettingsError
from dragoman.event import Event
from dragoman.logs import logger
from dragoman.model.cache_answer import (
    StoredAnswer,
    cache_key,
    dump_answer,
    is_complete,
    load_answer,
    replay,
)
from dragoman.model.cache_store import CacheStore, open_store
from dragoman.model.middleware import Batches, Destination, Target
from dragoman.request import ModelRequest
from dragoman.runtime import new_id, now

__all__ = ["ResponseCache", "cache"]

_LOG = logger("model.cache")
_off: ContextVar[tuple[ResponseCache, ...]] = ContextVar("_off", default=())


class ResponseCache:
    """Middleware made by `cache`. Agents, threads and event loops may share it."""

    def __init__(
        self,
        store: CacheStore,
        *,
        ttl: float | None,
        when: Callable[[ModelRequest], bool] | None,
        scope: str | None,
        id_factory: Callable[[], str],
        clock: Callable[[], datetime],
    ) -> None:
        """Creates the cache of responses. See `cache`."""
        self.store = store
        """Stores the answers."""
        self._ttl, self._when, self._scope = ttl, when, scope
        self._new_id, self._clock = id_factory, clock
        self._works = True

    async def batches(
        self, request: ModelRequest, following: Batches, target: Target
    ) -> AsyncGenerator[list[Event], None]:
        """Answers a request from the response cache, or sends it. See `BatchMiddleware`."""
        destination, key = None, None
        if self._is_cacheable(request) and (destination := target(request)) is not None:
            key = cache_key(request, destination, self._scope)
        if destination is None or key is None:
            async with aclosing(following(request)) as batches:
                async for events in batches:
                    yield events
            return
        if (answer := await self._load_answer(key, destination)) is not None:
            for events in replay(answer, new_id=self._new_id, now=self._clock()):
                yield events
            return
        answer_events: list[Event] = []
        async with aclosing(following(request)) as batches:
            async for events in batches:
                answer_events += events
                yield events
        await self._store_answer(key, answer_events, destination)

    @contextmanager
    def off(self) -> Generator[None]:
        """Turns the cache off for requests that are sent in this block: they neither read nor fill
        it."""
        before = _off.set((*_off.get(), self))
        try:
            yield
        finally:
            _off.reset(before)

    async def close(self) -> None:
        """Closes the store."""
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _is_cacheable(self, request: ModelRequest) -> bool:
        """True if the request may be answered from the cache."""
        return self not in _off.get() and (self._when is None or self._when(request))

    async def _load_answer(self, key: str, to: Destination) -> StoredAnswer | None:
        """Returns the cached response, or None if there is none or it is too old."""
        try:
            data = await self.store.get(key)
        except Exception as error:  # noqa: BLE001 - whatever a store raises
            self._log_failure(error)
            return None
        if data is None or (answer := load_answer(data, to)) is None:
            return None
        if self._ttl is not None and answer.answered_at + self._ttl <= self._clock().timestamp():
            return None
        return answer

    async def _store_answer(self, key: str, events: list[Event], to: Destination) -> None:
        """Caches a response if it is complete."""
        if not is_complete(events, to):
            return
        try:
            await self.store.put(key, dump_answer(events, self._clock()))
            self._works = True
        except Exception as error:  # noqa: BLE001 - whatever a store raises, or what JSON cannot hold
            self._log_failure(error)

    def _log_failure(self, error: Exception) -> None:
        """Logs a failure of the response cache's store, once until an answer is stored again."""
        if self._works:
            self._works = False
            _LOG.warning(
                "the response cache does not work, models are asked: %s: %s",
                type(error).__name__,
                error,
            )


def cache(
    store: str | CacheStore = "memory:",
    *,
    ttl: float | None = None,
    max_entries: int = 10_000,
    when: Callable[[ModelRequest], bool] | None = None,
    scope: str | None = None,
    id_factory: Callable[[], str] = new_id,
    clock: Callable[[], datetime] = now,
) -> ResponseCache:
    """Makes a response cache: a middleware that stores answers and replays them for equal requests,
    without asking the model.

    ```python
    agent = Agent("openai", middleware=[cache("sqlite:///answers.db")])
    ```

    The answer comes as a stream, its messages have new ids, and its call is `cached` in
    `result.calls`: it costs nothing. Only whole answers are stored, and an answer is found again
    only by a request that is the same in all that the model is told, to the same model of the same
    endpoint, for the same user (`resource_id`).

    Args:
        store: `memory:`, `sqlite:///path` (extra `sql`), or one of yours. It holds what users and models said.
        ttl: seconds for which an answer counts; `None`: for ever.
        max_entries: when there are more, what was not used for the longest time is forgotten. One's own store has its own bound.
        when: whether a request may be answered from the cache, and its answer stored; left out, all may, whatever their temperature.
        scope: those without a `resource_id` share answers where they have the same scope; left out, where they have the same key.
        id_factory: makes the ids of messages.
        clock: the time, in UTC.

    Raises:
        SettingsError: there is no such store, or the extra `sql` is not installed.
        TypeError: an argument is of another type.
    """
    expect("max_entries", max_entries, int)
    expect("ttl", ttl, int, float, type(None), hint="it is seconds")
    expect("scope", scope, str, type(None))
    expect_callable("when", when, "a function of a request")
    expect_callable("id_factory", id_factory, "a function")
    expect_callable("clock", clock, "a function")
    if max_entries < 1 or (ttl is not None and ttl <= 0):
        raise SettingsError("cache(max_entries=…, ttl=…) must be above 0")
    opened_store = open_store(store, max_entries) if isinstance(store, str) else store
    expect("store", opened_store, CacheStore)
    return ResponseCache(
        opened_store, ttl=ttl, when=when, scope=scope, id_factory=id_factory, clock=clock
    )
