"""Going on from a response that the provider stores (D-134, D-135)."""

from __future__ import annotations

import msgspec
import pytest

from dragoman.codec.digest import compute_prefix
from dragoman.fold import fold
from dragoman.message import FinishReason, Message, Origin, TextPart, ToolResultPart
from dragoman.wires import openai_responses as wire
from support.responses import HI, OPENAI, dump


def answer(before, id_="resp_1", text="Hello", **fields):
    """What the provider answered to a conversation, as `ChatModel` hands it on."""
    origin = msgspec.structs.replace(OPENAI, prefix=compute_prefix(before, "w"))
    item = {"type": "message", "id": f"msg_{id_}", "role": "assistant", "status": "completed"}
    output = [{**item, "content": [{"type": "output_text", "text": text, "annotations": []}]}]
    body = {
        "id": id_,
        "object": "response",
        "status": "completed",
        "model": "gpt-5-x",
        "output": output,
        **fields,
    }
    (message,) = fold(wire.load_response(body, origin=origin))
    return Message.from_json(message.to_json())


SYSTEM = Message.system("be")
FIRST = [SYSTEM, HI, answer([SYSTEM, HI])]
MORE = Message.user("more")


def linked(*messages, target=OPENAI, **fields):
    dumped = dump(*messages, target=target, **fields)
    return dumped.get("previous_response_id"), [
        item.get("content", item.get("output")) for item in dumped["input"]
    ]


def test_d135_only_what_follows_the_newest_response_is_sent_and_the_instructions_again():
    dumped = dump(*FIRST, MORE, target=OPENAI)
    assert dumped == {
        "model": "gpt-5",
        "instructions": "be",
        "previous_response_id": "resp_1",
        "input": [{"role": "user", "content": "more"}],
    }


def test_without_a_target_nothing_is_linked():
    assert linked(*FIRST, MORE, target=None)[0] is None


def test_all_that_follows_is_sent():
    assert linked(*FIRST, MORE, Message.user("and this")) == ("resp_1", ["more", "and this"])


def test_the_newest_of_several_is_taken():
    second = [*FIRST, MORE]
    history = [*second, answer(second, "resp_2"), Message.user("again")]
    assert linked(*history) == ("resp_2", ["again"])


def test_what_others_said_in_between_is_sent():
    """Back from another provider, the conversation goes on from the last response that is stored
    here."""
    other = Message.model("Bonjour").replace(
        origin=Origin("google", prefix=compute_prefix([*FIRST, MORE], "w"))
    )
    assert linked(*FIRST, MORE, other, Message.user("again")) == (
        "resp_1",
        ["more", "Bonjour", "again"],
    )


def test_results_of_tools_are_what_follows_a_call():
    output = [
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}
    ]
    history = [HI, answer([HI], output=output), Message.user(ToolResultPart("call_1", "f", "42"))]
    assert linked(*history) == ("resp_1", ["42"])


@pytest.mark.parametrize("store", [None, True])
def test_d134_store_counts_as_true_where_it_is_null(store):
    assert linked(*FIRST, MORE, options={"store": store}) == ("resp_1", ["more"])


def test_without_a_store_everything_is_sent():
    everything = (None, ["Hi", "Hello", "more"])
    assert linked(*FIRST, MORE, options={"store": False}) == everything
    unstored = [SYSTEM, HI, answer([SYSTEM, HI], store=False)]
    assert linked(*unstored, MORE)[0] is None
    assert linked(*FIRST, MORE, quirks=wire.Quirks(links=False)) == everything


def edited(message, text):
    return message.replace(content=(TextPart(text, message.content[0].native),))


@pytest.mark.parametrize("system", [[], [Message.system("be kind")]], ids=["none", "other"])
def test_decision_29_instructions_are_of_each_request(system):
    dumped = dump(*system, HI, FIRST[2], MORE, target=OPENAI)
    assert dumped["previous_response_id"] == "resp_1"
    assert dumped.get("instructions") == (system[0].text if system else None)


def test_a_system_message_among_the_items_is_held_with_them():
    def place(text):
        return Message.system(text).replace(
            native={"openai_responses:notes": {"spelling": {"place": "input"}}}
        )

    before = [place("be brief"), HI]
    origin = msgspec.structs.replace(OPENAI, prefix=compute_prefix(before, "openai_responses"))
    answer = FIRST[2].replace(origin=msgspec.structs.replace(origin, response_id="resp_1"))
    assert "previous_response_id" in dump(*before, answer, MORE, target=OPENAI)
    assert "previous_response_id" not in dump(place("be kind"), HI, answer, MORE, target=OPENAI)


@pytest.mark.parametrize(
    "history",
    [
        [SYSTEM, Message.user("Hi!"), FIRST[2], MORE],
        [SYSTEM, HI, edited(FIRST[2], "Hello?"), MORE],
        [SYSTEM, HI, FIRST[2].replace(origin=msgspec.structs.replace(FIRST[2].origin, provider="azure-responses")), MORE],
        [SYSTEM, HI, FIRST[2].replace(origin=msgspec.structs.replace(FIRST[2].origin, endpoint="https://x")), MORE],
        [SYSTEM, HI, FIRST[2].replace(origin=msgspec.structs.replace(FIRST[2].origin, prefix=None)), MORE],
        [SYSTEM, HI, FIRST[2].replace(finish_reason=FinishReason.error), MORE],
        [SYSTEM, HI, FIRST[2]],
    ],
)  # fmt: skip
def test_everything_is_sent_when_anything_before_is_not_as_it_was(history):
    dumped = dump(*history, target=OPENAI)
    assert "previous_response_id" not in dumped
    assert len(dumped["input"]) == len(history) - (history[0].role == "system")


def test_an_older_response_serves_when_the_newest_was_edited():
    second = [*FIRST, MORE]
    newest = edited(answer(second, "resp_2", "fine"), "changed")
    id_, items = linked(*second, newest, Message.user("again"))
    assert (id_, items[0], items[1][0]["text"], items[2]) == ("resp_1", "more", "changed", "again")


@pytest.mark.parametrize(
    "metadata", [{"_responses_session": {"response_id": "resp_9"}}, {"response_id": "resp_9"}]
)
def test_d134_and_seed_003_histories_that_carry_the_session_in_their_metadata(metadata):
    imported = Message.model("Hello").replace(metadata=metadata)
    assert linked(HI, imported, MORE) == ("resp_9", ["more"])


@pytest.mark.parametrize(
    "metadata",
    [{"response_id": "chatcmpl-9"}, {"_responses_session": "resp_9"}, {"response_id": 9}],
)
def test_other_metadata_is_no_session(metadata):
    assert linked(HI, Message.model("Hello").replace(metadata=metadata), MORE)[0] is None


@pytest.mark.parametrize(
    "options",
    [
        {"previous_response_id": "resp_x"},
        {"previous_response_id": None},
        {"conversation": "conv_1"},
    ],
)
def test_who_links_himself_is_left_alone(options):
    dumped = dump(*FIRST, MORE, target=OPENAI, options=options)
    assert {key: dumped[key] for key in options} == options
    assert len(dumped["input"]) == 3


def test_when_the_provider_has_forgotten_its_items_have_no_ids():
    """`previous_response_id: null` is what the fallback says: nothing that was stored can be named
    any more."""
    dumped = dump(*FIRST, MORE, target=OPENAI, options={"previous_response_id": None})
    assert dumped["input"][1] == {"role": "assistant", "content": "Hello"}


def test_append_only_a_linked_conversation_is_sent_once():
    """What the linked requests send, one after the other, is the conversation without what the
    model said itself."""
    history, sent = [SYSTEM], []
    for turn in range(4):
        history.append(Message.user(f"turn {turn}"))
        _, items = linked(*history)
        sent += items
        history.append(answer(list(history), f"resp_{turn}"))
    assert sent == [f"turn {turn}" for turn in range(4)]
