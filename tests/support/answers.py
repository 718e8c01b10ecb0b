"""A provider's bytes, streamed or whole, as the wire of that provider writes them: for tests that
hold on every wire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from dragoman import Agent, Message, Usage, unfold, wires
from dragoman.event import Event, PartDelta
from dragoman.message import FinishReason, Origin
from dragoman.transport import Exchange, Player

__all__ = ["MODELS", "agent_of", "answer", "response"]

MODELS = {
    "openai_chat": "openai:gpt-4o",
    "openai_responses": "openai-responses:gpt-4o",
    "anthropic": "anthropic:claude-sonnet-4-5",
    "google": "google:gemini-2.5-flash",
}
"""Wire → a model string whose provider speaks it."""


def answer(
    wire: str,
    *content: Any,
    usage: Usage | None = None,
    whole: bool = False,
    cut_after: int | None = None,
) -> Exchange:
    """What a provider sends that answers with this content."""
    message = Message.model(*content)
    reason = FinishReason.tool_calls if message.tool_calls else FinishReason.stop
    served = Origin("p", model="m", served_model=MODELS[wire].partition(":")[2], response_id="r1")
    message = message.replace(id="m1", finish_reason=reason, usage=usage, origin=served)
    return response(wire, unfold([message]), whole=whole, cut_after=cut_after)


def response(
    wire: str, events: Sequence[Event], *, whole: bool = False, cut_after: int | None = None
) -> Exchange:
    """What a provider sends that answers with these events."""
    if whole:
        body = msgspec.json.encode(wires.get(wire).dump_response(list(events)))
        return Exchange(
            headers={"content-type": "application/json"}, body=body, cut_after=cut_after
        )
    encoder = wires.get(wire).encoder()
    body = b"".join([*map(encoder.feed, small(events)), encoder.close()])
    return Exchange(
        headers={"content-type": wires.get(wire).stream_type},
        body=body,
        chunks=50,
        cut_after=cut_after,
    )


def small(events: Iterable[Event]) -> Iterable[Event]:
    """The same events, a few letters a delta."""
    for event in events:
        if isinstance(event, PartDelta):
            for start in range(0, len(event.delta), 5):
                yield PartDelta(event.message_id, event.index, event.delta[start : start + 5])
        else:
            yield event


def agent_of(wire: str, *answers: Exchange | Exception, **how: Any) -> tuple[Agent[Any], Player]:
    """An agent of a provider that speaks this wire, and what answers it."""
    player = Player(answers)
    own = {"model": MODELS[wire], "transport": player, "api_key": "k", "environment_only": True}
    return Agent(**{**own, **how}), player
