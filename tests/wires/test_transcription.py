"""Endpoints for transcripts, both ways, and Gemini's chat in their place (issue N). No recording shows
them: the official libraries' types do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mistralai.client.models import TranscriptionResponse, TranscriptionStreamEventsData
from openai.types.audio import Transcription, TranscriptionStreamEvent, TranscriptionVerbose
from pydantic import TypeAdapter

from dragoman import DataPart, LinkPart, Message, Usage, fold, unfold, wires
from dragoman.codec.audio import dump_subtitles
from dragoman.codec.multipart import load_form
from dragoman.errors import DecodeError, InvalidRequestError, RateLimitError, StreamCutError
from dragoman.event import Event, RunError
from dragoman.media_request import TranscriptionRequest
from dragoman.message import FinishReason, Origin

NAMES = ["openai_chat", "openai_responses", "mistral"]
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(str.strip)
MP3 = DataPart(b"ID3...", "audio/mpeg", "talk.mp3")
ASKED = TranscriptionRequest("m", MP3)
REQUESTS = st.builds(
    TranscriptionRequest,
    model=TEXTS,
    audio=st.builds(
        DataPart,
        st.binary(min_size=1, max_size=40),
        st.sampled_from(["audio/mpeg", "audio/wav", "video/mp4"]),
        st.just("talk.mp3"),
    ),
    language=st.none() | st.just("en"),
    prompt=st.none() | TEXTS,
    timestamps=st.sampled_from([(), ("segment",), ("word",), ("segment", "word")]),
    stream=st.booleans(),
    options=st.dictionaries(st.just("temperature"), st.just("0.5")),
)
SEGMENTS = [
    {"id": 0, "start": 0.0, "end": 1.5, "text": " Hello there."},
    {"id": 1, "start": 1.5, "end": 3661.25, "text": "General\n\nKenobi --> you."},
]


def endpoint(name: str = "openai_chat") -> Any:
    found = wires.media(name, "transcription")
    assert found is not None
    return found


def read(
    body: Any, name: str = "openai_chat", media_type: str = "", size: int = 1000
) -> list[Event]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    decoder = endpoint(name).decoder(ASKED, media_type=media_type, origin=Origin("p"))
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return [*[event for piece in pieces for event in decoder.feed(piece)], *decoder.close()]


def asked(name: str, **fields: Any) -> TranscriptionRequest:
    return endpoint(name).load_request({"model": "m", "file": MP3, **fields})


def test_a_wire_says_whether_it_writes_transcripts() -> None:
    assert [name for name in wires.names("model") if wires.media(name, "transcription")] == [
        "openai_chat", "openai_responses", "mistral",
    ]  # fmt: skip
    assert wires.media_client("google", "transcription") is not None


@pytest.mark.parametrize("name", NAMES)
@given(request=REQUESTS)
def test_every_request_survives_its_wire(name: str, request: TranscriptionRequest) -> None:
    http = endpoint(name).dump_http(request)
    assert http.path == "/audio/transcriptions"
    again = endpoint(name).load_request(load_form(http.body, http.headers["content-type"]))
    if name != "mistral" and request.timestamps:
        assert again.native is not None
    assert again.replace(native=None) == request
    assert endpoint(name).dump_http(again) == http


@pytest.mark.parametrize("name", NAMES)
@given(text=TEXTS, tokens=st.none() | st.integers(1, 99), size=st.integers(1, 50))
def test_every_answer_survives_its_wire_whole_and_streamed(
    name: str, text: str, tokens: int | None, size: int
) -> None:
    usage = (
        None
        if tokens is None
        else Usage(input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1)
    )
    message = Message.model(text).replace(
        usage=usage, origin=Origin("p", served_model="m2"), finish_reason=FinishReason.stop,
        metadata={"language": "en", "segments": SEGMENTS},
    )  # fmt: skip
    form = {} if name == "mistral" else {"response_format": "verbose_json"}
    _, body = endpoint(name).dump_response(message, request=asked(name, **form))
    [again] = fold(read(body, name))
    assert (again.text, again.usage) == (text, usage)
    assert (again.metadata["language"], again.metadata["segments"]) == ("en", SEGMENTS)
    encoder = endpoint(name).encoder(asked(name, stream="true"))
    stream = b"".join(map(encoder.feed, unfold([message]))) + encoder.close()
    [again] = fold(read(stream, name, size=size))
    assert (again.text, again.usage) == (text, usage)
    assert (again.metadata["language"], again.metadata["segments"]) == ("en", SEGMENTS)
    if name == "mistral":
        assert again.origin == Origin("p", served_model="m2")


def test_answers_are_of_the_official_libraries_types() -> None:
    usage = Usage(input_tokens=3, output_tokens=1, total_tokens=4)
    message = Message.model("Hello.").replace(
        usage=usage, metadata={"segments": SEGMENTS[:1], "language": "english"}
    )
    whole = json.loads(endpoint().dump_response(message, request=ASKED)[1])
    assert Transcription.model_validate(whole).text == "Hello."
    verbose = json.loads(
        endpoint().dump_response(
            message.replace(usage=None),
            request=asked("openai_chat", response_format="verbose_json"),
        )[1]
    )
    assert (verbose["task"], verbose["duration"]) == ("transcribe", 1.5)
    verbose["segments"] = None  # whose further fields only Whisper knows
    assert TranscriptionVerbose.model_validate(verbose).language == "english"
    encoder = endpoint().encoder(ASKED)
    stream = b"".join(map(encoder.feed, unfold([message]))) + encoder.close()
    for line in stream.splitlines():
        if line.startswith(b"data: "):
            TypeAdapter(TranscriptionStreamEvent).validate_json(line[6:])
    whole = json.loads(endpoint("mistral").dump_response(message, request=ASKED)[1])
    assert TranscriptionResponse.model_validate(whole).usage.prompt_tokens == 3
    encoder = endpoint("mistral").encoder(ASKED)
    stream = b"".join(map(encoder.feed, unfold([message]))) + encoder.close()
    for line in stream.splitlines():
        if line.startswith(b"data: "):
            TypeAdapter(TranscriptionStreamEventsData).validate_json(line[6:])


def test_the_last_event_has_the_whole_text_whatever_the_deltas_said() -> None:
    def stream(*objects: Any) -> bytes:
        return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in objects)

    delta = {"type": "transcript.text.delta", "delta": "Helo"}
    done = {
        "type": "transcript.text.done",
        "text": "Hello.",
        "usage": {"type": "duration", "seconds": 3},
    }
    segment = {
        "type": "transcript.text.segment",
        "id": "a",
        "start": 0,
        "end": 1,
        "text": "Hello.",
        "speaker": "A",
    }
    [message] = fold(read(stream(delta, segment, {"type": "new"}, done)))
    assert (message.text, message.usage) == ("Hello.", None)
    assert message.metadata == {
        "usage": {"type": "duration", "seconds": 3},
        "segments": [{"id": "a", "start": 0, "end": 1, "text": "Hello.", "speaker": "A"}],
    }
    events = [
        {"type": "transcription.language", "audio_language": "fr"},
        {"type": "transcription.text.delta", "text": "Bon"},
        {"type": "transcription.segment", "text": "Bon", "start": 0, "end": 1},
        {"type": "transcription.done", "model": "v", "text": "Bon", "usage": {"prompt_audio_seconds": 3, "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}, "language": None},
    ]  # fmt: skip
    [message] = fold(read(stream(*events), "mistral"))
    assert message.metadata == {
        "language": "fr",
        "segments": [{"text": "Bon", "start": 0, "end": 1}],
        "usage": {"prompt_audio_seconds": 3},
    }
    last = read(stream(delta))[-1]
    assert isinstance(last, RunError) and isinstance(last.error, StreamCutError)
    assert last.error.partial.text == "Helo"


def test_silence_is_an_empty_text() -> None:
    for name in NAMES:
        [message] = fold(read({"text": "", "language": None, "usage": {}}, name))
        assert (message.text, message.content, message.metadata) == ("", (), {})
    for answer_format in ("srt", "vtt", "text", "json", "verbose_json"):
        endpoint().dump_response(
            Message.model(), request=asked("openai_chat", response_format=answer_format)
        )


def test_plain_text_is_the_transcript_itself() -> None:
    for size in (1, 2, 1000):
        [message] = fold(
            read("Grüße 🎙".encode(), media_type="text/plain; charset=utf-8", size=size)
        )
        assert message.text == "Grüße 🎙"


def test_a_transcript_is_written_in_each_form() -> None:
    message = Message.model("Hello there. General Kenobi you.").replace(
        metadata={"segments": SEGMENTS}
    )

    def written(answer_format: str) -> tuple[str, bytes]:
        return endpoint().dump_response(
            message, request=asked("openai_chat", response_format=answer_format)
        )

    assert written("text") == ("text/plain; charset=utf-8", b"Hello there. General Kenobi you.\n")
    assert written("srt")[1].decode() == (
        "1\n00:00:00,000 --> 00:00:01,500\nHello there.\n\n"
        "2\n00:00:01,500 --> 01:01:01,250\nGeneral Kenobi -> you.\n"
    )
    assert (
        written("vtt")[1]
        .decode()
        .startswith("WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello there.\n\n")
    )
    with pytest.raises(InvalidRequestError, match="needs times") as caught:
        endpoint().dump_response(
            Message.model("Hello."), request=asked("openai_chat", response_format="srt")
        )
    assert caught.value.field == "response_format"
    odd = [
        {"start": None, "end": "x"},
        {"start": -1, "end": 1e300, "text": 3},
        {"end": float("nan")},
    ]
    assert dump_subtitles(odd, vtt=True).count("00:00:00.000 --> 00:00:00.000") == 3


def test_a_form_of_the_answer_asks_for_times_where_it_needs_them() -> None:
    formats = {
        None: (),
        "json": (),
        "text": (),
        "srt": ("segment",),
        "vtt": ("segment",),
        "verbose_json": ("segment",),
    }
    for answer_format, timestamps in formats.items():
        request = asked("openai_chat", response_format=answer_format)
        assert request.timestamps == timestamps
        fields = load_form(*_form(endpoint().dump_http(request)))
        assert fields.get("response_format") == ("verbose_json" if timestamps else None)
    request = asked("openai_chat", response_format="verbose_json", timestamp_granularities=["word"])
    fields = load_form(*_form(endpoint().dump_http(request)))
    assert (request.timestamps, fields["timestamp_granularities"]) == (("word",), ["word"])


def _form(http: Any) -> tuple[bytes, str]:
    return http.body, http.headers["content-type"]


@pytest.mark.parametrize("name", ["openai_chat", "mistral"])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"file": None}, "file"),
        ({"file": "talk.mp3"}, "file"),
        ({"file": [MP3]}, "file"),
        ({"file": DataPart(b"", "audio/mpeg")}, "file"),
        ({"file": DataPart(b"x", "text/plain")}, "file"),
        ({"file": DataPart(b"x", "application/pdf")}, "file"),
        ({"language": 3}, "language"),
        ({"prompt": {}}, "prompt"),
        ({"stream": "maybe"}, "stream"),
        ({"timestamp_granularities": "minute"}, "timestamp_granularities"),
        ({"timestamp_granularities": {"a": "word"}}, "timestamp_granularities"),
        ({"model": ["m"]}, "model"),
    ],
)
def test_a_wrong_field_of_a_request_is_named(name: str, body: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        endpoint(name).load_request({"file": MP3, **body})
    assert caught.value.field == field


def test_links_go_where_they_are_taken() -> None:
    link = ASKED.replace(audio=LinkPart("https://x.example/talk.mp3"))
    with pytest.raises(InvalidRequestError, match="no links"):
        endpoint().dump_http(link)
    assert (
        endpoint("mistral").load_request(load_form(*_form(endpoint("mistral").dump_http(link))))
        == link
    )
    with pytest.raises(InvalidRequestError):
        endpoint("mistral").load_request({"file_url": "file:///etc/passwd"})
    with pytest.raises(InvalidRequestError, match="response_format"):
        asked("openai_chat", response_format="yaml")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_transcript_is_an_error_of_the_tree(name: str) -> None:
    for body, error in (
        ({"error": {"message": "too many requests", "code": 429}}, RateLimitError),
        ({}, DecodeError),
        ({"text": 3}, DecodeError),
        (b"<html>", DecodeError),
        (b"[" * 100_000, DecodeError),
        (b"", StreamCutError),
        (b'{"text": "Hel', StreamCutError),
    ):
        last = read(body, name)[-1]
        assert isinstance(last, RunError) and isinstance(last.error, error), body
    encoder = endpoint(name).encoder(ASKED)
    last = read(encoder.feed(RunError(RateLimitError("too many requests"))), name)[-1]
    assert isinstance(last, RunError) and isinstance(last.error, RateLimitError)


def test_gemini_hears_the_recording_in_a_chat() -> None:
    google: Any = wires.media_client("google", "transcription")
    http = google.dump_http(TranscriptionRequest("g", MP3, "de", "Kenobi", stream=True))
    assert http.path == "/models/g:streamGenerateContent?alt=sse"
    [message] = wires.get("google").load_request(http.body, path=http.path).messages
    assert isinstance(message.parts[0], DataPart) and message.parts[0].data == MP3.data
    assert "de" in message.text and "Kenobi" in message.text
    with pytest.raises(InvalidRequestError, match="times"):
        google.dump_http(TranscriptionRequest("g", MP3, timestamps=("word",)))
