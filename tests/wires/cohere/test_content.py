"""The cohere wire: blocks of content, and what they cannot hold."""

from __future__ import annotations

import pytest

from dragoman.message import DataPart, FilePart, Message, ProviderPart, ThinkingPart
from dragoman.wires import cohere as wire


@pytest.mark.parametrize(
    ("piece", "what", "told"),
    [
        (FilePart("f1"), "file", ["[media: file]"]),
        (DataPart(b"%PDF", "application/pdf"), "application/pdf", ["[media: application/pdf]"]),
        (ProviderPart("odd", {"other": {}}), "provider", []),
        (ThinkingPart("h"), "thinking", []),
    ],
)
def test_what_the_format_cannot_hold_is_a_loss(piece, what, told):
    losses = []
    texts = [{"type": "text", "text": text} for text in ["a", *told]]
    (said,) = wire.dump_messages([Message.user("a", piece)], losses=losses)
    assert said == {"role": "user", "content": texts if told else "a"}
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [(0, 1, what)]


def test_a_file_of_a_provider_is_no_image_whatever_a_note_says():
    part = FilePart("f", native={"cohere:notes": {"spelling": {"type": "image_url"}}})
    assert wire.dump_messages([Message.user(part)]) == [{"role": "user", "content": "[media: file]"}]
