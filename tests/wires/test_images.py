"""Endpoints for images on each wire that has them, both ways (issue N). No recording shows them: the
official libraries' types do."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types import ImageEditStreamEvent, ImageGenStreamEvent, ImagesResponse
from pydantic import TypeAdapter

from dragoman import DataPart, LinkPart, Message, Usage, fold, unfold, wires
from dragoman.codec.multipart import load_form
from dragoman.errors import ContentRefusedError, DecodeError, InvalidRequestError, StreamCutError
from dragoman.event import PARTIAL_IMAGE, Custom, Event, PartFinished, RunError
from dragoman.media_request import ImageRequest
from dragoman.message import FinishReason
from dragoman.wires.openai_chat import Quirks

PNG, JPEG = b"\x89PNG\r\n\x1a\n...", b"\xff\xd8\xff..."
NAMES = [name for name in wires.names("model") if wires.media(name, "images")]
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(str.strip)
IMAGES = st.builds(
    DataPart,
    st.binary(max_size=40).map(lambda data: PNG + data),
    st.just("image/png"),
    st.just("a.png"),
)
REQUESTS = st.builds(
    ImageRequest,
    model=TEXTS,
    prompt=TEXTS,
    images=st.lists(IMAGES, max_size=3).map(tuple),
    mask=st.none(),
    count=st.none() | st.integers(1, 10),
    size=st.none() | st.sampled_from(["1024x1024", "auto"]),
    mime_type=st.none() | st.sampled_from(["image/png", "image/webp", "image/jpeg"]),
    stream=st.booleans(),
    options=st.dictionaries(st.sampled_from(["quality", "background"]), TEXTS),
)


def endpoint(name: str = "openai_chat") -> Any:
    found = wires.media(name, "images")
    assert found is not None
    return found


def read(request: ImageRequest, body: Any) -> list[Event]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    decoder = endpoint().decoder(request)
    return [*decoder.feed(data), *decoder.close()]


def failure(request: ImageRequest, body: Any) -> Any:
    last = read(request, body)[-1]
    assert isinstance(last, RunError), last
    return last.error


ASKED = ImageRequest("m", "a cat")


def test_a_wire_says_whether_it_makes_images() -> None:
    assert NAMES == ["openai_chat", "openai_responses"]
    assert wires.media_client("google", "images") is not None
    assert wires.media_client("anthropic", "images") is None


@given(REQUESTS, st.sampled_from(["form", "json"]))
def test_every_request_survives_its_wire(request: ImageRequest, edits: Any) -> None:
    http = endpoint().dump_http(request, quirks=Quirks(image_edits=edits))
    fields = http.body
    if isinstance(fields, bytes):
        fields = load_form(fields, http.headers["content-type"])
    again = endpoint().load_request(
        json.loads(json.dumps(fields)) if edits == "json" else fields, path=http.path
    )
    nameless = tuple(DataPart(part.data, part.mime_type) for part in request.images)
    expected = request if isinstance(http.body, bytes) else request.replace(images=nameless)
    assert again == expected
    assert endpoint().dump_http(again, quirks=Quirks(image_edits=edits)).path == http.path


@given(
    st.lists(IMAGES.map(lambda part: DataPart(part.data, part.mime_type)), min_size=1, max_size=3),
    st.none() | st.integers(0, 1000),
    st.booleans(),
)
def test_every_answer_survives_its_wire(images: Any, tokens: int | None, as_urls: bool) -> None:
    usage = (
        None
        if tokens is None
        else Usage(input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1)
    )
    message = Message.model(*images).replace(usage=usage, finish_reason=FinishReason.stop)
    form = {"response_format": "url"} if as_urls else {}
    request = endpoint().load_request({"prompt": "x", "n": len(images), **form})
    media_type, body = endpoint().dump_response(message, request=request)
    assert media_type == "application/json"
    if usage is not None:  # what the official library expects of them
        details = {"image_tokens": 0, "text_tokens": 0}
        told = json.loads(body)
        told["usage"]["input_tokens_details"] = details
        ImagesResponse.model_validate(told)
    [again] = fold(read(request, body))
    assert (again.content, again.usage) == (message.content, usage)


def test_a_stream_shows_images_as_they_are_drawn() -> None:
    """Both ways: what the encoder writes is of the official library's types, and is read again."""
    for images, types in (
        ((), ImageGenStreamEvent),
        ((DataPart(PNG, "image/png"),), ImageEditStreamEvent),
    ):
        request = ASKED.replace(stream=True, images=images, count=2)
        told = {
            "background": "auto",
            "created_at": 1,
            "output_format": "png",
            "quality": "low",
            "size": "auto",
        }
        details = {"input_tokens_details": {"image_tokens": 1, "text_tokens": 2}}
        usage = Usage(input_tokens=3, output_tokens=4, total_tokens=7)
        message = Message.model(DataPart(PNG, "image/png"), DataPart(PNG + b"2", "image/png"))
        message = message.replace(
            usage=usage, finish_reason=FinishReason.stop, metadata={**told, "usage": details}
        )
        start, *rest = unfold([message])
        data = b64encode(PNG).decode()
        partial = Custom(
            PARTIAL_IMAGE, {"partial_image_b64": data, "partial_image_index": 0, **told}
        )
        encoder = endpoint().encoder(request)
        stream = b"".join([*map(encoder.feed, [start, partial, *rest]), encoder.close()])
        objects = [
            json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: ")
        ]
        assert [item["type"].partition(".")[2] for item in objects] == [
            "partial_image", "completed", "completed",
        ]  # fmt: skip
        for item in objects[::2]:
            TypeAdapter(types).validate_python(item)
        events = read(request, stream)
        assert partial in events
        [again] = fold(events)
        assert (again.content, again.usage) == (message.content, usage)
        assert again.metadata == message.metadata


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_stream_comes_in_any_pieces(size: int) -> None:
    data = b64encode(PNG).decode()
    stream = b"".join(
        b"event: %b\ndata: %b\n\n"
        % (kind.encode(), json.dumps({"type": kind, "b64_json": data}).encode())
        for kind in ("image_generation.partial_image", "image_generation.completed")
    )
    decoder = endpoint().decoder(ASKED)
    events = [
        event
        for at in range(0, len(stream), size)
        for event in decoder.feed(stream[at : at + size])
    ]
    [message] = fold([*events, *decoder.close()])
    assert message.content == (DataPart(PNG, "image/png"),)
    decoder = endpoint().decoder(ASKED)
    [*events, last] = [*decoder.feed(stream[: len(stream) // 2]), *decoder.close()]
    assert isinstance(last, RunError) and isinstance(last.error, StreamCutError)


def test_the_type_of_an_image_is_what_its_bytes_say() -> None:
    entry = {"b64_json": b64encode(JPEG).decode()}
    [message] = fold(
        read(ASKED.replace(mime_type="image/png"), {"data": [entry], "output_format": "png"})
    )
    assert message.content == (DataPart(JPEG, "image/jpeg"),)
    entry = {"b64_json": b64encode(b"<svg/>").decode(), "revised_prompt": "A cat."}
    [message] = fold(read(ASKED, {"data": [entry], "output_format": "svg"}))
    assert isinstance(part := message.content[0], DataPart)
    assert (part.mime_type, part.native) == (
        "image/svg+xml",
        {"openai_chat": {"revised_prompt": "A cat."}},
    )
    [message] = fold(
        read(ASKED, {"data": [{"b64_json": "data:image/png;base64," + b64encode(PNG).decode()}]})
    )
    assert message.content == (DataPart(PNG, "image/png"),)
    [message] = fold(read(ASKED, {"data": [{"url": "https://x.example/1.png"}]}))
    assert message.content == (LinkPart("https://x.example/1.png"),)


def test_a_refused_image_is_told_as_such() -> None:
    body = {
        "error": {
            "code": "moderation_blocked",
            "message": "Your request was rejected by the safety system.",
            "type": "image_generation_user_error",
        }
    }
    assert isinstance(failure(ASKED, body), ContentRefusedError)
    stream = b"data: " + json.dumps({"type": "error", **body}).encode() + b"\n\n"
    assert isinstance(failure(ASKED, stream), ContentRefusedError)
    encoder = endpoint().encoder(ASKED)
    assert isinstance(
        failure(ASKED, encoder.feed(RunError(ContentRefusedError("refused: content policy")))),
        ContentRefusedError,
    )


@pytest.mark.parametrize(
    "body",
    [
        b"", b"no", b"[]", {}, {"data": []}, {"data": [{}] * 17}, {"data": [1]}, {"data": [{}]}, {"data": [{"b64_json": "%%"}]},
        {"data": [{"b64_json": "\ud800"}]}, {"data": None}, b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_answer_is_an_error_of_the_tree(body: Any) -> None:
    assert isinstance(failure(ASKED, body), DecodeError | StreamCutError)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": " "}, "prompt"),
        ({"prompt": 1}, "prompt"),
        ({"prompt": "x", "n": 0}, "n"),
        ({"prompt": "x", "n": 11}, "n"),
        ({"prompt": "x", "n": "2x"}, "n"),
        ({"prompt": "x", "n": True}, "n"),
        ({"prompt": "x", "n": "9" * 5000}, "n"),
        ({"prompt": "x", "size": 1}, "size"),
        ({"prompt": "x", "output_format": "bmp"}, "output_format"),
        ({"prompt": "x", "response_format": "jpg"}, "response_format"),
        ({"prompt": "x", "partial_images": 4}, "partial_images"),
        ({"prompt": "x", "stream": "yes"}, "stream"),
        ({"prompt": "x", "image": "cat.png"}, "image"),
        ({"prompt": "x", "image": {"file_id": "file-1"}}, "image"),
        ({"prompt": "x", "image": "file:///etc/passwd"}, "image"),
        ({"prompt": "x", "image": DataPart(b"%PDF", "application/pdf")}, "image"),
        ({"prompt": "x", "image": DataPart(b"", "image/png")}, "image"),
        ({"prompt": "x", "image": [DataPart(PNG, "image/png")] * 17}, "image"),
        ({"prompt": "x", "mask": "https://x.example/m.png"}, "mask"),
        ({"prompt": "x", "model": 7}, "model"),
    ],
)
def test_a_wrong_field_of_a_request_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        endpoint().load_request(
            body, path="/v1/images/edits" if "image" in body else "/images/generations"
        )
    assert caught.value.field == field


def test_an_edit_needs_an_image_and_what_is_no_edit_has_none() -> None:
    image = DataPart(PNG, "image/png")
    for body, path in (
        ({"prompt": "x"}, "/v1/images/edits"),
        ({"prompt": "x", "image": image}, "/v1/images/generations"),
    ):
        with pytest.raises(InvalidRequestError, match="edit"):
            endpoint().load_request(body, path=path)
    link = ASKED.replace(images=(LinkPart("https://x.example/1.png"),))
    with pytest.raises(InvalidRequestError, match="no links"):
        endpoint().dump_http(link)
    body = endpoint().dump_http(link, quirks=Quirks(image_edits="json")).body
    assert body["image"] == {"type": "image_url", "url": "https://x.example/1.png"}
    with pytest.raises(InvalidRequestError, match="image/bmp"):
        endpoint().dump_http(ASKED.replace(mime_type="image/bmp"))


def test_gemini_is_asked_by_its_chat() -> None:
    google: Any = wires.media_client("google", "images")
    image = DataPart(PNG, "image/png")
    http = google.dump_http(
        ImageRequest(
            "g",
            "a cat",
            (image,),
            size="1792x1024",
            options={"generationConfig": {"temperature": 1}},
        )
    )
    assert http.path == "/models/g:generateContent"
    assert http.body["generationConfig"] == {
        "responseModalities": ["IMAGE"],
        "imageConfig": {"aspectRatio": "16:9", "imageSize": "2K"},
        "temperature": 1,
    }
    [said] = wires.get("google").load_request(http.body).messages
    assert (said.text, said.parts[1]) == ("a cat", image)
    sizes = {
        None: None,
        "auto": None,
        "4K": {"imageSize": "4K"},
        "21:9": {"aspectRatio": "21:9"},
        "1024x1536": {"aspectRatio": "2:3"},
    }
    for size, config in sizes.items():
        body = google.dump_http(ImageRequest("g", "x", size=size)).body
        assert body["generationConfig"].get("imageConfig") == config
    for wrong, field in (
        ({"size": "large"}, "size"),
        ({"size": "0x9"}, "size"),
        ({"count": 2}, "count"),
        ({"mask": image}, "mask"),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            google.dump_http(ImageRequest("g", "x").replace(**wrong))
        assert caught.value.field == field
    answer = wires.get("google").dump_response(
        unfold([Message.model(DataPart(PNG, "image/png"))]), id="1", model="g"
    )
    decoder = google.decoder(ImageRequest("g", "x"))
    finished = [
        event
        for event in [*decoder.feed(json.dumps(answer).encode()), *decoder.close()]
        if isinstance(event, PartFinished)
    ]
    assert [event.part for event in finished] == [DataPart(PNG, "image/png")]
