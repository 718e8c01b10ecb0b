"""What a client of tasks asks about push notifications, and what is sent of a run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_text, rest
from dragoman.logs import logger
from dragoman.request import RunRequest
from dragoman.serve.agents.shown_events import shown
from dragoman.serve.calls.call import Call
from dragoman.serve.conversations.threads import resource_of
from dragoman.serve.tasks.frames import task_wire
from dragoman.serve.tasks.tasks import TaskRecord, client_messages, context_of

__all__ = ["push_config", "config_id", "notify", "notify_record", "subscribed"]

_LOG = logger("serve")
_NAMES = ("taskPushNotificationConfig", "pushNotificationConfig", "pushNotification")
"""Field with an address in 1.0, in 0.3, and in the latter's REST binding."""


def push_config(params: Mapping[str, Any]) -> dict[str, Any]:
    """The address that the parameters name: by themselves, or in a field of theirs. Of several schemes, as 0.3 has them, the first counts."""
    found: dict[str, Any] = dict(params)
    for name in ("config", *_NAMES):
        if isinstance(params.get(name), dict):
            inner = if_object(params[name])
            found = if_object(inner.get("pushNotificationConfig")) or inner
            break
    auth = if_object(found.get("authentication"))
    schemes = if_list(auth.get("schemes"))
    if not schemes or "scheme" in auth:
        return found
    return {**found, "authentication": {**rest(auth, "schemes"), "scheme": schemes[0]}}


async def subscribed(call: Call, task_id: str, params: Mapping[str, Any]) -> str | None:
    """Takes the address that comes with a message → its id; `None`: none does.

    Raises:
        InvalidRequestError: the policy refuses it.
    """
    how = if_object(params.get("configuration"))
    named = any(if_object(how.get(name)) for name in _NAMES)
    if named and call.service.webhooks.policy is not None:
        return (
            await call.service.webhooks.add(
                call.caller.id, task_id, push_config(how), call.service.new_id()
            )
        )["id"]
    return None


async def notify(call: Call, run_id: str, task_id: str, request: RunRequest) -> None:
    """Sends what happens in a run to the addresses that its task has now, whichever process took them."""
    hooks = call.service.webhooks
    if hooks.policy is None:
        return
    try:
        configs = await hooks.of(call.caller.id, task_id)
    except Exception:  # noqa: BLE001 a store of the user's raises what it likes; the run goes on
        _LOG.exception("where notifications of a task go could not be read")
        return
    for config in configs:
        hooks.send(
            call.caller.id, task_id, config, run_id, _objects(call, run_id, task_id, request)
        )


def notify_record(call: Call, record: TaskRecord, config: str) -> None:
    """Sends what happens in the run that goes on in a task, if one does, to one address."""
    last = record.last
    if last.state == "in_progress" and last.run_id is not None:
        wire = task_wire(call)
        request = RunRequest(client_messages(last)[-1:], thread_id=context_of(call, record))
        request = wire.in_task(request, record.id if len(record.runs) > 1 else "")
        objects = _objects(call, last.run_id, record.id, request)
        call.service.webhooks.send(call.caller.id, record.id, config, last.run_id, objects)


async def _objects(
    call: Call, run_id: str, task_id: str, request: RunRequest
) -> AsyncGenerator[Mapping[str, Any], None]:
    wire = task_wire(call)
    envelope = wire.envelope(request, id=task_id, now=call.now)
    encoder = wire.encoder(**{**envelope, "now": call.service.clock})
    async with aclosing(call.service.runs.pages(run_id)) as pages:
        async for page in pages:
            for event in shown(page, resource_of(call)):
                for each in encoder.objects(event):
                    yield each
    for each in encoder.closing():
        yield each


def config_id(params: Mapping[str, Any]) -> str:
    """The id of the address that the parameters name."""
    return if_text(params.get("pushNotificationConfigId")) or if_text(params.get("id"))
