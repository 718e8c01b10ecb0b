"""ShareGPT and its dialects: what is read is written as it was, and what is written says what was
said."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, TextPart, ToolCallPart, ToolResultPart, formats
from dragoman.errors import HistoryError
from dragoman.formats import sharegpt
from dragoman.loss import Loss, Lost
from dragoman.message import DataPart, FilePart, MarkPart, Origin, ProviderPart, Role, ThinkingPart
from support import traffic
from support.histories import NEUTRAL

ASK = {"from": "human", "value": "What is the weather in Rome?"}
HERMES_CALL = '<tool_call>\n{"name": "weather", "arguments": {"at": "Rome"}}\n</tool_call>'
HERMES_RESULT = '<tool_response>\n{"name": "weather", "content": {"degrees": 31}}\n</tool_response>'
PLAIN = [ASK, {"from": "gpt", "value": "Sunny."}]
HERMES = [
    {"from": "system", "value": "Call functions."},
    ASK,
    {
        "from": "gpt",
        "value": f"<think>\nI must look.\n</think>\n\nI look.\n{HERMES_CALL}\n{HERMES_CALL}",
    },
    {"from": "tool", "value": f"{HERMES_RESULT}\n{HERMES_RESULT}"},
    {"from": "gpt", "value": "31 degrees."},
]
FACTORY = {
    "conversations": [
        ASK,
        {"from": "function_call", "value": '{"name": "weather", "arguments": {"at": "Rome"}}'},
        {"from": "observation", "value": '{"degrees": 31}'},
        {"from": "gpt", "value": "31 degrees."},
    ],
    "system": "Call functions.",
    "tools": '[{"name": "weather", "parameters": {}}]',
    "images": ["one.png"],
}
OTHERS: list[dict[str, Any]] = [
    {"from": "user", "value": "Hi.", "weight": 0, "loss": None},
    {"from": "chatgpt", "value": None, "markdown": {"answer": "x"}},
    {"from": "gpt", "value": " \n"},
    {"from": "gpt", "value": "<think>\n\n</think>\n\nNo thought."},
    {"from": "gpt", "value": "<think>tight</think>\nAnd more.\n"},
    {
        "from": "gpt",
        "value": "<tool_call>\n{'name': 'f', 'arguments': {'a': True, 'b': None}}\n</tool_call>",
    },
    {
        "from": "tool",
        "value": "<tool_response>\n{'name': 'f', 'content': 'It\\'s done'}\n</tool_response>\n",
    },
    {
        "from": "gpt",
        "value": '<tool_call>{"arguments":{},"name":"g","id":"x1","more":1}</tool_call> <tool_call>no</tool_call>',
    },
    {
        "from": "tool",
        "value": '<tool_response>\n{"tool_call_id": "x1", "content": [1]}\n</tool_response>',
        "weight": 1,
    },
    {"from": "tool", "value": "<tool_response>\nsunny\n</tool_response>"},
    {"from": "observation", "value": ""},
    {"from": "observation", "value": None},
    {
        "from": "function_call",
        "value": '[{"name": "f", "arguments": "{\\"a\\": 1}"}, {"name": "g"}]',
    },
    {"from": "tool", "value": f"so: {HERMES_RESULT}"},
    {"from": "function_call", "value": "no JSON"},
    {"from": "function_call", "value": HERMES_CALL},
    {"from": "gpt", "value": "<tool_call> <think>half</tool_call></think><tool_call>"},
    {"from": "human", "value": HERMES_CALL},
]
DOCUMENTS: list[Any] = [
    PLAIN,
    {"conversations": PLAIN},
    {"id": "7", "conversations": HERMES, "category": None, "source": {"a": [1]}},
    FACTORY,
    {"conversations": [PLAIN[0]], "system": ""},
    {"conversations": [], "system": "Alone."},
    {"conversations": []},
    {"conversations": OTHERS},
    *([each] for each in OTHERS),
]


def written(payload: Any) -> Any:
    """What is read, stored and read again, as it is written."""
    messages = [Message.from_json(message.to_json()) for message in sharegpt.load_messages(payload)]
    losses: list[Loss] = []
    dumped = sharegpt.dump_messages(messages, losses=losses)
    assert losses == []
    return dumped


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_what_is_read_is_written_as_it_was(document: Any) -> None:
    before = copy.deepcopy(document)
    assert json.dumps(written(document), sort_keys=True) == json.dumps(before, sort_keys=True)


TOKENS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "\n", "\n\n", " ", "text",
          '{"name": "f", "arguments": {}}', "{'name': 'f', 'arguments': {}}", '{"content": 1}', '{"name": "f"', "é", HERMES_CALL, HERMES_RESULT]  # fmt: skip
VALUES = (
    st.lists(st.sampled_from(TOKENS), max_size=14).map("".join) | st.text(max_size=20) | st.none()
)
SPEAKERS = ["human", "gpt", "system", "tool", "observation", "function_call", "assistant", "user"]
TURNS = st.fixed_dictionaries(
    {"from": st.sampled_from(SPEAKERS), "value": VALUES},
    optional={"weight": st.none() | st.integers(0, 1)},
)


@given(
    st.lists(TURNS, min_size=1, max_size=6),
    st.dictionaries(st.sampled_from(["id", "tools", "system"]), VALUES),
)
def test_any_turns_are_written_as_they_were(turns: list[Any], fields: dict[str, Any]) -> None:
    assert written({"conversations": turns, **fields}) == {"conversations": turns, **fields}


def test_what_the_dialects_mean() -> None:
    system, ask, model, results, end = sharegpt.load_messages(HERMES)
    assert (system.role, ask.role, end.text) == (Role.SYSTEM, Role.USER, "31 degrees.")
    assert (model.thinking, model.text) == ("I must look.", "I look.")
    assert [(call.name, call.arguments) for call in model.tool_calls] == [
        ("weather", {"at": "Rome"})
    ] * 2
    assert [part.result for part in results.tool_results] == [{"degrees": 31}] * 2
    assert [call.id for call in model.tool_calls] == [part.id for part in results.tool_results]
    assert len({call.id for call in model.tool_calls}) == 2
    system, _, model, results, _ = sharegpt.load_messages(FACTORY)
    assert system.text == "Call functions."
    assert model.tool_calls[0].arguments == {"at": "Rome"}
    assert results.tool_results == (results.content[0],)
    assert (results.tool_results[0].result, results.tool_results[0].name) == (
        '{"degrees": 31}',
        "weather",
    )
    assert results.tool_results[0].id == model.tool_calls[0].id


def test_turns_of_results_are_one_message_and_origin_is_the_models() -> None:
    calls = {
        "from": "function_call",
        "value": '[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}]',
    }
    turns = [
        ASK,
        calls,
        {"from": "observation", "value": "1"},
        {"from": "observation", "value": "2", "weight": 0},
    ]
    ask, model, results = sharegpt.load_messages(turns, origin=Origin("local"))
    assert [(part.name, part.result) for part in results.tool_results] == [("f", "1"), ("g", "2")]
    assert (ask.origin, model.origin) == (None, Origin("local"))
    assert written(turns) == turns


def test_a_result_answers_a_call_of_the_last_round() -> None:
    call = {"from": "function_call", "value": '{"name": "weather", "arguments": {}}'}
    turns = [ASK, call, ASK, call, {"from": "observation", "value": "31"}]
    _, first, _, second, results = sharegpt.load_messages(turns)
    assert results.tool_results[0].id == second.tool_calls[0].id != first.tool_calls[0].id


def test_what_users_and_tools_say_is_never_read_as_the_models() -> None:
    ask, result = sharegpt.load_messages(
        [{"from": "human", "value": HERMES_RESULT}, {"from": "tool", "value": HERMES_CALL}]
    )
    assert ask.content == (TextPart(HERMES_RESULT),)
    assert result.tool_results[0].result == HERMES_CALL


# ------------------------------------------------------------------ messages → ShareGPT → messages


def said(messages: list[Message]) -> list[Any]:
    """What messages say: calls and results by the number of the call, results before all else and
    by themselves."""
    unanswered: dict[str, list[int]] = {}  # id of a call → numbers
    names: list[str] = []
    turns: list[Any] = []
    for message in messages:
        results: list[Any] = []
        others: list[Any] = []
        for piece in message.content:
            if isinstance(piece, ToolResultPart):
                result = (
                    "".join(part.text for part in piece.result)
                    if piece.is_content
                    else piece.result
                )
                number = unanswered[piece.id].pop(0) if unanswered.get(piece.id) else None
                name = piece.name or ("" if number is None else names[number])
                results.append((number, name, json.dumps(result)))
            elif isinstance(piece, ToolCallPart):
                unanswered.setdefault(piece.id, []).append(len(names))
                names.append(piece.name)
                raw = "" if piece.state == "complete" else piece.raw
                others.append((piece.name, json.dumps(piece.arguments), piece.state, raw))
            elif isinstance(piece, TextPart) and others and others[-1][0] is TextPart:
                others[-1] = (TextPart, others[-1][1] + piece.text)
            elif not isinstance(piece, MarkPart):
                others.append((type(piece), piece.text))
        if results and turns and turns[-1][0] == "results":
            turns[-1][1].extend(results)
        elif results:
            turns.append(("results", results))
        if others or not message.content:
            turns.append((message.role, others))
    return turns


def told(messages: list[Message]) -> tuple[list[Message], list[Loss]]:
    losses: list[Loss] = []
    payload = json.loads(json.dumps(sharegpt.dump_messages(messages, losses=losses)))
    assert formats.detect(payload) == "sharegpt" or not payload["conversations"]
    assert all(sharegpt.votes(turn) == 3 for turn in payload["conversations"])
    return sharegpt.load_messages(payload), [loss for loss in losses if not loss.is_minor]


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_was_said_comes_back(name: str) -> None:
    back, losses = told(NEUTRAL[name])
    if not losses:
        assert said(back) == said(NEUTRAL[name])


def test_what_is_held_is_no_loss() -> None:
    lost = {name for name, messages in NEUTRAL.items() if told(messages)[1]}
    assert (
        lost
        & {
            "text",
            "several texts",
            "call",
            "call after text",
            "text after call",
            "parallel calls",
            "results of every kind",
        }
        == set()
    )


WORDS = st.text(min_size=1, max_size=8) | st.sampled_from(
    ["\n", " a\n", "\n\nb", "<think>", "</think>x", HERMES_CALL, "</tool_response>"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS,
    lambda one: st.lists(one, max_size=2) | st.dictionaries(WORDS, one, max_size=2),
    max_leaves=4,
)
CALLS = st.builds(
    ToolCallPart,
    st.sampled_from("abcd"),
    st.sampled_from(["f", "g"]),
    st.dictionaries(WORDS, JSON, max_size=2),
)
ANSWERS = st.lists(
    st.builds(TextPart, WORDS) | st.builds(ThinkingPart, WORDS) | CALLS,
    max_size=5,
    unique_by=lambda one: getattr(one, "id", id(one)),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = []
    for number in range(draw(st.integers(1, 3))):
        messages += [Message.user(draw(WORDS))] if draw(st.booleans()) else []
        answer = draw(ANSWERS)
        named = [
            ToolCallPart(f"{number}{one.id}", one.name, one.arguments)
            if isinstance(one, ToolCallPart)
            else one
            for one in answer
        ]
        messages.append(Message.model(*named))
        calls = draw(st.permutations([one for one in named if isinstance(one, ToolCallPart)]))
        results = [
            ToolResultPart(call.id, call.name, draw(JSON))
            for call in calls[: draw(st.integers(0, 3))]
        ]
        messages += [Message.user(*results)] if results else []
    return messages


@given(conversations())
def test_what_anybody_said_comes_back_or_is_a_loss(messages: list[Message]) -> None:
    back, losses = told(messages)
    kept = [loss for loss in losses if loss.what not in (Lost.text, Lost.thinking)]
    assert kept == []
    if not losses:
        assert said(back) == said(messages)
    for loss in losses:
        assert loss.message is not None
        assert loss.part is not None
        piece = messages[loss.message].content[loss.part]
        assert isinstance(piece, TextPart | ThinkingPart)
        assert not piece.text.strip() or "<" in piece.text


def test_results_that_names_and_order_do_not_pair_have_ids() -> None:
    calls = [ToolCallPart(f"c{number}", "look") for number in range(3)]
    messages = [
        Message.model(*calls),
        Message.user(ToolResultPart("c2", "look", 2)),
        Message.user("And?"),
    ]
    back, losses = told(messages)
    assert losses == []
    assert said(back) == said(messages)
    assert back[1].tool_results[0].id == back[0].tool_calls[2].id == "c2"
    orphan = [Message.model(calls[0]), Message.user(ToolResultPart("elsewhere", "look", 2))]
    assert said(told(orphan)[0]) == said(orphan)


def test_what_cannot_be_held_is_a_loss_with_its_place() -> None:
    messages = [
        Message.user(
            MarkPart("step"),
            "See",
            DataPart(b"\x89PNG", "image/png", "cat.png"),
            FilePart("file-1"),
        ),
        Message.model(
            MarkPart("step"),
            ThinkingPart("hm", {"anthropic": {"signature": "s"}}),
            ThinkingPart("", {"anthropic": {"data": "x"}}),
            ProviderPart("compaction", {"anthropic": {}}),
            ToolCallPart("c", "f", raw='{"a', state="cut"),
            ToolCallPart("p", "search", run_by="provider"),
            'I say <tool_call>{"name": "f"}</tool_call>',
        ),
        Message.user(ToolResultPart("c", "f", "no", is_error=True)),
        Message.user(MarkPart("step")),
    ]
    losses: list[Loss] = []
    turns: Any = sharegpt.dump_messages(messages, losses=losses)
    assert sorted((loss.message, loss.part, loss.what) for loss in losses) == [
        (0, 2, Lost.data), (0, 2, Lost.texts), (0, 3, Lost.file), (0, 3, Lost.texts),
        (1, 1, Lost.signature), (1, 2, Lost.thinking), (1, 3, Lost.provider), (1, 4, Lost.tool_call), (1, 5, Lost.tool_call), (1, 6, Lost.text),
        (2, 0, Lost.is_error),
    ]  # fmt: skip
    assert [turn["from"] for turn in turns["conversations"]] == ["human", "gpt", "tool"]
    assert "cat.png" in turns["conversations"][0]["value"]


def test_an_edit_writes_what_it_says() -> None:
    messages = sharegpt.load_messages({"conversations": [*HERMES, *OTHERS]})
    edited = [
        message.replace(
            content=tuple(
                ToolCallPart(piece.id, "changed", {"a": 1}, native=piece.native) if isinstance(piece, ToolCallPart)
                else ToolResultPart(piece.id, "changed", {"b": 2}, native=piece.native) if isinstance(piece, ToolResultPart)
                else piece
                for piece in message.content
            )
        )
        for message in messages
    ]  # fmt: skip
    back = sharegpt.load_messages(sharegpt.dump_messages(edited))
    assert [call.name for message in back for call in message.tool_calls] == ["changed"] * sum(
        len(one.tool_calls) for one in edited
    )
    assert all(part.result == {"b": 2} for message in back for part in message.tool_results)


def test_fields_of_a_second_conversation_are_a_loss() -> None:
    one, two = (sharegpt.load_messages({"conversations": PLAIN, "id": id_}) for id_ in "ab")
    losses: list[Loss] = []
    joined: Any = sharegpt.dump_messages([*one, *two], losses=losses)
    assert (joined["id"], len(joined["conversations"])) == ("a", 4)
    assert [(loss.message, loss.what, loss.which) for loss in losses] == [(2, Lost.field, "id")]


# ------------------------------------------------------------------ what is no ShareGPT


@pytest.mark.parametrize(
    ("turn", "field"),
    [(5, None), (None, None), ({}, "from"), ({"from": 5, "value": ""}, "from"), ({"from": "nobody", "value": ""}, "from"),
     ({"from": "human"}, "value"), ({"from": "human", "value": ["x"]}, "value"), ({"role": "user", "content": "x"}, "from")],
)  # fmt: skip
def test_a_turn_that_cannot_be_read_is_named(turn: Any, field: str | None) -> None:
    assert sharegpt.votes(turn) == 0
    with pytest.raises(HistoryError, match=r"conversations\[1\]"):
        sharegpt.load_messages([ASK, turn])
    problems: list[Any] = []
    assert len(sharegpt.load_messages([ASK, turn, ASK], problems=problems)) == 2
    assert [(problem.index, problem.field) for problem in problems] == [(1, field)]


@pytest.mark.parametrize(
    "payload",
    [None, 5, "x", {}, {"conversations": {}}, {"conversations": [], "id": 1}, {"messages": []}],
)
def test_what_is_no_conversation_is_refused(payload: Any) -> None:
    with pytest.raises(HistoryError):
        sharegpt.load_messages(payload)


def test_what_nests_too_deep_is_refused() -> None:
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    for payload in ({"conversations": PLAIN, "more": deep}, [{**ASK, "more": deep}, ASK]):
        with pytest.raises(HistoryError, match="nests deeper"):
            sharegpt.load_messages(payload)
        problems: list[Any] = []
        assert sharegpt.load_messages(payload, problems=problems)
        assert len(problems) == 1
    for text in (
        "[" * 90000,
        "{'a':" * 90000,
        '{"name": "f", "arguments": ' + '{"a":' * 300 + "1" + "}" * 301,
    ):
        assert written([{"from": "gpt", "value": f"<tool_call>{text}</tool_call>"}])


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(SPEAKERS),
    lambda one: (
        st.lists(one, max_size=4)
        | st.dictionaries(
            st.sampled_from(["from", "value", "conversations", "system", "x"]), one, max_size=4
        )
    ),
    max_leaves=12,
)


@given(ANY)
def test_anything_is_read_or_refused(payload: Any) -> None:
    assert sharegpt.votes(payload) in (0, 3)
    problems: list[Any] = []
    try:
        messages = sharegpt.load_messages(payload)
        assert sharegpt.dump_messages(messages) in (payload, {"conversations": []})
        sharegpt.load_messages(payload, problems=problems)
        assert problems == []
    except HistoryError:
        try:
            sharegpt.load_messages(payload, problems=problems)
            assert problems
        except HistoryError:
            assert not isinstance(payload, list)


def test_it_is_told_from_all_others() -> None:
    assert (
        formats.detect(FACTORY)
        == formats.detect(HERMES)
        == formats.detect(HERMES[-1])
        == "sharegpt"
    )
    found = formats.detect_list(FACTORY)
    assert sharegpt.dump_messages(sharegpt.load_messages(found[0].payload)) == FACTORY
    assert formats.detect({"conversations": [{"role": "user", "content": "Hi."}]}) == "openai_chat"
    for name in {*formats.names()} - {"sharegpt"}:
        assert [formats.get(name).votes(turn) for turn in HERMES] == [0] * len(HERMES), name


@pytest.mark.parametrize("folder", sorted({*traffic.WIRES}))
def test_no_recorded_message_is_mistaken_for_it(folder: str) -> None:
    for exchange in traffic.exchanges(folder):
        for value in (exchange.request or {}).values():
            for each in value if isinstance(value, list) else ():
                assert sharegpt.votes(each) == 0, exchange


def test_results_without_a_call_that_waits_keep_their_ids() -> None:
    """A second one for a call, and one of no call at all, are read as what they were."""
    call, other = ToolCallPart("c1", "f", {}), ToolCallPart("c2", "f", {})
    twice = [
        ToolResultPart("c1", "f", ""),
        ToolResultPart("c1", "f", ""),
        ToolResultPart("c2", "f", None),
    ]
    alone = [ToolResultPart("c9", "f", "late")]
    for calls, results in (((call, other), twice), ((), alone)):
        talk = [Message.user("?"), Message.model("So.", *calls), Message.user(*results)]
        losses: list[Loss] = []
        again = sharegpt.load_messages(sharegpt.dump_messages(talk, losses=losses))
        assert losses == []
        assert [result.result for result in again[2].tool_results] == [
            result.result for result in results
        ]
        answered = [
            [at for at, one in enumerate(again[1].tool_calls) if one.id == result.id]
            for result in again[2].tool_results
        ]
        assert answered == ([[0], [0], [1]] if calls else [[]])
    plain = {"conversations": [{"from": "tool", "value": "late"}]}
    assert sharegpt.dump_messages(sharegpt.load_messages(plain)) == plain
