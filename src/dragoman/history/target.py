"""Where a conversation may go: the model of a provider, or a format. How it is written for that,
and what goes there as it was signed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dragoman import formats, profiles, wires
from dragoman.codec.signature_check import find_unreadable
from dragoman.errors import SettingsError
from dragoman.formats import dragoman
from dragoman.formats.registry import Format
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.model.resolve_model import ModelString, resolve_model
from dragoman.model_profile import EMPTY, ModelProfile
from dragoman.profiles.attach import attach_profile
from dragoman.providers import REGISTRY, Provider
from dragoman.providers.base_url import find_written_url, join_url
from dragoman.repair import Source, trace_repair
from dragoman.request import ModelRequest
from dragoman.transport.redaction import public_url

__all__ = ["Dump", "Mended", "Target", "find_target", "format_target"]


Dump = Callable[[Sequence[Message], list[Loss]], Any]
"""Messages → what is written of them. What is left out or changed is added to the losses."""


Mended = Callable[
    [Sequence[Message]], tuple[Sequence[Message], list[Loss], Sequence[Source] | None]
]
"""Messages → the same, repaired, with what that made up or dropped, and where each stood (as
`repair.traced`)."""


class Target(NamedTuple):
    """Who or what a conversation is written for."""

    name: str
    """The model string, or the name of the format."""
    dump: Dump
    """Writes a conversation as it would be for it."""
    mended: Mended | None
    """Repairs a conversation before it is written; `None`: it is written as it is, open calls and
    all."""
    provider: str = ""
    """Name of the provider; empty: of none."""
    origin: Origin | None = None
    """The model that reads it; `None`: none, so that each message goes as if to its own origin."""
    reads: Sequence[str] = ()
    """Names of other providers whose signed content the model reads."""
    profile: ModelProfile = EMPTY
    """What the model accepts."""
    wire: str = ""
    """Name of the wire that the model is asked by; empty: it is no model."""
    waits: bool = False
    """Whether it has messages that are there only because a run waits; else they are left out, as
    no part of the conversation."""

    @property
    def model(self) -> str:
        """Returns the name of the target model, or "" for a format."""
        return (self.origin and self.origin.model) or ""

    def unreadable(self, messages: Sequence[Message]) -> Sequence[str | None]:
        """Returns for each message why the target cannot take what its provider signed, or None."""
        return find_unreadable(messages, self.origin, self.reads)


def find_target(target: str | Provider | Format, request: ModelRequest | None = None) -> Target:
    """Returns the target that a model string, a provider's record, the name of a format or a format
    stands for. A name that a provider and a format both have is the provider's, with its default
    model, if it has models. `request`: what is written around the messages for a model.

    Raises:
        SettingsError: no provider and no format has that name.
    """
    if isinstance(target, Provider):
        return _model_target(target, ModelString(target.name), request)
    if not isinstance(target, str):
        return format_target(target, request=request)
    try:
        string, provider = resolve_model(target)
    except SettingsError as error:
        if target in formats.names():
            return format_target(formats.get(target), request=request)
        raise SettingsError(
            f"{error.message}. The formats are {', '.join(formats.names())}"
        ) from error
    if provider.by_url and string.chat is None and target in formats.names():
        return format_target(formats.get(target), request=request)
    return _model_target(provider, string, request)


def _model_target(
    provider: Provider, string: ModelString, request: ModelRequest | None = None
) -> Target:
    """Returns the target for a provider's model: its wire, endpoint and profile."""
    wire = wires.client(provider.wire) or wires.get(provider.wire)
    model = string.chat or provider.chat_model
    url = find_written_url(provider) or provider.base_url or (model if provider.by_url else None)
    if isinstance(url, str):
        endpoint = public_url(url if provider.by_url else join_url(url, ""))
    else:
        endpoint = None
    profile = profiles.REGISTRY.find(provider, model or "")
    origin = Origin(provider.name, endpoint, model, binds=profile.binds)
    around = (request or ModelRequest("")).replace(model=model or "")

    def dump(messages: Sequence[Message], losses: list[Loss]) -> Any:
        sent = around.replace(messages=tuple(messages))
        quirks = attach_profile(provider.quirks, wire, profile)
        return wire.dump_request(sent, target=origin, quirks=quirks, losses=losses)

    reads = getattr(provider.quirks, "reads", ())
    return Target(
        str(ModelString(provider.name, model)),
        dump,
        trace_repair,
        provider.name,
        origin,
        reads,
        profile,
        provider.wire,
    )


def format_target(
    target_format: Format,
    origin: Origin | None = None,
    *,
    request: ModelRequest | None = None,
    **options: Any,
) -> Target:
    """Returns a format as a target of an export or plan. `origin`: who reads it; what a provider
    that is known does differently is regarded. `request`: what is written around the messages where
    the format is that of a model's API. `options`: what its `dump_messages` takes besides."""
    is_wire = target_format.name in wires.names("model")
    if is_wire:
        quirks = _reader_quirks(target_format.name, origin)
    else:
        quirks = None
    if quirks is not None:
        options = {"quirks": quirks, **options}

    def dump(messages: Sequence[Message], losses: list[Loss]) -> Any:
        if is_wire and request is not None:
            sent = request.replace(messages=tuple(messages))
            wire = wires.get(target_format.name)
            return wire.dump_request(sent, target=origin, quirks=quirks, losses=losses)
        return target_format.dump_messages(messages, target=origin, losses=losses, **options)

    if is_wire:
        mended = trace_repair
    else:
        mended = getattr(target_format, "mended", None)
    return Target(
        target_format.name,
        dump,
        mended,
        "",
        origin,
        getattr(quirks, "reads", ()),
        waits=target_format is dragoman,
    )


def _reader_quirks(wire: str, origin: Origin | None) -> Any:
    """Returns what the reader at a target does differently, where it is a provider that is known
    and speaks the wire."""
    if origin is None:
        return None
    try:
        provider = REGISTRY.get(origin.provider)
    except SettingsError:  # it is nobody's that is known, which is no fault
        return None
    if provider.wire != wire:
        return None
    if origin.model is None:
        return provider.quirks
    profile = profiles.REGISTRY.find(provider, origin.model)
    return attach_profile(provider.quirks, wires.get(wire), profile)
