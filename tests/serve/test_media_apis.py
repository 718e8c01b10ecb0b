"""The APIs for images, speech and transcripts behind a gateway (issue N): the official clients against
them, both ways, and what hostile ones send."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from typing import Any

import httpx2
import mistralai.client
import msgspec
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Agent, DataPart, Message, Usage, serve
from dragoman.codec.multipart import dump_form
from dragoman.errors import ContentRefusedError, RateLimitError
from dragoman.event import PARTIAL_IMAGE
from dragoman.media_request import ImageRequest, SpeechRequest
from dragoman.testing import ScriptedModel
from dragoman.transport.exchange import Exchange as Recorded
from dragoman.transport.player import Player
from support.asgi import exchange

pytestmark = pytest.mark.anyio

PNG = DataPart(b"\x89PNG\r\n\x1a\n...", "image/png")
MP3 = DataPart(b"ID3...", "audio/mpeg", "talk.mp3")
USAGE = Usage(input_tokens=3, output_tokens=4, total_tokens=7)
SEGMENTS = [{"id": 0, "start": 0.0, "end": 1.5, "text": "Hello."}]
TRANSCRIPT = Message.model("Hello.").replace(
    usage=USAGE, metadata={"language": "en", "duration": 1.5, "segments": SEGMENTS}
)


def answer(request: Any) -> Any:
    """An upstream that makes what it is asked for."""
    if isinstance(request, ImageRequest):
        return Message.model(*[PNG] * (request.count or 1)).replace(usage=USAGE)
    if isinstance(request, SpeechRequest):
        return DataPart(MP3.data, request.mime_type or "audio/mpeg")
    return TRANSCRIPT


def gateway(
    media: Any = answer, *, wire: str = "openai_chat", **how: Any
) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel("", wire=wire, media=media)
    limits = how.pop("limits", serve.ServerLimits())
    auth = how.pop("auth", None)
    app = serve.app(
        gateway=serve.Gateway({"m": model}, **how), store=None, limits=limits, auth=auth
    )
    return app, model


def client(app: Any, key: str = "k") -> openai.AsyncOpenAI:
    transport = httpx2.ASGITransport(app=app)
    return openai.AsyncOpenAI(
        base_url="http://127.0.0.1/v1",
        api_key=key,
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    )


@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses"])
async def test_the_official_client_makes_and_edits_images(wire: str) -> None:
    app, upstream = gateway(wire=wire)
    images = client(app).images
    made = await images.generate(model="m", prompt="a cat", n=2, size="1024x1024", quality="high")
    assert made.data is not None and made.usage is not None
    assert [b64decode(image.b64_json or "") for image in made.data] == [PNG.data] * 2
    assert (made.usage.total_tokens, made.created > 0) == (7, True)
    file = ("cat.png", PNG.data, "image/png")
    edited = await images.edit(model="m", prompt="a dog", image=[file, file], mask=file, n=1)
    assert edited.data is not None and edited.data[0].b64_json is not None
    wanted = upstream.media_requests
    part = DataPart(PNG.data, "image/png", "cat.png")
    assert wanted == [
        ImageRequest(
            "scripted-images-1", "a cat", (), None, 2, "1024x1024", options={"quality": "high"}
        ),
        ImageRequest("scripted-images-1", "a dog", (part, part), part, 1),
    ]
    linked = await images.generate(model="m", prompt="a cat", response_format="url")
    assert linked.data is not None
    assert linked.data[0].url == "data:image/png;base64," + b64encode(PNG.data).decode()
    stream = await images.generate(model="m", prompt="a cat", stream=True, partial_images=1)
    assert [event.type async for event in stream] == ["image_generation.completed"]
    edits = await images.edit(model="m", prompt="a cat", image=file, stream=True)
    assert [event.type async for event in edits] == ["image_edit.completed"]


async def test_the_official_client_gets_images_while_they_are_drawn() -> None:
    data = b64encode(PNG.data).decode()
    told = {
        "background": "auto",
        "created_at": 1,
        "output_format": "png",
        "quality": "low",
        "size": "auto",
    }
    kinds = ("image_generation.partial_image", "image_generation.completed")
    stream = b"".join(
        b"data: "
        + json.dumps({"type": kind, "b64_json": data, "partial_image_index": 0, **told}).encode()
        + b"\n\n"
        for kind in kinds
    )
    transport = Player(
        [Recorded(headers={"content-type": "text/event-stream"}, body=stream, chunks=7)]
    )
    app = serve.app(
        gateway=serve.Gateway(
            {"m": "openai:gpt-image-2"}, keys={"openai": "k"}, transport=transport
        ),
        store=None,
    )
    events = [
        event
        async for event in await client(app).images.generate(model="m", prompt="x", stream=True)
    ]
    assert [(event.type, event.b64_json, event.size) for event in events] == [
        (kind, data, "auto") for kind in kinds
    ]
    assert kinds[0] == PARTIAL_IMAGE


async def test_the_official_client_gets_speech_as_bytes_and_as_events() -> None:
    app, upstream = gateway()
    speech = client(app).audio.speech
    made = await speech.create(
        model="m", voice="nova", input="Hello.", response_format="wav", speed=1.5
    )
    assert (made.content, made.response.headers["content-type"]) == (MP3.data, "audio/wav")
    async with speech.with_streaming_response.create(
        model="m", voice="nova", input="Hello.", stream_format="sse"
    ) as streamed:
        lines = [line async for line in streamed.iter_lines() if line.startswith("data: ")]
    objects = [json.loads(line[6:]) for line in lines]
    assert objects[-1]["type"] == "speech.audio.done"
    audio = b"".join(b64decode(item["audio"]) for item in objects[:-1])
    assert audio == MP3.data
    first, second = upstream.media_requests
    assert first == SpeechRequest(
        "scripted-speech-1", "Hello.", "nova", "audio/wav", options={"speed": 1.5}
    )
    assert second.stream


async def test_the_official_client_gets_transcripts_in_each_form() -> None:
    app, upstream = gateway()
    transcriptions = client(app).audio.transcriptions
    file = ("talk.mp3", MP3.data, "audio/mpeg")
    made: Any = await transcriptions.create(model="m", file=file, language="en", temperature=0.5)
    assert (made.text, made.usage.total_tokens) == ("Hello.", 7)
    verbose: Any = await transcriptions.create(
        model="m",
        file=file,
        response_format="verbose_json",
        timestamp_granularities=["segment", "word"],
    )
    assert (verbose.language, verbose.duration, verbose.segments[0].end) == ("en", 1.5, 1.5)
    plain: Any = await transcriptions.create(model="m", file=file, response_format="text")
    assert plain.strip() == "Hello."
    subtitles: Any = await transcriptions.create(model="m", file=file, response_format="srt")
    assert subtitles == "1\n00:00:00,000 --> 00:00:01,500\nHello.\n"
    vtt: Any = await transcriptions.create(model="m", file=file, response_format="vtt")
    assert vtt.startswith("WEBVTT\n")
    stream = await transcriptions.create(model="m", file=file, stream=True)
    events = [event async for event in stream]
    assert (
        "".join(event.delta for event in events if event.type == "transcript.text.delta")
        == "Hello."
    )
    assert events[-1].type == "transcript.text.done" and events[-1].text == "Hello."
    wanted = upstream.media_requests
    assert [request.audio for request in wanted] == [MP3] * 6
    assert (wanted[0].language, wanted[0].options) == ("en", {"temperature": "0.5"})
    assert [request.timestamps for request in wanted[1:4]] == [
        ("segment", "word"),
        (),
        ("segment",),
    ]


async def test_mistrals_client_gets_transcripts_under_its_own_name() -> None:
    app, upstream = gateway()
    sdk = mistralai.client.Mistral(
        "k",
        server_url="http://127.0.0.1/mistral",
        async_client=httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)),
    )
    file: Any = {"file_name": "talk.mp3", "content": MP3.data}
    made = await sdk.audio.transcriptions.complete_async(
        model="m", file=file, language="en", diarize=True
    )
    assert (made.text, made.language, made.usage.total_tokens, made.model) == (
        "Hello.",
        "en",
        7,
        "m",
    )
    stream = await sdk.audio.transcriptions.stream_async(model="m", file=file)
    events = [event.data async for event in stream]
    assert [getattr(event, "text", None) for event in events] == ["Hello.", "Hello."]
    # Fields of another API are not passed on, and are named.
    assert [request.options for request in upstream.media_requests] == [{}, {}]


async def test_gemini_stands_in_for_every_endpoint() -> None:
    samples = DataPart(b"\1\0" * 9, "audio/L16;rate=24000")
    replies: list[Any] = [PNG, samples, "Hello."]
    model = ScriptedModel(replies, wire="google", image_model="g", name="google-like")
    app = serve.app(gateway=serve.Gateway({"m": model}), store=None)
    made = await client(app).images.generate(model="m", prompt="a cat", quality="high", user="u")
    assert made.data is not None and b64decode(made.data[0].b64_json or "") == PNG.data
    speech = await client(app).audio.speech.create(model="m", voice="Kore", input="Hello.")
    assert speech.content[:4] == b"RIFF"
    assert speech.response.headers["content-type"] == "audio/wav"
    text: Any = await client(app).audio.transcriptions.create(model="m", file=("a.mp3", MP3.data))
    assert text.text == "Hello."
    with pytest.raises(openai.BadRequestError, match="times"):
        await client(app).audio.transcriptions.create(
            model="m", file=("a.mp3", MP3.data), response_format="srt"
        )


async def test_what_was_left_out_is_named() -> None:
    model = ScriptedModel([PNG, DataPart(b"\1\0", "audio/L16")], wire="google", name="google-like")
    app = serve.app(gateway=serve.Gateway({"m": model}), store=None)
    made = await exchange(
        app, "POST", "/v1/images/generations", {"model": "m", "prompt": "x", "quality": "high"}
    )
    assert (made.status, made.headers["dragoman-loss"]) == (200, 'option;which="quality"')
    spoken = await exchange(
        app, "POST", "/v1/audio/speech", {"model": "m", "input": "x", "response_format": "mp3"}
    )
    assert (spoken.headers["content-type"], spoken.headers["dragoman-loss"]) == (
        "audio/wav",
        'setting;which="response_format"',
    )
    app, upstream = gateway()
    body = {"model": "m", "input": "x", "voice": {"id": "voice_of_another"}}
    spoken = await exchange(app, "POST", "/v1/audio/speech", body)
    assert (spoken.status, spoken.headers["dragoman-loss"]) == (200, 'option;which="voice"')
    assert upstream.media_requests[0].options == {}
    app, _ = gateway(on_loss="refuse")
    refused = await exchange(app, "POST", "/v1/audio/speech", body)
    assert refused.status == 400 and b"voice" in refused.body


async def test_an_upstreams_errors_are_the_clients() -> None:
    for error, expected in (
        (
            ContentRefusedError("Your request was rejected by the safety system"),
            openai.BadRequestError,
        ),
        (
            RateLimitError("too many requests, sk-upstream-secret", retry_after=7),
            openai.RateLimitError,
        ),
    ):
        app, _ = gateway(lambda _, error=error: error)
        calls = (
            client(app).images.generate(model="m", prompt="x"),
            client(app).images.generate(model="m", prompt="x", stream=True),
            client(app).audio.speech.create(model="m", voice="v", input="x"),
            client(app).audio.transcriptions.create(model="m", file=("a.mp3", MP3.data)),
        )
        for call in calls:
            with pytest.raises(expected) as caught:
                await call
            assert "secret" not in str(caught.value)


async def test_a_broken_upstream_cuts_speech_and_is_no_whole_file() -> None:
    recorded = Recorded(
        headers={"content-type": "audio/mpeg"}, body=b"ID3" * 100, cut_after=50, chunks=10
    )
    gate = serve.Gateway({"m": "openai:tts-1"}, keys={"openai": "k"}, transport=Player([recorded]))
    app = serve.app(gateway=gate, store=None)
    cut = await exchange(app, "POST", "/v1/audio/speech", {"model": "m", "input": "x"})
    assert (cut.status, cut.body, cut.is_complete) == (200, recorded.body[:50], False)
    whole = Recorded(
        headers={"content-type": "text/event-stream"},
        body=b'data: {"type": "speech.audio.delta", "audio": "SUQz"}\n\n',
    )
    gate = serve.Gateway({"m": "openai:tts-1"}, keys={"openai": "k"}, transport=Player([whole]))
    told = await exchange(
        serve.app(gateway=gate, store=None),
        "POST",
        "/v1/audio/speech",
        {"model": "m", "input": "x", "stream_format": "sse"},
    )
    assert told.is_complete and b'"type":"error"' in told.body.replace(b" ", b"")


def form(fields: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    content_type, data = dump_form(fields)
    return {"content-type": content_type}, data


async def post(app: Any, path: str, headers: dict[str, str], data: bytes) -> Any:
    return await exchange(app, "POST", path, data, headers=list(headers.items()))


SPEECH, EDITS, TRANSCRIPTIONS, IMAGES = (
    "/v1/audio/speech",
    "/v1/images/edits",
    "/v1/audio/transcriptions",
    "/v1/images/generations",
)


@pytest.mark.parametrize(
    ("path", "fields", "status", "field"),
    [
        (IMAGES, {"prompt": "x"}, 404, "model"),
        (IMAGES, {"model": "other", "prompt": "x"}, 404, "model"),
        (IMAGES, {"model": "m"}, 400, "prompt"),
        (IMAGES, {"model": "m", "prompt": "x", "n": "many"}, 400, "n"),
        (EDITS, {"model": "m", "prompt": "x"}, 400, "image"),
        (EDITS, {"model": "m", "prompt": "x", "image": DataPart(b"%PDF", "application/pdf")}, 400, "image"),
        (EDITS, {"model": "m", "prompt": "x", "image": "cat.png"}, 400, "image"),
        (EDITS, {"model": "m", "prompt": "x" * 2000, "image": PNG}, 413, "prompt"),
        (EDITS, {"model": "m", "prompt": "x", "image": DataPart(b"\x89PNG" * 1000, "image/png")}, 413, "image"),
        (EDITS, {"model": "m", "prompt": "x", "image": [PNG] * 30}, 413, None),
        (TRANSCRIPTIONS, {"model": "m"}, 400, "file"),
        (TRANSCRIPTIONS, {"model": "m", "file": DataPart(b"x", "text/plain", "a.txt")}, 400, "file"),
        (TRANSCRIPTIONS, {"model": "m", "file": DataPart(b"", "audio/mpeg", "a.mp3")}, 400, "file"),
        (TRANSCRIPTIONS, {"model": "m", "file": MP3, "response_format": "yaml"}, 400, "response_format"),
        (TRANSCRIPTIONS, {"model": "other", "file": MP3}, 404, "model"),
    ],
)  # fmt: skip
async def test_a_wrong_form_is_refused_by_the_fields_name(
    path: str, fields: dict[str, Any], status: int, field: str | None
) -> None:
    limits = serve.ServerLimits(form_parts=20, field_bytes=1000, file_bytes=3000)
    app, upstream = gateway(limits=limits)
    for prefix in ("", "/openai_responses"):
        answered = await post(app, prefix + path, *form(fields))
        told = answered.json["error"]
        assert (answered.status, told["param"]) == (status, field), told
        assert told["type"] == "invalid_request_error"
    assert upstream.media_requests == []


async def test_other_bodies_are_refused() -> None:
    app, upstream = gateway(limits=serve.ServerLimits(body_bytes=5000))
    for headers, data, status in (
        ({"content-type": "application/xml"}, b"<a/>", 415),
        ({"content-type": "image/png"}, PNG.data, 415),
        ({"content-type": "multipart/form-data"}, b"x", 400),
        ({"content-type": "multipart/form-data; boundary=b"}, b"--b\r\n\r\n", 400),
        ({"content-type": "multipart/form-data; boundary=b"}, b"--b" + b"\r\n--b" * 500, 400),
        ({"content-type": "multipart/form-data; boundary=" + "b" * 100}, b"x", 400),
        ({"content-type": "multipart/mixed; boundary=b"}, b"--b--", 415),
        (
            {"content-type": "application/json"},
            b'{"model": "m", "prompt": "x", "image": {"file_id": "file-1"}}',
            400,
        ),
        ({"content-type": "application/json"}, b"{", 400),
        ({"content-type": "application/json"}, b"[1]", 400),
        ({"content-type": "application/json", "content-encoding": "gzip"}, b"{}", 400),
        (
            *form({"model": "m", "prompt": "x", "image": DataPart(b"\x89PNG" * 2000, "image/png")}),
            413,
        ),
    ):
        for path in (EDITS, TRANSCRIPTIONS):
            answered = await post(app, path, headers, data)
            assert answered.status == status, (path, headers, answered.body)
            assert answered.json["error"]["message"]
    answered = await post(app, SPEECH, *form({"model": "m", "input": "x"}))
    assert answered.status == 400
    assert upstream.media_requests == []


async def test_an_edit_may_be_json() -> None:
    app, upstream = gateway()
    url = "data:image/png;base64," + b64encode(PNG.data).decode()
    for image in ({"type": "image_url", "url": url}, [{"image_url": url}], url):
        answered = await exchange(app, "POST", EDITS, {"model": "m", "prompt": "x", "image": image})
        assert answered.status == 200, answered.body
    assert [request.images for request in upstream.media_requests] == [
        (DataPart(PNG.data, "image/png", "file.png"),)
    ] * 3


async def test_keys_and_limits_of_callers_hold() -> None:
    app, upstream = gateway(auth="one-secret")
    for path, fields in (
        (IMAGES, {"model": "m", "prompt": "x"}),
        (SPEECH, {"model": "m", "input": "x"}),
    ):
        assert (await exchange(app, "POST", path, fields)).status == 401
    headers, data = form({"model": "m", "file": MP3})
    assert (await post(app, TRANSCRIPTIONS, headers, data)).status == 401
    assert (
        await post(app, TRANSCRIPTIONS, {**headers, "authorization": "Bearer one-secret"}, data)
    ).status == 200
    assert len(upstream.media_requests) == 1


async def test_an_agent_makes_none_and_says_so() -> None:
    app = serve.app({"m": Agent(ScriptedModel("Hello.", media=answer))}, store=None)
    for path, fields in (
        (IMAGES, {"model": "m", "prompt": "x"}),
        (SPEECH, {"model": "m", "input": "x"}),
    ):
        answered = await exchange(app, "POST", path, fields)
        assert (answered.status, answered.json["error"]["param"]) == (400, "model")
    app = serve.app(
        gateway=serve.Gateway({"m": "anthropic:claude-x"}, keys={"anthropic": "k"}), store=None
    )
    answered = await exchange(app, "POST", SPEECH, {"model": "m", "input": "x"})
    assert (answered.status, "makes no speech here" in answered.json["error"]["message"]) == (
        400,
        True,
    )
    assert b"anthropic" not in answered.body.lower()


@given(st.data())
def test_mutated_forms_never_break_the_server(data: st.DataObject) -> None:
    headers, whole = form(
        {"model": "m", "prompt": "x", "image": PNG, "stream": data.draw(st.booleans())}
    )
    mutated = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(mutated) - 1))
        mutated[start : start + data.draw(st.integers(0, 9))] = data.draw(
            st.sampled_from([b"", b"\0", b"\r\n", b"\xff", b'"; name="n"', b"[]", b"[a]"])
        )
        if not mutated:
            break

    async def run() -> int:
        app, _ = gateway()
        return (await post(app, EDITS, headers, bytes(mutated))).status

    assert asyncio.run(run()) in (200, 400, 404, 413)


async def test_a_client_that_leaves_closes_the_upstreams_answer() -> None:
    app, upstream = gateway()
    server: Any = upstream.server
    left = await exchange(app, "POST", SPEECH, {"model": "m", "input": "x"}, leaves_after=1)
    assert not left.is_complete and server.open == 0
    assert msgspec.structs.asdict(upstream)["media"] is answer
