"""An application over a database is started a second time in one process, as test clients and
reloading servers do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, serve
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio


def app_of(store: str) -> Any:
    model = ScriptedModel.like(
        PROVIDERS["anthropic"], lambda request: str(len(request.messages)), key_required=False
    )
    return serve.app({"a": Agent(model)}, store=store)


async def answered(app: Any, **body: Any) -> dict[str, Any]:
    answer = await exchange(app, "POST", "/v1/responses", {"model": "a", "input": "Hi.", **body})
    assert answer.status == 200, answer.body
    return answer.json


def text_of(answer: dict[str, Any]) -> str:
    return answer["output"][0]["content"][0]["text"]


@pytest.mark.parametrize("kind", ["database", "memory"])
async def test_an_application_goes_on_where_it_ended(kind: str, tmp_path: Path) -> None:
    """Both of its stores are opened anew: the answers and the log of runs."""
    app = app_of("memory:" if kind == "memory" else f"sqlite:///{tmp_path / 'answers.db'}")
    async with app.router.lifespan_context(app):
        first = await answered(app)
    async with app.router.lifespan_context(app):
        second = await answered(app, previous_response_id=first["id"])
        begun = await answered(app, previous_response_id=second["id"], background=True)
        await app.state.service.runs.idle()
        found = (await exchange(app, "GET", f"/v1/responses/{begun['id']}")).json
    assert [text_of(first), text_of(second), text_of(found)] == ["1", "3", "5"]


async def test_each_start_closes_what_it_opened(tmp_path: Path) -> None:
    app = app_of(f"sqlite:///{tmp_path / 'answers.db'}")
    seen: list[Any] = []
    for _ in range(3):
        async with app.router.lifespan_context(app):
            await answered(app)
            seen.append((app.state.service.answers, app.state.service.log))
    assert len({id(part) for pair in seen for part in pair}) == 2 * 3
    for answers, log in seen:
        with pytest.raises(Exception, match="closed"):
            await answers.get("x", "x")
        with pytest.raises(Exception, match="closed"):
            await log.status(["x"])
