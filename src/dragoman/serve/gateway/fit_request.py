"""What a client's request becomes for the provider that it goes to, each time that one is asked:
also in the place of another.

- Of the client's API, and of the model that the client named: the client's body as it is.
- Of the client's API, but another model: the client's body, changed where the API's documentation
  demands it.
- Of the client's API, where the gateway or a middleware changed the request, or the provider has
  quirks and another model was named: the
  client's request, written again.
- Of another API: the conversation as the server has it, without the fields that only the client's
  API has.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal

import msgspec

from dragoman import wires
from dragoman.codec.json_values import if_object
from dragoman.codec.tool_fields import CACHE_MARK
from dragoman.event import Event, MessageStarted, PartFinished, RunError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, refusal_error
from dragoman.message import Content, Message, Native, Origin, Role, ThinkingPart, ToolCallPart
from dragoman.model.middleware import Batches, Destination, Target
from dragoman.profiles.attach import lower_for
from dragoman.request import ModelRequest, OnLoss
from dragoman.serve.core.request_fields import foreign_losses, without_wire
from dragoman.wires.serving import Serving, get_serving

__all__ = ["ClientCopy", "Fitting", "is_uncarried", "settle_messages", "with_losses"]

_BODY_FIELDS = ("tools", "settings", "output_schema", "options", "native", "stream")
"""Fields of a request that say, beside the messages, what its body says."""


def settle_messages(
    sent: Sequence[Message], stored: Sequence[Message], destination: Destination, served: Serving
) -> tuple[Message, ...]:
    """Fits messages: returns the client's messages for this provider; the very same tuple if
    nothing is changed."""
    answers = [
        message for message in stored if message.role is Role.MODEL and message.origin is not None
    ]
    if not answers:
        return tuple(sent)
    demands = served.request_fields.restores
    restores = demands is not None and demands(destination.quirks)
    settled = [
        message
        if answer is None
        else _settle_message(message, answer, destination, restores=restores)
        for message, answer in zip(sent, _match_answers(sent, answers), strict=True)
    ]
    changed = any(before is not after for before, after in zip(settled, sent, strict=True))
    if changed or not isinstance(sent, tuple):
        return tuple(settled)
    return sent


def _match_answers(sent: Sequence[Message], answers: Sequence[Message]) -> list[Message | None]:
    """Returns the stored answer that each of the fitted request's messages repeats, or None."""
    answer_facts = [_message_facts(answer) for answer in answers]
    matches: list[Message | None] = []
    # Answers match in their order: the same words may stand twice in a conversation.
    start = 0
    for message in sent:
        match: Message | None = None
        if message.role is Role.MODEL and message.origin is None:
            facts = _message_facts(message)
            for index in range(start, len(answers)):
                if answer_facts[index] == facts:
                    match, start = answers[index], index + 1
                    break
        matches.append(match)
    return matches


def _settle_message(
    message: Message, answer: Message, destination: Destination, *, restores: bool
) -> Message:
    """Fits a message of the request: returns it with the origin, and if possible the thinking, of
    the stored answer that it repeats."""
    origin = answer.origin
    thinks = any(isinstance(piece, ThinkingPart) for piece in message.content)
    if origin is None or origin.provider != destination.provider:
        if thinks:
            return message.replace(origin=origin)
        return message
    if not restores:
        return message
    if thinks:
        thinking = ()
    else:
        thinking = [piece for piece in answer.content if isinstance(piece, ThinkingPart)]
    calls = iter(answer.tool_calls)
    pieces = [
        _with_native(piece, next(calls)) if isinstance(piece, ToolCallPart) else piece
        for piece in message.content
    ]
    if not thinking and all(
        before is after for before, after in zip(pieces, message.content, strict=True)
    ):
        return message
    # Without the digest of what stands before: the client may have changed that.
    stored_origin = Origin(origin.provider, origin.endpoint, origin.model)
    return message.replace(content=(*thinking, *pieces), origin=stored_origin)


def is_uncarried(event: Event) -> bool:
    """Returns whether an event of an answer ends a piece that holds what `settle_messages`
    restores."""
    if not isinstance(event, PartFinished):
        return False
    piece = event.part
    if isinstance(piece, ToolCallPart):
        return piece.native is not None
    return isinstance(piece, ThinkingPart)


def _with_native(call: ToolCallPart, stored: ToolCallPart) -> Content:
    """Returns a call of the fitted request with those fields of the API that the client's copy
    lacks."""
    native: Json = {**(call.native or {})}
    for name, fields in (stored.native or {}).items():
        native[name] = {**fields, **native.get(name, {})}
    same: Native = call.native or {}
    if native == same:
        return call
    return msgspec.structs.replace(call, native=native)


def _message_facts(message: Message) -> tuple[Any, ...]:
    """Returns what a message of the request to fit says: its text, and its calls by their ids."""
    return message.text, [
        (call.id, call.name, call.arguments, call.raw) for call in message.tool_calls
    ]


class ClientCopy(msgspec.Struct, frozen=True):
    """A request as its client sent it, with the whole conversation."""

    request: ModelRequest
    """As it was read, its seals opened."""
    body: JsonMap
    """As it came."""
    is_exact: bool
    """Whether nothing of the conversation was sealed, so that the body may go on."""
    stored: Sequence[Message] = ()
    """What the server kept of the conversation."""


class Fitting:
    """A `BatchMiddleware`: the innermost of a gateway, made for one call. The request's `wire` is
    that of its client."""

    def __init__(
        self,
        request: ModelRequest,
        requested_model: str,
        client: ClientCopy | None,
        recalled: tuple[Message, ...],
        *,
        stores: bool = False,
        cache: Literal["short", "long"] | None = None,
    ) -> None:
        """Makes the layer that fits one call's request.

        Args:
            request: what middlewares are given.
            asked: the client's name of the model.
            client: what the client sent; `None`: it sent the end of a conversation that the server has.
            recalled: the conversation as the server has it.
            stores: whether providers may keep what clients of other APIs ask.
            cache: how long a provider keeps the prompt of a client of another API, unless the
                client says what is to be kept.
        """
        self._cache = cache
        self._messages, self._recalled = request.messages, recalled
        self._requested_model, self._client, self._stores = requested_model, client, stores

    def batches(
        self, request: ModelRequest, following: Batches, target: Target
    ) -> AsyncGenerator[list[Event], None]:
        """Fits the request and sends it. See `BatchMiddleware`. Where nothing is left out, no step
        stands between."""
        destination = target(request)
        losses: list[Loss] = []
        fitted = request
        if destination is not None:
            fitted = self.fit(request, destination, losses)
        events = following(fitted)
        if destination is not None and (restore := self._regroup(request, destination)) is not None:
            events = _restore_calls(events, restore)
        if losses:
            return with_losses(events, losses, request.on_loss)
        return events

    def fit(
        self, request: ModelRequest, destination: Destination, losses: list[Loss]
    ) -> ModelRequest:
        """Returns the request for this provider, and adds to `losses` what it leaves out there."""
        wire = request.wire or destination.wire
        if wire != destination.wire:
            return self._translate_request(request, wire, destination, losses)
        client, served = self._client, get_serving(wires.get(wire))
        messages: Sequence[Message] = request.messages
        if client is not None and request.messages is self._messages:
            messages = settle_messages(client.request.messages, client.stored, destination, served)
            if (
                messages is client.request.messages
                and client.is_exact
                and _has_same_body(request, client.request)
            ):
                body = self._adapt_body(request, client.body, destination, served, losses)
                if body is not None:
                    return request.replace(messages=messages, verbatim=body)
        origin = Origin(destination.provider, destination.endpoint or None, destination.model)
        # `as_sent`: the wire adds nothing to the client's request, and takes nothing away.
        return request.replace(
            messages=_with_origin(origin, messages),
            as_sent=True,
            renamed=not self._is_named(destination, request),
        )

    def _regroup(
        self, request: ModelRequest, destination: Destination
    ) -> Callable[[Event], Event] | None:
        """Returns what makes the calls of functions that stand for the client's own tools calls of
        those, or None if the request that was fitted has no such functions."""
        if request.wire in (None, destination.wire):
            return None
        groups = get_serving(wires.get(request.wire)).request_fields.groups
        return groups and groups.regroup(request.tools)

    def _is_named(self, destination: Destination, request: ModelRequest) -> bool:
        """Returns whether the client itself named the model that its request goes to."""
        return self._requested_model in (
            destination.model,
            f"{destination.provider}:{destination.model}",
            request.model,
        )

    def _adapt_body(
        self,
        request: ModelRequest,
        body: JsonMap,
        destination: Destination,
        served: Serving,
        losses: list[Loss],
    ) -> JsonMap | None:
        """Fits the client's body: returns the one to send, or None if it is to be written."""
        if served.forward is None:
            return None
        if self._is_named(destination, request):
            return _rename_refused(body, destination, served.request_fields.newer)
        # A vendor with quirks may refuse fields that the API has, so the wire writes the
        # body.
        if destination.quirks is not None:
            return None
        # The client's body is for another model: it is written anew if this one does not take it.
        renamed = request.replace(as_sent=True, renamed=True)
        if lower_for(renamed, destination.profile, destination.wire)[0] is not renamed:
            return None
        adapt = served.request_fields.adapt
        if adapt is None:
            return body
        return adapt(request.replace(model=destination.model), body, losses)

    def _translate_request(
        self, request: ModelRequest, wire: str, destination: Destination, losses: list[Loss]
    ) -> ModelRequest:
        """Returns the request for a provider of another API. What the model's messages hold of the
        client's API stays in them: no wire writes it."""
        # No middleware has changed the messages.
        if request.messages is self._messages:
            request = request.replace(messages=self._recalled)
        # Some providers refuse a tool choice without tools.
        if not request.tools and request.settings.tool_choice in (
            "auto",
            "none",
        ):
            request = request.replace(
                settings=msgspec.structs.replace(request.settings, tool_choice=None)
            )
        if request.settings.cache is None and self._cache is not None and not _is_marked(request):
            settings = msgspec.structs.replace(request.settings, cache=self._cache)
            request = request.replace(settings=settings)
        if (groups := get_serving(wires.get(wire)).request_fields.groups) is not None:
            request = groups.ungroup(request)
        losses += foreign_losses(request, wire)
        request = without_wire(request, wire)
        unstored = get_serving(wires.get(destination.wire)).request_fields.unstored
        if unstored and not self._stores:
            return request.replace(options=unstored)
        return request


async def _restore_calls(
    following: AsyncGenerator[list[Event], None], restore: Callable[[Event], Event]
) -> AsyncGenerator[list[Event], None]:
    """Yields an answer, to the fitted request, with calls of the tools that the client has."""
    async with aclosing(following):
        async for events in following:
            yield [restore(event) for event in events]


async def with_losses(
    following: AsyncGenerator[list[Event], None],
    losses: Sequence[Loss],
    on_loss: OnLoss,
    trailing: Sequence[Loss] = (),
) -> AsyncGenerator[list[Event], None]:
    """Yields an answer, to the fitted request, whose first start has these losses too, or the error
    that refuses them. `behind`: losses to put last."""
    is_pending = bool(losses or trailing)
    async with aclosing(following):
        if on_loss == "error" and (refused := refusal_error([*losses, *trailing])) is not None:
            yield [RunError(refused)]
            return
        async for events in following:
            if is_pending and any(type(event) is MessageStarted for event in events):
                events, is_pending = _note_losses(events, losses, trailing), False
            yield events


def _is_marked(request: ModelRequest) -> bool:
    """Returns whether the client of a request marked anything in it for the provider's cache."""
    pieces = [piece for message in request.messages for piece in message.content]
    return any(
        CACHE_MARK in if_object(fields)
        for bearer in (*request.tools, *request.messages, *pieces)
        for fields in (bearer.native or {}).values()
    )


def _has_same_body(request: ModelRequest, sent: ModelRequest) -> bool:
    """Returns whether a request still has the body that its client sent."""
    for name in _BODY_FIELDS:
        value, sent_value = getattr(request, name), getattr(sent, name)
        if value is not sent_value and value != sent_value:
            return False
    return True


def _rename_refused(body: JsonMap, destination: Destination, newer: Mapping[str, str]) -> JsonMap:
    """Returns a client's body with the newer names of those fields that the model is known to
    refuse."""
    refused = destination.profile.refused_fields if destination.profile is not None else None
    names = {name: newer[name] for name in refused or () if name in newer and name in body}
    if not names:
        return body
    # A field that the client gave by its newer name too is that one.
    return {**{names[name]: body[name] for name in names}, **_without(body, names)}


def _without(body: JsonMap, names: Collection[str]) -> JsonMap:
    """Returns a client's body without these fields."""
    return {name: value for name, value in body.items() if name not in names}


def _with_origin(origin: Origin, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Returns the fitted request's messages; those of the model that have no origin get this
    one."""
    return tuple(
        message.replace(origin=origin)
        if message.role is Role.MODEL and message.origin is None
        else message
        for message in messages
    )


def _note_losses(
    events: Sequence[Event], losses: Sequence[Loss], trailing: Sequence[Loss]
) -> list[Event]:
    """Returns the answer's events with these losses, of the fitted request, in the first start of a
    message."""
    noted = list(events)
    first = next(index for index, event in enumerate(events) if type(event) is MessageStarted)
    start = events[first]
    if isinstance(start, MessageStarted):
        noted[first] = msgspec.structs.replace(start, losses=(*losses, *start.losses, *trailing))
    return noted
