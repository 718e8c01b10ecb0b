"""A chat model: a provider's record, its wire and a transport put together."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from functools import partial
from inspect import signature
from os import urandom
from typing import Any, NamedTuple, cast

import anyio
import msgspec

from dragoman import wires
from dragoman.capability import Capability
from dragoman.codec.digest import free_prefix, prefix
from dragoman.codec.error_rules import request_id
from dragoman.codec.history import History, Turn
from dragoman.codec.history_pieces import given_losses, places_sent, unrepaired_losses
from dragoman.errors import (
    DecodeError,
    DragomanError,
    ProviderConnectionError,
    ProviderError,
    SettingsError,
)
from dragoman.event import Event, MessageStarted, PartDelta, PartFinished, PartStarted, RunError
from dragoman.hooks import Hooks, ModelStart, active
from dragoman.loss import Loss, refusal
from dragoman.message import Message, Origin, ToolCallPart
from dragoman.model.access import Access, Key, Route, unsendable
from dragoman.model.chunks import answer_chunks
from dragoman.model.linking import unlinked
from dragoman.model.middleware import Batches, Destination, Middleware, wrap
from dragoman.model.strings import ModelString
from dragoman.model.watch import Watch
from dragoman.providers.address import joined
from dragoman.providers.provider import Provider
from dragoman.repair import traced
from dragoman.request import HttpRequest, ModelRequest, RunInfo
from dragoman.result import ChatResult
from dragoman.transport.base import Response, Transport
from dragoman.transport.redaction import public_url
from dragoman.wires.serving import serving
from dragoman.wires.wire import AgentClient, StreamDecoder, Wire

__all__ = ["ChatModel", "new_id", "now"]

_LEAVING = 2.0
"""Seconds that a run which is left waits at most until an agent is told so."""


def new_id() -> str:
    """A fresh id for a message, a call or a run."""
    return urandom(16).hex()


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class _OpenResponse(NamedTuple):
    """A response whose body is still to be read, and what its events are made with."""

    response: Response
    decoder: StreamDecoder
    names: Mapping[str, str]
    losses: tuple[Loss, ...]
    route: Route


class ChatModel:
    """One model of one provider. Sends requests and gives events; knows nothing of tools being run, or of history.

    Raises nothing while it streams: a failure is a `RunError` event after the events that came before.
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
        hooks: Iterable[Hooks] = (),
        new_id: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
    ) -> None:
        """`access`: the way to the provider, where several models share one; else it is made of what follows it.
        `provider_middleware`: what the provider needs, below all others. `others`: a model string → the model that a request with
        this string goes to. `hooks` watch requests that no run makes; those of a run are watched by its own.

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
        self._agent = wires.client(provider.wire)
        self.wire = wires.get(provider.wire) if self._agent is None else cast("Wire", self._agent)
        self._access = access or Access(
            provider,
            transport,
            api_key=api_key,
            base_url=base_url,
            headers=headers,
            environment=environment,
        )
        self._history = History()
        self._remembers = "history" in signature(self.wire.dump_http).parameters
        self._new_id = new_id
        self._clock = clock
        self._middleware = tuple(middleware)
        self._hooks = tuple(hooks)
        self._provider_middleware = tuple(provider_middleware)
        self._others = others
        self.fallbacks: Mapping[str, ChatModel] = {}
        """The models that a fallback may ask in its place, by their model strings."""
        self.providers: tuple[Provider, ...] = (provider.of_model(self.name),)
        """Its provider, and those of its fallbacks, each with the capabilities of the model that is asked."""
        self.request = ModelRequest(self.string)
        """What `send_stream` asks with, beside the conversation."""
        self.losses: dict[Loss, None] | None = None
        """Gets what each request has to leave out, once and in order, whatever becomes of the request."""
        self.batches: Batches = self._wrapped()
        """`ModelRequest` → its events, one list per network read."""

    def can(self, capability: Capability) -> bool:
        """Whether the provider's record says so of this model."""
        return capability in self.providers[0].capabilities

    async def stream(self, request: ModelRequest) -> AsyncIterator[Event]:
        """A request → its events, one by one."""
        async with aclosing(self.batches(request)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    def bound(self, request: ModelRequest, losses: dict[Loss, None] | None = None) -> ChatModel:
        """The same model, whose `send_stream` asks with this request's tools, settings and options, and whose requests add
        what they have to leave out to `losses`."""
        return self._with(request=request, losses=losses)

    def led_by(
        self, middleware: Sequence[Middleware], fallbacks: Mapping[str, ChatModel]
    ) -> ChatModel:
        """The same model, with these middlewares around its own, which may ask `fallbacks` in its place."""
        providers = (self.providers[0], *[model.providers[0] for model in fallbacks.values()])
        return self._with(
            _middleware=(*middleware, *self._middleware), fallbacks=fallbacks, providers=providers
        )

    def with_innermost(self, layer: Middleware) -> ChatModel:
        """The same model, with this middleware below all of its own."""
        return self._with(_middleware=(*self._middleware, layer))

    def target(self, request: ModelRequest) -> Destination | None:
        """Whom a request goes to, by its model string; see `Target`."""
        try:
            model = self._named(request.model)
        except DragomanError:
            return None
        access = model._access
        headers, credentials = access.identity
        return Destination(
            model.provider.name,
            access.endpoint,
            model.name,
            wire=model.wire.name,
            headers=headers,
            credentials=credentials,
            quirks=model.provider.quirks,
        )

    def send_stream(
        self, messages: Iterable[Message], output_schema: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[ChatResult[Message], None]:
        """A conversation → its answer in chunks: each one's `output` is a message that holds what is new. See `answer_chunks`."""
        request = self.request.replace(messages=tuple(messages), output_schema=output_schema)
        return answer_chunks(self.batches(request))

    def _with(self, **changes: Any) -> ChatModel:
        model = object.__new__(type(self))
        model.__dict__.update(self.__dict__, **changes)
        model.batches = model._wrapped()
        return model

    def _wrapped(self) -> Batches:
        return wrap(self._route, self._middleware, self.target) if self._middleware else self._route

    def _route(self, request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        """Goes on with a request at the model that it names, with what that one's provider needs."""
        try:
            model = self._named(request.model)
        except DragomanError as error:
            return _failed(error)
        if model is not self:
            model = model._with(losses=self.losses)
            wire = request.wire or self.wire.name
            request = request.replace(
                model=model.string, wire=wire if request.options else request.wire
            )
        call = model._call
        return (
            wrap(call, needed, model.target) if (needed := model._provider_middleware) else call
        )(request)

    def _named(self, string: str) -> ChatModel:
        """The model of a model string: itself, or another."""
        if string in ("", self.string):
            return self
        if (known := self.fallbacks.get(string)) is not None:
            return known
        if self._others is not None:
            return self._others(string)
        if string == self.name:
            return self
        raise SettingsError(
            f"{string} is another model than {self.string}, and this ChatModel knows no others: ask an Agent"
        )

    async def _call(self, request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        hooks = request.run.hooks if request.run is not None else active(self._hooks)
        watch = Watch(hooks) if hooks else None
        response: Response | None = None
        opened: _OpenResponse | None = None
        try:
            try:
                opened = await self._open(request, watch)
            except (DragomanError, UnicodeEncodeError) as error:
                ours = unsendable(error) if isinstance(error, UnicodeEncodeError) else error
                events: list[Event] = [RunError(ours.at(provider=self.provider.name))]
                if watch is not None:
                    watch.add(events)
                yield events
                return
            response = opened.response
            while True:
                broken: ProviderError | None = None
                try:
                    data = await response.read()
                except ProviderError as error:
                    data, broken = b"", error
                if events := self._events(opened, data, broken):
                    if watch is not None and (len(events) > 1 or type(events[0]) is not PartDelta):
                        watch.add(events)
                    yield events
                if not data:
                    return
        except Exception as error:
            if watch is not None:
                watch.raised = error
            raise
        finally:
            if response is not None:
                await response.close()
            if opened is not None and self._agent is not None:
                await self._leave(opened, self._agent)
            if watch is not None:
                await watch.end()

    async def _open(self, request: ModelRequest, watch: Watch | None) -> _OpenResponse:
        """Sends a request, and once more where only its link to a stored response was refused → the open response."""
        route = await self._access.route(self.name)
        base_url, quirks = route.base_url, route.quirks
        sent, places = places_sent(request.messages)
        request = request.replace(model=self.name)
        if sent is not request.messages:
            request = request.replace(messages=sent)
        if self._agent is not None and request.run is None:
            request = request.replace(run=RunInfo(self._new_id()))
        name = public_url(self.name) if self.provider.by_url else self.name
        target = Origin(self.provider.name, public_url(base_url), name)
        if watch is not None:
            await watch.begin(ModelStart(request.run, target, self.wire.name, request))
        try:
            http, sent_prefix, losses = self._dumped(request, target, quirks)
            losses = given_losses(losses, places)
            if request.on_loss == "error" and (refused := refusal(losses)) is not None:
                raise refused
            if self.losses is not None:
                self.losses |= dict.fromkeys(losses)
            left_out = tuple(dict.fromkeys(losses)) if losses else ()
            if watch is not None:
                await watch.leave_out(left_out)
            sent = {"content-type": "application/json", **http.headers}
            http_request = HttpRequest(
                joined(base_url, http.path) if http.path else base_url,
                sent,
                http.body,
                http.method,
                retries=request.retries,
            )
            send = partial(self._access.send, route=route)
            response = await (
                send(http_request) if watch is None else watch.send(send, http_request)
            )
        except DragomanError as error:
            if (again := unlinked(request, error)) is None:
                raise
            return await self._open(again, watch)
        origin = msgspec.structs.replace(target, prefix=sent_prefix)
        how: dict[str, Any] = {"origin": origin, "new_id": self._new_id}
        if self._agent is None:
            decoder = self.wire.decoder(**how)
        else:
            decoder = self._agent.decoder(**how, tools=[tool.name for tool in request.tools])
        return _OpenResponse(response, decoder, http.names, left_out, route)

    async def _leave(self, opened: _OpenResponse, agent: AgentClient) -> None:
        """Ends what an agent still works at for nobody, where its protocol has it go on for a client that is gone."""
        answer = getattr(opened.decoder, "answer", None)
        run_id: str | None = getattr(answer, "run_id", None)
        http = agent.dump_cancel(run_id, opened.route.quirks) if run_id else None
        if http is None:
            return
        url = joined(opened.route.base_url, http.path) if http.path else opened.route.base_url
        headers = {"content-type": "application/json", **http.headers}
        with anyio.move_on_after(_LEAVING, shield=True), suppress(DragomanError):
            response = await self._access.send(HttpRequest(url, headers, http.body, retries=0))
            await response.close()

    def _dumped(
        self, request: ModelRequest, target: Origin, quirks: Any
    ) -> tuple[HttpRequest, str, list[Loss]]:
        """The request as it is sent, what an answer's `Origin.prefix` says, and what is left out."""
        dump, wire = self.wire.dump_http, self.wire.name
        if request.verbatim is not None and (forward := serving(self.wire).forward) is not None:
            # what follows from the prefix is asked of stored responses alone, which only this API has
            before = (
                prefix(request.messages, wire) if serving(self.wire).request_fields.unstored else free_prefix(wire)
            )
            return forward(request, request.verbatim, quirks), before, []
        turn = None
        if self._remembers and request.native is None:
            turn = self._history.turn(request.messages, request.tools, target, wire)
        if turn is not None:
            losses: list[Loss] = []
            http = dump(request, target=target, quirks=quirks, losses=losses, history=turn)
            body = msgspec.json.encode(http.body)
            return (
                msgspec.structs.replace(http, body=body),
                turn.prefix,
                _unrepaired(losses, request.messages),
            )
        mended, repairs, sources = traced(request.messages)
        request, losses = request.replace(messages=tuple(mended)), []
        if not self._remembers:
            http = dump(request, target=target, quirks=quirks, losses=losses)
            return http, prefix(mended, wire), [*repairs, *unrepaired_losses(losses, sources)]
        turn = Turn(None, request.messages, target, wire)
        http = dump(request, target=target, quirks=quirks, losses=losses, history=turn)
        lost = [*repairs, *unrepaired_losses(losses, sources)]
        return http, turn.prefix or prefix(mended, wire), lost

    def _events(
        self, opened: _OpenResponse, data: bytes, broken: ProviderError | None
    ) -> list[Event]:
        """What one read says; none: the response is at its end, or `broken`."""
        events = opened.decoder.feed(data) if data else opened.decoder.close()
        if not events or (
            len(events) == 1 and type(events[0]) is PartDelta
        ):  # as in nearly every read
            return events
        events = self._begun(events, opened.losses)
        if opened.names:
            events = [_renamed(event, opened.names) for event in events]
        if isinstance(last := events[-1], RunError):
            events = [
                *events[:-1],
                RunError(self._explained(last.error, opened.response.headers, broken)),
            ]
        return events

    def _begun(self, events: list[Event], losses: tuple[Loss, ...]) -> list[Event]:
        """The events, their messages' starts with what the decoder cannot know: the time, and what the request had to leave out."""
        return [
            msgspec.structs.replace(event, created_at=self._clock(), losses=losses)
            if type(event) is MessageStarted
            else event
            for event in events
        ]

    def _explained(
        self, error: DragomanError, headers: Mapping[str, str], broken: ProviderError | None
    ) -> DragomanError:
        """An error, with what the decoder cannot know; a broken connection's own in place of the half that nobody can read."""
        if isinstance(broken, ProviderConnectionError) and not isinstance(error, DecodeError):
            error.__cause__ = broken
        elif broken is not None:
            error = broken.at(partial=error.partial)
        return self._access.redacted(
            error.at(provider=self.provider.name, request_id=request_id(headers))
        )


def _unrepaired(losses: list[Loss], messages: Sequence[Message]) -> list[Loss]:
    """Losses of a conversation that was repaired on its way, where they stand in the messages: those of the repair come first, and have
    their places already."""
    _, repairs, sources = traced(messages) if losses else ((), [], None)
    return (
        losses
        if sources is None
        else [*repairs, *unrepaired_losses(losses[len(repairs) :], sources)]
    )


def _renamed(event: Event, own_names: Mapping[str, str]) -> Event:
    """A call by the name that its tool was sent under → by the tool's own name."""
    if isinstance(event, (PartStarted, PartFinished)) and isinstance(event.part, ToolCallPart):
        name = own_names.get(event.part.name)
        if name is not None:
            return msgspec.structs.replace(
                event, part=msgspec.structs.replace(event.part, name=name)
            )
    return event


async def _failed(error: DragomanError) -> AsyncGenerator[list[Event], None]:
    yield [RunError(error)]
