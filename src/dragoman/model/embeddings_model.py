"""A model that turns texts into vectors: a provider's record, its wire and a transport put
together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import accumulate
from math import ceil, sqrt
from operator import add
from typing import Any, TypedDict, Unpack, cast

import anyio
import msgspec

from dragoman import wires
from dragoman.capability import Capability
from dragoman.codec.embeddings import count_input_tokens
from dragoman.codec.error_rules import find_request_id
from dragoman.errors import DecodeError, DragomanError, InvalidRequestError, SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.logs import logger
from dragoman.message import Origin, Usage
from dragoman.model.access import Access, Key, encoding_error
from dragoman.model.metering import PlannedCall, meter_vectors
from dragoman.model.tokens import text_tokens
from dragoman.providers.base_url import join_url
from dragoman.providers.provider import Provider
from dragoman.request import EmbeddingsRequest, HttpRequest, Purpose
from dragoman.result import BatchEmbeddingsResult, EmbeddingsResult, Vector
from dragoman.transport.base import Transport

__all__ = ["EmbeddingsModel", "EmbeddingsOptions"]

_LOG = logger("embeddings")
_WORKERS = 8
_CHARACTERS_A_TOKEN = 4
"""By which tokens are estimated where a provider tells none."""
_NEARLY = 0.999
"""A vector that is shorter has been cut."""


class EmbeddingsOptions(TypedDict, total=False):
    """Options of every embedding call."""

    dimensions: int | None
    """Numbers of each vector, for models that can shorten theirs. Shortened vectors are given unit
    length."""
    options: JsonMap
    """Body fields without a neutral name, passed on as they are (`user`, `truncate`, `input_type`,
    …)."""
    batch_size: int
    """Most texts of one request, in place of the provider's usual number."""
    max_concurrency: int
    """Most requests that are under way at once; 8 where nothing is said."""
    progress: Callable[[int], object]
    """Called with the number of texts that are done, each time that a request is."""
    keep: Callable[[int, Sequence[Vector]], object]
    """Called each time that a request is done, with the place of its first text and the vectors of
    its texts: what is kept so is not lost where a later request fails."""


class EmbeddingsModel:
    """An embeddings model of a provider. Tasks and event loops may share it."""

    def __init__(
        self,
        provider: Provider,
        name: str | None = None,
        *,
        transport: Transport,
        access: Access | None = None,
        api_key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Creates the model. `access`: existing access to the provider; without it, one is made
        from the arguments that follow.

        Raises:
            SettingsError: the provider makes no embeddings, or has no default model and none is given.
        """
        wire = wires.embeddings(provider.wire)
        if wire is None or Capability.embeddings not in provider.capabilities:
            raise SettingsError(_unsupported_message(provider), provider=provider.name)
        self.provider = provider
        self.name = name or provider.embeddings_model or ""
        if not self.name:
            raise SettingsError(
                f"{provider.display_name} has no default model for embeddings; name one: {provider.name}?embeddings=MODEL",
                provider=provider.name,
            )
        self.wire = wire
        self._access = access or Access(
            provider,
            transport,
            api_key=api_key,
            base_url=base_url,
            headers=headers,
            environment=environment,
        )

    @property
    def embeds_by_purpose(self) -> bool:
        """True if a request to the embeddings model says whether its texts are searched with, or to
        be found."""
        query = EmbeddingsRequest(
            self.name, ("text",), "query", options=self.provider.embeddings_options
        )
        quirks = self.provider.quirks
        document = query.replace(purpose="document")
        return self.wire.dump_request(query, quirks=quirks) != self.wire.dump_request(
            document, quirks=quirks
        )

    async def embed_query(
        self, text: str, **options: Unpack[EmbeddingsOptions]
    ) -> EmbeddingsResult:
        """Returns the embeddings model's vector of a text to search with.

        Raises:
            InvalidRequestError: the text is empty, or the model does not give so many dimensions.
            ProviderError: the provider refused; which subclass tells why.
            DecodeError: it answered something else than a vector.
        """
        result = await self._embed([text], "query", **options)
        return EmbeddingsResult(
            result.embeddings[0], result.usage, result.finish_reason, result.metadata, result.id
        )

    async def embed_documents(
        self, texts: Iterable[str], **options: Unpack[EmbeddingsOptions]
    ) -> BatchEmbeddingsResult:
        """Returns the embeddings model's vectors of texts to be found, in the same order. Without
        texts no request is sent.

        Many texts are sent in batches as the provider takes them, several at once. The first that
        fails stops the others, and its error is raised.

        Raises:
            InvalidRequestError, ProviderError, DecodeError: as `embed_query`.
        """
        if isinstance(texts, str):
            raise InvalidRequestError(
                "embed_documents takes a list of texts; for a single one there is embed_query"
            )
        return await self._embed(list(texts), "document", **options)

    async def embed(
        self,
        texts: Iterable[str],
        purpose: Purpose = "document",
        **options: Unpack[EmbeddingsOptions],
    ) -> BatchEmbeddingsResult:
        """Returns the vectors of texts for one purpose, as `embed_documents` does.

        Raises:
            InvalidRequestError, ProviderError, DecodeError: as `embed_query`.
        """
        return await self._embed(list(texts), purpose, **options)

    async def _embed(
        self, texts: Sequence[str], purpose: Purpose, **options: Unpack[EmbeddingsOptions]
    ) -> BatchEmbeddingsResult:
        """Checks the texts to embed, sends them in batches, several at once, and joins the
        results."""
        if unknown := options.keys() - EmbeddingsOptions.__annotations__.keys():
            raise TypeError(
                f"embedding takes no argument {', '.join(sorted(unknown))}; it takes "
                f"{', '.join(EmbeddingsOptions.__annotations__)}"
            )
        _check_texts(texts)
        request = EmbeddingsRequest(
            self.name,
            purpose=purpose,
            dimensions=options.get("dimensions"),
            options={**self.provider.embeddings_options, **options.get("options", {})},
        )
        size, workers = (
            options.get("batch_size", self.provider.embeddings_batch),
            options.get("max_concurrency", _WORKERS),
        )
        if size < 1 or workers < 1:
            raise InvalidRequestError(
                "nothing would ever be sent: batch_size and max_concurrency must be above 0"
            )
        batches = list(_split_batches(texts, size, self.provider.embeddings_characters))
        if not batches:
            return BatchEmbeddingsResult([])
        _LOG.debug("%s: %d texts in %d requests", self.name, len(texts), len(batches))
        progress, keep = options.get("progress", _ignore), options.get("keep", _ignore)
        starts = list(accumulate(map(len, batches), initial=0))
        results: list[BatchEmbeddingsResult] = [_EMPTY_RESULT] * len(batches)
        # Shared by the workers: each takes the next batch when it is free.
        waiting = iter(enumerate(batches))
        done = 0

        async def work() -> None:
            nonlocal done
            for index, batch in waiting:
                batch_request = request.replace(texts=tuple(batch))
                results[index] = await meter_vectors(
                    partial(self._send, batch_request), partial(self._plan_call, batch_request)
                )
                keep(starts[index], results[index].embeddings)
                done += len(batch)
                progress(done)

        try:
            async with anyio.create_task_group() as group:
                for _ in range(min(workers, len(batches))):
                    group.start_soon(work)
        except BaseExceptionGroup as failed:
            # The first failure stopped the other requests: it is what happened.
            error = failed.exceptions[0]
            raise error from error.__cause__
        return _join_results(results)

    def _plan_call(self, request: EmbeddingsRequest) -> PlannedCall:
        """Returns what is known of a call before it is made."""
        origin = Origin(self.provider.name, self._access.endpoint, self.name)
        return PlannedCall(origin, lambda: ceil(sum(map(text_tokens, request.texts))), 0)

    async def _send(self, request: EmbeddingsRequest) -> BatchEmbeddingsResult:
        """Sends one request to the embeddings model and returns its vectors, checked for count and
        length."""
        route = await self._access.route(self.name, embeddings=True)
        http = self.wire.dump_http(request, quirks=self.provider.quirks)
        headers_sent = {"content-type": "application/json", **http.headers}
        try:
            url = join_url(route.base_url, http.path)
            headers, body = await self._access.fetch(
                HttpRequest(url, headers_sent, http.body), route
            )
        except UnicodeEncodeError as error:
            raise encoding_error(error).at(provider=self.provider.name) from None
        try:
            return _check_result(self.wire.load_response(body), request)
        except DragomanError as error:
            error.at(provider=self.provider.name, request_id=find_request_id(headers), body=body)
            raise self._access.redact(error) from error.__cause__


def _check_texts(texts: Sequence[str]) -> None:
    """Raises `InvalidRequestError` if a text to embed is empty or no string."""
    for index, text in enumerate(texts):
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - of callers without types
            raise InvalidRequestError(f"texts[{index}] must be a string, not {type(text).__name__}")
        if not text:
            raise InvalidRequestError(
                f"texts[{index}] is empty and cannot be embedded; leave it out"
            )


def _unsupported_message(provider: Provider) -> str:
    """Returns the message that a provider makes no embeddings, with the names of those that do."""
    from dragoman.providers.registry import REGISTRY

    able = [
        other.name for other in REGISTRY.providers() if Capability.embeddings in other.capabilities
    ]
    return (
        f"{provider.display_name} provider makes no embeddings; these do: {', '.join(sorted(able))}"
    )


def _split_batches(texts: Iterable[str], size: int, characters: int | None) -> Iterator[list[str]]:
    """Yields batches for the embeddings model of at most `size` texts and `characters` characters;
    a longer text goes alone."""
    batch: list[str] = []
    batch_characters = 0
    for text in texts:
        if batch and (
            len(batch) == size
            or (characters is not None and batch_characters + len(text) > characters)
        ):
            yield batch
            batch, batch_characters = [], 0
        batch.append(text)
        batch_characters += len(text)
    if batch:
        yield batch


def _check_result(
    result: BatchEmbeddingsResult, request: EmbeddingsRequest
) -> BatchEmbeddingsResult:
    """Returns the embeddings with a usage, estimated if none was reported. Raises if the vectors
    are not those that were asked for."""
    dimensions = request.dimensions
    lengths = {len(vector) for vector in result.embeddings}
    if result.count != len(request.texts) or len(lengths) != 1 or not min(lengths):
        raise DecodeError(
            f"the provider gave {result.count} vectors for {len(request.texts)} texts, of {sorted(lengths)} numbers each"
        )
    if dimensions is not None:
        # Binary embeddings pack eight dimensions into one number.
        if result.dimensions not in (dimensions, dimensions / 8):
            raise InvalidRequestError(
                f"{request.model} gives vectors of {result.dimensions} numbers and not of {dimensions}: leave dimensions out"
            )
        result = msgspec.structs.replace(
            result, embeddings=[_normalize(vector) for vector in result.embeddings]
        )
    if result.usage is None:
        tokens = ceil(sum(map(len, request.texts)) / _CHARACTERS_A_TOKEN)
        metadata = {**result.metadata, "usage_estimated": True}
        result = msgspec.structs.replace(
            result, usage=count_input_tokens(Usage(input_tokens=tokens)), metadata=metadata
        )
    return result


def _normalize(vector: Vector) -> Vector:
    """Returns the embedding vector at unit length. Vectors that Gemini and Mistral cut short need
    it."""
    length = sqrt(sum(number * number for number in vector))
    if not 0 < length < _NEARLY:
        return vector
    return [number / length for number in vector]


def _join_results(results: Sequence[BatchEmbeddingsResult]) -> BatchEmbeddingsResult:
    """Joins the embeddings of all batches into one result."""
    first = results[0]
    usages = [result.usage for result in results if result.usage is not None]
    metadata = [result.metadata for result in results]
    # Merged in pairs, so that long lists are copied log(n) times instead of n times.
    while len(metadata) > 1:
        metadata = [
            reduce(_merge_metadata, metadata[start : start + 2])
            for start in range(0, len(metadata), 2)
        ]
    vectors = [vector for result in results for vector in result.embeddings]
    usage = None
    if usages:
        usage = reduce(add, usages)
    return BatchEmbeddingsResult(vectors, usage, first.finish_reason, metadata[0], first.id)


def _merge_metadata(first: Any, second: Any) -> Any:
    """Merges two values of embeddings' metadata: objects by key, numbers by sum, lists joined,
    otherwise the later one."""
    match first, second:
        case dict(), dict():
            first_object, second_object = (
                cast("Json", first),
                cast("Json", second),
            )
            return {
                **first_object,
                **second_object,
                **{
                    key: _merge_metadata(first_object[key], second_object[key])
                    for key in first_object.keys() & second_object.keys()
                },
            }
        case list(), list():
            return [*cast("list[Any]", first), *cast("list[Any]", second)]
        case (bool(), _) | (_, bool()):
            return first or second
        case int() | float(), int() | float():
            return first + second
        case _:
            return second


def _ignore(*_: object) -> None:
    """Does nothing: the default callback."""


_EMPTY_RESULT = BatchEmbeddingsResult([])
