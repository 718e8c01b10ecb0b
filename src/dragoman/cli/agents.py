"""Loads the agents that a command serves or works for, by name, and prepares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from dragoman.cli.terminal import echo
from dragoman.json_bytes import JsonMap

if TYPE_CHECKING:
    from dragoman.agent import Agent

__all__ = ["check_agents", "check_names", "load_targets", "prepare_agent"]


class _ModuleAgents(list[tuple[str, Any]]):
    """The agents of a module, by name. Its own type tells it from a list that a module may hold."""


def load_targets(targets: Sequence[str], option: str) -> list[tuple[str, Any]]:
    """Returns what `MODULE:AGENT` or a module alone name, by the names in the modules. `option`: the
    option or argument that named them, for errors.

    Raises:
        BadParameter: something does not exist.
    """
    from dragoman.cli.modules import load_value

    loaded: list[tuple[str, Any]] = []
    for target in targets:
        value = load_value(
            target, option, lambda module, values: _find_agents(module, values, option)
        )
        if isinstance(value, _ModuleAgents):
            loaded += value
        else:
            loaded.append((target.partition(":")[2], value))
    return loaded


def check_names(loaded: Sequence[tuple[str, Any]], option: str) -> None:
    """Raises `BadParameter` if two targets have the same name."""
    names = [name for name, _ in loaded]
    if len(set(names)) < len(names):
        raise typer.BadParameter(
            f"two targets are named {max(names, key=names.count)!r}; give one of them another name",
            param_hint=option,
        )


def check_agents(loaded: Sequence[tuple[str, Any]], option: str) -> dict[str, Agent[Any]]:
    """Returns the agents by their names.

    Raises:
        BadParameter: one is something else.
    """
    from dragoman.agent import Agent

    for name, value in loaded:
        if not isinstance(value, Agent):
            raise typer.BadParameter(
                f"{name!r} is a {type(value).__name__}, and no agent", param_hint=option
            )
    return dict(loaded)


def prepare_agent(agent: Agent[Any]) -> None:
    """Starts the embedded model if the agent uses it. Refuses an agent if none of its models has a
    key; if some have, a fallback may answer.

    Raises:
        AuthenticationError: no model has a key.
    """
    errors = list(agent.check_keys().values())
    # None is a model with a key.
    if errors and errors[0] is not None and None not in errors:
        raise errors[0]
    _load_embedded_model(agent)


def _find_agents(module: str, values: JsonMap, option: str) -> _ModuleAgents:
    """Returns the agents of a module, each once.

    Raises:
        BadParameter: there are none.
    """
    from dragoman.agent import Agent

    agents: dict[int, tuple[str, Any]] = {}
    for name, value in values.items():
        if _is_instance(value, Agent):
            agents.setdefault(id(value), (name, value))
    if not agents:
        raise typer.BadParameter(
            f"{module!r} ({values.get('__file__')}) has no agent", param_hint=option
        )
    return _ModuleAgents(agents.values())


def _is_instance(value: Any, cls: type) -> bool:
    """True if a value is an instance of a class, without narrowing the value's type for pyright."""
    return isinstance(value, cls)


def _load_embedded_model(agent: Any) -> None:
    """Starts the embedded model if the agent uses it."""
    from dragoman import providers

    if agent.provider_name != "local":
        return
    import asyncio

    record = providers.get("local")
    if callable(record.base_url):
        echo("loading the embedded model", err=True)
        # `callable` leaves pyright a function of unknown arguments: it takes a model's name.
        start_server: Any = record.base_url
        asyncio.run(start_server(agent.chat_model_name or record.chat_model))
