"""What a client asks of a model, as a request to an agent: its tools, settings and system texts, as far as it may."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from dragoman.errors import DragomanError, InvalidRequestError, ToolError
from dragoman.interrupt import Resume
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Role
from dragoman.orchestration.interrupts import speaks
from dragoman.repair import open_calls
from dragoman.request import ModelRequest, Settings, ToolSpec
from dragoman.serve.agents.interrupts import RESERVED
from dragoman.serve.agents.policy import AgentPolicy
from dragoman.serve.calls.fields import foreign_losses, one_candidate

__all__ = ["Allowed", "allowed", "check_results", "of_client"]

_WORDS = ("auto", "none", "required")


class Allowed(msgspec.Struct, frozen=True):
    """What of a client's request an agent is asked."""

    messages: tuple[Message, ...]
    """Without system texts that do not count."""
    tools: tuple[ToolSpec, ...]
    """Those that the client runs."""
    settings: Settings
    """Those that count."""
    output_schema: dict[str, Any] | None
    """JSON Schema of the answer."""
    losses: tuple[Loss, ...]
    """What is left out."""


def allowed(request: ModelRequest, wire: str, policy: AgentPolicy, own: Collection[str]) -> Allowed:
    """A client's request as far as the policy lets it through. `own`: names of the agent's tools.

    Raises:
        InvalidRequestError: it has what the policy refuses, or a tool's name that is taken.
    """
    single, losses = one_candidate(request, wire)
    losses += foreign_losses(single, wire)
    tools = _tools(request, policy, own, losses)
    settings, schema = _settings(request, policy, losses)
    return Allowed(
        _messages(request.messages, policy, losses),
        *_chosen(tools, settings, losses),
        schema,
        tuple(losses),
    )


def of_client(error: DragomanError, tools: Sequence[ToolSpec]) -> DragomanError:
    """What a run failed with, as the client's fault where it is: the tools of sets are known only once it runs."""
    if not isinstance(error, ToolError):
        return error
    name = next((tool.name for tool in tools if f"named {tool.name!r}" in error.message), None)
    return error if name is None else _taken(name)


def check_results(
    before: Sequence[Message], new: Sequence[Message], resumes: Sequence[Resume], *, trusted: bool
) -> None:
    """Refuses results of calls that the client was not given, and calls of its own, or made up by it, that it leaves without one. `trusted`:
    what stands before is as this server kept it.

    Raises:
        InvalidRequestError: there is one.
    """
    calls = [
        call
        for message in before
        for call in message.tool_calls
        if call.run_by == "client" or not trusted
    ]
    calls += [call for message in new for call in message.tool_calls if message.role is Role.MODEL]
    given = {call.id for call in calls}
    for message in new:
        for result in message.tool_results:
            if result.run_by != "provider" and result.id not in given:
                raise InvalidRequestError(
                    f"the result for {result.id!r:.100} answers no call that waits for the client; send results of its own calls alone"
                )
    messages, answered = [*before, *new], {resume.interrupt_id for resume in resumes}
    for one in () if speaks(messages) else open_calls(messages):
        if trusted and answered and one.call.run_by == "client" and one.position < len(before):
            continue  # something else of the round is answered first
        theirs = one.call.run_by == "client" or not trusted or one.position >= len(before)
        if theirs and one.call.id not in answered:
            raise InvalidRequestError(
                f"the call {one.call.id!r:.100} of {one.call.name!r:.100} has no result; send one for each call of the last answer"
            )


def _taken(name: str) -> InvalidRequestError:
    return InvalidRequestError(f"a tool cannot be called {name!r:.100} here; give it another name")


def _messages(
    messages: Sequence[Message], policy: AgentPolicy, losses: list[Loss]
) -> tuple[Message, ...]:
    system = [at for at, message in enumerate(messages) if message.role is Role.SYSTEM]
    if not system or policy.system == "keep":
        return tuple(messages)
    if policy.system == "refuse":
        raise InvalidRequestError("this server takes no system texts from clients; leave them out")
    losses += [
        Loss(at, None, Lost.system_message, "the server takes none from clients") for at in system
    ]
    return tuple([message for message in messages if message.role is not Role.SYSTEM])


def _tools(
    request: ModelRequest, policy: AgentPolicy, own: Collection[str], losses: list[Loss]
) -> tuple[ToolSpec, ...]:
    tools = [tool for tool in request.tools if isinstance(tool, ToolSpec)]
    others = [tool for tool in request.tools if not isinstance(tool, ToolSpec)]
    losses += [
        Loss(None, None, Lost.tool, "the agent's provider is not the client's", tool.name)
        for tool in others
    ]
    if tools and policy.tools == "refuse":
        raise InvalidRequestError("this server takes no tools from clients; leave them out").at(
            field="tools"
        )
    if policy.tools == "drop":
        losses += [
            Loss(None, None, Lost.tool, "the server takes none from clients", tool.name)
            for tool in tools
        ]
        return ()
    names: set[str] = set()
    for tool in tools:
        if not tool.name:
            raise InvalidRequestError("a tool of the request has no name; give it one").at(
                field="tools"
            )
        if tool.name in own:
            raise _taken(tool.name)
        if tool.name in names:
            raise InvalidRequestError(
                f"two tools of the request are called {tool.name!r:.100}; give each its own name"
            ).at(field="tools")
        names.add(tool.name)
    return tuple(
        [tool for tool in tools if tool.name not in RESERVED.values()]
    )  # the model does not know these


def _settings(
    request: ModelRequest, policy: AgentPolicy, losses: list[Loss]
) -> tuple[Settings, dict[str, Any] | None]:
    settings, schema = request.settings, request.output_schema
    if policy.settings is not None:
        fields = settings.__struct_fields__
        fixed = [
            name
            for name in fields
            if name not in policy.settings and getattr(settings, name) is not None
        ]
        settings = msgspec.structs.replace(settings, **dict.fromkeys(fixed, None))
        if schema is not None and "output_schema" not in policy.settings:
            schema, fixed = None, [*fixed, "output_schema"]
        losses += [Loss(None, None, Lost.setting, "the server sets it", name) for name in fixed]
    return settings, None if schema is None else dict(schema)


def _chosen(
    tools: tuple[ToolSpec, ...], settings: Settings, losses: list[Loss]
) -> tuple[tuple[ToolSpec, ...], Settings]:
    """A client chooses among its own tools; the agent's are not its business."""
    choice = settings.tool_choice
    if choice is None:
        return tools, settings
    if choice == "none":
        return (), msgspec.structs.replace(settings, tool_choice=None)
    if choice in _WORDS and not tools:
        if choice == "required":
            losses.append(Loss(None, None, Lost.setting, "the request has no tools", "tool_choice"))
        return tools, msgspec.structs.replace(settings, tool_choice=None)
    if choice not in _WORDS and choice not in [tool.name for tool in tools]:
        raise InvalidRequestError(
            f"tool_choice names {choice!r:.100}, which is none of the request's tools"
        ).at(field="tool_choice")
    return tools, settings
