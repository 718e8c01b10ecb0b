"""An agent made with the official A2A SDK's own server parts, and nothing of ours."""

from __future__ import annotations

from typing import Any

from a2a.helpers import new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette

__all__ = ["CANCELLED", "sdk_app"]

CANCELLED: list[str] = []
"""Ids of tasks that were cancelled."""


class Clerk(AgentExecutor):
    """Counts what it was told in a conversation; asks before it pays; works for long where it is
    asked to."""

    def __init__(self) -> None:
        self._heard: dict[str, list[str]] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text, task_id, context_id = (
            context.get_user_input(),
            context.task_id or "",
            context.context_id or "",
        )
        updater = TaskUpdater(event_queue, task_id, context_id)
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(
                Task(id=task_id, context_id=context_id, status=status, history=[context.message])
            )
        await updater.start_work()
        heard = self._heard.setdefault(context_id, [])
        heard.append(text)
        if "broken" in text:
            await updater.failed(
                updater.new_agent_message([new_text_part("The printer is on fire.")])
            )
            return
        if "pay" in text:
            await updater.requires_input(updater.new_agent_message([new_text_part("Shall I pay?")]))
            return
        words = [f"{len(heard)}:", *text.split()]
        for at, word in enumerate(words * (500 if "long" in text else 1)):
            last = at == len(words) - 1
            await updater.add_artifact(
                [new_text_part(word + " ")], "answer", append=at > 0, last_chunk=last
            )
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        CANCELLED.append(context.task_id or "")
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


def sdk_app(url: str, *bindings: tuple[str, str], streaming: bool = True) -> Any:
    """An application at `url`. `bindings`: each with its version, as the card names them."""
    card = AgentCard(
        name="Clerk",
        description="Counts.",
        version="1",
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="count", name="count", description="Counts.", tags=["count"])],
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
            for binding, version in bindings
        ],
    )
    handler = DefaultRequestHandler(Clerk(), InMemoryTaskStore(), card)
    routes: list[Any] = [*create_agent_card_routes(card)]
    if any(binding == "JSONRPC" for binding, _ in bindings):
        routes += create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True)
    else:
        routes += create_rest_routes(handler)
    return Starlette(routes=routes)
