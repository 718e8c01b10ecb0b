"""The endpoint for speech, both ways, and Gemini's chat in its place (issue N). No recording shows
them: the official libraries' types do."""

from __future__ import annotations

import io
import json
import wave
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import DataPart, Message, Usage, fold, unfold, wires
from dragoman.codec.audio import AUDIO_FORMATS
from dragoman.errors import DecodeError, InvalidRequestError, RateLimitError, StreamCutError
from dragoman.event import Event, RunError
from dragoman.media_request import SpeechRequest
from dragoman.message import FinishReason

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(str.strip)
MP3 = DataPart(b"ID3...", "audio/mpeg")
ASKED = SpeechRequest("m", "Hello.")
REQUESTS = st.builds(
    SpeechRequest,
    model=TEXTS,
    text=TEXTS,
    voice=st.none() | TEXTS,
    mime_type=st.none() | st.sampled_from(list(AUDIO_FORMATS.values())),
    instructions=st.none() | TEXTS,
    stream=st.booleans(),
    options=st.dictionaries(st.just("speed"), st.floats(0.25, 4)),
)


def endpoint(name: str = "openai_chat") -> Any:
    found = wires.media(name, "speech")
    assert found is not None
    return found


def read(
    body: bytes, media_type: str, request: SpeechRequest = ASKED, size: int = 1000
) -> list[Event]:
    decoder = endpoint().decoder(request, media_type=media_type)
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return [*[event for piece in pieces for event in decoder.feed(piece)], *decoder.close()]


def test_a_wire_says_whether_it_speaks() -> None:
    able = [name for name in wires.names("model") if wires.media(name, "speech")]
    assert able == ["openai_chat", "openai_responses"]
    assert wires.media_client("google", "speech") is not None


@given(REQUESTS)
def test_every_request_survives_its_wire(request: SpeechRequest) -> None:
    http = endpoint().dump_http(request)
    assert http.path == "/audio/speech"
    again = endpoint().load_request(json.loads(json.dumps(http.body)))
    assert again == request
    assert endpoint().dump_http(again) == http


@given(
    st.binary(min_size=1, max_size=100),
    st.sampled_from(list(AUDIO_FORMATS.values())),
    st.integers(1, 20),
)
def test_audio_survives_its_wire_in_any_pieces(data: bytes, mime_type: str, size: int) -> None:
    message = Message.model(DataPart(data, mime_type))
    media_type, body = endpoint().dump_response(message, request=ASKED)
    assert (media_type, body) == (mime_type, data)
    [again] = fold(read(body, media_type, size=size))
    assert again.content == message.content
    assert again.finish_reason is FinishReason.stop
    encoder = endpoint().encoder(ASKED)
    assert b"".join(map(encoder.feed, unfold([message]))) + encoder.close() == data
    assert (encoder.stream_type, encoder.ping) == (mime_type, b"")


@given(st.binary(min_size=1, max_size=100), st.integers(1, 20))
def test_audio_survives_as_events_which_tell_the_tokens(data: bytes, size: int) -> None:
    request = ASKED.replace(stream=True)
    usage = Usage(input_tokens=3, output_tokens=4, total_tokens=7)
    message = Message.model(DataPart(data, "audio/mpeg")).replace(usage=usage)
    encoder = endpoint().encoder(request)
    stream = b"".join(map(encoder.feed, unfold([message]))) + encoder.close()
    objects = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: ")]
    assert objects[0] == {"type": "speech.audio.delta", "audio": b64encode(data).decode()}
    assert objects[-1]["type"] == "speech.audio.done"
    assert objects[-1]["usage"] == {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    [again] = fold(read(stream, encoder.stream_type, request, size))
    assert (again.content, again.usage) == (message.content, usage)
    [*_, last] = read(stream[: len(stream) // 2], encoder.stream_type, request)
    assert isinstance(last, RunError) and isinstance(last.error, StreamCutError)


@pytest.mark.parametrize(
    ("told", "asked", "expected"),
    [
        ("audio/mpeg", None, "audio/mpeg"),
        ("audio/mp3", "audio/mpeg", "audio/mpeg"),
        ("audio/x-wav", "audio/wav", "audio/wav"),
        ("audio/wav", "audio/mpeg", "audio/wav"),
        ("application/octet-stream", "audio/pcm", "audio/pcm"),
        ("audio/L16;rate=16000", "audio/pcm", "audio/L16;rate=16000"),
        ("", "audio/flac", "audio/flac"),
        ("", None, "audio/mpeg"),
    ],
)
def test_the_type_of_audio_is_what_the_answer_says(told: str, asked: Any, expected: str) -> None:
    [message] = fold(read(b"1234", told, ASKED.replace(mime_type=asked)))
    assert message.content == (DataPart(b"1234", expected),)


def test_what_is_no_audio_is_an_error_of_the_tree() -> None:
    body = json.dumps({"error": {"message": "too many requests", "code": 429}}).encode()
    for data, media_type, error in (
        (body, "application/json", RateLimitError),
        (b"<html>", "text/html", DecodeError),
        (b"", "audio/mpeg", DecodeError),
        (b"{}", "application/json", DecodeError),
        (
            b'data: {"type": "speech.audio.delta", "audio": "%"}\n\n',
            "text/event-stream",
            DecodeError,
        ),
        (b'data: {"type": "speech.audio.done"}\n\n', "text/event-stream", DecodeError),
    ):
        last = read(data, media_type)[-1]
        assert isinstance(last, RunError) and isinstance(last.error, error), data
    encoder = endpoint().encoder(ASKED.replace(stream=True))
    written = encoder.feed(RunError(RateLimitError("too many requests")))
    last = read(written, "text/event-stream")[-1]
    assert isinstance(last, RunError) and isinstance(last.error, RateLimitError)
    with pytest.raises(DecodeError):
        endpoint().dump_response(Message.model("no audio"), request=ASKED)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "input"),
        ({"input": ""}, "input"),
        ({"input": ["x"]}, "input"),
        ({"input": "x", "voice": 3}, "voice"),
        ({"input": "x", "response_format": "midi"}, "response_format"),
        ({"input": "x", "stream_format": "ws"}, "stream_format"),
        ({"input": "x", "speed": "fast"}, "speed"),
        ({"input": "x", "speed": True}, "speed"),
        ({"input": "x", "speed": 0}, "speed"),
        ({"input": "x", "instructions": 1}, "instructions"),
    ],
)
def test_a_wrong_field_of_a_request_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        endpoint().load_request(body)
    assert caught.value.field == field


def test_a_voice_of_an_account_stays_as_it_is() -> None:
    request = endpoint().load_request({"input": "x", "voice": {"id": "voice_1"}})
    assert endpoint().dump_http(request).body == {"input": "x", "voice": {"id": "voice_1"}}
    with pytest.raises(InvalidRequestError, match="audio/midi"):
        endpoint().dump_http(ASKED.replace(mime_type="audio/midi"))


def gemini(answer: DataPart, **how: Any) -> tuple[Any, DataPart]:
    google: Any = wires.media_client("google", "speech")
    request = SpeechRequest("g", "Hello.", **how)
    http = google.dump_http(request)
    body = wires.get("google").dump_response(unfold([Message.model(answer)]), id="1", model="g")
    decoder = google.decoder(request)
    [message] = fold([*decoder.feed(json.dumps(body).encode()), *decoder.close()])
    [part] = message.content
    return http, part


def test_gemini_is_asked_by_its_chat_and_its_samples_become_a_file() -> None:
    samples = DataPart(b"\1\0\2\0" * 10, "audio/L16;codec=pcm;rate=16000")
    http, part = gemini(samples, voice="Kore", instructions="cheerfully", stream=True)
    assert http.path == "/models/g:generateContent"
    assert http.body["generationConfig"] == {
        "responseModalities": ["AUDIO"],
        "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}},
    }
    [content] = http.body["contents"]
    assert content["parts"] == [{"text": "Hello.", "speechMetadata": {"style": "cheerfully"}}]
    assert part.mime_type == "audio/wav"
    with wave.open(io.BytesIO(part.data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16000, 1, 2)
        assert file.readframes(1000) == samples.data
    assert gemini(samples, mime_type="audio/pcm")[1] == samples
    assert gemini(MP3, mime_type="audio/mpeg")[1] == MP3
