"""Agents behind the endpoints of models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from types import NoneType
from typing import Any

from dragoman.agent import Agent
from dragoman.arguments import expect
from dragoman.errors import AuthenticationError, InvalidRequestError, SettingsError
from dragoman.event import Event, RunError, RunFinished
from dragoman.message import Role
from dragoman.request import EmbeddingsRequest, ModelRequest, RunRequest
from dragoman.result import BatchEmbeddingsResult, ModelInfo
from dragoman.run import Run
from dragoman.serve.agents.answers import AgentAnswer
from dragoman.serve.agents.cache_marks import without_cache_marks
from dragoman.serve.agents.conversations import conversed
from dragoman.serve.agents.policy import AgentPolicy
from dragoman.serve.agents.requests import Allowed, allowed, of_client
from dragoman.serve.calls.call import Call
from dragoman.serve.conversations.claims import claim_of
from dragoman.serve.conversations.recalling import Recalled
from dragoman.serve.conversations.recording import Recording, waiting_task
from dragoman.serve.conversations.threads import resource_of
from dragoman.tools import Tool

__all__ = ["AgentBackend"]

_LONGEST = 200  # characters of a name


class AgentBackend:
    """Agents by their names; a single one without a name answers to every name."""

    edits = False
    """What the model said in a conversation that is kept is not the client's to change."""

    references = False
    """What its provider keeps is the agent's."""

    def __init__(
        self, agents: Agent[Any] | Mapping[str, Agent[Any]], policy: AgentPolicy | None = None
    ) -> None:
        """Raises:
        SettingsError: there is no agent, or a name is none.
        TypeError: something is no agent, or no policy.
        """
        for each in agents.values() if isinstance(agents, Mapping) else [agents]:
            expect(
                "agents",
                each,
                Agent,
                hint='give dragoman.Agent("openai:gpt-4o"), or several by their names',
            )
        if not agents:
            raise SettingsError(
                'a server needs an agent: agents={} has none; give {"NAME": Agent(…)}'
            )
        for name in agents if isinstance(agents, Mapping) else ():
            _check_name(name)
        expect("policy", policy, AgentPolicy, NoneType)
        self._only = None if isinstance(agents, Mapping) else agents
        self._agents = (
            dict(agents)
            if isinstance(agents, Mapping)
            else {agents.model.partition("?")[0]: agents}
        )
        self._policy = policy or AgentPolicy()

    @property
    def names(self) -> Sequence[str]:
        """What clients may ask for."""
        return list(self._agents)

    def admit(self, call: Call) -> Call:
        """See `Backend`. An agent's provider gets no field of a client's but those of `AgentPolicy`."""
        return call

    def remembers(self, call: Call, request: ModelRequest) -> bool:  # noqa: ARG002
        """See `Backend`."""
        return True

    @property
    def detaches(self) -> bool:
        """See `Backend`."""
        return self._policy.on_disconnect == "detach"

    async def models(self) -> Sequence[ModelInfo]:
        """The names of the agents."""
        return [
            ModelInfo(name, "dragoman", display_name=each.display_name)
            for name, each in self._agents.items()
        ]

    def check_keys(self) -> Mapping[str, AuthenticationError | None]:
        """See `Agent.check_keys`; of all agents."""
        return {
            name: error
            for agent in self._agents.values()
            for name, error in agent.check_keys().items()
        }

    def serves(self, model: str) -> bool:
        """See `Backend`."""
        return self._only is not None or model in self._agents

    def answer(
        self, call: Call, known: Recalled, recording: Recording
    ) -> AsyncGenerator[list[Event], None]:
        """A run, as its client may see it: the agent's own calls are hidden, the client's tools wait for the client."""
        return self._answer(call, known, recording)

    async def _answer(
        self, call: Call, known: Recalled, recording: Recording
    ) -> AsyncGenerator[list[Event], None]:
        agent, known = self._agent(known.request.model), without_cache_marks(known)
        own = [tool.name for tool in agent.tools if isinstance(tool, Tool)]
        what = allowed(known.request, call.wire.name, self._policy, own)
        run = await _run(agent, call, known, what, recording)
        shown = AgentAnswer(call, what.losses)
        given = {message.id for message in recording.new}
        async with run, aclosing(run.steps(chunks=False)) as steps:
            async for step in steps:
                if step.events and isinstance(step.events[-1], RunFinished | RunError):
                    result = run.so_far()
                    recording.output = [
                        message
                        for message in result.messages
                        if message.id not in given and message.role is not Role.SYSTEM
                    ]
                    recording.pending = result.pending
                ending = step.events[-1] if step.events else None
                if (
                    isinstance(ending, RunError)
                    and (error := of_client(ending.error, what.tools)) is not ending.error
                ):
                    raise error
                if events := shown.feed(step.events):
                    yield events

    async def close(self) -> None:
        """Gives back the connections of the agents."""
        for agent in self._agents.values():
            await agent.close()

    def served(self, name: str) -> tuple[Agent[Any], AgentPolicy]:
        """The agent that answers to a name, and what clients may change of its runs."""
        return self._agent(name), self._policy

    async def embed(self, call: Call, request: EmbeddingsRequest) -> BatchEmbeddingsResult:  # noqa: ARG002 the protocol's
        """See `Backend`."""
        return await self._agent(request.model).embed_documents(request.texts)

    def _agent(self, model: str) -> Agent[Any]:
        return self._only or self._agents[model]


async def _run(
    agent: Agent[Any], call: Call, known: Recalled, what: Allowed, recording: Recording
) -> Run[Any]:
    """The run that answers a request.

    Raises:
        InvalidRequestError: the agent cannot do what the request asks for.
    """
    talk = await conversed(agent, call, known, what)
    new = [each if each.id else each.replace(id=call.service.new_id()) for each in talk.new]
    recording.thread_id, recording.new = talk.thread_id, new
    if talk.resumes and talk.thread_id is not None:
        recording.task_id = await waiting_task(call, talk.thread_id)
    request = RunRequest(
        (*talk.before, *new),
        run_id=call.id,
        thread_id=talk.thread_id,
        resource_id=resource_of(call),
        tools=what.tools,
        resume=tuple(talk.resumes),
        settings=what.settings,
    )
    try:
        return agent.run(
            request,
            output_schema=what.output_schema,
            trusted_history=talk.trusted,
            claim=claim_of(call, known),
            reading=talk.reading,
        )
    except SettingsError as error:
        if what.output_schema is None:
            raise
        raise InvalidRequestError(
            "the model here gives no answers by a schema; leave the schema out"
        ) from error


def _check_name(name: object) -> None:
    if not (
        isinstance(name, str) and name.strip() and name.isprintable() and len(name) <= _LONGEST
    ):
        raise SettingsError(
            f"agents={{{name!r:.100}: …}}: a name has 1 to {_LONGEST} characters, all of which can be printed"
        )
