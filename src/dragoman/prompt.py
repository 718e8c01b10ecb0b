"""What is asked: prompt, history and options of a run, and the conversation that they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, cast, get_args

from typing_extensions import TypeVar

from dragoman.arguments import expect, expect_callable, expect_each, expect_sequence, wrong
from dragoman.errors import InvalidRequestError, ResumeError, SettingsError
from dragoman.halves import replace_halves
from dragoman.hooks import Hooks
from dragoman.interrupt import Interrupt, Resume
from dragoman.keywords import unknown_arguments
from dragoman.limits import Limits
from dragoman.loss import Loss, refusal
from dragoman.memory.memory import Memory
from dragoman.memory.window import ThreadReading
from dragoman.message import Content, MarkPart, Message, Role
from dragoman.model.fallbacks import Fallback, ModelChoice
from dragoman.model.middleware import BatchMiddleware, Middleware
from dragoman.orchestration.interrupts import Waiting, since_model, speaks, waiting_calls
from dragoman.orchestration.resume import Beginning, Decision, Plan, decisions
from dragoman.orchestration.seal import Seal
from dragoman.orchestration.state import Claim
from dragoman.providers.provider import Provider
from dragoman.repair import OpenCall, missing
from dragoman.request import ModelRequest, OnLoss, ServerTool, Settings, ToolSpec
from dragoman.run_request import RunRequest
from dragoman.tools import Tool, Toolset, split_tools, tool, tool_map
from dragoman.tools.definition import PlainFunction, is_tool

if TYPE_CHECKING:
    from datetime import datetime

__all__ = [
    "History",
    "Prompt",
    "RunOptions",
    "beginning",
    "check_agent",
    "check_options",
    "check_settings",
    "check_tool_choice",
    "opening",
    "pending",
    "refuse_output_type",
    "sequences",
    "tools_of",
    "with_options",
    "with_system",
]

Deps = TypeVar("Deps", default=Any)

Prompt = str | Message | Sequence[Content | str] | RunRequest | None
"""A string, a message, or a sequence of parts; `None` continues a history that ends in a user message or tool results, or that waits
for answers. A `RunRequest` says all of it."""

History = Iterable[Message]
"""Messages, oldest first; or a `MessageList`."""


class RunOptions(TypedDict, Generic[Deps], total=False):
    """What every way of sending takes beside the prompt. `RunOptions[Deps]` goes with an `Agent[Deps]`."""

    history: History
    """What was said before; copied, never changed. A `MessageList` gets the prompt and each message of the run."""
    model: ModelChoice | None
    """Takes this run to another model: a model string, or a provider's record; or to several, as a list or a `fallback`."""
    attachments: Sequence[Content]
    """Follow the prompt in the same message; a file by `DataPart.from_file`."""
    output_schema: Mapping[str, Any] | None
    """JSON Schema of the output, which is then the JSON's text. For a Python type: `send_for`."""
    settings: Settings | None
    """Go before the agent's, one by one."""
    deps: Deps
    """Given to tools as `ToolContext.deps`."""
    limits: Limits | None
    """In place of the agent's."""
    on_loss: OnLoss | None
    """In place of the agent's: `error` refuses what the provider cannot take whole, `tell` names it in the result."""
    thread_id: str | None
    """Id of the conversation; left out, it is the run's. An agent with a `memory` goes on with that thread."""
    run_id: str | None
    """Id of the run; left out, one is made."""
    resource_id: str | None
    """Whose conversation it is, such as a user's id."""
    tools: Iterable[Tool[Deps] | ToolSpec | Toolset | PlainFunction]
    """Of this run, beside the agent's. A `ToolSpec`, or a `Tool` without a handler, is run by the client."""
    context: Sequence[Any]
    """What the client tells beside the conversation: for tools and orchestrators, not for the model."""
    state: Any
    """The state that client and agent share, any JSON value. See `ToolContext.state`."""
    resume: Iterable[Resume]
    """Answers to what the history waits for. See `ChatResult.pending`."""
    options: Mapping[str, Any] | None
    """Body fields without a neutral name; go before the agent's, one by one."""
    metadata: Mapping[str, Any]
    """For tools and orchestrators, as it is."""
    trusted_history: bool
    """`False`: the history comes from a client, who may have made it up (what a memory holds is trusted all the same). Then a call is run on an answer only where the agent has
    an `approval_key`, which shows that it was asked for."""
    reading: ThreadReading | None
    """The thread of the agent's memory as it was just read (`Memory.reading`); then the run does not read it again."""
    claim: Claim
    """A function, plain or async, of three ids (conversation, what was answered, run) that notes an answer before it is acted upon, and
    says whether no run did so before. An answer counts once then, else at least once. Needs a `thread_id`; or a `run_id`, where the function knows the conversation by itself."""


def tools_of(
    given: Iterable[Tool | ToolSpec | Toolset | Callable[..., Any]],
) -> tuple[Tool | Toolset, ...]:
    """The tools of one run. A `ToolSpec` is a tool of the client's.

    Raises:
        TypeError: something is no tool, no set, no spec and no function.
    """
    tools: list[Tool | Toolset] = []
    for place, one in enumerate(
        expect_sequence("tools", given, "functions, Tools, Toolsets and ToolSpecs")
    ):
        if isinstance(one, ToolSpec):
            tools.append(Tool(one.name, one.description, None, one.input_schema, native=one.native))
        elif isinstance(one, Toolset) or is_tool(one):
            tools.append(one)
        else:
            expect_callable(f"tools[{place}]", one, "a function, a Tool, a Toolset or a ToolSpec")
            tools.append(cast("Tool", tool(one)))
    return tuple(tools)


def check_options(how: Mapping[str, Any]) -> None:
    """Raises `TypeError` where there are other arguments than those of `RunOptions`, or one is of another type: an address or a
    key that is passed over would send a conversation to somebody else."""
    if not how:
        return
    if unknown := how.keys() - RunOptions.__annotations__.keys():
        error = unknown_arguments("sending", unknown, RunOptions.__annotations__)
        raise TypeError(
            f"{error}. Where requests go and with which key is said to the Agent, or to a Provider that is passed as model="
        )
    for name, kind in _KINDS.items():
        if (value := how.get(name)) is not None:
            expect(name, value, *kind)
    check_settings(how.get("settings"))


def refuse_output_type(how: Mapping[str, Any]) -> None:
    """Raises `TypeError` if a call that gives text is asked for a value of a type, which `Agent.run` would take."""
    if "output_type" in how:
        raise TypeError(_NO_TYPE)


def check_settings(settings: Settings | None) -> None:
    """Raises `SettingsError` if a program gives a number that no provider takes. What clients send is checked by wires."""
    for name, least, most in _RANGES if settings is not None else ():
        value = getattr(settings, name)
        if value is not None and not least <= value <= most:
            bound = f"{least} to {most}" if most != float("inf") else f"{least} or more"
            raise SettingsError(f"Settings({name}={value}): give {bound}")


def check_tool_choice(choice: str | None, names: Collection[str]) -> None:
    """Raises `SettingsError` if a tool must be called that there is not. `names`: all tools."""
    if choice is not None and choice not in ("auto", "none", "required") and choice not in names:
        known = ", ".join(names) or "none"
        raise SettingsError(
            f'Settings(tool_choice="{choice}"): there is no such tool; give auto, none, required or the name of one. Tools: {known}'
        )


def sequences(
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
    """Those arguments of the constructor of an agent, read once. Raises `TypeError` where one is no sequence."""
    return (
        expect_sequence("tools", tools, "functions, Tools and Toolsets"),
        expect_sequence("middleware", middleware, "middlewares"),
        expect_sequence("server_tools", server_tools, "ServerTool"),
        expect_sequence("hooks", hooks, "Hooks"),
    )


def check_agent(given: Mapping[str, Any]) -> None:
    """Raises `TypeError` where an argument of the constructor of an agent is of another type."""
    for name, kinds in (_KINDS | _AGENT_KINDS).items():
        if (value := given.get(name)) is not None:
            expect(name, value, *kinds)
    for name, (method, what) in _OBJECTS.items():
        if (value := given[name]) is not None and (
            isinstance(value, type) or not hasattr(value, method)
        ):
            raise wrong(name, value, what)
    for place, one in enumerate(given["tools"]):
        if not isinstance(one, Tool | Toolset):
            expect_callable(f"tools[{place}]", one, "a function, a Tool or a Toolset")
    expect_each("server_tools", given["server_tools"], ServerTool)
    expect_each("hooks", given["hooks"], Hooks)
    for place, layer in enumerate(given["middleware"]):
        if isinstance(layer, type) and isinstance(layer, BatchMiddleware):
            raise wrong(f"middleware[{place}]", layer, "a value of that class")
        if not isinstance(layer, BatchMiddleware):
            expect_callable(f"middleware[{place}]", layer, "a function (request, next) -> events")
    for name in ("accumulator", "id_factory", "clock"):
        expect_callable(name, given[name], "a function or a class")
    if not hasattr(given["orchestrator"], "process_iteration"):
        expect_callable(
            "orchestrator",
            given["orchestrator"],
            "an orchestrator, or a function or a class that makes one",
        )
    if not isinstance(given["api_key"], str):
        expect_callable("api_key", given["api_key"], "a text, or a function that gives one")


_RANGES: tuple[tuple[str, float, float], ...] = (
    ("max_tokens", 1, float("inf")),
    ("temperature", 0, float("inf")),
    ("top_p", 0, 1),
    ("top_k", 0, float("inf")),
)
"""Setting, its least and its greatest value at any provider."""
_NO_TYPE = "these calls give text and take no output_type; for a value of a type use send_for(prompt, type) or run(output_type=)"
_KINDS: dict[str, tuple[type, ...]] = {
    "model": (str, Provider, Fallback, list, tuple),
    "output_schema": (Mapping,),
    "settings": (Settings,),
    "limits": (Limits,),
    "reading": (ThreadReading,),
    "trusted_history": (bool,),
    "thread_id": (str,),
    "run_id": (str,),
    "resource_id": (str,),
    "options": (Mapping,),
    "metadata": (Mapping,),
}
_AGENT_KINDS: dict[str, tuple[type, ...]] = {
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
)
_OBJECTS = {
    "transport": ("send", "a transport"),
    "executor": ("execute_batch", "an executor, such as ToolExecutor()"),
}
_CONTENT = get_args(Content)


def opening(
    prompt: Prompt, how: RunOptions, *, new_id: Callable[[], str], clock: Callable[[], datetime]
) -> tuple[list[Message], RunOptions]:
    """A prompt → the messages that are new, with ids and times, and the options, with those of a `RunRequest`.

    Raises:
        InvalidRequestError: there is nothing in it, or attachments are to follow no prompt.
        TypeError: it holds something that is no text and no part, or the history is given twice.
    """
    if isinstance(prompt, RunRequest):
        new, how = _of_request(prompt, how)
    else:
        message = _message(prompt, how.get("attachments", ()))
        new = [] if message is None else [message]
    new = [replace_halves(message, "the prompt") for message in new]
    return [
        one.replace(id=one.id or new_id(), created_at=one.created_at or clock()) for one in new
    ], how


def _of_request(request: RunRequest, how: RunOptions) -> tuple[Sequence[Message], RunOptions]:
    """The messages of a request that are new, and its fields as keywords; those that are given go before them."""
    if twice := [name for name in ("history", "attachments") if how.get(name)]:
        raise TypeError(
            f"{' and '.join(twice)} cannot stand beside a RunRequest: its messages are the whole conversation"
        )
    messages = expect_each("messages", request.messages, Message, hint=_hint)
    new = since_model(messages)
    fields: dict[str, Any] = {
        name: value for name in _REQUEST_FIELDS if (value := getattr(request, name)) is not None
    }
    if (settings := how.get("settings") or request.settings) is not None:
        fields["settings"] = settings.over(request.settings)
    options = {**(request.options or {}), **(how.get("options") or {})}
    return messages[new:], cast(
        "RunOptions", {**fields, **how, "options": options, "history": messages[:new]}
    )


def beginning(
    new: Sequence[Message],
    how: RunOptions,
    *,
    system: Message | None,
    tools: Iterable[Tool] | None,
    has_toolsets: bool,
    seal: Seal,
    on_loss: OnLoss,
    new_id: Callable[[], str],
    clock: Callable[[], datetime],
    stored: Sequence[Message] = (),
) -> Beginning:
    """The conversation that a run goes on with, the messages of it that are the run's own, and what was made up in those.

    They are the new ones and, before or in the first of them, a result for each call at the end of the history that nobody answered:
    what was sent once stands in the history from then on, also when the real result comes late. Where the conversation waits, the answers
    come first, and as long as something is waited for and nobody has said anything else, that is all.

    `tools`: all that there are; `None`: those of sets are not known yet, and where they decide something, the beginning `needs_tools`.
    `has_toolsets`: some of them come from sets. `stored`: messages of the history that come from a memory, and may be trusted.

    Raises:
        ResumeError: an answer does not fit what the conversation waits for.
        InvalidRequestError: there is nothing to send, or a result had to be made up and `on_loss` is `error`.
        TypeError: the history holds something that is no `Message`.
    """
    history = expect_each("history", how.get("history", ()), Message, hint=_hint)
    resume = expect_each("resume", how.get("resume", ()), Resume)
    messages = with_system([*history, *new], system=system)
    first = len(messages) - len(new)
    made_up, losses = missing(messages)
    if tools is None and (resume or made_up):
        return Beginning(messages, (), [], needs_tools=True)
    if tools is not None and (resume or made_up):
        known = tool_map(tools)
        waiting = waiting_calls(messages, known, seal, has_toolsets=has_toolsets)
        trusted = [
            how.get("trusted_history", True) or _is_stored(one, messages, stored) for one in waiting
        ]
        if not all(trusted):
            others = waiting_calls(messages, known, Seal(), has_toolsets=has_toolsets)
            waiting = [
                one if is_own else other
                for one, other, is_own in zip(waiting, others, trusted, strict=True)
            ]
        forged = [one.call for one, is_own in zip(waiting, trusted, strict=True) if not is_own]
        decided = decisions(
            resume,
            waiting,
            messages,
            known,
            seal,
            clock(),
            has_toolsets=has_toolsets,
            forged=forged,
        )
        _check_trust(decided, how, seal, forged)
        answered = [one.waiting.call for one in decided]
        left = tuple([one for one in waiting if one.call not in answered])
        speaking = speaks(messages)
        if resume or (left and not speaking):
            answers = list(takewhile(lambda message: not speaks([message]), new))
            plan = Plan(tuple(decided), left, tuple(new[len(answers) :]), speaking)
            gone = [] if left and not speaking else _without(losses, answered)
            if on_loss == "error" and (refused := refusal(gone)) is not None:
                raise refused
            return Beginning(messages[: first + len(answers)], tuple(answers), gone, plan)
    if not (messages and messages[-1].role is Role.USER):
        raise InvalidRequestError(
            "nothing to send: without a prompt the history must end in a user message or in tool results"
        )
    if on_loss == "error" and (refused := refusal(losses)) is not None:
        raise refused
    own = [*new]
    if made_up and own and own[0].tool_results:
        own[0] = own[0].replace(content=(*own[0].content, *made_up))
    elif made_up:
        own.insert(0, Message.user(*made_up).replace(id=new_id(), created_at=clock()))
    messages[first:] = own
    return Beginning(messages, tuple(own), losses)


def pending(
    history: History, *, tools: Iterable[Tool | Toolset], seal: Seal
) -> tuple[Interrupt, ...]:
    """What a conversation waits for; nothing, once somebody has said something."""
    messages = expect_each("history", history, Message, hint=_hint)
    if speaks(messages):
        return ()
    own, sets = split_tools(tools)
    waiting = waiting_calls(messages, own, seal, has_toolsets=sets is not None)
    return tuple([interrupt for one in waiting for interrupt in one.interrupts])


def _without(losses: Sequence[Loss], answered: Sequence[OpenCall]) -> list[Loss]:
    places = {(one.position, one.place) for one in answered}
    return [loss for loss in losses if (loss.message, loss.part) not in places]


def _is_stored(waiting: Waiting, messages: Sequence[Message], stored: Sequence[Message]) -> bool:
    """Whether a call, and all that is noted of it, comes from a memory."""
    ids = {message.id for message in stored}
    behind = messages[waiting.call.position :]
    noted = [
        message
        for message in behind
        if any(isinstance(piece, MarkPart) for piece in message.content)
    ]
    return all(message.id in ids for message in (behind[0], *noted))


def _check_trust(
    decided: Sequence[Decision], how: RunOptions, seal: Seal, forged: Sequence[OpenCall]
) -> None:
    """Raises where a call is to be run and that cannot be justified, or not be noted. `forged`: calls that may be made up."""
    run = [one for one in decided if one.result is None]
    if not run:
        return
    if seal.key is None and any(one.waiting.call in forged for one in run):
        raise ResumeError(
            "a call is to be run that a history from a client says was asked for and approved, and nothing shows that it was: "
            "give the agent an approval_key, or take the history from a store of your own"
        )
    if how.get("claim") is not None and not (how.get("thread_id") or how.get("run_id")):
        raise InvalidRequestError(
            "an answer is noted under its conversation: a send with claim= needs a thread_id="
        )


def _message(prompt: Prompt, attachments: Sequence[Content]) -> Message | None:
    """The prompt as a message; `None`: there is none."""
    attachments = expect_each("attachments", attachments, *_CONTENT, hint=_hint)
    if prompt is None:
        if attachments:
            raise InvalidRequestError(
                "attachments need a prompt: put them into a message of the history instead"
            )
        return None
    if isinstance(prompt, Message):
        message = prompt.replace(content=(*prompt.content, *attachments)) if attachments else prompt
    else:
        pieces: Sequence[Any] = (
            [prompt]
            if isinstance(prompt, str)
            else expect_each("prompt", cast("Any", prompt), str, *_CONTENT, hint=_hint)
        )
        message = Message.user(*[piece for piece in pieces if piece != ""], *attachments)
    if not message.content:
        raise InvalidRequestError("the prompt is empty: give a text, parts or a message")
    return message


def with_system(messages: list[Message], *, system: Message | None) -> list[Message]:
    """The messages, and the system message before them, if they do not begin so already."""
    if (
        messages
        and system is not None
        and not (messages[0].role is Role.SYSTEM and messages[0].text == system.text)
    ):
        return [system, *messages]
    return messages


def _hint(value: object) -> str:
    """What to write instead of something that is no content or no message."""
    if isinstance(value, Message):
        return "a conversation goes into history=, its last message is the prompt"
    if isinstance(value, Mapping):
        return (
            "messages of other formats are read by a wire: dragoman.wires.get(NAME).load_messages"
        )
    if isinstance(value, (str, Path)):
        return "a file is attached with DataPart.from_file(path), a text stands in the prompt"
    return ""


def with_options(request: ModelRequest, how: RunOptions) -> ModelRequest:
    """An agent's request with what a run changes of it."""
    settings, on_loss, options = how.get("settings"), how.get("on_loss"), how.get("options")
    if settings is None and on_loss is None and not options:
        return request
    settings = request.settings if settings is None else settings.over(request.settings)
    options = {**request.options, **options} if options else request.options
    return request.replace(settings=settings, on_loss=on_loss or request.on_loss, options=options)
