"""Parts of Google's wire ↔ pieces of content: media, thinking, signatures (D-125, D-127, decisions
4, 14)."""

from __future__ import annotations

import base64

import pytest

from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
)
from dragoman.wires import google as wire
from support.google import GOOGLE, NEWER_GOOGLE, SIGNED, VERTEX, contents, load_parts, same_parts
from support.profiles import quirks_of


def parts(*pieces, **how):
    (content,) = contents(Message.user(*pieces), **how)
    return content["parts"]


def test_d127_bytes_links_and_files():
    assert parts(DataPart(b"\xfb\xff", "image/png", "a.png")) == [
        {"inlineData": {"mimeType": "image/png", "data": "+/8=", "displayName": "a.png"}}
    ]
    assert parts(
        LinkPart("https://x/a.pdf"), LinkPart("https://x/a"), LinkPart("gs://b/c", "audio/mpeg")
    ) == [
        {"fileData": {"fileUri": "https://x/a.pdf", "mimeType": "application/pdf"}},
        {"fileData": {"fileUri": "https://x/a", "mimeType": "application/octet-stream"}},
        {"fileData": {"fileUri": "gs://b/c", "mimeType": "audio/mpeg"}},
    ]
    assert parts(LinkPart("https://x/a.png", "image/*"))[0]["fileData"]["mimeType"] == "image/png"
    uri = "https://generativelanguage.googleapis.com/v1beta/files/abc"
    assert load_parts({"fileData": {"fileUri": uri, "mimeType": "text/plain"}}) == (
        FilePart(uri, "text/plain"),
    )
    assert parts(FilePart(uri, "text/plain")) == [
        {"fileData": {"fileUri": uri, "mimeType": "text/plain"}}
    ]


def test_a_file_that_another_provider_holds_becomes_a_text_and_a_loss():
    losses = []
    assert parts(FilePart("file-1", "application/pdf", "a.pdf"), losses=losses) == [
        {"text": "[media: application/pdf] a.pdf"}
    ]
    assert [(loss.what, loss.which) for loss in losses] == [("file", "application/pdf a.pdf")]
    assert str(losses[0]) == "application/pdf a.pdf of message 0: another provider holds the file"


@pytest.mark.parametrize("text", ["-_8=", "+/8=", "AAAA"])
def test_base64_of_either_alphabet_is_read_and_stays_as_it_was(text):
    (piece,) = same_parts({"inlineData": {"mimeType": "image/png", "data": text}})
    assert piece.data == base64.b64decode(text.replace("-", "+").replace("_", "/"))


@pytest.mark.parametrize(
    "part",
    [
        {"fileData": {"fileUri": "https://x/y"}},
        {"fileData": {"fileUri": "https://x/y", "mimeType": None}},
        {
            "file_data": {"file_uri": "https://youtu.be/x", "mime_type": "video/*"},
            "video_metadata": {"fps": 1},
        },
        {
            "fileData": {"file_uri": "https://x/y", "mime_type": "video/mp4"},
            "mediaResolution": {"level": "LOW"},
        },
        {"inline_data": {"mime_type": "image/png", "data": "AAAA"}},
        {"inlineData": {"mimeType": "image/png", "data": "no base64"}},
        {"inlineData": {"mimeType": "image/png", "data": "AAA"}},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA", "displayName": ""}},
        {
            "inlineData": {
                "mimeType": "image/png",
                "data": "AAAA",
                "displayName": "a.png",
                "more": 1,
            }
        },
        {"inlineData": None},
        {"text": ""},
        {"text": None},
        {"something_new": {"a": 1}},
        {"text": "a", "inlineData": {}},
        {},
    ],
)
def test_every_part_stays_as_it_was(part):
    same_parts(part)


def test_what_has_no_neutral_shape_is_a_part_of_the_providers():
    assert same_parts({"something_new": {"a": 1}})[0].kind == "something_new"
    assert isinstance(same_parts({"text": ""})[0], ProviderPart)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"text": "hm", "thought": True}, "hm"),
        ({"text": "hm", "thought": True, "thoughtSignature": "AA=="}, "hm"),
        ({"text": "", "thoughtSignature": "-_8="}, ""),
        ({"text": "", "thought": True, "thoughtSignature": "+/8="}, ""),
        ({"thought": True, "thoughtSignature": "AA=="}, ""),
        ({"thoughtSignature": "AA=="}, ""),
        ({"text": "", "thought": False, "thought_signature": "AA=="}, ""),
    ],
)
def test_decision_14_thinking_and_signatures_on_nothing(part, text):
    (piece,) = same_parts(part, role="model")
    assert isinstance(piece, ThinkingPart)
    assert piece.text == text


def test_signed_text_stays_text_with_its_signature():
    (piece,) = same_parts({"text": "so", "thoughtSignature": "AA=="}, role="model")
    assert piece == TextPart("so", {"google": {"thoughtSignature": "AA=="}})


def signed(origin):
    return wire.load_messages({"contents": [{"role": "model", "parts": SIGNED}]}, origin=origin)


def test_decision_4_signed_content_goes_back_byte_exact_and_in_place_to_its_own_origin():
    for target in (None, NEWER_GOOGLE):
        losses = []
        assert contents(*signed(NEWER_GOOGLE), target=target, losses=losses)[0]["parts"] == SIGNED
        assert [loss.what for loss in losses] == ([] if target is None else ["beginning"])


@pytest.mark.parametrize(
    "origin",
    [VERTEX, None, Origin("google", "https://elsewhere", "gemini-3.5-flash"), Origin("openai")],
)
def test_decision_4_and_to_nobody_else(origin):
    losses = []
    (content,) = contents(
        *signed(origin), target=GOOGLE, quirks=quirks_of("google", GOOGLE.model), losses=losses
    )
    assert content["parts"] == [
        {"text": "so"},
        {"functionCall": {"name": "f", "args": {}}},
        {"functionCall": {"name": "g", "args": {}}},
    ]
    assert [loss.part for loss in losses] == [0, 1, 2, 3, 4, 5, 6, 7, 9, None]
    assert [(loss.what, loss.which) for loss in losses] == [
        ("thinking", ""),
        ("signature", ""),
        ("tool call", "a call of codeExecution, which the provider ran"),
        ("tool result", "a result of codeExecution, which the provider ran"),
        ("tool call", "a call of GOOGLE_SEARCH_WEB, which the provider ran"),
        ("tool result", "a result of GOOGLE_SEARCH_WEB, which the provider ran"),
        ("provider", "a part of the provider's, something_new"),
        ("signature", ""),
        ("thinking", ""),
        ("beginning", ""),
    ]


def test_a_newer_model_gets_a_placeholder_on_the_first_call_that_it_did_not_sign():
    (content,) = contents(*signed(VERTEX), target=NEWER_GOOGLE)
    quirks = wire.Quirks()
    assert base64.b64decode(quirks.placeholder) == b"skip_thought_signature_validator"
    assert [part.get("thoughtSignature") for part in content["parts"]] == [
        None,
        quirks.placeholder,
        None,
    ]


def test_signed_content_is_left_out_when_what_stood_before_it_has_changed():
    from dragoman.codec.digest import compute_prefix

    before = Message.user("hi")
    origin = Origin(
        "google", NEWER_GOOGLE.endpoint, NEWER_GOOGLE.model, prefix=compute_prefix([before], "w")
    )
    (model,) = signed(origin)
    assert contents(before, model, target=NEWER_GOOGLE)[1]["parts"] == SIGNED
    assert len(contents(Message.user("ho"), model, target=NEWER_GOOGLE)[1]["parts"]) == 3


def test_foreign_thinking_is_never_written():
    foreign = Message.model(ThinkingPart("hm", {"anthropic": {"signature": "x"}}), "so")
    losses = []
    assert contents(foreign, losses=losses)[0]["parts"] == [{"text": "so"}]
    assert [loss.what for loss in losses] == ["thinking"]


def test_plain_thinking_made_by_hand_is_a_thought():
    assert contents(Message.model(ThinkingPart("hm"), "so"))[0]["parts"][0] == {
        "text": "hm",
        "thought": True,
    }


@pytest.mark.parametrize(
    "part",
    [
        {"toolCall": {"toolType": 5}}, {"toolCall": {"toolType": "X", "args": [1]}}, {"toolCall": {"args": {}}}, {"toolResponse": {"response": {}}},
        {"functionCall": {"args": {}}}, {"functionCall": {"name": "", "args": {}}}, {"functionCall": {"name": "f", "args": [1]}},
        {"inlineData": {"data": "AAAA"}}, {"inlineData": {"mimeType": "a/b"}}, {"inlineData": {"mimeType": "a/b", "data": "?"}},
        {"inlineData": {"mimeType": "a/b", "data": "-+=="}}, {"fileData": {"mimeType": "a/b"}}, {"fileData": {"fileUri": "gs://a", "mimeType": 5}},
        {"text": 5}, {"text": ""}, {"text": "a", "functionCall": {"name": "f"}}, {"thought": True, "executableCode": 5}, {},
    ],
)  # fmt: skip
def test_a_part_of_another_shape_is_the_providers(part):
    payload = {"contents": [{"role": "model", "parts": [part]}]}
    (read,) = wire.load_messages(payload)
    kind = next((key for key in part if key != "thought"), "part")
    assert read.content == (ProviderPart(kind, {"google": part}),)
    assert wire.dump_messages([read]) == payload


@pytest.mark.parametrize(
    ("native", "target", "why"),
    [
        (None, None, None), ({"google": {}}, None, None), ({"anthropic": {"signature": "x"}}, None, "another provider signed it"),
        ({"anthropic": {"signature": "x"}}, Origin("p"), "its origin is not known"), (None, Origin("p"), "its origin is not known"),
    ],
)  # fmt: skip
def test_decision_4_why_thinking_is_left_out(native, target, why):
    losses = []
    sent = wire.dump_messages(
        [Message.user("q"), Message.model(ThinkingPart("hm", native), "a")],
        target=target,
        losses=losses,
    )
    thought = [] if why else [{"text": "hm", "thought": True}]
    assert sent["contents"][1]["parts"] == [*thought, {"text": "a"}]
    assert [(loss.message, loss.part, loss.what, loss.why) for loss in losses] == (
        [(1, 0, "thinking", why)] if why else []
    )


def test_decision_4_the_signature_of_a_file_goes_to_nobody_else():
    data = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    messages = [
        Message.user("draw"),
        Message.model(*load_parts({**data, "thoughtSignature": "AA=="}, role="model")).replace(
            origin=VERTEX
        ),
    ]
    assert contents(*messages, target=VERTEX)[1]["parts"] == [{**data, "thoughtSignature": "AA=="}]
    losses = []
    assert contents(*messages, target=GOOGLE, losses=losses)[1]["parts"] == [data]
    assert [loss.what for loss in losses] == ["signature"]
