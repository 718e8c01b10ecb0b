"""The anthropic wire's conversation: rules D-105…D-108, D-146, decisions 2, 4, 12, 14, 20b and 22."""

from __future__ import annotations

import base64
import json

import pytest

from dragoman.codec.digest import chain
from dragoman.errors import HistoryError
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import anthropic as wire

HERE = Origin("anthropic", "https://api.anthropic.com/v1", "claude-sonnet-4-0")
SIGNED = ThinkingPart("hm", native={"anthropic": {"signature": "c2lnbmVk"}})


def dump(*messages, **where):
    return wire.dump_messages(messages, **where)["messages"]


def losses(*messages, **where):
    out = []
    wire.dump_messages(messages, losses=out, **where)
    return [(loss.message, loss.part, loss.what) for loss in out]


def there_and_back(*entries, system=None):
    payload = {**({"system": system} if system is not None else {}), "messages": list(entries)}
    messages = [Message.from_json(m.to_json()) for m in wire.load_messages(payload)]
    assert wire.dump_messages(messages) == payload
    return messages


def block(role, *blocks):
    """The pieces that blocks are read as, after they were seen to be written back as they came."""
    return there_and_back({"role": role, "content": list(blocks)})[-1].content


def test_d105_system_messages_at_the_head_become_system():
    payload = wire.dump_messages([Message.system("Be brief."), Message.user("Hi")])
    assert payload == {"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]}
    payload = wire.dump_messages([Message.system("One."), Message.system("Two."), Message.user("Hi")])
    assert payload["system"] == [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    assert "system" not in wire.dump_messages([Message.user("Hi")])


def test_d105_decision_20b_a_later_system_message_becomes_a_marked_user_text():
    talk = [Message.user("Hi"), Message.system("Now in French.")]
    assert dump(*talk)[1] == {"role": "user", "content": "<system>\nNow in French.\n</system>"}
    assert losses(*talk) == [(1, None, "system message")]


def test_decision_20b_a_later_system_message_stays_where_the_model_takes_it():
    talk = [Message.user("Hi"), Message.system("Now in French.")]
    target = Origin("anthropic", model="claude-opus-4-8")
    assert dump(*talk, target=target)[1] == {"role": "system", "content": "Now in French."}
    assert losses(*talk, target=target) == []


def test_a_system_message_that_only_changes_settings_survives():
    there_and_back({"role": "user", "content": "Hi"}, {"role": "system", "output_config": {"effort": "low"}})


def test_system_messages_of_every_spelling_survive():
    there_and_back({"role": "user", "content": "Hi"}, system="Be brief.")
    marked = [
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "x"},
    ]
    there_and_back({"role": "user", "content": "Hi"}, system=marked)
    later = [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}, {"role": "system", "content": "c"}]
    assert [m.role for m in there_and_back(*later)] == [Role.USER, Role.SYSTEM, Role.SYSTEM]
    there_and_back({"role": "system", "content": "first, but not in its place"}, {"role": "user", "content": "b"})


def result(id_, value="ok", **more):
    return ToolResultPart(id_, "f", value, **more)


def test_d106_consecutive_messages_of_results_are_one_message_and_keep_their_text():
    talk = [
        Message.model(ToolCallPart("a", "f"), ToolCallPart("b", "f")),
        Message.user(result("a"), "by the way"),
        Message.user(result("b")),
    ]
    assert dump(*talk)[1:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "ok"},
                {"type": "tool_result", "tool_use_id": "b", "content": "ok"},
                {"type": "text", "text": "by the way"},
            ],
        }
    ]
    assert losses(*talk) == [(2, None, "order")]


def test_d106_results_stand_before_text_and_plain_user_messages_stay_apart():
    talk = [
        Message.model(ToolCallPart("a", "f")),
        Message.user("look:", result("a")),
        Message.user("more"),
        Message.user("!"),
    ]
    assert [b["type"] for b in dump(*talk)[1]["content"]] == ["tool_result", "text"]
    assert len(dump(*talk)) == 4


def test_what_was_recorded_apart_or_in_another_order_stays_so():
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in "ab"]}
    answers = [{"type": "tool_result", "tool_use_id": i, "content": "ok"} for i in "ab"]
    there_and_back(call, {"role": "user", "content": answers[:1]}, {"role": "user", "content": answers[1:]})
    there_and_back(call, {"role": "user", "content": [{"type": "text", "text": "first"}, *answers]})


def test_d107_decision_2_text_and_calls_keep_their_order():
    blocks = [
        {"type": "text", "text": "I look"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        {"type": "text", "text": "and"},
        {"type": "text", "text": "look"},
    ]
    pieces = block("assistant", *blocks)
    assert [type(piece) for piece in pieces] == [TextPart, ToolCallPart, TextPart, TextPart]
    assert dump(Message.model(*pieces)) == [{"role": "assistant", "content": blocks}]


def test_d107_d146_signed_thinking_goes_back_in_its_place_to_its_origin():
    user = Message.user("Hi")
    model = Message.model(SIGNED, "Yes", ToolCallPart("a", "f")).replace(origin=HERE)
    written = dump(user, model, target=HERE)[1]["content"]
    assert written[0] == {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
    assert "hm" not in json.dumps(dump(Message.user(model.text)))


@pytest.mark.parametrize(
    ("origin", "target"),
    [
        (None, HERE),
        (Origin("minimax", model="m2"), HERE),
        (HERE, Origin("anthropic", "https://eu.example/v1")),
        (Origin("anthropic", prefix="changed"), HERE),
    ],
)
def test_decision_4_what_another_origin_signed_is_left_out_and_said(origin, target):
    own = {"anthropic": {"caller": {"type": "direct"}, "cache_control": {"type": "ephemeral"}}}
    search = ToolCallPart("s", "web_search", run_by="provider", native={"anthropic": {"type": "server_tool_use"}})
    model = Message.model(SIGNED, "Yes", search, ProviderPart("compaction", {"anthropic": {"type": "compaction"}}))
    model = model.replace(content=(*model.content, ToolCallPart("a", "f", native=own)), origin=origin)
    talk = [Message.user("Hi"), model]
    assert dump(*talk, target=target)[1]["content"] == [
        {"type": "text", "text": "Yes"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}, "cache_control": {"type": "ephemeral"}},
    ]
    assert [(message, part) for message, part, _ in losses(*talk, target=target)] == [(1, 0), (1, 2), (1, 3)]


def test_decision_4_a_quirk_lets_a_target_read_another_provider_and_the_prefix_must_match():
    user = Message.user("Hi")
    prefix = chain([user])[-1]
    model = Message.model(SIGNED).replace(origin=Origin("vertex", prefix=prefix))
    assert (
        dump(user, model, target=HERE, quirks=wire.Quirks(reads=("vertex",)))[1]["content"][0]["signature"]
        == "c2lnbmVk"
    )
    assert len(dump(Message.user("Bye"), model, target=HERE, quirks=wire.Quirks(reads=("vertex",)))) == 1


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
    pieces = block("assistant", *thinking)
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
        (LinkPart("https://x/a.jpg"), {"type": "image", "source": {"type": "url", "url": "https://x/a.jpg"}}),
        (LinkPart("https://x/a"), {"type": "image", "source": {"type": "url", "url": "https://x/a"}}),
        (LinkPart("https://x/a.pdf"), {"type": "document", "source": {"type": "url", "url": "https://x/a.pdf"}}),
        (
            LinkPart("https://x/a", "application/pdf"),
            {"type": "document", "source": {"type": "url", "url": "https://x/a"}},
        ),
        (FilePart("file_1", "image/png"), {"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
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
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "ü"}},
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
    assert dump(*talk)[0]["content"][0]["source"] == {"type": "text", "media_type": "text/plain", "data": "# Hi"}
    assert losses(*talk) == []


def test_d108_an_empty_message_is_left_out_and_said():
    talk = [Message.user("Hi"), Message.model(), Message.user("there")]
    assert dump(*talk) == [{"role": "user", "content": "Hi"}, {"role": "user", "content": "there"}]
    assert losses(*talk) == [(1, None, "message")]


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
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}, DataPart),
        (
            {
                "type": "image",
                "source": {"type": "url", "url": "https://x/a.pdf"},
                "cache_control": {"type": "ephemeral"},
            },
            LinkPart,
        ),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, FilePart),
        ({"type": "document", "source": {"type": "url", "url": "https://x/a.png"}, "context": "c"}, LinkPart),
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
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "not base64!"}},
            ProviderPart,
        ),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk"}}, ProviderPart),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": PNG}}, ProviderPart),
        ({"type": "document", "source": {"type": "content", "content": "x"}}, ProviderPart),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, "title": None},
            ProviderPart,
        ),
        ({"type": "search_result", "source": "https://x", "title": "t", "content": []}, ProviderPart),
        ({"type": "text", "text": " "}, ProviderPart),
        ({"type": "something_new", "x": [1]}, ProviderPart),
    ],
)
def test_blocks_of_the_user_survive(written, kind):
    (piece,) = block("user", written)
    assert type(piece) is kind


def test_documents_give_their_name_and_bytes():
    (piece,) = block(
        "user", {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "ü"}}
    )
    assert piece == DataPart("ü".encode(), "text/plain", "t")


CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"content": "text"}, "text"),
        ({"content": ""}, ""),
        ({}, None),
        ({"content": None}, None),
        ({"content": []}, []),
        ({"content": [{"type": "text", "text": "x"}]}, (TextPart("x"),)),
        ({"content": [{"type": "text", "text": "x", "citations": None}], "is_error": False}, None),
        ({"content": "x", "is_error": True, "cache_control": {"type": "ephemeral"}}, "x"),
        ({"content": [{"type": "tool_reference", "tool_name": "g"}]}, [{"type": "tool_reference", "tool_name": "g"}]),
        ({"content": [{"type": "text", "text": ""}]}, [{"type": "text", "text": ""}]),
        (
            {"content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]},
            (DataPart(b"\x89PNG", "image/png"),),
        ),
    ],
)
def test_results_of_every_spelling_survive(fields, value):
    entry = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", **fields}]}
    (result,) = there_and_back(CALL, entry)[1].content
    assert (result.id, result.name, result.is_error) == ("a", "f", fields.get("is_error", False))
    if value is not None:
        assert result.result == value


def test_nothing_is_noted_of_what_is_spelled_as_usual():
    entry = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}
    for message in there_and_back(
        {"role": "user", "content": "x"}, CALL, entry, {"role": "user", "content": "y"}, system="s"
    ):
        assert message.native is None
        assert all(piece.native is None for piece in message.content)


def test_an_edited_result_is_written_as_edited():
    entry = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [], "is_error": False}]}
    (old,) = there_and_back(CALL, entry)[1].content
    new = ToolResultPart(old.id, old.name, "changed", is_error=True, native=old.native)
    written = dump(*wire.load_messages({"messages": [CALL]}), Message.user(new))[1]["content"]
    assert written == [{"type": "tool_result", "tool_use_id": "a", "content": "changed", "is_error": True}]


@pytest.mark.parametrize(
    ("value", "text"), [("s", "s"), ({"a": [1]}, '{"a":[1]}'), (None, "null"), (3, "3"), ([], "[]")]
)
def test_d92_results_are_text_or_json(value, text):
    written = dump(Message.model(ToolCallPart("a", "f")), Message.user(result("a", value)))[1]["content"][0]
    assert written == {"type": "tool_result", "tool_use_id": "a", "content": text}


def test_a_result_of_no_known_shape_is_kept_whole():
    entry = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": {"x": 1}}]}
    assert isinstance(there_and_back(CALL, entry)[1].content[0], ProviderPart)


def test_results_with_media_and_errors():
    parts = (TextPart("x"), DataPart(b"\x89PNG", "image/png"), LinkPart("https://x/a.mp3"))
    talk = [Message.model(ToolCallPart("a", "f")), Message.user(result("a", parts, is_error=True))]
    written = dump(*talk)[1]["content"][0]
    assert [b["type"] for b in written["content"]] == ["text", "image", "text"]
    assert written["is_error"] is True
    assert [loss[:2] for loss in losses(*talk)] == [(1, 0)]


def test_decision_22_what_the_provider_ran_is_its_own_and_survives():
    pieces = block(
        "assistant",
        {
            "type": "server_tool_use",
            "id": "s",
            "name": "web_search",
            "input": {"query": "x"},
            "caller": {"type": "direct"},
        },
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result", "url": "u"}]},
        {"type": "mcp_tool_use", "id": "m", "name": "echo", "server_name": "e", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": True, "content": [{"type": "text", "text": "x"}]},
        {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": "x"},
        {"type": "compaction", "content": "c"},
    )
    message = Message.model(*pieces)
    assert [getattr(piece, "run_by", None) for piece in pieces] == ["provider"] * 5 + [None]
    assert (pieces[1].name, pieces[3].name, pieces[3].is_error) == ("web_search", "echo", True)
    assert message.parts == message.tool_calls == message.tool_results == ()


def test_decision_22_what_another_provider_ran_is_not_written():
    foreign = ToolCallPart("ws_1", "web_search", run_by="provider", native={"openai_responses": {}})
    talk = [Message.user("Hi"), Message.model("Yes", foreign, ProviderPart("item", {"google": {}}))]
    assert dump(*talk)[1] == {"role": "assistant", "content": "Yes"}
    assert [loss[:2] for loss in losses(*talk)] == [(1, 1), (1, 2)]


def test_native_of_other_wires_is_never_read():
    text = TextPart("x", native={"openai_chat": {"annotations": []}})
    assert dump(Message.user(text).replace(native={"openai_chat": {"name": "n"}})) == [{"role": "user", "content": "x"}]


def test_own_fields_of_messages_text_and_calls_survive():
    there_and_back({"role": "user", "content": "x", "id": "m1"})
    block("assistant", {"type": "text", "text": "x", "citations": [{"type": "char_location"}]})
    block("assistant", {"type": "tool_use", "id": "a", "name": "f", "input": {}, "caller": {"type": "direct"}})


@pytest.mark.parametrize("content", ["", "  ", [], [{"type": "text", "text": "x"}], [{"type": "text", "text": "\n"}]])
def test_decision_14_content_of_every_spelling_survives(content):
    (message,) = there_and_back({"role": "user", "content": content})
    assert message.text in ("", "x")


def test_blank_text_is_left_out_and_said():
    talk = [Message.user("Hi"), Message.model("a", " ", "b")]
    assert [b["text"] for b in dump(*talk)[1]["content"]] == ["a", "b"]
    assert losses(*talk) == [(1, 1, "blank text")]


@pytest.mark.parametrize("state", ["cut", "invalid"])
def test_broken_calls_are_sent_without_arguments(state):
    call = ToolCallPart("a", "f", raw='{"x": ', state=state)
    assert dump(Message.user("x"), Message.model(call))[1]["content"][0]["input"] == {}


def test_a_recorded_call_whose_input_is_no_object_survives():
    (piece,) = block("assistant", {"type": "tool_use", "id": "a", "name": "f", "input": [1]})
    assert (piece.state, piece.raw, piece.arguments) == ("invalid", "[1]", {})


def test_decision_12_ids_and_names_that_the_api_does_not_take_are_mapped():
    talk = [
        Message.user("x"),
        Message.model(ToolCallPart("call:1", "my tool"), ToolCallPart("x" * 70, "f")),
        Message.user(result("call:1"), result("x" * 70)),
        Message.model(ToolCallPart("call:1", "my tool")),
        Message.user(result("call:1")),
    ]
    written = dump(*talk)
    one, two = written[1]["content"]
    (again,) = written[3]["content"]
    assert [b["tool_use_id"] for b in written[2]["content"]] == [one["id"], two["id"]]
    assert written[4]["content"][0]["tool_use_id"] == again["id"]
    assert len({one["id"], two["id"], again["id"]}) == 3
    assert one["name"] == again["name"] != "my tool"
    assert all(len(b["id"]) <= 64 and b["id"].replace("_", "").isalnum() for b in (one, two, again))


def test_recorded_ids_and_names_are_sent_as_they_are():
    call = {"type": "tool_use", "id": "call:1", "name": "my tool", "input": {}}
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call:1", "content": "x"}]}
    there_and_back(*([{"role": "assistant", "content": [call]}, answer] * 2))
    there_and_back(*([CALL, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}] * 2))
    there_and_back(answer)


def test_recorded_ids_and_names_are_mapped_for_a_target():
    call = {"type": "tool_use", "id": "call:1", "name": "my tool", "input": {}}
    opening, entry = dump(*there_and_back({"role": "assistant", "content": [call]}), target=HERE)
    assert opening == {"role": "user", "content": wire.Quirks().opening}
    (sent,) = entry["content"]
    assert sent["id"] != "call:1"
    assert sent["name"] != "my tool"


def test_calls_of_the_user_and_results_of_the_model_are_left_out_and_said():
    talk = [Message.user("x", ToolCallPart("a", "f")), Message.model("y", result("a"))]
    assert dump(*talk) == [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    assert losses(*talk) == [(0, 1, "a call or result"), (1, 1, "a call or result")]


def test_rule_6_a_longer_conversation_begins_with_the_shorter():
    talk = [
        Message.system("s"),
        Message.user("a"),
        Message.model(SIGNED, "b", ToolCallPart("1!", "f")).replace(origin=HERE),
        Message.user(result("1!")),
        Message.model("c").replace(origin=HERE),
        Message.user("d"),
        Message.model(ToolCallPart("1!", "f")).replace(origin=HERE),
        Message.user(result("1!", {"x": 1})),
    ]
    whole = dump(*talk, target=HERE)
    for length in (2, 4, 6, 8):
        assert whole[: length - 1] == dump(*talk[:length], target=HERE)


def test_the_origin_is_given_to_the_models_messages():
    messages = wire.load_messages(
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}, origin=HERE
    )
    assert [message.origin for message in messages] == [None, HERE]


@pytest.mark.parametrize(
    "payload",
    [
        [],
        {"messages": {}},
        {"messages": ["x"]},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"messages": [{"role": ["user"], "content": "x"}]},
        {"messages": [{"role": "user", "content": 3}]},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "content": ["x"]}]},
    ],
)
def test_what_is_no_conversation_is_refused_with_its_place(payload):
    with pytest.raises(HistoryError, match="messages"):
        wire.load_messages(payload)
