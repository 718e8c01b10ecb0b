"""Push notifications of A2A's tasks: what clients ask about their addresses, and what is sent of a
run."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields
from dragoman.errors import ModelNotFoundError
from dragoman.json_bytes import Json, JsonMap
from dragoman.logs import logger
from dragoman.request import RunRequest
from dragoman.serve.apis.a2a_frames import Frame, TaskError
from dragoman.serve.apis.a2a_tasks import find_run, request_of
from dragoman.serve.core.call import Call
from dragoman.serve.core.client_events import ClientEvents
from dragoman.serve.core.enqueueing import NOTIFY, enqueue_job
from dragoman.serve.store.stored_answer import Answered
from dragoman.wires import a2a

__all__ = [
    "create_push",
    "delete_push",
    "dump_run",
    "get_push",
    "list_push",
    "notify",
    "subscribe_address",
]

_LOG = logger("serve")
_NAMES = ("taskPushNotificationConfig", "pushNotificationConfig", "pushNotification")
"""Field with an address in 1.0, in 0.3, and in the latter's REST binding."""


async def create_push(call: Call, params: Json, frame: Frame) -> None:
    """Stores an address for push notifications of an A2A task."""
    run, task_id = await _find_push_task(call, params)
    hooks = call.service.webhooks
    config = {name: value for name, value in _read_config(params).items() if name != "taskId"}
    stored = await hooks.add(call.caller.id, task_id, config, call.service.new_id())
    if run.ending is not None:
        await enqueue_job(call.service, NOTIFY, run.id, call.caller.id)
    elif run.state == "in_progress" and run.run_id is not None:
        objects = dump_run(call, run.run_id, task_id, request_of(call, run))
        hooks.send(call.caller.id, task_id, stored["id"], run.run_id, objects)
    await frame.respond(call, frame.push(stored))


async def get_push(call: Call, params: Json, frame: Frame) -> None:
    """Returns one address for push notifications of an A2A task."""
    _, task_id = await _find_push_task(call, params)
    configs = await call.service.webhooks.list_configs(call.caller.id, task_id)
    config = configs.get(_read_config_id(params))
    is_named = "pushNotificationConfigId" in params or not (frame.old and frame.rpc)
    if config is None and not is_named:  # as 0.3 may ask
        config = next(iter(configs.values()), None)
    if config is None:
        raise ModelNotFoundError("there is no such configuration of push notifications here")
    await frame.respond(call, frame.push(config))


async def list_push(call: Call, params: Json, frame: Frame) -> None:
    """Lists the addresses for push notifications of an A2A task."""
    _, task_id = await _find_push_task(call, params)
    configs = await call.service.webhooks.list_configs(call.caller.id, task_id)
    items = [frame.push(config) for config in configs.values()]
    is_plain = frame.old and frame.rpc
    await frame.respond(call, items if is_plain else {"configs": items, "nextPageToken": ""})


async def delete_push(call: Call, params: Json, frame: Frame) -> None:
    """Deletes an address for push notifications of an A2A task."""
    _, task_id = await _find_push_task(call, params)
    await call.service.webhooks.remove(call.caller.id, task_id, _read_config_id(params))
    await frame.respond(call, None if frame.old and frame.rpc else {})


async def _find_push_task(call: Call, params: Json) -> tuple[Answered, str]:
    """Returns the latest run of the task that the parameters name, and the task's id.

    Raises:
        TaskError: the server sends no notifications.
        ModelNotFoundError: there is no such task.
    """
    if call.service.webhooks.policy is None:
        raise TaskError(
            "push notifications are not sent by this server", "PUSH_NOTIFICATION_NOT_SUPPORTED"
        )
    task_id = if_text(params.get("taskId")) or if_text(params.get("id"))
    return await find_run(call, task_id), task_id


async def subscribe_address(call: Call, task_id: str, params: JsonMap) -> str | None:
    """Takes the address for push notifications that comes with a message. Returns its id, or None
    if none came.

    Raises:
        InvalidRequestError: the policy refuses it.
    """
    options = if_object(params.get("configuration"))
    is_named = any(if_object(options.get(name)) for name in _NAMES)
    hooks = call.service.webhooks
    if not is_named or hooks.policy is None:
        return None
    stored = await hooks.add(call.caller.id, task_id, _read_config(options), call.service.new_id())
    return stored["id"]


async def notify(call: Call, run_id: str, task_id: str, request: RunRequest) -> None:
    """Pushes what happens in a run to the addresses that its task has now, whichever process took
    them."""
    hooks = call.service.webhooks
    # For a durable run that is a job.
    if hooks.policy is None or call.service.durable:
        return
    try:
        configs = await hooks.list_configs(call.caller.id, task_id)
    except Exception:  # noqa: BLE001 a store of the user's raises what it likes; the run goes on
        _LOG.exception("where notifications of a task go could not be read")
        return
    for config in configs:
        objects = dump_run(call, run_id, task_id, request)
        hooks.send(call.caller.id, task_id, config, run_id, objects)


async def dump_run(
    call: Call, run_id: str, task_id: str, request: RunRequest
) -> AsyncGenerator[JsonMap, None]:
    """Yields the A2A objects of a run for push notifications."""
    envelope = a2a.envelope(request, id=task_id, now=call.now)
    encoder = a2a.encoder(**{**envelope, "now": call.service.clock})
    client_events = ClientEvents(call)
    async with aclosing(call.service.runs.pages(run_id)) as pages:
        async for page in pages:
            for event in client_events.feed(page):
                for item in encoder.objects(event):
                    yield item
    for item in encoder.close_objects():
        yield item


def _read_config(params: JsonMap) -> Json:
    """Returns the push address that the parameters name: by themselves, or in a field of theirs. Of
    several schemes, as 0.3 has them, the first counts."""
    config: Json = dict(params)
    for name in ("config", *_NAMES):
        if isinstance(params.get(name), dict):
            inner = if_object(params[name])
            config = if_object(inner.get("pushNotificationConfig")) or inner
            break
    auth = if_object(config.get("authentication"))
    schemes = if_list(auth.get("schemes"))
    if not schemes or "scheme" in auth:
        return config
    return {
        **config,
        "authentication": {**read_extra_fields(auth, "schemes"), "scheme": schemes[0]},
    }


def _read_config_id(params: JsonMap) -> str:
    return if_text(params.get("pushNotificationConfigId")) or if_text(params.get("id"))
