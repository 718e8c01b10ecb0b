"""The pytest plugin, run on tests of a project of its own, with a model server on this machine in
the provider's place."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from dragoman import Message
from dragoman.errors import RateLimitError
from dragoman.testing.network import folder_name
from dragoman.transport import AiohttpTransport
from support.llm_server import Llm

pytest_plugins = ["pytester"]

APP = """
from dragoman import Agent
from dragoman.errors import DragomanError

agent = Agent("openai-compatible:tiny", api_key="sk-secret-4711")

def ask(prompt):
    return agent.send_sync(prompt).output

def ask_or_give_up(prompt):
    try:
        return ask(prompt)
    except DragomanError:
        return "sorry"
"""

ANTHROPIC = APP.replace("openai-compatible:tiny", "anthropic")
"""The same with a provider that must have a key."""


class Project:
    """A project whose application asks a model by an agent that stands in a module."""

    def __init__(self, pytester: pytest.Pytester, llm: Llm) -> None:
        self.pytester, self.llm = pytester, llm
        pytester.makepyfile(app=APP)
        pytester.makeini(
            "[pytest]\naddopts = -p dragoman.testing.pytest_plugin -p no:cacheprovider -p no:xdist\n"
        )

    @property
    def recorded(self) -> list[Path]:
        """The recorded files, from the folder of the tests on."""
        return sorted(
            path.relative_to(self.pytester.path) for path in self.pytester.path.rglob("*.json")
        )

    def run(
        self, test: str, *options: str, passed: int = 1, failed: int = 0, errors: int = 0
    ) -> str:
        """Runs a file of tests → what pytest wrote."""
        header = "import pytest\nfrom app import agent, ask, ask_or_give_up\n"
        self.pytester.makepyfile(test_app=header + test)
        result = self.pytester.runpytest_inprocess(*options)
        result.assert_outcomes(passed=passed, failed=failed, errors=errors)
        return result.stdout.str()


@pytest.fixture
def project(pytester: pytest.Pytester, llm: Llm) -> Project:
    return Project(pytester, llm)


RECORDED = """
@pytest.mark.dragoman_record
def test_asks():
    assert ask("one") == "You said: one"
    assert ask("two") == "You said: two"
"""


@pytest.mark.slow
def test_nothing_leaves_a_test_and_the_error_says_what_to_do(project: Project) -> None:
    out = project.run("def test_asks(): ask('Hi')", passed=0, failed=1)
    assert not project.llm.requests
    for advice in (
        "a test may not send POST http://127.0.0.1",
        "ScriptedModel",
        "dragoman_record",
        '("loopback")',
    ):
        assert advice in out


def test_a_refused_request_fails_the_test_also_where_the_application_passes_over_it(
    project: Project,
) -> None:
    out = project.run("def test_asks(): assert ask_or_give_up('Hi') == 'sorry'", passed=0, failed=1)
    assert "a test may not send" in out


@pytest.mark.parametrize("hosts", ["", "('loopback')", "('example.org', '127.0.0.1')"])
@pytest.mark.slow
def test_hosts_may_be_let_through(project: Project, hosts: str) -> None:
    project.run(
        f"@pytest.mark.dragoman_network{hosts}\ndef test_asks(): assert ask('Hi') == 'You said: Hi'"
    )
    project.run(
        "@pytest.mark.dragoman_network('example.org')\ndef test_asks(): ask('Hi')",
        passed=0,
        failed=1,
    )
    assert len(project.llm.requests) == 1


def test_the_configuration_may_let_hosts_through(project: Project) -> None:
    project.run("def test_asks(): ask('Hi')", "-o", "dragoman_network=loopback")


def test_the_transport_is_itself_again_afterwards(project: Project) -> None:
    before = AiohttpTransport.send
    project.run("def test_asks(): pass")
    assert AiohttpTransport.send is before


def test_exchanges_are_recorded_once_and_replayed_without_a_server_and_a_key(
    project: Project,
) -> None:
    project.pytester.makepyfile(app=ANTHROPIC)
    project.run(RECORDED, "--dragoman-record=once")
    assert [str(path) for path in project.recorded] == [
        "recordings/test_app/test_asks/0001.json",
        "recordings/test_app/test_asks/0002.json",
    ]
    first = (project.pytester.path / project.recorded[0]).read_text()
    assert "4711" not in first
    project.llm.server.shutdown()
    project.llm.server.server_close()
    project.pytester.makepyfile(app=ANTHROPIC.replace(', api_key="sk-secret-4711"', ""))
    project.run(RECORDED)
    project.run(RECORDED, "--dragoman-record=once")
    assert len(project.llm.requests) == 2


@pytest.mark.slow
def test_what_is_not_recorded_is_told_with_what_to_do(project: Project) -> None:
    out = project.run(RECORDED, passed=0, failed=1)
    assert (
        "nothing is recorded for POST http://127.0.0.1" in out
        and "--dragoman-record=once, with a key" in out
    )
    assert not project.llm.requests


@pytest.mark.slow
def test_a_request_that_differs_is_shown_beside_the_nearest_recorded_one(project: Project) -> None:
    project.run(RECORDED, "--dragoman-record=once")
    out = project.run(RECORDED.replace('ask("two")', 'ask("three")'), passed=0, failed=1)
    assert '-      "content": "two"' in out.replace(
        "E ", ""
    ) and '+      "content": "three"' in out.replace("E ", "")
    assert '"content": "one"' not in out
    out = project.run(RECORDED + '    ask("one")\n', passed=0, failed=1)
    assert "is sent more often than it was recorded" in out


@pytest.mark.slow
def test_all_records_anew_and_a_test_that_fails_changes_nothing(project: Project) -> None:
    project.run(RECORDED, "--dragoman-record=once")
    before = [(project.pytester.path / path).read_text() for path in project.recorded]
    project.llm.reply = lambda request: Message.model("Something else.")
    project.run(RECORDED, "--dragoman-record=all", passed=0, failed=1)
    assert [(project.pytester.path / path).read_text() for path in project.recorded] == before
    other = (
        "@pytest.mark.dragoman_record\ndef test_asks(): assert ask('one') == 'Something else.'\n"
    )
    project.run(other, "--dragoman-record=all")
    assert len(project.recorded) == 1
    assert not list(project.pytester.path.rglob("*.new"))
    project.run(other)


@pytest.mark.slow
def test_attempts_that_were_made_again_are_not_kept_and_a_last_failure_is_not_tried_again(
    project: Project,
) -> None:
    def twice_too_fast(request: object) -> Message | RateLimitError:
        project.llm.reply = lambda request: Message.model("At last.")
        return RateLimitError("slower", retry_after=0.01)

    project.llm.reply = twice_too_fast
    project.run(
        "@pytest.mark.dragoman_record\ndef test_asks(): ask('Hi')\n", "--dragoman-record=once"
    )
    assert len(project.llm.requests) == 2 and len(project.recorded) == 1
    project.llm.reply = lambda request: RateLimitError("slower", retry_after=0.01)
    refused = "@pytest.mark.dragoman_record\ndef test_gives_up(): assert ask_or_give_up('Hi') == 'sorry'\n"
    project.run(refused, "--dragoman-record=once")
    project.run(refused)
    assert len(project.llm.requests) == 6 and len(project.recorded) == 2


@pytest.mark.parametrize("option", ["once", "all"])
@pytest.mark.slow
def test_tests_may_share_a_folder(project: Project, option: str) -> None:
    test = """
@pytest.mark.dragoman_record("tapes")
@pytest.mark.parametrize("prompt", ["a", "b"])
def test_asks(prompt): assert ask(prompt) == f"You said: {prompt}"
"""
    for _ in range(2):
        project.run(test, f"--dragoman-record={option}", passed=2)
        assert [str(path) for path in project.recorded] == ["tapes/0001.json", "tapes/0002.json"]
    project.run(test, passed=2)


def test_what_differs_each_time_may_be_left_out(project: Project) -> None:
    project.pytester.makeconftest(
        "def asked(body): return {**body, 'messages': len(body['messages'])}"
    )
    test = """
from conftest import asked
@pytest.mark.dragoman_record("tapes/clock", normalize=asked)
def test_asks(): ask("It is NOON.")
"""
    project.run(test, "--dragoman-record=once")
    assert [str(path) for path in project.recorded] == ["tapes/clock/0001.json"]
    project.run(test.replace("NOON", "MIDNIGHT"))
    assert len(project.llm.requests) == 1


def test_names_of_tests_are_names_of_folders() -> None:
    assert folder_name("test_x[a-1]") == "test_x[a-1]"
    assert folder_name("TestX.test_y") == "TestX.test_y"
    assert folder_name("test_x[a/b]") != folder_name("test_x[a:b]")
    assert len(folder_name("x" * 500)) < 100


def test_a_scripted_model_takes_the_place_of_the_applications_own(project: Project) -> None:
    project.pytester.makepyfile(
        app=APP.replace(', api_key="sk-secret-4711"', "").replace(
            "openai-compatible:tiny", "openai"
        )
    )
    project.run(
        """
def test_asks(scripted_model):
    model = scripted_model.replace("openai:gpt-4o", ["Hello."])
    assert ask("Hi") == "Hello."
    assert model.requests[0].model == "gpt-4o"

def test_asks_another(scripted_model):
    model = scripted_model(["Hello."], wire="anthropic")
    assert agent.send_sync("Hi", model=model).output == "Hello."
""",
        passed=2,
    )


def test_scripted_models_may_stand_at_one_place(project: Project) -> None:
    project.run("""
def test_asks(scripted_model):
    places = ["openai:gpt-4o", "openai:gpt-5", "openai-responses:gpt-4o", "google:gemini-1", "google:gemini-2"]
    for place in places:
        scripted_model.replace(place, place)
    for place in places[::-1]:
        assert agent.send_sync("Hi", model=place).output == place
""")


def test_a_script_that_is_not_at_its_end_is_an_error_of_a_test_that_passed(
    project: Project,
) -> None:
    out = project.run(
        """
def test_asks(scripted_model):
    scripted_model(["Never asked for."])
def test_fails(scripted_model):
    scripted_model(["Never asked for."])
    assert 0
""",
        passed=1,
        failed=1,
        errors=1,
    )
    assert "1 answers were not asked for" in out


def test_the_plugin_is_there_for_those_who_ask_for_it_alone() -> None:
    assert not [
        entry for entry in entry_points(group="pytest11") if entry.value.startswith("dragoman")
    ]


def test_a_recording_is_what_the_player_plays(project: Project) -> None:
    project.run(RECORDED, "--dragoman-record=once")
    record = json.loads((project.pytester.path / project.recorded[0]).read_text())
    assert record["request"]["body"]["messages"][-1]["content"] == "one"
    assert "authorization" not in record["request"]["headers"]
