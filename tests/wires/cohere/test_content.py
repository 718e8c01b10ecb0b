"""The cohere wire: blocks of content, and what they cannot hold."""

from __future__ import annotations

import pytest

from dragoman.message import DataPart, FilePart, Message, ProviderPart, ThinkingPart
from dragoman.wires import cohere as wire


@pytest.mark.parametrize(
    ("piece", "what", "which", "text"),
    [
        (FilePart("f1"), "file", "file", "[media: file]"),
        (
            DataPart(b"%PDF", "application/pdf", "a.pdf"),
            "data",
            "application/pdf a.pdf",
            "[media: application/pdf] a.pdf",
        ),
        (ProviderPart("odd", {"other": {}}), "provider", "", None),
        (ThinkingPart("h"), "thinking", "", None),
    ],
)
def test_what_the_format_cannot_hold_is_a_loss(piece, what, which, text):
    losses = []
    texts = [{"type": "text", "text": "a"}, {"type": "text", "text": text}]
    written = wire.dump_messages([Message.user("a", piece)], losses=losses)
    assert written == [{"role": "user", "content": "a" if text is None else texts}]
    assert [(loss.message, loss.part, loss.what, loss.which) for loss in losses] == [
        (0, 1, what, which)
    ]


def test_a_file_of_a_provider_is_no_image_whatever_a_note_says():
    part = FilePart("f", native={"cohere:notes": {"spelling": {"type": "image_url"}}})
    assert wire.dump_messages([Message.user(part)]) == [
        {"role": "user", "content": "[media: file]"}
    ]
