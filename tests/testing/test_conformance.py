"""The conformance kit, applied to every wire and every provider of dragoman's own, and to a
provider of somebody else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import Capability, Message, Provider, ThinkingPart, testing, wires
from dragoman.errors import SettingsError
from dragoman.providers import REGISTRY
from dragoman.providers.registry import BUILT_IN
from dragoman.testing.__main__ import main
from dragoman.testing.report import format_table
from dragoman.testing.wire import recordings as kit_recordings
from dragoman.transport import Player, Recorder
from support.traffic import FOLDER

SIGNED = {
    "openai_responses": {
        "id": "rs_1",
        "encrypted_content": "gAAAAABhbGwgb2YgaXQsIGJ5dGUgYnkgYnl0ZQ==",
    },
    "google": {"thoughtSignature": "CiQB0e2Kb2ludGVyIGJ5dGUgYnkgYnl0ZQ=="},
}
"""How thinking is signed where the kit's own piece would not do."""
ACME = Provider(
    name="acme",
    display_name="Acme",
    wire="openai_chat",
    base_url="https://api.acme.example/v1",
    key_names=("ACME_API_KEY",),
    chat_model="acme-large",
    capabilities=frozenset({Capability.chat, Capability.tools, Capability.models}),
)


def signed(wire: str) -> ThinkingPart | None:
    return ThinkingPart("Let me look.", {wire: SIGNED[wire]}) if wire in SIGNED else None


def of_wires() -> list[testing.BoundCheck]:
    return [
        check
        for name in wires.names("model")
        for check in testing.wire_checks(name, signed=signed(name))
    ]


def of_providers() -> list[testing.BoundCheck]:
    return [
        check
        for provider in map(REGISTRY.get, BUILT_IN)
        if wires.client(provider.wire) is None
        for check in testing.provider_checks(provider, signed=signed(provider.wire))
    ]


@pytest.mark.parametrize("check", of_wires(), ids=str)
@pytest.mark.slow
def test_every_wire_does_wholly_what_it_does(check: testing.BoundCheck) -> None:
    check()


def test_agents_are_no_providers_of_models() -> None:
    with pytest.raises(SettingsError, match="agents"):
        testing.provider_checks("a2a")


@pytest.mark.parametrize("check", of_providers(), ids=str)
def test_every_provider_does_what_its_record_says(check: testing.BoundCheck) -> None:
    check()


@pytest.mark.parametrize("check", testing.checks(ACME), ids=str)
def test_so_does_one_of_somebody_elses(check: testing.BoundCheck) -> None:
    check()


@pytest.mark.parametrize(
    ("wire", "folder"),
    [
        ("openai_chat", "openai_chat"), ("openai_chat", "openai_compatible"), ("openai_chat", "openrouter"),
        ("openai_chat", "together"), ("openai_chat", "ollama_openai"), ("openai_responses", "openai_responses"),
        ("anthropic", "anthropic"), ("google", "google"), ("mistral", "mistral"), ("ollama", "ollama_native"),
        ("cohere", "cohere"), ("google_interactions", "google_interactions"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_every_wire_reads_what_real_servers_sent(wire: str, folder: str) -> None:
    if not FOLDER.is_dir():
        pytest.skip(f"recorded traffic is absent: {FOLDER} (set DRAGOMAN_TRAFFIC)")
    kit_recordings.recordings_of_answers_are_read(wire, recordings=FOLDER / folder)
    kit_recordings.recordings_of_requests_return(wire, recordings=FOLDER / folder)


def test_each_check_says_what_it_demands_and_where_to_look() -> None:
    checks = [*testing.WIRE_CHECKS, *testing.PROVIDER_CHECKS]
    assert len({check.name for check in checks}) == len(checks) > 80
    for check in checks:
        assert len(check.rule) > 40, check.name
        assert check.look, check.name


@pytest.mark.slow
def test_what_a_record_does_not_declare_is_skipped_with_the_reason() -> None:
    skipped: dict[str, str] = {}
    for check in testing.provider_checks(ACME):
        try:
            check()
        except testing.Skipped as why:
            skipped[check.name] = str(why)
    assert skipped["images_arrive"] == "Acme does not declare the capability vision"
    assert "tools_are_called" not in skipped


@pytest.mark.anyio
async def test_a_check_also_works_inside_an_event_loop() -> None:
    testing.provider_checks(ACME)[0].check(ACME)
    next(check for check in testing.provider_checks(ACME) if check.name == "answers")()


def test_a_live_run_is_recorded_and_played_again(tmp_path: Any) -> None:
    """Checks that can run live do so over any transport; what one of a recorder's has written a
    player answers from."""
    live = [
        check
        for check in testing.PROVIDER_CHECKS
        if check.live and check.name in ("answers", "streams_text")
    ]
    wire = wires.get(ACME.wire)

    def reply(request: Any) -> Any:
        return Message.model("One two three.") if request.stream else Message.model("No.")

    server = testing.ScriptedServer(wire, reply, base_url=str(ACME.base_url))
    for check in live:
        check(ACME, transport=Recorder(server, tmp_path), api_key="k")
    assert len(server.sent) == len(live) == len(list(tmp_path.glob("*.json")))
    for check in live:
        check(ACME, transport=Player.load(tmp_path), api_key="k")
    played = {check.name: check for check in testing.wire_checks(ACME.wire, recordings=tmp_path)}
    played["recordings_of_answers_are_read"]()
    played["recordings_of_requests_return"]()
    with pytest.raises(testing.Skipped, match="runs scripted only"):
        next(
            check
            for check in testing.PROVIDER_CHECKS
            if check.name == "rate_limits_have_retry_after"
        )(ACME, transport=Player([]))


def test_the_command_prints_what_came_of_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["openai", "--only", "answers", "--only", "thinks"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "passed        openai  answers"
    assert (
        out[1] == "skipped       openai  thinks  (OpenAI does not declare the capability thinking)"
    )
    assert out[-1] == "1 passed, 0 failed, 1 skipped, 0 inconclusive"
    assert (
        main(["testing.test_conformance:ACME", "--only", "operations_are_complete", "--json"]) == 0
    )
    finding = msgspec.json.decode(capsys.readouterr().out)
    assert (finding["subject"], finding["outcome"]) == ("wire openai_chat", "passed")
    assert main(["cohere", "--only", "streams_return", "--base-url", "http://127.0.0.1:9"]) == 0
    assert main(["openai_chat", "--only", "streams_return"]) == 0


def test_the_command_says_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["testing.test_conformance:BROKEN", "--only", "records_are_complete"]) == 1
    out = capsys.readouterr().out
    assert "failed        broken  records_are_complete" in out
    assert "`base_url` ends with a slash" in out
    assert "0 passed, 1 failed, 0 skipped, 0 inconclusive" in out


@pytest.mark.parametrize(
    "arguments", [["nobody"], ["testing.test_conformance:NOBODY"], ["openai", "--only", "nonsense"]]
)
def test_the_command_knows_what_there_is_not(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 3
    assert capsys.readouterr().err.startswith("error: ")


BROKEN = msgspec.structs.replace(ACME, name="broken", base_url="https://api.acme.example/v1/")


def test_all_built_in_records_are_checked() -> None:
    assert {provider.name for provider in REGISTRY.providers()} >= set(BUILT_IN)
    assert {check.subject.name for check in of_providers()} == set(BUILT_IN) - {
        "a2a",
        "ag-ui",
    }  # agents


def test_the_documented_behaviours_are_the_checked_ones() -> None:
    """Written by `python -m dragoman.testing --list`."""
    text = (Path(__file__).parents[2] / "docs" / "testing.md").read_text("utf-8")
    assert format_table(testing.PROVIDER_CHECKS) in text
    assert format_table(testing.WIRE_CHECKS) in text
    assert format_table(testing.STORE_CHECKS) in text
    assert format_table(testing.ENGINE_CHECKS) in text


def test_the_list_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert f"| `{testing.WIRE_CHECKS[0].name}` |" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main([])
