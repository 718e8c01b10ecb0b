"""The encoder's shell: a table of steps, the short way of deltas, what waits, the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.run_encoder import EncodedPart, RunEncoder, split_frame
from dragoman.event import (
    Event,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunFinished,
    StepStarted,
)
from dragoman.message import Role, TextPart

STARTED = [MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText())]


class Encoder(RunEncoder[EncodedPart]):
    """Says `start`, `text`, `end` of each part, and `over` at the end."""

    DONE = b"data: done\n\n"

    def end_stream(self) -> None:
        self.write({"over": len(self.take_parts())})

    def _started(self, event: PartStarted) -> None:
        part = self.open[event.message_id, event.index] = EncodedPart(event.part)
        part.frame = split_frame(self.frame({"text": "", "of": event.message_id}))
        self.write({"start": event.message_id})

    def _delta(self, event: PartDelta) -> None:
        self.write({"step": event.message_id})

    def _finished(self, event: PartFinished) -> None:
        part = self.take_part((event.message_id, event.index))
        self.write({"end": "".join(map(str, part.deltas if part else ()))})

    def _over(self, _: RunFinished) -> None:
        self.over = True

    STEPS: Mapping[type, Any] = {
        PartStarted: _started,
        PartDelta: _delta,
        PartFinished: _finished,
        RunFinished: _over,
    }


def encoded(encoder: Encoder, *events: Event) -> bytes:
    return b"".join([encoder.feed(event) for event in events])


def test_a_delta_has_the_bytes_of_an_object() -> None:
    encoder = Encoder()
    encoded(encoder, *STARTED)
    assert encoder.feed(PartDelta("m", 0, '"ä"\n')) == b'data: {"text":"\\"\xc3\xa4\\"\\n","of":"m"}\n\n'  # fmt: skip
    assert encoder.feed(PartFinished("m", 0, TextPart("x"))) == encoder.frame({"end": '"ä"\n'})


def test_a_delta_takes_its_step_where_it_has_no_short_way() -> None:
    encoder = Encoder()
    assert encoder.feed(PartDelta("m", 0, "x")) == encoder.frame({"step": "m"})
    encoded(encoder, *STARTED)
    for event in (PartDelta("m", 0, ""), PartDelta("m", 0, b"x"), PartDelta("n", 0, "x")):
        assert encoder.delta_bytes(event) is None
    encoder.pending.append("something")
    assert encoder.feed(PartDelta("m", 0, "x")) == encoder.frame({"step": "m"})
    encoder.pending.clear()
    encoder.open["m", 0].frame = None
    assert encoder.feed(PartDelta("m", 0, "x")) == encoder.frame({"step": "m"})


def test_what_the_table_lacks_writes_nothing() -> None:
    assert Encoder().objects(StepStarted("s")) == ()
    assert Encoder().feed(STARTED[0]) == b""


def test_the_end_is_written_once() -> None:
    encoder = Encoder()
    encoded(encoder, *STARTED)
    assert encoder.close() == encoder.frame({"over": 1}) + Encoder.DONE
    assert encoder.close() == b""


def test_nothing_follows_the_end_of_a_run() -> None:
    encoder = Encoder()
    assert encoded(encoder, RunFinished("r"), *STARTED) == b""
    assert encoder.close() == Encoder.DONE


def test_parts_of_some_messages_are_taken_in_their_order() -> None:
    encoder = Encoder()
    for place in ("a", "b", "a"):
        encoder.feed(PartStarted(place, len(encoder.open), OpenText()))
    assert [key for key, _ in encoder.take_parts({"a"})] == [("a", 0), ("a", 2)]
    assert list(encoder.open) == [("b", 1)]
    assert encoder.take_part(("b", 0)) is None
