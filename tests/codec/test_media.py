"""Files that a target cannot hold (decision 25): text as text, of anything else a short
placeholder, never base64."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from dragoman import DataPart, FilePart, LinkPart, Message, ToolCallPart, ToolResultPart, wires
from dragoman.codec.media import (
    IMAGES,
    audio_type,
    decode_base64,
    describe_as_text,
    dump_data_url,
    guess_media_type,
    load_url,
    media_label,
    read_media_text,
)
from dragoman.loss import Loss
from support.switching import PROVIDERS, TARGETS

CLIP = bytes(range(256)) * 40
ENCODED = b64encode(CLIP[:30]).decode()
PLACES: dict[str, Any] = {
    "prompt": lambda part: [Message.user("See", part)],
    "system": lambda part: [Message.system("Be brief.", part), Message.user("See")],
    "answer": lambda part: [Message.user("See"), Message.model("So", part), Message.user("And?")],
    "result": lambda part: [
        Message.user("See"),
        Message.model(ToolCallPart("c1", "look", {})),
        Message.user(ToolResultPart("c1", "look", (part,))),
    ],
}
UNKNOWN = [
    ("clip.xyz", "application/octet-stream"),
    ("clip.bin", "application/x-unheard-of"),
    ("clip.mp4", "video/mp4"),
]


def dumped(wire: str, messages: list[Message], *, targeted: bool = True) -> tuple[str, list[Loss]]:
    losses: list[Loss] = []
    target, quirks = (TARGETS[wire], PROVIDERS[wire].quirks) if targeted else (None, None)
    payload = wires.get(wire).dump_messages(messages, target=target, quirks=quirks, losses=losses)
    return msgspec.json.encode(payload).decode(), losses


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("name", "mime_type"), UNKNOWN)
@pytest.mark.parametrize("wire", TARGETS)
def test_decision_25_what_a_target_cannot_hold_is_a_short_placeholder_and_a_loss(
    wire: str, name: str, mime_type: str, place: str
) -> None:
    payload, losses = dumped(wire, PLACES[place](DataPart(CLIP, mime_type, name)))
    if ENCODED[:20] in payload:  # the API has a field for it
        assert "[media:" not in payload
    else:
        assert len(payload) < 1000
        assert losses


@pytest.mark.parametrize("targeted", [True, False])
@pytest.mark.parametrize("wire", TARGETS)
def test_decision_25_base64_is_never_part_of_a_text(wire: str, targeted: bool) -> None:
    for place, talk in PLACES.items():
        for part in (
            DataPart(CLIP, "application/zip", "a.zip"),
            LinkPart(f"data:video/mp4,{ENCODED}", "video/mp4"),
        ):
            payload = msgspec.json.decode(dumped(wire, talk(part), targeted=targeted)[0])
            assert not [text for text in texts(payload) if ENCODED[:20] in text], place


def texts(value: Any, key: str = "") -> list[str]:
    """What a model reads as text."""
    if isinstance(value, str):
        return [value] if key in ("text", "content", "output", "result") else []
    entries = value.items() if isinstance(value, dict) else [(key, each) for each in value or ()]
    return (
        [text for name, each in entries for text in texts(each, name)]
        if isinstance(value, (dict, list))
        else []
    )


@pytest.mark.parametrize("place", ["prompt", "result"])
@pytest.mark.parametrize("wire", TARGETS)
def test_decision_25_text_files_arrive_as_they_are_and_are_no_loss(wire: str, place: str) -> None:
    part = DataPart(b"SELECT 1 -- \xc3\xbc", "application/octet-stream", "all.sql")
    payload, losses = dumped(wire, PLACES[place](part))
    encoded = b64encode(part.data).decode()
    assert "SELECT 1 -- ü" in payload or encoded in payload
    assert "all.sql" in payload or wire == "google"
    assert [loss for loss in losses if loss.what not in ("media", "texts", "order")] == []


@pytest.mark.parametrize(
    ("data", "mime_type", "text"),
    [
        (b"a\tb\r\n", "text/plain", "a\tb\r\n"),
        (b"\x1b[31mred", "text/x-log", "\x1b[31mred"),
        (b"{}", "application/vnd.acme+json; charset=utf-8", "{}"),
        (b"<svg/>", "image/svg+xml", "<svg/>"),
        (b"let a = 1", "video/mp2t", "let a = 1"),
        (b"so", "application/octet-stream", "so"),
        (b"", "text/plain", ""),
        (b"\xff", "text/plain", None),
        (b"a\0b", "text/plain", None),
        (b"plain", "image/png", None),
        (b"%PDF-1.4", "application/pdf", None),
        (b"PK\x03\x04", "application/zip", None),
    ],
)
def test_decision_25_text_is_told_by_type_and_by_bytes(
    data: bytes, mime_type: str, text: str | None
) -> None:
    part = DataPart(data, mime_type, "a")
    assert read_media_text(part) == text
    assert describe_as_text(part) == (
        f"[media: {mime_type}] a" if text is None else f"[media: {mime_type}] a\n{text}"
    )


def test_a_data_url_holds_its_file_and_gives_it_back() -> None:
    part = DataPart(b"\x00\xff", "image/png", "a.png")
    assert dump_data_url(part) == "data:image/png;base64,AP8="
    assert load_url(dump_data_url(part), "a.png") == part
    assert load_url("data:text/plain;charset=utf-8;base64,eA==") == DataPart(
        b"x", "text/plain;charset=utf-8"
    )
    for url in ("data:;base64,eA==", "data:a/b;base64,eA", "data:a/b;base64,e A==", "data:a/b,x", "x;base64,eA==", "https://e/a.png"):  # fmt: skip
        assert load_url(url, "n") == LinkPart(url, name="n")


@pytest.mark.parametrize(
    ("text", "data"),
    [("eA==", b"x"), ("", b""), ("eA", None), ("eB==", None), ("e\nA==", None), ("é", None), (None, None), (3, None), ("_-8=", None)],
)  # fmt: skip
def test_base64_is_read_where_it_can_be_given_back(text: Any, data: bytes | None) -> None:
    assert decode_base64(text) == data


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"RIFF....WAVE", "audio/wav"),
        (b"RIF", None),
        (b"ID3\x04", "audio/mpeg"),
        (b"ID", None),
        (b"\xff\xe0", "audio/mpeg"),
        (b"\xff\xfb\x90", "audio/mpeg"),
        (b"\xff\xdf", None),
        (b"\xfe\xfb", None),
        (b"\xff", None),
        (b"OggS\x00", "audio/ogg"),
        (b"fLaC\x00", "audio/flac"),
        (b"", None),
    ],
)
def test_audio_is_known_by_how_it_begins(data: bytes, kind: str | None) -> None:
    assert audio_type(data) == kind


@pytest.mark.parametrize(
    ("part", "name", "text"),
    [
        (DataPart(b"\0", "video/mp4", "a.mp4"), "video/mp4 a.mp4", "[media: video/mp4] a.mp4"),
        (DataPart(b"\0", "video/mp4"), "video/mp4", "[media: video/mp4]"),
        (DataPart(b"hi", "text/plain"), "text/plain", "[media: text/plain]\nhi"),
        (
            LinkPart("https://e/a.png?x=1"),
            "image/png https://e/a.png?x=1",
            "[media: image/png] https://e/a.png?x=1",
        ),
        (
            LinkPart("https://e/a", "image/gif", name="n"),
            "image/gif https://e/a",
            "[media: image/gif] https://e/a",
        ),
        (LinkPart("https://e/a"), "file https://e/a", "[media: file] https://e/a"),
        (
            LinkPart("http://[bad/a.png"),
            "file http://[bad/a.png",
            "[media: file] http://[bad/a.png",
        ),
        (LinkPart("data:a/b,x", "a/b", name="n"), "a/b n", "[media: a/b] n"),
        (LinkPart("data:a/b,x", "a/b"), "a/b", "[media: a/b]"),
        (FilePart("f1", "a/b", "n"), "a/b n", "[media: a/b] n"),
        (FilePart("f1", None), "file", "[media: file]"),
    ],
)
def test_what_stands_for_a_file(part: Any, name: str, text: str) -> None:
    assert (media_label(part), describe_as_text(part)) == (name, text)


@pytest.mark.parametrize("byte", range(256))
def test_bytes_that_no_text_holds(byte: int) -> None:
    odd = byte > 0x7F or (byte < 0x20 and byte not in b"\t\n\f\r\x1b") or byte == 0x7F
    assert (read_media_text(DataPart(bytes([byte]), "text/plain")) is None) == odd


@pytest.mark.parametrize(
    ("mime_type", "is_text"),
    [
        ("IMAGE/PNG", False),
        ("audio/x", False),
        ("video/x", False),
        ("font/woff", False),
        ("application/pdf", False),
        ("application/pdfx", True),
        ("image/svg+xml", True),
        ("image/x+json", True),
        ("image/x;a=+json", False),
        ("image/x+jsonx", False),
        ("video/MP2T", True),
        ("text/html", True),
    ],
)
def test_types_of_text(mime_type: str, is_text: bool) -> None:
    assert (read_media_text(DataPart(b"x", mime_type)) == "x") is is_text
    assert read_media_text(LinkPart("https://e/a.txt", mime_type)) is None


def test_types_are_guessed_from_the_path_of_a_url() -> None:
    assert guess_media_type("https://e/a.jpg?b.png#c.gif") == "image/jpeg"
    assert guess_media_type("a.pdf") == "application/pdf"
    assert guess_media_type("https://e/a") is None
    assert guess_media_type("http://[bad") is None


def test_the_images_that_all_take() -> None:
    assert IMAGES == ("image/jpeg", "image/png", "image/gif", "image/webp")
