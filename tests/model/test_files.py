"""Files that a provider's tools made: D-114, D-144r. Those that come inline are parts; those that
it holds are asked for."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import Any

import pytest

from dragoman import (
    Agent,
    Custom,
    DataPart,
    FilePart,
    Message,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    fold,
    wires,
)
from dragoman.errors import InvalidRequestError, ModelNotFoundError, SettingsError
from support.media import PNG, Stub
from support.traffic import exchanges

URL = f"data:image/png;base64,{b64encode(PNG).decode()}"
CODE = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "code": "plot()",
    "container_id": "cntr_1",
    "status": "completed",
    "outputs": [
        {"type": "logs", "logs": "a"},
        {"type": "image", "url": URL},
        {"type": "logs", "logs": "b"},
    ],
}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [
        {
            "type": "output_text",
            "text": "Here: a.csv, b.txt",
            "annotations": [
                {
                    "type": "url_citation",
                    "url": "https://x",
                    "title": "x",
                    "start_index": 0,
                    "end_index": 1,
                },
                {
                    "type": "container_file_citation",
                    "container_id": "cntr/1",
                    "file_id": "cfile_1",
                    "filename": "a.csv",
                    "start_index": 6,
                    "end_index": 11,
                },
                {
                    "type": "container_file_citation",
                    "container_id": "cntr/1",
                    "file_id": "cfile_1",
                    "filename": "a.csv",
                    "start_index": 6,
                    "end_index": 11,
                },
                {"type": "file_path", "file_id": "file-2", "index": 13},
            ],
        }
    ],
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m",
    "output": [CODE, SAID],
}
RAN = {
    "type": "bash_code_execution_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {
        "type": "bash_code_execution_result",
        "stdout": "",
        "stderr": "",
        "return_code": 0,
        "content": [
            {"type": "bash_code_execution_output", "file_id": "file_a"},
            {"type": "bash_code_execution_output", "file_id": "file_b"},
        ],
    },
}


def message_of(wire: str, response: dict[str, Any]) -> Message:
    [message] = fold(wires.get(wire).load_response(response))
    return message


def files_of(message: Message) -> list[Any]:
    return Agent("local").files([Message.user("Hi", DataPart(b"mine", "text/plain")), message])


def test_images_that_code_made_are_parts_in_their_place_and_go_back() -> None:
    wire = wires.get("openai_responses")
    events = wire.load_response(RESPONSE)
    [message] = fold(events)
    call, result, image, said = message.content
    assert isinstance(call, ToolCallPart)
    assert isinstance(result, ToolResultPart)
    assert result.result == [CODE["outputs"][0], CODE["outputs"][2]]  # nothing is held twice
    assert isinstance(image, DataPart)
    assert (image.data, image.mime_type, image.name) == (PNG, "image/png", "image_0.png")
    assert image in message.parts
    assert isinstance(said, TextPart)
    assert wire.dump_messages([message])["input"][0] == CODE
    assert wire.dump_messages(wire.load_messages({"input": [CODE]}))["input"] == [CODE]
    assert wire.dump_messages([Message.from_json(message.to_json())])["input"][0] == CODE
    assert wire.dump_response(events)["output"][0] == CODE


def test_an_image_of_code_whose_result_was_taken_out_still_stands_with_its_call() -> None:
    wire = wires.get("openai_responses")
    message = message_of("openai_responses", RESPONSE)
    without = message.replace(content=(message.content[0], message.content[2]))
    assert wire.dump_messages([without])["input"] == [{**CODE, "outputs": [CODE["outputs"][1]]}]


@pytest.mark.parametrize("url", ["https://x/y.png", "data:image/png;base64,*", "", None])
def test_an_output_of_code_that_holds_no_data_stays_in_the_result(url: str | None) -> None:
    item = {**CODE, "outputs": [{"type": "image", "url": url}]}
    message = message_of("openai_responses", {**RESPONSE, "output": [item]})
    assert [type(piece) for piece in message.content] == [ToolCallPart, ToolResultPart]
    assert wires.get("openai_responses").dump_messages([message])["input"] == [item]


def test_files_that_openai_holds_are_named_once() -> None:
    image, *held = files_of(message_of("openai_responses", RESPONSE))
    assert image.data == PNG
    assert [(file.id, file.name) for file in held] == [("cfile_1", "a.csv"), ("file-2", None)]


def test_recorded_files_in_containers_are_found() -> None:
    found = []
    for exchange in exchanges("openai_responses"):
        if b"container_file_citation" in exchange.body:
            decoder = wires.get("openai_responses").decoder()
            [message] = fold([*decoder.feed(exchange.body), *decoder.close()])
            found += files_of(message)
    assert found
    for file in found:
        path = wires.get("openai_responses").dump_download(file).content.path
        assert path.startswith("/containers/cntr_")
        assert path.endswith("/content")


def test_files_that_anthropics_code_wrote_are_named() -> None:
    call = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "bash_code_execution",
        "input": {"command": "ls"},
    }
    message = message_of(
        "anthropic",
        {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [call, RAN]},
    )
    assert [file.id for file in files_of(message)] == ["file_a", "file_b"]
    assert wires.get("anthropic").dump_messages([message])["messages"][0]["content"] == [call, RAN]
    failed = {
        **RAN,
        "content": {"type": "bash_code_execution_tool_result_error", "error_code": "unavailable"},
    }
    message = message_of(
        "anthropic",
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "c",
            "content": [call, failed],
        },
    )
    assert files_of(message) == []


def test_recorded_documents_that_anthropic_fetched_are_files() -> None:
    found = 0
    for exchange in exchanges("anthropic"):
        if b'"web_fetch_result"' in exchange.body:
            decoder = wires.get("anthropic").decoder()
            [message] = fold([*decoder.feed(exchange.body), *decoder.close()])
            files = files_of(message)
            assert all(isinstance(file, DataPart) and file.data for file in files), exchange
            found += len(files)
    assert found


def test_what_gemini_paints_is_a_part_and_goes_back() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": b64encode(PNG).decode()}}
    ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "x"}}
    content = {"role": "model", "parts": [{"text": "See"}, ran, part]}
    message = message_of("google", {"candidates": [{"content": content, "finishReason": "STOP"}]})
    [image] = files_of(message)
    assert (image.data, image.mime_type) == (PNG, "image/png")
    assert wires.get("google").dump_messages([message])["contents"] == [content]


def test_an_image_is_shown_before_it_is_finished() -> None:
    shown = {
        "item_id": "ig_1",
        "partial_image_index": 0,
        "partial_image_b64": b64encode(PNG).decode(),
    }
    item = {
        "type": "image_generation_call",
        "id": "ig_1",
        "status": "completed",
        "result": b64encode(PNG).decode(),
    }
    told = [
        {
            "type": "response.created",
            "response": {**RESPONSE, "status": "in_progress", "output": []},
        },
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "result": None}},
        {
            "type": "response.image_generation_call.partial_image",
            "sequence_number": 3,
            "output_index": 0,
            **shown,
        },
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**RESPONSE, "output": [item]}},
    ]
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in told)

    async def run() -> list[Any]:
        stub = Stub({"/responses": (200, {"content-type": "text/event-stream"}, body)})
        agent = Agent("openai-responses:m", api_key="k", base_url="http://x/v1", transport=stub)
        return [event async for event in agent.send_events("Paint")]

    events = asyncio.run(run())
    assert [event.value for event in events if isinstance(event, Custom)] == [shown]
    assert [event.name for event in events if isinstance(event, Custom)] == [
        "image_generation.partial_image"
    ]
    [image] = Agent("local").files(fold(events))
    assert isinstance(image, DataPart)
    assert image.data == PNG


def test_recorded_images_in_the_making_are_shown() -> None:
    for exchange in exchanges("openai_responses"):
        if b"response.image_generation_call.partial_image" in exchange.body:
            decoder = wires.get("openai_responses").decoder()
            events = [*decoder.feed(exchange.body), *decoder.close()]
            assert any(
                isinstance(event, Custom) and event.value["partial_image_b64"] for event in events
            )
            return
    pytest.skip("no recording shows one")


# downloads


def downloaded(
    part: FilePart, answers: Any, provider: str = "openai-responses:m", **how: Any
) -> tuple[Any, Stub]:
    stub = Stub(answers)
    agent = Agent(provider, api_key="k", base_url="http://x/v1", transport=stub)
    return agent.download_sync(part, **how), stub


def test_a_file_of_a_container_is_downloaded() -> None:
    _, file, other = files_of(message_of("openai_responses", RESPONSE))
    data, stub = downloaded(
        file,
        {
            "/containers/cntr%2F1/files/cfile_1/content": (
                200,
                {"content-type": "application/octet-stream"},
                b"a,b\n1,2",
            )
        },
    )
    assert (data.data, data.mime_type, data.name) == (b"a,b\n1,2", "text/csv", "a.csv")
    assert [(request.method, request.headers) for request in stub.asked] == [
        ("GET", {"authorization": "Bearer k"})
    ]
    data, _ = downloaded(
        other,
        {
            "/files/file-2": (200, {}, b'{"id": "file-2", "filename": "b.txt"}'),
            "/files/file-2/content": (200, {}, b"text"),
        },
    )
    assert (data.data, data.mime_type, data.name) == (b"text", "text/plain", "b.txt")


def test_a_file_of_anthropics_is_downloaded_with_its_beta_header() -> None:
    data, stub = downloaded(
        FilePart("file_a"),
        {
            "/files/file_a": (200, {}, b'{"filename": "chart", "mime_type": "image/png"}'),
            "/files/file_a/content": (200, {"content-type": "application/octet-stream"}, PNG),
        },
        "anthropic:m",
    )
    assert (data.data, data.mime_type, data.name) == (PNG, "image/png", "chart")
    assert {request.headers["anthropic-beta"] for request in stub.asked} == {"files-api-2025-04-14"}
    assert {request.headers["x-api-key"] for request in stub.asked} == {"k"}


@pytest.mark.parametrize(
    ("headers", "mime_type"),
    [({"content-type": "image/webp; x=1"}, "image/webp"), ({}, "application/octet-stream")],
)
def test_a_file_of_which_nothing_is_told_has_the_type_of_the_answer(
    headers: dict[str, str], mime_type: str
) -> None:
    answers = {"/files/f": (200, {}, b"{}"), "/files/f/content": (200, headers, b"x")}
    data, _ = downloaded(FilePart("f", "image/*"), answers)
    assert (data.mime_type, data.name) == (mime_type, None)


def test_a_file_that_is_gone_is_an_error_of_the_provider() -> None:
    gone = b'{"error": {"message": "No such File object: f", "type": "invalid_request_error", "code": null}}'
    with pytest.raises(
        (InvalidRequestError, ModelNotFoundError), match="No such File object: f"
    ) as caught:
        downloaded(FilePart("f"), {"/files/f": (404, {"x-request-id": "r"}, gone)})
    assert (caught.value.provider, caught.value.request_id) == ("openai-responses", "r")


def test_a_file_is_asked_of_who_holds_it() -> None:
    [_, file, *_] = files_of(message_of("openai_responses", RESPONSE))
    with pytest.raises(
        SettingsError, match="held by a provider of the wire openai_responses, not by Anthropic"
    ):
        downloaded(file, {}, "anthropic:m")
    with pytest.raises(SettingsError, match="Google provider has no files to download"):
        downloaded(FilePart("f"), {}, "google:m")
