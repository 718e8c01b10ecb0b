"""Agents behind the endpoints of agent protocols: one conversation in all of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Message, ToolCallPart, fold, serve, tool, wires
from dragoman.event import RunError, RunFinished
from dragoman.message import Role, ThinkingPart
from dragoman.serve import AgentPolicy
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, exchange
from support.protocols import BODIES, PAID, events_of, posted, served_agent

pytestmark = pytest.mark.anyio

KEYS = ("own-secret-key", "other-secret-key")
each = pytest.mark.parametrize("wire", sorted(BODIES))


def question(text: str, id: str) -> Message:
    return Message.user(text).replace(id=id)


def answers(events: list[Any]) -> list[Message]:
    """All but the question, which a client has itself."""
    return [
        message for message in fold(events) if message.role is Role.MODEL or message.tool_results
    ]


def model_texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages if message.role is Role.MODEL]


@pytest.fixture(params=["memory", pytest.param("sqlite", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/server.db"


@each
async def test_a_run_is_shown_as_it_is_and_nothing_of_the_provider(wire: str) -> None:
    async with served_agent() as app:
        answer = await posted(app, wire, "t", [question("Please roll.", "u1")])
        events = events_of(wire, answer)
        messages = [message for message in fold(events) if message.id != "u1"]
        assert model_texts(messages) == ["Let me.", "Seen 3."]
        assert [result.result for message in messages for result in message.tool_results] == [4]
        assert messages[0].thinking == "Hm."
        assert isinstance(events[-1], RunFinished)
        for secret in (b"c2lnbmVk", b"scripted", b"anthropic", b"invalid/v1"):
            assert secret not in answer.body


@each
async def test_what_the_client_sends_back_is_what_the_server_has(wire: str) -> None:
    """Its copy lacks the signature; the model gets it again."""
    async with served_agent() as app:
        asked = [question("Please roll.", "u1")]
        first = [
            each
            for each in fold(events_of(wire, await posted(app, wire, "t", asked)))
            if each.id != "u1"
        ]
        more = [*asked, *first, question("And?", "u2")]
        second = events_of(wire, await posted(app, wire, "t", more))
        assert model_texts(fold(second)) == ["Seen 5."]
        kept = await app.state.service.answers.find("anonymous", ["thread:t"])
        chain = await app.state.service.answers.chain("anonymous", kept.id)
        messages = [message for one in chain for message in one.messages]
        thoughts = [
            piece.native
            for message in messages
            for piece in message.content
            if isinstance(piece, ThinkingPart)
        ]
        assert thoughts == [{"anthropic": {"signature": "c2lnbmVk"}}]
        assert [
            message.id for message in messages if message.role is Role.USER and message.text
        ] == ["u1", "u2"]
        assert len(messages) == 6


@each
async def test_only_the_last_message_may_be_sent(wire: str) -> None:
    async with served_agent() as app:
        await posted(app, wire, "t", [question("Please roll.", "u1")])
        again = events_of(wire, await posted(app, wire, "t", [question("And?", "u2")]))
        assert model_texts(fold(again)) == ["Seen 5."]


@each
async def test_a_question_that_is_asked_anew_takes_the_place_of_what_followed(wire: str) -> None:
    async with served_agent() as app:
        await posted(app, wire, "t", [question("One.", "u1")])
        edited = events_of(wire, await posted(app, wire, "t", [question("Another.", "u1")]))
        assert model_texts(fold(edited)) == ["Seen 1."]
        after = events_of(wire, await posted(app, wire, "t", [question("More.", "u2")]))
        assert model_texts(fold(after)) == ["Seen 3."]


@pytest.mark.parametrize(
    ("wire", "message_id", "status", "texts"),
    [
        ("ai_sdk", "u1", 200, ["One.", "Seen 1."]),
        ("ai_sdk", "nobody", 400, ["One.", "Seen 1.", "Two.", "Seen 3."]),
        ("ag_ui", "u1", 400, ["One.", "Seen 1.", "Two.", "Seen 3."]),
    ],
)
async def test_an_answer_is_made_anew_where_the_wire_can_ask_for_it(
    wire: str, message_id: str, status: int, texts: list[str]
) -> None:
    """A body of another wire that has the same words asks for nothing."""
    async with served_agent() as app:
        await posted(app, wire, "t", [question("One.", "u1")])
        await posted(app, wire, "t", [question("Two.", "u2")])
        answer = await posted(
            app, wire, "t", [], trigger="regenerate-message", messageId=message_id
        )
        kept = await app.state.service.answers.find("anonymous", ["thread:t"])
        chain = await app.state.service.answers.chain("anonymous", kept.id)
        assert (answer.status, [message.text for one in chain for message in one.messages]) == (
            status,
            texts,
        )


@each
async def test_a_slash_behind_an_agents_name_is_none_of_it(wire: str) -> None:
    path, body = BODIES[wire]
    named = {
        "first": Agent(ScriptedModel([Message.model("First.")])),
        "second": Agent(ScriptedModel([Message.model("Second.")])),
    }
    app = serve.app(named)
    async with app.router.lifespan_context(app):
        answer = await exchange(app, "POST", f"{path}/second/", body("t", [question("Hi.", "u1")]))
        assert model_texts(fold(events_of(wire, answer))) == ["Second."]


@pytest.mark.parametrize("wire", sorted(BODIES))
async def test_a_request_that_is_none_is_refused(wire: str) -> None:
    path, body = BODIES[wire]
    async with served_agent() as app:
        for wrong in (
            {},
            {"messages": 1},
            {**body("t", []), "messages": [1]},
            {**body("t", []), "messages": [{"role": 4}]},
        ):
            refused = await exchange(app, "POST", path, wrong)
            assert refused.status == 400, (wrong, refused.body)
        unknown = await exchange(
            app, "POST", f"{path}/nobody/else", body("t", [question("Hi.", "u1")])
        )
        assert unknown.status in (200, 404)  # a single agent answers to every name


@each
async def test_a_run_is_read_again_from_its_beginning(wire: str) -> None:
    async with served_agent() as app:
        first = await posted(app, wire, "t", [question("Please roll.", "u1")])
        again = await exchange(app, "GET", f"{BODIES[wire][0]}/t/stream")
        assert again.status == 200
        assert answers(events_of(wire, again)) == answers(events_of(wire, first))


@each
async def test_a_client_goes_on_behind_the_last_frame_that_it_got(wire: str, store: str) -> None:
    """Wherever its stream breaks off, what it has and what it gets then is the whole, once, in its
    version and by its ids."""
    async with served_agent(store=store) as app:
        whole = (await posted(app, wire, "t", [question("Please roll.", "u1")])).body
        frames = whole.split(b"\n\n")
        ids = [int(line[4:]) for line in whole.split(b"\n") if line.startswith(b"id: ")]
        assert ids == sorted(set(ids))
        assert len(ids) > 8
        for at, frame in enumerate(frames):
            if not frame.startswith(b"id: "):
                continue
            last = frame.partition(b"\n")[0][4:].decode()
            path = f"{BODIES[wire][0]}/t/stream"
            rest = await exchange(app, "GET", path, headers={"last-event-id": last})
            assert rest.body == b"\n\n".join(frames[at + 1 :]), last


@pytest.mark.parametrize("wire", ["ag_ui", "ai_sdk"])
async def test_nobody_reads_or_ends_or_goes_on_with_what_is_anothers(wire: str) -> None:
    path = BODIES[wire][0]
    own, other = ({"authorization": f"Bearer {key}"} for key in KEYS)

    def same(one: Exchange, two: Exchange) -> bool:
        return (one.status, one.body.replace(b"'t'", b"?")) == (
            two.status,
            two.body.replace(b"'x'", b"?"),
        )

    async with served_agent(auth=KEYS) as app:
        mine = await posted(app, wire, "t", [question("A secret: roll.", "u1")], KEYS[0])
        assert mine.status == 200
        for method, rest in (("GET", "stream"), ("POST", "cancel")):
            theirs = await exchange(app, method, f"{path}/t/{rest}", headers=other)
            nobodys = await exchange(app, method, f"{path}/x/{rest}", headers=other)
            assert same(theirs, nobodys), (method, rest, theirs.body, nobodys.body)
            assert b"secret" not in theirs.body
            assert (await exchange(app, method, f"{path}/t/{rest}", headers=own)).status in (
                200,
                204,
            )
            assert (await exchange(app, method, f"{path}/t/{rest}")).status == 401
        goes_on = events_of(wire, await posted(app, wire, "t", [question("And?", "u2")], KEYS[1]))
        assert model_texts(fold(goes_on)) == ["Seen 1."]


async def test_the_same_conversation_goes_on_in_every_protocol(store: str) -> None:
    """AG-UI, then Responses with an approval that stays pending, then useChat, which answers it;
    ids are the same in all."""
    async with served_agent(store=store) as app:
        first = fold(
            events_of("ag_ui", await posted(app, "ag_ui", "trip", [question("Please roll.", "u1")]))
        )
        body = {"model": "m", "input": "Now pay.", "conversation": "trip"}
        second = await exchange(app, "POST", "/v1/responses", body)
        assert second.status == 200, second.body
        [request] = [
            item for item in second.json["output"] if item["type"] == "mcp_approval_request"
        ]
        assert (request["name"], PAID) == ("pay", [])

        kept = await app.state.service.answers.find("anonymous", ["thread:trip"])
        chain = await app.state.service.answers.chain("anonymous", kept.id)
        so_far = [message for one in chain for message in one.messages]
        assert [one.id for one in so_far][:4] == [
            "u1",
            *[one.id for one in first],
        ]  # the same in AG-UI and in the store
        [waiting] = kept.pending
        resume = [{"interruptId": waiting.id, "status": "resolved", "payload": {"approved": True}}]
        third = events_of("ai_sdk", await posted(app, "ai_sdk", "trip", so_far, resume=resume))
        assert PAID == [3]
        assert not isinstance(third[-1], RunError)
        assert model_texts(fold(third))[-1].startswith("Seen")

        again = await posted(app, "ai_sdk", "trip", so_far, resume=resume)
        assert (again.status, PAID) == (400, [3])  # it is answered already
        last = fold(
            events_of("ag_ui", await posted(app, "ag_ui", "trip", [question("And?", "u9")]))
        )
        assert model_texts(last) == ["Seen 9."]


@each
async def test_two_answers_to_one_approval_pay_once(wire: str, store: str) -> None:
    async with served_agent(store=store) as app:
        asked = [question("Now pay.", "u1")]
        await posted(app, wire, "t", asked)
        [waiting] = (await app.state.service.answers.find("anonymous", ["thread:t"])).pending
        resume = [{"interruptId": waiting.id, "status": "resolved", "payload": {"approved": True}}]
        await asyncio.gather(*[posted(app, wire, "t", [], resume=resume) for _ in range(5)])
        assert PAID == [3]


@each
async def test_a_client_that_keeps_its_own_words_alone_may_answer_what_waits(
    wire: str, store: str
) -> None:
    async with served_agent(store=store) as app:
        asked = [question("Now pay.", "u1")]
        await posted(app, wire, "t", asked)
        [waiting] = (await app.state.service.answers.find("anonymous", ["thread:t"])).pending
        resume = [{"interruptId": waiting.id, "status": "resolved", "payload": {"approved": True}}]
        edited = await posted(app, wire, "t", [question("Do not pay.", "u1")], resume=resume)
        assert edited.status == 400 and PAID == []
        answer = await posted(app, wire, "t", asked, resume=resume)
        assert model_texts(fold(events_of(wire, answer)))[-1] == "Seen 3." and PAID == [3]


def streaming(wire: str) -> tuple[str, dict[str, Any]]:
    """Path and body of a question that is answered by a stream."""
    if wire == "a2a":
        message = {
            "messageId": "u1",
            "contextId": "t",
            "role": "ROLE_USER",
            "parts": [{"text": "Hi."}],
        }
        return "/a2a/message:stream", {"message": message}
    path, body = BODIES[wire]
    return path, body("t", [question("Hi.", "u1")])


@pytest.mark.parametrize("wire", [*sorted(BODIES), "a2a"])
async def test_no_proxy_keeps_or_collects_a_stream(wire: str) -> None:
    async with served_agent() as app:
        path, body = streaming(wire)
        headers = (await exchange(app, "POST", path, body)).headers
        assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-cache", "no")
        assert headers["content-type"] == wires.get(wire).stream_type


@pytest.mark.parametrize("wire", [*sorted(BODIES), "a2a"])
@pytest.mark.parametrize("leaves", ["cancel", "detach"])
async def test_a_client_that_leaves_ends_its_run_unless_it_may_go_on(
    wire: str, leaves: Any
) -> None:
    held = asyncio.Event()
    done: list[str] = []

    @tool
    async def wait() -> str:
        """Waits."""
        try:
            await held.wait()
            done.append("done")
        except asyncio.CancelledError:
            done.append("cancelled")
            raise
        return "waited"

    def reply(request: Any) -> Message:
        return (
            Message.model("Done.")
            if request.messages[-1].tool_results
            else Message.model(ToolCallPart("c", "wait", {}))
        )

    app = serve.app(
        Agent(ScriptedModel(reply), tools=[wait]), policy=AgentPolicy(on_disconnect=leaves)
    )
    async with app.router.lifespan_context(app):
        path, body = streaming(wire)
        await exchange(app, "POST", path, body, leaves_after=3)
        held.set()
        while (found := await app.state.service.answers.find("anonymous", ["thread:t"])) is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        if leaves == "detach":
            assert (found.state, done) == ("completed", ["done"])
        else:
            # The client may leave before the log holds the call, and then the tool never begins.
            assert (found.state, "done" in done) == ("cancelled", False)


@each
async def test_a_run_takes_no_longer_than_a_call_may(wire: str) -> None:
    """Also where its client is gone."""

    @tool
    async def wait() -> None:
        """Waits for ever."""
        await asyncio.Event().wait()

    reply = Message.model(ToolCallPart("c", "wait", {}))
    limits = serve.ServerLimits(run_seconds=0.05)
    app = serve.app(
        Agent(ScriptedModel(lambda request: reply), tools=[wait]),
        policy=AgentPolicy(on_disconnect="detach"),
        limits=limits,
    )
    async with app.router.lifespan_context(app):
        path, body = BODIES[wire]
        await exchange(app, "POST", path, body("t", [question("Hi.", "u1")]), leaves_after=3)
        while (found := await app.state.service.answers.find("anonymous", ["thread:t"])) is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert found.state == "cancelled"


@each
@pytest.mark.slow
async def test_a_thousand_streams_at_once_are_whole_and_in_order(wire: str) -> None:
    words = [f"{at} " for at in range(50)]
    async with served_agent(lambda request: Message.model("".join(words))) as app:
        asked = [posted(app, wire, f"t{at}", [question("Hi.", f"u{at}")]) for at in range(1000)]
        for answer in await asyncio.gather(*asked):
            assert model_texts(fold(events_of(wire, answer))) == ["".join(words)]
        assert app.state.service.gate.open == 0
        assert not app.state.service.runs.driven
