"""What hooks and telemetry cost a model call: runs in pairs, without and with, in turn; what each
pair differs by.

python bench/telemetry.py [PAIRS]
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import set_span_in_context

from dragoman import Usage, unfold, wires
from dragoman.event import PartDelta
from dragoman.hooks import Hooks
from dragoman.message import FinishReason, Message
from dragoman.model import ChatModel
from dragoman.providers import get
from dragoman.request import ModelRequest
from dragoman.telemetry import telemetry
from dragoman.transport import Exchange, Player

WORDS = "word "
USED = Usage(input_tokens=900, output_tokens=40, total_tokens=940)


def exchange(chunks: int) -> Exchange:
    encoder = wires.get("openai_chat").encoder(id="r1", model="m")
    said = Message.model(WORDS * chunks).replace(
        id="m1", finish_reason=FinishReason.stop, usage=USED
    )
    frames: list[bytes] = []
    for event in unfold([said]):
        if isinstance(event, PartDelta):
            frames += [
                encoder.feed(PartDelta(event.message_id, event.index, WORDS)) for _ in range(chunks)
            ]
        else:
            frames.append(encoder.feed(event))
    frames.append(encoder.close())
    places, at = [], 0
    for frame in frames:
        places.append(at := at + len(frame))
    return Exchange(
        headers={"content-type": "text/event-stream"}, body=b"".join(frames), chunks=places
    )


async def seconds(hooks: tuple[Hooks, ...], answer: Exchange, calls: int) -> float:
    """Of one model call, in the mean of some."""
    model = ChatModel(
        get("openai"), "m", transport=Player([answer] * calls), api_key="k", hooks=hooks
    )
    request = ModelRequest("", (Message.user("hi"),), stream=True)
    gc.collect()
    began = time.thread_time()
    for _ in range(calls):
        async for _batch in model.batches(request):
            pass
    return (time.thread_time() - began) / calls


async def paired(
    hooks: Hooks, answer: Exchange, pairs: int, calls: int
) -> tuple[float, float, float]:
    """Microseconds of a call without, and what it takes more with hooks: in the median of pairs,
    and the best of each compared."""
    bare, full = [], []
    for _ in range(pairs):
        bare.append(await seconds((), answer, calls))
        full.append(await seconds((hooks,), answer, calls))
    more = statistics.median(two - one for one, two in zip(bare, full, strict=True))
    return statistics.median(bare) * 1e6, more * 1e6, (min(full) - min(bare)) * 1e6


def floor(tracers: TracerProvider, meters: MeterProvider, records: int) -> float:
    """Microseconds that the SDK takes for a span with as many attributes, and so many records."""
    tracer = tracers.get_tracer("floor")
    histograms = [
        meters.get_meter("floor").create_histogram(name, "s") for name in "abcd"[:records]
    ]
    asked = {f"a{place}": "some text" for place in range(6)}
    answered = {f"b{place}": place for place in range(7)}
    attributes = {f"c{place}": "some text" for place in range(4)}
    context = set_span_in_context(tracer.start_span("parent"))
    best: list[float] = []
    for _ in range(20):
        began = time.thread_time()
        for _ in range(200):
            span = tracer.start_span("chat m", context, attributes=asked)
            span.set_attributes(answered)
            for histogram in histograms:
                histogram.record(0.5, attributes, context)
            span.end()
        best.append((time.thread_time() - began) / 200)
    return statistics.median(best) * 1e6


async def main(pairs: int) -> None:
    tracers, meters = TracerProvider(), MeterProvider([InMemoryMetricReader()])
    tracers.add_span_processor(SpanProcessor())
    ways: dict[str, Any] = {
        "a hook at the end": Hooks(model_end=lambda _: None),
        "spans": telemetry(tracers, None),
        "spans and durations": telemetry(tracers, meters),
        "spans and all metrics": telemetry(tracers, meters, metrics="all"),
    }
    for records in (0, 1, 4):
        print(
            f"the SDK by itself, a span and {records} records: {floor(tracers, meters, records):.1f} µs"
        )
    for name, hooks in ways.items():
        short, long = exchange(10), exchange(510)
        bare, few, best = await paired(hooks, short, pairs, 50)
        _, many, _ = await paired(hooks, long, pairs, 20)
        chunk = (many - few) / 500
        print(
            f"{name}: {few:.1f} µs a model call of {bare:.0f} (at best {best:.1f}), {chunk:.3f} µs a chunk"
        )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))
