"""Endpoints for media against peers that send anything: nothing is raised but errors of the tree, and
long answers take linear time (issue N)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import DataPart, Message, fold, unfold, wires
from dragoman.errors import InvalidRequestError
from dragoman.event import RunError
from dragoman.media_request import ImageRequest, MediaKind, SpeechRequest, TranscriptionRequest

PNG = DataPart(b"\x89PNG\r\n\x1a\n...", "image/png")
MP3 = DataPart(b"ID3...", "audio/mpeg", "talk.mp3")
KINDS: dict[str, tuple[Any, Message]] = {
    "images": (ImageRequest("m", "x", stream=True), Message.model(PNG)),
    "speech": (SpeechRequest("m", "x", stream=True), Message.model(MP3)),
    "transcription": (TranscriptionRequest("m", MP3, stream=True), Message.model("Hello.")),
}
ENDPOINTS = [
    (name, kind)
    for name in ("openai_chat", "mistral")
    for kind in KINDS
    if wires.media(name, kind)  # type: ignore[arg-type]
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = [
    "model", "prompt", "input", "file", "image", "mask", "voice", "n", "size", "stream", "response_format", "speed", "language",
    "timestamp_granularities", "output_format", "partial_images", "stream_format", "file_url", "instructions",
]  # fmt: skip


def endpoint(name: str, kind: str) -> Any:
    found = wires.media(name, kind)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(("name", "kind"), ENDPOINTS)
@given(
    body=st.dictionaries(st.sampled_from(FIELDS), JSON | st.just(PNG) | st.just(MP3), max_size=6),
    path=st.sampled_from(["", "/v1/images/edits"]),
)
def test_any_body_is_a_request_or_an_error_of_it(
    name: str, kind: MediaKind, body: dict[str, Any], path: str
) -> None:
    try:
        request = endpoint(name, kind).load_request(body, path=path)
        endpoint(name, kind).dump_http(request)
    except InvalidRequestError:
        return
    assert request.message.role == "user"


@pytest.mark.parametrize(("name", "kind"), ENDPOINTS)
@given(data=st.data())
def test_any_answer_is_events_that_end(name: str, kind: MediaKind, data: st.DataObject) -> None:
    request, message = KINDS[kind]
    encoder = endpoint(name, kind).encoder(request)
    stream = bytearray(b"".join(map(encoder.feed, unfold([message]))) + encoder.close())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(stream)))
        stream[start : start + data.draw(st.integers(0, 9))] = data.draw(
            st.sampled_from(
                [b"", b"\0", b"\n\n", b"\xff", b'"', b"null", b"{}", b"[1]", b"data: {}\n\n"]
            )
        )
    media_type = data.draw(
        st.sampled_from(
            ["text/event-stream", "application/json", "text/html", "", "audio/mpeg", "text/plain"]
        )
    )
    decoder = endpoint(name, kind).decoder(request, media_type=media_type)
    half = len(stream) // 2
    events = [
        *decoder.feed(bytes(stream[:half])),
        *decoder.feed(bytes(stream[half:])),
        *decoder.close(),
    ]
    assert events
    assert isinstance(events[-1], RunError) or len(fold(events)) == 1


@pytest.mark.parametrize(("name", "kind"), ENDPOINTS)
@given(body=JSON)
def test_any_json_is_events_that_end(name: str, kind: MediaKind, body: Any) -> None:
    request, _ = KINDS[kind]
    decoder = endpoint(name, kind).decoder(request, media_type="application/json")
    events = [*decoder.feed(json.dumps(body).encode()), *decoder.close()]
    assert isinstance(events[-1], RunError) or len(fold(events)) == 1


def test_a_long_transcript_is_read_in_linear_time() -> None:
    event = b'data: {"type": "transcript.text.delta", "delta": "words "}\n\n'

    def seconds(count: int) -> float:
        decoder = endpoint("openai_chat", "transcription").decoder(KINDS["transcription"][0])
        started = time.perf_counter()
        for _ in range(count // 100):
            decoder.feed(event * 100)
        done = {"type": "transcript.text.done", "text": "words " * count}
        decoder.feed(b"data: " + json.dumps(done).encode() + b"\n\n")
        return time.perf_counter() - started

    assert seconds(40_000) < 12 * max(seconds(10_000), 0.01)
