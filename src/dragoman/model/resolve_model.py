"""Model strings and their records, and what is used where an agent is told nothing."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman import providers
from dragoman.capability import Capability
from dragoman.model.middleware import Middleware
from dragoman.providers import Provider
from dragoman.providers.model_string import ModelString, parse_model_string
from dragoman.transport.base import Transport

__all__ = [
    "ModelString",
    "default_model",
    "default_transport",
    "provider_middleware",
    "parse_model_string",
    "resolve_model",
]


# where nothing is said


def default_model(*environments: Mapping[str, str] | None) -> str:
    """Returns DRAGOMAN_MODEL of the first environment that has it, otherwise `local`."""
    return next(
        (
            name
            for environment in environments
            if environment and (name := environment.get("DRAGOMAN_MODEL"))
        ),
        "local",
    )


def resolve_model(model: str | Provider) -> tuple[ModelString, Provider]:
    """Returns the parsed model string and the provider's record of a model.

    Raises:
        SettingsError: the string is malformed, or no provider has that name.
    """
    if isinstance(model, Provider):
        return ModelString(model.name), model
    string = parse_model_string(model)
    return string, providers.get(string.provider)


def provider_middleware(provider: Provider) -> tuple[Middleware, ...]:
    """Returns for a resolved model the middlewares that make up for what a provider cannot do, by
    its record."""
    layers: list[Middleware] = []
    if (
        Capability.tools not in provider.capabilities
        and Capability.typed_output in provider.capabilities
    ):
        from dragoman.model.constrained_calls import constrained_tools

        layers.append(constrained_tools)
    if provider.repeats_itself:
        from dragoman.model.repetition import end_repetition

        layers.append(end_repetition)
    return tuple(layers)


def default_transport() -> Transport:
    """Returns the default transport: aiohttp with retries."""
    from dragoman.transport import AiohttpTransport, Retry

    return Retry(AiohttpTransport())
