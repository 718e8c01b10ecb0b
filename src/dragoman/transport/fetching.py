"""Files by their URLs, and messages to URLs, where somebody else wrote the URL: `fetch` and `post`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import msgspec

from dragoman.content import DataPart
from dragoman.errors import InvalidRequestError, ProviderError, ProviderTimeoutError
from dragoman.logs import logger
from dragoman.retry_after import retry_after
from dragoman.transport.address_policy import AddressPolicy
from dragoman.transport.file_answer import bounded, file_name, media_type, too_large

if TYPE_CHECKING:
    import aiohttp

    from dragoman.transport.host_names import Place

__all__ = ["Posted", "fetch", "post"]

_LOG = logger("transport.fetching")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_AGAIN = frozenset({408, 425, 429})
"""Statuses below 500 after which the same request may succeed."""


class Posted(msgspec.Struct, frozen=True):
    """How a message was taken."""

    status: int
    """The HTTP status; a redirect is not followed."""
    retry_after: float | None = None
    """Seconds to wait before the next try, where the answer says it."""


async def fetch(
    url: str,
    policy: AddressPolicy,
    *,
    max_bytes: int = 20 * 2**20,
    seconds: float = 30.0,
    redirects: int = 3,
) -> DataPart:
    """The file at a URL that somebody else wrote. Each redirect is checked as the URL was.

    Args:
        url: where it is.
        policy: what may be opened.
        max_bytes: of the file, after decompression.
        seconds: for all of it, redirects included.
        redirects: how many are followed.

    Raises:
        InvalidRequestError: the URL is refused, or there is no file, or it is too large or damaged. The message is for who wrote the URL.
        ProviderError: its server failed; the same may succeed later. Its subclasses for timeouts and connections too.
    """
    try:
        async with asyncio.timeout(seconds):
            place = policy.place(url)
            for _ in range(redirects + 1):
                async with _requested(policy, place, "GET", {}) as response:
                    if response.status not in _REDIRECTS:
                        return await _file(url, place, response, max_bytes)
                    place = _next(policy, place, response.headers.get("location", ""))
    except TimeoutError:
        raise ProviderTimeoutError(
            f"the file was not there within {seconds:g} s: try again later"
        ) from None
    raise InvalidRequestError(
        f"the URL leads to others more than {redirects} times: write where the file is"
    )


async def post(
    url: str,
    policy: AddressPolicy,
    body: Mapping[str, Any] | bytes,
    headers: Mapping[str, str] | None = None,
    *,
    seconds: float = 10.0,
) -> Posted:
    """Sends a message to a URL that somebody else wrote, once. Redirects are not followed, and nothing of the answer's body is read.

    Args:
        url: where it goes.
        policy: what may be opened.
        body: JSON, or bytes as they are.
        headers: beside those that HTTP needs. They go to whoever the URL names: no credentials but those meant for him.
        seconds: until the answer's status is there.

    Raises:
        InvalidRequestError: the URL is refused.
        ProviderConnectionError, ProviderTimeoutError: the message may or may not have come.
        SettingsError: a header that cannot be sent.
    """
    data = body if isinstance(body, bytes) else msgspec.json.encode(dict(body))
    kind = {} if isinstance(body, bytes) else {"content-type": "application/json"}
    try:
        async with (
            asyncio.timeout(seconds),
            _requested(
                policy, policy.place(url), "POST", {**kind, **(headers or {})}, data
            ) as response,
        ):
            lower = {name.lower(): value for name, value in response.headers.items()}
            return Posted(response.status, retry_after(lower))
    except TimeoutError:
        raise ProviderTimeoutError(
            f"the message was not taken within {seconds:g} s: try again later"
        ) from None


@asynccontextmanager
async def _requested(
    policy: AddressPolicy,
    place: Place,
    method: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
) -> AsyncGenerator[aiohttp.ClientResponse]:
    from dragoman.transport.checked import opened

    async with opened(policy, place, method, headers, body) as response:
        yield response


def _next(policy: AddressPolicy, place: Place, location: str) -> Place:
    """Where a redirect leads. Where it may not be followed, who wrote the URL does not learn where that is."""
    if not location:
        raise InvalidRequestError(f"the URL's host {place.host} sends on to nowhere")
    try:
        following = policy.place(urljoin(place.url, location))
    except (InvalidRequestError, ValueError) as error:
        _LOG.warning("%s redirects to where nothing may be fetched: %s", place.host, error)
        raise InvalidRequestError(
            f"the URL's host {place.host} sends on to where nothing may be fetched"
        ) from None
    if place.scheme == "https" and following.scheme != "https":
        raise InvalidRequestError(f"the URL's host {place.host} sends on to an address without TLS")
    return following


async def _file(url: str, place: Place, response: aiohttp.ClientResponse, most: int) -> DataPart:
    status = response.status
    if status >= 500 or status in _AGAIN:
        raise ProviderError(
            f"{place.host} cannot give the file now, it answers with HTTP {status}: try again later"
        )
    if status != 200:
        raise InvalidRequestError(
            f"there is no file at the URL: {place.host} answers with HTTP {status}"
        )
    if (response.content_length or 0) > most:
        raise too_large(most)
    encoding = ",".join(response.headers.getall("content-encoding", ()))
    data = await bounded(_chunks(place, response), encoding, most)
    name = file_name(url, {"content-disposition": response.headers.get("content-disposition", "")})
    return DataPart(data, media_type(response.headers.get("content-type", ""), name, data), name)


async def _chunks(place: Place, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    from dragoman.transport.checked import failed
    from dragoman.transport.failure import FAILURES

    try:
        while chunk := await response.content.readany():
            yield chunk
    except FAILURES as error:
        raise failed(error, place) from None
