"""Push notifications: what happens in a task, sent to addresses that its client gave, as far as the
server's policy lets it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import DragomanError, InvalidRequestError
from dragoman.json_bytes import Json, JsonMap
from dragoman.logs import logger
from dragoman.serve.store.answer_store import AnswerStore, NoAnswers
from dragoman.transport.address_policy import AddressPolicy
from dragoman.transport.fetching import post

__all__ = ["Webhooks"]

_LOG = logger("serve")
_MOST_ADDRESSES = 10
"""Addresses of a task."""
_LONGEST_ID = 200
_MOST_BYTES = 16 * 1024
"""Of an address with its token and what it asks for."""
_FAILURES = 5
"""After so many failures one after the other an address is forgotten."""
_FIELDS = ("url", "token", "authentication")
_Key = tuple[str, str, str, str]
"""Owner, task, id of the configuration, id of the run."""


class Webhooks:
    """The addresses of tasks, kept beside the tasks, so that every process over that store knows
    them. Without a policy, or where nothing is kept, there are none.

    The process that begins a run sends it to the addresses that the task has then; that which takes
    an address meanwhile sends the rest there.
    """

    def __init__(self, policy: AddressPolicy | None, store: AnswerStore) -> None:
        """Creates the sender of push notifications to webhooks. `policy`: which addresses may be
        called."""
        if isinstance(store, NoAnswers):
            self.policy = None
        else:
            self.policy = policy
        """What may be opened; `None`: nothing, and no client can ask for it."""
        self._store = store
        self._senders: dict[_Key, asyncio.Task[None]] = {}
        self._failures: Counter[tuple[str, str, str]] = Counter()
        """Failures one after the other of addresses: owner, task, id of the configuration."""

    async def add(self, owner: str, task_id: str, config: JsonMap, new_id: str) -> Json:
        """Adds the address of a webhook to a task. Returns what is kept of it.

        Raises:
            InvalidRequestError: it is none, the policy refuses it, or the task has as many as may be.
        """
        assert self.policy is not None
        url, config_id = config.get("url"), if_text(config.get("id")) or new_id
        if not isinstance(url, str) or not url:
            raise InvalidRequestError("url must be the address that notifications go to")
        # Refuses addresses that the policy does not allow before they are stored.
        self.policy.check_url(url)
        if len(config_id) > _LONGEST_ID or not config_id.isprintable():
            raise InvalidRequestError(
                f"id must have {_LONGEST_ID} characters at most, all of which can be printed"
            )
        _check_headers(config)
        stored = {"id": config_id, "taskId": task_id}
        stored |= {name: config[name] for name in _FIELDS if config.get(name) not in (None, "", {})}
        if len(json_bytes.encode(stored)) > _MOST_BYTES:
            raise InvalidRequestError(
                f"an address with all that belongs to it has {_MOST_BYTES} bytes at most"
            )
        configs = await self.list_configs(owner, task_id)
        if len(configs) >= _MOST_ADDRESSES and config_id not in configs:
            raise InvalidRequestError(f"a task has {_MOST_ADDRESSES} addresses at most; delete one")
        await self._store.save_push(owner, task_id, stored)
        return stored

    async def list_configs(self, owner: str, task_id: str) -> dict[str, Json]:
        """Returns the addresses of a task, by their ids."""
        configs = await self._store.push_configs(owner, task_id)
        return {config["id"]: config for config in configs}

    async def remove(self, owner: str, task_id: str, config_id: str) -> None:
        """Forgets an address."""
        await self._store.delete_push(owner, task_id, config_id)

    def send(
        self,
        owner: str,
        task_id: str,
        config_id: str,
        run_id: str,
        objects: AsyncGenerator[JsonMap, None],
    ) -> None:
        """Sends what happens in a run to a webhook's address until the run ends; once at a time."""
        key = (owner, task_id, config_id, run_id)
        # One sender per address and run, even if two requests ask for it.
        if key not in self._senders:
            sender = self._senders[key] = asyncio.create_task(
                self._send_task_objects(key, objects), name=f"dragoman-push-{task_id}"
            )
            sender.add_done_callback(lambda _: self._senders.pop(key, None))

    async def deliver(self, owner: str, task_id: str, item: JsonMap) -> None:
        """Sends an object of a task to the addresses that the task has now. One that fails too often is
        forgotten."""
        configs = await self.list_configs(owner, task_id)
        taken = await asyncio.gather(
            *[self._post_object(config, item) for config in configs.values()]
        )
        for config_id, is_taken in zip(configs, taken, strict=True):
            key = (owner, task_id, config_id)
            self._failures[key] = 0 if is_taken else self._failures[key] + 1
            if self._failures[key] >= _FAILURES:
                _LOG.warning("an address of a task takes no notifications, and is forgotten")
                await self.remove(owner, task_id, config_id)
            if not self._failures[key] or self._failures[key] >= _FAILURES:
                del self._failures[key]

    async def close(self) -> None:
        """Stops all push notifications to webhooks."""
        senders = list(self._senders.values())
        for sender in senders:
            sender.cancel()
        if senders:
            await asyncio.wait(senders)

    async def _send_task_objects(self, key: _Key, objects: AsyncGenerator[JsonMap, None]) -> None:
        """Sends the objects of a task to one webhook until its address is removed or fails too
        often."""
        owner, task_id, config_id, _ = key
        failures = 0
        try:
            async with aclosing(objects):
                async for item in objects:
                    # It may have been changed or deleted since the last one.
                    config = (await self.list_configs(owner, task_id)).get(config_id)
                    if config is None:
                        return
                    if await self._post_object(config, item):
                        failures = 0
                    else:
                        failures = failures + 1
                    if failures >= _FAILURES:
                        _LOG.warning(
                            "an address of a task takes no notifications, and is forgotten"
                        )
                        await self.remove(owner, task_id, config_id)
                        return
        except DragomanError as error:
            _LOG.info("notifications of a task ended: %s", error.message)
        except Exception:  # noqa: BLE001 a store of the user's raises what it likes
            _LOG.exception("notifications of a task ended")

    async def _post_object(self, config: JsonMap, item: JsonMap) -> bool:
        """Posts one object to a webhook. Returns True if the address accepted it."""
        assert self.policy is not None
        try:
            return (await post(config["url"], self.policy, item, _headers_of(config))).status < 400
        except DragomanError as error:
            _LOG.info("a notification was not taken: %s", error.message)
            return False


def _check_headers(config: JsonMap) -> None:
    """Raises an error if the token or credentials of a webhook cannot be sent in a header.

    Raises:
        InvalidRequestError: the token, or what proves who sends, is no text of ASCII that can be printed.
    """
    auth = config.get("authentication")
    if auth is not None and not isinstance(auth, dict):
        raise InvalidRequestError("authentication must be an object with a scheme and credentials")
    texts = {
        "token": config.get("token"),
        "authentication.scheme": if_object(auth).get("scheme"),
        "authentication.credentials": if_object(auth).get("credentials"),
    }
    for name, text in texts.items():
        if text is None:
            continue
        if not (isinstance(text, str) and text.isascii() and text.isprintable()):
            raise InvalidRequestError(
                f"{name} must be a text of ASCII characters that can be printed: it is sent as a header"
            )


def _headers_of(config: JsonMap) -> dict[str, str]:
    """Returns the headers of a notification to a webhook: content type, token and authorization."""
    headers = {"content-type": "application/a2a+json"}
    if token := if_text(config.get("token")):
        headers["x-a2a-notification-token"] = token
    auth = if_object(config.get("authentication"))
    scheme, credentials = if_text(auth.get("scheme")), if_text(auth.get("credentials"))
    if scheme and credentials:
        headers["authorization"] = f"{scheme} {credentials}"
    return headers
