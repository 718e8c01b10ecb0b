"""Each endpoint × no key, an unknown key, one's own key, another's key, an id that is another's:
generated from the routes."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from dragoman import serve, wires
from dragoman.codec.serving import BEARER
from dragoman.errors import AuthenticationError
from dragoman.message import Message
from dragoman.serve.http.callers import Key
from dragoman.testing import ScriptedModel
from support.access import UNKNOWN, Cell, cells, reached
from support.asgi import Exchange, exchange
from support.serving import ASKS, asking, served
from support.switching import PROVIDERS

OWN, OTHER, NARROW, WRONG = (
    f"key-{name}-0123456789" for name in ("own", "other", "narrow", "wrong")
)
PUBLIC: dict[str, str] = {"/openapi.json": "it says what the documentation says"}


def new() -> Any:
    return served(Message.model("Hello."), auth=[OWN, Key(OTHER), Key(NARROW, models=["x*"])])[0]


SHARED = new()
CELLS = list(cells(SHARED, PUBLIC))
OF_RUNS = wires.names("protocol")
IDS = [cell for cell in CELLS if cell.has_id and cell.wire not in OF_RUNS]
"""Of runs: see `test_protocol_access`."""
each = pytest.mark.parametrize("cell", CELLS, ids=str)
each_with_id = pytest.mark.parametrize("cell", IDS, ids=str)


def seen(app: Any, cell: Cell, key: str | None, **how: Any) -> Exchange:
    return asyncio.run(reached(app, cell, key, **how))


async def _kept(app: Any, key: str) -> str:
    path, body = asking("openai_responses", stream=False)
    answer = await exchange(
        app, "POST", path, {**body, "store": True}, headers={"authorization": f"Bearer {key}"}
    )
    return answer.json["id"]


def kept(app: Any, key: str) -> str:
    """The id of an answer that somebody owns."""
    return asyncio.run(_kept(app, key))


def test_the_table_has_every_wires_chat() -> None:
    assert {cell.wire for cell in CELLS} >= {
        name
        for name in wires.names("model")
        if any(r.purpose == "chat" for r in wires.get(name).routes)
    }
    assert len(IDS) >= 8


@each
@pytest.mark.parametrize("key", [None, "", WRONG, OWN[:-1], "x" * 10_000])
def test_without_a_known_key_nobody_gets_in_and_no_body_is_read(
    cell: Cell, key: str | None
) -> None:
    answer = seen(SHARED, cell, key, body=b"{", unfinished=True)
    assert answer.status == 401
    if cell.method != "HEAD" and cell.wire:
        assert isinstance(
            wires.get(cell.wire).load_error(401, answer.headers, answer.body), AuthenticationError
        )
    assert not key or key.encode() not in answer.body


@each
def test_a_key_is_found_in_every_place_of_the_wire_and_in_no_other(cell: Cell) -> None:
    for place in range(len(cell.keys)):
        assert seen(SHARED, cell, OWN, place=place).status not in (401, 403)
    of_others = {
        route.header
        for name in wires.names("model")
        for route in wires.get(name).routes
        if route.path == cell.path
    }
    others = {"x-api-key", "x-goog-api-key", "api-key", "authorization"} - {
        place.name for place in cell.keys
    }
    others -= of_others  # by such a header another wire is meant
    for name in others:
        path = cell.path.replace("{model}", "m").replace("{id}", UNKNOWN)
        assert asyncio.run(exchange(SHARED, cell.method, path, headers={name: OWN})).status == 401


@each_with_id
def test_what_is_anothers_is_as_if_it_were_not_there(cell: Cell) -> None:
    app = new()
    mine = kept(app, OWN)
    anothers, nobodys = seen(app, cell, OTHER, id=mine), seen(app, cell, OTHER)
    assert (anothers.status, anothers.body.replace(mine.encode(), b"?")) == (
        nobodys.status,
        nobodys.body.replace(UNKNOWN.encode(), b"?"),
    )
    assert anothers.status == 404
    assert b"Hello" not in anothers.body
    assert seen(app, cell, None, id=mine).body == seen(app, cell, None).body
    assert seen(app, cell, OWN, id=mine).status != 404  # and nobody's attempt took it away


def test_nobody_goes_on_from_anothers_answer() -> None:
    app = new()
    mine = kept(app, OWN)
    path, body = asking("openai_responses", stream=False)

    def ask(key: str, previous: str) -> Exchange:
        sent = {**body, "previous_response_id": previous}
        return asyncio.run(
            exchange(app, "POST", path, sent, headers={"authorization": f"Bearer {key}"})
        )

    assert ask(OWN, mine).status == 200
    number = mine.removeprefix("resp_")
    anothers, nobodys = ask(OTHER, mine), ask(OTHER, "resp_" + "0" * len(number))
    assert anothers.status == nobodys.status in (400, 404)
    assert anothers.body.replace(number.encode(), b"0" * len(number)) == nobodys.body


@each
def test_a_model_that_a_key_may_not_name_is_as_if_it_were_not_there(cell: Cell) -> None:
    if cell.has_id or cell.wire in OF_RUNS:
        return
    wire = cell.wire
    bodies = [asking(wire, stream=False)[1]] if wire else [{}]
    bodies += [
        {
            "model": "m",
            "input": "x",
            "prompt": "x",
            "texts": ["x"],
            "contents": [],
            "messages": [],
            "embedding_types": ["float"],
        }
    ]
    for body in bodies if cell.method == "POST" else [{}]:
        refused = seen(SHARED, cell, NARROW, body=body)
        unknown = seen(SHARED, cell, OWN, model="no", body={**body, "model": "no"})
        assert b"Hello" not in refused.body
        if "{model}" in cell.path or "model" in body:
            named = refused.body.replace(b"'m'", b"?").replace(b"`m`", b"?")
            assert (refused.status, named) == (
                unknown.status,
                unknown.body.replace(b"'no'", b"?").replace(b"`no`", b"?"),
            )
        elif refused.status == 200 and cell.method == "GET":
            assert b'"m"' not in refused.body
            assert b"models/m" not in refused.body


def test_the_own_answer_is_reached() -> None:
    app = new()
    mine = kept(app, OWN)
    answer = seen(
        app,
        next(
            cell for cell in IDS if cell.method == "GET" and cell.path.endswith("/responses/{id}")
        ),
        OWN,
        id=mine,
    )
    assert (answer.status, msgspec.json.decode(answer.body)["id"]) == (200, mine)


@pytest.mark.parametrize("wire", sorted(ASKS))
def test_a_clients_key_goes_nowhere(wire: str, caplog: pytest.LogCaptureFixture) -> None:
    for stream, place in product((False, True), getattr(wires.get(wire), "keys", BEARER)):
        upstream = (
            ScriptedModel.like(PROVIDERS[wire], "Hello.", key_required=False)
            if wire in PROVIDERS
            else ScriptedModel("Hello.", wire=wire)
        )
        app = serve.app(gateway=serve.Gateway({"m": upstream}), auth=OWN)
        cell = next(
            cell
            for cell in cells(app)
            if cell.wire == wire
            and cell.path
            == asking(wire, stream=stream)[0]
            .partition("?")[0]
            .replace("/m:", "/{model}:")
            .replace("/m/", "/{model}/")
        )
        answer = seen(
            app, cell, OWN, place=cell.keys.index(place), body=asking(wire, stream=stream)[1]
        )
        assert answer.status == 200
        [sent] = upstream.sent
        kept = repr(vars(app.state.service.answers))
        assert (
            OWN
            not in f"{sent.path} {dict(sent.headers)} {sent.body!r} {kept} {answer.headers} {caplog.text}"
        )
        assert OWN.encode() not in answer.body


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/v1/v1/messages", 404),
        ("GET", "/v1/messages/", 404),
    ],
)
def test_what_is_not_there_is_answered_in_json(method: str, path: str, status: int) -> None:
    answer = asyncio.run(exchange(new(), method, path))
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json")
    assert path in answer.json["error"]["message"]
    assert status != 405 or (
        answer.headers["allow"] == "POST" and b"not asked with GET, but with POST" in answer.body
    )


def test_a_server_can_stand_within_another() -> None:
    within = Starlette(routes=[Mount("/llm", app=new())])
    for wire in ("openai_chat", "google", "mistral"):
        path, body = asking(wire, stream=False)
        answer = asyncio.run(
            exchange(
                within, "POST", f"/llm{path}", body, headers={"authorization": f"Bearer {OWN}"}
            )
        )
        assert (answer.status, b"Hello." in answer.body) == (200, True)
