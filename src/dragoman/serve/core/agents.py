"""Agents behind the endpoints of models.

`AgentBackend.answer` makes a run out of a call in steps: it removes the client's cache marks,
applies the policy to the request, joins the conversation with the agent's memory, gives each new
message an id, and starts the run. `ClientAnswer` then hides the agent's own calls from the
client and leaves the client's tools to it. `find_agent` serves the protocols whose clients ask
for an agent, not for a model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from operator import is_
from types import NoneType
from typing import Any, TypeVar

import msgspec

from dragoman.agent import Agent
from dragoman.arguments import expect
from dragoman.errors import (
    AuthenticationError,
    InvalidRequestError,
    ModelNotFoundError,
    SettingsError,
)
from dragoman.event import Event, RunError, RunFinished
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.media_request import MediaKind, MediaRequest
from dragoman.memory.memory_store import MemoryStore
from dragoman.memory.working_memory import WorkingMemory
from dragoman.message import Content, Message, ToolResultPart
from dragoman.model.tokens import TokenCount, request_tokens
from dragoman.orchestration.state import Claim
from dragoman.providers.provider import Provider
from dragoman.request import EmbeddingsRequest, ModelRequest, RunRequest, ServerTool, ToolSpec
from dragoman.result import BatchEmbeddingsResult, ModelInfo
from dragoman.run import Run
from dragoman.runs.requests import RunTerms
from dragoman.serve.core.answer_record import Record, find_waiting_task
from dragoman.serve.core.background import read_answer
from dragoman.serve.core.call import Call
from dragoman.serve.core.client_events import ClientAnswer
from dragoman.serve.core.enqueueing import enqueue_run
from dragoman.serve.core.policy import AgentPolicy, apply_policy, blame_client, client_tools
from dragoman.serve.core.threads import resource_of
from dragoman.serve.core.turn import Turn, conversation_to_claim, join_memory, make_claim
from dragoman.serve.http.call_metrics import find_offered_name

__all__ = ["AgentBackend", "ServedAgent", "choose_model", "find_agent"]

# Characters of a name.
_LONGEST_NAME = 200
_CACHE_MARK = "cache_control"
Bearer = TypeVar("Bearer", bound=Message | Content | ToolSpec | ServerTool)
"""What may have a cache mark."""


class AgentBackend:
    """Agents by their names; a single one without a name answers to every name."""

    edits = False
    """What the model said in a conversation that is kept is not the client's to change."""

    references = False
    """What its provider keeps is the agent's."""

    def __init__(
        self,
        agents: Agent[Any] | Mapping[str, Agent[Any]],
        policy: AgentPolicy | None = None,
        *,
        is_durable: bool = False,
    ) -> None:
        """Makes the backend. `is_durable`: runs are enqueued, and any process may drive them.

        Raises:
        SettingsError: there is no agent, or a name is none.
        TypeError: something is no agent, or no policy.
        """
        for agent in agents.values() if isinstance(agents, Mapping) else [agents]:
            expect(
                "agents",
                agent,
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
        if isinstance(agents, Mapping):
            self._single_agent = None
        else:
            self._single_agent = agents
        if isinstance(agents, Mapping):
            self._agents = dict(agents)
        else:
            self._agents = {agents.model.partition("?")[0]: agents}
        self._policy = policy or AgentPolicy()
        if is_durable and not all(isinstance(model, str) for model in self._policy.models):
            raise SettingsError(
                "AgentPolicy(models=…) with durable runs takes model strings: a record of a provider cannot be stored"
            )
        self.is_durable = is_durable

    @property
    def agents(self) -> Mapping[str, Agent[Any]]:
        """Returns the agents by the names under which their runs are enqueued."""
        return self._agents

    @property
    def names(self) -> Sequence[str]:
        """Returns the names that clients may ask for: of agents, and of agents with a model."""
        models = self._policy.model_names
        if self._single_agent is not None:
            return [*dict.fromkeys([*self._agents, *models])]
        return [*self._agents, *[f"{name}@{model}" for name in self._agents for model in models]]

    def admit(self, call: Call) -> Call:
        """See `Backend`. An agent's provider gets no field of a client's but those of
        `AgentPolicy`."""
        return call

    def remembers(self, call: Call, request: ModelRequest) -> bool:  # noqa: ARG002
        """See `Backend`."""
        return True

    @property
    def working_memories(self) -> Sequence[WorkingMemory]:
        """See `Offer`."""
        memories = [agent.memory for agent in self._agents.values() if agent.memory is not None]
        return [memory.working_memory for memory in memories if memory.working_memory is not None]

    @property
    def has_threads_in_memory(self) -> bool:
        """See `Offer`."""
        memories = [agent.memory for agent in self._agents.values()]
        return any(memory and isinstance(memory.store, MemoryStore) for memory in memories)

    @property
    def detaches(self) -> bool:
        """See `Backend`."""
        return self._policy.on_disconnect == "detach"

    async def models(self) -> Sequence[ModelInfo]:
        """Returns the agents as entries for a list of models."""
        return [
            ModelInfo(name, "dragoman", display_name=self._find(name).agent.display_name)
            for name in self.names
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
        return self._names_agent(model) or self._splits(model)

    async def answer(
        self, call: Call, turn: Turn, record: Record
    ) -> AsyncGenerator[list[Event], None]:
        """Yields a run as its client may see it: the agent's own calls are hidden, the client's
        tools wait for the client."""
        claim = make_claim(call, turn)
        served, turn, request, losses = await self._admit_turn(call, turn)
        record.follow(turn)
        run = _make_run(served, call, turn, request, claim)
        client_answer = ClientAnswer(call, losses, turn.new)
        async with run, aclosing(run.steps(chunks=False)) as steps:
            async for step in steps:
                last = step.events[-1] if step.events else None
                if isinstance(last, RunFinished | RunError):
                    record.note(run.so_far())
                if isinstance(last, RunError):
                    error = blame_client(last.error, request.tools)
                    # Raised instead of streamed: the client then gets the
                    # status of a bad request.
                    if error is not last.error:
                        raise error
                if events := client_answer.feed(step.events):
                    yield events

    async def enqueue(
        self, call: Call, turn: Turn, record: Record, *, background: bool
    ) -> AsyncGenerator[list[Event], None]:
        """Enqueues the run that answers a request. Returns its events as the client may see them.
        `background`: see `Links`.

        Raises:
            OverloadedError: as many runs wait and go on as may.
            StoreError: the answer cannot be kept.
            RunLogError: the log refuses the run.
            DragomanError: the run cannot begin.
        """
        conversation = conversation_to_claim(call, turn)
        served, turn, request, losses = await self._admit_turn(call, turn)
        record.follow(turn)
        # What is wrong with the request is said at once, and not by whoever drives the run.
        _make_run(served, call, turn, request, make_claim(call, turn))
        terms = RunTerms(
            trusted=turn.is_trusted, conversation=conversation, model=served.stored_model
        )
        always = background or self.detaches
        run_request = _make_request(call, turn, request)
        run_request = run_request.replace(output_schema=request.output_schema)
        await enqueue_run(call, served.agent, run_request, terms, record, always=always)
        drops_parts = call.api.drops_parts
        client_answer = ClientAnswer(call, losses, turn.new, drops_parts=drops_parts)
        return read_answer(
            call,
            client_answer.feed,
            lambda error: blame_client(error, request.tools),
            whole=not turn.model_request.stream,
            cancel_on_leave=not always,
        )

    async def _admit_turn(
        self, call: Call, turn: Turn
    ) -> tuple[ServedAgent, Turn, ModelRequest, list[Loss]]:
        """Returns the agent, the turn as the run goes on with it, the request as far as the policy lets
        it through, and what is left out of it."""
        served, turn = self._find(turn.model_request.model), _without_cache_marks(turn)
        agent = served.agent
        request, losses = apply_policy(
            turn.model_request, call.wire.name, self._policy, agent.all_tools
        )
        return served, await _join_turn(agent, call, turn, request), request, losses

    async def close(self) -> None:
        """Gives back the connections of the agents."""
        for agent in self._agents.values():
            await agent.close()

    def get_served(self, name: str) -> ServedAgent:
        """Returns what answers to a name that is served."""
        return self._find(name)

    async def count_tokens(self, call: Call, request: ModelRequest) -> TokenCount:  # noqa: ARG002 the protocol's
        """See `Backend`. What the agent adds to a conversation is not the client's to know."""
        return TokenCount(request_tokens(request), is_estimate=True)

    async def embed(self, call: Call, request: EmbeddingsRequest) -> BatchEmbeddingsResult:  # noqa: ARG002 the protocol's
        """See `Backend`."""
        return await self._find(request.model).agent.embed_documents(request.texts)

    def make_media(
        self,
        call: Call,  # noqa: ARG002 the protocol's
        media_kind: MediaKind,
        request: MediaRequest,
    ) -> AsyncGenerator[list[Event], None]:
        """See `Backend`. An agent answers conversations alone.

        Raises:
            InvalidRequestError: always.
        """
        raise InvalidRequestError(
            f"{request.model!r:.100} is an agent, which makes no {media_kind}; a gateway's models do"
        ).at(field="model")

    def _names_agent(self, name: str) -> bool:
        """True if a name is that of an agent, or any name will do."""
        if self._single_agent is None:
            return name in self._agents
        # With models to choose from, a name that ends in none of them is a mistake.
        return not (self._policy.models and "@" in name and name not in self.names)

    def _splits(self, name: str) -> bool:
        """True if a name is that of an agent with a model that clients may choose."""
        agent, _, model = name.partition("@")
        return self._names_agent(agent) and model in self._policy.model_names

    def _find(self, name: str) -> ServedAgent:
        """Returns what answers to a name that is served."""
        agent, _, model = name.partition("@")
        if self._single_agent is not None and name in self._policy.model_names:
            agent, model = next(iter(self._agents)), name
        elif not self._splits(name):
            agent, model = name, ""
        choice = self._policy.find_model(model) if model else None
        return ServedAgent(agent, self._single_agent or self._agents[agent], self._policy, choice)


async def _join_turn(agent: Agent[Any], call: Call, turn: Turn, request: ModelRequest) -> Turn:
    """Returns the turn as a run of the agent goes on with it; every message that is kept has an id.

    Raises:
        InvalidRequestError: the client answers what it was not asked.
    """
    turn = await join_memory(agent, call, turn, request)
    new_id = call.service.new_id
    named = [message if message.id else message.replace(id=new_id()) for message in turn.new]
    task_id = None
    if turn.resumes and turn.thread_id is not None:
        # An answer over another API still continues the task that asked.
        task_id = await find_waiting_task(call, turn.thread_id)
    return turn.replace(new=tuple(named), task_id=task_id)


def _make_run(
    served: ServedAgent, call: Call, turn: Turn, request: ModelRequest, claim: Claim
) -> Run[Any]:
    """Returns the run of the served agent that answers a request.

    Raises:
        InvalidRequestError: the agent gives no answers by a schema.
    """
    try:
        return served.agent.run(
            _make_request(call, turn, request),
            model=served.model,
            output_schema=request.output_schema,
            trusted_history=turn.is_trusted,
            claim=claim,
            reading=turn.reading,
        )
    except SettingsError as error:
        if request.output_schema is None:
            raise
        raise InvalidRequestError(
            "the model here gives no answers by a schema; leave the schema out"
        ) from error


def _make_request(call: Call, turn: Turn, request: ModelRequest) -> RunRequest:
    """Returns what the agent is asked. `request`: as far as the policy lets it through."""
    return RunRequest(
        (*turn.before, *turn.new),
        run_id=call.id,
        thread_id=turn.thread_id,
        resource_id=resource_of(call),
        tools=client_tools(request),
        resume=turn.resumes,
        settings=request.settings,
    )


class ServedAgent(msgspec.Struct, frozen=True):
    """An agent that a client may ask."""

    name: str
    """By which."""
    agent: Agent[Any]
    """Itself."""
    policy: AgentPolicy
    """What clients may change of its runs."""
    model: str | Provider | None = None
    """The model that the client chose; `None`: the agent's own."""

    @property
    def stored_model(self) -> str | None:
        """Returns the model as a log holds it."""
        return self.model if isinstance(self.model, str) else None


def find_agent(call: Call, name: str = "") -> ServedAgent:
    """Returns the agent of that name, perhaps with a slash behind it; empty: the first that the
    caller may use.

    Raises:
        ModelNotFoundError: there is none.
    """
    name = name.removesuffix("/")
    for backend in call.service.backends:
        if not isinstance(backend, AgentBackend):
            continue
        for candidate in [name] if name else backend.names:
            if call.caller.may_use(candidate) and backend.serves(candidate):
                call.observed.model = find_offered_name(candidate, backend.names)
                return backend.get_served(candidate)
    raise ModelNotFoundError(
        f"there is no agent {name!r:.200} here" if name else "there is no agent here"
    )


def choose_model(call: Call, served: ServedAgent, model: str) -> ServedAgent:
    """Returns the agent with the model that a client chooses by its model string.

    Raises:
        InvalidRequestError: it is none that the client may choose.
    """
    choice = served.policy.find_model(model)
    if not call.caller.may_use(f"{served.name}@{model}"):
        raise InvalidRequestError(f"the model {model!r:.200} cannot be chosen with this key").at(
            field="model"
        )
    return msgspec.structs.replace(served, model=choice)


def _check_name(name: object) -> None:
    """Raises `SettingsError` if the name of a served agent is empty, too long or unprintable."""
    if not (
        isinstance(name, str) and name.strip() and name.isprintable() and len(name) <= _LONGEST_NAME
    ):
        raise SettingsError(
            f"agents={{{name!r:.100}: …}}: a name has 1 to {_LONGEST_NAME} characters, all of which can be printed"
        )


def _without_cache_marks(turn: Turn) -> Turn:
    """Returns the conversation as an agent gets it, without a client's cache marks. If there were
    some, and no setting says it, the request asks for the cache.

    A client moves its marks along with its conversation, of which an agent has its own copy, with
    messages that the client never saw: there they would stay in their old places, one more each
    turn, and providers take few. The agent's requests ask for the cache as a whole.
    """
    request = turn.model_request
    messages = [_unmark_message(message) for message in request.messages]
    tools = [_unmark(tool) for tool in request.tools]
    if all(map(is_, messages, request.messages)) and all(map(is_, tools, request.tools)):
        return turn
    by_id = {
        id(message): unmarked for message, unmarked in zip(request.messages, messages, strict=True)
    }
    new = [by_id.get(id(message)) or _unmark_message(message) for message in turn.new]
    request = request.replace(messages=tuple(messages), tools=tuple(tools))
    return turn.replace(request=_with_cache(request), new=tuple(new))


def _with_cache(request: ModelRequest) -> ModelRequest:
    if request.settings.cache is not None:
        return request
    return request.replace(settings=msgspec.structs.replace(request.settings, cache="short"))


def _unmark_message(message: Message) -> Message:
    """Returns a client's message as an agent gets it, without cache marks, in its content and in
    its own fields."""
    content = [_unmark_piece(piece) for piece in message.content]
    if not all(map(is_, content, message.content)):
        message = message.replace(content=tuple(content))
    return _unmark(message)


def _unmark_piece(piece: Content) -> Content:
    """Returns a piece of content as an agent gets it, without cache marks, also in the parts of a
    tool result."""
    if isinstance(piece, ToolResultPart) and piece.is_content:
        result: Sequence[Any] = [_unmark(inner) for inner in piece.result]
        if not all(map(is_, result, piece.result)):
            piece = msgspec.structs.replace(piece, result=tuple(result))
    return _unmark(piece)


def _unmark(bearer: Bearer) -> Bearer:
    """Returns a value as an agent gets it, without cache marks in its native fields."""
    native = bearer.native
    if not native or not any(
        _CACHE_MARK in fields for fields in native.values() if isinstance(fields, dict)
    ):
        return bearer
    remaining: Json = {}
    for name, fields in native.items():
        unmarked = {field: value for field, value in fields.items() if field != _CACHE_MARK}
        if unmarked:
            remaining[name] = unmarked
    return msgspec.structs.replace(bearer, native=remaining or None)
