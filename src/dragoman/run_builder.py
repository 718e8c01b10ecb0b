"""How a run is made: of what an agent always has, and of the prompt and the options of one send."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from dragoman.hooks import Hooks
from dragoman.limits import Limits
from dragoman.memory.conversation import conversation_of
from dragoman.memory.memory import Memory
from dragoman.message import Message
from dragoman.model.models import Models
from dragoman.model.schemas import providers_for
from dragoman.orchestration import (
    MessageAccumulator,
    StreamingOrchestrator,
    StreamingState,
    choose_orchestrator,
)
from dragoman.orchestration.resume import Beginning
from dragoman.orchestration.seal import Seal
from dragoman.orchestration.typed import output_of
from dragoman.prompt import (
    Prompt,
    RunOptions,
    beginning,
    check_options,
    check_tool_choice,
    opening,
    tools_of,
    with_options,
    with_system,
)
from dragoman.providers import Provider
from dragoman.request import ModelRequest
from dragoman.run import Run
from dragoman.tools import Tool, ToolExecutor, Toolset, split_tools

__all__ = ["RunDefaults", "build_run"]


class RunDefaults(msgspec.Struct, frozen=True, eq=False):
    """What all runs of an agent have in common."""

    models: Models
    """Makes the model that is asked."""
    tools: tuple[Tool | Toolset, ...]
    """Those that it was given."""
    system: Message | None
    """Stands before conversations that have no system message of these words."""
    request: ModelRequest
    """Settings, options and server tools."""
    hooks: tuple[Hooks, ...]
    """Watch its runs."""
    limits: Limits
    """How far a run may go."""
    approval_key: bytes | None
    """Signs what runs wait for."""
    executor: ToolExecutor | None
    """`None`: ours."""
    orchestrator: Callable[[], StreamingOrchestrator] | StreamingOrchestrator | None
    """In place of the provider's, else of ours."""
    accumulator: Callable[[], MessageAccumulator] | None
    """In place of the provider's, else of ours."""
    memory: Memory | None
    """Where conversations are kept that have a thread."""
    display_name: str
    """The name for people."""
    new_id: Callable[[], str]
    """Makes the id of a message or a run."""
    clock: Callable[[], datetime]
    """Tells the time."""


def build_run(agent: RunDefaults, prompt: Prompt, output_type: Any, how: RunOptions) -> Run[Any]:
    """A run of the agent that has these defaults. It raises what `Agent.run` does."""
    check_options(how)
    _check_tool_choice(agent, how)
    new, how = opening(prompt, how, new_id=agent.new_id, clock=agent.clock)
    output = output_of(output_type, how.get("output_schema"))
    chat_model = agent.models.chat(model := how.get("model"))
    request = with_options(agent.request, how)
    tools = (*agent.tools, *tools_of(how.get("tools", ())))
    seal = Seal(agent.approval_key, how.get("thread_id"), how.get("resource_id"))
    run_id = how.get("run_id") or agent.new_id()
    conversation = conversation_of(agent.memory, how)
    state = StreamingState(
        (),
        tools,
        request=request,
        executor=agent.executor,
        accumulator=agent.accumulator or chat_model.provider.accumulator or MessageAccumulator,
        validate=output.read if output is not None else None,
        new_id=agent.new_id,
        clock=agent.clock,
        deps=how.get("deps"),
        run_id=run_id,
        thread_id=how.get("thread_id") or run_id,
        resource_id=how.get("resource_id"),
        context=tuple(how.get("context", ())),
        shared=how.get("state"),
        metadata=how.get("metadata", {}),
        seal=seal,
        claim=how.get("claim"),
    )
    if output is not None:
        state.output_options = output.options

    def begin(known: Iterable[Tool] | None, history: Sequence[Message] | None = None) -> Beginning:
        return beginning(
            new,
            how if history is None else {**how, "history": history},
            system=agent.system,
            tools=known,
            has_toolsets=state.toolset is not None,
            seal=seal,
            on_loss=request.on_loss,
            new_id=agent.new_id,
            clock=agent.clock,
            stored=() if conversation is None else conversation.loaded or (),
        )

    async def known() -> Sequence[Message]:
        """The conversation that it begins with, as far as it is known before the tools of sets are."""
        history = (
            how.get("history", ())
            if conversation is None
            else await conversation.load(how.get("history", ()), new)
        )
        return with_system([*history, *new], system=agent.system)

    async def begin_later() -> tuple[Message, ...]:
        history = (
            None if conversation is None else await conversation.load(how.get("history", ()), new)
        )
        return state.begin(begin(state.tool_map.values(), history))

    reads = conversation is not None and conversation.reads
    begun = None if reads else begin(state.tool_map.values() if state.toolset is None else None)
    own = model.orchestrator if isinstance(model, Provider) else None
    make = own or agent.orchestrator or chat_model.provider.orchestrator
    if make is not None:
        orchestrator = _made(make)
    else:
        orchestrator = choose_orchestrator(
            *providers_for(chat_model, None if output is None else output.schema),
            typed=output is not None,
            tools=bool(tools),
        )
    return Run(
        chat_model,
        orchestrator,
        state,
        opening=() if begun is None else state.begin(begun),
        begin=begin_later if begun is None or begun.needs_tools else None,
        output_schema=output.schema if output is not None else None,
        limits=how.get("limits") or agent.limits,
        convert=output.convert if output is not None else str,
        agent_name=agent.display_name,
        hooks=agent.hooks,
        conversation=conversation,
        known=known,
    )


def _made(
    orchestrator: Callable[[], StreamingOrchestrator] | StreamingOrchestrator,
) -> StreamingOrchestrator:
    """An orchestrator as it is given, or made by the class or function that is given."""
    if not isinstance(orchestrator, type) and hasattr(orchestrator, "process_iteration"):
        return cast("StreamingOrchestrator", orchestrator)
    return cast("Callable[[], StreamingOrchestrator]", orchestrator)()


def _check_tool_choice(agent: RunDefaults, how: RunOptions) -> None:
    """Checks the tool that a program says must be called. What a set of tools has is not known before the run."""
    settings = how.get("settings")
    if settings is None or settings.tool_choice is None:
        return
    own, sets = split_tools((*agent.tools, *tools_of(how.get("tools", ()))))
    if sets is None:
        check_tool_choice(
            settings.tool_choice, [*own, *[tool.name for tool in agent.request.tools]]
        )
