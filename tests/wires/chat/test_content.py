"""The wires that share the shape of Chat Completions: which block says a file, by its type, and
what of it is lost."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import wires
from dragoman.message import DataPart, LinkPart, Message, Origin

DATA = "YWJj"
LINK = "https://a.test/a"


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def audio(heard: str) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": DATA, "format": heard}}


def document(mime_type: str) -> dict[str, Any]:
    return {"type": "document_url", "document_url": f"data:{mime_type};base64,{DATA}"}


HEARD = {"type": "input_audio", "input_audio": DATA}
DATA_BLOCKS: dict[str, dict[str, Any]] = {
    "openai_chat": {
        **{kind: image(f"data:{kind};base64,{DATA}") for kind in ("image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp")},
        "audio/wav": audio("wav"), "audio/x-wav": audio("wav"), "audio/mpeg": audio("mp3"), "audio/mp3": audio("mp3"),
        "application/pdf": {"type": "file", "file": {"filename": "file.pdf", "file_data": f"data:application/pdf;base64,{DATA}"}},
        "image/tiff": None, "audio/flac": None, "video/mp4": None,
        "application/x": "\nabc", "application/octet-stream": "\nabc", "text/plain": "\nabc",
    },
    "mistral": {
        **{kind: image(f"data:{kind};base64,{DATA}") for kind in ("image/png", "image/jpeg", "image/gif", "image/webp")},
        "audio/wav": HEARD, "audio/x-wav": HEARD, "audio/mpeg": HEARD, "audio/flac": HEARD,
        "application/pdf": document("application/pdf"), "application/x": document("application/x"), "text/plain": document("text/plain"),
        "application/octet-stream": "\nabc", "image/tiff": None, "video/mp4": None,
    },
}  # fmt: skip
LINKED: dict[str, dict[str | None, Any]] = {
    "openai_chat": {
        None: image(LINK), "image/png": image(LINK), "audio/wav": None, "application/pdf": None, "video/mp4": None, "text/plain": None,
    },
    "mistral": {
        None: image(LINK), "image/png": image(LINK), "audio/wav": {"type": "input_audio", "input_audio": LINK}, "video/mp4": None,
        **{key: {"type": "document_url", "document_url": LINK} for key in ["application/pdf", "text/plain"]},
    },
}  # fmt: skip
WHY = {
    "openai_chat": "the API has no block for it; a text tells of it",
    "mistral": "the API has no block for it; a text tells of it",
}


def sent(name: str, part: DataPart | LinkPart, **how: Any) -> tuple[Any, list[tuple[str, str]]]:
    losses: list[Any] = []
    (message,) = wires.get(name).dump_messages(
        [Message.user(part)], losses=losses, target=Origin("q"), **how
    )
    content = message["content"]
    return content if isinstance(content, str) else content[0], [
        (loss.what, loss.why) for loss in losses
    ]


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, kinds in DATA_BLOCKS.items() for kind in kinds]
)
def test_data_is_said_by_the_block_of_its_type(name: str, kind: str) -> None:
    expected = DATA_BLOCKS[name][kind]
    content, losses = sent(name, DataPart(b"abc", kind))
    if isinstance(expected, dict):
        assert (content, losses) == (expected, [])
    else:
        assert content == f"[media: {kind}]{expected or ''}"
        assert losses == ([] if expected else [("data", WHY[name])])


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, kinds in LINKED.items() for kind in kinds]
)
def test_a_link_is_said_by_the_block_of_its_type(name: str, kind: str | None) -> None:
    expected = LINKED[name][kind]
    content, losses = sent(name, LinkPart(LINK, kind))
    if expected is None:
        assert (content, losses) == (f"[media: {kind}] {LINK}", [("link", WHY[name])])
    else:
        assert (content, losses) == (expected, [])


@pytest.mark.parametrize(
    ("blocks", "part", "block"),
    [
        ({"video": "video_url"}, DataPart(b"abc", "video/mp4"), {"video_url": {"url": f"data:video/mp4;base64,{DATA}"}}),
        ({"video": "video_url"}, LinkPart(LINK, "video/mp4"), {"video_url": {"url": LINK}}),
        ({"application": "file"}, DataPart(b"abc", "application/x"), {"file": {"filename": "file.x", "file_data": f"data:application/x;base64,{DATA}"}}),
        ({"application": "file"}, LinkPart(LINK, "application/x", "n"), {"file": {"filename": "n", "file_data": LINK}}),
        ({"application/x": "file_url"}, DataPart(b"abc", "application/x"), {"file_url": {"url": DATA}}),
        ({"application": "file_url"}, LinkPart(LINK, "application/x"), {"file_url": {"url": LINK}}),
    ],
)  # fmt: skip
def test_vendors_take_more(
    blocks: dict[str, str], part: DataPart | LinkPart, block: dict[str, Any]
) -> None:
    quirks: Any = wires.get("openai_chat")
    content, losses = sent("openai_chat", part, quirks=quirks.Quirks(blocks=blocks))
    assert (content, losses) == ({"type": next(iter(block)), **block}, [])


@pytest.mark.parametrize("name", ["openai_chat", "mistral"])
def test_a_name_that_has_no_place_is_lost(name: str) -> None:
    _, losses = sent(name, DataPart(b"abc", "image/png", "n"))
    assert losses == [("name", "the API knows no name of such a file, n")]
    content, losses = sent(name, DataPart(b"abc", "application/pdf", "n"))
    assert losses == [] and "n" in (
        content.get("document_name"),
        content.get("file", {}).get("filename"),
    )
