"""The wires that share the shape of Chat Completions: what is malformed is named, and a whole
history is written, to its own provider and to another, with every loss."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman import wires
from dragoman.codec.serving import Problem
from dragoman.errors import DecodeError, HistoryError, StreamCutError
from dragoman.event import RunError
from dragoman.loss import Loss
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ModelRequest

CHAT, BOTH = ("openai_chat",), ("openai_chat", "mistral")
MALFORMED: list[tuple[tuple[str, ...], Any, str]] = [
    (BOTH, 5, "a choice that is no object"),
    (BOTH, {"message": 5}, "a message that is no object"),
    (("mistral",), {"messages": 5}, "messages that are no list"),
    (("mistral",), {"messages": [5]}, "a message that is no object"),
    (BOTH, {"message": {"tool_calls": 5}}, "tool calls that are no list"),
    (BOTH, {"message": {"tool_calls": [5]}}, "a tool call that is no object"),
    (BOTH, {"message": {"tool_calls": [{"function": 5}]}}, "a tool call that is no object"),
    (
        BOTH,
        {"message": {"tool_calls": [{"function": {"arguments": "{}"}}]}},
        "a piece of a tool call that has not begun",
    ),
    (CHAT, {"message": {"content": [5]}}, "a content block that is no object"),
    (("mistral",), {"message": {"content": [5]}}, "a content chunk that is no object"),
    (BOTH, {"message": {}, "logprobs": 5}, "a logprobs that is no object"),
    (CHAT, {"message": {"executed_tools": 5}}, "executed tools that are no list"),
    (CHAT, {"message": {"executed_tools": [5]}}, "a executed tool that is no object"),
    (CHAT, {"message": {"function_call": 5}}, "a function call that is no object"),
    (
        CHAT,
        {"message": {"function_call": {"arguments": "{}"}}},
        "a piece of a tool call that has not begun",
    ),
    (CHAT, {"message": {"reasoning_details": 5}}, "reasoning details that are no list"),
    (CHAT, {"message": {"reasoning_details": [5]}}, "a reasoning detail that is no object"),
    (CHAT, {"message": {"images": 5}}, "images that are no list"),
    (CHAT, {"message": {"images": [5]}}, "a image that is no object"),
    (CHAT, {"message": {"audio": 5}}, "a audio that is no object"),
    (CHAT, {"message": {"audio": {"data": "!"}}}, "audio that is no base64"),
    (CHAT, {"message": {"annotations": 5}}, "annotations that are no list"),
    (CHAT, {"message": {"annotations": [5]}}, "a annotation that is no object"),
]


def failed(name: str, body: Any) -> str:
    error = wires.get(name).load_response(body)[-1]
    assert isinstance(error, RunError) and isinstance(error.error, DecodeError)
    return error.error.message


@pytest.mark.parametrize(
    ("name", "choice", "words"), [(name, *rest) for names, *rest in MALFORMED for name in names]
)
def test_what_is_malformed_in_a_choice_is_named(name: str, choice: Any, words: str) -> None:
    assert failed(name, {"choices": [choice]}).startswith(f"the provider sent {words}: ")


@pytest.mark.parametrize("name", BOTH)
def test_what_is_malformed_around_the_choices_is_named(name: str) -> None:
    good = {"choices": [{"message": {"content": "a"}}]}
    assert failed(name, {**good, "usage": 5}).startswith(
        "the provider sent a usage that is no object: 5."
    )
    assert failed(name, {"choices": 5}).startswith("the provider sent choices that are no list: 5.")
    assert failed(name, {"x": 1}).startswith(
        'the provider sent an answer without choices: {"x":1}.'
    )
    assert failed(name, b"data: [1]\n\n").startswith("an event is no JSON object")
    assert failed("openai_chat", {**good, "x_groq": 5}).startswith(
        "the provider sent a x_groq that is no object: 5."
    )
    long = b'data: {"a": "' + b"x" * 300 + b"\xff\n\n"
    told = wires.get(name).load_response(long)[-1]
    assert isinstance(told, RunError) and told.error.body == long[6:-2]
    shown = long[6:206].decode()
    assert told.error.message.startswith("a piece of the answer is not JSON (")
    assert told.error.message.endswith(f"): {shown}")
    (cut,) = wires.get(name).decoder(origin=Origin("p")).close()
    assert isinstance(cut, RunError) and isinstance(cut.error, StreamCutError)
    assert (cut.error.message, cut.error.provider) == (
        "the stream ended before the answer did. Send the request again.",
        "p",
    )


# ------------------------------------------------------------------ a whole history


SIGNED = ThinkingPart("x", {"openai_chat": {"signature": "s"}, "mistral": {"signature": "s"}})
PICTURE = DataPart(b"x", "image/png")
HISTORY = [
    Message(Role.SYSTEM, ("s", DataPart(b"x", "image/png", name="i"), ToolCallPart("q", "q"))),
    Message.user(
        "hi",
        DataPart(b"x", "application/x-y", name="n"),
        LinkPart("https://a.test/x.png", name="n"),
        FilePart("id", native={"z": {}}),
        ThinkingPart("u"),
    ),
    Message(
        Role.MODEL,
        (
            TextPart("a"),
            ThinkingPart("t"),
            ThinkingPart("", {"z": {"a": 1}}),
            ProviderPart("k", {"z": {}}),
            ToolCallPart("e", "g", {}, run_by="provider"),
            ToolResultPart("e", "g", 1, run_by="provider"),
            ToolResultPart("c", "f", 1),
            PICTURE,
            ToolCallPart("c", "f", {}),
            TextPart("b"),
        ),
        origin=Origin("p"),
    ),
    Message.user(
        "early",
        ToolResultPart("c", "f", "no", is_error=True),
        ToolResultPart("d", "f", (TextPart("t"), PICTURE)),
        "x",
    ),
    Message.system("late"),
    Message(
        Role.MODEL,
        (SIGNED,),
        origin=Origin("other"),
        native={"openai_chat": {"extra_content": 1}, "mistral": {"prefix": True}},
    ),
    Message.user(),
]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}
LINK = {"type": "image_url", "image_url": {"url": "https://a.test/x.png"}}
TOLD = text("[media: image/png] i")
FILE = text("[media: file]")
WITH_RESULTS = [text("[result of f]"), IMAGE, text("early"), text("x")]


def call(call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def results(first: str, second: str) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool_call_id": first, "content": "no"},
        {"role": "tool", "tool_call_id": second, "content": "t"},
        {"role": "user", "content": WITH_RESULTS},
    ]


NOWHERE = "this format has no place for it in such a message"
AFTER = "this format has all text before the calls"
BEFORE = "this format has the results of tools before all else"
MEDIA = "tool messages hold text only; it follows in a user message"
USERS = [
    (0, 2, "tool call", NOWHERE),
    (1, 2, "name", "the API knows no name of such a file, n"),
    (1, 3, "file file", "another provider holds the file"),
    (1, 4, "thinking", NOWHERE),
]
OF_THE_MODEL = [
    (2, 2, "thinking", "it is signed for another format"),
    (2, 3, "provider", "it is a block of another format"),
]
OF_RESULTS = [
    (2, 6, "tool result", "a result stands in a user message"),
    (2, 9, "order", AFTER),
    (3, 1, "order", BEFORE),
    (3, 1, "is_error", "this format has no mark for a failed tool"),
    (3, 2, "order", BEFORE),
    (3, 2, "media", MEDIA),
]
NAMED = (0, 1, "name", "the API knows no name of such a file, i")
SYSTEM = (0, 1, "data image/png i", "a system message holds text only")
LATE = (4, None, "system message", "the API takes none after the first others; it is a user's text")
NO_MEDIA = (2, 7, "data", "a model's message holds no media in this format")


def elsewhere(*places: int) -> list[tuple[int, int, str, str]]:
    kinds = {1: "thinking", 2: "thinking", 3: "provider", 4: "tool call", 5: "tool result"}
    return [(2, place, kinds[place], "it comes from p, which q does not read") for place in places]


def ran(why: str) -> list[tuple[int, int, str, str]]:
    return [(2, 4, "tool call", why), (2, 5, "tool result", why)]


def dumped(name: str, target: Origin | None) -> tuple[list[Any], list[tuple[Any, ...]]]:
    losses: list[Any] = []
    body = wires.get(name).dump_messages(HISTORY, target=target, losses=losses)
    return body, [
        (loss.message, loss.part, f"{loss.what} {loss.which}".rstrip(), loss.why) for loss in losses
    ]


def test_a_whole_history_of_chat_completions() -> None:
    user = {
        "role": "user",
        "content": [text("hi"), text("[media: application/x-y] n\nx"), LINK, FILE],
    }
    body, losses = dumped("openai_chat", None)
    executed = [{"index": 0, "type": "g", "arguments": "{}", "output": "1"}]
    assert body == [
        {"role": "system", "content": [text("s"), IMAGE]},
        user,
        {
            "role": "assistant",
            "content": [text("a"), IMAGE, text("b")],
            "reasoning_content": "t",
            "executed_tools": executed,
            "tool_calls": [call("c")],
        },
        *results("c", "d"),
        {"role": "system", "content": "late"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_details": [{"text": "x", "signature": "s"}],
            "extra_content": 1,
        },
        {"role": "user", "content": ""},
    ]
    order = (2, 7, "order", "this format has all text before the tools that the vendor ran")
    assert losses == [NAMED, *USERS, *OF_THE_MODEL, OF_RESULTS[0], order, *OF_RESULTS[1:]]

    def sent(said: dict[str, Any], call_id: str) -> list[dict[str, Any]]:
        return [
            {"role": "system", "content": [text("s"), TOLD]},
            user,
            {"role": "assistant", **said, "tool_calls": [call(call_id)]},
            *results(call_id, "d"),
            {"role": "system", "content": "late"},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": ""},
        ]

    def of_other(target: str) -> list[tuple[Any, ...]]:
        why = f"it comes from other, which {target} does not read"
        return [(5, 0, "thinking", why), (5, None, "field extra_content", why)]

    body, losses = dumped("openai_chat", Origin("p"))
    assert body == sent({"content": [text("a"), IMAGE, text("b")], "reasoning_content": "t"}, "c")
    why = "the vendor takes no record of tools that it ran"
    assert losses == [SYSTEM, *USERS, *OF_THE_MODEL, *ran(why), *OF_RESULTS, *of_other("p")]
    body, losses = dumped("openai_chat", Origin("q"))
    sent_id = body[2]["tool_calls"][0]["id"]
    assert body == sent({"content": [text("a"), text("b")]}, sent_id) and sent_id != "c"
    here, *others = OF_RESULTS
    assert losses == [
        SYSTEM,
        *USERS,
        *elsewhere(1, 2, 3, 4, 5),
        here,
        NO_MEDIA,
        *others,
        *of_other("q"),
    ]


def test_a_whole_history_of_mistral() -> None:
    document = {
        "type": "document_url",
        "document_url": "data:application/x-y;base64,eA==",
        "document_name": "n",
    }
    thought = {"type": "thinking", "thinking": [text("t")]}

    def expected(
        second: dict[str, Any], said: list[Any], *last: Any, ids: tuple[str, str]
    ) -> list[Any]:
        return [
            {"role": "system", "content": [text("s"), second]},
            {"role": "user", "content": [text("hi"), document, LINK, FILE]},
            {"role": "assistant", "content": said, "tool_calls": [call(ids[0])]},
            *results(*ids),
            {"role": "user", "content": "<system>\nlate\n</system>"},
            *last,
        ]

    def ids_of(body: list[Any]) -> tuple[str, str]:
        ids = body[2]["tool_calls"][0]["id"], body[4]["tool_call_id"]
        assert all(len(one) == 9 for one in ids)
        return ids

    why = "this API takes no record of tools that it ran"
    body, losses = dumped("mistral", None)
    signed = {"type": "thinking", "thinking": [text("x")], "signature": "s"}
    last = [
        {"role": "assistant", "content": [signed], "prefix": True},
        {"role": "user", "content": ""},
    ]
    assert body == expected(IMAGE, [text("a"), thought, IMAGE, text("b")], *last, ids=ids_of(body))
    assert losses == [NAMED, *USERS, *OF_THE_MODEL, *ran(why), *OF_RESULTS, LATE]

    def of_other(target: str) -> list[tuple[Any, ...]]:
        empty = "it says nothing, and the API takes no empty message"
        return [
            (5, 0, "thinking", f"it comes from other, which {target} does not read"),
            (5, None, "message", f"{empty} of the model's"),
            (6, None, "message", empty),
        ]

    body, losses = dumped("mistral", Origin("p"))
    assert body == expected(TOLD, [text("a"), thought, IMAGE, text("b")], ids=ids_of(body))
    assert losses == [SYSTEM, *USERS, *OF_THE_MODEL, *ran(why), *OF_RESULTS, LATE, *of_other("p")]
    body, losses = dumped("mistral", Origin("q"))
    assert body == expected(TOLD, [text("a"), text("b")], ids=ids_of(body))
    here, *others = OF_RESULTS
    assert losses == [
        SYSTEM,
        *USERS,
        *elsewhere(1, 2, 3, 4, 5),
        here,
        NO_MEDIA,
        *others,
        LATE,
        *of_other("q"),
    ]


# ------------------------------------------------------------------ marks, and what is plain


MARK = MarkPart("step", {"ui": {"n": 1}})


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("target", [None, Origin("p"), Origin("q")])
def test_marks_are_not_sent_and_a_loss_behind_one_names_its_place(
    name: str, target: Origin | None
) -> None:
    marked = [message.replace(content=(MARK, *message.content)) for message in HISTORY]
    losses: list[Loss] = []
    body = wires.get(name).dump_messages(marked, target=target, losses=losses)
    plain, lost = dumped(name, target)
    assert body == plain
    assert [(loss.message, loss.part, loss.why) for loss in losses] == [
        (message, part if part is None else part + 1, why) for message, part, _, why in lost
    ]
    request = ModelRequest("m", tuple(marked))
    assert wires.get(name).dump_http(request, target=target).body["messages"] == plain
    assert wires.get(name).dump_messages([Message.user(MARK, "a", MARK)]) == [
        {"role": "user", "content": "a"}
    ]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("target", [None, Origin("p"), Origin("q")])
def test_what_has_nothing_of_a_formats_own_is_written_as_if_it_had(
    name: str, target: Origin | None
) -> None:
    wire, of_p = wires.get(name), Origin("p", "https://p.test")
    history = [
        Message.system("s"),
        Message.user("a"),
        Message.model("b").replace(origin=of_p),
        Message.model(
            ToolCallPart("odd/1", "f g", {"a": 1}), ToolCallPart("c", "f", raw="{", state="cut")
        ),
        Message.user(ToolResultPart("odd/1", "f g", {"b": 2}), ToolResultPart("c", "f", "é")),
        Message.model(ToolCallPart("odd/1", "f")).replace(origin=of_p),
        Message.user(ToolResultPart("odd/1", "f", None)),
        Message.user(ToolResultPart("odd/1", "f", {"no": 1}, is_error=True)),
        Message.model(ToolCallPart("run", "f", run_by="provider"), ToolCallPart("d", "f")),
        Message.user(ToolResultPart("d", "f", (TextPart("t"), PICTURE))),
        Message.system("late"),
        Message.user("x", "y"),
        Message.model(),
    ]
    other = {"z": {"a": 1}}
    noted = [
        message.replace(
            native=other, content=tuple(replace(piece, native=other) for piece in message.content)
        )
        for message in history
    ]
    losses: list[Loss] = []
    lost: list[Loss] = []
    body = wire.dump_messages(history, target=target, losses=losses)
    assert (body, losses) == (wire.dump_messages(noted, target=target, losses=lost), lost)
    assert wire.dump_messages(wire.load_messages(body)) == body


# ------------------------------------------------------------------ what cannot be read


@pytest.mark.parametrize("name", BOTH)
def test_what_cannot_be_read_is_left_out_and_named(name: str) -> None:
    wire, deep = wires.get(name), [0]
    for _ in range(200):
        deep = [deep]
    result = {"role": "tool", "tool_call_id": "abcdefghi", "content": "1"}
    good = [{"role": "user", "content": "a"}, result, {"role": "assistant", "content": "b"}]
    bad = [
        5,
        {"role": "narrator", "content": "x"},
        {"role": "user", "content": 5},
        {"role": "user", "content": deep},
        {},
    ]
    payload = [bad[0], good[0], *bad[1:3], good[1], bad[3], good[2], bad[4]]
    title = "Mistral chat" if name == "mistral" else "Chat Completions"
    roles = "system, user" if name == "mistral" else "system, developer, user"
    expected = [
        (0, None, f"the messages of a {title} request are a list of objects"),
        (2, "role", f"{title} has no role 'narrator'; it has {roles}, assistant and tool"),
        (3, "content", "the content of a user message is neither a text nor a list of blocks"),
        (5, "content", "what was given cannot be read: it nests deeper than 128 levels"),
        (7, "role", f"{title} has no role None; it has {roles}, assistant and tool"),
    ]
    problems: list[Problem] = []
    assert wire.load_messages(payload, problems=problems) == wire.load_messages(good)
    assert [(problem.index, problem.field, problem.error) for problem in problems] == expected
    problems = []
    request = wire.load_request({"model": "m", "messages": payload}, problems=problems)
    assert (request.messages, len(problems)) == (tuple(wire.load_messages(good)), 5)
    for one in bad:
        with pytest.raises(HistoryError):
            wire.load_messages([*good, one])
    with pytest.raises(HistoryError, match="are a list of objects"):
        wire.load_messages({}, problems=[])
