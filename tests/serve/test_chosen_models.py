"""A client chooses one of several models for an agent's answer (`AgentPolicy.models`)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import Agent, serve
from dragoman.errors import SettingsError
from dragoman.request import ModelRequest
from dragoman.serve import AgentPolicy, Key
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.serving import ASKS

pytestmark = pytest.mark.anyio
OWN, OTHER = "anthropic:claude-sonnet-4-6", "openai:gpt-4o"
RUN = {"threadId": "t", "runId": "r", "tools": [], "context": [], "state": None}


def model(name: str) -> ScriptedModel:
    def says(_: ModelRequest) -> str:
        return f"I am {name}."

    return ScriptedModel.like(name, says, key_required=False)


POLICY = AgentPolicy(models=(model(OTHER),))


def several(**options: Any) -> Any:
    agents = {"a": Agent(model(OWN)), "b": Agent(model(OWN))}
    return serve.app(agents, policy=POLICY, **options)


def single(**options: Any) -> Any:
    return serve.app(Agent(model(OWN)), policy=POLICY, **options)


async def ask(app: Any, wire: str, name: str, **headers: str) -> tuple[int, str]:
    path, body = ASKS[wire]
    if wire == "google":
        path, named = path.replace("/m:", f"/{name}:"), {}
    elif wire == "bedrock_converse":
        path, named = path.replace("/m/", f"/{name}/"), {}
    else:
        named = {"model": name, "stream": False}
    got = await exchange(app, "POST", path, {**body, **named}, headers=headers.items())
    return got.status, got.body.decode()


@pytest.mark.parametrize("wire", list(ASKS))
async def test_a_client_of_any_api_names_agent_and_model(wire: str) -> None:
    app = several()
    status, body = await ask(app, wire, f"a@{OTHER}")
    assert status == 200
    assert f"I am {OTHER}." in body
    status, body = await ask(app, wire, "a")
    assert status == 200
    assert f"I am {OWN}." in body


@pytest.mark.parametrize("wire", list(ASKS))
@pytest.mark.parametrize("name", ["a@openai:gpt-9", "a@", "c@openai:gpt-4o", "openai:gpt-4o", "@"])
async def test_what_is_not_offered_is_not_there(wire: str, name: str) -> None:
    status, body = await ask(several(), wire, name)
    assert status == (400 if wire == "mistral" else 404)  # as their APIs say it
    assert "there is no model" in body


async def test_an_agent_without_a_name_is_asked_by_the_model_alone() -> None:
    app = single()
    for name, says in ((OTHER, OTHER), (OWN, OWN), ("gpt-4", OWN), (f"x@{OTHER}", OTHER)):
        status, body = await ask(app, "openai_chat", name)
        assert (status, f"I am {says}." in body) == (200, True), name
    assert (await ask(app, "openai_chat", "x@openai:gpt-9"))[0] == 404


async def test_without_models_names_are_what_they_were() -> None:
    app = serve.app(Agent(model(OWN)))
    assert f"I am {OWN}." in (await ask(app, "openai_chat", f"x@{OTHER}"))[1]


async def test_lists_of_models_have_them() -> None:
    got = await exchange(several(), "GET", "/v1/models")
    names = [each["id"] for each in json.loads(got.body)["data"]]
    assert names == ["a", "b", f"a@{OTHER}", f"b@{OTHER}"]
    got = await exchange(single(), "GET", "/v1/models")
    assert [each["id"] for each in json.loads(got.body)["data"]] == [OWN, OTHER]


async def run(app: Any, path: str, model: Any = None, **headers: str) -> tuple[int, str]:
    message = {"id": "u", "role": "user", "content": "hi"}
    body = {
        **RUN,
        "messages": [message],
        "forwardedProps": {} if model is None else {"model": model},
    }
    async with app.router.lifespan_context(app):
        got = await exchange(app, "POST", path, body, headers=headers.items())
    return got.status, got.body.decode()


async def test_a_client_of_ag_ui_forwards_it_or_names_it_in_the_path() -> None:
    for path, name, says in (
        ("/ag-ui/a", None, OWN),
        ("/ag-ui/a", OTHER, OTHER),
        (f"/ag-ui/a@{OTHER}", None, OTHER),
        ("/ag-ui/a", 7, OWN),
    ):
        status, body = await run(several(), path, name)
        assert status == 200
        assert says.rpartition(":")[2] in body, (path, name)
    status, body = await run(several(), "/ag-ui/a", "openai:gpt-9")
    assert status == 400
    assert "cannot be chosen here; there are: openai:gpt-4o" in body
    # Without a choice it is the application's own, as before.
    status, body = await run(serve.app({"a": Agent(model(OWN))}), "/ag-ui/a", "openai:gpt-9")
    assert status == 200


async def test_a_key_names_what_it_may_choose() -> None:
    keys = [Key("k" * 16, "narrow", ["a"]), Key("w" * 16, "wide", ["a*"])]
    narrow, wide = {"authorization": "Bearer " + "k" * 16}, {"authorization": "Bearer " + "w" * 16}
    app = several(auth=keys)
    assert (await ask(app, "openai_chat", f"a@{OTHER}", **narrow))[0] == 404
    assert (await ask(app, "openai_chat", f"a@{OTHER}", **wide))[0] == 200
    assert (await run(several(auth=keys), "/ag-ui/a", OTHER, **narrow))[0] == 400
    assert (await run(several(auth=keys), "/ag-ui/a", OTHER, **wide))[0] == 200


@pytest.mark.parametrize("models", [("nobody:gpt",), ("",), (":::",)])
def test_a_policy_names_models_that_there_are(models: Any) -> None:
    with pytest.raises(SettingsError):
        AgentPolicy(models=models)


@pytest.mark.parametrize("models", [(7,), "openai:gpt-4o", (None,)])
def test_a_policy_takes_models(models: Any) -> None:
    with pytest.raises(TypeError):
        AgentPolicy(models=models)
