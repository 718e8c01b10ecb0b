"""Content blocks and reasoning items of the openai_responses wire ↔ parts (D-138)."""

from __future__ import annotations

import msgspec
import pytest

from dragoman.fold import fold
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
)
from dragoman.wires import openai_responses as wire
from support.responses import (
    CALL,
    CUSTOM,
    PDF_PART,
    PNG,
    PNG_PART,
    THOUGHT,
    WHOLE,
    items,
    load,
    message_block,
    text_block,
    there_and_back,
)


def test_d138_images():
    part = DataPart(PNG, "image/png")
    assert items(Message.user("see", part)) == [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "see"},
                {
                    "type": "input_image",
                    "image_url": "data:image/png;base64,iVBORw==",
                    "detail": "auto",
                },
            ],
        }
    ]
    (message,) = there_and_back(
        {"role": "user", "content": [{"type": "input_image", "image_url": "https://x/y"}]}
    )
    assert isinstance(message.content[0], LinkPart)


def test_d138_pdf_is_a_file_and_other_data_a_text():
    pdf, text = DataPart(b"%PDF", "application/pdf", "a.pdf"), DataPart(b"a", "text/plain", "a.txt")
    (item,) = items(Message.user(pdf, text))
    assert item["content"] == [
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,JVBERg==",
        },
        {"type": "input_text", "text": "[media: text/plain] a.txt\na"},
    ]


def test_a_file_without_a_name_gets_one():
    (item,) = items(Message.user(DataPart(b"%PDF", "application/pdf")))
    assert item["content"][0]["filename"] == "file.pdf"


def test_d138_links():
    links = [LinkPart("https://x/a.png"), LinkPart("https://x/a.pdf"), LinkPart("https://x/a")]
    (item,) = items(Message.user(*links))
    assert item["content"] == [
        {"type": "input_image", "image_url": "https://x/a.png", "detail": "auto"},
        {"type": "input_file", "file_url": "https://x/a.pdf"},
        {"type": "input_text", "text": "https://x/a"},
    ]


def test_audio_and_files_by_id():
    audio = {"type": "input_audio", "input_audio": {"data": "YQ==", "format": "mp3"}}
    file = {"type": "input_file", "file_id": "file_1"}
    image = {"type": "input_image", "file_id": "file_2", "detail": "low"}
    (message,) = there_and_back({"role": "user", "content": [audio, file, image]})
    assert [type(piece) for piece in message.content] == [DataPart, FilePart, FilePart]
    assert message.content[0].mime_type == "audio/mpeg"
    by_hand = [DataPart(b"a", "audio/wav"), FilePart("f"), FilePart("g", "image/png")]
    assert [block["type"] for block in items(Message.user(*by_hand))[0]["content"]] == [
        "input_text",  # the API takes no audio, whatever its blocks are named
        "input_file",
        "input_image",
    ]


def test_thinking_of_several_pieces_is_read_as_one_and_written_as_it_was():
    pieces = [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]
    (message,) = load({"type": "reasoning", "id": "rs_1", "summary": pieces})
    assert message.thinking == "one\n\ntwo"
    edited = msgspec.structs.replace(message.content[0], text="three")
    summary = items(Message.model(edited))[0]["summary"]
    assert [piece["text"] for piece in summary] == ["three", ""]


def test_a_refusal_is_text_here_and_a_refusal_there():
    (message,) = there_and_back(
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}
    )
    assert message.text == "no"


UNSENT = {"created_by": "x", "async": True, "item_id": "y", "output_index": 3, "obfuscation": "z"}


@pytest.mark.parametrize(
    "item", [CALL, THOUGHT, CUSTOM, {"type": "brand_new", "id": "n"}], ids=lambda item: item["type"]
)
def test_fields_that_a_response_has_and_a_request_may_not(item):
    events = wire.load_response({**WHOLE, "output": [{**item, **UNSENT}]})
    (read,) = fold(events)
    never = ("status",) if item["type"] in ("reasoning", "custom_tool_call") else ()
    sent = {key: value for key, value in item.items() if key not in never}
    assert wire.dump_messages([read])["input"] == [sent]
    assert wire.dump_response(events)["output"] == [{**item, **UNSENT}]


def test_fields_of_a_text_that_a_request_may_not_have():
    blocks = [{**text_block("a", logprobs=[{"token": "a"}]), **UNSENT}, text_block("b")]
    events = wire.load_response({**WHOLE, "output": [message_block(*blocks)]})
    (read,) = fold(events)
    assert wire.dump_response(events)["output"] == [message_block(*blocks)]
    unsent = [{"type": "output_text", "text": each, "annotations": []} for each in "ab"]
    assert wire.dump_messages([read])["input"] == [message_block(*unsent)]


LINK = {"type": "input_image", "image_url": "https://a.test/a.png"}
PNG_URL = "data:image/png;base64,iVBORw=="


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "input_text", "text": "a"}, TextPart("a")),
        ({"type": "output_text", "text": "a", "x": 1}, TextPart("a", {"openai_responses": {"x": 1}, "openai_responses:notes": {"spelling": {"type": "output_text"}}})),
        ({"type": "text", "text": "a"}, TextPart("a", {"openai_responses:notes": {"spelling": {"type": "text"}}})),
        ({**LINK, "detail": "auto"}, LinkPart("https://a.test/a.png")),
        ({**LINK, "detail": "high"}, LinkPart("https://a.test/a.png", native={"openai_responses": {"detail": "high"}})),
        (LINK, LinkPart("https://a.test/a.png", native={"openai_responses:notes": {"spelling": {"detail": "absent"}}})),
        ({"type": "input_image", "image_url": PNG_URL, "detail": "auto"}, PNG_PART),
        ({"type": "input_image", "file_id": "f", "detail": "auto"}, FilePart("f", "image/*", native={"openai_responses": {}})),
        ({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}, PDF_PART),
        (
            {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERg=="},
            DataPart(b"%PDF", "application/pdf", None, {"openai_responses:notes": {"spelling": {"filename": "absent"}}}),
        ),
        ({"type": "input_file", "file_url": "https://a.test/a.pdf", "filename": "b"}, LinkPart("https://a.test/a.pdf", None, "b")),
        ({"type": "input_file", "file_url": "https://a.test/a"}, LinkPart("https://a.test/a", native={"openai_responses:notes": {"spelling": {"type": "input_file"}}})),
        ({"type": "input_file", "file_id": "f"}, FilePart("f", native={"openai_responses": {}})),
        ({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "mp3"}}, DataPart(b"RIFF", "audio/mpeg", native={"openai_responses:notes": {"spelling": {"type": "input_audio"}}})),
        (
            {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "flac", "x": 1}, "y": 2},
            DataPart(b"RIFF", "audio/flac", native={"openai_responses": {"y": 2, "input_audio": {"x": 1}}, "openai_responses:notes": {"spelling": {"type": "input_audio"}}}),
        ),
        *[(block, ProviderPart(block["type"], {"openai_responses": block, "openai_responses:notes": {"spelling": {"block": True}}})) for block in (
            {"type": "input_text", "text": ""}, {"type": "input_image"}, {"type": "input_file", "filename": "a"}, {"type": "input_file", "file_data": "x"},
            {"type": "input_file", "file_id": "f", "filename": "a"}, {"type": "input_audio", "input_audio": {"data": "?", "format": "mp3"}}, {"type": "input_audio"}, {"type": "new"},
        )],
    ],
)  # fmt: skip
def test_d138_a_block_to_the_last_field(block, part):
    payload = {"input": [{"role": "user", "content": [block, {"type": "input_text", "text": "z"}]}]}
    (read,) = wire.load_messages(payload)
    assert read.content == (part, TextPart("z"))
    assert wire.dump_messages([read]) == payload


def test_d138_files_of_openai_are_the_same_for_both_of_its_apis():
    for native, block in (
        ({"openai_chat": {}}, {"type": "input_file", "file_id": "f"}),
        ({"anthropic": {}}, {"type": "input_text", "text": "[media: file]"}),
        ({"anthropic": {}, "openai_chat": {}}, {"type": "input_file", "file_id": "f"}),
        (None, {"type": "input_file", "file_id": "f"}),
    ):
        message_events = Message.user("a", FilePart("f", native=native))
        assert wire.dump_messages([message_events])["input"][0]["content"][1] == block


@pytest.mark.parametrize(
    ("fields", "native"),
    [
        ({"summary": []}, {"openai_responses": {"id": "rs"}}),
        ({}, {"openai_responses": {"id": "rs"}, "openai_responses:notes": {"spelling": {"pieces": {}}}}),
        ({"summary": [], "content": []}, {"openai_responses": {"id": "rs"}, "openai_responses:notes": {"spelling": {"pieces": {"summary": [], "content": []}}}}),
        ({"summary": None}, {"openai_responses": {"id": "rs", "summary": None}, "openai_responses:notes": {"spelling": {"pieces": {}}}}),
    ],
)  # fmt: skip
def test_decision_14_thinking_without_a_word_as_it_is_kept(fields, native):
    item = {"type": "reasoning", "id": "rs", **fields}
    (read,) = wire.load_messages({"input": [item]})
    assert read.content == (ThinkingPart("", native),)
    written = wire.dump_messages([read])["input"]
    assert written == [item if fields else {**item, "summary": []}]
