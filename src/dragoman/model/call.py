"""One request of a chat model, from the conversation to the last event of its answer.

A `Caller` is what all requests of one model share. `Caller.events` goes through these steps, in
this order:

1. `_open_response` finds the route and sends the request (`_send_once`). Where a provider has forgotten the
   stored response that the
   request goes on from, it sends the whole conversation once more.
2. `_dump_model_request` writes the request: forwarded as a client sent it, from what is remembered of earlier
   requests, or anew.
3. `_decode_network_read` turns what each network read brings into events. Nearly all reads are one delta, which
   passes as it is.
4. `_complete_starts` and `_explain` add what a decoder cannot know: times, losses, and whose error
   it is.
5. At the end the response is closed, and an agent that would go on for a client that is gone is
   told to stop (`_leave`).
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from inspect import signature
from typing import Any, NamedTuple, cast

import anyio
import msgspec

from dragoman import profiles, wires
from dragoman.codec.digest import compute_prefix, prefix_without_digest
from dragoman.codec.dump_cache import DumpedRequest, History
from dragoman.codec.dump_losses import map_losses_before_repair, map_losses_to_input
from dragoman.codec.dump_pieces import find_sent_messages
from dragoman.codec.error_rules import find_request_id
from dragoman.codec.opening import Note, hide_opening
from dragoman.errors import (
    DecodeError,
    DragomanError,
    InvalidRequestError,
    ModelNotFoundError,
    ProviderConnectionError,
    ProviderError,
)
from dragoman.event import Event, MessageStarted, PartDelta, PartFinished, PartStarted, RunError
from dragoman.hooks import Hooks, ModelStart
from dragoman.loss import Loss, refusal_error
from dragoman.message import Message, Origin, ToolCallPart
from dragoman.model.access import Access, ModelRoute, encoding_error
from dragoman.model.background_response import BackgroundResponse
from dragoman.model.keep_prefix import KeptRequest, drop_mismatches, keep_prefix
from dragoman.model.learn_refusal import MOST_LESSONS, learn_refusal
from dragoman.model.report_to_hooks import Watch
from dragoman.model_profile import ModelProfile
from dragoman.profiles.attach import attach_profile
from dragoman.providers.base_url import join_url
from dragoman.providers.provider import Provider
from dragoman.repair import trace_repair
from dragoman.request import HttpRequest, ModelRequest, RunInfo
from dragoman.transport.base import Response
from dragoman.transport.redaction import public_url
from dragoman.wires.serving import get_serving
from dragoman.wires.wire import AgentClient, StreamDecoder, Wire

__all__ = ["ModelCaller", "unlink_request"]

_NO_ENDPOINT = (404, 405, 501)
"""Statuses of an API without the endpoint that is asked."""
_CANCEL_SECONDS = 2.0
"""Seconds that a run which is left waits at most until an agent is told so."""
_LINK = "previous_response_id"
_UNKNOWN_RESPONSE = re.compile(r"previous.?response", re.IGNORECASE)


class _OpenResponse(NamedTuple):
    """A response whose body is still unread, and what its events need."""

    response: Response
    decoder: StreamDecoder
    names: Mapping[str, str]
    losses: tuple[Loss, ...]
    route: ModelRoute
    note: Note


class _AimedRequest(NamedTuple):
    """A request with where it goes."""

    request: ModelRequest
    target: Origin
    route: ModelRoute
    kept: KeptRequest
    places: Sequence[int]
    """Position of each message that is sent among those of the request."""


class _LoweredRequest(NamedTuple):
    """A request as its model accepts it."""

    request: ModelRequest
    profile: ModelProfile | None
    """Of the model; `None`: nothing is known, or nothing depends on it."""
    losses: tuple[Loss, ...]
    """What was changed in it, or left out."""


class ModelCaller:
    """Sends the requests of one model. `access` reaches its provider; `name` is the model's
    name."""

    def __init__(
        self,
        provider: Provider,
        name: str,
        access: Access,
        new_id: Callable[[], str],
        clock: Callable[[], datetime],
    ) -> None:
        """Creates the caller of one model. `name`: the model's; `new_id`: makes message ids."""
        self.access = access
        self._provider = provider
        self._name = name
        self._agent = wires.client(provider.wire)
        self.wire = cast("Wire", self._agent or wires.get(provider.wire))
        self._history = History()
        self._remembers = "history" in signature(self.wire.dump_http).parameters
        self._new_id = new_id
        self._clock = clock

    def rename(self, name: str) -> ModelCaller:
        """Returns a caller of another model of the same provider."""
        return ModelCaller(self._provider, name, self.access, self._new_id, self._clock)

    async def events(
        self,
        request: ModelRequest,
        hooks: tuple[Hooks, ...],
        losses: dict[Loss, None] | None,
        *,
        profile: ModelProfile | None = None,
        lowering_losses: tuple[Loss, ...] = (),
    ) -> AsyncGenerator[list[Event], None]:
        """Calls the model: sends a request and yields its events, one list per network read. A
        failure is a `RunError` at the end.

        Args:
            request: what is asked.
            hooks: watch the request.
            losses: gets what the request has to leave out.
            profile: what is known of the model, for the wire; `None`: nothing.
            lowering_losses: what the request has lost already on its way here.
        """
        watch = Watch(hooks) if hooks else None
        response: Response | None = None
        open_response: _OpenResponse | None = None
        try:
            try:
                lowered = _LoweredRequest(request, profile, lowering_losses)
                open_response = await self._open_response(lowered, watch, losses)
            except (DragomanError, UnicodeEncodeError) as error:
                if isinstance(error, UnicodeEncodeError):
                    error = encoding_error(error)
                events: list[Event] = [RunError(error.at(provider=self._provider.name))]
                if watch is not None:
                    watch.add(events)
                yield events
                return
            response = open_response.response
            while True:
                read_error: ProviderError | None = None
                try:
                    data = await response.read()
                except ProviderError as error:
                    data, read_error = b"", error
                events = self._decode_network_read(open_response, data, read_error)
                if isinstance(response, BackgroundResponse):
                    events += response.take_reports()
                if events:
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
            if open_response is not None and self._agent is not None:
                await self._cancel_run(open_response, self._agent)
            if watch is not None:
                await watch.end()

    async def _open_response(
        self, lowered: _LoweredRequest, watch: Watch | None, losses: dict[Loss, None] | None
    ) -> _OpenResponse:
        """Makes the model call: sends the request; if only its link to a stored response was
        refused, thinking that is bound to another conversation, or a setting that the error names,
        sends it again without that."""
        lessons = 0
        while True:
            try:
                return await self._send_once(lowered, watch, losses)
            except DragomanError as error:
                # Each changes the request so that it is not done again.
                request = lowered.request
                changed = unlink_request(request, error) or drop_mismatches(request, error)
                if changed is not None:
                    lowered = lowered._replace(request=changed)
                    continue
                target = Origin(self._provider.name, self.access.endpoint, self._name)
                lesson = learn_refusal(request, error, target, self.wire.name)
                lessons += 1
                if lesson is None or lessons > MOST_LESSONS:
                    raise
                losses_so_far = (*lowered.losses, lesson.loss)
                lowered = lowered._replace(request=lesson.request, losses=losses_so_far)

    async def _send_once(
        self, lowered: _LoweredRequest, watch: Watch | None, all_losses: dict[Loss, None] | None
    ) -> _OpenResponse:
        """Sends the request of a model call once, and returns the open response."""
        request, target, route, kept, places = await self._aim_request(lowered)
        if watch is not None:
            await watch.begin(ModelStart(request.run, target, self.wire.name, request))
        quirks = attach_profile(route.quirks, self.wire, lowered.profile)
        http, prefix_sent, losses = self._dump_model_request(request, target, quirks)
        if kept.places is not None:
            losses = map_losses_to_input(losses, kept.places)
        losses = [
            *lowered.losses,
            *map_losses_to_input([*kept.losses, *losses], places),
        ]
        if request.on_loss == "error" and (refused := refusal_error(losses)) is not None:
            raise refused
        left_out = dict.fromkeys(losses)
        if all_losses is not None:
            all_losses |= left_out
        if watch is not None:
            await watch.report_losses(tuple(left_out))
        http_request = _with_url(http, route, retries=request.retries)
        send = partial(self.access.send, route=route)
        response = await (send(http_request) if watch is None else watch.send(send, http_request))
        if request.options.get("background") is True and request.wire in (None, self.wire.name):
            response = self._wait_in_background(response, route, request)
        origin = msgspec.structs.replace(target, prefix=prefix_sent)
        if self._agent is None:
            decoder = self.wire.decoder(origin=origin, new_id=self._new_id)
        else:
            tools = [tool.name for tool in request.tools]
            decoder = self._agent.decoder(origin=origin, new_id=self._new_id, tools=tools)
        return _OpenResponse(response, decoder, http.names, tuple(left_out), route, kept.note)

    def _wait_in_background(
        self, response: Response, route: ModelRoute, request: ModelRequest
    ) -> Response:
        """Returns the response to a model call whose answer is made in the background: one that
        waits for it, where the wire can ask for it."""
        form = getattr(self.wire, "background", None)
        if form is None:
            return response

        async def send(http: HttpRequest) -> Response:
            return await self.access.send(_with_url(http, route, retries=None), route)

        content_type = response.headers.get("content-type", "")
        streams = (
            "json" not in content_type and request.options.get("stream", request.stream) is True
        )
        return BackgroundResponse(response, form, send, streams=streams)

    async def _aim_request(self, lowered: _LoweredRequest) -> _AimedRequest:
        """Returns a request with the URL and the model that it goes to, and what it keeps of the
        prefix."""
        request = lowered.request
        route = await self.access.route(self._name)
        messages, places = find_sent_messages(request.messages)
        request = request.replace(model=self._name)
        if messages is not request.messages:
            request = request.replace(messages=messages)
        if self._agent is not None and request.run is None:
            request = request.replace(run=RunInfo(self._new_id()))
        # Some providers take a URL for a model's name, and a URL may hold a password.
        name = public_url(self._name) if self._provider.by_url else self._name
        target = Origin(self._provider.name, public_url(route.base_url), name)
        kept = keep_prefix(
            request,
            target,
            lambda endpoint: lowered.profile or self._find_profile(endpoint),
            self.wire,
        )
        return _AimedRequest(kept.request, kept.target, route, kept, places)

    async def count_tokens(
        self, request: ModelRequest, profile: ModelProfile | None = None
    ) -> int | None:
        """Asks the provider how many tokens a request has. None: its API, or this endpoint, does not
        count.

        Raises:
            DragomanError: as `events`.
        """
        wire = cast("Any", self.wire)
        if self.access.lacks_counts or not hasattr(wire, "dump_count"):
            return None
        aimed = await self._aim_request(_LoweredRequest(request, profile, ()))
        quirks = attach_profile(aimed.route.quirks, self.wire, profile)
        http, _, _ = self._dump_model_request(aimed.request, aimed.target, quirks)
        if isinstance(http.body, bytes):
            http = msgspec.structs.replace(http, body=msgspec.json.decode(http.body))
        asked = _with_url(wire.dump_count(http, quirks), aimed.route, retries=request.retries)
        try:
            _, body = await self.access.fetch(asked, aimed.route)
        except DragomanError as error:
            if error.status not in _NO_ENDPOINT:
                raise
            self.access.lacks_counts = True
            return None
        try:
            return msgspec.convert(msgspec.json.decode(body)[wire.count_field], int)
        except (msgspec.ValidationError, msgspec.DecodeError, LookupError, TypeError) as error:
            raise DecodeError(
                f"the answer holds no number of tokens in {wire.count_field}",
                provider=self._provider.name,
                body=body,
            ) from error

    def _find_profile(self, endpoint: str | None) -> ModelProfile:
        """Returns the profile of the model at an endpoint."""
        return profiles.REGISTRY.find(self._provider, self._name, endpoint=endpoint)

    def _dump_model_request(
        self, request: ModelRequest, target: Origin, quirks: Any
    ) -> tuple[HttpRequest, str, list[Loss]]:
        """Writes the request of a model call. Returns it with the value for the answer's
        `Origin.prefix` and the losses."""
        dump, wire = self.wire.dump_http, self.wire.name
        if request.verbatim is not None and (forward := get_serving(self.wire).forward) is not None:
            # A prefix is needed only to link to stored responses, which only this API has.
            stores_responses = get_serving(self.wire).request_fields.unstored
            prefix_sent = (
                compute_prefix(request.messages, wire)
                if stores_responses
                else prefix_without_digest(wire)
            )
            return forward(request, request.verbatim, quirks), prefix_sent, []
        losses: list[Loss] = []
        turn = None
        if self._remembers and request.native is None:
            turn = self._history.turn(request.messages, request.tools, target, wire)
        if turn is not None:
            http = dump(request, target=target, quirks=quirks, losses=losses, history=turn)
            http = msgspec.structs.replace(http, body=msgspec.json.encode(http.body))
            return http, turn.prefix, _place_losses(losses, request.messages)
        mended, repairs, sources = trace_repair(request.messages)
        request = request.replace(messages=tuple(mended))
        before = ""
        if self._remembers:
            turn = DumpedRequest(None, request.messages, target, wire)
            http = dump(request, target=target, quirks=quirks, losses=losses, history=turn)
            before = turn.prefix
        else:
            http = dump(request, target=target, quirks=quirks, losses=losses)
        lost = [*repairs, *map_losses_before_repair(losses, sources)]
        return http, before or compute_prefix(mended, wire), lost

    def _decode_network_read(
        self, open_response: _OpenResponse, data: bytes, read_error: ProviderError | None
    ) -> list[Event]:
        """Decodes one network read of a model call into events. Empty `data`: the body has ended,
        or `read_error` broke it."""
        events = open_response.decoder.feed(data) if data else open_response.decoder.close()
        # Nearly every read is one delta, or the beginning of an event: the fast way out.
        if not events or (len(events) == 1 and type(events[0]) is PartDelta):
            return events
        events = self._complete_starts(events, open_response)
        if open_response.names:
            events = [_rename_call(event, open_response.names) for event in events]
        if isinstance(last := events[-1], RunError):
            error = self._complete_error(last.error, open_response.response.headers, read_error)
            events = [*events[:-1], RunError(error)]
        return events

    def _complete_starts(self, events: list[Event], response: _OpenResponse) -> list[Event]:
        """Returns the events of a model call with the time, the request's losses and the note about
        the request added to each message start."""
        return [
            msgspec.structs.replace(
                event,
                created_at=self._clock(),
                losses=response.losses,
                native=response.note.add_to(hide_opening(event.native)),
            )
            if type(event) is MessageStarted
            else event
            for event in events
        ]

    def _complete_error(
        self, error: DragomanError, headers: Mapping[str, str], read_error: ProviderError | None
    ) -> DragomanError:
        """Returns the error of a model call with its provider and request id. A broken connection's
        error replaces the decoder's complaint about half an event."""
        if isinstance(read_error, ProviderConnectionError) and not isinstance(error, DecodeError):
            error.__cause__ = read_error
        elif read_error is not None:
            error = read_error.at(partial=error.partial)
        return self.access.redact(
            error.at(provider=self._provider.name, request_id=find_request_id(headers))
        )

    async def _cancel_run(self, open_response: _OpenResponse, agent: AgentClient) -> None:
        """Cancels the remote agent's run, which a model call began, if the client left early and
        the protocol would let it go on."""
        answer = getattr(open_response.decoder, "answer", None)
        run_id: str | None = getattr(answer, "run_id", None)
        # Empty once the answer has ended: then there is nothing to cancel.
        if not run_id or (http := agent.dump_cancel(run_id, open_response.route.quirks)) is None:
            return
        with anyio.move_on_after(_CANCEL_SECONDS, shield=True), suppress(DragomanError):
            response = await self.access.send(_with_url(http, open_response.route, retries=0))
            await response.close()


def unlink_request(request: ModelRequest, error: DragomanError) -> ModelRequest | None:
    """Returns the request of a model call without its link to a stored response, if that link is
    what the provider refused; otherwise None.

    A wire may link a request to a response that its provider stores, and send only the messages
    after it. If the provider has forgotten that response, the option `previous_response_id=None`
    makes the wire send the whole conversation. A link that the caller set is left for the caller.
    """
    is_unknown_response = isinstance(
        error, InvalidRequestError | ModelNotFoundError
    ) and _UNKNOWN_RESPONSE.search(error.message)
    if not is_unknown_response or _LINK in request.options:
        return None
    return request.replace(options={**request.options, _LINK: None})


def _with_url(http: HttpRequest, route: ModelRoute, *, retries: int | None) -> HttpRequest:
    """Returns a model call's HTTP request with its complete URL and JSON headers."""
    # An agent's own URL, as A2A's, takes the messages without any path.
    url = join_url(route.base_url, http.path) if http.path else route.base_url
    headers = {"content-type": "application/json", **http.headers}
    return HttpRequest(url, headers, http.body, http.method, retries=retries)


def _place_losses(losses: list[Loss], messages: Sequence[Message]) -> list[Loss]:
    """Returns the losses of a model call with their positions in the original messages. Losses of
    the repair come first and have them already."""
    _, repairs, sources = trace_repair(messages) if losses else ((), [], None)
    return (
        losses
        if sources is None
        else [*repairs, *map_losses_before_repair(losses[len(repairs) :], sources)]
    )


def _rename_call(event: Event, own_names: Mapping[str, str]) -> Event:
    """Returns a tool call's event with the tool's own name in place of the one that the model call
    sent."""
    if isinstance(event, (PartStarted, PartFinished)) and isinstance(event.part, ToolCallPart):
        name = own_names.get(event.part.name)
        if name is not None:
            return msgspec.structs.replace(
                event, part=msgspec.structs.replace(event.part, name=name)
            )
    return event
