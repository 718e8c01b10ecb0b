"""The google wire's conversation: rules D-120…D-122, D-127, decisions 2, 4, 12, 14, 20b and 22, and spelling."""

from __future__ import annotations

import base64

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.codec.ids import fitted
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
from dragoman.wires import google as wire

GOOGLE = Origin("google", "https://g/v1beta", "gemini-2.5-flash")
NEWER = Origin("google", "https://g/v1beta", "gemini-3.5-flash")
VERTEX = Origin("vertex", "https://v/v1", "gemini-3.5-flash")


def contents(*messages, **how):
    """The contents, without the user's that stands before a conversation which the model began."""
    told = wire.dump_messages(messages, **how)["contents"]
    return told[1:] if told and told[0] == {"role": "user", "parts": [{"text": wire.Quirks().opening}]} else told


def parts(*pieces, **how):
    (content,) = contents(Message.user(*pieces), **how)
    return content["parts"]


def load(*some, role="user"):
    (message,) = wire.load_messages({"contents": [{"role": role, "parts": list(some)}]})
    return message.content


def call(name="f", id_="1", **arguments):
    return ToolCallPart(id_, name, arguments)


def result(value, name="f", id_="1", **how):
    (part,) = contents(Message.user(ToolResultPart(id_, name, value, **how)))[0]["parts"]
    return part["functionResponse"]["response"]


def same(*some, role="user"):
    payload = {"contents": [{"role": role, "parts": list(some)}]}
    messages = [Message.from_json(message.to_json()) for message in wire.load_messages(payload)]
    assert wire.dump_messages(messages) == payload
    return messages[0].content


def test_the_most_ordinary_spelling():
    payload = wire.dump_messages([Message.system("be brief"), Message.user("hi"), Message.model("ho")])
    assert payload == {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "ho"}]}],
    }


def test_d120_all_system_messages_at_the_head_are_parts_of_the_instruction():
    payload = wire.dump_messages([Message.system("a", "b"), Message.system("c"), Message.user("hi")])
    assert payload["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}


def test_decision_20b_a_later_system_message_is_a_marked_user_text_and_a_loss():
    losses = []
    payload = wire.dump_messages([Message.user("hi"), Message.system("be brief")], losses=losses)
    assert "systemInstruction" not in payload
    assert payload["contents"][1] == {"role": "user", "parts": [{"text": "<system>\nbe brief\n</system>"}]}
    assert [(loss.message, loss.what) for loss in losses] == [(1, "system message")]


def test_the_instructions_role_is_kept():
    payload = {"system_instruction": {"role": "model", "parts": [{"text": "a", "thought": False}]}, "contents": []}
    (message,) = wire.load_messages(payload)
    assert (message.role, message.text) == (Role.SYSTEM, "a")
    assert wire.dump_messages([message])["systemInstruction"] == payload["system_instruction"]


@pytest.mark.parametrize("content", [{"parts": [{"text": "hi"}]}, {"role": "function", "parts": [{"text": "hi"}]},
                                     {"role": None, "parts": [{"text": "hi"}]}, {"role": "model"},
                                     {"role": "user", "parts": []}, {"role": "model", "parts": None}])  # fmt: skip
def test_contents_without_the_usual_role_or_parts_stay_so(content):
    messages = wire.load_messages({"contents": [content]})
    assert contents(*messages) == [content]


def test_an_instruction_without_parts_stays_so():
    payload = {"systemInstruction": {"parts": []}, "contents": []}
    assert wire.dump_messages(wire.load_messages(payload)) == payload
    assert wire.dump_messages([Message.system(), Message.user("a")]).keys() == {"contents"}


def test_a_single_content_may_stand_for_the_list():
    assert wire.load_messages({"contents": {"parts": [{"text": "hi"}]}})[0].text == "hi"


@pytest.mark.parametrize(
    "payload",
    [
        [],
        {"contents": "hi"},
        {"contents": ["hi"]},
        {"contents": [{"role": "assistant"}]},
        {"contents": [{"parts": ["a"]}]},
    ],
)
def test_what_is_no_conversation_is_refused(payload):
    with pytest.raises(HistoryError):
        wire.load_messages(payload)


def test_a_message_of_which_nothing_can_be_sent_is_left_out_and_told():
    losses = []
    assert contents(Message.user("a"), Message.model(), Message.user("b"), losses=losses)[1]["parts"] == [{"text": "b"}]
    assert [loss.message for loss in losses] == [1]


def test_decision_2_order_is_kept_and_separate_texts_stay_separate():
    pieces = ("a", call("f", "1"), "b", "c", call("g", "2"))
    (content,) = contents(Message.model(*pieces))
    assert [part.get("text") or part["functionCall"]["name"] for part in content["parts"]] == ["a", "f", "b", "c", "g"]


# --- media


def test_d127_bytes_links_and_files():
    assert parts(DataPart(b"\xfb\xff", "image/png", "a.png")) == [
        {"inlineData": {"mimeType": "image/png", "data": "+/8=", "displayName": "a.png"}}
    ]
    assert parts(LinkPart("https://x/a.pdf"), LinkPart("https://x/a"), LinkPart("gs://b/c", "audio/mpeg")) == [
        {"fileData": {"fileUri": "https://x/a.pdf", "mimeType": "application/pdf"}},
        {"fileData": {"fileUri": "https://x/a", "mimeType": "application/octet-stream"}},
        {"fileData": {"fileUri": "gs://b/c", "mimeType": "audio/mpeg"}},
    ]
    assert parts(LinkPart("https://x/a.png", "image/*"))[0]["fileData"]["mimeType"] == "image/png"
    uri = "https://generativelanguage.googleapis.com/v1beta/files/abc"
    assert load({"fileData": {"fileUri": uri, "mimeType": "text/plain"}}) == (FilePart(uri, "text/plain"),)
    assert parts(FilePart(uri, "text/plain")) == [{"fileData": {"fileUri": uri, "mimeType": "text/plain"}}]


def test_a_file_that_another_provider_holds_becomes_a_text_and_a_loss():
    losses = []
    assert parts(FilePart("file-1", "application/pdf", "a.pdf"), losses=losses) == [
        {"text": "[media: application/pdf] a.pdf"}
    ]
    assert [loss.what for loss in losses] == ["application/pdf a.pdf"]


@pytest.mark.parametrize("text", ["-_8=", "+/8=", "AAAA"])
def test_base64_of_either_alphabet_is_read_and_stays_as_it_was(text):
    (piece,) = same({"inlineData": {"mimeType": "image/png", "data": text}})
    assert piece.data == base64.b64decode(text.replace("-", "+").replace("_", "/"))


@pytest.mark.parametrize(
    "part",
    [
        {"fileData": {"fileUri": "https://x/y"}},
        {"fileData": {"fileUri": "https://x/y", "mimeType": None}},
        {"file_data": {"file_uri": "https://youtu.be/x", "mime_type": "video/*"}, "video_metadata": {"fps": 1}},
        {"fileData": {"file_uri": "https://x/y", "mime_type": "video/mp4"}, "mediaResolution": {"level": "LOW"}},
        {"inline_data": {"mime_type": "image/png", "data": "AAAA"}},
        {"inlineData": {"mimeType": "image/png", "data": "no base64"}},
        {"inlineData": {"mimeType": "image/png", "data": "AAA"}},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA", "displayName": ""}},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA", "displayName": "a.png", "more": 1}},
        {"inlineData": None},
        {"text": ""},
        {"text": None},
        {"something_new": {"a": 1}},
        {"text": "a", "inlineData": {}},
        {},
    ],
)
def test_every_part_stays_as_it_was(part):
    same(part)


def test_what_has_no_neutral_shape_is_a_part_of_the_providers():
    assert same({"something_new": {"a": 1}})[0].kind == "something_new"
    assert isinstance(same({"text": ""})[0], ProviderPart)


# --- calls and results


def test_calls_and_results():
    assert contents(Message.model(call(city="Oslo")), Message.user(ToolResultPart("1", "f", "rain"))) == [
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"city": "Oslo"}, "id": "1"}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": "rain"}, "id": "1"}}]},
    ]


def test_d121_a_response_is_an_object():
    assert result('{"a": 1}') == {"a": 1}
    assert result("{}") == {}
    assert result("[1]") == {"result": "[1]"}
    assert result({"a": 1}) == {"a": 1}
    assert result([1]) == {"result": [1]}
    assert result(None) == {"result": None}
    assert result("") == {"result": ""}
    assert result("{broken") == {"result": "{broken"}


def test_decision_5_a_failed_tool_says_error():
    assert result("boom", is_error=True) == {"error": "boom"}
    assert result({"error": "boom"}, is_error=True) == {"error": "boom"}
    assert result({"why": 1}, is_error=True) == {"error": {"why": 1}}
    (piece,) = load({"functionResponse": {"name": "f", "id": "1", "response": {"error": "boom"}}})
    assert (piece.result, piece.is_error) == ({"error": "boom"}, True)


@pytest.mark.parametrize(
    ("response", "value"),
    [
        ({"result": "rain"}, "rain"),
        ({"result": 3}, 3),
        ({"result": None}, None),
        ({"result": {"a": 1}}, {"result": {"a": 1}}),
        ({"result": '{"a": 1}'}, {"result": '{"a": 1}'}),
        ({"output": "x"}, {"output": "x"}),
        ({}, {}),
    ],
)
def test_d121_a_response_is_read_so_that_it_is_written_again(response, value):
    (piece,) = same({"functionResponse": {"name": "f", "id": "1", "response": response}})
    assert piece.result == value


def test_d121_consecutive_messages_of_results_are_one_content():
    answers = [Message.user(ToolResultPart(id_, "f", id_)) for id_ in ("1", "2")]
    out = contents(Message.model(call(id_="1"), call(id_="2")), *answers, Message.user("go on"))
    assert [len(content["parts"]) for content in out] == [2, 2, 1]
    recorded = {"contents": contents(Message.model(call()), answers[0]) + contents(answers[1])}
    assert wire.dump_messages(wire.load_messages(recorded)) == recorded


def test_d122_ids_that_were_not_given_are_minted_and_never_sent():
    payload = {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}} for name in ("f", "g", "f")]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "g", "response": {"result": 1}}},
                {"functionResponse": {"name": "f", "response": {"result": 2}}},
                {"functionResponse": {"name": "f", "response": {"result": 3}}},
            ]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}, "id": ""}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}, "id": None}}]},
        ]
    }  # fmt: skip
    messages = wire.load_messages(payload)
    assert [c.id for m in messages for c in m.tool_calls] == ["call-0", "call-1", "call-2", "call-3"]
    assert [r.id for m in messages for r in m.tool_results] == ["call-1", "call-0", "call-2", "call-3"]
    assert all(c.native["google"]["id"] is None for m in messages for c in m.tool_calls)
    assert wire.dump_messages(messages) == payload


def test_d122_results_made_here_of_calls_without_ids_are_sent_without_and_in_call_order():
    model = Message.model(*load({"functionCall": {"name": "f"}}, {"functionCall": {"name": "f"}}, role="model"))
    first, second = model.tool_calls
    answer = Message.user(ToolResultPart(second.id, "f", 2), ToolResultPart(first.id, "f", 1))
    _, content = contents(model, answer, target=VERTEX)
    assert content["parts"] == [
        {"functionResponse": {"name": "f", "response": {"result": 1}}},
        {"functionResponse": {"name": "f", "response": {"result": 2}}},
    ]


def test_decision_12_an_unanswered_round_does_not_take_the_next_ones_results():
    asked = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    told = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}
    messages = wire.load_messages({"contents": [asked, {"role": "user", "parts": [{"text": "?"}]}, asked, told]})
    assert messages[3].tool_results[0].id == messages[2].tool_calls[0].id == "call-1"


def test_a_minted_id_is_none_that_was_given():
    asked = [{"functionCall": {"name": "f", "id": "call-1"}}, {"functionCall": {"name": "f"}}]
    assert [piece.id for piece in load(*asked, role="model")] == ["call-1", "call-2"]


def test_a_result_that_does_not_tell_its_tool_has_the_name_of_its_call():
    out = contents(Message.model(call("f", "1")), Message.user(ToolResultPart("1", "", 2)))
    assert out[1]["parts"][0]["functionResponse"]["name"] == "f"


def test_a_result_without_a_call_gets_an_id_of_its_own():
    pieces = load(
        {"functionResponse": {"name": "f", "response": {}}}, {"functionResponse": {"name": "f", "response": {}}}
    )
    assert pieces[0].id != pieces[1].id


@pytest.mark.parametrize("part", [
    {"functionCall": {"name": "f"}},
    {"functionCall": {"name": "f", "args": None}},
    {"functionCall": {"name": "f", "args": {}, "id": "1", "willContinue": False}, "thought_signature": "AA=="},
    {"function_call": {"name": "f", "args": {"a": 1.0}}},
    {"functionCall": {"name": "no name for a function!", "args": {}}},
    {"functionCall": {"name": "f", "args": [1]}},
    {"functionCall": {}},
])  # fmt: skip
def test_every_call_stays_as_it_was(part):
    same(part, role="model")


@pytest.mark.parametrize("inner", [
    {"name": "f"},
    {"name": "f", "response": None},
    {"name": "f", "response": {"a": 1}, "scheduling": "SILENT", "willContinue": True},
    {"response": {"a": 1}},
    {"name": "f", "response": {}, "parts": [{"text": "?"}]},
    {"name": "f", "response": {"a": {"$ref": "x"}}, "parts": [{"inlineData": {"mimeType": "a/b", "data": "AAAA", "displayName": "x"}}]},
    {"name": "f", "response": {"result": ""}, "parts": [{"inlineData": {"mimeType": "a/b", "data": "AAAA"}}]},
    {"name": "f", "response": {"error": "x"}, "parts": [{"file_data": {"file_uri": "gs://a", "mime_type": "a/b"}}]},
])  # fmt: skip
def test_every_result_stays_as_it_was(inner):
    same({"functionResponse": inner})


def test_nothing_of_a_result_is_stored_twice():
    media = {"inlineData": {"mimeType": "a/b", "data": "AAAA"}}
    inner = {"name": "f", "id": "1", "response": {"result": "x"}, "parts": [media]}
    assert load({"functionResponse": inner})[0].native == {"google:notes": {"spelling": {"parts": "inside"}}}
    ran = load(
        {"executableCode": {"code": "1", "id": "2"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "id": "2"}}
    )
    assert [(p.id, p.native) for p in ran] == [("2", {"google": {}}), ("2", {"google": {}})]
    assert (ran[0].arguments, ran[1].result) == ({"code": "1"}, {"outcome": "OUTCOME_OK"})
    same({"toolResponse": {"toolType": "X", "response": {}, "id": "1", "more": 1}}, role="model")


def test_media_in_a_result():
    image = DataPart(b"123", "image/png")
    (piece,) = same(
        {"functionResponse": {"name": "f", "id": "1", "response": {"result": "look"},
                              "parts": [{"inlineData": {"mimeType": "image/png", "data": "MTIz"}}]}}
    )  # fmt: skip
    assert piece.result == (TextPart("look"), image)
    answer = Message.user(ToolResultPart("1", "f", (TextPart("look"), image)), "and?")
    (inside,) = contents(answer, target=NEWER)
    assert inside["parts"][0]["functionResponse"]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "MTIz"}}
    ]
    losses = []
    (beside,) = contents(answer, target=GOOGLE, losses=losses)
    assert [next(iter(part)) for part in beside["parts"]] == ["functionResponse", "text", "text", "inlineData"]
    assert beside["parts"][0]["functionResponse"]["response"] == {"result": "look"}
    assert [loss.what for loss in losses] == ["media"]


def test_decision_12_names_that_the_api_does_not_take_are_mapped_alike_everywhere():
    out = contents(Message.model(call("two words")), Message.user(ToolResultPart("1", "two words", 1)))
    name = out[0]["parts"][0]["functionCall"]["name"]
    assert wire.Quirks().names.fits(name)
    assert out[1]["parts"][0]["functionResponse"]["name"] == name
    recorded = load({"functionCall": {"name": "two.words"}}, role="model")
    assert contents(Message.model(*recorded))[0]["parts"][0]["functionCall"]["name"] == "two.words"
    assert (
        contents(Message.model(*recorded), target=NEWER)[0]["parts"][0]["functionCall"]["name"]
        == fitted(["two.words"])["two.words"]
    )


# --- thinking, signatures and what the provider ran


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
    (piece,) = same(part, role="model")
    assert isinstance(piece, ThinkingPart)
    assert piece.text == text


def test_signed_text_stays_text_with_its_signature():
    (piece,) = same({"text": "so", "thoughtSignature": "AA=="}, role="model")
    assert piece == TextPart("so", {"google": {"thoughtSignature": "AA=="}})


SIGNED = [
    {"text": "hm", "thought": True, "thoughtSignature": "AAAA"},
    {"text": "so", "thoughtSignature": "BBBB"},
    {"executableCode": {"code": "1+1", "language": "PYTHON"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
    {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}, "id": "s1"}},
    {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"hits": 1}, "id": "s1"}},
    {"something_new": 1},
    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "CCCC"},
    {"functionCall": {"name": "g", "args": {}}},
    {"text": "", "thoughtSignature": "DDDD"},
]


def signed(origin):
    return wire.load_messages({"contents": [{"role": "model", "parts": SIGNED}]}, origin=origin)


def test_decision_4_signed_content_goes_back_byte_exact_and_in_place_to_its_own_origin():
    for target in (None, NEWER):
        losses = []
        assert contents(*signed(NEWER), target=target, losses=losses)[0]["parts"] == SIGNED
        assert [loss.what for loss in losses] == ([] if target is None else ["beginning"])


@pytest.mark.parametrize(
    "origin", [VERTEX, None, Origin("google", "https://elsewhere", "gemini-3.5-flash"), Origin("openai")]
)
def test_decision_4_and_to_nobody_else(origin):
    losses = []
    (content,) = contents(*signed(origin), target=GOOGLE, losses=losses)
    assert content["parts"] == [
        {"text": "so"},
        {"functionCall": {"name": "f", "args": {}}},
        {"functionCall": {"name": "g", "args": {}}},
    ]
    assert [loss.part for loss in losses] == [0, 1, 2, 3, 4, 5, 6, 7, 9, None]
    assert len({loss.what for loss in losses}) > 4


def test_a_newer_model_gets_a_placeholder_on_the_first_call_that_it_did_not_sign():
    (content,) = contents(*signed(VERTEX), target=NEWER)
    quirks = wire.Quirks()
    assert base64.b64decode(quirks.placeholder) == b"skip_thought_signature_validator"
    assert [part.get("thoughtSignature") for part in content["parts"]] == [None, quirks.placeholder, None]


def test_signed_content_is_left_out_when_what_stood_before_it_has_changed():
    from dragoman.codec.digest import chain

    before = Message.user("hi")
    origin = Origin("google", NEWER.endpoint, NEWER.model, prefix=chain([before])[-1])
    (model,) = signed(origin)
    assert contents(before, model, target=NEWER)[1]["parts"] == SIGNED
    assert len(contents(Message.user("ho"), model, target=NEWER)[1]["parts"]) == 3


def test_foreign_thinking_is_never_written():
    foreign = Message.model(ThinkingPart("hm", {"anthropic": {"signature": "x"}}), "so")
    losses = []
    assert contents(foreign, losses=losses)[0]["parts"] == [{"text": "so"}]
    assert [loss.what for loss in losses] == ["thinking"]


def test_plain_thinking_made_by_hand_is_a_thought():
    assert contents(Message.model(ThinkingPart("hm"), "so"))[0]["parts"][0] == {"text": "hm", "thought": True}


def test_decision_22_what_the_provider_ran_looks_like_calls_and_results():
    pieces = same(*SIGNED[2:6], role="model")
    code, output, asked, found = pieces
    assert (code.name, code.arguments) == ("codeExecution", {"code": "1+1", "language": "PYTHON"})
    assert (output.id, output.result["output"], output.is_error) == (code.id, "2", False)
    assert (asked.name, asked.id, asked.arguments) == ("GOOGLE_SEARCH_WEB", "s1", {"queries": ["x"]})
    assert (found.id, found.result) == ("s1", {"hits": 1})
    assert all(piece.run_by == "provider" for piece in pieces)
    assert not Message.model(*pieces).tool_calls
    failed = same({"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "x"}}, role="model")[0]
    assert failed.is_error


def test_what_another_provider_ran_is_left_out():
    losses = []
    mine = Message.model(
        "a",
        ToolCallPart("1", "web_search", {}, run_by="provider"),
        ToolResultPart("1", "web_search", 1, run_by="provider"),
    )
    assert contents(mine, losses=losses)[0]["parts"] == [{"text": "a"}]
    assert len(losses) == 2


# --- properties

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9)
sent_parts = st.one_of(
    st.builds(
        lambda text, extra: {"text": text, **extra},
        words,
        st.sampled_from([{}, {"thought": True}, {"thoughtSignature": "AA=="}]),
    ),
    st.builds(
        lambda name, args: {"functionCall": {"name": name, "args": args}},
        st.sampled_from("fg"),
        st.dictionaries(words, json_values, max_size=2),
    ),
    st.builds(
        lambda name, value: {"functionResponse": {"name": name, "response": value}},
        st.sampled_from("fg"),
        st.dictionaries(words, json_values, max_size=2),
    ),
    st.builds(lambda value: {"functionResponse": {"name": "f", "response": {"result": value}}}, json_values),
    st.builds(
        lambda data: {"inlineData": {"mimeType": "a/b", "data": base64.urlsafe_b64encode(data).decode()}},
        st.binary(max_size=6),
    ),
    st.builds(lambda code: {"executableCode": {"code": code, "language": "PYTHON"}}, words),
    st.builds(lambda key, value: {key: value}, words, json_values),
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "model"]), "parts": st.lists(sent_parts, min_size=1, max_size=3)}
        ),
        max_size=4,
    )
)
def test_any_conversation_is_written_as_it_was_read_also_through_storage(some):
    messages = [Message.from_json(message.to_json()) for message in wire.load_messages({"contents": some})]
    assert wire.dump_messages(messages) == {"contents": some}


@given(st.text(max_size=12) | json_values, st.booleans())
def test_d121_any_result_is_an_object_and_is_read_as_one_that_is_written_alike(value, is_error):
    response = result(value, is_error=is_error)
    assert isinstance(response, dict)
    (piece,) = load({"functionResponse": {"name": "f", "id": "1", "response": response}})
    assert result(piece.result, is_error=piece.is_error) == response
