"""Makes a run from an agent's defaults and the prompt and options of one send: `build_run` puts
model, orchestrator and state together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from dragoman.arguments import expect_each
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import JsonMap
from dragoman.memory.conversation import open_conversation
from dragoman.message import Message
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration import (
    MessageAccumulator,
    StreamingOrchestrator,
    StreamingState,
    choose_orchestrator,
)
from dragoman.orchestration.interrupts import find_waiting_calls, has_new_prompt
from dragoman.orchestration.output_checks import make_checks
from dragoman.orchestration.output_type import output_of
from dragoman.orchestration.seal import Seal
from dragoman.orchestration.story import Story
from dragoman.prompt import (
    Prompt,
    RunOptions,
    check_options,
    check_tool_choice,
    make_tools,
    open_prompt,
    suggest_place,
)
from dragoman.providers import Provider
from dragoman.request import ModelRequest, Settings
from dragoman.run import Run
from dragoman.run_beginning import RunBeginning, RunDefaults
from dragoman.tools import Tool, Toolset, split_tools

__all__ = ["RunDefaults", "build_run", "find_pending"]

_MANY = 1_000_000
"""More corrections than a run has model calls."""


def build_run(
    agent: RunDefaults,
    prompt: Prompt,
    output_type: object,
    run_options: RunOptions,
    *,
    chat_model: ChatModel | None = None,
    story: Story | None = None,
) -> Run[Any]:
    """Returns a run of the agent that has these defaults. It raises what `Agent.run` does.
    `chat_model`: the model to call; `None`: the one that the options or the defaults name. `story`: see
    `Agent.go_on`."""
    check_options(run_options)
    _check_tool_choice(agent, run_options)
    new, run_options = open_prompt(prompt, run_options, new_id=agent.new_id, clock=agent.clock)
    output = output_of(output_type, run_options.get("output_schema"))
    schema, validate = None, None
    if output is not None:
        schema, validate = output.schema, output.read
    limits = run_options.get("limits") or agent.limits
    model = run_options.get("model")
    if chat_model is None:
        chat_model = agent.models.chat(model)
    request = apply_options(agent.request, run_options)
    tools = _collect_tools(agent, run_options)
    run_id = run_options.get("run_id") or agent.new_id()
    conversation = open_conversation(agent.memory, run_options)
    if conversation is not None and agent.memory is not None and agent.memory.titles is not None:
        title_model = agent.memory.titles.model or model
        # Looked up when it is asked: a title's model that is none fails no run.
        conversation.ask = lambda request: agent.models.chat(title_model).stream(request)
    state = StreamingState(
        (),
        tools,
        request=request,
        executor=agent.executor,
        accumulator=agent.accumulator or chat_model.provider.accumulator or MessageAccumulator,
        validate=validate,
        checks=make_checks((*agent.output_checks, *run_options.get("output_checks", ())), output),
        output_retries=_MANY if limits.output_retries is None else limits.output_retries,
        new_id=agent.new_id,
        clock=agent.clock,
        deps=run_options.get("deps"),
        run_id=run_id,
        thread_id=run_options.get("thread_id") or run_id,
        resource_id=run_options.get("resource_id"),
        context=tuple(run_options.get("context", ())),
        shared=run_options.get("state"),
        metadata=run_options.get("metadata", {}),
        seal=Seal(agent.approval_key, run_options.get("thread_id"), run_options.get("resource_id")),
        claim=run_options.get("claim"),
        story=story,
    )
    state.asked = new
    if conversation is not None:
        conversation.share(state.shared)
    if output is not None:
        state.output_options = output.options
    start = RunBeginning(agent, run_options, state, conversation)
    orchestrator = _pick_orchestrator(
        agent,
        chat_model,
        model,
        schema,
        request.settings,
        typed=output is not None,
        tools=bool(tools),
    )
    # What is wrong with the prompt is raised here, where the caller sees it, if nothing must be
    # read first.
    first = start.begin_now()
    return Run(
        chat_model,
        orchestrator,
        state,
        opening=first or (),
        begin=start.begin if first is None else None,
        output=output,
        limits=limits,
        output_events=run_options.get("output_events", False),
        agent_name=agent.display_name,
        hooks=agent.hooks,
        conversation=conversation,
        known=start.messages,
    )


def find_pending(
    history: Iterable[Message], *, tools: Iterable[Tool | Toolset], seal: Seal
) -> tuple[Interrupt, ...]:
    """Returns what a conversation waits for, without building a run; nothing, once somebody has
    said something."""
    messages = expect_each("history", history, Message, hint=suggest_place)
    if has_new_prompt(messages):
        return ()
    fixed_tools, toolset = split_tools(tools)
    waiting = find_waiting_calls(messages, fixed_tools, seal, has_toolsets=toolset is not None)
    return tuple([interrupt for call in waiting for interrupt in call.interrupts])


def _pick_orchestrator(
    agent: RunDefaults,
    chat_model: ChatModel,
    model: object,
    schema: JsonMap | None,
    settings: Settings,
    *,
    typed: bool,
    tools: bool,
) -> StreamingOrchestrator:
    """Returns for the run that is built the orchestrator that the provider given to the run, the
    agent or the model's provider names, in this order; else the one that fits the model and its
    task.

    Args:
        agent: the agent's defaults.
        chat_model: the model that the run calls.
        model: the model that the run was given.
        schema: JSON Schema of the output.
        settings: how the model is asked.
        typed: the output is more than text.
        tools: the run has tools.
    """
    if isinstance(model, Provider):
        named = model.orchestrator
    else:
        named = None
    orchestrator = named or agent.orchestrator or chat_model.provider.orchestrator
    if orchestrator is not None:
        return _make_orchestrator(orchestrator)
    return choose_orchestrator(
        *chat_model.providers_for(schema, settings),
        typed=typed,
        tools=tools,
        json_text=typed and chat_model.needs_json_text(),
    )


def _make_orchestrator(
    orchestrator: Callable[[], StreamingOrchestrator] | StreamingOrchestrator,
) -> StreamingOrchestrator:
    """Returns the orchestrator of the run that is built: as it is given, or made by the class or
    function that is given."""
    if not isinstance(orchestrator, type) and hasattr(orchestrator, "process_iteration"):
        return cast("StreamingOrchestrator", orchestrator)
    return cast("Callable[[], StreamingOrchestrator]", orchestrator)()


def _check_tool_choice(agent: RunDefaults, run_options: RunOptions) -> None:
    """Checks the tool that a run to be built must call by the program's word. What a set of tools
    has is not known before the run."""
    settings = run_options.get("settings")
    if settings is None or settings.tool_choice is None:
        return
    fixed_tools, sets = split_tools(_collect_tools(agent, run_options))
    if sets is None:
        check_tool_choice(
            settings.tool_choice, [*fixed_tools, *[tool.name for tool in agent.request.tools]]
        )


def _collect_tools(agent: RunDefaults, run_options: RunOptions) -> tuple[Tool | Toolset, ...]:
    """Returns the tools of the run that is built: the agent's, its own, and the one of a working
    memory."""
    tools = (*agent.tools, *make_tools(run_options.get("tools", ())))
    if agent.memory is None or agent.memory.working_memory is None:
        return tools
    ids = run_options.get("resource_id"), run_options.get("thread_id")
    return (*tools, *agent.memory.working_tools(*ids))


def apply_options(request: ModelRequest, run_options: RunOptions) -> ModelRequest:
    """Returns an agent's request for the run that is built, with what its options change."""
    settings, on_loss, options = (
        run_options.get("settings"),
        run_options.get("on_loss"),
        run_options.get("options"),
    )
    if settings is None and on_loss is None and not options:
        return request
    if settings is None:
        settings = request.settings
    else:
        settings = settings.over(request.settings)
    if options:
        options = {**request.options, **options}
    else:
        options = request.options
    return request.replace(settings=settings, on_loss=on_loss or request.on_loss, options=options)
