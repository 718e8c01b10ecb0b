"""What a gateway costs for each event: provider's bytes → events → the client's bytes, step by
step, in one process without sockets.

python bench/gateway.py [EVENTS]
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import msgspec

from dragoman import Usage, serve, unfold, wires
from dragoman.event import PartDelta
from dragoman.message import FinishReason, Message
from dragoman.model import ChatModel
from dragoman.providers import Provider
from dragoman.request import ModelRequest
from dragoman.transport import Exchange, Player

WORDS = "word "
USED = Usage(input_tokens=900, output_tokens=40, total_tokens=940)
ROUNDS, CALLS = 5, 8
Call = Callable[[], Awaitable[None]]
ASK = ModelRequest("m", (Message.user("hi"),), stream=True)


def exchange(wire: str, events: int) -> Exchange:
    """A streamed answer that arrives an event at a time."""
    encoder = wires.get(wire).encoder(id="r1", model="m")
    said = Message.model(WORDS * events).replace(
        id="m1", finish_reason=FinishReason.stop, usage=USED
    )
    frames: list[bytes] = []
    for event in unfold([said]):
        if isinstance(event, PartDelta):
            frames += [
                encoder.feed(PartDelta(event.message_id, event.index, WORDS)) for _ in range(events)
            ]
        else:
            frames.append(encoder.feed(event))
    frames.append(encoder.close())
    places, at = [], 0
    for frame in frames:
        places.append(at := at + len(frame))
    return Exchange(
        headers={"content-type": wires.get(wire).stream_type}, body=b"".join(frames), chunks=places
    )


def provider(wire: str, answer: Exchange) -> Provider:
    transport = Player([answer] * (CALLS + 1))
    return Provider(
        name="up",
        display_name="Up",
        wire=wire,
        base_url="http://up.test/v1",
        transport=transport,
        chat_model="m",
    )


def chat(record: Provider) -> ChatModel:
    assert record.transport is not None
    return ChatModel(record, "m", transport=record.transport)


def read(client: str, record: Provider) -> Call:
    """Events of the provider's bytes alone."""
    model = chat(record)

    async def run() -> None:
        async with aclosing(model.batches(ASK)) as batches:
            async for _ in batches:
                pass

    return run


def written(client: str, record: Provider) -> Call:
    """And the client's bytes: the least that a gateway must do."""
    model, wire = chat(record), wires.get(client)

    async def run() -> None:
        encoder = wire.encoder(**wire.envelope(ASK, id="r", now=datetime.now(UTC)))
        async with aclosing(model.batches(ASK)) as batches:
            async for events in batches:
                for event in events:
                    encoder.feed(event)
        encoder.close()

    return run


def gateway(client: str, record: Provider) -> Call:
    """The whole server, but for sockets."""
    app = serve.app(gateway=serve.Gateway({"m": record}))
    return lambda: ask(app, client)


def fallback(client: str, record: Provider) -> Call:
    """With another model that could stand in."""
    app = serve.app(
        gateway=serve.Gateway({"m": [record, msgspec.structs.replace(record, name="other")]})
    )
    return lambda: ask(app, client)


async def ask(app: Any, client: str) -> None:
    """A streamed chat over ASGI."""
    wire = wires.get(client)
    http = wire.dump_http(ASK)
    path = f"/{client}" + next(
        route.path.replace("{model}", "m")
        for route in wire.routes
        if route.purpose == "chat"
        and route.path.replace("{model}", "m").endswith(http.path.partition("?")[0])
    )
    body = msgspec.json.encode(http.body)
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": http.path.partition("?")[2].encode(),
        "headers": [
            (b"host", b"127.0.0.1"),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 9),
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
    }
    given = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return given.pop() if given else await asyncio.Future()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] != 200:
            raise RuntimeError(message)

    await app(scope, receive, send)


STEPS: dict[str, Callable[[str, Provider], Call]] = {
    "read": read,
    "written": written,
    "gateway": gateway,
    "fallback": fallback,
}


def microseconds(
    step: Callable[[str, Provider], Call], client: str, upstream: str, events: int
) -> float:
    """Of CPU for each event: the best of several rounds."""
    answer = exchange(upstream, events)

    async def run() -> float:
        call = step(client, provider(upstream, answer))
        await call()
        gc.collect()
        began = time.process_time()
        for _ in range(CALLS):
            await call()
        return (time.process_time() - began) / CALLS / events * 1e6

    return min(asyncio.run(run()) for _ in range(ROUNDS))


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"{'client':18}{'provider':18}" + "".join(f"{name:>10}" for name in STEPS))
    for client, upstream in (
        ("openai_chat", "openai_chat"),
        ("anthropic", "anthropic"),
        ("openai_chat", "anthropic"),
        ("anthropic", "openai_chat"),
        ("openai_responses", "google"),
        ("google", "openai_responses"),
    ):
        times = [microseconds(step, client, upstream, events) for step in STEPS.values()]
        print(f"{client:18}{upstream:18}" + "".join(f"{each:10.2f}" for each in times))


if __name__ == "__main__":
    main()
