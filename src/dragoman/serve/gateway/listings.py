"""The models behind patterns, as their providers list them: asked for now and then, and never waited for long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import anyio

from dragoman import providers
from dragoman.errors import DragomanError
from dragoman.logs import logger
from dragoman.model.listing import list_models
from dragoman.providers import Provider
from dragoman.result import ModelInfo
from dragoman.serve.gateway.offers import Pattern
from dragoman.serve.gateway.upstreams import Upstreams

__all__ = ["Listings"]

_LOG = logger("serve.gateway")
_FRESH = 300.0
"""Seconds for which a list holds."""
_AGAIN = 30.0
"""Seconds after which a provider is asked again that gave none."""
_WAIT = 5.0
"""Seconds for which a list is waited for."""
_MOST = 1000
"""Models of one provider that are listed at most."""


class Listings:
    """The lists of providers, by provider."""

    def __init__(self, upstreams: Upstreams, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: seconds."""
        self._upstreams, self._clock = upstreams, clock
        self._lists: dict[str, tuple[float, Sequence[ModelInfo]]] = {}

    async def of(self, patterns: Sequence[Pattern]) -> list[ModelInfo]:
        """What clients may ask for by these patterns, as far as it is known."""
        found = {each.provider: providers.get(each.provider) for each in patterns}
        async with anyio.create_task_group() as group:
            for provider in found.values():
                group.start_soon(self._refresh, provider)
        return [info for each in patterns for info in self._named(each, found[each.provider])]

    def _named(self, pattern: Pattern, provider: Provider) -> Iterator[ModelInfo]:
        for info in self._lists[provider.name][1]:
            if (name := pattern.name(info.name)) is not None:
                yield ModelInfo(name, provider.name, info.kinds, info.display_name)

    async def _refresh(self, provider: Provider) -> None:
        until, before = self._lists.get(provider.name, (0.0, None))
        if before is not None and self._clock() < until:
            return
        known = (provider.chat_model, "chat"), (provider.embeddings_model, "embeddings")
        usual = [ModelInfo(name, provider.name, (kind,)) for name, kind in known if name]
        self._lists[provider.name] = (
            self._clock() + _AGAIN,
            before or usual,
        )  # for who asks meanwhile
        try:
            with anyio.fail_after(_WAIT):
                models = await list_models(self._upstreams.access(provider))
        except (DragomanError, TimeoutError) as error:
            _LOG.warning("%s does not list its models (%s)", provider.name, type(error).__name__)
            return
        self._lists[provider.name] = (self._clock() + _FRESH, models[:_MOST])
