"""Prompt, history and options of a run, and the checks of a caller's arguments.

`open_prompt` makes messages of a prompt, and options of a `RunRequest`. The `check_` functions name an
argument of a wrong type where it is given, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, cast, get_args

from typing_extensions import TypeVar

from dragoman.arguments import (
    expect,
    expect_callable,
    expect_each,
    expect_sequence,
    unknown_arguments_error,
    wrong_type_error,
)
from dragoman.errors import InvalidRequestError, SettingsError
from dragoman.hooks import Hooks
from dragoman.interrupt import Resume
from dragoman.json_bytes import JsonMap, replace_halves
from dragoman.limits import Limits
from dragoman.memory.memory import Memory
from dragoman.memory.window import ThreadReading
from dragoman.message import Content, Message
from dragoman.model.fallbacks import Fallback, ModelChoice
from dragoman.model.middleware import BatchMiddleware, Middleware
from dragoman.model_profile import ModelProfile
from dragoman.orchestration.interrupts import count_seen_messages
from dragoman.orchestration.output_checks import OutputCheck
from dragoman.orchestration.state import Claim
from dragoman.providers.provider import Provider
from dragoman.request import OnLoss, RunRequest, ServerTool, Settings, ToolSpec
from dragoman.tools import Tool, Toolset, tool
from dragoman.tools.definition import PlainFunction, is_tool

if TYPE_CHECKING:
    from datetime import datetime

__all__ = [
    "History",
    "Prompt",
    "RunOptions",
    "check_agent",
    "check_options",
    "check_settings",
    "check_tool_choice",
    "suggest_place",
    "open_prompt",
    "refuse_output_type",
    "read_sequences",
    "make_tools",
]

Deps = TypeVar("Deps", default=Any)

Prompt = str | Message | Sequence[Content | str] | RunRequest | None
"""A string, a message, or a sequence of parts; `None` continues a history that ends in a user
message or tool results, or that waits for answers. A `RunRequest` says all of it."""

History = Iterable[Message]
"""Messages, oldest first; or a `MessageList`."""


class RunOptions(TypedDict, Generic[Deps], total=False):
    """Options of every way of sending, beside the prompt. `RunOptions[Deps]` belongs to an
    `Agent[Deps]`."""

    history: History
    """The conversation so far. It is copied, except that a `MessageList` gets the prompt and each
    message of the run."""
    model: ModelChoice | None
    """Another model for this run: a model string, a provider's record, or several as a list or a
    `fallback`."""
    attachments: Sequence[Content]
    """Content behind the prompt in the same message; read a file with `DataPart.from_file`."""
    output_schema: Mapping[str, Any] | None
    """JSON Schema of the output, which is then JSON text. For a Python type use `send_for`."""
    settings: Settings | None
    """Settings that win over the agent's, one by one."""
    deps: Deps
    """Any value for tools, as `ToolContext.deps`."""
    limits: Limits | None
    """Limits instead of the agent's."""
    on_loss: OnLoss | None
    """Instead of the agent's: `error` refuses what the provider cannot take whole, `tell` lists it
    in the result."""
    thread_id: str | None
    """Id of the conversation; default: the run's id. An agent with a `memory` continues that
    thread."""
    run_id: str | None
    """Id of the run; default: a new one."""
    resource_id: str | None
    """Owner of the conversation, such as a user's id."""
    tools: Iterable[Tool[Deps] | ToolSpec | Toolset | PlainFunction]
    """Tools of this run, beside the agent's. The client runs a `ToolSpec` and a `Tool` without a
    handler."""
    context: Sequence[Any]
    """Information from the client for tools and orchestrators. The model does not see it."""
    state: Any
    """The state that client and agent share, any JSON value. See `ToolContext.state`."""
    resume: Iterable[Resume]
    """Answers to the interrupts of the history. See `ChatResult.pending`."""
    output_checks: Sequence[OutputCheck[Deps]]
    """Functions that judge the output, after the agent's; see `Agent`."""
    output_events: bool
    """Adds `Custom` events named `output` with a typed output so far while it is written, for
    clients that show it."""
    options: Mapping[str, Any] | None
    """Body fields without a neutral name; they win over the agent's, one by one."""
    metadata: Mapping[str, Any]
    """Any values for tools and orchestrators."""
    trusted_history: bool
    """Pass `False` if the history comes from a client, who may have made it up; threads of a memory
    stay trusted. A call then runs on an answer only if the agent has an `approval_key`, which
    proves that the agent asked for the approval."""
    reading: ThreadReading | None
    """The thread as it was just read (`Memory.reading`), so that the run does not read it again."""
    claim: Claim
    """A function, plain or async, of three ids (conversation, interrupt, run). It notes an answer
    before the run acts on it, and returns whether no run did so before, so that an answer counts
    once instead of at least once. Needs a `thread_id`; or a `run_id`, if the function knows the
    conversation."""


def make_tools(
    entries: Iterable[Tool | ToolSpec | Toolset | Callable[..., Any]],
) -> tuple[Tool | Toolset, ...]:
    """Returns the tools of one run, from the options beside its prompt. A `ToolSpec` is a tool of
    the client's.

    Raises:
        TypeError: something is no tool, no set, no spec and no function.
    """
    tools: list[Tool | Toolset] = []
    for index, entry in enumerate(
        expect_sequence("tools", entries, "functions, Tools, Toolsets and ToolSpecs")
    ):
        if isinstance(entry, ToolSpec):
            tools.append(
                Tool(entry.name, entry.description, None, entry.input_schema, native=entry.native)
            )
        elif isinstance(entry, Toolset) or is_tool(entry):
            tools.append(entry)
        else:
            expect_callable(f"tools[{index}]", entry, "a function, a Tool, a Toolset or a ToolSpec")
            tools.append(cast("Tool", tool(entry)))
    return tuple(tools)


def check_options(run_options: JsonMap) -> None:
    """Checks the names and types of the options that come with a prompt.

    Raises:
        TypeError: an option is unknown, or of a wrong type. Ignoring an unknown address or key
            would send the conversation to another provider.
    """
    if not run_options:
        return
    if unknown := run_options.keys() - RunOptions.__annotations__.keys():
        error = unknown_arguments_error("sending", unknown, RunOptions.__annotations__)
        raise TypeError(
            f"{error}. Where requests go and with which key is said to the Agent, or to a Provider that is passed as model="
        )
    for name, types in _TYPES.items():
        if (value := run_options.get(name)) is not None:
            expect(name, value, *types)
    check_settings(run_options.get("settings"))


def refuse_output_type(run_options: JsonMap) -> None:
    """Raises `TypeError` if a call that returns text gets an `output_type`, as `Agent.run`
    would take."""
    if "output_type" in run_options:
        raise TypeError(_NO_TYPE)


def check_settings(settings: Settings | None) -> None:
    """Raises `SettingsError` if the settings beside a prompt have a number that no provider takes.
    The settings of clients are checked by wires."""
    for name, least, most in _RANGES if settings is not None else ():
        value = getattr(settings, name)
        if value is not None and not least <= value <= most:
            if most != float("inf"):
                bound = f"{least} to {most}"
            else:
                bound = f"{least} or more"
            raise SettingsError(f"Settings({name}={value}): give {bound}")


def check_tool_choice(choice: str | None, names: Collection[str]) -> None:
    """Raises `SettingsError` if the model must call a tool that does not exist. `names`: of all
    tools."""
    if choice is not None and choice not in ("auto", "none", "required") and choice not in names:
        available = ", ".join(names) or "none"
        raise SettingsError(
            f'Settings(tool_choice="{choice}"): there is no such tool; give auto, none, required or the name of one. Tools: {available}'
        )


def read_sequences(
    tools: Iterable[Tool | Toolset | Callable[..., Any]],
    middleware: Iterable[Middleware],
    server_tools: Iterable[ServerTool],
    hooks: Iterable[Hooks],
) -> tuple[
    tuple[Tool | Toolset | Callable[..., Any], ...],
    tuple[Middleware, ...],
    tuple[ServerTool, ...],
    tuple[Hooks, ...],
]:
    """Returns the agent constructor's arguments that are sequences, each read once. Raises
    `TypeError` where one is no sequence."""
    return (
        expect_sequence("tools", tools, "functions, Tools and Toolsets"),
        expect_sequence("middleware", middleware, "middlewares"),
        expect_sequence("server_tools", server_tools, "ServerTool"),
        expect_sequence("hooks", hooks, "Hooks"),
    )


def check_agent(arguments: JsonMap) -> None:
    """Checks the arguments of the constructor of an agent, which prompts are sent to.

    Raises:
        TypeError: one of them is of a wrong type.
    """
    for name, types in (_TYPES | _AGENT_TYPES).items():
        if (value := arguments.get(name)) is not None:
            expect(name, value, *types)
    for name, (method, what) in _OBJECTS.items():
        value = arguments[name]
        # A class has the method, too, but cannot be called without its object.
        if value is not None and (isinstance(value, type) or not hasattr(value, method)):
            raise wrong_type_error(name, value, what)
    _check_lists(arguments)
    for name in ("accumulator", "id_factory", "clock"):
        expect_callable(name, arguments[name], "a function or a class")
    orchestrator = arguments["orchestrator"]
    if not hasattr(orchestrator, "process_iteration"):
        what = "an orchestrator, or a function or a class that makes one"
        expect_callable("orchestrator", orchestrator, what)
    if not isinstance(arguments["api_key"], str):
        expect_callable("api_key", arguments["api_key"], "a text, or a function that gives one")


def _check_lists(arguments: JsonMap) -> None:
    """Checks the members of the arguments of an agent that are sequences.

    Raises:
        TypeError: one of them is of a wrong type.
    """
    for index, entry in enumerate(arguments["tools"]):
        if not isinstance(entry, Tool | Toolset):
            expect_callable(f"tools[{index}]", entry, "a function, a Tool or a Toolset")
    expect_each("server_tools", arguments["server_tools"], ServerTool)
    expect_each("hooks", arguments["hooks"], Hooks)
    for index, layer in enumerate(arguments["middleware"]):
        if isinstance(layer, type) and isinstance(layer, BatchMiddleware):
            raise wrong_type_error(f"middleware[{index}]", layer, "a value of that class")
        if not isinstance(layer, BatchMiddleware):
            expect_callable(f"middleware[{index}]", layer, "a function (request, next) -> events")


_RANGES: tuple[tuple[str, float, float], ...] = (
    ("max_tokens", 1, float("inf")),
    ("temperature", 0, float("inf")),
    ("top_p", 0, 1),
    ("top_k", 0, float("inf")),
)
"""Setting, its least and its greatest value at any provider."""
_NO_TYPE = "these calls give text and take no output_type; for a value of a type use send_for(prompt, type) or run(output_type=)"
_TYPES: dict[str, tuple[type, ...]] = {
    "model": (str, Provider, Fallback, list, tuple),
    "output_schema": (Mapping,),
    "settings": (Settings,),
    "profile": (ModelProfile,),
    "limits": (Limits,),
    "output_checks": (list, tuple),
    "output_events": (bool,),
    "reading": (ThreadReading,),
    "trusted_history": (bool,),
    "thread_id": (str,),
    "run_id": (str,),
    "resource_id": (str,),
    "options": (Mapping,),
    "metadata": (Mapping,),
}
_AGENT_TYPES: dict[str, tuple[type, ...]] = {
    "system": (str,),
    "base_url": (str,),
    "headers": (Mapping,),
    "environment": (Mapping,),
    "display_name": (str,),
    "approval_key": (str, bytes),
    "memory": (Memory,),
}
_REQUEST_FIELDS = (
    "thread_id",
    "run_id",
    "resource_id",
    "tools",
    "context",
    "state",
    "resume",
    "metadata",
    "output_schema",
)
_OBJECTS = {
    "transport": ("send", "a transport"),
    "executor": ("execute_batch", "an executor, such as ToolExecutor()"),
}
_CONTENT = get_args(Content)
_mend = partial(replace_halves, where="the prompt")


def open_prompt(
    prompt: Prompt,
    run_options: RunOptions,
    *,
    new_id: Callable[[], str],
    clock: Callable[[], datetime],
) -> tuple[list[Message], RunOptions]:
    """Returns the new messages of a prompt, with ids and times, and the options, with those of a
    `RunRequest`.

    Raises:
        InvalidRequestError: the prompt is empty, or there are attachments without a prompt.
        TypeError: it holds something that is no text and no part, or the history is given twice.
    """
    if isinstance(prompt, RunRequest):
        new, run_options = _of_request(prompt, run_options)
        new = [_mend(message) for message in new]
    else:
        message = _message(prompt, run_options.get("attachments", ()))
        new = [] if message is None else [message]
    return [
        message.replace(id=message.id or new_id(), created_at=message.created_at or clock())
        for message in new
    ], run_options


def _of_request(
    request: RunRequest, run_options: RunOptions
) -> tuple[Sequence[Message], RunOptions]:
    """Returns the prompt of a `RunRequest`: the new messages of it, and its fields as options.
    Options that are given beside the request win."""
    if twice := [name for name in ("history", "attachments") if run_options.get(name)]:
        raise TypeError(
            f"{' and '.join(twice)} cannot stand beside a RunRequest: its messages are the whole conversation"
        )
    messages = expect_each("messages", request.messages, Message, hint=suggest_place)
    new = count_seen_messages(messages)
    fields: dict[str, Any] = {
        name: value for name in _REQUEST_FIELDS if (value := getattr(request, name)) is not None
    }
    if (settings := run_options.get("settings") or request.settings) is not None:
        fields["settings"] = settings.over(request.settings)
    options = {**(request.options or {}), **(run_options.get("options") or {})}
    return messages[new:], cast(
        "RunOptions", {**fields, **run_options, "options": options, "history": messages[:new]}
    )


def _message(prompt: Prompt, attachments: Sequence[Content]) -> Message | None:
    """Returns the prompt as a user message; `None`: there is none."""
    attachments = expect_each("attachments", attachments, *_CONTENT, hint=suggest_place)
    if prompt is None:
        if attachments:
            raise InvalidRequestError(
                "attachments need a prompt: put them into a message of the history instead"
            )
        return None
    attachments = [*map(_mend, attachments)]
    if isinstance(prompt, Message):
        message = _mend(prompt)
        if attachments:
            message = message.replace(content=(*message.content, *attachments))
    else:
        pieces: Sequence[Any] = (
            [prompt]
            if isinstance(prompt, str)
            else expect_each("prompt", cast("Any", prompt), str, *_CONTENT, hint=suggest_place)
        )
        # Mended before they are a message, whose fields need not be looked through then.
        mended = [_mend(piece) for piece in pieces if piece != ""]
        message = Message.user(*mended, *attachments)
    if not message.content:
        raise InvalidRequestError("the prompt is empty: give a text, parts or a message")
    return message


def suggest_place(value: object) -> str:
    """Returns advice for a value in a prompt that is no content or no message; empty if there is
    none."""
    if isinstance(value, Message):
        return "a conversation goes into history=, its last message is the prompt"
    if isinstance(value, Mapping):
        return (
            "messages of other formats are read by a wire: dragoman.wires.get(NAME).load_messages"
        )
    if isinstance(value, (str, Path)):
        return "a file is attached with DataPart.from_file(path), a text stands in the prompt"
    return ""
