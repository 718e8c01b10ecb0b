"""A conversation sent on to another provider: targets, recorded sources, and what must not go
along."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from pages.switching import NAMES

from dragoman import wires
from dragoman.codec.marks import KEY
from dragoman.errors import DragomanError
from dragoman.event import RunError
from dragoman.fold import fold
from dragoman.message import Message, Origin, Role, ToolResultPart
from dragoman.providers.provider import Provider
from dragoman.providers.registry import Registry
from dragoman.repair import repair
from dragoman.request import ModelRequest
from dragoman.wires.google.quirks import Quirks
from support.histories import declared
from support.traffic import Exchange, exchanges

__all__ = [
    "FOLDERS",
    "PROVIDERS",
    "TARGETS",
    "VENDORS",
    "answered",
    "recorded",
    "sealed",
    "sent",
    "sent_to",
    "source",
]

_KNOWN = {each.name: each for each in Registry(plug_ins=lambda: ()).providers() if not each.by_url}
PROVIDERS: dict[str, Provider] = {wire: _KNOWN[name] for wire, name in NAMES.items()}
"""Wire → the provider whose own API it is."""
VENDORS = [provider for provider in _KNOWN.values() if provider not in PROVIDERS.values()]
"""All others that speak one of the wires."""
TARGETS = {
    wire: Origin(provider.name, str(provider.base_url), provider.chat_model or "llama3.2")
    for wire, provider in PROVIDERS.items()
}
FOLDERS: dict[str, tuple[str, ...]] = {
    "openai_chat": ("openai_chat", "openai_compatible", "openrouter", "together", "ollama_openai"),
    "openai_responses": ("openai_responses",),
    "anthropic": ("anthropic",),
    "google": ("google",),
    "mistral": ("mistral",),
    "ollama": ("ollama_native",),
    "cohere": ("cohere",),
    "google_interactions": ("google_interactions",),
    "bedrock_converse": (),
}
"""Wire → folders of recorded traffic."""


def source(wire: str) -> Origin:
    """An origin that speaks a wire and is no target."""
    return Origin(f"other-{wire}", "https://other.test", "other")


def sent(wire: str, messages: Sequence[Message]) -> dict[str, Any]:
    """The body in which a conversation goes to a wire's provider."""
    return sent_to(PROVIDERS[wire], messages)


def sent_to(provider: Provider, messages: Sequence[Message]) -> dict[str, Any]:
    """The body in which a conversation goes to a provider, as a `ChatModel` would send it."""
    target = Origin(provider.name, str(provider.base_url), provider.chat_model or "llama3.2")
    request = ModelRequest(str(target.model), tuple(repair(messages)), declared(list(messages)))
    body = wires.get(provider.wire).dump_request(request, target=target, quirks=provider.quirks)
    return json.loads(msgspec.json.encode(body))


def answered(messages: Sequence[Message]) -> list[Message]:
    """The conversation, gone on with: results for calls that wait, else more words."""
    calls = messages[-1].tool_calls if messages and messages[-1].role is Role.MODEL else ()
    if calls:
        return [
            *messages,
            Message.user(*(ToolResultPart(call.id, call.name, "done") for call in calls)),
        ]
    again = any("And now?" in message.text for message in messages)
    return [*messages, Message.user("And then?" if again else "And now?")]


def recorded(wire: str, every: int = 1) -> Iterator[tuple[str, list[Message]]]:
    """What was recorded of a wire: each request's conversation with its answer, gone on with."""
    for number, exchange in enumerate(exchanges(*FOLDERS[wire])):
        if number % every == 0 and (history := _history(wire, exchange)) is not None:
            yield exchange.id, history


@cache
def _history(wire: str, exchange: Exchange) -> list[Message] | None:
    origin, codec = source(wire), wires.get(wire)
    try:
        asked = list(
            codec.load_request(exchange.request or {}, path=exchange.url, origin=origin).messages
        )
    except DragomanError:
        asked = [Message.user("Hello.")]
    if exchange.status == 200 and not exchange.body.lstrip().startswith(
        (b'{"embedding', b'{"object":"list"')
    ):
        decoder = codec.decoder(origin=origin)
        events = [*decoder.feed(exchange.body), *decoder.close()]
        events = [event for event in events if not isinstance(event, RunError)]
        return answered(
            [*asked, *(m for m in fold(events) if m.content or m.finish_reason is not None)]
        )
    return answered(asked) if exchange.request and len(asked) else None


_SEALS = (
    "signature",
    "thoughtSignature",
    "data",
    "encrypted_content",
    "encrypted_index",
    "id",
    "container_id",
)


def sealed(messages: Sequence[Message]) -> Iterator[str]:
    """What a provider signed, encrypted or keeps under an id, anywhere in the messages' `native`,
    and the model's thinking."""
    for message in messages:
        for native in (message.native, *(piece.native for piece in message.content)):
            if message.role is Role.MODEL:
                # Our own mark holds what an approval is asked for: the call, by its id.
                yield from _sealed({key: native[key] for key in native or () if key != KEY})


def _sealed(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            if (
                key in _SEALS
                and isinstance(each, str)
                and len(each) > 8
                and each != Quirks().placeholder
            ):
                yield each
            elif key != "spelling":
                yield from _sealed(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _sealed(each)
