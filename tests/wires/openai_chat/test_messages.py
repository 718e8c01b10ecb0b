"""Conversations on the openai_chat wire: rules D-90 to D-94, what goes where, and what is never
sent to whom."""

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
from dragoman.wires import openai_chat
from dragoman.wires.openai_chat import Quirks
from support.strategies import histories

FITTING = Quirks(max_id_length=40)
HERE = Origin("openai", "https://api.openai.com/v1", "gpt")


def dump(*messages: Message, **how: Any) -> list[dict[str, Any]]:
    return openai_chat.dump_messages(messages, **how)


def there_and_back(*messages: dict[str, Any]) -> list[Message]:
    loaded = openai_chat.load_messages(list(messages))
    stored = [Message.from_json(message.to_json()) for message in loaded]
    assert openai_chat.dump_messages(stored) == list(messages)
    return loaded


def model(*content: Any, origin: Origin | None = HERE) -> Message:
    return Message.model(*content).replace(origin=origin)


def losses(*messages: Message, **how: Any) -> list[tuple[int, int | None, str]]:
    lost: list[Loss] = []
    openai_chat.dump_messages(messages, losses=lost, **how)
    assert all(loss.why for loss in lost)
    return [(loss.message, loss.part, f"{loss.what} {loss.which}".rstrip()) for loss in lost]


# ------------------------------------------------------------------ D-90 … D-94


def test_d90_decision_20b_system_messages_stand_where_they_are() -> None:
    said = dump(Message.system("a"), Message.user("b"), Message.system("c"))
    assert said == [
        {"role": "system", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "system", "content": "c"},
    ]


def test_a_developer_message_is_a_system_message_so_spelled() -> None:
    [message] = there_and_back({"role": "developer", "content": "a", "name": "n"})
    assert message.role is Role.SYSTEM
    assert dump(message, quirks=Quirks(developer=False))[0]["role"] == "system"


def test_d91_each_result_is_a_tool_message_and_the_rest_follows() -> None:
    message = Message.user(ToolResultPart("a", "f", "1"), ToolResultPart("b", "g", "2"), "and now?")
    assert dump(message) == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "user", "content": "and now?"},
    ]
    assert losses(message) == []
    assert losses(Message.user("first", ToolResultPart("a", "f", "1"))) == [(0, 1, "order")]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        ({"ä": 1}, '{"ä":1}'),
        ([], "[]"),
        (1.5, "1.5"),
    ],
)
def test_d92_a_result_is_text_as_it_is_or_json(result: Any, text: str) -> None:
    assert dump(Message.user(ToolResultPart("a", "f", result)))[0]["content"] == text


def test_d93_user_content() -> None:
    assert dump(Message.user("one"))[0]["content"] == "one"
    assert dump(Message.user())[0]["content"] == ""
    assert dump(Message.user("one", "two"))[0]["content"] == [
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two"},
    ]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    assert dump(Message.user(DataPart(b"hi", "image/png")))[0]["content"] == [image]
    link = {"type": "image_url", "image_url": {"url": "https://x/y"}}
    assert dump(Message.user(LinkPart("https://x/y", "text/html")))[0]["content"] == [link]
    assert dump(Message.user(DataPart(b"hi", "text/csv")))[0]["content"] == "[media: text/csv]\nhi"


def test_data_that_todays_api_has_blocks_for() -> None:
    message = Message.user(
        DataPart(b"hi", "audio/x-wav"),
        DataPart(b"hi", "application/pdf", "a.pdf"),
        DataPart(b"hi", "application/pdf"),
        FilePart("file-1"),
    )
    assert dump(message)[0]["content"] == [
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
        },
        {
            "type": "file",
            "file": {"filename": "file.pdf", "file_data": "data:application/pdf;base64,aGk="},
        },
        {"type": "file", "file": {"file_id": "file-1"}},
    ]


def test_blocks_that_a_vendor_has_beyond_the_usual_ones() -> None:
    quirks = Quirks(blocks={"video": "video_url", "application": "file"})
    message = Message.user(
        LinkPart("https://x/v", "video/mp4"), LinkPart("https://x/d", "application/pdf", "d.pdf")
    )
    assert dump(message, quirks=quirks)[0]["content"] == [
        {"type": "video_url", "video_url": {"url": "https://x/v"}},
        {"type": "file", "file": {"filename": "d.pdf", "file_data": "https://x/d"}},
    ]
    files = dump(
        Message.user(DataPart(b"hi", "application/zip")),
        quirks=Quirks(blocks={"application": "file_url"}),
    )
    assert files[0]["content"] == [{"type": "file_url", "file_url": {"url": "aGk="}}]


def test_d94_the_models_message() -> None:
    assert dump(Message.model("a")) == [{"role": "assistant", "content": "a"}]
    assert dump(Message.model(ToolCallPart("c", "f", {"ä": [1]}))) == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"ä":[1]}'}}
            ],
        }
    ]


def test_text_that_stood_after_a_call_is_told_as_moved() -> None:
    message = Message.model("a", ToolCallPart("c", "f"), "b")
    assert dump(message)[0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    assert dump(message, quirks=Quirks(string_content=True))[0]["content"] == "ab"
    assert losses(message) == [(0, 2, "order")]


# ------------------------------------------------------------------ there and back


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": ""},
        {
            "type": "image_url",
            "image_url": {"url": "https://x/y", "detail": "low"},
            "cache_control": {"type": "x"},
        },
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "data:application/pdf;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGl="}},
        {"type": "image_url", "image_url": "https://x/y"},
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,aGk="}},
        {"type": "video_url", "video_url": {"url": "https://x/v", "fps": 1}},
        {"type": "audio_url", "audio_url": {"url": "https://x/a"}},
        {"type": "file_url", "file_url": {"url": "https://x/d"}},
        {"type": "file_url", "file_url": {"url": "aGk="}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "flac"}},
        {"type": "input_audio", "input_audio": {"data": "https://x/a", "format": "wav"}},
        {"type": "file", "file": {"file_id": "file-1", "filename": "a"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk="}},
        {"type": "file", "file": {"file_data": "data:text/plain;base64,aGk=", "filename": "a.txt"}},
        {"type": "file", "file": {"file_data": "https://x/d", "filename": "d.pdf"}},
        {"type": "file", "file": {"filename": ""}},
        {"type": "refusal", "refusal": "No."},
        {"type": "unheard_of", "x": {"y": 1}},
        {"no": "type"},
    ],
)
def test_every_block_comes_back_as_it_was(block: dict[str, Any]) -> None:
    there_and_back({"role": "user", "content": [block]})
    there_and_back({"role": "assistant", "content": [block, {"type": "text", "text": "b"}]})
    there_and_back(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": [block, block]},
    )


def test_media_are_neutral_parts() -> None:
    blocks = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "file_url", "file_url": {"url": "aGk="}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "video_url", "video_url": {"url": "https://x/v"}},
    ]
    [message] = there_and_back({"role": "user", "content": blocks})
    image, audio, raw, file, link = message.parts
    assert isinstance(image, DataPart)
    assert (image.data, image.mime_type) == (b"hi", "image/png")
    assert isinstance(audio, DataPart)
    assert (audio.data, audio.mime_type) == (b"hi", "audio/wav")
    assert isinstance(raw, DataPart)
    assert raw.data == b"hi"
    assert isinstance(file, FilePart)
    assert isinstance(link, LinkPart)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant"},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": []},
        {"role": "user", "content": None},
        {"role": "user"},
        {"role": "system", "content": [{"type": "text", "text": "a"}]},
        {"role": "user", "content": "a", "name": None, "tool_calls": None},
        {
            "role": "assistant",
            "content": "a",
            "refusal": None,
            "annotations": [],
            "audio": None,
            "function_call": None,
        },
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "assistant", "content": "a", "prefix": True},
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
        {"role": "assistant", "content": "a", "audio": {"id": "audio_1", "more": 1}},
        {
            "role": "assistant",
            "content": "a",
            "images": [{"type": "image_url", "image_url": {"url": "https://x"}}],
        },
        {"role": "assistant", "content": "a", "reasoning_content": ""},
        {"role": "assistant", "content": "a", "reasoning_content": "hm"},
        {"role": "assistant", "content": "a", "reasoning": "hm", "reasoning_content": "hm"},
        {"role": "assistant", "content": "a", "reasoning": "hm", "reasoning_content": "other"},
        {
            "role": "assistant",
            "content": "a",
            "reasoning": "hm",
            "reasoning_details": [{"type": "reasoning.text", "text": "hm"}],
        },
        {
            "role": "assistant",
            "content": "a",
            "reasoning_details": [{"type": "reasoning.summary", "summary": "s", "index": 0}],
        },
        {
            "role": "assistant",
            "content": "a",
            "reasoning_details": [{"type": "reasoning.text", "text": "", "signature": "s"}],
        },
        {"role": "assistant", "content": "a", "reasoning_details": [{"text": "bare"}]},
        {
            "role": "assistant",
            "content": "a",
            "executed_tools": [{"index": 0, "type": "s", "arguments": "{}", "output": "o", "x": 1}],
        },
        {"role": "assistant", "content": "absent"},
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "odd"}, 7]},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]},
        {"role": "user", "content": "list"},
    ],
)
def test_every_spelling_of_a_message_comes_back_as_it_was(message: dict[str, Any]) -> None:
    there_and_back(message)


@pytest.mark.parametrize(
    "call",
    [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{ "x": 1 }'}},
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x'}},
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": None}},
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
        {"id": "a", "type": "function", "function": {"name": "f"}},
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "absent"}},
        {
            "id": "a",
            "type": "function",
            "function": {"name": "f", "arguments": "{}", "strict": True},
            "index": 0,
        },
        {"id": "a", "function": {"name": "f", "arguments": "{}"}},
        {"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": None, "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}},
    ],
)
def test_every_spelling_of_a_call_comes_back_as_it_was(call: dict[str, Any]) -> None:
    answer = {"role": "tool", "content": "1"}
    if "id" in call:
        answer["tool_call_id"] = call["id"]
    said, told = there_and_back(
        {"role": "assistant", "content": None, "tool_calls": [call]}, answer
    )
    [asked], [result] = said.tool_calls, told.tool_results
    assert asked.id
    assert result.id == asked.id
    assert result.name == "f"


def test_calls_without_ids_are_answered_in_their_order() -> None:
    calls = [
        {"type": "function", "function": {"name": name, "arguments": "{}"}}
        for name in ("f", "f", "g")
    ]
    answers = [{"role": "tool", "content": content} for content in ("1", "2", "3")]
    said, told = there_and_back(
        {"role": "assistant", "content": None, "tool_calls": calls}, *answers
    )
    assert [result.id for result in told.tool_results] == [call.id for call in said.tool_calls]
    assert len({call.id for call in said.tool_calls}) == 3


def test_thinking_that_is_told_twice_is_one_thinking() -> None:
    entry = {"type": "reasoning.text", "text": "hm"}
    for fields in ({"reasoning_content": "hm"}, {"reasoning_details": [entry]}):
        [said] = there_and_back({"role": "assistant", "content": "a", "reasoning": "hm", **fields})
        assert said.thinking == "hm"


def test_results_in_a_row_are_one_message_and_know_their_tools() -> None:
    calls = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for id_, name in ("af", "bg")
    ]
    _, results, after = there_and_back(
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "tool", "tool_call_id": "a", "content": "1", "name": "own"},
        {"role": "user", "content": "x"},
    )
    assert [(result.id, result.name, result.result) for result in results.tool_results] == [
        ("b", "g", "2"),
        ("a", "own", "1"),
    ]
    assert after.text == "x"


@pytest.mark.parametrize("content", [None, [], {"x": 1}, [{"type": "text", "text": ""}], ["x"]])
def test_odd_contents_of_a_tool_message_come_back_as_they_were(content: Any) -> None:
    there_and_back({"role": "tool", "tool_call_id": "a", "content": content})


def test_the_older_function_call_and_its_answer() -> None:
    said, told = there_and_back(
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "f", "arguments": '{"x":1}'},
        },
        {"role": "function", "name": "f", "content": "1"},
    )
    assert said.tool_calls[0].arguments == {"x": 1}
    assert told.tool_results[0].id == said.tool_calls[0].id
    moved = dump(said.replace(origin=HERE), told, target=Origin("groq"))
    assert moved[0]["tool_calls"][0]["id"] == moved[1]["tool_call_id"] == "call-0"


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {},
        "x",
        [1],
        [{"role": "wizard", "content": "x"}],
        [{"role": []}],
        [{}],
        [{"role": "user", "content": 1}],
        [{"role": "user", "content": ["x"]}],
    ],
)
def test_what_is_no_conversation_is_refused_with_words(payload: Any) -> None:
    with pytest.raises(HistoryError, match=r"messages|role|content"):
        openai_chat.load_messages(payload)


def test_an_edited_call_is_sent_as_edited() -> None:
    [said] = openai_chat.load_messages(
        [
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{ "x":1}'},
                    }
                ],
            }
        ]
    )
    [call] = said.tool_calls
    edited = ToolCallPart(call.id, call.name, {"x": 2}, raw=call.raw, native=call.native)
    assert (
        dump(said.replace(content=(edited,)))[0]["tool_calls"][0]["function"]["arguments"]
        == '{"x":2}'
    )


@given(histories)
def test_any_history_is_dumped_and_that_dump_is_stable(history: list[Message]) -> None:
    dumped = openai_chat.dump_messages(history)
    loaded = openai_chat.load_messages(dumped)
    assert openai_chat.dump_messages(loaded) == dumped
    for target in (HERE, Origin("other")):
        lost: list[Loss] = []
        openai_chat.dump_messages(history, target=target, quirks=FITTING, losses=lost)
        assert all(loss.message is not None and loss.message < len(history) for loss in lost)


@given(histories)
def test_a_longer_history_begins_with_the_shorter_one(history: list[Message]) -> None:
    for quirks in (None, FITTING):
        longer = openai_chat.dump_messages([*history, Message.user("more")], quirks=quirks)
        assert longer[:-1] == openai_chat.dump_messages(history, quirks=quirks)


# ------------------------------------------------------------------ results


def test_media_of_a_tool_follow_in_a_user_message_where_tool_messages_hold_text_only() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    message = Message.user(
        ToolResultPart("a", "f", (TextPart("see"), DataPart(b"hi", "image/png"))), "and?"
    )
    assert dump(message) == [
        {"role": "tool", "tool_call_id": "a", "content": "see"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[result of f]"},
                image,
                {"type": "text", "text": "and?"},
            ],
        },
    ]
    assert losses(message) == [(0, 0, "media")]
    [tool, _] = dump(message, quirks=Quirks(tool_media=True))
    assert tool["content"] == [{"type": "text", "text": "see"}, image]


def test_a_failed_tool_is_told_as_far_as_its_result_tells_it() -> None:
    assert losses(Message.user(ToolResultPart("a", "f", "boom", is_error=True))) == [
        (0, 0, "is_error")
    ]
    assert losses(Message.user(ToolResultPart("a", "f", {"error": "boom"}, is_error=True))) == []


# ------------------------------------------------------------------ to whom what is sent


def test_thinking_goes_back_to_its_origin_only() -> None:
    said = model(ThinkingPart("hm"), "Yes")
    plain = [{"role": "assistant", "content": "Yes"}]
    assert dump(said, target=HERE) == [
        {"role": "assistant", "content": "Yes", "reasoning_content": "hm"}
    ]
    assert dump(said, target=HERE, quirks=Quirks(thinking="reasoning"))[0]["reasoning"] == "hm"
    assert dump(said, target=HERE, quirks=Quirks(thinking=None)) == plain
    assert dump(said, target=Origin("groq")) == plain
    assert losses(said, target=Origin("groq")) == [(0, 0, "thinking")]
    assert dump(said, target=Origin("groq"), quirks=Quirks(reads=("openai",))) != plain


def test_signed_thinking_goes_back_byte_exact_while_what_stood_before_it_is_unchanged() -> None:
    entry = {"type": "reasoning.text", "text": "hm", "signature": "s=", "format": None, "index": 0}
    asked = Message.user("Why?")
    [said] = openai_chat.load_messages(
        [{"role": "assistant", "content": "Yes", "reasoning_details": [entry]}]
    )
    said = said.replace(origin=Origin("openai", HERE.endpoint, prefix=compute_prefix([asked], "w")))
    assert dump(asked, said, target=HERE)[1]["reasoning_details"] == [entry]
    assert dump(Message.user("How?"), said, target=HERE)[1] == {
        "role": "assistant",
        "content": "Yes",
    }
    assert losses(Message.user("How?"), said, target=HERE) == [(1, 0, "thinking")]


def test_what_only_its_provider_understands_stays_away_from_others() -> None:
    [said] = openai_chat.load_messages(
        [
            {
                "role": "assistant",
                "content": [{"type": "odd", "x": 1}, {"type": "text", "text": "a"}],
                "annotations": [{"type": "x"}],
                "tool_calls": [
                    {
                        "id": "c",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                        "extra_content": {"s": 1},
                    }
                ],
            }
        ]
    )
    said = said.replace(origin=HERE)
    assert dump(said, target=Origin("groq")) == [
        {
            "role": "assistant",
            "content": "a",
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        }
    ]
    assert losses(said, target=Origin("groq")) == [
        (0, 0, "provider"),
        (0, 2, "field extra_content"),
        (0, None, "field annotations"),
    ]
    assert "annotations" in dump(said, target=HERE)[0]


def test_native_fields_of_another_wire_are_never_read() -> None:
    signed = ThinkingPart("hm", {"anthropic": {"signature": "s"}})
    assert dump(Message.model(signed, TextPart("a", {"anthropic": {"citations": [1]}}))) == [
        {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    ]
    assert dump(
        Message.model(
            ThinkingPart("", {"anthropic": {"data": "x"}}),
            ProviderPart("compaction", {"anthropic": {"x": 1}}),
            "a",
        )
    ) == [{"role": "assistant", "content": "a"}]
    assert losses(Message.model(ProviderPart("compaction", {"anthropic": {"x": 1}}))) == [
        (0, 0, "provider")
    ]


def test_decision_22_what_the_provider_ran_is_left_out_for_others() -> None:
    said = model(
        ToolCallPart("p", "search", {"q": 1}, run_by="provider"),
        ToolResultPart("p", "search", "r", run_by="provider"),
        "a",
    )
    assert dump(said, target=Origin("groq")) == [{"role": "assistant", "content": "a"}]
    assert losses(said, target=Origin("groq")) == [(0, 0, "tool call"), (0, 1, "tool result")]
    assert dump(said)[0]["executed_tools"] == [
        {"index": 0, "type": "search", "arguments": '{"q":1}', "output": "r"}
    ]


def test_media_of_another_model_are_no_part_of_an_assistant_message() -> None:
    said = model(DataPart(b"hi", "image/png"), "a", origin=Origin("google"))
    assert dump(said, target=HERE) == [{"role": "assistant", "content": "a"}]
    assert losses(said, target=HERE) == [(0, 0, "data")]


def test_cut_and_invalid_calls_are_never_sent_as_they_were() -> None:
    for state in ("cut", "invalid"):
        said = Message.model(ToolCallPart("c", "f", raw='{"x', state=state))
        assert dump(said)[0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_decision_12_an_id_that_was_not_given_goes_to_others_only() -> None:
    said = model(ToolCallPart("minted", "f", native={"openai_chat": {"id": None}}))
    answer = Message.user(ToolResultPart("minted", "f", "1"))
    [call, result] = dump(said, answer, target=HERE)
    assert "id" not in call["tool_calls"][0]
    assert "tool_call_id" not in result
    [call, result] = dump(said, answer, target=Origin("groq"))
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "minted"


def test_decision_12_ids_and_names_that_do_not_fit_are_mapped_for_the_request() -> None:
    long = "gemini-" + "x" * 60
    history = [
        Message.model(ToolCallPart(long, "my tool"), ToolCallPart(long, "f")),
        Message.user(ToolResultPart(long, "my tool", "1"), ToolResultPart(long, "f", "2")),
    ]
    said, first, second = dump(*history, target=HERE, quirks=Quirks(max_id_length=40))
    ids = [call["id"] for call in said["tool_calls"]]
    assert [first["tool_call_id"], second["tool_call_id"]] == ids
    assert len(set(ids)) == 2
    assert all(len(id_) <= 40 for id_ in ids)
    assert said["tool_calls"][0]["function"]["name"] != "my tool"
    assert said["tool_calls"][1]["function"]["name"] == "f"
    assert dump(*history)[1]["tool_call_id"] == long


def test_parts_that_have_no_place_in_a_users_message_are_told() -> None:
    assert losses(Message.user(ThinkingPart("hm"), "a")) == [(0, 0, "thinking")]
    assert losses(Message.user(ToolCallPart("c", "f"))) == [(0, 0, "tool call")]
    assert losses(Message.model(ToolResultPart("c", "f", "1"))) == [(0, 0, "tool result")]
