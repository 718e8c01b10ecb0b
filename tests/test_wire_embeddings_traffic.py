"""Embeddings on recorded traffic: every answer is read, every request comes back, the official
clients as judges."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from typing import Any

import cohere
import httpx
import httpx2
import ollama
import openai
import pytest
from google import genai
from google.genai import types

from dragoman import wires
from dragoman.errors import DragomanError
from support.traffic import Exchange, exchanges

FOLDERS = {
    "openai_embeddings": "openai_chat",
    "openrouter": "openai_chat",
    "google": "google",
    "mistral": "mistral",
    "cohere": "cohere",
    "ollama_native": "ollama",
}


def recorded(folder: str, *, good: bool = True) -> list[Exchange]:
    found = [e for e in exchanges(folder) if e.endpoint == "embed" and (e.status == 200) is good]
    assert found or folder == "ollama_native"
    return found


def read(exchange: Exchange) -> Any:
    return wire_of(exchange).load_response(exchange.body)


def wire_of(exchange: Exchange) -> Any:
    return wires.embeddings(FOLDERS[exchange.path.parent.name])


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_recorded_answer_is_read(folder: str) -> None:
    for exchange in recorded(folder):
        result = read(exchange)
        assert result.count > 0, exchange
        assert {len(vector) for vector in result.embeddings} == {result.dimensions}, exchange
        assert all(
            type(number) is float and math.isfinite(number)
            for v in result.embeddings
            for number in v
        ), exchange
        if exchange.request and (
            texts := wire_of(exchange).load_request(exchange.request, path=exchange.url).texts
        ):
            assert result.count == len(texts), exchange
        told = json.loads(exchange.body)
        if "usage" in told:
            assert result.usage.input_tokens == told["usage"].get(
                "prompt_tokens", told["usage"]["total_tokens"]
            ), exchange
            assert result.usage.total_tokens == told["usage"]["total_tokens"], exchange
        assert result.metadata.get("model") == told.get("model"), exchange


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("good", [True, False])
def test_every_recorded_request_comes_back_as_it_was(folder: str, good: bool) -> None:
    for exchange in recorded(folder, good=good) if good else exchanges(folder):
        if exchange.endpoint != "embed" or exchange.request is None:
            continue
        wire = wire_of(exchange)
        request = wire.load_request(exchange.request, path=exchange.url)
        assert wire.dump_request(request) == exchange.request, exchange
        path = wire.dump_http(request).path
        assert exchange.url.partition("?")[0].endswith(path), exchange
        neutral = {
            "input",
            "texts",
            "content",
            "instances",
            "model",
            "dimensions",
            "output_dimension",
            "taskType",
        }
        known = {
            name for name in neutral & request.options.keys() if request.options[name] is not None
        }
        assert not known, exchange


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.slow
def test_what_is_read_can_be_written_and_read_again(folder: str) -> None:
    for exchange in recorded(folder):
        wire, result = wire_of(exchange), read(exchange)
        request = exchange.request and wire.load_request(exchange.request, path=exchange.url)
        again = wire.load_response(
            json.dumps(wire.dump_response(result, request=request or None)).encode()
        )
        for ours, theirs in zip(again.embeddings, result.embeddings, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-6)
        assert again.id == result.id, exchange
        if result.usage is not None and folder != "google":
            assert again.usage == result.usage, exchange
        assert again.metadata.get("model") == result.metadata.get("model"), exchange


def test_an_openai_answer_is_written_as_it_was() -> None:
    """So a server can give it to the official client."""
    same = 0
    for exchange in recorded("openai_embeddings"):
        if exchange.vendor != "openai" or exchange.request is None:
            continue
        request = wire_of(exchange).load_request(exchange.request)
        assert wire_of(exchange).dump_response(read(exchange), request=request) == json.loads(
            exchange.body
        ), exchange
        same += 1
    assert same > 8


@pytest.mark.parametrize("folder", FOLDERS)
def test_recorded_errors_are_of_our_tree_and_keep_the_providers_words(folder: str) -> None:
    wire = wires.get(FOLDERS[folder])
    kinds = {}
    for exchange in exchanges(folder):
        if exchange.endpoint == "embed" and exchange.status >= 400:
            error = wire.load_error(exchange.status, exchange.headers, exchange.body)
            kinds[exchange.status] = type(error).__name__
            with pytest.raises(
                DragomanError
            ) as caught:  # the same inside an answer that calls itself good
                wires.embeddings(FOLDERS[folder]).load_response(exchange.body)
            words = error.message.split(".")[0]
            assert words in caught.value.message, exchange
    assert kinds.get(404, "ModelNotFoundError") == "ModelNotFoundError"
    assert kinds.get(401, "AuthenticationError") == "AuthenticationError"


def clients(exchange: Exchange) -> dict[str, Callable[[], tuple[list[Any], Any]]]:
    """By wire: the official client's reading of an exchange's bytes, as vectors and input
    tokens."""
    headers = {"content-type": "application/json"}

    def mock(module: Any, **how: Any) -> Any:
        answer = module.Response(200, headers=headers, content=exchange.body)
        return module.Client(transport=module.MockTransport(lambda _: answer), **how)

    def by_openai() -> tuple[list[Any], Any]:
        client = openai.OpenAI(api_key="k", http_client=mock(httpx))
        said = client.embeddings.create(model="m", input=["?"])
        entries = sorted(said.data, key=lambda entry: entry.index)
        return [entry.embedding for entry in entries], said.usage.prompt_tokens

    def by_mistral() -> tuple[list[Any], Any]:
        sdk = pytest.importorskip("mistralai.client").Mistral(api_key="k", client=mock(httpx2))
        said = sdk.embeddings.create(model="m", inputs=["?"])
        return [entry.embedding for entry in said.data], said.usage.prompt_tokens

    def by_cohere() -> tuple[list[Any], Any]:
        said = cohere.ClientV2(api_key="k", httpx_client=mock(httpx)).embed(
            model="m", texts=["?"], input_type="search_query", embedding_types=["float"]
        )
        return said.embeddings.float_, said.meta.billed_units.input_tokens

    def by_ollama() -> tuple[list[Any], Any]:
        client = ollama.Client()
        client._client = mock(httpx, base_url="http://x")
        said = client.embed("m", ["?"])
        return [list(vector) for vector in said.embeddings], said.prompt_eval_count

    def by_google() -> tuple[list[Any], Any]:
        http = types.HttpOptions(httpx_client=mock(httpx2))
        said = genai.Client(api_key="k", http_options=http).models.embed_content(
            model="gemini-embedding-001", contents=["?"]
        )
        return [entry.values for entry in said.embeddings], None

    return {
        "openai_chat": by_openai,
        "mistral": by_mistral,
        "cohere": by_cohere,
        "ollama": by_ollama,
        "google": by_google,
    }


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.slow
def test_the_official_client_reads_the_same(folder: str) -> None:
    compared = 0
    for exchange in recorded(folder):
        told = json.loads(exchange.body)
        unread = (
            exchange.vendor
            == "perplexity"  # bytes in base64, which OpenAI's client takes for floats
            or (folder == "cohere" and not isinstance(told["embeddings"], dict))  # version 1
            or (folder == "google" and "embedding" in told)  # the client sends batches only
            or "images" in told
            or told.get("usage", {}).get("prompt_tokens", 1) is None
        )
        if unread:
            continue
        vectors, tokens = clients(exchange)[FOLDERS[folder]]()
        result = read(exchange)
        assert result.embeddings == [list(map(float, vector)) for vector in vectors], exchange
        if tokens is not None and "prompt_tokens" in told.get("usage", {"prompt_tokens": 0}):
            assert result.usage.input_tokens == tokens, exchange
        compared += 1
    assert compared > 0


def mutated(value: Any, dice: random.Random) -> Any:
    """The value with something in it replaced."""
    if isinstance(value, (dict, list)) and value and dice.random() < 0.85:
        copy: Any = value.copy()
        place = dice.choice(list(copy) if isinstance(copy, dict) else range(min(3, len(copy))))
        if isinstance(copy, dict) and dice.random() < 0.1:
            del copy[place]
        else:
            copy[place] = mutated(copy[place], dice)
        return copy
    return dice.choice([None, "", "x", -1, 2.5, True, [], {}, [None], [[1.0]], {"x": 1}])


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.slow
def test_what_is_damaged_is_read_or_an_error_of_our_tree(folder: str) -> None:
    dice, refused = random.Random(folder), 0
    for exchange in recorded(folder):
        wire, told = wire_of(exchange), json.loads(exchange.body)
        for _ in range(20):
            try:
                result = wire.load_response(json.dumps(mutated(told, dice)).encode())
                json.dumps(wire.dump_response(result))
            except DragomanError:
                refused += 1
            if exchange.request is not None:
                body = mutated(exchange.request, dice)
                try:
                    request = wire.load_request(
                        body if isinstance(body, dict) else {}, path=exchange.url
                    )
                except DragomanError:
                    continue
                assert wire.dump_request(request) == body, exchange
    assert refused > 3


def test_bytes_in_base64_are_no_floats() -> None:
    """Perplexity's default is a signed byte for each number."""
    (exchange,) = [e for e in recorded("openai_embeddings") if e.vendor == "perplexity"]
    result = read(exchange)
    assert result.dimensions == 1024
    assert all(number == int(number) and -128 <= number <= 127 for number in result.embeddings[0])
    assert result.metadata["usage"]["cost"]["currency"] == "USD"
