"""The field `content` of a message: one text, or a list of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.codec.message_list import ABSENT, dump_content, is_plain_text, load_content
from dragoman.errors import HistoryError
from dragoman.message import Content, ProviderPart, TextPart

TEXT = {"type": "text", "text": "Hi."}
IMAGE = {"type": "image", "url": "u"}


def load(block: Mapping[str, Any]) -> Content:
    return (
        TextPart(block["text"])
        if block["type"] == "text"
        else ProviderPart("image", {"acme": dict(block)})
    )


@pytest.mark.parametrize("empty", ["", None, ABSENT])
@pytest.mark.parametrize(
    "message", [{}, *({"content": each} for each in ("", None, [], "Hi.", [TEXT], [TEXT, IMAGE]))]
)
def test_a_content_comes_back_as_it_was(message: dict[str, Any], empty: object) -> None:
    form: dict[str, Any] = {}
    pieces = load_content(message, empty, form, load)
    blocks = [TEXT if isinstance(piece, TextPart) else IMAGE for piece in pieces]
    assert dump_content(blocks, empty, form) == message


def test_a_list_of_which_nothing_is_left_is_written_as_no_content_usually_is() -> None:
    assert dump_content([], ABSENT, {"content": "list"}) == {}
    assert dump_content([], None, {"content": "list"}) == {"content": None}


def test_several_texts_are_one_where_nothing_else_is_taken() -> None:
    assert dump_content([TEXT, TEXT], "", {}, string_only=True) == {"content": "Hi.Hi."}
    assert dump_content([TEXT, IMAGE], "", {}, string_only=True) == {"content": [TEXT, IMAGE]}


@pytest.mark.parametrize("content", [1, {"type": "text"}, ["Hi."], [TEXT, None]])
def test_what_is_neither_a_text_nor_blocks_is_refused(content: object) -> None:
    with pytest.raises(HistoryError, match="of a user message is neither"):
        load_content({"role": "user", "content": content}, "", {}, load)


@pytest.mark.parametrize(
    "blocks", [[], [TEXT, TEXT], [{**TEXT, "id": 1}], [{"type": "text", "text": ""}], [IMAGE]]
)
def test_only_one_text_with_nothing_beside_it_is_plain(blocks: list[dict[str, Any]]) -> None:
    assert is_plain_text([TEXT])
    assert not is_plain_text(blocks)
