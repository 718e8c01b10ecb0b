"""A model that makes images or speech, or writes down what is said: a provider's record, its wire's
endpoint and a transport put together."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from datetime import datetime
from functools import partial

import msgspec

from dragoman import wires
from dragoman.capability import Capability
from dragoman.codec.error_rules import find_request_id
from dragoman.errors import (
    ContentRefusedError,
    DragomanError,
    InvalidRequestError,
    ProviderError,
    SettingsError,
)
from dragoman.event import Event, MessageFinished, MessageStarted, RunError
from dragoman.fold import MessageBuilder
from dragoman.media_request import ImageRequest, MediaKind, MediaRequest, SpeechRequest
from dragoman.message import DataPart, FinishReason, LinkPart, Message, Origin
from dragoman.model.access import Access, Key, encoding_error
from dragoman.model.metering import PlannedCall, meter
from dragoman.model.resolve_model import default_transport
from dragoman.model.tokens import estimate_tokens
from dragoman.providers.base_url import join_url
from dragoman.providers.provider import Provider
from dragoman.request import HttpRequest
from dragoman.result import ChatResult, ModelCall
from dragoman.runtime import new_id, now
from dragoman.transport.base import Transport
from dragoman.transport.redaction import public_url

__all__ = ["MediaEndpoint"]

_REFUSED = (FinishReason.content_filter, FinishReason.refusal, FinishReason.recitation)


class MediaEndpoint:
    """A provider's model for one kind of media. Tasks and event loops may share it."""

    def __init__(
        self,
        provider: Provider,
        media_kind: MediaKind,
        name: str | None = None,
        *,
        transport: Transport | None = None,
        access: Access | None = None,
        api_key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        new_id: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
    ) -> None:
        """Creates the endpoint for media. `transport`: how requests go; left out, by HTTP with
        retries. `access`: existing access to the provider; without it, one is made from the
        arguments that follow.

        Raises:
            SettingsError: the provider has no such endpoint, or no default model and none is given.
        """
        wire = wires.media_client(provider.wire, media_kind)
        if wire is None or Capability(media_kind) not in provider.capabilities:
            raise SettingsError(_explain_unsupported(provider, media_kind), provider=provider.name)
        self.provider = provider
        self.media_kind: MediaKind = media_kind
        self.name = name or _default_model(provider, media_kind) or ""
        if not self.name:
            raise SettingsError(
                f"{provider.display_name} has no default model for {media_kind}; name one",
                provider=provider.name,
            )
        self.wire = wire
        self._new_id, self._clock = new_id, clock
        self._access = access or Access(
            provider,
            transport or default_transport(),
            api_key=api_key,
            base_url=base_url,
            headers=headers,
            environment=environment,
        )

    async def send(self, request: MediaRequest) -> ChatResult[str]:
        """Sends a request to the endpoint for media. Returns the result: the user's message that
        says the same as the request, and the model's with the images, the audio or the text.
        `request.model` is not read.

        Raises:
            InvalidRequestError: the provider cannot be asked this.
            ContentRefusedError: its policy refuses the request.
            ProviderError: it refused for another reason; which subclass tells why.
            DecodeError: it answered something else.
        """
        builder = MessageBuilder()
        async with aclosing(self.batches(request)) as batches:
            async for events in batches:
                for event in events:
                    if isinstance(event, RunError):
                        error = event.error.at(partial=builder.message())
                        raise error from error.__cause__
                    builder.add(event)
        message = builder.message()
        model_call = ModelCall(
            message.origin,
            message.usage,
            created_at=message.created_at,
            native=message.native,
        )
        return ChatResult(
            message.text,
            (request.message, message),
            message.finish_reason or FinishReason.unspecified,
            message.usage,
            metadata=dict(message.metadata),
            id=message.id or "",
            calls=(model_call,),
        )

    def batches(self, request: MediaRequest) -> AsyncGenerator[list[Event], None]:
        """Sends a request to the endpoint for media and yields the events of its answer, one list
        per network read. A failure is a `RunError` at the end. `request.model` is not read."""
        return meter(self._ask(request), partial(self._plan_call, request))

    def _plan_call(self, request: MediaRequest) -> PlannedCall:
        """Returns what is known of a call before it is made."""
        provider, name = self.provider.name, self.name
        count = partial(estimate_tokens, [request.message], provider=provider, model=name)
        return PlannedCall(Origin(provider, self._access.endpoint, name), count, None)

    async def _ask(self, request: MediaRequest) -> AsyncGenerator[list[Event], None]:
        """Sends a request and yields the events of its answer."""
        request = self._complete(request)
        builder = MessageBuilder()
        try:
            async with aclosing(self._read(request)) as batches:
                async for events in batches:
                    for event in events:
                        builder.add(event)
                        if (
                            isinstance(event, MessageFinished)
                            and event.finish_reason is not FinishReason.error
                        ):
                            _check_message(builder.message(), self.media_kind)
                    # What came before a failure stands.
                    if isinstance(failure := events[-1], RunError):
                        if len(events) > 1:
                            yield events[:-1]
                        raise failure.error
                    yield events
        except UnicodeEncodeError as error:
            yield [RunError(encoding_error(error).at(provider=self.provider.name))]
        except DragomanError as error:
            yield [RunError(self._access.redact(error.at(provider=self.provider.name)))]

    def _complete(self, request: MediaRequest) -> MediaRequest:
        """Returns the media request with the model's name and the provider's usual options."""
        request = request.replace(model=self.name)
        if isinstance(request, ImageRequest):
            return request.replace(options={**self.provider.image_options, **request.options})
        if isinstance(request, SpeechRequest) and "voice" not in request.options:
            return request.replace(voice=request.voice or self.provider.voice)
        return request

    async def _read(self, request: MediaRequest) -> AsyncGenerator[list[Event], None]:
        """Sends a media request once and yields its events."""
        route = await self._access.route(self.name)
        http = self.wire.dump_http(request, quirks=self.provider.quirks)
        headers = {"content-type": "application/json", **http.headers}
        url = join_url(route.base_url, http.path)
        response = await self._access.send(HttpRequest(url, headers, http.body), route)
        try:
            decoder = self.wire.decoder(
                request,
                media_type=response.headers.get("content-type", ""),
                origin=Origin(self.provider.name, public_url(route.base_url), self.name),
                new_id=self._new_id,
            )
            # Only the stream exists: a whole answer passes through the same decoder.
            is_over = False
            while not is_over:
                data = await response.read()
                is_over = not data
                events = decoder.close() if is_over else decoder.feed(data)
                if events and isinstance(last := events[-1], RunError):
                    last.error.at(request_id=find_request_id(response.headers))
                if events:
                    yield [self._date(event) for event in events]
        except ProviderError as error:
            raise error.at(request_id=find_request_id(response.headers)) from error.__cause__
        finally:
            await response.close()

    def _date(self, event: Event) -> Event:
        """Returns an event of a media answer with the current time if it begins a message, since
        media APIs do not report one."""
        if isinstance(event, MessageStarted):
            return msgspec.structs.replace(event, created_at=self._clock())
        return event


def _check_message(message: Message, media_kind: MediaKind) -> None:
    """Raises if an answer of the endpoint holds none of the media that were asked for.

    Raises:
        ContentRefusedError: the provider's policy kept them back.
        InvalidRequestError: there are none for another reason, most likely the model.
    """
    if media_kind == "transcription" and message.finish_reason not in _REFUSED:
        return
    wanted = DataPart if media_kind == "speech" else DataPart | LinkPart
    if any(isinstance(part, wanted) for part in message.parts):
        return
    told = f': "{message.text:.200}"' if message.text else ""
    if message.finish_reason in _REFUSED:
        raise ContentRefusedError(
            f"the provider's policy refuses this ({message.finish_reason}){told}. Change what is asked."
        )
    raise InvalidRequestError(
        f"the model answered without {media_kind}{told}. Is it a model for {media_kind}?"
    )


def _default_model(provider: Provider, media_kind: MediaKind) -> str | None:
    """Returns the default model of the provider's media endpoint: for images, speech or
    transcripts."""
    names: Mapping[MediaKind, str | None] = {
        "images": provider.image_model or provider.media_model,
        "speech": provider.speech_model,
        "transcription": provider.transcription_model,
    }
    return names[media_kind]


def _explain_unsupported(provider: Provider, media_kind: MediaKind) -> str:
    """Returns the message that a provider has no such endpoint, with the names of those that do."""
    from dragoman.providers.registry import REGISTRY

    able = [
        other.name for other in REGISTRY.providers() if Capability(media_kind) in other.capabilities
    ]
    return f"{provider.display_name} provider makes no {media_kind}; these do: {', '.join(sorted(able))}"
