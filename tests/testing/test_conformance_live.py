"""The conformance kit with a real server, in whose place one stands that answers so, and with what
was recorded of one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import Capability, Message, Provider, ThinkingPart, ToolCallPart, testing, wires
from dragoman.errors import AuthenticationError, ModelNotFoundError, SettingsError
from dragoman.request import HttpRequest
from dragoman.testing.__main__ import main
from dragoman.testing.provider.bench import make_reply
from dragoman.testing.report import Finding, format_lines
from dragoman.transport import Recorder, Response

URL = "https://api.acme.example/v1"
ACME = Provider(
    name="acme",
    display_name="Acme",
    wire="openai_chat",
    base_url=URL,
    key_names=("ACME_API_KEY", "WILE_API_KEY"),
    chat_model="acme-large",
    capabilities=frozenset({Capability.chat, Capability.tools, Capability.thinking}),
)
CHECKS = {check.name: check for check in testing.PROVIDER_CHECKS}
FAULT = b'{"fault":{"kind":"door","text":"That key opens no door."}}'


class Listless(testing.ScriptedServer):
    """Refuses the list of its models too."""

    async def send(self, request: HttpRequest) -> Response:
        return await super().send(
            msgspec.structs.replace(request, method="POST", body={"model": "m", "messages": []})
        )


def server(
    reply: Callable[[Any], Any], kind: type[testing.ScriptedServer] = testing.ScriptedServer
) -> Any:
    return kind(wires.get("openai_chat"), reply, base_url=URL)


def answers(said: Any) -> dict[str, Any]:
    """How a check runs live with a server that always says so."""
    return {"live": True, "transport": server(lambda _: said), "api_key": "k"}


def musing(request: Any) -> testing.Answer:
    """Thinking under a name of its own."""
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "musing": "nine times seven"},
        {"content": "It is 63."},
    ]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    chunks = [
        {"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [each]}
        for each in choices
    ]
    body = (
        b"".join(b"data: %s\n\n" % msgspec.json.encode(chunk) for chunk in chunks)
        + b"data: [DONE]\n\n"
    )
    return testing.Answer(body=body, headers={"content-type": "text/event-stream"})


def recorded(folder: Path, name: str, reply: Callable[[Any], Any]) -> str:
    """Records one check of ACME → the folder, as the command takes it."""
    with suppress(testing.CheckFailed, testing.Skipped):
        CHECKS[name](ACME, transport=Recorder(server(reply), folder), api_key="k")
    return str(folder)


def chosen(*names: str, **how: Any) -> list[testing.BoundCheck]:
    return [check for check in testing.provider_checks(ACME, **how) if check.name in names]


def test_the_command_plays_what_was_recorded_to_the_providers_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(tmp_path / "right", "answers", lambda _: make_reply("Hello."))
    played = ["testing.test_conformance_live:ACME", "--only", "answers", "--recordings"]
    assert main([*played, folder]) == 0
    empty = recorded(tmp_path / "empty", "answers", lambda _: make_reply())
    assert main([*played, empty]) == 1
    assert "the answer is empty" in capsys.readouterr().out
    assert main([*played, folder, "--model", "acme-small"]) == 1
    assert "Look at: the recordings: make them with the same model" in capsys.readouterr().out


def test_recordings_may_be_played_more_than_once(tmp_path: Path) -> None:
    folder = recorded(tmp_path, "answers", lambda _: make_reply("Hello."))
    check = next(
        check for check in testing.checks(ACME, recordings=folder) if check.name == "answers"
    )
    check()
    check()
    (scripted,) = [
        each
        for each in testing.checks(ACME, recordings=folder)
        if each.name == "rate_limits_have_retry_after"
    ]
    with pytest.raises(testing.Skipped, match="runs scripted only"):
        scripted()


@pytest.mark.parametrize("subject", ["testing.test_conformance_live:ACME", "openai_chat"])
def test_a_folder_without_recordings_is_exit_code_2(
    subject: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([subject, "--recordings", str(tmp_path / "nowhere")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
    assert main([subject, "--recordings", str(tmp_path)]) == 2
    assert "the folder has no *.json" in capsys.readouterr().err
    (tmp_path / "0001.json").write_text("{}")
    assert main([subject, "--recordings", str(tmp_path)]) == 2
    assert "is no recorded exchange" in capsys.readouterr().err
    for wrong in (["--live", "--recordings"], ["--record"]):
        with pytest.raises(SystemExit, match="2"):
            main([subject, *wrong, str(tmp_path)])


def test_thinking_that_is_declared_and_not_read_is_inconclusive_and_names_the_unread_field() -> (
    None
):
    with pytest.raises(testing.Inconclusive, match=r"no thinking is read.*musing"):
        CHECKS["thinks"](ACME, live=True, transport=server(musing), api_key="k")
    CHECKS["thinks"](ACME, **answers(make_reply(ThinkingPart("Hm: 62?"), "62.")))


@pytest.mark.slow
def test_a_capability_that_nothing_shows_is_a_failure_of_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(tmp_path, "thinks", musing)
    assert main(["testing.test_conformance_live:ACME", "--recordings", folder]) == 1
    out = capsys.readouterr().out
    assert "inconclusive  acme  thinks" in out
    assert "failed        acme  thinking\n" in out
    assert (
        "acme: thinking is declared, and nothing that needs it could be seen:\n  thinks: no thinking is read"
        in out
    )
    assert (
        main(["testing.test_conformance_live:ACME", "--recordings", folder, "--only", "thinks"])
        == 0
    ), "one is not all"


def test_a_capability_that_one_check_shows_is_declared_rightly() -> None:
    def reply(request: Any) -> Any:
        done = any(message.tool_results for message in request.messages)
        return (
            make_reply("Done.")
            if done
            else make_reply(ToolCallPart("c1", request.tools[0].name, {"city": "Oslo"}))
        )

    how = {"live": True, "transport": server(reply), "api_key": "k"}
    found = list(
        testing.run_checks(chosen("tool_errors_reach_the_model", "tools_are_called", **how))
    )
    assert sorted(finding.outcome for finding in found) == ["inconclusive", "passed"]
    found = list(
        testing.run_checks(
            chosen("tool_errors_reach_the_model", "tools_are_called", **answers(make_reply("No.")))
        )
    )
    assert [(finding.check, finding.outcome) for finding in found][-1] == ("tools", "failed")


def test_typed_output_that_nothing_shows_is_a_failure_of_the_report() -> None:
    typed = msgspec.structs.replace(
        ACME, capabilities=frozenset({Capability.chat, Capability.typed_output})
    )
    names = ("answers", "types_are_filled")
    checks = [
        each
        for each in testing.provider_checks(typed, **answers(make_reply("No.")))
        if each.name in names
    ]
    assert [
        finding.check for finding in testing.run_checks(checks) if finding.outcome == "failed"
    ] == ["typed_output"]


@pytest.mark.parametrize(
    ("name", "status"), [("wrong_keys_are_refused", 401), ("unknown_models_are_refused", 404)]
)
def test_a_refusal_whose_words_are_lost_is_inconclusive(name: str, status: int) -> None:
    with pytest.raises(
        testing.Inconclusive, match=r"nothing of what the provider said.*opens no door"
    ):
        CHECKS[name](ACME, **answers(testing.Answer(status=status, body=FAULT)))


def test_a_refusal_whose_words_are_told_passes() -> None:
    CHECKS["wrong_keys_are_refused"](
        ACME, **answers(AuthenticationError("That key opens no door."))
    )
    CHECKS["unknown_models_are_refused"](
        ACME, **answers(ModelNotFoundError("There is no such model."))
    )
    for body in (b"", b'{"code":"unauthorized"}', b"<html><h1>401 Unauthorized access</h1></html>"):
        CHECKS["wrong_keys_are_refused"](ACME, **answers(testing.Answer(status=401, body=body)))


def test_a_server_that_takes_any_model_is_inconclusive() -> None:
    with pytest.raises(testing.Inconclusive):
        CHECKS["unknown_models_are_refused"](ACME, **answers(make_reply("Hello.")))


def test_a_refused_key_is_told_once_and_the_rest_is_not_run() -> None:
    refused = server(lambda _: AuthenticationError("No."), Listless)
    listing = msgspec.structs.replace(ACME, capabilities=ACME.capabilities | {Capability.models})
    found = list(
        testing.run_checks(
            testing.provider_checks(listing, live=True, transport=refused, api_key="k")
        )
    )
    assert (
        [finding.check for finding in found if finding.outcome == "failed"]
        == [found[-1].check]
        == ["lists_models"]
    )
    assert (
        "Look at: the key (ACME_API_KEY, WILE_API_KEY)\nThe rest was not run: " in found[-1].details
    )


def test_the_command_says_that_the_key_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ACME.key_names:
        monkeypatch.delenv(name, raising=False)
    assert main(["testing.test_conformance_live:ACME", "--live"]) == 1
    out = capsys.readouterr().out
    assert "Look at: the key (ACME_API_KEY, WILE_API_KEY)" in out
    assert "The rest was not run" in out
    assert " 1 failed, " in out


def test_arguments_that_a_model_invents_are_inconclusive() -> None:
    def reply(request: Any) -> Message:
        done = any(message.tool_results for message in request.messages)
        return (
            make_reply("Done.")
            if done
            else make_reply(ToolCallPart("c1", "ring_bell", {"times": 1}))
        )

    with pytest.raises(testing.Inconclusive, match="times"):
        CHECKS["tools_without_arguments_are_called"](
            ACME, live=True, transport=server(reply), api_key="k"
        )


class Transcript:
    """A wire that must be made first."""

    name = "transcript"


def test_a_class_in_place_of_an_instance_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["testing.test_conformance_live:Transcript"]) == 3
    assert "Transcript is a class: give an instance" in capsys.readouterr().err
    with pytest.raises(SettingsError, match="give an instance"):
        testing.provider_checks(Provider)


def test_an_unknown_name_is_told_the_providers_and_the_wires(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["nobody"]) == 3
    told = capsys.readouterr().err
    assert 'no provider is named "nobody"' in told
    assert "No wire has this name either; there are openai_chat, " in told


def test_the_record_is_checked_first_and_its_failure_said_first() -> None:
    assert testing.checks(ACME)[0].name == testing.PROVIDER_CHECKS[0].name == "records_are_complete"
    broken = msgspec.structs.replace(ACME, base_url=f"{URL}/")
    names = ("records_are_complete", "base_urls_are_found", "operations_are_complete")
    found: list[Finding] = list(
        testing.run_checks(each for each in testing.checks(broken) if each.name in names)
    )
    told = list(format_lines(found))
    assert told[0] == "failed        acme  records_are_complete"
    assert told[told.index("") + 1].startswith("acme, records_are_complete: ")
