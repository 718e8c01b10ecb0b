"""What the wires of Anthropic, Cohere and Ollama read, to the last field: what is neutral, what is
their own, and what is an option."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import wires
from dragoman.event import MessageFinished, MessageStarted, PartFinished, PartStarted, RunFinished
from dragoman.fold import fold, unfold
from dragoman.loss import Loss
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    FinishReason,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.request import EmbeddingsRequest, ModelRequest, ServerTool, Settings, ToolSpec

HI = (Message.user("hi"),)
SAID = [{"role": "user", "content": "hi"}]
FUNCTION = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, "x": 1},
    "y": 2,
}


def own(wire: str, **fields: Any) -> dict[str, Any]:
    return {wire: fields}


def spelled(wire: str, **how: Any) -> dict[str, Any]:
    return {f"{wire}:notes": {"spelling": how}}


def sse(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def decoded(wire: str, data: bytes) -> list[Message]:
    decoder = wires.get(wire).decoder()
    return fold([*decoder.feed(data), *decoder.close()])


def test_a_request_of_anthropics() -> None:
    body = {
        "model": "m",
        "max_tokens": 5,
        "system": "s",
        "messages": SAID,
        "output_config": {"format": {"type": "json_schema", "schema": {"a": 1}, "own": 2}, "effort": "low", "other": 3},
        "thinking": {"type": "adaptive", "display": "x"},
        "tools": [
            {"type": "custom", "name": "f", "description": "d", "input_schema": {"type": "object"}, "x": 1},
            {"type": "web_search_20250305", "name": "tool_20250101", "max_uses": 1, "cache_control": {"type": "ephemeral"}},
            {"type": "mcp_toolset", "server": "x"},
        ],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True, "y": 1},
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
        "stream": True,
        "metadata": {"z": 1},
    }  # fmt: skip
    how = {
        "tool_choice": {"y": 1},
        "reasoning": {"thinking": {"type": "adaptive", "display": "x"}, "effort": True},
        "output_schema": {"as is": True, "fields": {"own": 2}},
        "betas": ["b1", "b2"],
    }
    search = own("anthropic", type="web_search_20250305", cache_control={"type": "ephemeral"})
    wire = wires.get("anthropic")
    request = wire.load_request(body, headers={"x": "y", "anthropic-beta": "b1, b2,"})
    assert request == ModelRequest(
        "m",
        (Message.system("s"), *HI),
        (
            ToolSpec("f", "d", {"type": "object"}, own("anthropic", type="custom", x=1)),
            ServerTool("tool_20250101", {"max_uses": 1}, search),
            ServerTool(
                "mcp_toolset",
                {"server": "x"},
                own("anthropic", type="mcp_toolset") | spelled("anthropic", name="absent"),
            ),
        ),
        Settings(
            max_tokens=5, tool_choice="f", parallel_tool_calls=False, reasoning="low", cache="long"
        ),
        {"a": 1},
        True,
        {"output_config": {"other": 3}, "metadata": {"z": 1}},
        spelled("anthropic", **how),
        wire="anthropic",
    )
    assert wire.dump_request(request) == body
    older = {
        "model": "m",
        "max_tokens": 5,
        "messages": SAID,
        "output_format": {"type": "json_schema", "schema": {}},
    }
    assert wire.load_request({**older, "stream": False, "tools": [], "system": []}) == ModelRequest(
        "m", HI, settings=Settings(max_tokens=5), output_schema={}, native=spelled(
            "anthropic", system=[], stream="explicit", tools="explicit", output_schema={"as is": True, "key": "output_format"}
        ),
    )  # fmt: skip
    absent = {
        "model": None,
        "messages": SAID,
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "top_k": None,
    }
    assert wire.load_request(absent) == ModelRequest(
        "", HI, (ToolSpec("f", input_schema={"type": "object"}),), native=spelled(
            "anthropic", null=["top_k", "model"], max_tokens="absent", tool_choice="absent"
        ),
    )  # fmt: skip
    assert wire.dump_request(wire.load_request(absent)) == absent


def test_a_conversation_of_anthropics() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "u"}}
    payload = {
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "a", "x": 1},
                    {"type": "new_thing", "tool_use_id": "a", "content": 1},
                    image,
                ],
                "own": 1,
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "thinking", "thinking": "u"},
                    {"type": "redacted_thinking", "data": "d"},
                    {"type": "container_upload", "file_id": "f"},
                    image,
                    {"type": "tool_use", "id": "c", "name": "f", "input": {}, "caller": 1},
                    {"type": "server_tool_use", "id": "d", "name": "g", "input": {"a": 1}},
                    {
                        "type": "web_tool_result",
                        "tool_use_id": "d",
                        "content": [1],
                        "is_error": True,
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c",
                        "content": "r",
                        "is_error": True,
                        "x": 1,
                    },
                    {"type": "tool_result", "tool_use_id": "c"},
                ],
            },
            {"role": "system", "content": "late"},
        ],
    }
    wire = wires.get("anthropic")
    messages = wire.load_messages(payload)
    system, *rest = messages
    assert system == Message.system(
        TextPart("s", own("anthropic", cache_control={"type": "ephemeral"}))
    )
    contents: list[tuple[Content, ...]] = [
        (
            TextPart("a", own("anthropic", x=1)),
            ProviderPart(
                "new_thing", own("anthropic", type="new_thing", tool_use_id="a", content=1)
            ),
            LinkPart("u"),
        ),
        (
            ThinkingPart("t", own("anthropic", signature="s")),
            ThinkingPart("u", spelled("anthropic", signature="absent")),
            ThinkingPart(native=own("anthropic", type="redacted_thinking", data="d")),
            FilePart("f", "application/octet-stream", native=own("anthropic")),
            ProviderPart("image", {"anthropic": image}),
            ToolCallPart("c", "f", native=own("anthropic", caller=1)),
            ToolCallPart(
                "d",
                "g",
                {"a": 1},
                run_by="provider",
                native=own("anthropic", type="server_tool_use"),
            ),
            ToolResultPart(
                "d", "g", [1], True, "provider", own("anthropic", type="web_tool_result")
            ),
        ),
        (
            ToolResultPart("c", "f", "r", True, native=own("anthropic", x=1)),
            ToolResultPart("c", "f", None, native=spelled("anthropic", content="absent")),
        ),
        (TextPart("late"),),
    ]
    assert [message.content for message in rest] == contents
    assert [message.native for message in rest] == [
        own("anthropic", own=1), None, None, spelled("anthropic", place="messages"),
    ]  # fmt: skip
    assert wire.dump_messages(messages) == payload


def test_results_stand_before_what_the_user_said() -> None:
    losses: list[Loss] = []
    wire = wires.get("anthropic")
    messages = [
        Message.user("go"), Message.user(ToolResultPart("a", "f", "x"), "and", ToolResultPart("b", "f", "y")),
        Message.user(ToolResultPart("c", "f", "z")), Message.user("on"),
    ]  # fmt: skip
    results = [
        {"type": "tool_result", "tool_use_id": id_, "content": text}
        for id_, text in ("ax", "by", "cz")
    ]
    said = [{"type": "text", "text": text} for text in ("go", "and")]
    assert wire.dump_messages(messages, losses=losses) == {
        "messages": [
            {"role": "user", "content": [*results, *said]},
            {"role": "user", "content": "on"},
        ]
    }
    why = "the API wants results of tools before everything else"
    assert losses == [Loss(1, None, "order", why), Loss(2, None, "order", why)]


@pytest.mark.parametrize(
    ("wire", "sent"),
    [
        ("anthropic", {FinishReason.length: "max_tokens", FinishReason.tool_calls: "tool_use", FinishReason.pause: "pause_turn",
                       FinishReason.refusal: "refusal", FinishReason.content_filter: "refusal",
                       FinishReason.recitation: "refusal"}),
        ("cohere", {FinishReason.length: "MAX_TOKENS", FinishReason.tool_calls: "TOOL_CALL", FinishReason.error: "ERROR"}),
        ("ollama", {FinishReason.length: "length", FinishReason.unspecified: None}),
    ],
)  # fmt: skip
def test_each_way_to_end_has_its_word(wire: str, sent: dict[FinishReason, str | None]) -> None:
    field = {"anthropic": "stop_reason", "cohere": "finish_reason", "ollama": "done_reason"}[wire]
    usual = {"anthropic": "end_turn", "cohere": "COMPLETE", "ollama": "stop"}[wire]
    for reason in FinishReason:
        events = [MessageStarted("m", Role.MODEL), MessageFinished("m", reason)]
        assert wires.get(wire).dump_response(events).get(field) == sent.get(reason, usual)


@pytest.mark.parametrize(("wire", "place"), [("anthropic", "message"), ("cohere", "")])
def test_an_answer_without_an_id_gets_one(wire: str, place: str) -> None:
    events = [MessageStarted("", Role.MODEL), MessageFinished("")]
    assert wires.get(wire).dump_response(events)["id"] == "message-0"
    encoder = wires.get(wire).encoder()
    (data,) = [
        line[6:] for line in encoder.feed(events[0]).splitlines() if line.startswith(b"data: ")
    ]
    start = json.loads(data)
    assert (start[place] if place else start)["id"] == "message-0"


@pytest.mark.parametrize("wire", ["anthropic", "cohere", "ollama"])
def test_the_end_of_the_run_is_the_end_of_the_answer(wire: str) -> None:
    one, other = wires.get(wire).encoder(), wires.get(wire).encoder()
    for event in unfold([Message.model("a").replace(id="m")]):
        assert one.feed(event) == other.feed(event)
    end = one.feed(RunFinished("r"))
    assert end == other.close() != b""
    assert (one.close(), one.feed(MessageStarted("n", Role.MODEL)), other.close()) == (
        b"",
        b"",
        b"",
    )


def test_a_signature_that_was_absent_stays_so_in_a_stream() -> None:
    part = ThinkingPart("a", spelled("anthropic", signature="absent"))
    encoder = wires.get("anthropic").encoder()
    events = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, part),
        PartFinished("m", 0, part),
    ]
    start = json.loads(b"".join(map(encoder.feed, events)).split(b"data: ")[2].split(b"\n")[0])
    assert start["content_block"] == {"type": "thinking", "thinking": ""}


def test_a_schema_in_anthropics_dialect() -> None:
    def sent(**fields: Any) -> Any:
        schema = {
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"type": "string"}, **fields}},
        }
        body = wires.get("anthropic").dump_request(ModelRequest("m", output_schema=schema))
        assert body["output_config"]["format"]["type"] == "json_schema"
        return body["output_config"]["format"]["schema"]["properties"]["a"]

    plain = {"type": "array", "items": {"type": "string"}}
    for kept in (
        {"minItems": 0}, {"minItems": 1}, {"title": "t"}, {"description": "d"}, {"default": []}, {"enum": [[]]}, {"const": []},
    ):  # fmt: skip
        assert sent(**kept) == {**plain, **kept}
    for left in ({"minItems": 2}, {"maxItems": 1}, {"uniqueItems": True}):
        assert left.items().isdisjoint(sent(**left).items())
    formats = (
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    )
    for name in formats:
        assert sent(items={"type": "string", "format": name})["items"] == {
            "type": "string",
            "format": name,
        }
    assert "format" not in sent(items={"type": "string", "format": "regex"})["items"]


def test_a_file_is_asked_for_by_its_id() -> None:
    wire: Any = wires.get("anthropic")
    download = wire.dump_download(FilePart("file/1"))
    asked = [
        (each.path, each.method, each.headers, each.body)
        for each in (download.content, download.about)
    ]
    headers = {"anthropic-beta": "files-api-2025-04-14"}
    assert asked == [
        ("/files/file%2F1/content", "GET", headers, asked[0][3]),
        ("/files/file%2F1", "GET", headers, asked[0][3]),
    ]


def test_a_request_of_coheres() -> None:
    odd = {
        "tool_choice": "ODD",
        "max_tokens": "x",
        "k": None,
        "thinking": {"a": 1},
        "stop_sequences": 5,
        "seed": 1.5,
    }
    beside = {
        "response_format": {
            "type": "json_object",
            "json_schema": {"type": "object", "a": 1},
            "own": 2,
        }
    }
    body = {
        "model": "m",
        "messages": SAID,
        "stream": False,
        **odd,
        **beside,
        "tools": [FUNCTION],
        "more": 3,
    }
    wire = wires.get("cohere")
    request = wire.load_request(body)
    assert request == ModelRequest(
        "m",
        HI,
        (ToolSpec("f", "d", {"type": "object"}, own("cohere", y=2, function={"x": 1})),),
        output_schema={"type": "object", "a": 1},
        options={"more": 3},
        native=own("cohere", **odd, response_format={"own": 2})
        | spelled("cohere", schema="json_schema"),
        wire="cohere",
    )
    assert wire.dump_request(request) == body
    for schema, native in (({}, None), ({"schema": {"a": 1}}, spelled("cohere", schema="schema"))):
        any_object = {
            "model": "m",
            "messages": SAID,
            "stream": True,
            "response_format": {"type": "json_object", **schema},
        }
        expected = schema.get("schema", {"type": "object"})
        loaded = wire.load_request(any_object)
        assert loaded == ModelRequest("m", HI, output_schema=expected, stream=True, native=native)
        assert wire.dump_request(loaded) == any_object


def test_a_conversation_of_coheres() -> None:
    payload = [
        {"role": "system", "content": "s"},
        {
            "role": "assistant",
            "tool_plan": "p",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "thinking", "thinking": "t"},
                {"type": "video_url", "video_url": {"url": "u"}},
                {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
            ],
            "tool_calls": [
                {
                    "id": "c",
                    "type": "function",
                    "function": {"name": "f", "arguments": "{}", "z": 1},
                    "q": 2,
                }
            ],
            "citations": [1],
        },
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {
            "role": "tool",
            "tool_call_id": "c",
            "content": [{"type": "document", "document": {"data": {"a": 1}}}],
            "w": 1,
        },
        {"role": "user", "content": ""},
    ]
    wire = wires.get("cohere")
    messages = wire.load_messages(payload)
    contents: list[tuple[Content, ...]] = [
        (TextPart("s"),),
        (
            ThinkingPart("p", spelled("cohere", field="tool_plan")),
            TextPart("a"),
            ThinkingPart("t"),
            ProviderPart("video_url", own("cohere", type="video_url", video_url={"url": "u"})),
            LinkPart("https://x/y.png", native=own("cohere", image_url={"detail": "low"})),
            ToolCallPart("c", "f", native=own("cohere", q=2, function={"z": 1})),
        ),
        (
            ToolResultPart("c", "f", "r"),
            ToolResultPart(
                "c",
                "f",
                {"a": 1},
                native=own("cohere", w=1) | spelled("cohere", content="document"),
            ),
        ),
        (),
    ]
    assert [message.content for message in messages] == contents
    assert [message.native for message in messages] == [
        None,
        own("cohere", citations=[1]),
        None,
        None,
    ]
    assert wire.dump_messages(messages) == payload


def test_an_edited_result_of_coheres_is_written_as_edited() -> None:
    wire = wires.get("cohere")
    (message,) = wire.load_messages([{"role": "tool", "tool_call_id": "c", "content": {"a": 1}}])
    (part,) = message.tool_results
    for result, content in ((({"b": 1}), {"b": 1}), ((TextPart("x"), TextPart("y")), None)):
        edited = Message.user(ToolResultPart("c", "", result, native=part.native))
        blocks = (
            [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]
            if content is None
            else content
        )
        assert wire.dump_messages([edited]) == [
            {"role": "tool", "tool_call_id": "c", "content": blocks}
        ]


def test_what_cohere_is_told_of_others() -> None:
    losses: list[Loss] = []
    there = Origin("elsewhere", None, "x")
    said = TextPart("a", own("cohere", x=1))
    model = Message.model(
        said, ToolCallPart("c", "f"), "b", ThinkingPart("t"), FilePart("q")
    ).replace(origin=there)
    messages = [
        Message.user("hi"),
        model,
        Message.user(ToolResultPart("c", "f", "r"), "on"),
        Message.user(),
        Message.model(),
    ]
    assert wires.get("cohere").dump_messages(
        messages, target=Origin("cohere", None, "m"), losses=losses
    ) == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": text} for text in ("a", "b", "[media: file]")],
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "user", "content": "on"},
    ]
    order = "this format has a message's plan before its content, and both before its calls"
    empty = "it says nothing, and the API takes no empty message"
    found = [(loss.message, loss.part, loss.what, loss.why) for loss in losses]
    assert [each for each in found if each[2] in ("order", "message")] == [
        (1, 2, "order", order), (1, 4, "order", order), (3, None, "message", empty), (4, None, "message", empty),
    ]  # fmt: skip
    assert [each[:3] for each in found if each[2] not in ("order", "message")] == [
        (1, 3, "thinking"),
        (1, 4, "file"),
    ]


def test_an_answer_of_coheres() -> None:
    def block(kind: str, **content: Any) -> dict[str, Any]:
        return {
            "type": kind,
            "index": 0,
            **({"delta": {"message": {"content": content}}} if content else {}),
        }

    start = {
        "type": "message-start",
        "id": "r",
        "delta": {"message": {"role": "assistant", "content": [], "x": 1}},
    }
    told = {"tokens": {"input_tokens": 1.0, "x": 2}, "cached_tokens": 3, "billed_units": {"a": 1}}
    data = sse(
        start,
        block("content-start", type="text", text=""),
        block("content-delta", text="a"),
        block("content-end"),
        block("content-delta", text="b"),
        {"type": "citation-start", "index": 0, "delta": {"message": {"citations": {"start": 0}}}},
        {"type": "message-end", "delta": {"finish_reason": "ODD", "usage": told, "y": 2}},
    )
    around = {
        "y": 2,
        "finish_reason": "ODD",
        "usage": {"billed_units": {"a": 1}, "tokens": {"x": 2}},
    }
    assert decoded("cohere", data) == [
        Message(
            Role.MODEL,
            (TextPart("a"), TextPart("b")),
            id="message-0",
            origin=Origin("", response_id="r"),
            finish_reason=FinishReason.unspecified,
            usage=Usage(input_tokens=1, cache_read_tokens=3),
            native=own("cohere", x=1, citations=[{"start": 0}])
            | {"cohere:notes": {"response": around}},
        )
    ]


def test_a_request_of_ollamas() -> None:
    body = {
        "model": "m",
        "messages": SAID,
        "options": {"seed": 1, "a": 2, "stop": "x"},
        "think": "low",
        "format": {"type": "object"},
        "tools": [{"type": "own", "a": 1}, {"type": "bare"}, FUNCTION, {"function": {"name": "g"}}],
        "stream": False,
        "more": 3,
    }
    wire = wires.get("ollama")
    request = wire.load_request(body)
    assert request == ModelRequest(
        "m",
        HI,
        (
            ServerTool("own", native=own("ollama", a=1)),
            ServerTool("bare", native=spelled("ollama", type="own")),
            ToolSpec("f", "d", {"type": "object"}, own("ollama", y=2, function={"x": 1})),
            ToolSpec("g", native=spelled("ollama", parameters="absent", type="absent")),
        ),
        Settings(seed=1, stop=("x",), reasoning="low"),
        {"type": "object"},
        False,
        {"more": 3, "options": {"a": 2}},
        spelled("ollama", stop="string", think="low", format="schema"),
        wire="ollama",
    )
    assert wire.dump_request(request) == body


def test_a_conversation_of_ollamas() -> None:
    payload = [
        {"role": "system", "content": "s"},
        {
            "role": "assistant",
            "content": "a",
            "thinking": "t",
            "images": ["iVBORw=="],
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}, "z": 1}, "q": 2}],
            "x": 1,
        },
        {"role": "tool", "content": "r", "tool_name": "f", "tool_call_id": "c"},
        {"role": "tool", "content": "", "images": ["/9j/"], "tool_name": "f", "y": 1},
        {"role": "user", "content": "", "images": ["UklGRg==", "R0lGOD0=", "YWJj"]},
    ]
    wire = wires.get("ollama")
    messages = wire.load_messages(payload)
    contents: list[tuple[Content, ...]] = [
        (TextPart("s"),),
        (
            ThinkingPart("t"),
            DataPart(b"\x89PNG", "image/png"),
            TextPart("a"),
            ToolCallPart("c", "f", native=own("ollama", q=2, function={"z": 1})),
        ),
        (
            ToolResultPart("c", "f", "r"),
            ToolResultPart("call-0", "f", (DataPart(b"\xff\xd8\xff", "image/jpeg"),), native=own("ollama", id=None, y=1)),
        ),
        (DataPart(b"RIFF", "image/webp"), DataPart(b"GIF8=", "image/gif"), DataPart(b"abc", "image/*")),
    ]  # fmt: skip
    assert [message.content for message in messages] == contents
    assert [message.native for message in messages] == [None, own("ollama", x=1), None, None]
    assert wire.dump_messages(messages) == payload


def test_an_answer_of_ollamas() -> None:
    lines = [
        {"message": {"role": "assistant", "content": "a", "x": 1, "images": ["R0lGOD0="]}, "done": False, "y": 1},
        {"message": {"role": "assistant", "content": "b", "thinking": "t", "z": 2}, "done": False},
        {
            "message": {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"k": 1}}}]},
            "done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4, "total_duration": 5,
        },
    ]  # fmt: skip
    told = [{"model": "m", "created_at": str(n), **line} for n, line in enumerate(lines)]
    around = {"created_at": "2", "y": 1, "total_duration": 5}
    assert decoded("ollama", b"".join(json.dumps(line).encode() + b"\n" for line in told)) == [
        Message(
            Role.MODEL,
            (
                TextPart("a"),
                DataPart(b"GIF8=", "image/gif"),
                ThinkingPart("t"),
                TextPart("b"),
                ToolCallPart("call-0", "f", {"k": 1}, native=own("ollama", id=None)),
            ),
            id="message-0",
            origin=Origin("", served_model="m"),
            finish_reason=FinishReason.tool_calls,
            usage=Usage(input_tokens=3, output_tokens=4, total_tokens=7),
            native=own("ollama", x=1, z=2) | {"ollama:notes": {"response": around}},
        )
    ]


def test_words_of_an_error_that_mean_another_kind_get_those_of_its_own() -> None:
    from dragoman.errors import ContextLengthError, ModelNotFoundError

    dump = wires.get("ollama").dump_error
    message = "404 page not found, no such model, model not found"
    assert dump(ModelNotFoundError(message))[::2] == (404, {"error": f"model not found: {message}"})
    message = "too many tokens: TIMEOUT"
    written = wires.get("cohere").dump_error(ContextLengthError(message))
    assert (written.status, written.body) == (400, {"message": message})


def test_embeddings_of_coheres() -> None:
    wire: Any = wires.embeddings("cohere")
    body = {
        "model": "m",
        "texts": ["a", "b"],
        "input_type": "search_query",
        "output_dimension": 3,
        "truncate": "END",
    }
    request = EmbeddingsRequest("m", ("a", "b"), "query", 3, {"truncate": "END"})
    assert wire.load_request(body) == request
    assert (wire.dump_request(request), wire.dump_http(request).path) == (body, "/embed")
    document = {"texts": ["a"], "input_type": "search_document"}
    assert wire.load_request(document) == EmbeddingsRequest("", ("a",), "document")
    assert wire.dump_request(EmbeddingsRequest("", ("a",), "document")) == document
    for media in ({"images": ["x"]}, {"inputs": [1]}):
        loaded = wire.load_request({"model": "m", "input_type": "image", **media})
        assert loaded == EmbeddingsRequest("m", (), None, None, {"input_type": "image", **media})
        assert wire.dump_request(loaded) == {"model": "m", "input_type": "image", **media}
    answer = {
        "id": "i",
        "embeddings": {"int8": [[1, 2]], "float": [[0.5, 1.0]], "base64": None, "binary": [[3]]},
        "texts": ["a"],
        "response_type": "embeddings_by_type",
        "meta": {"billed_units": {"input_tokens": 4}, "api_version": {"version": "2"}},
        "x": 1,
    }
    result = wire.load_response(answer)
    assert (result.embeddings, result.id) == ([[0.5, 1.0]], "i")
    assert result.usage == Usage(input_tokens=4, output_tokens=0, total_tokens=4)
    assert result.metadata == {
        "meta": answer["meta"], "x": 1, "embeddings_by_type": {"int8": [[1, 2]], "binary": [[3]]},
    }  # fmt: skip
    kept = {"float": [[0.5, 1.0]], "int8": [[1, 2]], "binary": [[3]]}
    assert wire.dump_response(result, request=EmbeddingsRequest("m", ("a",))) == {
        **answer,
        "embeddings": kept,
    }
    assert wire.dump_response(result)["texts"] == []
    assert wire.load_response({"embeddings": {"int8": [[1]], "binary": [[2]]}}).embeddings == [
        [1.0]
    ]
    assert wire.load_response({"embeddings": [[1]]}).embeddings == [[1.0]]


def test_embeddings_of_ollamas() -> None:
    wire: Any = wires.embeddings("ollama")
    body = {"model": "m", "input": ["a", "b"], "dimensions": 3, "keep_alive": 1}
    request = EmbeddingsRequest("m", ("a", "b"), None, 3, {"keep_alive": 1})
    assert wire.load_request(body) == request
    assert (wire.dump_request(request), wire.dump_http(request).path) == (body, "/api/embed")
    older = {"model": "m", "prompt": "a"}
    loaded = wire.load_request(older)
    assert loaded == EmbeddingsRequest("m", ("a",), native=spelled("ollama", prompt="text"))
    assert (wire.dump_request(loaded), wire.dump_http(loaded).path) == (older, "/api/embeddings")
    assert wire.dump_request(loaded.replace(texts=("a", "b"))) == {
        "model": "m",
        "input": ["a", "b"],
    }
    answer = {"model": "m", "embeddings": [[0.5]], "prompt_eval_count": 4, "total_duration": 5}
    result = wire.load_response(answer)
    assert (result.embeddings, result.id) == ([[0.5]], "")
    assert result.usage == Usage(input_tokens=4, output_tokens=0, total_tokens=4)
    assert result.metadata == {"model": "m", "total_duration": 5}
    assert wire.dump_response(result) == answer
    assert wire.dump_response(wire.load_response({"embedding": [1]}), request=request) == {
        "model": "m",
        "embeddings": [[1.0]],
    }


def test_an_answer_of_anthropics() -> None:
    blocks = [
        ({"type": "text", "text": "", "citations": None, "s": 1}, {"type": "text_delta", "text": "a"},
         {"type": "text_delta", "text": "b", "x": 1}, {"type": "citations_delta", "citation": {"n": 1}}),
        ({"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "t", "x": 2},
         {"type": "signature_delta", "signature": "s"}),
        ({"type": "tool_use", "id": "c", "name": "f", "input": {}, "caller": 1},
         {"type": "input_json_delta", "partial_json": '{"k":'}, {"type": "input_json_delta", "partial_json": "1}", "x": 3}),
        ({"type": "server_tool_use", "id": "d", "name": "g", "input": {"q": 1}},),
        ({"type": "g_tool_result", "tool_use_id": "d", "content": []},),
        ({"type": "tool_use", "id": "", "name": "h", "input": {"z": 1}},),
        ({"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "x"}),
    ]  # fmt: skip
    started = {
        "input_tokens": 3,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 2,
        "service_tier": "t",
    }
    message = {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": "served",
        "content": [],
        "stop_reason": None,
    }
    data = sse(
        {"type": "message_start", "message": {**message, "usage": started}},
        *(
            event
            for index, (block, *deltas) in enumerate(blocks)
            for event in (
                {"type": "content_block_start", "index": index, "content_block": block},
                *(
                    {"type": "content_block_delta", "index": index, "delta": delta}
                    for delta in deltas
                ),
                {"type": "content_block_stop", "index": index},
            )
        ),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "stop_sequence", "stop_sequence": "!", "container": None},
            "usage": {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 4}},
            "beside": 1,
        },
        {"type": "message_stop"},
    )

    def native(fields: dict[str, Any], **notes: Any) -> dict[str, Any]:
        return {
            **({"anthropic": fields} if fields else {}),
            **({"anthropic:notes": notes} if notes else {}),
        }

    around = {
        "stop_sequence": "!",
        "beside": 1,
        "stop_reason": "stop_sequence",
        "usage": {"service_tier": "t"},
    }
    assert decoded("anthropic", data) == [
        Message(
            Role.MODEL,
            (
                TextPart("ab", native({"s": 1, "citations": [{"n": 1}]}, delta={"x": 1})),
                ThinkingPart("t", native({"signature": "s"}, delta={"x": 2})),
                ToolCallPart("c", "f", {"k": 1}, native=native({"caller": 1}, delta={"x": 3})),
                ToolCallPart(
                    "d",
                    "g",
                    {"q": 1},
                    run_by="provider",
                    native=native({"type": "server_tool_use"}),
                ),
                ToolResultPart(
                    "d", "g", [], run_by="provider", native=native({"type": "g_tool_result"})
                ),
                ToolCallPart("call-2", "h", {"z": 1}, native=native({"id": None})),
                ProviderPart("compaction", native({"type": "compaction", "content": "x"})),
            ),
            id="message-0",
            origin=Origin("", served_model="served", response_id="r"),
            finish_reason=FinishReason.tool_calls,
            usage=Usage(
                input_tokens=10,
                output_tokens=7,
                total_tokens=17,
                cache_read_tokens=5,
                cache_write_tokens=2,
                reasoning_tokens=4,
            ),
            native=native({}, response=around),
        )
    ]


@pytest.mark.parametrize(
    "line",
    [{"message": {"content": "a"}}, {"response": "a"}, {"message": {"content": "a"}, "done": 0}],
)
def test_a_line_of_ollamas_needs_no_mark_that_more_comes(line: dict[str, Any]) -> None:
    (message,) = decoded("ollama", json.dumps(line).encode() + b"\n" + b'{"done":true}\n')
    assert (message.content, message.finish_reason) == ((TextPart("a"),), FinishReason.unspecified)
