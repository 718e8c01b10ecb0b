"""What a run waits for, asked on a terminal (issue 9): what is typed, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Interrupt, Resume, ToolCallPart, tool
from dragoman.cli.ask_user import Terminal, ask_all
from dragoman.errors import ResumeError
from dragoman.pending_text import summarize
from support.model import agent, call, says

pytestmark = pytest.mark.anyio

CALL = ToolCallPart("c1", "transfer", {"account": "Ada", "cents": 100})
APPROVAL = Interrupt("c1", "approval", CALL, editable=True)


class Person:
    """Types these lines, and sees what is shown. Answers that `wrong` names do not fit."""

    def __init__(self, *lines: str, wrong: Callable[[Any], str | None] = lambda _: None) -> None:
        self.lines = list(lines)
        self.prompts: list[tuple[str, str]] = []
        self.shown: list[str] = []
        self.wrong = wrong

    async def ask(
        self, *pending: Interrupt, check: Callable[[Resume], object] | None = None
    ) -> list[Resume]:
        answers = await ask_all(
            pending, Terminal(self._read, self.shown.append, check or self._check)
        )
        assert not self.lines
        return answers

    async def _read(self, before: str, text: str) -> str:
        self.prompts.append((before, text))
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)

    def _check(self, resume: Resume) -> None:
        if (wrong := self.wrong(resume.payload)) is not None:
            raise ResumeError(wrong)


@pytest.mark.parametrize(
    ("line", "payload"),
    [
        ("y", {"approved": True}),
        (" YES ", {"approved": True}),
        ("n", {"approved": False}),
        ("no", {"approved": False}),
        ("n too much", {"approved": False, "reason": "too much"}),
        ("no, not today", {"approved": False, "reason": "not today"}),
    ],
)
async def test_an_approval_takes_yes_or_no_and_a_reason(line: str, payload: Any) -> None:
    person = Person(line)
    assert [resume.payload for resume in await person.ask(APPROVAL)] == [payload]
    assert person.shown == ['[waits for approval]\ntransfer {"account": "Ada", "cents": 100}']


async def test_what_is_no_verdict_is_asked_again_and_never_taken_for_one() -> None:
    person = Person("", "yep", "nothing", "edit", "n")
    fixed = msgspec.structs.replace(APPROVAL, editable=False)
    assert [resume.payload for resume in await person.ask(fixed)] == [{"approved": False}]
    assert person.shown[1:] == ["error: answer with y/n; behind n there may be a reason"] * 4
    assert {before for before, _ in person.prompts} == {"run it? y/n> "}


async def test_edited_arguments_are_asked_for_until_they_fit() -> None:
    """What was typed stands in the line again."""
    typed = [
        '{"account": ',
        "[1]",
        '{"account": "Bob", "cents": "all"}',
        '{"account": "Bob", "cents": 5}',
    ]
    person = Person(
        "edit",
        *typed,
        wrong=lambda payload: (
            "cents: no number" if payload["arguments"]["cents"] == "all" else None
        ),
    )
    (resume,) = await person.ask(APPROVAL)
    assert resume.payload == {"approved": True, "arguments": {"account": "Bob", "cents": 5}}
    first = '{"account": "Ada", "cents": 100}'
    assert [text for _, text in person.prompts] == ["", first, *typed[:3]]
    no_json, no_object, no_fit = person.shown[1:]
    assert no_json.startswith("error: that is not JSON (")
    assert (no_object, no_fit) == ("error: that is not a JSON object", "error: cents: no number")


async def test_an_edit_is_held_against_the_tool_by_the_run_itself() -> None:
    @tool(requires_approval=True, editable=True)
    def transfer(account: str, cents: int) -> str:
        """Transfers money."""
        return f"{cents} went to {account}"

    a, script = agent(
        says(call("transfer", account="Ada", cents=100)), says("Done."), tools=[transfer]
    )
    first = await a.send("Pay.")
    person = Person("edit", '{"account": "Ada"}', '{"account": "Ada", "cents": 1}')
    answers = await person.ask(
        *first.pending, check=lambda one: a.run(None, history=first.messages, resume=[one])
    )
    assert "do not fit: invalid arguments: " in person.shown[1]
    assert len(script.requests) == 1
    result = await a.send(None, history=first.messages, resume=answers)
    assert result.messages[0].tool_results[0].result["result"] == "1 went to Ada"


@pytest.mark.parametrize(
    ("schema", "line", "value"),
    [
        (None, "in the attic", "in the attic"),
        (None, "5", "5"),
        ({"type": "string"}, "5", "5"),
        ({"type": "integer"}, "5", 5),
        ({"type": "array", "items": {"type": "string"}}, '["a"]', ["a"]),
        ({"type": ["string", "null"]}, "5", "5"),
        ({"enum": ["red", "blue"]}, "red", "red"),
        ({"type": "boolean"}, "true", True),
    ],
)
async def test_an_answer_is_json_or_text_as_the_schema_has_it(
    schema: Any, line: str, value: Any
) -> None:
    answers = await _asked(schema, Person(line))
    assert answers == [{"value": value}]


async def test_an_answer_that_does_not_fit_is_asked_for_again() -> None:
    person = Person("many", "2.5", "3")
    assert await _asked({"type": "integer"}, person) == [{"value": 3}]
    assert (
        person.shown[0]
        == '[asks you]\nbook {}\nHow many?\nJSON Schema of the answer: {"type": "integer"}'
    )
    assert len(person.shown) == 3
    assert all(
        error.startswith("error: the answer to 'c1' is not what was asked for")
        for error in person.shown[1:]
    )


async def _asked(schema: Any, person: Person) -> list[Any]:
    """What somebody answers to a question of a tool that has this schema."""
    from dragoman.tools import AskUser

    @tool
    def book() -> str:
        """Books."""
        raise AskUser("How many?", schema)

    a: Agent[Any]
    a, _ = agent(says(call("book")), tools=[book])
    first = await a.send("Book.")
    answers = await person.ask(
        *first.pending, check=lambda one: a.run(None, history=first.messages, resume=[one])
    )
    return [resume.payload for resume in answers]


@pytest.mark.parametrize(("line", "value"), [("", True), ("code 7", "code 7")])
async def test_a_sign_in_shows_its_address(line: str, value: Any) -> None:
    person = Person(line)
    interrupt = Interrupt(
        "c1",
        "auth",
        call("log_in"),
        "Please sign in.",
        metadata={"url": "https://idp.example/\x1b[31m"},
    )
    assert [resume.payload for resume in await person.ask(interrupt)] == [{"value": value}]
    assert person.shown == [
        "[waits for a sign-in]\nlog_in {}\nPlease sign in.\nhttps://idp.example/\\u001b[31m"
    ]


async def test_a_clients_tool_takes_its_result_as_json() -> None:
    person = Person("blue", '{"colour": "blue"}')
    answers = await person.ask(Interrupt("c1", "tool", call("pick")))
    assert [resume.payload for resume in answers] == [{"value": {"colour": "blue"}}]
    assert person.shown[1].endswith("put a text in quotes")


async def test_nothing_is_answered_where_somebody_gives_up_in_the_middle() -> None:
    person = Person("y")
    with pytest.raises(EOFError):
        await person.ask(APPROVAL, msgspec.structs.replace(APPROVAL, id="c2"))


async def test_what_is_approved_is_what_is_read() -> None:
    """Arguments come from the model: signs that steer a terminal, or turn text around, are shown as
    JSON escapes."""
    hostile = {"path": "a\x1b[2K\u202e\x9b\U000e0041ö\n"}
    person = Person("n")
    await person.ask(Interrupt("c1", "approval", ToolCallPart("c1", "delete\x1b[A", hostile)))
    assert person.shown == [
        '[waits for approval]\ndelete\\u001b[A {"path": "a\\u001b[2K\\u202e\\u009b\\udb40\\udc41ö\\n"}'
    ]
    long = {"text": "word " * 30, "to": "Ada"}
    await (person := Person("n")).ask(
        Interrupt("c1", "approval", ToolCallPart("c1", "write", long))
    )
    assert person.shown[0].split("\n")[1:] == [
        "write {",
        f'  "text": "{"word " * 30}",',
        '  "to": "Ada"',
        "}",
    ]


def test_a_summary_is_one_line() -> None:
    assert summarize(msgspec.structs.replace(APPROVAL, message="Sure?\nReally")) == (
        'waits for approval: transfer {"account": "Ada", "cents": 100} – Sure? Really'
    )
