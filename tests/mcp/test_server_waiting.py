"""What a call waits for, asked of the MCP client's user: approvals, questions, sign-ins, in both
eras of the protocol."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import CallToolResult, ElicitRequestURLParams, ElicitResult, InputRequiredResult

from dragoman import Tool, ToolContext, tool
from dragoman.mcp import server
from dragoman.tools import SignIn
from support.mcp import CANCELLED, DECLINED, ERAS, Told, User, accepted, connected, text
from support.model import agent, call, says

pytestmark = pytest.mark.anyio
in_both_eras = pytest.mark.parametrize("era", ERAS)


class Files:
    """Tools that leave a trace."""

    def __init__(self) -> None:
        self.dropped: list[str] = []
        self.drop = Tool("drop", "Drops a file.", self._drop, requires_approval=True)
        self.edit = Tool(
            "edit", "Drops another.", self._drop, requires_approval=True, editable=True
        )

    def _drop(self, path: str) -> str:
        self.dropped.append(path)
        return f"{path} dropped"


@in_both_eras
async def test_a_tool_that_needs_approval_runs_once_it_is_given(era: str) -> None:
    files = Files()
    user = User(lambda _: accepted(approved=not files.dropped))
    async with connected(server([files.drop]), era, user) as client:
        result = await client.call_tool("drop", {"path": "a\u202eb"})
    assert not result.is_error
    assert files.dropped == ["a\u202eb"]
    assert user.form.message == 'May this be run? drop {"path":"a\\u202eb"}'
    assert user.form.requested_schema["required"] == ["approved"]
    assert "arguments" not in user.form.requested_schema["properties"]


@in_both_eras
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (accepted(approved=False, reason="too late"), "denied: too late"),
        (accepted(), "denied"),
        (accepted(approved="yes"), "denied"),
        (DECLINED, "denied"),
        (CANCELLED, "interrupted: the call was not answered"),
    ],
)
async def test_a_tool_that_is_not_allowed_is_not_run(era: str, answer: Any, words: str) -> None:
    files = Files()
    async with connected(server([files.drop]), era, User(answer)) as client:
        result = await client.call_tool("drop", {"path": "a"})
    assert result.is_error
    assert words in text(result)
    assert files.dropped == []


@in_both_eras
async def test_arguments_may_be_changed_where_the_tool_says_so(era: str) -> None:
    files = Files()
    user = User(accepted(approved=True, arguments='{"path": "b"}'))
    async with connected(server([files.edit]), era, user) as client:
        result = await client.call_tool("edit", {"path": "a"})
    assert user.form.requested_schema["properties"]["arguments"]["default"] == '{"path":"a"}'
    assert files.dropped == ["b"]
    assert result.structured_content is not None
    assert result.structured_content["result"] == "b dropped"


@in_both_eras
async def test_an_answer_that_does_not_fit_is_asked_for_again_and_says_why(era: str) -> None:
    files = Files()
    user = User(
        accepted(approved=True, arguments="nonsense"),
        accepted(approved=True, arguments="[]"),
        accepted(approved=True, arguments='{"path": 3}'),
        accepted(approved=True, arguments='{"path": "b"}'),
    )
    async with connected(server([files.edit]), era, user) as client:
        await client.call_tool("edit", {"path": "a"})
    messages = [asked.message.partition("\n")[0] for asked in user.asked]
    assert messages[0] == 'May this be run? edit {"path":"a"}'
    assert messages[1].startswith("that is not JSON")
    assert messages[2] == "the arguments are not a JSON object"
    assert "path" in messages[3]
    assert files.dropped == ["b"]


async def test_a_client_that_never_answers_rightly_is_not_asked_for_ever() -> None:
    files = Files()
    user = User(accepted(approved=True, arguments="nonsense"))
    async with connected(server([files.edit]), "legacy", user) as client:
        result = await client.call_tool("edit", {"path": "a"})
    assert result.is_error
    assert len(user.asked) == 10
    assert files.dropped == []


@in_both_eras
async def test_a_client_that_cannot_ask_is_told_what_is_waited_for(era: str) -> None:
    files = Files()
    async with connected(server([files.drop]), era) as client:
        result = await client.call_tool("drop", {"path": "a"})
    assert result.is_error
    assert 'approval of drop {"path":"a"}' in text(result)
    assert files.dropped == []


@in_both_eras
async def test_an_agent_goes_on_where_it_waited(era: str) -> None:
    files = Files()
    mine, script = agent(
        says("I drop it.", call("drop", path="a"), call("drop", id="c2", path="b")),
        says("Done."),
        tools=[files.drop],
        display_name="me",
    )
    user = User(lambda params: accepted(approved='"a"' in params.message))
    async with connected(server(mine), era, user) as client:
        result = await client.call_tool("me", {"prompt": "Drop a and b."})
    assert len(user.asked) == 2
    assert files.dropped == ["a"]
    assert text(result) == "I drop it.\nDone."
    results = [part for message in script.requests[1].messages for part in message.tool_results]
    assert [part.denied for part in results] == [False, True]


QUESTIONS: list[tuple[Any, Any, dict[str, Any], Any]] = [
    (None, "hello", {"answer": {"type": "string"}}, "hello"),
    ({"type": "integer", "minimum": 1}, 4, {"answer": {"type": "integer", "minimum": 1}}, 4),
    (
        {"type": "string", "enum": ["a", "b"], "x-own": 1},
        "a",
        {"answer": {"type": "string", "enum": ["a", "b"]}},
        "a",
    ),
    (
        {"type": "string", "format": "email"},
        "a@b",
        {"answer": {"type": "string", "format": "email"}},
        "a@b",
    ),
]


@in_both_eras
@pytest.mark.parametrize(("schema", "given", "form", "got"), QUESTIONS)
async def test_a_question_is_a_form_of_one_field(
    era: str, schema: Any, given: Any, form: Any, got: Any
) -> None:
    @tool
    def book(ctx: ToolContext[Any]) -> dict[str, Any]:
        return {"got": ctx.ask("How many nights?", schema)}

    user = User(accepted(answer=given))
    async with connected(server([book]), era, user) as client:
        result = await client.call_tool("book", {})
    assert user.form.message == "How many nights?"
    assert user.form.requested_schema["properties"] == form
    assert result.structured_content == {"got": got}


@in_both_eras
async def test_a_question_for_a_flat_object_is_a_form_of_its_fields(era: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "nights": {"type": "integer"},
            "breakfast": {"type": "boolean", "default": True},
        },
        "required": ["nights"],
        "additionalProperties": False,
    }

    @tool
    def book(ctx: ToolContext[Any]) -> Any:
        return ctx.ask("Which?", schema)

    user = User(accepted(nights=2, breakfast=False))
    async with connected(server([book]), era, user) as client:
        result = await client.call_tool("book", {})
    assert user.form.requested_schema == {
        "type": "object",
        "properties": schema["properties"],
        "required": ["nights"],
    }
    assert result.structured_content == {"nights": 2, "breakfast": False}


@in_both_eras
async def test_a_question_that_no_form_can_ask_is_answered_in_json(era: str) -> None:
    schema = {
        "type": "array",
        "items": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }

    @tool
    def book(ctx: ToolContext[Any]) -> Any:
        return ctx.ask("Which?", schema)

    user = User(
        accepted(answer="no json"), accepted(answer='[{"n": "x"}]'), accepted(answer='[{"n": 1}]')
    )
    async with connected(server([book]), era, user) as client:
        result = await client.call_tool("book", {})
    assert "JSON Schema" in user.form.requested_schema["properties"]["answer"]["description"]
    assert len(user.asked) == 3
    assert text(result) == '[{"n":1}]'


@in_both_eras
async def test_questions_follow_one_another_behind_an_approval_and_progress_goes_on(
    era: str,
) -> None:
    @tool(requires_approval=True)
    async def book(ctx: ToolContext[Any], city: str) -> str:
        await ctx.progress(1 + len(ctx.answers))
        nights = ctx.ask("How many nights?", {"type": "integer"})
        return f"{nights} nights in {city}, breakfast: {ctx.ask('Breakfast?', {'type': 'boolean'})}"

    user, told = User(accepted(approved=True), accepted(answer=3), accepted(answer=True)), Told()
    async with connected(server([book]), era, user) as client:
        result = await client.call_tool("book", {"city": "Bern"}, progress_callback=told)
    assert [done for done, _, _ in told.all] == [1, 2, 3]
    assert text(result) == "3 nights in Bern, breakfast: True"
    assert len(user.asked) == 3


@in_both_eras
async def test_a_question_that_is_declined_is_told(era: str) -> None:
    @tool
    def book(ctx: ToolContext[Any]) -> Any:
        return ctx.ask("Which?")

    async with connected(server([book]), era, User(DECLINED)) as client:
        assert (await client.call_tool("book", {})).is_error


@in_both_eras
async def test_a_sign_in_is_an_address_that_the_client_opens(era: str) -> None:
    @tool
    def mails(ctx: ToolContext[Any]) -> str:
        if not ctx.answers:
            raise SignIn("https://example.com/login", "Sign in to your mail.")
        return "3 mails"

    user = User(ElicitResult(action="accept"))
    async with connected(server([mails]), era, user) as client:
        result = await client.call_tool("mails", {})
    (asked,) = user.asked
    assert isinstance(asked, ElicitRequestURLParams)
    assert (asked.url, asked.message) == ("https://example.com/login", "Sign in to your mail.")
    assert text(result) == "3 mails"
    async with connected(server([mails]), era) as client:
        assert "https://example.com/login" in text(await client.call_tool("mails", {}))


@in_both_eras
async def test_a_call_that_the_agents_client_runs_is_run_by_the_user(era: str) -> None:
    mine, script = agent(
        says(call("where")), says("You are in Bern."), tools=[Tool("where")], display_name="me"
    )
    user = User(accepted(answer='{"city": "Bern"}'))
    async with connected(server(mine), era, user) as client:
        result = await client.call_tool("me", {"prompt": "Where am I?"})
    assert "where {}" in user.form.message
    assert script.requests[1].messages[-1].tool_results[0].result == {"city": "Bern"}
    assert text(result) == "You are in Bern."


@in_both_eras
async def test_what_an_agent_in_a_tool_waits_for_is_asked_too(era: str) -> None:
    files = Files()
    inner, _ = agent(says(call("drop", path="a")), says("Inner done."), tools=[files.drop])

    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        return (await ctx.send(inner, "Drop a.")).output

    async with connected(server([delegate]), era, User(accepted(approved=True))) as client:
        result = await client.call_tool("delegate", {})
    assert text(result) == "Inner done."
    assert files.dropped == ["a"]


# what a client keeps meanwhile, where the protocol has it do so


KEY = "k" * 32
Waits = tuple[str, str]


async def waits(client: Client, name: str = "drop", **arguments: Any) -> Waits:
    """Begins a call that waits → the key of the question, and what the client keeps."""
    result = await client.session.call_tool(name, arguments, allow_input_required=True)
    assert isinstance(result, InputRequiredResult)
    assert result.input_requests is not None
    assert result.request_state is not None
    (key,) = result.input_requests
    return key, result.request_state


async def goes_on(
    client: Client, waiting: Waits, name: str = "drop", **arguments: Any
) -> CallToolResult:
    """Answers it, with an approval."""
    key, state = waiting
    result = await client.session.call_tool(
        name,
        arguments,
        input_responses={key: accepted(approved=True)},
        request_state=state,
        allow_input_required=True,
    )
    assert isinstance(result, CallToolResult)
    return result


async def test_an_approval_counts_once() -> None:
    files = Files()
    async with connected(server([files.drop]), user=User(DECLINED)) as client:
        waiting = await waits(client, path="a")
        assert not (await goes_on(client, waiting, path="a")).is_error
        again = await goes_on(client, waiting, path="a")
    assert again.is_error
    assert "outcome unknown" in text(again)
    assert files.dropped == ["a"]


async def test_what_the_client_keeps_it_can_neither_read_nor_change_nor_use_for_another_call() -> (
    None
):
    files = Files()
    async with connected(server([files.drop]), user=User(DECLINED)) as client:
        key, state = await waits(client, path="secret.txt")
        assert "secret" not in state
        for changed in (
            state[:-2] + ("A" if state[-2] != "A" else "B") + state[-1],
            "v1.AAAA",
            "{}",
        ):
            with pytest.raises(MCPError, match="requestState"):
                await goes_on(client, (key, changed), path="secret.txt")
        with pytest.raises(MCPError, match="requestState"):
            await goes_on(client, (key, state), path="other.txt")
    async with connected(server([files.drop]), user=User(DECLINED)) as client:
        with pytest.raises(MCPError, match="requestState"):
            await goes_on(client, (key, state), path="secret.txt")
    assert files.dropped == []


async def test_an_approval_from_nowhere_runs_nothing() -> None:
    files = Files()
    async with connected(server([files.drop]), user=User(DECLINED)) as client:
        key, _ = await waits(client, path="a")
        result = await client.session.call_tool(
            "drop",
            {"path": "a"},
            input_responses={key: accepted(approved=True)},
            allow_input_required=True,
        )
    assert isinstance(result, InputRequiredResult)
    assert files.dropped == []


async def test_any_process_with_the_same_key_goes_on() -> None:
    files = Files()
    mine, _ = agent(
        says("I drop it.", call("drop", path="a")),
        says("Done."),
        tools=[files.drop],
        display_name="me",
    )
    async with connected(server(mine, key=KEY), user=User(DECLINED)) as client:
        waiting = await waits(client, "me", prompt="Drop a.")
    again, script = agent(says("Done."), tools=[files.drop], display_name="me")
    async with connected(server(again, key=KEY), user=User(DECLINED)) as client:
        result = await goes_on(client, waiting, "me", prompt="Drop a.")
    assert text(result) == "I drop it.\nDone."
    assert files.dropped == ["a"]
    assert [message.role for message in script.requests[0].messages] == ["user", "model", "user"]


async def test_a_question_that_was_not_answered_is_asked_again() -> None:
    files = Files()
    async with connected(server([files.drop]), user=User(DECLINED)) as client:
        key, state = await waits(client, path="a")
        result = await client.session.call_tool(
            "drop", {"path": "a"}, request_state=state, allow_input_required=True
        )
        assert isinstance(result, InputRequiredResult)
        assert result.input_requests is not None
        assert list(result.input_requests) == [key]
    assert files.dropped == []
