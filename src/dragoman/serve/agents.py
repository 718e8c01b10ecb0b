"""Agents behind the endpoints of models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from dragoman.agent import Agent
from dragoman.event import Event, RunError, RunFinished
from dragoman.request import EmbeddingsRequest, ToolSpec
from dragoman.result import BatchEmbeddingsResult, ModelInfo
from dragoman.run_request import RunRequest
from dragoman.runs.visible import Visible
from dragoman.serve.call import Call
from dragoman.serve.recalling import Recalled
from dragoman.serve.recording import Recording

__all__ = ["AgentBackend"]


class AgentBackend:
    """Agents by their names; a single one without a name answers to every name."""

    edits = False
    """What the model said in a conversation that is kept is not the client's to change."""

    def __init__(self, agents: Agent[Any] | Mapping[str, Agent[Any]]) -> None:
        self._only = None if isinstance(agents, Mapping) else agents
        self._agents = dict(agents) if isinstance(agents, Mapping) else {agents.model: agents}

    async def models(self) -> Sequence[ModelInfo]:
        """The names of the agents."""
        return [ModelInfo(name, "dragoman", display_name=each.display_name) for name, each in self._agents.items()]

    def serves(self, model: str) -> bool:
        """See `Backend`."""
        return self._only is not None or model in self._agents

    async def answer(self, call: Call, known: Recalled, recording: Recording) -> AsyncGenerator[list[Event], None]:
        """A run, as its client may see it: the agent's own calls are hidden, the client's tools wait for the client."""
        request, new_id = known.request, call.service.new_id
        agent = self._agent(request.model)
        messages = tuple([message if message.id else message.replace(id=new_id()) for message in request.messages])
        tools = tuple([tool for tool in request.tools if isinstance(tool, ToolSpec)])
        asked = RunRequest(
            messages,
            run_id=call.id,
            thread_id=known.thread_id,
            resource_id=call.caller.id,
            tools=tools,
            resume=known.resumes,
            settings=request.settings,
        )
        run = agent.run(asked, output_schema=request.output_schema, trusted_history=known.parent is not None)
        view, ids = Visible(), {message.id for message in messages}
        async with run, aclosing(run.steps(chunks=False)) as steps:
            async for step in steps:
                if step.events and isinstance(step.events[-1], RunFinished | RunError):
                    result = run.so_far()
                    recording.output = [message for message in result.messages if message.id not in ids]
                    recording.pending = result.pending
                if events := [seen for event in step.events for seen in view.feed(event)]:
                    yield events

    async def close(self) -> None:
        """Gives back the connections of the agents."""
        for agent in self._agents.values():
            await agent.close()

    async def embed(self, call: Call, request: EmbeddingsRequest) -> BatchEmbeddingsResult:  # noqa: ARG002 the protocol's
        """See `Backend`."""
        return await self._agent(request.model).embed_documents(request.texts)

    def _agent(self, model: str) -> Agent[Any]:
        return self._only or self._agents[model]
