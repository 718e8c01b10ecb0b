"""Rules of Mastra's MessageList about what is read and written in the family, by their numbers."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Message, ToolCallPart, ToolResultPart, formats, wires
from dragoman.loss import Loss, Lost
from dragoman.message import DataPart, LinkPart, Origin, Role
from dragoman.wires.ai_sdk_messages import ai4_ui_messages, conversation, read_turn
from dragoman.wires.ai_sdk_messages import mastra_v2_rows as row_rooms
from dragoman.wires.ai_sdk_messages.approvals import approvals
from support import mastra_rows as rows
from support.ai_sdk_samples import PNG

UI, MODEL = formats.get("ai_sdk_ui"), formats.get("ai_sdk_model")
V1, V2 = formats.get("mastra_v1"), formats.get("mastra_v2")
PIXEL = PNG.partition(",")[2]


@pytest.mark.parametrize(
    ("response", "state"),
    [(None, "approval-requested"), (True, "approval-responded"), (False, "approval-responded")],
)
def test_m17_approvals_in_parts_are_the_state_of_their_call(
    response: bool | None, state: str
) -> None:
    calls = [
        {"type": "tool-call", "toolCallId": f"c{n}", "toolName": "f", "input": {}} for n in (1, 2)
    ]
    request = {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c2"}
    document: list[Any] = [{"role": "assistant", "content": [*calls, request]}]
    if response is not None:
        answer = {"type": "tool-approval-response", "approvalId": "a", "approved": response}
        document.append({"role": "tool", "content": [answer]})
    messages = MODEL.load_messages(document)
    (shown,) = UI.dump_messages(messages)
    assert [part["state"] for part in shown["parts"]] == ["input-available", state]
    assert [(one.interrupt_id, one.payload) for one in approvals(messages)] == (
        [] if response is None else [("c2", {"approved": response})]
    )
    assert MODEL.dump_messages(messages) == document


def test_m18_options_of_a_message_stay_the_messages_and_those_of_a_part_the_parts() -> None:
    cached = {"anthropic": {"cacheControl": {"type": "ephemeral"}}}
    part = {"type": "text", "text": "b", "providerOptions": {"google": {"x": 1}}}
    document = [
        {"role": "system", "content": "a", "providerOptions": cached},
        {"role": "user", "content": "b", "providerOptions": cached},
        {"role": "user", "content": [part], "providerOptions": cached},
    ]
    assert MODEL.dump_messages(MODEL.load_messages(document)) == document


def test_m82_a_row_as_ai_5_shows_it() -> None:
    source = {"sourceType": "url", "id": "s", "url": "https://example.com"}
    given = rows.row(
        "a1",
        "assistant",
        {"type": "reasoning", "reasoning": "Hm.", "details": [{"type": "text", "text": "Hm."}], "providerMetadata": {"x": {"n": 1}}},
        {**rows.part("c1"), "providerMetadata": {"x": {"n": 2}}},
        {"type": "file", "mimeType": "image/png", "data": PIXEL, "providerMetadata": {"x": {"n": 3}}},
        {"type": "text", "text": "21.", "providerMetadata": {"x": {"n": 4}}},
        {"type": "source", "source": {**source, "providerMetadata": {"x": {"n": 5}}}},
        metadata={"mine": 1},
    )  # fmt: skip
    (shown,) = UI.dump_messages(V2.load_messages([given]), version="v5")
    assert shown["metadata"]["mine"] == 1
    thinking, call, step, file, text, url = shown["parts"]
    assert step == {
        "type": "step-start"
    }  # M-83, M-86: what stands behind an answered call is another step
    assert thinking == {
        "type": "reasoning",
        "text": "Hm.",
        "state": "done",
        "providerMetadata": {"x": {"n": 1}},
    }
    assert (call["type"], call["state"]) == ("tool-weather", "output-available")
    assert (call["input"], call["output"]) == ({"city": "Rome"}, {"celsius": 21})
    assert call["callProviderMetadata"] == {"x": {"n": 2}} and "providerMetadata" not in call
    assert (file["url"], file["mediaType"], file["providerMetadata"]["x"]) == (
        PNG,
        "image/png",
        {"n": 3},
    )
    assert (text["text"], text["providerMetadata"]) == ("21.", {"x": {"n": 4}})
    assert (url["type"], url["sourceId"], url["providerMetadata"]) == (
        "source-url",
        "s",
        {"x": {"n": 5}},
    )


def test_m83_a_turn_is_assistant_tool_assistant() -> None:
    parts = [rows.part("c1"), {"type": "step-start"}, {"type": "text", "text": "21."}]
    made = MODEL.dump_messages(V2.load_messages([rows.row("a1", "assistant", *parts)]))
    assert [one["role"] for one in made] == ["assistant", "tool", "assistant"]
    assert made[1]["content"][0]["output"] == {"type": "json", "value": {"celsius": 21}}


def test_m88_what_another_provider_ran_is_left_out_and_told() -> None:
    ran = (
        ToolCallPart("p", "web_search", {"q": "Rome"}, run_by="provider"),
        ToolResultPart("p", "web_search", [1], run_by="provider"),
    )
    message = Message(Role.MODEL, (*ran, "Found."), origin=Origin("anthropic"))
    losses: list[Loss] = []
    target = Origin("openai-responses")
    made = wires.get("openai_responses").dump_messages([message], losses=losses, target=target)[
        "input"
    ]
    assert made == [{"role": "assistant", "content": "Found."}]
    assert [(loss.part, loss.what) for loss in losses] == [
        (0, Lost.tool_call),
        (1, Lost.tool_result),
    ]


def test_m90_what_a_tool_shows_the_model_alone_is_kept_beside_its_result() -> None:
    metadata = {"mastra": {"modelOutput": {"type": "text", "value": "warm"}}}
    given = rows.row("a1", "assistant", {**rows.part("c1"), "providerMetadata": metadata})
    messages = V2.load_messages([given])
    assert messages[1].tool_results[0].result == {"celsius": 21}
    assert V2.dump_messages(messages) == [given]
    (shown,) = UI.dump_messages(messages)
    assert shown["parts"][0]["callProviderMetadata"] == metadata


@pytest.mark.parametrize("kind", ["suspendedTools", "pendingToolApprovals"])
def test_m91_what_metadata_says_of_calls_that_wait_stays_there(kind: str) -> None:
    waiting = {
        kind: {"weather": {"toolCallId": "c1", "toolName": "weather", "args": {}, "runId": "r"}}
    }
    given = rows.row("a1", "assistant", rows.part("c1", "call"), metadata=waiting)
    (message,) = V2.load_messages([given])
    assert V2.dump_messages([message]) == [given]
    (shown,) = UI.dump_messages([message])
    assert shown["metadata"][kind] == waiting[kind]
    assert [part["state"] for part in shown["parts"]] == ["input-available"]


def test_m92_rows_of_a_turn() -> None:
    step, text = {"type": "step-start"}, {"type": "text", "text": "x"}
    one = [text, rows.part("c1"), step, text]
    three = [text, rows.part("c1"), rows.part("c2"), step, text, rows.part("c3"), step, text]
    kinds: list[list[str]] = []
    for parts in (one, three, [text, rows.part("c1", "call")]):
        made = V1.dump_messages(V2.load_messages([rows.row("a1", "assistant", *parts)]))
        assert len({each["id"] for each in made}) == len(made)
        kinds.append([each["type"] for each in made])
    assert kinds[0] == ["text", "tool-call", "tool-result", "text"]
    assert kinds[1] == [
        "text",
        "tool-call",
        "tool-result",
        "text",
        "tool-call",
        "tool-result",
        "text",
    ]
    assert kinds[2] == ["text", "tool-call"]


@pytest.mark.parametrize("url", ["data:hello", "data:"])
def test_m99_a_data_url_without_a_comma_stays_what_it_is(url: str) -> None:
    document = [
        {"role": "user", "content": [{"type": "file", "data": url, "mediaType": "text/plain"}]}
    ]
    messages = MODEL.load_messages(document)
    piece = messages[0].content[0]
    assert isinstance(piece, LinkPart) and piece.url == url
    assert MODEL.dump_messages(messages) == document
    assert UI.dump_messages(messages)[0]["parts"][0]["url"] == url
    assert V2.dump_messages(messages)[0]["content"]["parts"][0]["data"] == url


@pytest.mark.mend("3.4")
@pytest.mark.parametrize("url", ["data:text/plain,hello", "data:text/plain;charset=utf-8,a%20b"])
def test_m99_a_data_url_without_base64_is_data_that_is_given_back_as_it_was(url: str) -> None:
    document = [
        {"role": "user", "content": [{"type": "file", "data": url, "mediaType": "text/plain"}]}
    ]
    messages = MODEL.load_messages(document)
    assert isinstance(messages[0].content[0], DataPart)
    assert MODEL.dump_messages(messages) == document
    written = UI.dump_messages(messages)[0]["parts"][0]["url"]
    assert written.startswith("data:text/plain;base64,")


def test_m100_an_attachment_without_a_type_is_a_file() -> None:
    attached = [
        {"url": "https://a.test/b"},
        {"url": PNG},
        {"url": "https://a.test/c", "contentType": "image/webp"},
    ]
    document = [{"id": "u", "role": "user", "content": "x", "experimental_attachments": attached}]
    messages = UI.load_messages(document)
    assert [getattr(piece, "mime_type", "") for piece in messages[0].content] == [
        "",
        None,
        "image/png",
        "image/webp",
    ]
    assert UI.dump_messages(messages) == document


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (PIXEL, "image/png"), ("/9j/4AAQSkZJRgABAQ==", "image/jpeg"), ("JVBERi0xLjQK", "application/pdf"),
        ("AAAA", "application/octet-stream"),
    ],
)  # fmt: skip
def test_m101_a_file_without_a_type_is_told_by_its_bytes(data: str, found: str) -> None:
    document = [{"role": "user", "content": [{"type": "file", "data": data}]}]
    messages = MODEL.load_messages(document)
    piece = messages[0].content[0]
    assert isinstance(piece, DataPart) and piece.mime_type == found
    assert MODEL.dump_messages(messages) == document


@pytest.mark.parametrize("version", ["ai_sdk_ui", "mastra_v2"])
def test_texts_alone_are_written_and_read_without_the_rooms_for_parts(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work is counted, not timed: most of a conversation is texts."""
    messages = [Message.user("Hi.").replace(id="u"), Message.model("Ho.").replace(id="m")] * 3
    format_, counted = formats.get(version), list[str]()
    for module, name in (
        (conversation, "dump_group"),
        (ai4_ui_messages, "turn_of"),
        (row_rooms, "turn_of"),
        (read_turn, "turn_of"),
    ):
        whole = getattr(module, name)
        monkeypatch.setattr(
            module,
            name,
            lambda *given, _whole=whole, _name=name, **more: (
                counted.append(_name) or _whole(*given, **more)
            ),
        )
    made = format_.dump_messages(messages)
    assert [(one.role, one.text) for one in format_.load_messages(made)] == [
        (one.role, one.text) for one in messages
    ]
    assert counted == []
    old = UI.dump_messages(messages, version="v4")
    counted.clear()
    assert [one.text for one in UI.load_messages(old)] == [one.text for one in messages]
    assert counted == []
    format_.dump_messages([messages[0].replace(metadata={"mine": 1})])
    assert counted == ["dump_group"]


def test_rows_of_the_first_form_have_no_message_for_an_approval_alone() -> None:
    request = {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"}
    call = {"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {}}
    answer = {"type": "tool-approval-response", "approvalId": "a", "approved": True}
    document = [
        {"role": "assistant", "content": [call, request]},
        {"role": "tool", "content": [answer]},
    ]
    assert [each["type"] for each in V1.dump_messages(MODEL.load_messages(document))] == [
        "tool-call"
    ]


def test_a_row_of_texts_with_fields_of_its_own_comes_back() -> None:
    text = {"type": "text", "text": "x"}
    given = {**rows.row("u1", "user", text, content="x", mine=1, annotations=[2]), "mine": 3}
    assert V2.dump_messages(V2.load_messages([given])) == [given]
