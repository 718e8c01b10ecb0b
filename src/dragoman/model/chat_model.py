"""A chat model: a provider's record, its wire and a transport put together.

A request goes through the middlewares of the model (`batches`), then to the model that its model
string names (`_route_request`), then through what that one's provider needs, and is sent by its
`call.Caller`, which has the steps of one request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Any

from dragoman.capability import Capability
from dragoman.errors import DragomanError, SettingsError
from dragoman.event import Event, MessageFinished, PartDelta, PartFinished, PartStarted, RunError
from dragoman.fold import MessageBuilder
from dragoman.hooks import Hooks, find_active_hooks
from dragoman.json_bytes import JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import Content, FinishReason, Message, Origin, TextPart
from dragoman.model.access import Access, Key
from dragoman.model.call import ModelCaller
from dragoman.model.metering import PlannedCall, meter
from dragoman.model.middleware import Batches, Destination, Middleware, wrap
from dragoman.model.resolve_model import ModelString
from dragoman.model.tokens import request_tokens
from dragoman.model_profile import ModelProfile
from dragoman.profiles.attach import lower_for, needs_profile
from dragoman.profiles.capabilities import with_profile
from dragoman.profiles.registry import REGISTRY
from dragoman.providers.provider import Provider
from dragoman.request import ModelRequest, Settings
from dragoman.result import ChatResult
from dragoman.runtime import new_id, now
from dragoman.transport.base import Transport

__all__ = ["ChatModel", "answer_chunks"]

_TYPED = frozenset({Capability.typed_output, Capability.typed_output_with_tools})
_EITHER_WAY = frozenset({Capability.typed_output, Capability.tools})


class ChatModel:
    """One model of one provider. Sends requests and gives events; knows nothing of tools being run,
    or of history.

    Raises nothing while it streams: a failure is a `RunError` event after the events that came
    before.
    """

    def __init__(
        self,
        provider: Provider,
        name: str | None = None,
        *,
        transport: Transport,
        access: Access | None = None,
        api_key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        middleware: Sequence[Middleware] = (),
        provider_middleware: Sequence[Middleware] = (),
        others: Callable[[str], ChatModel] | None = None,
        profile: ModelProfile | None = None,
        hooks: Iterable[Hooks] = (),
        new_id: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
    ) -> None:
        """Creates the chat model. `access`: the way to the provider, if several models share one;
        otherwise it is made from the arguments that follow. `provider_middleware`: what the
        provider needs, below all others. `others`: maps a model string to the model for requests
        with this string. `profile`: what the user knows of the model; it wins over all other
        sources. `hooks` watch requests outside of runs; a run has its own.

        Raises:
            SettingsError: the provider has no default model and none is given.
        """
        self.provider = provider
        self.name = name or provider.chat_model or ""
        if not self.name and provider.by_url:
            self.name = base_url or ""
        if not self.name:
            named = "https://HOST/PATH" if provider.by_url else "MODEL"
            raise SettingsError(
                f"{provider.display_name} has no default model; name one: {provider.name}:{named}"
            )
        self.string = str(ModelString(provider.name, self.name))
        """Its model string."""
        access = access or Access(
            provider,
            transport,
            api_key=api_key,
            base_url=base_url,
            headers=headers,
            environment=environment,
        )
        self._caller = ModelCaller(provider, self.name, access, new_id, clock)
        self.wire = self._caller.wire
        self._middleware = tuple(middleware)
        self._hooks = tuple(hooks)
        self._provider_middleware = tuple(provider_middleware)
        self._others = others
        self._profile = profile
        self.fallbacks: Mapping[str, ChatModel] = {}
        """The models that a fallback may ask in its place, by their model strings."""
        self.providers: tuple[Provider, ...] = (provider.for_model(self.name),)
        """Its provider, and those of its fallbacks, each with the capabilities of the model that is
        asked."""
        self.request = ModelRequest(self.string)
        """What `send_stream` asks with, beside the conversation."""
        self.losses: dict[Loss, None] | None = None
        """Gets what each request has to leave out, once and in order, whatever becomes of the
        request."""
        self.batches: Batches = self._wrap()
        """`ModelRequest` → its events, one list per network read."""

    @property
    def access(self) -> Access:
        """The way to its provider."""
        return self._caller.access

    def can(self, capability: Capability) -> bool:
        """Returns whether the provider's record says that this model can do something."""
        return capability in self.providers[0].capabilities

    def find_profile(self, wire: str | None = None) -> ModelProfile:
        """Returns what is known of the chat model. `wire`: name of the wire that it is asked by;
        `None`: its own.

        Raises:
            SettingsError: a file of profiles cannot be read.
        """
        wire = wire or self.wire.name
        endpoint = self._caller.access.endpoint if REGISTRY.has_lessons else None
        known = REGISTRY.find(self.provider, self.name, wire=wire, endpoint=endpoint)
        return known if self._profile is None else self._profile.for_wire(wire).over(known)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Event]:
        """Sends a request to the chat model and yields its events, one by one."""
        async with aclosing(self.batches(request)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    def bound(self, request: ModelRequest, losses: dict[Loss, None] | None = None) -> ChatModel:
        """Returns a copy of the model whose `send_stream` uses this request's tools, settings and
        options, and whose requests add their losses to `losses`."""
        return self._copy_with(request=request, losses=losses)

    def led_by(
        self, middleware: Sequence[Middleware], fallbacks: Mapping[str, ChatModel]
    ) -> ChatModel:
        """Returns a copy of the chat model with these middlewares around its own. They may ask
        `fallbacks` instead."""
        providers = (self.providers[0], *[model.providers[0] for model in fallbacks.values()])
        return self._copy_with(
            _middleware=(*middleware, *self._middleware), fallbacks=fallbacks, providers=providers
        )

    def with_innermost(self, layer: Middleware) -> ChatModel:
        """Returns a copy of the model with this middleware below all of its own."""
        return self._copy_with(_middleware=(*self._middleware, layer))

    def variant(self, name: str, layer: Middleware) -> ChatModel:
        """Returns another chat model of the same provider, which is reached in the same way.
        `layer`: a middleware around each of its requests, below the choice of a model."""
        string = str(ModelString(self.provider.name, name))
        return self._copy_with(
            name=name,
            string=string,
            request=self.request.replace(model=string),
            providers=(self.provider.for_model(name), *self.providers[1:]),
            _caller=self._caller.rename(name),
            _profile=self._profile if name == self.name else None,
            _provider_middleware=(layer, *self._provider_middleware),
        )

    def target(self, request: ModelRequest) -> Destination | None:
        """Returns the destination of a chat model's request, by its model string; see `Target`."""
        try:
            model = self._find_model(request.model)
        except DragomanError:
            return None
        access = model._caller.access
        headers, credentials = access.identity
        return Destination(
            model.provider.name,
            access.endpoint,
            model.name,
            wire=model.wire.name,
            headers=headers,
            credentials=credentials,
            profile=model._needed_profile(request),
            quirks=model.provider.quirks,
        )

    def providers_for(
        self, schema: JsonMap | None, settings: Settings | None = None
    ) -> tuple[Provider, ...]:
        """Returns the chat model's `providers`, with what the profiles of their models say of typed
        output. One whose wire has no form for `schema` (Anthropic's has none for recursion) lacks
        `typed_output` here, where its tools can bring the value instead.

        Args:
            schema: of the answer; `None`: it is text.
            settings: how the models are asked.

        Raises:
            SettingsError: a file of profiles cannot be read.
        """
        if schema is None:
            return self.providers
        models = (self, *self.fallbacks.values())
        known = [
            with_profile(provider, model.find_profile(), settings or Settings())
            for model, provider in zip(models, self.providers, strict=True)
        ]
        return tuple(
            provider if model._can_say(provider, schema) else provider.without(_TYPED)
            for model, provider in zip(models, known, strict=True)
        )

    def needs_json_text(self) -> bool:
        """Returns whether the chat model, or a fallback, is known to take neither an output schema
        nor tools.

        Raises:
            SettingsError: a file of profiles cannot be read.
        """
        profiles = [model.find_profile() for model in (self, *self.fallbacks.values())]
        return any(profile.schema is False and profile.tools is False for profile in profiles)

    def _can_say(self, provider: Provider, schema: JsonMap) -> bool:
        """Returns whether a request to the chat model can hold the schema. It is written for that
        only where there is another way."""
        if not provider.capabilities >= _EITHER_WAY:
            return True
        losses: list[Loss] = []
        request = ModelRequest(self.name, (Message.user("."),), output_schema=schema)
        self.wire.dump_request(request, quirks=provider.quirks, losses=losses)
        return all(loss.what is not Lost.output_schema for loss in losses)

    def send_stream(
        self, messages: Iterable[Message], output_schema: JsonMap | None = None
    ) -> AsyncGenerator[ChatResult[Message], None]:
        """Sends a conversation to the chat model and yields the answer in chunks: the `output` of
        each is a message that holds what is new. See `answer_chunks`."""
        request = self.request.replace(messages=tuple(messages), output_schema=output_schema)
        return answer_chunks(self.batches(request))

    def _copy_with(self, **changes: Any) -> ChatModel:
        """Returns a copy of the chat model with some attributes changed."""
        model = object.__new__(type(self))
        model.__dict__.update(self.__dict__, **changes)
        model.batches = model._wrap()
        return model

    def _wrap(self) -> Batches:
        """Returns the chat model's call within its middlewares."""
        return (
            wrap(self._route_request, self._middleware, self.target)
            if self._middleware
            else self._route_request
        )

    def _route_request(self, request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        """Goes on with a request at the chat model that it names, with what that one's provider
        needs."""
        try:
            model = self._find_model(request.model)
        except DragomanError as error:
            return _fail(error)
        if model is not self:
            model = model._copy_with(losses=self.losses)
            wire = request.wire or self.wire.name
            request = request.replace(
                model=model.string, wire=wire if request.options else request.wire
            )
        return wrap(model._call, model._provider_middleware, model.target)(request)

    def _call(self, request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        """Lowers a request to what the chat model accepts, and sends it. Yields batches of
        events."""
        hooks = request.run.hooks if request.run is not None else find_active_hooks(self._hooks)
        try:
            profile = self._needed_profile(request)
        except SettingsError as error:
            return _fail(error)
        # The one place where a request becomes what its model accepts: behind all middlewares, so
        # that each model of a fallback is sent what it accepts itself.
        request, lowered = lower_for(request, profile, self.wire.name)
        events = self._caller.events(
            request, hooks, self.losses, profile=profile, lowering_losses=lowered
        )
        return meter(events, partial(self._plan_call, request))

    def _plan_call(self, request: ModelRequest) -> PlannedCall:
        """Returns what is known of a call before it is made."""
        provider, name, most = self.provider.name, self.name, request.settings.max_tokens
        return PlannedCall(
            Origin(provider, self.access.endpoint, name),
            partial(request_tokens, request, provider, name),
            # A number below 1 means no limit to some providers.
            most if most is not None and most > 0 else None,
        )

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Asks the provider how many tokens a request has: no answer is made, and nothing is paid.
        `None`: its API does not count them; `tokens.request_tokens` estimates.

        Raises:
            DragomanError: as of a request for an answer.
        """
        model = self._find_model(request.model)
        profile = model._needed_profile(request)
        lowered, _ = lower_for(request, profile, model.wire.name)
        return await model._caller.count_tokens(lowered, profile)

    def _needed_profile(self, request: ModelRequest) -> ModelProfile | None:
        """Returns the profile of the model, or None if nothing in the request depends on it."""
        return self.find_profile() if needs_profile(request, self.wire.name) else None

    def _find_model(self, string: str) -> ChatModel:
        """Returns the chat model for a model string: this one or another."""
        if string in ("", self.string):
            return self
        if (fallback := self.fallbacks.get(string)) is not None:
            return fallback
        if self._others is not None:
            return self._others(string)
        if string == self.name:
            return self
        raise SettingsError(
            f"{string} is another model than {self.string}, and this ChatModel knows no others: ask an Agent"
        )


async def _fail(error: DragomanError) -> AsyncGenerator[list[Event], None]:
    yield [RunError(error)]


# answers in chunks


async def answer_chunks(
    batches: AsyncGenerator[list[Event], None],
) -> AsyncGenerator[ChatResult[Message], None]:
    """Yields a chat model's answer in chunks: text as it comes, every other part when it is
    complete; the last chunk has finish reason, usage and origin.

    `MessageAccumulator.accumulate` over all outputs, then `consolidate`, is the message.

    Raises:
        DragomanError: the call failed.
    """
    chunks = _Chunks()
    async with aclosing(batches):
        async for events in batches:
            for event in events:
                if isinstance(event, RunError):
                    raise event.error
                if (chunk := chunks.feed(event)) is not None:
                    yield chunk


class _Chunks:
    """The chunks of one message, the first of candidate 0."""

    def __init__(self) -> None:
        self._builder = MessageBuilder()
        self._texts: dict[int, list[str]] = {}

    def feed(self, event: Event) -> ChatResult[Message] | None:
        """Returns the chunk of a chat model's answer for one event, or None if the event adds
        nothing."""
        self._builder.add(event)
        start = self._builder.start
        # none yet, or it was dropped
        if start is None:
            void = "".join([text for texts in self._texts.values() for text in texts])
            self._texts.clear()
            return ChatResult(Message.model(), retracted=void) if void else None
        if getattr(event, "message_id", None) != start.message_id:
            return None
        if isinstance(event, MessageFinished):
            return self._last_chunk(event)
        part: Content | None = None
        if isinstance(event, PartStarted) and isinstance(event.part, TextPart):
            self._texts[event.index] = []
        elif (
            isinstance(event, PartDelta)
            and (texts := self._texts.get(event.index)) is not None
            and event.delta
        ):
            texts.append(str(event.delta))
            part = TextPart(str(event.delta))
        elif isinstance(event, PartFinished) and not self._texts.get(event.index):
            part = event.part
        if part is None:
            return None
        message = Message(start.role, (part,), id=start.message_id, created_at=start.created_at)
        return ChatResult(message, thinking=message.thinking, id=start.message_id)

    def _last_chunk(self, finish: MessageFinished) -> ChatResult[Message]:
        """Returns the last chunk of a chat model's answer, with finish reason, usage and
        metadata."""
        whole = self._builder.message().replace(content=())
        return ChatResult(
            whole,
            finish_reason=finish.finish_reason or FinishReason.unspecified,
            usage=finish.usage,
            metadata=whole.own_metadata,
            id=finish.message_id,
        )
