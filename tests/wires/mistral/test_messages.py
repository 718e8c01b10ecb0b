"""Conversations on the mistral wire: D-131 by decision 11 (attachments and tools are supported),
ids, order, thinking."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from dragoman.codec.digest import compute_prefix
from dragoman.errors import HistoryError
from dragoman.loss import Loss
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
from dragoman.repair import repair
from dragoman.wires import mistral
from dragoman.wires.mistral import Quirks
from support.strategies import histories

HERE = Origin("mistral", "https://api.mistral.ai/v1", "mistral-small-latest")
ELSEWHERE = Origin("anthropic", "https://api.anthropic.com/v1", "claude")


def dump(*messages: Message, **how: Any) -> list[dict[str, Any]]:
    return mistral.dump_messages(messages, **how)


def there_and_back(*messages: dict[str, Any]) -> list[Message]:
    loaded = mistral.load_messages(list(messages))
    stored = [Message.from_json(message.to_json()) for message in loaded]
    assert mistral.dump_messages(stored) == list(messages)
    return loaded


def model(*content: Any, origin: Origin | None = HERE) -> Message:
    return Message.model(*content).replace(origin=origin)


def losses(*messages: Message, **how: Any) -> list[tuple[int | None, int | None, str]]:
    lost: list[Loss] = []
    mistral.dump_messages(messages, losses=lost, **how)
    assert all(loss.why for loss in lost)
    return [(loss.message, loss.part, loss.what) for loss in lost]


def called(
    call_id: str = "abcdefgh1", name: str = "f", arguments: Any = "{}", **more: Any
) -> dict[str, Any]:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **more,
    }


def assistant(*calls: dict[str, Any], content: Any = "") -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


# ------------------------------------------------------------------ what is said


def test_the_ordinary_spelling() -> None:
    said = dump(
        Message.system("a"),
        Message.user("b"),
        Message.model("c", ToolCallPart("abcdefgh1", "f", {"ä": [1]})),
        Message.user(ToolResultPart("abcdefgh1", "f", {"x": 1})),
        Message.model("d", "e"),
    )
    assert said == [
        {"role": "system", "content": "a"},
        {"role": "user", "content": "b"},
        assistant(called(arguments='{"ä":[1]}'), content="c"),
        {"role": "tool", "tool_call_id": "abcdefgh1", "content": '{"x":1}'},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "d"}, {"type": "text", "text": "e"}],
        },
    ]


@pytest.mark.parametrize("content", ["", None, [], "x", [{"type": "text", "text": "x"}]])
def test_every_spelling_of_content_is_kept(content: Any) -> None:
    there_and_back(
        {"role": "user", "content": content},
        {"role": "assistant", "content": content, "prefix": False},
    )


def test_an_absent_content_stays_absent() -> None:
    [message] = there_and_back({"role": "assistant", "tool_calls": [called()]})
    assert message.tool_calls[0].name == "f"


def test_d131_decision_11_attachments_are_sent() -> None:
    chunks = dump(
        Message.user(
            DataPart(b"hi", "image/png"),
            LinkPart("https://x/i.png"),
            LinkPart("https://x/a", "application/pdf", "a.pdf"),
            DataPart(b"hi", "application/pdf", "b.pdf"),
            DataPart(b"hi", "audio/mpeg"),
            FilePart("file-1"),
            DataPart(b"hi", "video/mp4"),
        )
    )[0]["content"]
    assert chunks == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "https://x/i.png"}},
        {"type": "document_url", "document_url": "https://x/a", "document_name": "a.pdf"},
        {
            "type": "document_url",
            "document_url": "data:application/pdf;base64,aGk=",
            "document_name": "b.pdf",
        },
        {"type": "input_audio", "input_audio": "aGk="},
        {"type": "file", "file_id": "file-1"},
        {"type": "text", "text": "[media: video/mp4]"},
    ]


@pytest.mark.parametrize(
    ("chunk", "part"),
    [
        ({"type": "text", "text": "a", "x": 1}, TextPart),
        ({"type": "image_url", "image_url": "https://x/y"}, LinkPart),
        ({"type": "image_url", "image_url": {"url": "https://x/y", "detail": "low"}}, LinkPart),
        ({"type": "image_url", "image_url": "data:image/png;base64,aGk="}, DataPart),
        ({"type": "image_url", "image_url": {"url": "data:application/pdf;base64,aGk="}}, DataPart),
        ({"type": "document_url", "document_url": "https://x/y"}, LinkPart),
        ({"type": "document_url", "document_url": "https://x/y", "document_name": None}, LinkPart),
        (
            {
                "type": "document_url",
                "document_url": "data:application/pdf;base64,aGk=",
                "document_name": "d",
            },
            DataPart,
        ),
        ({"type": "document_url", "document_url": "data:image/png;base64,aGk="}, DataPart),
        ({"type": "input_audio", "input_audio": "aGk="}, DataPart),
        ({"type": "input_audio", "input_audio": "https://x/y.mp3"}, LinkPart),
        ({"type": "input_audio", "input_audio": "data:audio/wav;base64,aGk="}, DataPart),
        ({"type": "file", "file_id": "f"}, FilePart),
        ({"type": "reference", "reference_ids": [1, "a"]}, ProviderPart),
        ({"type": "tool_reference", "tool": "web_search", "title": "t", "url": "u"}, ProviderPart),
        ({"type": "resource_link", "uri": "x"}, ProviderPart),
        ({"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, ThinkingPart),
        ({"type": "thinking", "thinking": "t"}, ThinkingPart),
        ({"type": "thinking", "thinking": []}, ThinkingPart),
        ({"type": "thinking", "thinking": [{"type": "text", "text": ""}]}, ThinkingPart),
        ({"type": "thinking", "thinking": 7}, ProviderPart),
        ({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}, ProviderPart),
        ({"type": "text", "text": ""}, ProviderPart),
        ({"type": "image_url", "image_url": {}}, ProviderPart),
        ({"type": "file"}, ProviderPart),
        ({"text": "a"}, ProviderPart),
    ],
)
def test_every_chunk_is_kept_as_it_is(chunk: dict[str, Any], part: type) -> None:
    message, _, answer, _ = there_and_back(
        {"role": "user", "content": [chunk]},
        assistant(called()),
        {"role": "tool", "tool_call_id": "abcdefgh1", "content": [chunk]},
        {"role": "assistant", "content": [chunk]},
    )
    assert [type(piece) for piece in message.content] == [part]
    if part not in (ProviderPart, ThinkingPart):
        assert [type(piece) for piece in answer.tool_results[0].result] == [part]


def test_audio_is_told_by_its_bytes() -> None:
    for data, kind in (
        ("SUQz", "mpeg"),
        ("UklGRgAAAABXQVZF", "wav"),
        ("T2dnUw==", "ogg"),
        ("aGk=", "mpeg"),
    ):
        [message] = there_and_back(
            {"role": "user", "content": [{"type": "input_audio", "input_audio": data}]}
        )
        assert message.content[0].mime_type == f"audio/{kind}"


# ------------------------------------------------------------------ thinking


def thinking(*items: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    said = [{"type": "text", "text": item} if isinstance(item, str) else item for item in items]
    return {"type": "thinking", "thinking": said, **more}


def test_a_chunk_of_thinking_keeps_its_items_and_fields() -> None:
    reference = {"type": "reference", "reference_ids": [3]}
    chunk = thinking(
        "äb",
        reference,
        "c",
        {"type": "tool_reference", "tool": "t", "title": "x"},
        closed=True,
        signature="s=",
    )
    [message] = there_and_back(
        {"role": "assistant", "content": [chunk, {"type": "text", "text": "d"}]}
    )
    assert (message.thinking, message.text) == ("äbc", "d")
    assert message.content[0].native["mistral"]["signature"] == "s="
    edited = ThinkingPart("other", message.content[0].native)
    assert dump(Message.model(edited))[0]["content"][0]["thinking"] == [
        {"type": "text", "text": "other"}
    ]


def test_decision_4_thinking_goes_back_to_its_origin_in_its_place() -> None:
    message = model(ThinkingPart("a"), "b", ThinkingPart("c", {"mistral": {"signature": "s"}}), "d")
    expected = [
        thinking("a"),
        {"type": "text", "text": "b"},
        thinking("c", signature="s"),
        {"type": "text", "text": "d"},
    ]
    assert dump(message, target=HERE)[0]["content"] == expected
    assert losses(message, target=HERE) == []
    assert dump(message.replace(origin=None))[0]["content"] == expected


def test_decision_4_thinking_goes_nowhere_else() -> None:
    texts = [{"type": "text", "text": "b"}, {"type": "text", "text": "d"}]
    message = model(ThinkingPart("a"), "b", ThinkingPart("c", {"mistral": {"signature": "s"}}), "d")
    for target in (ELSEWHERE, Origin("mistral", "https://other/v1")):
        assert dump(message, target=target)[0]["content"] == texts
        assert losses(message, target=target) == [(0, 0, "thinking"), (0, 2, "thinking")]
    assert dump(message.replace(origin=None), target=HERE)[0]["content"] == texts
    before = Message.user("hi")
    signed = message.replace(origin=Origin("mistral", prefix=compute_prefix([before], "w")))
    assert len(dump(before, signed, target=HERE)[1]["content"]) == 4
    assert dump(Message.user("changed"), signed, target=HERE)[1]["content"] == texts
    gateway = message.replace(origin=Origin("vertex"))
    assert len(dump(gateway, target=HERE, quirks=Quirks(reads=("vertex",)))[0]["content"]) == 4
    assert dump(message, target=HERE, quirks=Quirks(thinking=False))[0]["content"] == texts


def test_what_is_signed_or_made_for_another_format_is_left_out() -> None:
    foreign = {"anthropic": {"signature": "s", "data": "x"}}
    message = Message.model(ThinkingPart("", foreign), ProviderPart("compaction", foreign), "a")
    assert dump(message) == [{"role": "assistant", "content": "a"}]
    assert losses(message) == [(0, 0, "thinking"), (0, 1, "provider")]
    reference = ProviderPart("reference", {"mistral": {"type": "reference", "reference_ids": [1]}})
    assert dump(model("a", reference), target=HERE)[0]["content"][1] == {
        "type": "reference",
        "reference_ids": [1],
    }
    assert losses(model("a", reference, origin=ELSEWHERE), target=HERE) == [(0, 1, "provider")]


def test_thinking_in_a_system_prompt_stays_there_and_comes_there_by_nobody_else() -> None:
    there_and_back(
        {
            "role": "system",
            "content": [{"type": "text", "text": "think so:"}, thinking("hm"), thinking("a", "b")],
        }
    )
    assert dump(Message.user("a", ThinkingPart("b"))) == [{"role": "user", "content": "a"}]
    assert losses(Message.user("a", ThinkingPart("b"))) == [(0, 1, "thinking")]


def test_a_message_of_which_nothing_is_left_is_not_sent() -> None:
    message = model(ThinkingPart("a"), origin=ELSEWHERE)
    assert dump(message, target=HERE) == []
    assert losses(message, target=HERE) == [(0, 0, "thinking"), (0, None, "message")]
    assert dump(Message.model()) == [{"role": "assistant", "content": ""}]


# ------------------------------------------------------------------ calls and results


@pytest.mark.parametrize(
    "call",
    [
        called(index=0),
        called("call_REDACTED_1"),
        called(name="a.b c"),
        called(arguments={"a": 1}),
        called(arguments=""),
        called(arguments='{"a": 1}'),
        called(arguments="{"),
        called(arguments=None),
        {"function": {"name": "f", "arguments": "{}", "x": 1}, "id": None, "y": 2},
        {"function": {"name": "f"}, "id": ""},
        {"function": {"name": "f", "arguments": "{}"}},
        {"id": "a", "type": "function", "function": {"name": ""}},
        {"id": "a", "type": "other", "x": 1},
    ],
)
def test_every_call_is_kept_as_it_is(call: dict[str, Any]) -> None:
    result = {
        "role": "tool",
        "content": "r",
        **({"tool_call_id": call["id"]} if "id" in call else {}),
    }
    message, answer = there_and_back(assistant(call), result)
    if message.tool_calls:
        assert answer.tool_results[0].id == message.tool_calls[0].id
        assert answer.tool_results[0].name == message.tool_calls[0].name


def test_d131_a_call_without_an_id_is_not_dropped_and_none_is_sent_back() -> None:
    call = {"function": {"name": "f", "arguments": "{}"}}
    message, answer = there_and_back(
        assistant(call, {"function": {"name": "g", "arguments": "{}"}}),
        {"role": "tool", "content": "1", "name": "g"},
        {"role": "tool", "content": "2"},
    )
    assert [call.id for call in message.tool_calls] == ["call-0", "call-1"]
    assert [(result.id, result.name) for result in answer.tool_results] == [
        ("call-1", "g"),
        ("call-0", "f"),
    ]
    sent = dump(message.replace(origin=ELSEWHERE), answer, target=HERE)
    ids = [call["id"] for call in sent[0]["tool_calls"]]
    assert [one["tool_call_id"] for one in sent[1:]] == [ids[1], ids[0]]
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)


def test_decision_12_ids_are_nine_letters_and_digits() -> None:
    history = [
        Message.model(ToolCallPart("toolu_01A", "f"), ToolCallPart("abcDEF123", "f"), ToolCallPart("toolu_01B", "f")),
        Message.user(ToolResultPart("toolu_01B", "f", 1), ToolResultPart("abcDEF123", "f", 2), ToolResultPart("toolu_01A", "f", 3)),
        Message.model(ToolCallPart("toolu_01A", "f")),
        Message.user(ToolResultPart("toolu_01A", "f", 4)),
    ]  # fmt: skip
    first, two, one, three, again, four = dump(*history)
    ids = [call["id"] for call in first["tool_calls"]]
    assert ids[1] == "abcDEF123"
    assert len({*ids, again["tool_calls"][0]["id"]}) == 4
    assert all(len(call_id) == 9 and call_id.isascii() and call_id.isalnum() for call_id in ids)
    assert [m["tool_call_id"] for m in (three, one, two)] == ids
    assert four["tool_call_id"] == again["tool_calls"][0]["id"]
    assert dump(*history[:2]) == [first, two, one, three]


def test_decision_12_names_are_fitted_and_fit_together() -> None:
    history = [
        Message.model(ToolCallPart("a", "get weather!")),
        Message.user(ToolResultPart("a", "get weather!", 1)),
    ]
    sent = dump(*history)[0]["tool_calls"][0]["function"]["name"]
    assert sent != "get weather!"
    assert sent.replace("_", "").isalnum()
    loaded = mistral.load_messages([assistant(called(name="get weather!"))])
    assert dump(*loaded, target=HERE)[0]["tool_calls"][0]["function"]["name"] == sent


def test_ids_that_came_so_go_back_so_but_to_a_target_that_would_refuse_them() -> None:
    loaded = there_and_back(
        assistant(called("call_1")), {"role": "tool", "tool_call_id": "call_1", "content": ""}
    )
    call, result = dump(*loaded, target=HERE)
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] != "call_1"
    assert len(result["tool_call_id"]) == 9


def test_an_id_that_stands_twice_goes_back_as_it_came() -> None:
    call, result = assistant(called()), {"role": "tool", "tool_call_id": "abcdefgh1", "content": ""}
    there_and_back(call, result, call, result)
    there_and_back(assistant(called(), called()), result, result)


def test_cut_and_invalid_calls_are_sent_as_nothing() -> None:
    message = Message.model(ToolCallPart("abcdefgh1", "f", raw='{"a', state="cut"))
    assert dump(message)[0]["tool_calls"] == [called(arguments="{}")]
    edited = ToolCallPart("abcdefgh1", "f", {"a": 2}, raw='{"a": 1}')
    assert dump(Message.model(edited))[0]["tool_calls"] == [called(arguments='{"a":2}')]


def test_spelled_arguments_are_not_sent_once_the_call_was_edited() -> None:
    [message] = there_and_back(assistant(called(arguments={"a": 1})))
    call = message.tool_calls[0]
    edited = Message.model(ToolCallPart(call.id, "f", {"a": 2}, native=call.native))
    assert dump(edited)[0]["tool_calls"] == [called(arguments='{"a":2}')]


@pytest.mark.parametrize("name", ["f", "", None])
def test_every_result_is_kept_as_it_is(name: str | None) -> None:
    result = {"role": "tool", "tool_call_id": "abcdefgh1", "name": name, "content": "", "x": 1}
    _, answer = there_and_back(assistant(called()), result)
    assert answer.tool_results[0].name == "f"


@pytest.mark.parametrize(
    "content", ["t", "", None, [], {"a": 1}, 7, [{"type": "text", "text": "t"}]]
)
def test_every_content_of_a_result_is_kept(content: Any) -> None:
    there_and_back({"role": "tool", "tool_call_id": "abcdefgh1", "content": content})
    there_and_back({"role": "tool", "tool_call_id": "abcdefgh1"})


def test_media_of_a_result_follows_in_a_user_message() -> None:
    image = DataPart(b"hi", "image/png")
    chunk = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    result = Message.user(ToolResultPart("abcdefgh1", "f", (TextPart("see"), image)), "and now?")
    answer, follows = dump(result)
    assert answer["content"] == "see"
    said = ["[result of f]", "and now?"]
    assert follows["content"] == [
        {"type": "text", "text": said[0]},
        chunk,
        {"type": "text", "text": said[1]},
    ]
    assert losses(result) == [(0, 0, "media")]
    inside, _ = dump(result, quirks=Quirks(tool_media=True))
    assert inside["content"] == [{"type": "text", "text": "see"}, chunk]


def test_what_has_no_place_is_told() -> None:
    image = DataPart(b"hi", "image/png")
    assert losses(model(image, "a"), target=ELSEWHERE) == [(0, 0, "data")]
    assert losses(Message.model(ToolCallPart("a", "f"), "after")) == [(0, 1, "order")]
    assert losses(Message.user("a", ToolResultPart("a", "f", 1))) == [(0, 1, "order")]
    assert losses(Message.user(ToolResultPart("a", "f", "bad", is_error=True))) == [
        (0, 0, "is_error")
    ]
    assert losses(Message.user(ToolResultPart("a", "f", {"error": "bad"}, is_error=True))) == []
    assert losses(Message.user(ToolCallPart("a", "f"))) == [(0, 0, "tool call")]
    assert losses(Message.model(ToolResultPart("a", "f", 1))) == [(0, 0, "tool result")]
    ran = Message.model(ToolCallPart("a", "web_search", run_by="provider"), "b")
    assert losses(ran) == [(0, 0, "tool call")]
    assert dump(ran) == [{"role": "assistant", "content": "b"}]


# ------------------------------------------------------------------ order


def test_decision_20b_a_late_system_message_is_a_marked_user_text() -> None:
    history = [Message.system("a"), Message.system("b"), Message.user("c"), Message.system("d")]
    assert [message["role"] for message in dump(*history)] == ["system", "system", "user", "user"]
    assert dump(*history)[3]["content"] == "<system>\nd\n</system>"
    assert losses(*history) == [(3, None, "system message")]
    late = there_and_back({"role": "user", "content": "a"}, {"role": "system", "content": "b"})
    assert late[1].role is Role.SYSTEM


def test_a_word_of_the_models_between_a_tool_and_a_user() -> None:
    history = [
        Message.model(ToolCallPart("abcdefgh1", "f")),
        Message.user(ToolResultPart("abcdefgh1", "f", 1), "and now?"),
        Message.user("hm?"),
    ]
    roles = [message["role"] for message in dump(*history, quirks=Quirks(bridge="OK"))]
    assert roles == ["assistant", "tool", "assistant", "user", "user"]
    assert dump(*history, quirks=Quirks(bridge="OK"))[2] == {"role": "assistant", "content": "OK"}
    assert [message["role"] for message in dump(*history)] == ["assistant", "tool", "user", "user"]


def test_prefix_goes_back_wherever_it_came_from() -> None:
    [message] = there_and_back({"role": "assistant", "content": "Dear", "prefix": True})
    assert dump(message, target=HERE)[0]["prefix"] is True


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {"messages": []},
        ["x"],
        [{"role": "developer", "content": "a"}],
        [{"content": "a"}],
        [{"role": ["user"], "content": "a"}],
        [{"role": "user", "content": 7}],
        [{"role": "user", "content": ["x"]}],
    ],
)
def test_what_is_no_conversation_is_refused(payload: Any) -> None:
    with pytest.raises(HistoryError):
        mistral.load_messages(payload)


@given(histories)
def test_any_history_is_sent_by_the_rules_of_the_api(history: list[Message]) -> None:
    """Roles, ids and content as the API takes them, whatever the history is."""
    sent = mistral.dump_messages(repair(history), target=HERE, quirks=Quirks(bridge="OK"))
    seen_other = False
    asked: list[str] = []
    for before, message in zip([None, *sent], sent, strict=False):
        role = message["role"]
        assert not (role == "system" and seen_other)
        seen_other = seen_other or role != "system"
        assert not (role == "user" and before is not None and before["role"] == "tool")
        if role == "assistant":
            assert message["content"] or message.get("tool_calls")
            ids = [call["id"] for call in message.get("tool_calls", ())]
            assert not set(ids) & set(asked)
            asked += ids
            assert len(set(asked)) == len(asked)
            assert all(
                len(call_id) == 9 and call_id.isalnum() and call_id.isascii() for call_id in asked
            )
        if role == "tool":
            assert message["tool_call_id"] in asked
            assert isinstance(message["content"], (str, list))
        for chunk in message["content"] if isinstance(message["content"], list) else ():
            assert chunk.get("text") != ""
            assert chunk["type"] != "thinking"


@given(histories)
def test_any_history_is_dumped_and_grows_at_its_end(history: list[Message]) -> None:
    sent = mistral.dump_messages(history)
    loaded = mistral.load_messages(sent)
    assert mistral.dump_messages(loaded) == sent
    assert mistral.dump_messages([*loaded, Message.user("x")]) == [
        *sent,
        {"role": "user", "content": "x"},
    ]


def test_an_id_that_a_later_message_repeats_goes_back_as_it_came():
    call = {"id": "aB3dE5gH7", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    round_ = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "aB3dE5gH7", "content": "1"},
    ]
    given = [{"role": "user", "content": "Hi."}, *round_, *round_]
    assert mistral.dump_messages(mistral.load_messages(given)) == given
