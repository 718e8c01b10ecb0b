"""Files that a target cannot hold (decision 25): text as text, of anything else a short placeholder, never base64."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from dragoman import DataPart, LinkPart, Message, ToolCallPart, ToolResultPart, wires
from dragoman.loss import Loss
from dragoman.media import as_text, text_of
from support_switching import PROVIDERS, TARGETS

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
        for part in (DataPart(CLIP, "application/zip", "a.zip"), LinkPart(f"data:video/mp4,{ENCODED}", "video/mp4")):
            payload = msgspec.json.decode(dumped(wire, talk(part), targeted=targeted)[0])
            assert not [text for text in texts(payload) if ENCODED[:20] in text], place


def texts(value: Any, key: str = "") -> list[str]:
    """What a model reads as text."""
    if isinstance(value, str):
        return [value] if key in ("text", "content", "output", "result") else []
    entries = value.items() if isinstance(value, dict) else [(key, each) for each in value or ()]
    return [text for name, each in entries for text in texts(each, name)] if isinstance(value, (dict, list)) else []


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
def test_decision_25_text_is_told_by_type_and_by_bytes(data: bytes, mime_type: str, text: str | None) -> None:
    part = DataPart(data, mime_type, "a")
    assert text_of(part) == text
    assert as_text(part) == (f"[media: {mime_type}] a" if text is None else f"[media: {mime_type}] a\n{text}")
