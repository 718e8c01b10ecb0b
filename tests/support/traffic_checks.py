"""What holds for the recorded traffic of every wire. A wire's own test calls it with what is
recorded of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence

from dragoman.event import Event
from dragoman.fold import fold
from dragoman.loss import Loss
from dragoman.message import Message
from dragoman.request import ToolSpec
from dragoman.wires import Wire
from support.traffic import Exchange, decode, through_storage

__all__ = ["check_appended", "check_chunkings", "check_encoder", "check_renamed", "check_requests"]


def check_chunkings(wire: Wire, decoded: Iterable[tuple[Exchange, list[Event]]]) -> None:
    """An answer is the same, wherever its bytes are cut."""
    chance = random.Random(1)
    for exchange, events in decoded:
        cuts = sorted(
            chance.sample(
                range(1, len(exchange.body)), min(chance.randint(1, 40), len(exchange.body) - 1)
            )
        )
        assert decode(wire, exchange.body, cuts) == events, exchange


def check_encoder(wire: Wire, decoded: Iterable[tuple[Exchange, list[Event]]]) -> None:
    """An answer survives its encoder."""
    for exchange, events in decoded:
        encoder = wire.encoder()
        written = b"".join(map(encoder.feed, events)) + encoder.close()
        assert fold(decode(wire, written)) == fold(events), exchange


def check_requests(wire: Wire, bodies: Sequence[Exchange], least: int) -> None:
    """A request's body survives exactly, also through storage, and nothing of it is lost."""
    assert len(bodies) > least
    for exchange in bodies:
        losses: list[Loss] = []
        request = through_storage(wire.load_request(exchange.request or {}))
        assert wire.dump_request(request, losses=losses) == exchange.request, exchange
        assert not losses, exchange


def check_appended(wire: Wire, bodies: Iterable[Exchange]) -> None:
    """A message that is added changes exactly that."""
    added = {"role": "user", "content": "and now?"}
    for exchange in bodies:
        body = exchange.request or {}
        request = wire.load_request(body)
        longer = request.replace(messages=(*request.messages, Message.user("and now?")))
        assert wire.dump_request(longer) == {**body, "messages": [*body["messages"], added]}, (
            exchange
        )


def check_renamed(
    wire: Wire, bodies: Iterable[Exchange], least: int, *, within: str | None = None
) -> None:
    """A tool by another name changes exactly its name. `within`: the field of a tool that holds
    it."""
    renamed = 0
    for exchange in bodies:
        request = wire.load_request(exchange.request or {})
        for place, tool in enumerate(request.tools):
            if isinstance(tool, ToolSpec):
                other = ToolSpec("another_name", tool.description, tool.input_schema, tool.native)
                tools = (*request.tools[:place], other, *request.tools[place + 1 :])
                expected = json.loads(json.dumps(exchange.request))
                named = expected["tools"][place]
                (named[within] if within else named)["name"] = "another_name"
                assert wire.dump_request(request.replace(tools=tools)) == expected, exchange
                renamed += 1
    assert renamed > least
