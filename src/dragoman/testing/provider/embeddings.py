"""Checks of a provider's embeddings: texts in, vectors out, in the same order.

The scripted server answers each text with `_make_vector`, which depends only on the text. So a
check can tell which text a vector belongs to, whatever the batches were. Against a real provider
the checks compare lengths and nearness instead. The last check runs for providers without
embeddings, which must name others in their error.
"""

from __future__ import annotations

from math import cos, isfinite, sqrt

from dragoman.capability import Capability
from dragoman.embeddings.similarity import cosine_similarity
from dragoman.errors import RateLimitError, SettingsError
from dragoman.result import Vector
from dragoman.testing.check import require, require_equal
from dragoman.testing.provider.bench import ProviderBench, make_reply, provider_check

__all__ = [
    "embeddings_come_in_order",
    "embeddings_of_no_texts_send_nothing",
    "embeddings_errors_have_their_class",
    "embeds_documents",
    "embeds_queries",
    "embeds_with_dimensions",
    "providers_without_embeddings_say_so",
]

_LOOK = "the wire's embeddings, and the record's embeddings_… fields"
_TEXTS = ("A cat sleeps on the mat.", "A kitten naps on a rug.", "Stock prices fell on Monday.")


def _make_vector(text: str, size: int = 8) -> Vector:
    """Returns a vector of unit length that depends only on the text's bytes."""
    seed = sum(position * byte for position, byte in enumerate(text.encode(), 1))
    numbers = [cos(seed * position) for position in range(1, size + 1)]
    length = sqrt(sum(number * number for number in numbers))
    return [number / length for number in numbers]


def _is_near(vector: Vector, other: Vector) -> bool:
    """True if two vectors differ by no more than the precision of 32 bits."""
    return len(vector) == len(other) and all(
        # Providers send 32-bit floats.
        abs(a - b) < 1e-5
        for a, b in zip(vector, other, strict=True)
    )


@provider_check(Capability.embeddings, look=_LOOK, live=True)
async def embeds_queries(bench: ProviderBench) -> None:
    """A text becomes a vector of finite numbers, with the tokens that it cost."""
    async with bench.agent(vectors=_make_vector) as agent:
        result = await agent.embed_query(_TEXTS[0])
    require(
        result.embeddings and all(map(isfinite, result.embeddings)),
        f"the vector is {result.embeddings[:5]}…",
    )
    require(
        result.usage is not None and (result.usage.input_tokens or 0) > 0,
        f"the usage is {result.usage}",
    )
    if bench.scripted:
        require(
            _is_near(result.embeddings, _make_vector(_TEXTS[0])),
            "the vector is not the one that the server sent",
        )
        require_equal(bench.server.embedded[-1].texts, _TEXTS[:1], "the texts that arrived")


@provider_check(Capability.embeddings, look=_LOOK, live=True)
async def embeds_documents(bench: ProviderBench) -> None:
    """Texts become vectors of one length. Similar texts have nearer vectors than unrelated ones."""
    async with bench.agent(vectors=_make_vector) as agent:
        result = await agent.embed_documents(_TEXTS)
    require_equal(result.count, len(_TEXTS), "the number of vectors")
    require_equal(
        {len(vector) for vector in result.embeddings},
        {result.dimensions},
        "the lengths of the vectors",
    )
    if bench.scripted:
        for text, vector in zip(_TEXTS, result.embeddings, strict=True):
            require(
                _is_near(vector, _make_vector(text)),
                f"the vector of {text!r} is not the one that the server sent",
            )
        return
    cat, kitten, stocks = result.embeddings
    bench.require_of_model(
        cosine_similarity(cat, kitten) > cosine_similarity(cat, stocks),
        "the vector of a cat is nearer to stock prices than to a kitten",
    )


@provider_check(Capability.embeddings, look=_LOOK, live=True)
async def embeddings_come_in_order(bench: ProviderBench) -> None:
    """Texts beyond the batch size are sent in several requests, and their vectors come back in
    order."""
    # Seven texts in batches of two: the last batch is smaller.
    texts = [f"{text} {number}" for number in range(3) for text in _TEXTS][:7]
    async with bench.agent(vectors=_make_vector) as agent:
        result = await agent.embed_documents(texts, batch_size=2)
        again = (await agent.embed_query(texts[-1])).embeddings if bench.scripted else None
    require_equal(result.count, len(texts), "the number of vectors")
    # Only a scripted server tells which texts a batch had.
    if again is None:
        return
    require_equal(
        sorted(text for request in bench.server.embedded[:-1] for text in request.texts),
        sorted(texts),
        "the texts that arrived",
    )
    require_equal(
        max(len(request.texts) for request in bench.server.embedded),
        2,
        "the most texts of a request",
    )
    for text, vector in zip(texts, result.embeddings, strict=True):
        require(_is_near(vector, _make_vector(text)), f"the vector of {text!r} is another's")


@provider_check(Capability.embeddings, look=_LOOK)
async def embeddings_of_no_texts_send_nothing(bench: ProviderBench) -> None:
    """Without texts there are no vectors and no request."""
    async with bench.agent(vectors=_make_vector) as agent:
        result = await agent.embed_documents([])
    require_equal(
        (result.count, len(bench.server.sent)), (0, 0), "the numbers of vectors and of requests"
    )


@provider_check(Capability.embeddings, look=_LOOK)
async def embeds_with_dimensions(bench: ProviderBench) -> None:
    """`dimensions=` arrives and sets the length of the vectors."""
    async with bench.agent(vectors=lambda text: _make_vector(text, 4)) as agent:
        result = await agent.embed_documents(_TEXTS, dimensions=4)
    require_equal(result.dimensions, 4, "the length of the vectors")
    # Ollama's newer servers know it, llama.cpp cuts
    arrived = {request.dimensions for request in bench.server.embedded} - {None}
    require_equal(arrived, {4}, "the length that arrived")


@provider_check(Capability.embeddings, look="the wire's load_error")
async def embeddings_errors_have_their_class(bench: ProviderBench) -> None:
    """A refused embeddings request raises the same error class as a chat request."""
    async with bench.agent(
        RateLimitError("slower", retry_after=1.0), vectors=_make_vector
    ) as agent:
        try:
            await agent.embed_documents(_TEXTS)
        except RateLimitError as error:
            require_equal(error.provider, bench.name, "the provider of the error")
            return
    require(False, "a refused request raised no RateLimitError")


@provider_check(look="the record's capabilities")
async def providers_without_embeddings_say_so(bench: ProviderBench) -> None:
    """A provider without embeddings raises an error that names providers with embeddings."""
    if bench.can(Capability.embeddings):
        return
    async with bench.agent(make_reply("Hello.")) as agent:
        try:
            await agent.embed_query("Hello.")
        except SettingsError as error:
            require(
                "openai" in error.message,
                f"the error names no provider with embeddings: {error.message}",
            )
            return
    require(False, "embeddings of a provider that has none raised no SettingsError")
