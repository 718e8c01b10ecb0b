"""A gateway to models that make vectors of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from dragoman import serve, wires
from dragoman.request import HttpRequest
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.gateway import MODEL, AsgiTransport
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio


async def embedded(
    client: str, upstream: str, body: dict[str, Any], **how: Any
) -> tuple[int, Any, Any]:
    model = ScriptedModel("", wire=upstream)
    transport = AsgiTransport(serve.app(gateway=serve.Gateway({MODEL: model}, **how)))
    [path] = {each.path for each in wires.get(client).routes if each.purpose == "embeddings"} - {
        "/api/embeddings"
    }
    await transport.send(
        HttpRequest(f"http://127.0.0.1/{client}{path}", body={"model": MODEL, **body})
    )
    answer = msgspec.json.decode(transport.bodies[0])
    return transport.statuses[0], answer, model.embedded[0] if model.embedded else None


async def test_texts_become_vectors_as_the_client_asked() -> None:
    body = {"input": ["a", "b"], "dimensions": 8, "encoding_format": "base64", "user": "u"}
    status, answer, asked = await embedded("openai_chat", "openai_chat", body)
    assert (status, [type(each["embedding"]) for each in answer["data"]]) == (200, [str, str])
    assert (asked.texts, asked.dimensions, asked.options["user"]) == (("a", "b"), 8, "u")
    status, answer, asked = await embedded(
        "cohere", "openai_chat", {"texts": ["a"], "input_type": "search_query"}
    )
    assert (status, len(answer["embeddings"]["float"]), asked.options) == (200, 1, {})
    status, _, asked = await embedded("openai_chat", "cohere", body)
    assert (status, asked.purpose, asked.options.get("user")) == (200, "document", None)


async def test_what_another_provider_is_not_told_of_vectors_is_named_and_its_own_model_is_not() -> (
    None
):
    model = ScriptedModel.like(PROVIDERS["openai_chat"], "", key_required=False)
    app = serve.app(gateway=serve.Gateway({MODEL: model}), store=None)
    asked: Mapping[str, tuple[dict[str, Any], str | None]] = {
        "/v1/embeddings": ({"input": "a", "encoding_format": "base64"}, None),
        "/mistral/v1/embeddings": (
            {"input": "a", "output_dtype": "int8"},
            'option;which="output_dtype"',
        ),
        "/v2/embed": (
            {"texts": ["a"], "embedding_types": ["int8"]},
            'option;which="embedding_types"',
        ),
        "/cohere/v2/embed": ({"texts": ["a"], "embedding_types": ["float"]}, None),
        f"/v1beta/models/{MODEL}:embedContent": (
            {"content": {"parts": {"text": "a"}}, "title": "t"},
            'field;which="title"',
        ),
    }
    for path, (body, loss) in asked.items():
        answer = await exchange(
            app, "POST", path, {"model": MODEL, **body} if "google" not in path else body
        )
        assert (answer.status, answer.headers.get("dragoman-loss")) == (200, loss), answer.body
        assert (
            model.chat_model or ""
        ).encode() not in answer.body and b"text-embedding" not in answer.body
        assert answer.json.get("model", MODEL) == MODEL


async def test_options_of_vectors_are_refused_by_the_same_policy() -> None:
    body = {"input": "a", "encoding_format": "base64", "user": "u"}
    assert (await embedded("openai_chat", "cohere", body, on_loss="refuse"))[0] == 200
    status, answer, _ = await embedded(
        "openai_chat", "cohere", {**body, "colour": "red"}, on_loss="refuse"
    )
    assert (status, "colour" in answer["error"]["message"]) == (400, True)


async def test_tokens_of_some_model_are_no_text() -> None:
    status, answer, asked = await embedded("openai_chat", "openai_chat", {"input": [[1, 2], [3]]})
    assert (status, asked) == (400, None)
    assert "tokens" in answer["error"]["message"]
