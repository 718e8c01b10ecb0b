"""What clients may change of the runs of agents: `AgentPolicy`, and a request as far as it is let
through."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, TypeVar, get_args, get_type_hints

import msgspec

from dragoman.arguments import expect_each
from dragoman.errors import DragomanError, InvalidRequestError, SettingsError, ToolError
from dragoman.interrupt import Resume
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Role
from dragoman.model.fallbacks import model_string
from dragoman.model.resolve_model import resolve_model
from dragoman.orchestration.interrupts import has_new_prompt
from dragoman.providers.provider import Provider
from dragoman.repair import find_open_calls
from dragoman.request import ModelRequest, RunRequest, ServerTool, Settings, ToolSpec
from dragoman.serve.core.interrupts import RESERVED
from dragoman.serve.core.request_fields import foreign_losses, limit_candidates, option_losses
from dragoman.tools import Tool, Toolset

__all__ = [
    "AgentPolicy",
    "apply_policy",
    "blame_client",
    "check_results",
    "client_tools",
    "foreign_result_error",
]

Request = TypeVar("Request", ModelRequest, RunRequest)

_GENERAL_CHOICES = ("auto", "none", "required")


class AgentPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What clients may change of the runs of agents.

    Raises:
        SettingsError: there is no setting of a name, or a field has a value that is none of its own.
    """

    system: Literal["keep", "drop", "refuse"] = "keep"
    """The client's system texts: they follow the agent's own, or are left out, or the request is
    refused."""
    tools: Literal["keep", "drop", "refuse"] = "keep"
    """The client's tools, which the model may call beside the agent's own and the client runs."""
    settings: tuple[str, ...] | None = None
    """Names of the `Settings` that the client may set, and `output_schema`; of all others the
    agent's count. `None`: all."""
    output_schema: JsonMap | None = None
    """JSON Schema of the answers over agent protocols, whose clients get the value as it grows: as
    `CUSTOM` events of AG-UI and `data-output` parts of the AI SDK. `None`: text."""
    older: bool = True
    """Whether an agent's card says how clients of A2A 0.3 reach it. Validators of 1.0 take no card
    that does."""
    on_disconnect: Literal["cancel", "detach"] = "cancel"
    """What becomes of a run whose client leaves: it ends, or goes on and its answer is kept."""
    models: tuple[str | Provider, ...] = ()
    """Models, as model strings or records of providers, that clients may choose in place of the agent's
    own: they ask for `AGENT@MODEL`, or for `MODEL` alone where a single agent is served without a
    name."""

    def __post_init__(self) -> None:
        """Raises `SettingsError` for an unknown value of a policy's field, or an unknown name of a
        setting."""
        types = get_type_hints(AgentPolicy)
        for field in ("system", "tools", "on_disconnect"):
            values, value = get_args(types[field]), getattr(self, field)
            if value not in values:
                raise SettingsError(
                    f"AgentPolicy({field}={value!r:.100}) is unknown; there are {', '.join(values)}"
                )
        names = (*Settings.__struct_fields__, "output_schema")
        for name in self.settings or ():
            if name not in names:
                raise SettingsError(
                    f"AgentPolicy(settings=…) names {name!r}; there are {', '.join(names)}"
                )
        for model in expect_each("AgentPolicy(models=…)", self.models, str, Provider):
            resolve_model(model)

    @property
    def model_names(self) -> list[str]:
        """Returns the model strings of `models`."""
        return [model_string(model) for model in self.models]

    def find_model(self, name: str) -> str | Provider:
        """Returns the model that a client chooses by its model string.

        Raises:
            InvalidRequestError: it is none of `models`.
        """
        for model in self.models:
            if model_string(model) == name:
                return model
        names = ", ".join(self.model_names) or "none"
        raise InvalidRequestError(
            f"the model {name!r:.200} cannot be chosen here; there are: {names}"
        ).at(field="model")


def apply_policy(
    request: Request, wire: str, policy: AgentPolicy, agent_tools: Sequence[Tool | Toolset]
) -> tuple[Request, list[Loss]]:
    """Returns a client's request as far as the policy lets it through, and what is left out of it.
    What remains of its tools are those that the client runs.

    Raises:
        InvalidRequestError: it has what the policy refuses, or a tool's name that is taken.
    """
    losses: list[Loss] = []
    schema: JsonMap | None = None
    if isinstance(request, ModelRequest):
        single, losses = limit_candidates(request, wire)
        losses += foreign_losses(single, wire)
        schema = request.output_schema
    elif request.options:
        losses += option_losses(wire, request.options)
    agent_names = [tool.name for tool in agent_tools if isinstance(tool, Tool)]
    tools = _admit_tools(request.tools, policy, agent_names, losses)
    settings, schema = _admit_settings(request.settings or Settings(), schema, policy, losses)
    messages = _admit_messages(request.messages, policy, losses)
    tools, settings = _apply_tool_choice(tools, settings, losses)
    changed: Json = {"messages": messages, "tools": tools, "settings": settings}
    if isinstance(request, ModelRequest):
        changed["output_schema"] = schema
    return request.replace(**changed), losses


def client_tools(request: ModelRequest) -> tuple[ToolSpec, ...]:
    """Returns the tools of a request that the client runs."""
    return tuple([tool for tool in request.tools if isinstance(tool, ToolSpec)])


def blame_client(error: DragomanError, tools: Sequence[ToolSpec | ServerTool]) -> DragomanError:
    """Returns what a run failed with as the fault of the client, whose tools the policy let in, if
    one of its tools has a name that is taken: the tools of sets are known only once the run has
    begun."""
    if not isinstance(error, ToolError):
        return error
    name = next((tool.name for tool in tools if f"named {tool.name!r}" in error.message), None)
    return error if name is None else _name_taken_error(name)


def check_results(
    before: Sequence[Message], new: Sequence[Message], resumes: Sequence[Resume], *, trusted: bool
) -> None:
    """Refuses under every policy results of calls that the client was not given, and calls of its
    own, or made up by it, that it leaves without one. `trusted`: the messages before are as this
    server kept them.

    Raises:
        InvalidRequestError: there is one.
    """
    # In a history that the client sent itself any call may be its own.
    client_calls = {
        call.id
        for message in before
        for call in message.tool_calls
        if call.run_by == "client" or not trusted
    }
    for message in new:
        if message.role is Role.MODEL:
            client_calls |= {call.id for call in message.tool_calls}
    for message in new:
        for result in message.tool_results:
            if result.run_by != "provider" and result.id not in client_calls:
                raise foreign_result_error(result.id)
    _check_answered(before, new, {resume.interrupt_id for resume in resumes}, trusted=trusted)


def _check_answered(
    before: Sequence[Message], new: Sequence[Message], resumed: set[str], *, trusted: bool
) -> None:
    """Raises an error if the client leaves calls open that only it can answer, whatever the
    policy."""
    messages = [*before, *new]
    # New words from the user close open calls: repair answers them.
    if has_new_prompt(messages):
        return
    for open_call in find_open_calls(messages):
        call, is_stored = open_call.call, trusted and open_call.position < len(before)
        if is_stored and resumed and call.run_by == "client":
            # Something else of the round is answered first.
            continue
        is_clients = call.run_by == "client" or not is_stored
        if is_clients and call.id not in resumed:
            raise InvalidRequestError(
                f"the call {call.id!r:.100} of {call.name!r:.100} has no result; send one for each call of the last answer"
            )


def foreign_result_error(call_id: str) -> InvalidRequestError:
    """Returns the policy's error for a result of a call that the client was not asked to run."""
    return InvalidRequestError(
        f"the result for {call_id!r:.100} answers no call that waits for the client; send results of its own calls alone"
    )


def _name_taken_error(name: str) -> InvalidRequestError:
    return InvalidRequestError(f"a tool cannot be called {name!r:.100} here; give it another name")


def _admit_messages(
    messages: Sequence[Message], policy: AgentPolicy, losses: list[Loss]
) -> tuple[Message, ...]:
    """Returns the client's messages as the policy admits them: with, without or refusing system
    texts."""
    system = [index for index, message in enumerate(messages) if message.role is Role.SYSTEM]
    if not system or policy.system == "keep":
        return tuple(messages)
    if policy.system == "refuse":
        raise InvalidRequestError("this server takes no system texts from clients; leave them out")
    why = "the server takes none from clients"
    losses += [Loss(index, None, Lost.system_message, why) for index in system]
    return tuple([message for message in messages if message.role is not Role.SYSTEM])


def _admit_tools(
    requested: Sequence[ToolSpec | ServerTool],
    policy: AgentPolicy,
    agent_names: Collection[str],
    losses: list[Loss],
) -> tuple[ToolSpec, ...]:
    """Returns the client's tools as the policy admits them. Tools of a provider become losses."""
    tools = [tool for tool in requested if isinstance(tool, ToolSpec)]
    losses += [
        Loss(None, None, Lost.tool, "the agent's provider is not the client's", tool.name)
        for tool in requested
        if isinstance(tool, ServerTool)
    ]
    if tools and policy.tools == "refuse":
        raise InvalidRequestError("this server takes no tools from clients; leave them out").at(
            field="tools"
        )
    if policy.tools == "drop":
        why = "the server takes none from clients"
        losses += [Loss(None, None, Lost.tool, why, tool.name) for tool in tools]
        return ()
    _check_names(tools, agent_names)
    # A reserved tool answers what an earlier run asked: the model does not know it.
    return tuple([tool for tool in tools if tool.name not in RESERVED.values()])


def _check_names(tools: Sequence[ToolSpec], agent_names: Collection[str]) -> None:
    """Raises `InvalidRequestError` if tools of a client that the policy admits lack a name, share
    one, or use one of the agent's."""
    names: set[str] = set()
    for tool in tools:
        if not tool.name:
            raise InvalidRequestError("a tool of the request has no name; give it one").at(
                field="tools"
            )
        if tool.name in agent_names:
            raise _name_taken_error(tool.name)
        if tool.name in names:
            raise InvalidRequestError(
                f"two tools of the request are called {tool.name!r:.100}; give each its own name"
            ).at(field="tools")
        names.add(tool.name)


def _admit_settings(
    settings: Settings,
    schema: JsonMap | None,
    policy: AgentPolicy,
    losses: list[Loss],
) -> tuple[Settings, JsonMap | None]:
    """Returns the client's settings and output schema as the policy admits them. Others become
    losses."""
    if policy.settings is None:
        return settings, schema
    refused = [
        name
        for name in settings.__struct_fields__
        if name not in policy.settings and getattr(settings, name) is not None
    ]
    settings = msgspec.structs.replace(settings, **dict.fromkeys(refused, None))
    if schema is not None and "output_schema" not in policy.settings:
        schema, refused = None, [*refused, "output_schema"]
    losses += [Loss(None, None, Lost.setting, "the server sets it", name) for name in refused]
    return settings, schema


def _apply_tool_choice(
    tools: tuple[ToolSpec, ...], settings: Settings, losses: list[Loss]
) -> tuple[tuple[ToolSpec, ...], Settings]:
    """Returns the tools and settings that, by the policy, a client's `tool_choice` leaves. A client
    chooses among its own tools only."""
    choice = settings.tool_choice
    if choice is None:
        return tools, settings
    if choice == "none":
        return (), msgspec.structs.replace(settings, tool_choice=None)
    if choice in _GENERAL_CHOICES and not tools:
        if choice == "required":
            losses.append(Loss(None, None, Lost.setting, "the request has no tools", "tool_choice"))
        return tools, msgspec.structs.replace(settings, tool_choice=None)
    if choice not in _GENERAL_CHOICES and choice not in [tool.name for tool in tools]:
        raise InvalidRequestError(
            f"tool_choice names {choice!r:.100}, which is none of the request's tools"
        ).at(field="tool_choice")
    return tools, settings
