"""Files by their URLs, and messages to URLs, where somebody else wrote the URL: `fetch` and `post`.

An `AddressPolicy` says which URLs may be opened; `transport.checked` connects to the very addresses
that it checked. Each redirect of `fetch` is checked as the URL was. A body is read chunk by chunk
and unpacked here, so that never more than a chunk beyond the bound is in memory; then its bytes,
its headers and its URL tell its media type and its name.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.message import Message as Header
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

import msgspec

from dragoman.content import DataPart, guess_mime_type
from dragoman.errors import InvalidRequestError, ProviderError, ProviderTimeoutError
from dragoman.logs import logger
from dragoman.retry_after import parse_retry_after
from dragoman.transport.address_policy import AddressPolicy

if TYPE_CHECKING:
    import aiohttp

    from dragoman.transport.hosts import UrlTarget

__all__ = ["PostResult", "fetch", "post", "read_limited"]

_LOG = logger("transport.fetching")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TEMPORARY = frozenset({408, 425, 429})
"""Statuses below 500 after which the same request may succeed later."""
_UNKNOWN_TYPE = "application/octet-stream"
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types of images that their first bytes identify."""
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_BAD_CHARACTERS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\\/:*?\"<>|\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that a file name may not contain, or that hide how it ends."""
_MAX_NAME = 255


class PostResult(msgspec.Struct, frozen=True):
    """Outcome of a message that was posted."""

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
    """Downloads the file at a URL written by someone else. Each redirect is checked like the URL
    itself.

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
            target = policy.check_url(url)
            for _ in range(redirects + 1):
                async with _open_request(policy, target, "GET", {}) as response:
                    if response.status not in _REDIRECTS:
                        return await _read_file(url, target, response, max_bytes)
                    target = _follow_redirect(policy, target, response.headers.get("location", ""))
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
) -> PostResult:
    """Posts a message to a URL written by someone else, once. Redirects are not followed, and the
    response body is not read.

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
    json_header: dict[str, str] = {}
    if not isinstance(body, bytes):
        body = msgspec.json.encode(dict(body))
        json_header["content-type"] = "application/json"
    try:
        async with (
            asyncio.timeout(seconds),
            _open_request(
                policy, policy.check_url(url), "POST", {**json_header, **(headers or {})}, body
            ) as response,
        ):
            lower = {name.lower(): value for name, value in response.headers.items()}
            return PostResult(response.status, parse_retry_after(lower))
    except TimeoutError:
        raise ProviderTimeoutError(
            f"the message was not taken within {seconds:g} s: try again later"
        ) from None


@asynccontextmanager
async def _open_request(
    policy: AddressPolicy,
    target: UrlTarget,
    method: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
) -> AsyncGenerator[aiohttp.ClientResponse]:
    """Opens one request to fetch a URL that the policy allows, and yields its response."""
    from dragoman.transport.checked_connection import open_response

    async with open_response(policy, target, method, headers, body) as response:
        yield response


def _follow_redirect(policy: AddressPolicy, target: UrlTarget, location: str) -> UrlTarget:
    """Returns the target of a redirect while a file is fetched. If it is refused, the message does
    not reveal where it leads."""
    if not location:
        raise InvalidRequestError(f"the URL's host {target.host} sends on to nowhere")
    try:
        next_target = policy.check_url(urljoin(target.url, location))
    except (InvalidRequestError, ValueError) as error:
        _LOG.warning("%s redirects to where nothing may be fetched: %s", target.host, error)
        raise InvalidRequestError(
            f"the URL's host {target.host} sends on to where nothing may be fetched"
        ) from None
    if target.scheme == "https" and next_target.scheme != "https":
        raise InvalidRequestError(
            f"the URL's host {target.host} sends on to an address without TLS"
        )
    return next_target


async def _read_file(
    url: str, target: UrlTarget, response: aiohttp.ClientResponse, most: int
) -> DataPart:
    """Reads a response as a file, with its name and media type."""
    status = response.status
    if status >= 500 or status in _TEMPORARY:
        raise ProviderError(
            f"{target.host} cannot give the file now, it answers with HTTP {status}: try again later"
        )
    if status != 200:
        raise InvalidRequestError(
            f"there is no file at the URL: {target.host} answers with HTTP {status}"
        )
    if (response.content_length or 0) > most:
        raise _size_error(most)
    encoding = ",".join(response.headers.getall("content-encoding", ()))
    data = await read_limited(_read_chunks(target, response), encoding, most)
    name = _file_name(url, {"content-disposition": response.headers.get("content-disposition", "")})
    return DataPart(data, _media_type(response.headers.get("content-type", ""), name, data), name)


async def _read_chunks(target: UrlTarget, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yields the chunks of a fetched body."""
    from dragoman.transport.checked_connection import explain_failure
    from dragoman.transport.failure import FAILURES

    try:
        while chunk := await response.content.readany():
            yield chunk
    except FAILURES as error:
        raise explain_failure(error, target) from None


# what an answer says of its file


async def read_limited(chunks: AsyncIterator[bytes], encoding: str, most: int) -> bytes:
    """Returns the decompressed bytes of a fetched body, up to a limit. At most one chunk beyond the
    limit is held in memory.

    Raises:
        InvalidRequestError: there are more, or they are compressed in a way that was not asked for, or damaged.
    """
    unpack = _make_unpacker(encoding)
    pieces: list[bytes] = []
    came = size = 0
    async for chunk in chunks:
        came += len(chunk)
        try:
            piece = chunk if unpack is None else unpack.decompress(chunk, most - size + 1)
        except zlib.error:
            raise _damage_error() from None
        size += len(piece)
        if max(size, came) > most:
            raise _size_error(most)
        pieces.append(piece)
        if unpack is not None and unpack.unused_data:
            raise _damage_error()
    if unpack is not None and not unpack.eof:
        raise _damage_error()
    return b"".join(pieces)


def _size_error(most: int) -> InvalidRequestError:
    """Returns the error for a file above the limit."""
    return InvalidRequestError(f"the file has more than {most} bytes, the most that is taken here")


def _damage_error() -> InvalidRequestError:
    return InvalidRequestError("the file is compressed, and damaged")


def _make_unpacker(encoding: str) -> zlib._Decompress | None:  # pyright: ignore[reportPrivateUsage] it has no public name
    """Returns a decompressor for the encoding of a fetched body, or None for plain bytes."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name not in ("gzip", "x-gzip", "deflate"):
        raise InvalidRequestError("the file is compressed in a way that was not asked for")
    # 32: gzip or zlib, whichever the first bytes show.
    return zlib.decompressobj(zlib.MAX_WBITS | 32)


def _media_type(declared: str, name: str | None, data: bytes) -> str:
    """Returns the media type of a fetched file: what its server says, unless its bytes show another
    one.

    Raises:
        InvalidRequestError: it is said to be an image, and is none.
    """
    declared_type = declared.partition(";")[0].strip().lower()
    if not _MEDIA_TYPE.fullmatch(declared_type):
        declared_type = ""
    detected_type = guess_mime_type("", data)
    if detected_type in _IMAGE_TYPES and (
        declared_type in ("", _UNKNOWN_TYPE) or declared_type.startswith("image/")
    ):
        return detected_type
    if declared_type in _IMAGE_TYPES or declared_type == "image/jpg":
        raise InvalidRequestError(f"the file is said to be {declared_type}, and its bytes are none")
    if declared_type in ("", _UNKNOWN_TYPE):
        return guess_mime_type(name or "", data)
    return declared_type


def _file_name(url: str, headers: Mapping[str, str]) -> str | None:
    """Returns the name of a fetched file: what its server says, otherwise the end of the URL's
    path, otherwise None."""
    header = Header()
    header["content-disposition"] = headers.get("content-disposition", "")[:2048]
    try:
        name = header.get_filename() or ""
    except (ValueError, LookupError, TypeError):
        name = ""
    return _clean_name(name.replace("\\", "/").rpartition("/")[2]) or _clean_name(
        unquote(urlsplit(url).path.rpartition("/")[2])
    )


def _clean_name(name: str) -> str | None:
    """Returns the name of a fetched file without bad characters, shortened before its ending; None
    if nothing is left."""
    fit = _BAD_CHARACTERS.sub("", name).strip(" .")
    if len(fit) <= _MAX_NAME:
        return fit or None
    stem, dot, end = fit.rpartition(".")
    if not dot or len(end) >= 16:
        return fit[:_MAX_NAME]
    return f"{stem[: _MAX_NAME - len(end) - 1]}.{end}"
