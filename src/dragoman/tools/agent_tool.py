"""Agents as tools of others: `agent_tool`, which is `Agent.as_tool`, answers within the run;
`handoff` has the other go on in its place."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypedDict, Unpack

import msgspec

from dragoman.arguments import expect, expect_callable, wrong_type_error
from dragoman.errors import ToolError
from dragoman.interrupt import Resume
from dragoman.json_bytes import Json, JsonMap
from dragoman.limits import Limits
from dragoman.message import DataPart, FilePart, LinkPart, Message, Role, TextPart
from dragoman.tools.call_record import InnerRun
from dragoman.tools.context import Sender, ToolContext
from dragoman.tools.definition import Approval, SignatureSchema, Tool
from dragoman.tools.signature import context_name, describe
from dragoman.tools.tool_result import to_json_value

__all__ = [
    "AgentTool",
    "AgentToolOptions",
    "Handoff",
    "HandoffOptions",
    "Transfer",
    "agent_tool",
    "handoff",
    "name_for_models",
]

_PROMPT: JsonMap = {
    "type": "object",
    "properties": {
        "prompt": {
            "type": "string",
            "description": "What is to be done, with all that must be known for it.",
        }
    },
    "required": ["prompt"],
}
_FILES = (DataPart, FilePart, LinkPart)


class AgentTool(Tool, frozen=True, eq=False, dict=True):
    """What `agent_tool` makes."""

    goes_on: bool = False
    """True if the agent can go on with a durable run, so that the tool may be run again."""


class AgentToolOptions(TypedDict, total=False):
    """What `Agent.as_tool` takes beside what the model is told."""

    limits: Limits | None
    """Of each run of the agent, in place of its own. The run around it keeps its limits in any
    case."""
    share_state: bool
    """The agent's tools have the state of the run around it, and not one of their own."""
    sequential: bool
    """See `Tool.sequential`."""
    timeout: float | None
    """See `Tool.timeout`."""
    requires_approval: bool | Approval
    """See `Tool.requires_approval`: of the call of the agent. What its own tools require holds in
    any case."""
    approval_expires: float | timedelta | None
    """See `Tool.approval_expires`."""
    editable: bool
    """See `Tool.editable`."""
    idempotent: bool
    """See `Tool.idempotent`."""


def agent_tool(
    agent: Sender,
    name: str | None = None,
    description: str | None = None,
    *,
    prompt: Callable[..., Any] | None = None,
    output_type: object = str,
    **options: Unpack[AgentToolOptions],
) -> Tool:
    """Returns the agent as a tool for another one, which asks it and goes on with its answer. Its
    run is a part of the other's: see `ToolContext.send`.

    `name`: left out, the agent's `display_name`, as models may write it. `prompt`: a function,
    plain or async, whose parameters are the tool's arguments and which gives the prompt, or a
    pydantic model, whose fields are the arguments and which the agent is told as JSON; left out,
    the argument is `prompt`, a text. `output_type`: as with `send_for`; the other agent is given
    the value as JSON. Files that the agent's model made stand beside its text.

    Raises:
        ToolError: there is no name, or a parameter of `prompt` that no model can fill.
        TypeError: `prompt` is no function and no class, or another argument is of another type.
    """
    display_name: str = getattr(agent, "display_name", "")
    expect("name", name, str, type(None))
    expect("description", description, str, type(None))
    expect("limits", options.get("limits"), Limits, type(None))
    fields: Json = {**options}
    run: Json = {key: fields.pop(key) for key in ("limits", "share_state") if key in fields}
    if output_type is not str:
        run["output_type"] = output_type
    schema, prompt_of = _make_arguments(prompt)

    async def handler(context_: ToolContext[Any], **arguments: Any) -> Any:
        result = await context_.send(agent, await prompt_of(context_, arguments), **run)
        return _make_answer(result.output, context_.record.runs[-1].messages)

    if description is None:
        if prompt is None:
            described = ""
        else:
            described = describe(prompt)[0].strip()
        description = (
            described
            or f"Has {display_name or 'another agent'} do something, and gives its answer."
        )
    name = name or name_for_models(display_name)
    if not name:
        raise ToolError(
            f"the tool for the agent {display_name!r} needs a name that models can write; give it name=…"
        )
    fields["goes_on"] = hasattr(agent, "go_on")
    return AgentTool(name, description, handler, schema, **fields)


def name_for_models(display_name: str) -> str:
    """Returns a name for people as every provider takes it for a tool."""
    return re.sub(r"[^a-z0-9]+", "_", display_name.lower()).strip("_")


def _make_arguments(prompt: Callable[..., Any] | None) -> tuple[JsonMap, Callable[..., Any]]:
    """Returns the schema of an agent tool's arguments, and what makes a prompt of them."""
    if prompt is None:
        return _PROMPT, _text
    expect_callable("prompt", prompt, "a function, or a pydantic model")
    if hasattr(prompt, "model_json_schema"):
        model: Any = prompt

        async def as_text(_: ToolContext[Any], arguments: JsonMap) -> str:
            """Returns the arguments of an agent tool as a text for the other agent."""
            try:
                return model.model_validate(arguments).model_dump_json()
            except ValueError as error:
                # Pydantic's own is one.
                raise ToolError(f"invalid arguments: {error}") from error

        return model.model_json_schema(), as_text
    name = context_name(prompt)

    async def make_prompt(context: ToolContext[Any], arguments: JsonMap) -> Any:
        """Returns the prompt for the other agent that an agent tool's arguments are."""
        value = prompt(**arguments, **({} if name is None else {name: context}))
        if inspect.isawaitable(value):
            return await value
        return value

    return SignatureSchema(prompt), make_prompt


async def _text(_: ToolContext[Any], arguments: JsonMap) -> str:
    return arguments["prompt"]


def _make_answer(output: object, messages: tuple[Message, ...]) -> Any:
    """Returns what the other agent is given: the output, and the files beside it."""
    parts = [part for message in messages if message.role is Role.MODEL for part in message.parts]
    files = [part for part in parts if isinstance(part, _FILES)]
    if not files:
        return output
    if isinstance(output, str):
        text = output
    else:
        text = msgspec.json.encode(to_json_value(output)).decode()
    return [*([TextPart(text)] if text else []), *files]


_REASON: JsonMap = {
    "type": "object",
    "properties": {
        "reason": {
            "type": "string",
            "description": "Why, and what the other has to know beside all this.",
        }
    },
}


class HandoffOptions(TypedDict, total=False):
    """What `handoff` takes beside what the model is told."""

    limits: Limits | None
    """Of what the other agent does, in place of its own. The run that is handed over keeps its
    limits in any case."""
    requires_approval: bool | Approval
    """See `Tool.requires_approval`: of handing over."""
    approval_expires: float | timedelta | None
    """See `Tool.approval_expires`."""


class Handoff(Tool, frozen=True, eq=False, dict=True):
    """What `handoff` makes. The run carries it out, once all other calls of the same answer are
    done."""

    agent: Sender | Callable[[], Sender] | None = None
    """Who goes on, or a function that gives it."""
    to: str = ""
    """Its name."""
    limits: Limits | None = None
    """See `HandoffOptions`."""

    def sender(self) -> Sender:
        """Returns what runs the agent of a hand-off tool, which takes over.

        Raises:
            ToolError: there is nobody.
        """
        if callable(self.agent):
            agent = self.agent()
        else:
            agent = self.agent
        if agent is None:
            raise ToolError(f"{self.name} hands over to nobody; make it with handoff(agent)")
        return agent


class Transfer(msgspec.Struct, frozen=True):
    """A hand-off that is about to happen."""

    tool: Handoff
    """To whom."""
    runs: Sequence[InnerRun] = ()
    """The run of that agent that waited, as far as it came; empty: it begins."""
    resume: tuple[Resume, ...] = ()
    """Answers to what it waits for."""
    new: tuple[Message, ...] = ()
    """What has been said since."""


def handoff(
    agent: Sender | Callable[[], Sender],
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[HandoffOptions],
) -> Handoff:
    """Returns a tool for `Agent(tools=…)` by which its model hands the conversation over to another
    agent, which gives the answer in its place: what that one says is the output of the run. The
    model calls it `transfer_to_NAME`.

    `agent` may be a function that gives it, for agents that hand over to each other. `name`: left
    out, the agent's `display_name`. The other agent has the conversation so far, with its own
    system message, tools and model, and the state of the run.

    Raises:
        ToolError: there is no name.
        TypeError: an argument is of another type.
    """
    if not hasattr(agent, "run") and (agent is None or not callable(agent)):
        raise wrong_type_error("agent", agent, "an agent, or a function that gives one")
    expect("name", name, str, type(None))
    expect("limits", options.get("limits"), Limits, type(None))
    display_name: str = getattr(agent, "display_name", "")
    to = name or name_for_models(display_name)
    if not to:
        raise ToolError(
            "a hand-off needs the name of the agent that is handed over to; give it one with name=…"
        )
    about = (
        description
        or f"Hands the conversation over to {display_name or to}, who answers in your place."
    )
    fields: Json = {**options, "agent": agent, "to": to}
    return Handoff(f"transfer_to_{to}", about, _by_the_run, _REASON, **fields)


def _by_the_run(**_: Any) -> None:
    raise ToolError(
        "a hand-off is carried out by the run, which an orchestrator of somebody's own has to leave to it"
    )
