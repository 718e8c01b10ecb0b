"""Push notifications: what happens in a task, sent to addresses that its client gave, as far as the server's policy lets it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import DragomanError, InvalidRequestError
from dragoman.logs import logger
from dragoman.transport.address_policy import AddressPolicy
from dragoman.transport.fetching import post

__all__ = ["Webhooks"]

_LOG = logger("serve")
_MOST_TASKS = 10_000
_MOST = 10
"""Addresses of a task."""
_FAILURES = 5
"""After so many failures one after the other an address is forgotten."""
_Key = tuple[str, str]


class Webhooks:
    """The addresses of tasks, by their owner; gone with the process. Without a policy there are none."""

    def __init__(self, policy: AddressPolicy | None) -> None:
        self.policy = policy
        """What may be opened; `None`: nothing, and no client can ask for it."""
        self._configs: OrderedDict[_Key, dict[str, dict[str, Any]]] = OrderedDict()
        self._senders: dict[_Key, asyncio.Task[None]] = {}

    def add(self, owner: str, task_id: str, config: Mapping[str, Any], new_id: str) -> dict[str, Any]:
        """Takes an address → what is kept of it.

        Raises:
            InvalidRequestError: it is none, the policy refuses it, or the task has as many as may be.
        """
        assert self.policy is not None
        url = config.get("url")
        if not isinstance(url, str) or not url:
            raise InvalidRequestError("url must be the address that notifications go to")
        self.policy.place(url)
        names = ("url", "token", "authentication")
        kept = {"id": if_text(config.get("id")) or new_id, "taskId": task_id}
        kept |= {name: config[name] for name in names if config.get(name) not in (None, "", {})}
        mine = self._configs.get((owner, task_id), {})
        if len(mine) >= _MOST and kept["id"] not in mine:
            raise InvalidRequestError(f"a task has {_MOST} addresses at most; delete one")
        self._configs[owner, task_id] = mine
        mine[kept["id"]] = kept
        self._configs.move_to_end((owner, task_id))
        while len(self._configs) > _MOST_TASKS:
            self._configs.popitem(last=False)
        return kept

    def of(self, owner: str, task_id: str) -> dict[str, dict[str, Any]]:
        """The addresses of a task, by their ids."""
        return dict(self._configs.get((owner, task_id), {}))

    def remove(self, owner: str, task_id: str, config_id: str) -> None:
        """Forgets an address."""
        mine = self._configs.get((owner, task_id), {})
        mine.pop(config_id, None)
        if not mine:
            self._configs.pop((owner, task_id), None)

    def send(self, owner: str, task_id: str, objects: AsyncIterator[Mapping[str, Any]]) -> None:
        """Sends what happens in a task from now on, until it ends; once at a time."""
        key = (owner, task_id)
        if key not in self._senders:
            sender = self._senders[key] = asyncio.create_task(self._send(key, objects), name=f"dragoman-push-{task_id}")
            sender.add_done_callback(lambda _: self._senders.pop(key, None))

    async def close(self) -> None:
        """Sends nothing any more."""
        senders = list(self._senders.values())
        for each in senders:
            each.cancel()
        if senders:
            await asyncio.wait(senders)

    async def _send(self, key: _Key, objects: AsyncIterator[Mapping[str, Any]]) -> None:
        failures: dict[str, int] = {}
        with suppress(DragomanError):
            async for each in objects:
                for config in list(self._configs.get(key, {}).values()):
                    await self._post(key, config, each, failures)

    async def _post(
        self, key: _Key, config: Mapping[str, Any], each: Mapping[str, Any], failures: dict[str, int]
    ) -> None:
        assert self.policy is not None
        try:
            posted = await post(config["url"], self.policy, each, _headers(config))
            failed = posted.status >= 400
        except DragomanError as error:
            _LOG.info("a notification was not taken: %s", error.message)
            failed = True
        count = failures[config["id"]] = failures.get(config["id"], 0) + 1 if failed else 0
        if count >= _FAILURES:
            _LOG.warning("an address of a task takes no notifications, and is forgotten")
            self.remove(*key, config["id"])


def _headers(config: Mapping[str, Any]) -> dict[str, str]:
    headers = {"content-type": "application/a2a+json"}
    if token := if_text(config.get("token")):
        headers["x-a2a-notification-token"] = token
    auth = if_object(config.get("authentication"))
    scheme, credentials = if_text(auth.get("scheme")), if_text(auth.get("credentials"))
    if scheme and credentials:
        headers["authorization"] = f"{scheme} {credentials}"
    return headers
