"""`EmbeddingsModel` and the agent's methods on top of it (D-78, D-140 … D-145)."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Agent, BatchEmbeddingsResult, Capability, Message, Usage, providers
from dragoman.errors import (
    AuthenticationError,
    DecodeError,
    InvalidRequestError,
    ModelNotFoundError,
    RateLimitError,
    SettingsError,
)
from dragoman.model import EmbeddingsModel
from dragoman.model.embeddings_model import _join_results
from dragoman.request import EmbeddingsRequest
from dragoman.transport import Retry
from dragoman.transport.exchange import Exchange
from dragoman.transport.player import Player
from support.embeddings import Embedder, made_up, texts_of

pytestmark = pytest.mark.anyio

KEY: Any = {"api_key": "k", "environment": {}}
BATCHES = {"openai": 512, "openai-responses": 512, "google": 100, "mistral": 100, "cohere": 96}
ABLE = [
    provider
    for provider in providers.REGISTRY.providers()
    if Capability.embeddings in provider.capabilities
]


def model(name: str = "openai", **how: Any) -> tuple[EmbeddingsModel, Embedder]:
    provider = providers.get(name)
    if not isinstance(provider.base_url, str):
        provider = msgspec.structs.replace(provider, base_url="http://x/v1", embeddings_url=None)
    transport = Embedder(
        provider, **{key: how.pop(key) for key in ("before", "edit") if key in how}
    )
    return EmbeddingsModel(
        provider, how.pop("model", "m"), transport=transport, **KEY, **how
    ), transport


@pytest.mark.parametrize(("name", "size"), BATCHES.items())
async def test_d140_batches_are_the_providers_and_order_is_kept(name: str, size: int) -> None:
    embedder, transport = model(name)
    texts = [f"text {number}" for number in range(2 * size + 3)]
    result = await embedder.embed_documents(texts)
    assert sorted((len(request.texts) for request in transport.requests), reverse=True) == [
        size,
        size,
        3,
    ]
    assert result.count == len(texts)
    for vector, text in zip(result.embeddings, texts, strict=True):
        assert vector == pytest.approx(made_up(text), abs=1e-6)


@given(
    count=st.integers(1, 40),
    size=st.integers(1, 9),
    concurrency=st.integers(1, 6),
    waits=st.lists(st.integers(1, 5), min_size=40, max_size=40),
)
def test_d140_order_is_kept_whatever_answer_comes_first(
    count: int, size: int, concurrency: int, waits: list[int]
) -> None:
    """And usage is the sum (D-141), no text is asked for twice, and never more requests are under
    way than allowed."""
    turns = iter(waits)

    async def before(_: EmbeddingsRequest) -> None:
        for _turn in range(next(turns)):
            await asyncio.sleep(0)

    embedder, transport = model(before=before)
    texts = [f"number {number}" for number in range(count)]
    seen: list[int] = []
    how: Any = {"batch_size": size, "max_concurrency": concurrency, "progress": seen.append}
    result = asyncio.run(embedder.embed_documents(texts, **how))
    assert texts_of(transport.requests) == texts
    assert transport.most == min(concurrency, math.ceil(count / size))
    assert result.usage == Usage(input_tokens=2 * count, output_tokens=0, total_tokens=2 * count)
    assert seen == sorted(seen) and seen[-1] == count
    for vector, text in zip(result.embeddings, texts, strict=True):
        assert vector == pytest.approx(made_up(text), abs=1e-6)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=30), st.integers(1, 40))
def test_a_request_holds_no_more_characters_than_the_provider_takes(
    lengths: list[int], most: int
) -> None:
    embedder, transport = model()
    embedder.provider = msgspec.structs.replace(embedder.provider, embeddings_characters=most)
    texts = ["x" * length for length in lengths]
    asyncio.run(embedder.embed_documents(texts))
    assert texts_of(transport.requests) == texts
    for request in transport.requests:
        assert len(request.texts) == 1 or sum(map(len, request.texts)) <= most


async def test_d141_numbers_are_added_where_several_requests_tell_of_them() -> None:
    def edit(result: BatchEmbeddingsResult) -> BatchEmbeddingsResult:
        said = {
            "model": "served",
            "provider": {"name": "P"},
            "usage": {"cost": 0.25},
            "notes": ["n"],
            "cached": False,
        }
        return msgspec.structs.replace(
            result, metadata=said, id=f"id {result.usage and result.usage.total_tokens}"
        )

    embedder, _ = model(edit=edit)
    result = await embedder.embed_documents(["one", "two two", "three three three"], batch_size=1)
    assert result.metadata == {
        "model": "served",
        "provider": {"name": "P"},
        "usage": {"cost": 0.75},
        "notes": ["n"] * 3,
        "cached": False,
    }
    assert result.id == "id 1"


async def test_d141_what_only_one_request_tells_is_kept() -> None:
    told: list[Any] = [
        (None, {"cached": True, "first": 1}),
        (Usage(input_tokens=2, output_tokens=0, total_tokens=2), {"cached": False, "last": [2]}),
    ]

    def edit(result: BatchEmbeddingsResult) -> BatchEmbeddingsResult:
        usage, metadata = told.pop(0)
        return msgspec.structs.replace(result, usage=usage, metadata=metadata)

    embedder, _ = model("cohere", edit=edit)
    result = await embedder.embed_documents(["four", "more"], batch_size=1, max_concurrency=1)
    assert {key: result.metadata[key] for key in ("cached", "first", "last")} == {
        "cached": True,
        "first": 1,
        "last": [2],
    }
    assert result.usage == Usage(input_tokens=1 + 2, output_tokens=0, total_tokens=3)


def test_what_many_requests_tell_is_joined_by_halves() -> None:
    """Else lists, such as Cohere's vectors of other types, were copied once for each request."""

    class Deep(float):
        depth = 0

        def __add__(self, other: Any) -> Deep:
            both = Deep(float(self) + float(other))
            both.depth = 1 + max(self.depth, other.depth)
            return both

    told = [
        BatchEmbeddingsResult([[1.0]], metadata={"cost": Deep(1), "notes": [number]})
        for number in range(250)
    ]
    metadata = _join_results(told).metadata
    assert metadata == {"cost": 250.0, "notes": list(range(250))}
    assert metadata["cost"].depth == 8


async def test_a_request_goes_where_the_provider_is_with_key_and_headers() -> None:
    places: list[str] = []

    async def place(name: str) -> str:
        places.append(name)
        return "http://elsewhere/v1/"

    provider = msgspec.structs.replace(providers.get("openai"), embeddings_url=place)
    for how, url, key in (
        ({}, "http://elsewhere/v1/embeddings", "Bearer own"),
        ({"base_url": "http://given"}, "http://given/embeddings", "Bearer own"),
        (
            {"environment": {"OPENAI_API_KEY": "e", "OPENAI_BASE_URL": "http://env"}},
            "http://env/embeddings",
            "Bearer own",
        ),
        (
            {"api_key": None, "environment": {"OPENAI_API_KEY": "e"}},
            "http://elsewhere/v1/embeddings",
            "Bearer e",
        ),
    ):
        transport = Embedder(provider)
        asked: Any = {"api_key": "own", "headers": {"X-Own": "1"}, "environment": {}, **how}
        await EmbeddingsModel(provider, "named", transport=transport, **asked).embed_query("a")
        (sent,) = transport.sent
        assert (sent.path, sent.headers["authorization"], sent.headers["x-own"]) == (url, key, "1")
        assert sent.headers["content-type"] == "application/json"
    assert set(places) == {"named"}


async def test_characters_that_fit_exactly_go_together() -> None:
    embedder, transport = model()
    embedder.provider = msgspec.structs.replace(embedder.provider, embeddings_characters=4)
    await embedder.embed_documents(["aa", "bb", "c"], max_concurrency=1)
    assert [request.texts for request in transport.requests] == [("aa", "bb"), ("c",)]


async def test_d141_tokens_are_estimated_where_the_provider_tells_none_and_marked_as_such() -> None:
    embedder, _ = model("google")
    result = await embedder.embed_documents(["x" * 9, "y" * 4], batch_size=1)
    assert result.usage == Usage(input_tokens=3 + 1, output_tokens=0, total_tokens=4)
    assert result.metadata == {"usage_estimated": True}
    embedder, _ = model("openai")
    assert "usage_estimated" not in (await embedder.embed_query("x")).metadata


@pytest.mark.parametrize("provider", ABLE, ids=lambda provider: provider.name)
async def test_d142_no_texts_are_no_request_whatever_the_provider(provider: Any) -> None:
    embedder, transport = model(provider.name)
    result = await embedder.embed_documents([])
    assert (result.embeddings, result.count, result.dimensions, result.usage) == ([], 0, 0, None)
    assert transport.sent == []


@pytest.mark.parametrize("provider", ABLE, ids=lambda provider: provider.name)
async def test_d143_dimensions_are_asked_for_by_queries_and_documents(provider: Any) -> None:
    embedder, transport = model(provider.name)
    assert len((await embedder.embed_query("a b", dimensions=8)).embeddings) == 8
    assert (await embedder.embed_documents(["a", "b"], dimensions=8)).dimensions == 8
    assert {request.dimensions for request in transport.requests} == {8}
    assert {request.model for request in transport.requests} == {"m"}


@pytest.mark.parametrize(
    ("name", "field", "query", "document"),
    [
        ("google", "taskType", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"),
        ("cohere", "input_type", "search_query", "search_document"),
    ],
)
async def test_d144_what_a_vector_is_for_is_told(
    name: str, field: str, query: str, document: str
) -> None:
    embedder, transport = model(name)
    await embedder.embed_query("q")
    await embedder.embed_documents(["d"])
    await embedder.embed_documents(["d"], options={field: "CLUSTERING"})
    bodies = [sent.body for sent in transport.sent if isinstance(sent.body, dict)]
    assert [(body.get("requests") or [body])[0][field] for body in bodies] == [
        query,
        document,
        "CLUSTERING",
    ]


async def test_d145_shortened_vectors_have_unit_length() -> None:
    def edit(result: BatchEmbeddingsResult) -> BatchEmbeddingsResult:
        return msgspec.structs.replace(result, embeddings=[[0.3, 0.4]] * result.count)

    embedder, _ = model("mistral", edit=edit)
    assert (await embedder.embed_query("q", dimensions=2)).embeddings == pytest.approx([0.6, 0.8])
    assert (await embedder.embed_query("q")).embeddings == [0.3, 0.4]  # as it came


async def test_options_are_passed_on_as_they_are() -> None:
    embedder, transport = model()
    await embedder.embed_query("q", options={"user": "u", "encoding_format": "float"})
    assert transport.sent[0].body == {
        "model": "m",
        "input": ["q"],
        "user": "u",
        "encoding_format": "float",
    }


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda vectors: vectors[:1], "1 vectors for 2 texts"),
        (lambda vectors: [*vectors, vectors[0]], "3 vectors for 2 texts"),
        (lambda vectors: [vectors[0], []], r"of \[0, 16\] numbers"),
        (lambda vectors: [[], []], "of \\[0\\] numbers"),
        (lambda vectors: [vectors[0], vectors[1][:3]], "of \\[3, 16\\] numbers"),
    ],
)
async def test_vectors_that_are_not_what_was_asked_for_are_an_error(
    edit: Any, message: str
) -> None:
    embedder, _ = model(
        edit=lambda result: msgspec.structs.replace(result, embeddings=edit(result.embeddings))
    )
    with pytest.raises(DecodeError, match=message) as caught:
        await embedder.embed_documents(["a", "b"])
    assert caught.value.provider == "openai" and caught.value.body


async def test_dimensions_that_a_model_does_not_have_are_an_error_and_packed_bits_are_not() -> None:
    def longer(result: BatchEmbeddingsResult) -> BatchEmbeddingsResult:
        return msgspec.structs.replace(result, embeddings=[[1.0] * 24] * result.count)

    embedder, _ = model(edit=longer)
    with pytest.raises(InvalidRequestError, match="24 numbers and not of 8: leave dimensions out"):
        await embedder.embed_query("a", dimensions=8)
    assert len((await embedder.embed_query("a", dimensions=192)).embeddings) == 24


async def test_texts_that_are_none_are_refused_before_anything_is_sent() -> None:
    embedder, transport = model()
    with pytest.raises(InvalidRequestError, match=r"texts\[1\] is empty"):
        await embedder.embed_documents(["a", ""])
    with pytest.raises(InvalidRequestError, match="takes a list"):
        await embedder.embed_documents("a text")
    with pytest.raises(InvalidRequestError, match=r"texts\[0\] must be a string, not int"):
        await embedder.embed_documents([1])
    for how in ({"batch_size": 0}, {"max_concurrency": 0}):
        with pytest.raises(InvalidRequestError, match="must be above 0"):
            await embedder.embed_documents(["a"], **how)
    assert transport.sent == []


async def test_half_a_character_is_an_error_that_shows_where() -> None:
    """Of a text to be embedded, and of a history that is given as messages. A prompt is mended
    (1.16)."""
    cut = "a cut \ud83d here"
    async with Agent("openai", base_url="http://127.0.0.1:9/v1", **KEY) as agent:
        history = [Message.user(cut), Message.model("y")]
        for send in (lambda: agent.embed_query(cut), lambda: agent.send("x", history=history)):
            with pytest.raises(
                InvalidRequestError, match=r'half a character.*"a cut \\ud83d here"'
            ) as caught:
                await send()
            assert caught.value.provider == "openai"


async def test_the_first_failure_stops_the_others_and_is_raised_as_itself() -> None:
    reached: list[str] = []
    others_wait = anyio.Event()

    async def before(request: EmbeddingsRequest) -> None:
        if request.texts == ("bad",):
            await others_wait.wait()
            raise RateLimitError("slower", retry_after=3.0)
        reached.append(request.texts[0])
        if len(reached) == 2:
            others_wait.set()
        await anyio.sleep_forever()

    embedder, transport = model(before=before)
    with pytest.raises(RateLimitError, match="slower") as caught:
        await embedder.embed_documents(
            ["a", "b", "bad", "never asked for"], batch_size=1, max_concurrency=3
        )
    assert caught.value.retry_after == 3.0 and caught.value.provider == "openai"
    assert transport.under_way == 0
    assert "never asked for" not in texts_of(transport.requests)


async def test_a_failure_keeps_its_cause() -> None:
    async def before(_: EmbeddingsRequest) -> None:
        raise ModelNotFoundError("no such model") from KeyError("m")

    embedder, _ = model(before=before)
    with pytest.raises(ModelNotFoundError) as caught:
        await embedder.embed_query("a")
    assert isinstance(caught.value.__cause__, KeyError)


async def test_a_cancelled_caller_leaves_nothing_under_way() -> None:
    started = anyio.Event()

    async def before(_: EmbeddingsRequest) -> None:
        started.set()
        await anyio.sleep_forever()

    embedder, transport = model(before=before)
    task = asyncio.ensure_future(embedder.embed_documents(["a", "b"], batch_size=1))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert transport.under_way == 0


async def test_an_answer_that_is_an_error_is_tried_again_and_then_told() -> None:
    good = b'{"object":"list","data":[{"index":0,"embedding":[0.5]}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}'
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    player = Player(
        [
            Exchange(status=503),
            Exchange(status=429, headers={"retry-after": "7"}),
            Exchange(body=good),
        ]
    )
    embedder = EmbeddingsModel(providers.get("openai"), transport=Retry(player, sleep=sleep), **KEY)
    assert (await embedder.embed_query("a")).embeddings == [0.5]
    assert len(waits) == 2 and waits[1] == 7.0
    refused = Exchange(
        status=404,
        headers={"x-request-id": "r1"},
        body=b'{"error":{"message":"no model","code":"model_not_found"}}',
    )
    embedder = EmbeddingsModel(providers.get("openai"), transport=Player([refused]), **KEY)
    with pytest.raises(ModelNotFoundError) as caught:
        await embedder.embed_query("a")
    assert (caught.value.provider, caught.value.status, caught.value.request_id) == (
        "openai",
        404,
        "r1",
    )


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"data": 3}', b'{"data": [{"embedding": ["x"]}]}', b"\xff"]
)
async def test_an_answer_that_is_no_vector_is_a_decode_error(body: bytes) -> None:
    embedder = EmbeddingsModel(
        providers.get("openai"), transport=Player([Exchange(body=body)]), **KEY
    )
    with pytest.raises(DecodeError) as caught:
        await embedder.embed_query("a")
    assert caught.value.provider == "openai"


@pytest.mark.parametrize("name", ["anthropic", "groq", "deepseek", "xai"])
async def test_d78_a_provider_without_embeddings_says_who_has_them(name: str) -> None:
    agent = Agent(name, **KEY)
    with pytest.raises(
        SettingsError, match=r"makes no embeddings; these do: .*cohere.*openai"
    ) as caught:
        await agent.embed_query("a")
    assert caught.value.provider == name
    with pytest.raises(SettingsError, match="makes no embeddings"):
        agent.embed_documents_sync([])


async def test_a_provider_without_a_default_model_asks_for_one() -> None:
    with pytest.raises(SettingsError, match=r"azure\?embeddings=MODEL"):
        await Agent("azure", **KEY).embed_query("a")


@pytest.mark.parametrize(
    ("string", "asked"),
    [
        ("openai", "text-embedding-3-small"),
        ("openai:gpt-4o", "text-embedding-3-small"),
        ("openai?embeddings=text-embedding-3-large", "text-embedding-3-large"),
        ("openai?chat=gpt-4o&embeddings=e", "e"),
        ("openai-responses", "text-embedding-3-small"),
        ("mistral", "mistral-embed"),
        ("cohere", "embed-v4.0"),
        ("google", "gemini-embedding-001"),
        ("ollama", "nomic-embed-text"),
    ],
)
async def test_the_agent_asks_the_model_of_its_string_else_the_providers(
    string: str, asked: str
) -> None:
    transport = Embedder(providers.get(string.partition("?")[0].partition(":")[0]))
    async with Agent(string, transport=transport, **KEY) as agent:
        single = await agent.embed_query("one text")
        several = await agent.embed_documents(["one text", "another"])
    assert single.embeddings == pytest.approx(several.embeddings[0])
    assert {request.model for request in transport.requests} == {asked}
    assert single.usage and single.usage.input_tokens
    headers = transport.sent[0].headers
    assert any(
        "k" in value
        for name, value in headers.items()
        if name in ("authorization", "x-goog-api-key")
    )


def test_the_agents_methods_work_without_a_loop_too() -> None:
    transport = Embedder(providers.get("openai"))
    agent = Agent("openai", transport=transport, **KEY)
    assert agent.embed_query_sync("a", dimensions=4).embeddings == pytest.approx(made_up("a", 4))
    assert agent.embed_documents_sync(["a", "b"]).count == 2


async def test_a_key_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(AuthenticationError, match="OPENAI_API_KEY"):
        await Agent("openai", transport=Player([])).embed_documents(["a"])
