"""Media generation, D-150 to D-155 each by its number: which way a provider takes, how files come into
the message, and how chunks add up."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Agent,
    Capability,
    ChatResult,
    DataPart,
    FilePart,
    FinishReason,
    Message,
    ModelRequest,
    Provider,
    Settings,
    Usage,
    providers,
    wires,
)
from dragoman.errors import (
    ContentRefusedError,
    DragomanError,
    InvalidRequestError,
    ProviderError,
    SettingsError,
)
from dragoman.media import fold_media
from dragoman.memory import Memory
from dragoman.model import fallback, media_generation
from dragoman.model.media_generation import add_media
from dragoman.providers.media_plan import check_mime_types, plan_media
from dragoman.providers.media_way import MediaWay
from dragoman.request import ServerTool
from dragoman.testing import ScriptedModel
from support.media import IMAGE, PNG, Stub, held, responded, said, stream
from support.traffic import exchanges

CSV = (200, {"content-type": "text/csv"}, b"a,b")


def make_agent(answers: dict[str, Any], model: str = "openai-responses", **how: Any) -> Agent:
    stub = Stub(answers)
    return Agent(model, api_key="k", base_url="http://x/v1", transport=stub, **how)


def generate(
    answers: dict[str, Any], *mime_types: str, model: str = "openai-responses", **how: Any
) -> tuple[ChatResult[str], list[Any], Stub]:
    """The result, its files, and the transport."""
    agent = make_agent(answers, model)
    result = agent.generate_media_sync("Make it", mime_types=mime_types, **how)
    stub: Any = agent._transport
    return result, agent.files(result), stub


# what is asked


def test_d150_empty_mime_types_are_an_error_in_both_methods() -> None:
    """D-150."""
    agent = make_agent({})
    with pytest.raises(SettingsError, match="mime_types is empty"):
        agent.generate_media_sync("Make it", mime_types=[])
    with pytest.raises(SettingsError, match="mime_types is empty"):
        next(iter(agent.generate_media_stream_sync("Make it", mime_types=[])))


@pytest.mark.parametrize(
    ("given_type", "problem"),
    [
        ("png", "'png' is no MIME type"),
        ("image/", "'image/' is no MIME type"),
        ("a/b\nx", "no MIME type"),
        ("image/" + "p" * 200, "no MIME type"),
    ],
)
def test_what_is_no_mime_type_is_an_error(given_type: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        make_agent({}).generate_media_sync("Make it", mime_types=[given_type])


def test_mime_types_are_lower_case_and_each_counts_once() -> None:
    assert check_mime_types([" Image/PNG", "image/png", "*/*".replace("*/", "text/")]) == (
        "image/png",
        "text/*",
    )
    assert check_mime_types("image/png") == ("image/png",)
    with pytest.raises(SettingsError, match="16 at most"):
        check_mime_types([f"image/x{number}" for number in range(17)])


def test_d153_an_output_schema_is_refused() -> None:
    """D-153."""
    with pytest.raises(SettingsError, match="takes no output_schema"):
        make_agent({}).generate_media_sync(
            "Make it", mime_types=["image/png"], output_schema={"type": "object"}
        )


@pytest.mark.parametrize("name", ["mistral", "ollama", "cohere", "local"])
def test_d78_a_provider_without_media_is_an_error(name: str) -> None:
    with pytest.raises(SettingsError, match="provider makes no media"):
        Agent(name, api_key="k").generate_media_sync("Make it", mime_types=["image/png"])


def test_a_type_that_no_way_makes_is_an_error() -> None:
    record = Provider(
        name="p",
        display_name="P",
        wire="openai_chat",
        media_ways=(MediaWay(mode="images", makes=("image/png",)),),
    )
    with pytest.raises(SettingsError, match="P provider makes no video/mp4; it makes image/png"):
        plan_media(record, ["video/mp4"])


def test_the_media_model_has_a_name_of_its_own() -> None:
    assert Agent("openai-responses").media_model_name is None
    agent = Agent("openai-responses?chat=a&media=b")
    assert (agent.chat_model_name, agent.media_model_name) == ("a", "b")
    assert Agent("google?other=b").media_model_name == "b"
    assert str(agent.model).endswith("&media=b")


def test_providers_with_a_way_have_the_capability() -> None:
    """D-78: exactly those."""
    for record in providers.REGISTRY.providers():
        assert bool(record.media_ways) == (Capability.media in record.capabilities), record.name


@pytest.mark.parametrize(
    ("name", "mime_types", "mode", "model"),
    [
        ("openai-responses", ["image/png"], "image_generation", "gpt-5"),
        ("openai-responses", ["image/*"], "image_generation", "gpt-5"),
        ("openai-responses", ["application/pdf"], "code_interpreter", "gpt-5"),
        ("openai-responses", ["image/gif"], "code_interpreter", "gpt-5"),
        ("openai-responses", ["image/png", "text/csv"], "mixed", "gpt-5"),
        ("google", ["image/webp", "image/jpeg"], "image_model", "gemini-3.1-flash-image"),
        ("google", ["text/csv"], "code_execution", "gemini-3.5-flash"),
        ("google", ["image/png", "text/csv"], "code_execution", "gemini-3.5-flash"),
        ("anthropic", ["image/png"], "code_execution", "claude-sonnet-4-6"),
        ("vertex", ["image/png"], "image_model", "gemini-3.1-flash-image"),
        ("xai", ["image/jpeg"], "images_endpoint", "grok-imagine-image"),
    ],
)
def test_d154_the_mime_types_choose_the_way(
    name: str, mime_types: list[str], mode: str, model: str
) -> None:
    """D-154."""
    record = providers.get(name)
    plan = plan_media(record, mime_types)
    assert plan.mode == mode
    assert media_generation.name_media_model(record, mime_types) == model


def test_d154_openai_is_given_its_tools() -> None:
    result, _, stub = generate(
        {"/responses": responded(IMAGE, said("Here."))},
        "image/png",
        "text/csv",
        options={"size": "1024x1024", "user": "me", "partial_images": 2},
    )
    body = stub.asked[0].body
    assert body["tools"] == [
        {
            "type": "image_generation",
            "output_format": "png",
            "size": "1024x1024",
            "partial_images": 2,
        },
        {"type": "code_interpreter", "container": {"type": "auto"}},
    ]
    assert body["user"] == "me"
    assert "size" not in body
    assert body["instructions"].startswith("Create the requested files (image/png, text/csv)")
    assert result.metadata["generation_mode"] == "mixed"
    assert result.messages[0].text == "Make it"  # the prompt is as it was


def test_of_several_image_formats_the_model_chooses() -> None:
    _, _, stub = generate({"/responses": responded(IMAGE)}, "image/png", "image/webp")
    assert stub.asked[0].body["tools"] == [{"type": "image_generation"}]


def test_the_agents_own_tool_keeps_its_options_and_its_functions_are_not_offered() -> None:
    def helper() -> str:
        """Helps."""
        return ""

    own = ServerTool(
        "image_generation", {"quality": "low", "size": "auto", "output_format": "webp"}
    )
    agent = make_agent(
        {"/responses": responded(IMAGE)}, server_tools=[own], tools=[helper], system="Be kind."
    )
    agent.generate_media_sync("Paint", mime_types=["image/png"], options={"size": "1x1"})
    stub: Any = agent._transport
    body = stub.asked[0].body
    assert body["tools"] == [
        {"type": "image_generation", "quality": "low", "size": "1x1", "output_format": "webp"}
    ]
    assert body["instructions"] == "Be kind."


def test_d154_google_is_asked_for_images_by_an_image_model_and_for_files_by_code() -> None:
    model = ScriptedModel.like("google", [DataPart(PNG, "image/png"), "Done."])
    agent = Agent(model)
    result = agent.generate_media_sync(
        "Paint",
        mime_types=["image/png"],
        options={"generationConfig": {"imageConfig": {"aspectRatio": "16:9"}}},
    )
    assert [file.data for file in agent.files(result)] == [PNG]
    assert "gemini-3.1-flash-image:stream" in model.sent[0].path
    assert model.bodies[0]["generationConfig"] == {
        "responseModalities": ["TEXT", "IMAGE"],
        "imageConfig": {"aspectRatio": "16:9"},
    }
    assert "tools" not in model.bodies[0]

    agent.generate_media_sync("List", mime_types=["text/csv"])
    assert "gemini-3.5-flash:stream" in model.sent[1].path
    assert model.bodies[1]["tools"] == [{"codeExecution": {}}]
    assert "text/csv" in model.bodies[1]["systemInstruction"]["parts"][0]["text"]


def test_an_image_model_that_is_named_is_asked() -> None:
    model = ScriptedModel.like("google", [DataPart(PNG, "image/png")] * 2)
    Agent(model).generate_media_sync(
        "Paint", mime_types=["image/png"], model="google:gemini-x-image"
    )
    assert "gemini-x-image:stream" in model.sent[0].path


def test_a_provider_with_an_endpoint_for_images_is_asked_there() -> None:
    asked: list[Any] = []

    def draw(request: Any) -> DataPart:
        asked.append(request)
        return DataPart(PNG, "image/png")

    model = ScriptedModel.like("openai", (), media=draw)
    agent = Agent(model, system="Be kind.")
    first = agent.generate_media_sync(
        "Paint", mime_types=["image/png"], options={"size": "1x1", "quality": "low"}
    )
    assert [file.data for file in agent.files(first)] == [PNG]
    assert (asked[0].prompt, asked[0].images, asked[0].size) == ("Paint", (), "1x1")
    assert asked[0].options["quality"] == "low"
    assert asked[0].mime_type == "image/png"
    assert asked[0].model == "gpt-image-2.5-flare"
    assert first.metadata["generation_mode"] == "images_endpoint"
    assert [loss.which for loss in first.losses] == ["the conversation before it"]

    # What was made is edited in the next turn; what the prompt brings goes before it.
    agent.generate_media_sync("Smaller", mime_types=["image/png"], history=first.messages)
    assert [image.data for image in asked[1].images] == [PNG]
    other, text = DataPart(b"GIF8", "image/gif", "a.gif"), DataPart(b"x", "text/plain", "a.txt")
    last = agent.generate_media_sync(
        "Like this", mime_types=["image/*"], history=first.messages, attachments=[other, text]
    )
    assert [image.data for image in asked[2].images] == [b"GIF8"]
    assert asked[2].mime_type is None
    assert "a.txt" in [loss.which for loss in last.losses]


def test_an_endpoint_for_images_makes_nothing_else_and_needs_a_model() -> None:
    with pytest.raises(
        SettingsError, match="OpenAI provider makes no text/csv; it makes image/png"
    ):
        Agent("openai", api_key="k").generate_media_sync("Go", mime_types=["text/csv"])
    with pytest.raises(SettingsError, match="has no default model"):
        Agent("together", api_key="k").generate_media_sync("Go", mime_types=["image/png"])


def test_a_refused_image_is_an_error() -> None:
    def refuse(_: Any) -> ContentRefusedError:
        return ContentRefusedError("Not that.")

    model = ScriptedModel.like("openai", (), media=refuse)
    with pytest.raises(ContentRefusedError, match="Not that"):
        Agent(model).generate_media_sync("Paint", mime_types=["image/png"])


RAN = {
    "type": "bash_code_execution_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {
        "type": "bash_code_execution_result",
        "stdout": "",
        "stderr": "",
        "return_code": 0,
        "content": [{"type": "bash_code_execution_output", "file_id": "file_a"}],
    },
}
CALL = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "bash_code_execution",
    "input": {"command": "plot"},
}


def claude(stop: str, *content: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """An answer of Anthropic, streamed."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [],
    }
    usage = {"input_tokens": 1, "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "usage": usage}}
    ]
    for index, block in enumerate(content):
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_stop", "index": index},
        ]
    events += [
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage},
        {"type": "message_stop"},
    ]
    return stream(*events)


CLAUDES_FILE = {
    "/files/file_a": (200, {}, b'{"filename": "sine.png", "mime_type": "image/png"}'),
    "/files/file_a/content": (200, {}, PNG),
}


def test_d154_anthropic_runs_code_and_its_output_files_are_fetched() -> None:
    result, files, stub = generate(
        {"/messages": claude("end_turn", CALL, RAN), **CLAUDES_FILE},
        "image/png",
        model="anthropic",
    )
    body = stub.asked[0].body
    assert body["max_tokens"] == 4096
    assert [tool["name"] for tool in body["tools"]] == ["code_execution"]
    assert "OUTPUT_DIR" in json.dumps(body["system"])
    assert [(file.name, file.data) for file in files] == [("sine.png", PNG)]
    assert result.metadata["generation_mode"] == "code_execution"
    assert result.metadata["requested_mime_types"] == ["image/png"]
    assert result.metadata["chunk_index"] > 0


def test_a_setting_wins_over_the_ways_own_limit() -> None:
    answers = {"/messages": claude("end_turn", CALL, RAN), **CLAUDES_FILE}
    _, _, stub = generate(answers, "image/png", model="anthropic", settings=Settings(max_tokens=99))
    assert stub.asked[0].body["max_tokens"] == 99


def test_d154_an_answer_without_a_file_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    text = {"type": "text", "text": "I would rather not."}
    with caplog.at_level(logging.WARNING, "dragoman.media"):
        result, files, _ = generate(
            {"/messages": claude("end_turn", text)}, "image/png", model="anthropic"
        )
    assert not files
    assert [record.getMessage() for record in caplog.records] == [
        "Anthropic made no file; asked for image/png"
    ]
    assert result.metadata["generation_mode"] == "code_execution"


# what comes back


def test_d151_the_first_chunk_is_the_users_message() -> None:
    """D-151."""
    agent = make_agent({"/responses": responded(IMAGE)})
    chunks = list(
        agent.generate_media_stream_sync(
            "Paint", mime_types=["image/png"], attachments=[DataPart(b"x", "image/png")]
        )
    )
    [message] = chunks[0].messages
    assert (message.role, message.text, len(message.content)) == ("user", "Paint", 2)
    assert [chunk.metadata["chunk_index"] for chunk in chunks] == list(range(len(chunks)))


def test_d155_no_asset_comes_twice() -> None:
    """D-155: neither within a message, nor in several chunks, nor by bytes and by reference."""
    agent = make_agent(
        {
            "/responses": responded(IMAGE, said("Here.", "c1", "c1", "c2", "c3")),
            held("c1"): CSV,
            held("c2"): (200, {"content-type": "image/png"}, PNG),  # the image once more
            held("c3"): CSV,
        }
    )
    chunks = list(agent.generate_media_stream_sync("Go", mime_types=["image/png", "text/csv"]))
    parts = [
        piece
        for chunk in chunks
        for message in chunk.messages
        for piece in message.content
        if isinstance(piece, DataPart)
    ]
    assert [part.data for part in parts] == [PNG, b"a,b"]
    result = fold_media(chunks)
    assert [part.data for part in agent.files(result)] == [PNG, b"a,b"]
    assert result.messages == tuple(message for chunk in chunks for message in chunk.messages)


def test_d152_the_chunks_of_a_stream_add_up_to_the_result() -> None:
    answers = {"/responses": responded(IMAGE, said("Here.", "c1")), held("c1"): CSV}
    types = ["image/png", "text/csv"]
    folded = fold_media(make_agent(answers).generate_media_stream_sync("Go", mime_types=types))
    whole = make_agent(answers).generate_media_sync("Go", mime_types=types)

    def comparable(result: ChatResult[str]) -> Any:
        messages = [
            message.replace(id=None, created_at=None, turn=None) for message in result.messages
        ]
        return msgspec.structs.replace(result, id="", messages=tuple(messages), calls=())

    assert comparable(folded) == comparable(whole)
    assert whole.output == "Here."
    assert whole.usage == Usage(input_tokens=3, output_tokens=4, total_tokens=7)
    assert whole.finish_reason is FinishReason.stop
    assert len(whole.calls) == 1


def test_d152_metadata_merge_by_key_and_the_last_usage_and_reason_count() -> None:
    """D-152."""
    first, second = Usage(input_tokens=1), Usage(input_tokens=2)
    one = Message.model("one")
    folded = fold_media(
        [
            ChatResult("a", (one,), metadata={"l": [1], "m": {"x": 1}, "s": 1, "k": [1]}, id="1"),
            ChatResult("b", usage=first, finish_reason=FinishReason.stop, thinking="t"),
            ChatResult(
                "c", (one,), metadata={"l": [2], "m": {"y": 2}, "s": 2, "k": 3}, usage=second
            ),
            ChatResult("", retracted="bc", thinking="u"),
            ChatResult("d"),
        ]
    )
    assert folded.output == "ad"
    assert folded.messages == (one, one)
    assert folded.metadata == {"l": [1, 2], "m": {"x": 1, "y": 2}, "s": 2, "k": 3, "thinking": "tu"}
    assert folded.usage == second
    assert folded.finish_reason is FinishReason.stop
    assert (folded.id, folded.thinking) == ("1", "tu")


values = st.recursive(
    st.integers(0, 3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)
results = st.builds(
    ChatResult,
    st.text("ab", max_size=3),
    messages=st.lists(st.just(Message.model("m")), max_size=2).map(tuple),
    finish_reason=st.sampled_from([FinishReason.unspecified, FinishReason.stop]),
    metadata=st.dictionaries(st.sampled_from("xyz"), values, max_size=3),
    usage=st.none() | st.builds(Usage, input_tokens=st.integers(0, 9)),
)


@given(st.lists(results, max_size=4), st.lists(results, max_size=4))
def test_d152_folding_in_two_steps_is_folding_once(
    first: list[ChatResult[str]], second: list[ChatResult[str]]
) -> None:
    assert fold_media([fold_media(first), *second]) == fold_media([*first, *second])


def test_a_file_is_not_sent_again_to_who_holds_it_and_is_sent_to_others() -> None:
    answers = {"/responses": responded(said("Here.", "c1")), held("c1"): CSV}
    result, _, stub = generate(answers, "text/csv")
    origin = result.messages[-1].origin
    stored = [Message.from_json(message.to_json()) for message in result.messages]
    for history in (result.messages, stored):
        body = wires.get("openai_responses").dump_messages(history, target=origin)
        assert [item.get("type", "user") for item in body["input"]] == ["user", "message"]
        assert "a,b" not in json.dumps(body)
        assert "a,b" in json.dumps(wires.get("openai_chat").dump_messages(history))
    # The response is still the one that OpenAI stores, so the next request links to it.
    Agent(
        "openai-responses", api_key="k", base_url="http://x/v1", transport=stub
    ).generate_media_sync("Smaller", mime_types=["text/csv"], history=stored)
    assert stub.asked[-2].body["previous_response_id"] == "resp_1"
    assert len(stub.asked[-2].body["input"]) == 1


def test_a_conversation_with_media_is_stored_with_its_files() -> None:
    async def run() -> list[Message]:
        memory = Memory("memory:")
        answers = {"/responses": responded(IMAGE, said("Here.", "c1")), held("c1"): CSV}
        async with make_agent(answers, memory=memory) as agent:
            await agent.generate_media("Go", mime_types=["text/csv"], thread_id="t")
            return list((await memory.recall("t")).items)

    stored = asyncio.run(run())
    assert [file.data for file in Agent("local").files(stored)] == [PNG, b"a,b"]


def test_a_file_that_is_gone_fails_and_leaves_what_there_is() -> None:
    gone = (404, {}, b'{"error": {"message": "Container is expired."}}')
    agent = make_agent(
        {"/responses": responded(said("Here.", "c1", "c2")), held("c1"): CSV, held("c2"): gone}
    )
    with pytest.raises(InvalidRequestError, match="Container is expired") as caught:
        agent.generate_media_sync("Go", mime_types=["text/csv"])
    result = caught.value.result
    assert result is not None
    assert result.output == "Here."
    first, second = agent.files(result)
    assert isinstance(first, FilePart)  # not fetched, and still named
    assert first.id == "c2"
    assert isinstance(second, DataPart)
    assert second.data == b"a,b"


def test_files_beyond_the_bounds_are_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media_generation, "_MOST_FILES", 1)
    answers = {"/responses": responded(said("Here.", "c1", "c2")), held("c1"): CSV}
    _, files, _ = generate(answers, "text/csv")
    assert {type(file) for file in files} == {FilePart, DataPart}
    monkeypatch.setattr(media_generation, "_MOST_BYTES", 2)
    with pytest.raises(ProviderError, match="MiB together"):
        generate(answers, "text/csv")


def test_a_paused_answer_goes_on_and_its_files_come_once_at_the_end() -> None:
    answers = [
        claude("pause_turn", CALL, RAN),
        claude("end_turn", {"type": "text", "text": "Done."}),
    ]

    class Twice(Stub):
        async def send(self, request: Any) -> Any:
            if request.path.endswith("/messages"):
                self.answers["/messages"] = answers.pop(0)
            return await super().send(request)

    stub = Twice({**CLAUDES_FILE})
    agent = Agent("anthropic", api_key="k", base_url="http://x/v1", transport=stub)
    result = agent.generate_media_sync("Go", mime_types=["image/png"])
    assert not answers
    assert [file.data for file in agent.files(result)] == [PNG]
    assert sum(request.path.endswith("/content") for request in stub.asked) == 1


def test_a_fallback_makes_media_its_own_way() -> None:
    first = ScriptedModel.like("openai-responses", [ProviderError("down")])
    second = ScriptedModel.like("google", [DataPart(PNG, "image/png")])
    agent = Agent(first, middleware=[fallback(second)])
    result = agent.generate_media_sync("Paint", mime_types=["image/png"])
    assert [file.data for file in agent.files(result)] == [PNG]
    assert "gemini-3.1-flash-image:stream" in second.sent[0].path
    assert result.metadata["generation_mode"] == "image_model"


def test_a_fallback_without_media_is_told() -> None:
    first = ScriptedModel.like("openai-responses", [ProviderError("down")])
    second = ScriptedModel.like("mistral", ["No."])
    agent = Agent(first, middleware=[fallback(second)])
    with pytest.raises(DragomanError, match="Mistral provider makes no media"):
        agent.generate_media_sync("Paint", mime_types=["image/png"])
    assert not second.sent


def test_a_stream_that_is_left_early_gives_its_connection_back() -> None:
    async def run() -> Any:
        agent = make_agent({"/responses": responded(IMAGE, said("Here.", "c1")), held("c1"): CSV})
        async with aclosing(agent.generate_media_stream("Go", mime_types=["text/csv"])) as chunks:
            async for chunk in chunks:
                if chunk.output:
                    break
        return agent._transport

    stub: Any = asyncio.run(run())
    assert len(stub.asked) == 1


def test_recorded_answers_with_media_have_their_files() -> None:
    count = 0
    for exchange in exchanges("openai_responses"):
        body = exchange.body
        if exchange.status != 200 or not (
            b'"container_file_citation"' in body or b'image_generation_call"' in body
        ):
            continue

        class Held(Stub):
            async def send(self, request: Any) -> Any:
                if request.method == "GET":
                    self.answers[request.path.partition("/v1")[2]] = CSV
                return await super().send(request)

        stub = Held({"/responses": (200, dict(exchange.headers), body)})
        agent = Agent("openai-responses", api_key="k", base_url="http://x/v1", transport=stub)
        result = agent.generate_media_sync("Go", mime_types=["image/png", "text/plain"])
        files = agent.files(result)
        assert all(isinstance(file, DataPart) and file.data for file in files)
        held_ids = set(re.findall(rb'"file_id": ?"(cfile_\w+)', body))
        assert sum(request.method == "GET" for request in stub.asked) == len(held_ids)
        count += bool(files)
    assert count >= 5


@given(
    st.lists(st.sampled_from(["image/png", "image/webp", "text/csv", "image/gif"]), min_size=1),
    st.sampled_from(["openai-responses", "google", "anthropic"]),
    st.dictionaries(st.sampled_from(["size", "user", "quality"]), st.text(max_size=2)),
)
def test_a_plan_loses_no_option_and_changes_no_message(
    types: list[str], name: str, options: dict[str, str]
) -> None:
    plan = plan_media(providers.get(name), check_mime_types(types))
    prompt = Message.user("Go")
    request = add_media(ModelRequest("m", (Message.system("S"), prompt), options=options), plan)
    fields = dict(request.options)
    for tool in request.tools:
        assert isinstance(tool, ServerTool)
        fields |= tool.options
    assert options.items() <= fields.items()
    assert request.messages[0] == Message.system("S")
    assert request.messages[-1] == prompt
