"""The decoder's shell: a table of steps, parts that are open, and errors, which end the run as
values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.run_decoder import DecodedPart, Fields, RunDecoder
from dragoman.errors import DecodeError, DragomanError, HistoryError, StreamCutError
from dragoman.event import Custom, OpenText, PartDelta, PartFinished, PartStarted, RunError
from dragoman.message import TextPart


class Decoder(RunDecoder[DecodedPart]):
    """Reads `{"start": id}`, `{"text": …}`, `{"end": …}`; `late` may not come, and `bad` cannot be
    read."""

    def read_type(self, event: Fields) -> tuple[str, Fields]:
        if not event:
            raise DecodeError("an object says something")
        return next(iter(event)), event

    def admit(self, object_type: str, fields: Fields) -> bool:
        return object_type != "late"

    def run_id(self) -> str | None:
        return "r"

    def cut_run(self, error: DragomanError) -> None:
        for part in self.open.values():
            self.finish_part(part, part.build_part(cut=True))

    def read_unknown(self, object_type: str, fields: Fields) -> None:
        self._events.append(Custom(object_type))

    def _start(self, fields: Fields) -> None:
        self.start_part("key", DecodedPart(fields["start"], 0, OpenText()))

    def _text(self, fields: Fields) -> None:
        self.add_delta(self.open["key"], fields["text"])

    def _end(self, _: Fields) -> None:
        part = self.open.pop("key")
        self.finish_part(part, part.build_part())

    def _bad(self, _: Fields) -> None:
        raise HistoryError("it is bad")

    STEPS: Mapping[str, Any] = {"start": _start, "text": _text, "end": _end, "bad": _bad}


def read(*objects: str) -> list[Any]:
    decoder = Decoder.create()
    data = b"".join([b"data: " + text.encode() + b"\n\n" for text in objects])
    return [*decoder.feed(data), *decoder.close()]


def test_the_table_reads_what_comes() -> None:
    events = read('{"start": "m"}', '{"text": "a"}', '{"text": ""}', '{"text": "b"}', '{"end": 1}')
    assert events[:4] == [
        PartStarted("m", 0, OpenText()),
        PartDelta("m", 0, "a"),
        PartDelta("m", 0, "b"),
        PartFinished("m", 0, TextPart("ab")),
    ]
    assert isinstance(cut := events[4], RunError) and isinstance(cut.error, StreamCutError)
    assert cut.run_id == "r"


def test_a_part_of_nothing_ends_without_an_event() -> None:
    assert read('{"start": "m"}', '{"end": 1}')[1:-1] == []


def test_what_the_table_lacks_is_passed_on_and_what_may_not_come_is_passed_over() -> None:
    assert read('{"new": 1}', '{"late": 1}')[:-1] == [Custom("new")]


def test_what_cannot_be_read_ends_the_run() -> None:
    for text in ('{"bad": 1}', "{}"):
        *before, last = read('{"start": "m"}', '{"text": "a"}', text, '{"text": "b"}')
        assert isinstance(last, RunError) and isinstance(last.error, DecodeError)
        assert before[-1] == PartFinished("m", 0, TextPart("a"))
