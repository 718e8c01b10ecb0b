"""The anthropic wire: blocks of content there and back (D-107, D-108, D-146, decisions 2, 14 and
27)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from dragoman import wires
from dragoman.fold import unfold
from dragoman.loss import Loss, Lost
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import anthropic as wire
from support.anthropic import HERE, SIGNED, dump, losses, payload_of, read_back, there_and_back


def test_d107_decision_2_text_and_calls_keep_their_order():
    blocks = [
        {"type": "text", "text": "I look"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        {"type": "text", "text": "and"},
        {"type": "text", "text": "look"},
    ]
    pieces = read_back("assistant", *blocks)
    assert [type(piece) for piece in pieces] == [TextPart, ToolCallPart, TextPart, TextPart]
    assert dump(Message.model(*pieces)) == [{"role": "assistant", "content": blocks}]


def test_d107_d146_signed_thinking_goes_back_in_its_place_to_its_origin():
    user = Message.user("Hi")
    model = Message.model(SIGNED, "Yes", ToolCallPart("a", "f")).replace(origin=HERE)
    written = dump(user, model, target=HERE)[1]["content"]
    assert written[0] == {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
    assert "hm" not in json.dumps(dump(Message.user(model.text)))


def test_thinking_that_nobody_signed_is_left_out_unless_the_endpoint_takes_it():
    talk = [Message.user("Hi"), Message.model(ThinkingPart("hm"), "Yes")]
    assert dump(*talk)[1] == {"role": "assistant", "content": "Yes"}
    assert losses(*talk) == [(1, 0, "thinking")]
    taken = dump(*talk, quirks=wire.Quirks(unsigned_thinking=True))[1]["content"]
    assert taken[0] == {"type": "thinking", "thinking": "hm"}


def test_thinking_of_every_kind_survives():
    thinking = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "thinking", "thinking": "unsigned"},
        {"type": "redacted_thinking", "data": "ZW5j"},
        {"type": "text", "text": "Yes"},
    ]
    pieces = read_back("assistant", *thinking)
    assert [type(piece) for piece in pieces] == [ThinkingPart] * 4 + [TextPart]
    message = Message.model(*pieces)
    assert message.thinking == "hmunsigned"
    assert message.parts == (TextPart("Yes"),)


PNG = base64.b64encode(b"\x89PNG").decode()


@pytest.mark.parametrize(
    ("piece", "written"),
    [
        (
            DataPart(b"\x89PNG", "image/png"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        ),
        (
            LinkPart("https://x/a.jpg"),
            {"type": "image", "source": {"type": "url", "url": "https://x/a.jpg"}},
        ),
        (
            LinkPart("https://x/a"),
            {"type": "image", "source": {"type": "url", "url": "https://x/a"}},
        ),
        (
            LinkPart("https://x/a.pdf"),
            {"type": "document", "source": {"type": "url", "url": "https://x/a.pdf"}},
        ),
        (
            LinkPart("https://x/a", "application/pdf"),
            {"type": "document", "source": {"type": "url", "url": "https://x/a"}},
        ),
        (
            FilePart("file_1", "image/png"),
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        ),
        (
            FilePart("file_1", name="a"),
            {"type": "document", "title": "a", "source": {"type": "file", "file_id": "file_1"}},
        ),
        (FilePart("file_1", "application/zip"), {"type": "container_upload", "file_id": "file_1"}),
        (
            DataPart(b"%PDF", "application/pdf", "a.pdf"),
            {
                "type": "document",
                "title": "a.pdf",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            },
        ),
        (
            DataPart("ü".encode(), "text/plain"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "ü"},
            },
        ),
    ],
)
def test_d108_media_that_the_api_takes(piece, written):
    talk = [Message.user("see", piece)]
    assert dump(*talk)[0]["content"][1] == written
    assert losses(*talk) == []


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        (DataPart(b"RIFF", "audio/wav", "a.wav"), "[media: audio/wav] a.wav"),
        (DataPart(b"\xff", "text/plain"), "[media: text/plain]"),
        (LinkPart("https://x/a.html"), "[media: text/html] https://x/a.html"),
        (LinkPart("https://[", "video/mp4"), "[media: video/mp4] https://["),
    ],
)
def test_d108_other_media_become_a_text_and_a_loss(piece, text):
    talk = [Message.user("see", piece)]
    assert dump(*talk)[0]["content"][1] == {"type": "text", "text": text}
    assert [loss[:2] for loss in losses(*talk)] == [(0, 1)]


@pytest.mark.parametrize(
    "mime_type", ["text/markdown", "image/svg+xml", "application/x-sh", "application/octet-stream"]
)
def test_d108_decision_25_text_of_any_type_is_sent_as_plain_text(mime_type):
    talk = [Message.user(DataPart(b"# Hi", mime_type))]
    assert dump(*talk)[0]["content"][0]["source"] == {
        "type": "text",
        "media_type": "text/plain",
        "data": "# Hi",
    }
    assert losses(*talk) == []


def test_media_of_the_model_and_of_the_system_become_text():
    talk = [
        Message.system("x", DataPart(b"", "image/png")),
        Message.user("y"),
        Message.model(LinkPart("https://x/a.png")),
    ]
    payload = wire.dump_messages(talk)
    assert payload["system"][1]["text"] == "[media: image/png]"
    assert payload["messages"][1]["content"] == "[media: image/png] https://x/a.png"
    assert [loss[:2] for loss in losses(*talk)] == [(0, 1), (2, 0)]


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            DataPart,
        ),
        (
            {
                "type": "image",
                "source": {"type": "url", "url": "https://x/a.pdf"},
                "cache_control": {"type": "ephemeral"},
            },
            LinkPart,
        ),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, FilePart),
        (
            {
                "type": "document",
                "source": {"type": "url", "url": "https://x/a.png"},
                "context": "c",
            },
            LinkPart,
        ),
        (
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "x"},
                "title": "t",
                "citations": {"enabled": True},
            },
            DataPart,
        ),
        ({"type": "container_upload", "file_id": "f"}, FilePart),
        # what no neutral part says is kept whole
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "not base64!"},
            },
            ProviderPart,
        ),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "aGk"},
            },
            ProviderPart,
        ),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/tiff", "data": PNG},
            },
            ProviderPart,
        ),
        ({"type": "document", "source": {"type": "content", "content": "x"}}, ProviderPart),
        (
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "x"},
                "title": None,
            },
            ProviderPart,
        ),
        (
            {"type": "search_result", "source": "https://x", "title": "t", "content": []},
            ProviderPart,
        ),
        ({"type": "text", "text": " "}, ProviderPart),
        ({"type": "something_new", "x": [1]}, ProviderPart),
    ],
)
def test_blocks_of_the_user_survive(written, kind):
    (piece,) = read_back("user", written)
    assert type(piece) is kind


def test_documents_give_their_name_and_bytes():
    (piece,) = read_back(
        "user",
        {
            "type": "document",
            "title": "t",
            "source": {"type": "text", "media_type": "text/plain", "data": "ü"},
        },
    )
    assert piece == DataPart("ü".encode(), "text/plain", "t")


def test_native_of_other_wires_is_never_read():
    text = TextPart("x", native={"openai_chat": {"annotations": []}})
    assert dump(Message.user(text).replace(native={"openai_chat": {"name": "n"}})) == [
        {"role": "user", "content": "x"}
    ]


def test_own_fields_of_messages_text_and_calls_survive():
    there_and_back({"role": "user", "content": "x", "id": "m1"})
    read_back("assistant", {"type": "text", "text": "x", "citations": [{"type": "char_location"}]})
    read_back(
        "assistant",
        {"type": "tool_use", "id": "a", "name": "f", "input": {}, "caller": {"type": "direct"}},
    )


@pytest.mark.parametrize(
    "content", ["", "  ", [], [{"type": "text", "text": "x"}], [{"type": "text", "text": "\n"}]]
)
def test_decision_14_content_of_every_spelling_survives(content):
    (message,) = there_and_back({"role": "user", "content": content})
    assert message.text in ("", "x")


def test_blank_text_is_left_out_and_said():
    talk = [Message.user("Hi"), Message.model("a", " ", "b")]
    assert [b["text"] for b in dump(*talk)[1]["content"]] == ["a", "b"]
    assert losses(*talk) == [(1, 1, "text")]


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize(
    "block",
    [
        {"text": "hi"},
        {},
        {"type": None},
        {"type": ["text"]},
        {"type": "text", "text": 0},
        {"type": "text"},
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "\ud800"},
        },
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "\ud800"},
        },
        {"type": "tool_result", "tool_use_id": "a", "content": {"spelling": "\ud800"}},
        {"type": "tool_use", "id": ["a"], "name": "f", "input": {}, "spelling": "x", "response": 1},
    ],
)
def test_decision_27_odd_blocks_come_back_as_they_were(block: dict[str, Any], role: str):
    payload = payload_of({"type": "text", "text": "a"}, block, role=role)
    messages = wire.load_messages(payload)
    assert wire.dump_messages(messages)["messages"] == payload["messages"]
    for name in wires.names("model"):
        other = wires.get(name)
        other.dump_messages(messages, target=HERE, losses=[])
        encoder = other.encoder()
        (
            b"".join(map(encoder.feed, unfold([m.replace(role="model") for m in messages])))
            + encoder.close()
        )


def test_notes_without_fields_are_another_providers_block():
    part = ProviderPart("compaction", {"anthropic:notes": {"spelling": {"a": 1}}})
    result = ToolResultPart(
        "a", "f", 1, run_by="provider", native={"anthropic:notes": {"spelling": {"a": 1}}}
    )
    losses: list[Any] = []
    assert wire.dump_messages([Message.model(part, result)], losses=losses) == {"messages": []}
    assert [loss.why for loss in losses][:2] == ["it is another provider's"] * 2


def test_losses_name_what_is_not_sent():
    there = Origin("openai")
    search = ToolCallPart("s", "web_search", run_by="provider")
    found = ToolResultPart("s", "web_search", [], run_by="provider")
    talk = [
        Message.user(
            DataPart(b"\0", "video/mp4", "a.mp4"), LinkPart("https://x/a.mp3", "audio/mpeg")
        ),
        Message.model(FilePart("f"), ProviderPart("odd", {"other": {}}), search, found).replace(
            origin=there
        ),
    ]
    lost = list[Loss]()
    wire.dump_messages(talk, target=HERE, losses=lost)
    assert [(loss.message, loss.part, loss.what, loss.which) for loss in lost] == [
        (0, 0, Lost.data, "video/mp4 a.mp4"),
        (0, 1, Lost.link, "audio/mpeg https://x/a.mp3"),
        (1, 0, Lost.file, "file"),
        (1, 1, Lost.provider, "a block of the provider's, odd"),
        (1, 2, Lost.tool_call, "a call of web_search, which the provider ran"),
        (1, 3, Lost.tool_result, "a result of web_search, which the provider ran"),
    ]
    assert str(lost[0]) == "video/mp4 a.mp4 of message 0: the API takes no video/mp4"
