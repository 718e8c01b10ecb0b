"""`plan`: what a conversation would lose at a target, before it is sent; positions are those of the
conversation as the user has it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from dragoman import formats, wires
from dragoman.errors import SettingsError
from dragoman.history import MessageList, Plan, plan
from dragoman.loss import Loss, Lost, refusal_error
from dragoman.message import (
    DataPart,
    MarkPart,
    Message,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.providers import REGISTRY, Provider
from dragoman.repair import repair, repair_with_losses, trace_repair
from dragoman.request import ModelRequest
from support.histories import NEUTRAL
from support.switching import PROVIDERS

PNG = b"\x89PNG\r\n\x1a\n"
WAITS = Message.user(MarkPart("interrupt", {"dragoman": {"id": "i1"}}))
AUDIO = DataPart(b"RIFF", "audio/wav", "a.wav")


def where(losses: tuple[Loss, ...]) -> list[tuple[int | None, int | None, str]]:
    return [(loss.message, loss.part, str(loss.what)) for loss in losses]


def test_a_plan_says_what_where_and_why() -> None:
    messages = [
        Message.user("Listen.", AUDIO),
        Message.model(ThinkingPart("Hm."), "Yes.").replace(origin=Origin("mistral")),
        Message.user("And?"),
    ]
    found = plan(messages, "anthropic:claude-sonnet-4-6")
    assert where(found.losses) == [(0, 1, "data"), (1, 0, "thinking")]
    assert found.losses[1].why == "it comes from mistral, which anthropic does not read"
    assert (found.target, found.repairs, found.ok) == ("anthropic:claude-sonnet-4-6", (), False)
    assert found.tokens > 0
    assert MessageList(messages).plan("anthropic:claude-sonnet-4-6").losses == found.losses


def test_positions_do_not_see_marks_waits_system_heads_or_repairs() -> None:
    mark = MarkPart("step", {"elsewhere": {}})
    talk = [
        Message.system("Be brief."),
        Message.system("And kind."),
        Message.user("?"),
        Message.model(
            mark, "I look.", mark, ToolCallPart("c1", "look", {}), ToolCallPart("c2", "look", {})
        ),
        WAITS,
        Message.user(
            mark,
            ToolResultPart("c9", "look", 1),
            "So?",
            ToolResultPart("c2", "look", "dark", is_error=True),
        ),
        WAITS,
        Message.user("Listen.", mark, AUDIO),
    ]
    found = plan(talk, "cohere")
    assert where(found.repairs) == [(3, 3, "tool result"), (5, 1, "tool result"), (5, 3, "order")]
    assert where(found.losses) == [(5, 3, "is_error"), (7, 2, "data")]


def test_positions_do_not_see_what_a_turn_joins() -> None:
    """Formats of user interfaces show results of several messages in one."""
    call = ToolCallPart("c1", "look", {})
    twice = [
        Message.user("?"),
        Message.model(call),
        *(Message.user(ToolResultPart("c1", "look", n)) for n in (1, 2)),
    ]
    said = Message.user(
        ToolResultPart("c1", "look", 1), "So?", ProviderPart("block", {"elsewhere": {}})
    )
    assert where(plan(twice, "ai_sdk_ui").losses) == [(3, 0, "tool result")]
    assert where(plan([*twice[:2], said], "ai_sdk_ui").losses) == [(2, 2, "provider")]


def test_what_repair_made_up_is_no_loss_of_its_own() -> None:
    """The error that stands in for a result is marked failed; that the target has no such mark is
    nothing that was lost."""
    found = plan(NEUTRAL["orphaned call"], "ollama")
    assert where(found.repairs) == [(1, 1, "tool result"), (1, 2, "tool result")]
    assert found.losses == ()
    assert not found.ok


def test_results_that_repair_moves_are_named_and_minor() -> None:
    found = plan(NEUTRAL["parallel calls"], "anthropic")
    assert (where(found.repairs), found.ok) == ([(2, 1, "order"), (2, 2, "order")], True)
    late = plan(NEUTRAL["late result"], "anthropic")
    assert (where(late.repairs), late.ok) == ([(3, 0, "order")], True)


def test_a_trace_knows_each_piece_that_repair_moved() -> None:
    talk = [
        Message.user("?"),
        Message.model(ToolCallPart("a", "f"), ToolCallPart("b", "f")),
        Message.user("First."),
        Message.user(ToolResultPart("b", "f", 2), "then", ToolResultPart("a", "f", 1)),
    ]
    mended, losses, sources = trace_repair(talk)
    assert mended == repair(talk)
    assert losses == []
    assert sources is not None
    for message, source in zip(mended, sources, strict=True):
        assert len(message.content) == len(source.parts)
        for piece, stood in zip(message.content, source.parts, strict=True):
            assert stood is not None
            assert talk[stood[0]].content[stood[1]] == piece
    assert trace_repair(mended)[2] is None


def has_plans(targets: Iterable[str]) -> None:
    for target in targets:
        for messages in NEUTRAL.values():
            found = plan(messages, target)
            for loss in (*found.losses, *found.repairs):
                assert loss.message is None or 0 <= loss.message < len(messages)
                assert loss.part is None or loss.part < len(messages[loss.message or 0].content)
                assert isinstance(loss.what, Lost)
                assert loss.why


def test_every_neutral_history_has_a_plan_at_every_api_and_format() -> None:
    has_plans([*(provider.name for provider in PROVIDERS.values()), *formats.names()])


@pytest.mark.slow
def test_every_neutral_history_has_a_plan_at_every_provider() -> None:
    has_plans(provider.name for provider in REGISTRY.providers())


@pytest.mark.parametrize("wire", PROVIDERS)
def test_ok_is_what_on_loss_error_lets_pass(wire: str) -> None:
    """Of histories without signatures of others, which a request does not look for."""
    provider = PROVIDERS[wire]
    target = Origin(provider.name, str(provider.base_url), provider.chat_model)
    for name, messages in NEUTRAL.items():
        mended, losses = repair_with_losses(messages)
        request = ModelRequest(provider.chat_model or "", tuple(mended))
        wires.get(wire).dump_request(request, target=target, quirks=provider.quirks, losses=losses)
        assert plan(messages, provider).ok is (refusal_error(losses) is None), name


def test_a_target_is_a_model_a_record_or_a_format() -> None:
    talk = [
        Message.user("Hi"),
        Message.model(ThinkingPart("Hm."), "Hi").replace(origin=Origin("mistral")),
    ]
    assert plan(talk, "openai_chat").losses == ()
    assert [loss.what for loss in plan(talk, "openai").losses] == ["thinking"]
    assert plan(talk, "openai").target == "openai:gpt-4o"
    assert [loss.why for loss in plan(talk, "anthropic").losses] == [
        "it comes from mistral, which anthropic does not read"
    ]
    own = msgspec.structs.replace(
        PROVIDERS["openai_chat"], name="my-own", aliases=(), chat_model="m"
    )
    assert isinstance(own, Provider)
    assert plan(talk, own).target == "my-own:m"
    assert plan(talk, "gemini/gemini-2.5-flash").target == "google:gemini-2.5-flash"
    for wrong in ("nothing", "nothing:model", "", "openai_chat:gpt"):
        with pytest.raises(SettingsError):
            plan(talk, wrong)
    with pytest.raises(SettingsError, match="openai_chat, "):
        plan(talk, "opnai_chat")


def test_the_base_url_that_the_environment_names_is_the_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A signature is read where it was made, and at another address it is not."""
    origin = Origin("anthropic", "https://api.anthropic.com/v1", "claude-sonnet-4-6")
    signed = Message.model(
        ThinkingPart("Hm.", {"anthropic": {"signature": "c2ln"}}), "So."
    ).replace(origin=origin)
    talk = [Message.user("?"), signed, Message.user("So?")]
    assert plan(talk, "anthropic").losses == ()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://proxy.test")
    assert [loss.what for loss in plan(talk, "anthropic").losses] == ["thinking"]


def test_the_model_counts_not_its_provider_alone() -> None:
    result = ToolResultPart("c1", "look", (TextPart("a"), DataPart(PNG, "image/png")))
    talk = [Message.user("?"), Message.model(ToolCallPart("c1", "look", {})), Message.user(result)]
    assert plan(talk, "google:gemini-3-pro-preview").losses == ()
    assert [loss.what for loss in plan(talk, "google:gemini-2.5-flash").losses] == ["media"]


def test_fields_of_one_format_are_minor_and_named() -> None:
    image = DataPart(PNG, "image/png", native={"openai_chat": {"image_url": {"detail": "low"}}})
    inside = ToolResultPart("c1", "look", (image,))
    talk = [
        Message.user("See", image).replace(native={"openai_chat": {"name": "ann"}}),
        Message.model(ToolCallPart("c1", "look", {}, native={"openai_chat": {"index": 1}})),
        Message.user(inside),
    ]
    found = plan(talk, "anthropic")
    assert [(loss.message, loss.part, loss.what, loss.which) for loss in found.losses] == [
        (0, None, "field", "name"),
        (0, 1, "field", "image_url.detail"),
        (2, 0, "field", "image_url.detail"),
    ]
    assert found.ok
    assert plan(talk[:1], "openai").losses == ()


def test_the_usual_value_of_a_field_that_is_written_anyway_is_no_loss() -> None:
    def image(detail: str) -> Message:
        return Message.user(
            DataPart(PNG, "image/png", native={"openai_responses": {"detail": detail}})
        )

    for details in (("auto", "low"), ("low", "auto")):
        talk = [image(detail) for detail in details]
        assert plan(talk, "openai-responses").losses == ()
        assert len(plan(talk, "openai").losses) == 2


def test_nothing_is_said_of_the_fields_of_what_is_not_sent_at_all() -> None:
    signed = ThinkingPart("Hm.", {"anthropic": {"signature": "c2ln"}})
    clip = DataPart(b"ftyp", "video/mp4", native={"google": {"videoMetadata": {"fps": 1}}})
    talk = [Message.user(clip), Message.model(signed, "So."), Message.user("?")]
    assert where(plan(talk, "openai").losses) == [(0, 0, "data"), (1, 0, "thinking")]
    assert where(plan(talk, "google").losses) == [(1, 0, "thinking")]


def test_own_fields_that_go_to_nobody_else_are_lost_where_the_message_is_not_read() -> None:
    """A block's own fields are left out of what another vendor of the same API gets, and of what
    comes after a change."""
    text = TextPart(
        "A.", {"anthropic": {"citations": [{"type": "char_location", "cited_text": "A"}]}}
    )
    talk = [
        Message.user("?"),
        Message.model(text).replace(origin=Origin("vendor")),
        Message.user("So?"),
    ]
    assert [(loss.what, loss.which) for loss in plan(talk, "anthropic").losses] == [
        ("field", "citations")
    ]
    own = [talk[0], talk[1].replace(origin=Origin("anthropic")), talk[2]]
    assert plan(own, "anthropic").losses == ()


def test_own_fields_are_lost_where_what_stood_before_has_changed() -> None:
    text = TextPart(
        "A.", {"anthropic": {"citations": [{"type": "char_location", "cited_text": "A"}]}}
    )
    origin = Origin("anthropic", prefix="2:anthropic:00", binds="messages")
    talk = [Message.user("?"), Message.model(text).replace(origin=origin), Message.user("So?")]
    assert [(loss.which, loss.why) for loss in plan(talk, "anthropic").losses] == [
        ("citations", "what stood before it has changed")
    ]


def test_who_reads_the_signatures_of_others_loses_none() -> None:
    call = ToolCallPart("c1", "look", {}, native={"google": {"thoughtSignature": "c2ln"}})
    asked = Message.model(call).replace(origin=Origin("google"))
    talk = [Message.user("?"), asked, Message.user(ToolResultPart("c1", "look", 1))]
    reading = msgspec.structs.replace(PROVIDERS["google"], name="mine", aliases=())
    assert where(plan(talk, reading).losses) == [(1, 0, "signature")]
    quirks = msgspec.structs.replace(
        reading.quirks or wires.get("google").Quirks(), reads=("google",)
    )  # type: ignore[attr-defined]
    assert plan(talk, msgspec.structs.replace(reading, quirks=quirks)).losses == ()


def test_notes_and_what_says_nothing_are_no_fields() -> None:
    native = {
        "openai_chat": {"name": None, "audio": {}},
        "openai_chat:notes": {"spelling": {"role": "developer"}},
    }
    talk = [
        Message.user(TextPart("a", {"openai_chat:notes": {"spelling": {"a": 1}}})).replace(
            native=native
        )
    ]
    assert plan(talk, "google").losses == ()


def test_a_loss_is_listed_once_and_a_message_that_repair_filled_is_the_users() -> None:
    heard = ToolResultPart("c1", "hear", (AUDIO, AUDIO))
    talk = [
        Message.user("?"),
        Message.model(ToolCallPart("c1", "hear", {}), ToolCallPart("c2", "hear", {})),
        Message.user(heard, "So?").replace(native={"openai_chat": {"name": "ann"}}),
    ]
    found = plan(talk, "anthropic")
    assert where(found.losses) == [(2, None, "field"), (2, 0, "data")]
    assert where(found.repairs) == [(1, 1, "tool result")]


def test_formats_that_are_no_models_keep_open_calls() -> None:
    open_call = [Message.user("?"), Message.model(ToolCallPart("c1", "look", {}))]
    for name in formats.names():
        assert bool(plan(open_call, formats.get(name)).repairs) is (
            name in (*wires.names("model"), "ai_sdk_model")
        ), name


def test_a_format_may_be_given_itself_where_a_provider_has_its_name() -> None:
    signed = ThinkingPart("Hm.", {"anthropic": {"signature": "c2ln"}})
    talk = [
        Message.user("?"),
        Message.model(signed, "So.").replace(origin=Origin("vendor")),
        Message.user("So?"),
    ]
    assert [loss.what for loss in plan(talk, "anthropic").losses] == ["thinking"]
    assert plan(talk, formats.get("anthropic")).losses == ()


def test_a_signature_of_what_is_sent_is_a_loss() -> None:
    call = ToolCallPart("c1", "look", {}, native={"google": {"thoughtSignature": "c2ln"}})
    talk = [
        Message.user("?"),
        Message.model(call).replace(origin=Origin("google")),
        Message.user(ToolResultPart("c1", "look", 1)),
    ]
    assert where(plan(talk, "mistral").losses) == [(1, 0, "signature")]
    assert plan(talk, "google").losses == ()
    changed = talk[1].replace(origin=Origin("google", prefix="2:google:00", binds="messages"))
    assert where(plan([talk[0], changed, talk[2]], "google").losses) == [(1, 0, "signature")]


def test_a_kind_of_field_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it comes: three dumps of one message, beside that of the conversation."""
    from dragoman.wires import openai_chat

    dumped: list[int] = []
    dump = openai_chat.dump_request

    def counted(request: Any, **how: Any) -> Any:
        dumped.append(len(request.messages))
        return dump(request, **how)

    monkeypatch.setattr(openai_chat, "dump_request", counted)
    cited = TextPart("A.", {"anthropic": {"citations": [{"cited_text": "A"}]}})
    talk = [message for _ in range(50) for message in (Message.user("?"), Message.model(cited))]
    assert len(plan(talk, "openai").losses) == 50
    assert dumped == [100, 1, 1, 1]


def test_for_people() -> None:
    talk = [
        *(Message.user(AUDIO) for _ in range(12)),
        Message.model(ThinkingPart("Hm."), ToolCallPart("c1", "look", {})).replace(
            origin=Origin("mistral")
        ),
        Message.user(DataPart(PNG, "image/png", "a.png")),
    ]
    assert str(plan(talk, "anthropic:claude-sonnet-4-6")).splitlines()[1:] == [
        "lost or changed:",
        "  12 × data audio/wav a.wav in messages 0, 1, 2, 3, 4, 5, 6, 7, …: the API takes no audio/wav",
        "  thinking in message 12: it comes from mistral, which anthropic does not read",
        "repaired:",
        "  tool result in message 12: it never came; an error stands in for it",
        "minor:",
        "  name in message 13: the API knows no name of such a file, a.png",
    ]
    assert str(Plan("dragoman", tokens=1234)) == "dragoman: nothing is lost; about 1,234 tokens"
    first = str(plan(talk, "anthropic:claude-sonnet-4-6")).splitlines()[0]
    assert first.startswith(
        "anthropic:claude-sonnet-4-6: 13 lost or changed, 1 repaired, 1 minor; about "
    )


def test_a_plan_is_a_value_for_json() -> None:
    found = json.loads(msgspec.json.encode(plan([Message.user(AUDIO)], "anthropic")))
    assert found["losses"][0]["what"] == "data"
    assert found["repairs"] == []
