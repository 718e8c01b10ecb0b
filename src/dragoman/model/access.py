"""Sends requests to a provider: finds its URL, adds its headers and keys, renews credentials.

`route` finds the URL that serves a model, and `send` sends a request there. Both read the key,
and ask the provider's `auth` how a request is authorized: by a header, by a signature over the
request, or by a grant that a flow of further requests obtains.

A flow is a generator that yields requests and is sent responses, so that it does no I/O itself;
`_run_flow` drives it. One lock for each event loop lets one task renew a grant while the others
wait for it. Keys that a refusal repeats are masked before it becomes an error.
"""

from __future__ import annotations

import inspect
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import closing, suppress
from copy import copy
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import anyio
import msgspec

from dragoman import wires
from dragoman.errors import DragomanError, InvalidRequestError, ProviderError
from dragoman.providers.auth import Auth, AuthResponse, Flow, Grant, Sign
from dragoman.providers.base_url import find_base_url, find_written_url, join_url
from dragoman.providers.keys import check_key, find_auth, request_headers
from dragoman.providers.provider import ModelEndpoint, Provider
from dragoman.request import HttpRequest
from dragoman.runtime import running_loop
from dragoman.transport.base import Response, Transport, read_all
from dragoman.transport.exchange import request_body
from dragoman.transport.redaction import find_secrets, hide_secrets, is_secret, public_url, redact

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["Access", "Key", "ModelRoute", "encoding_error"]

Key: TypeAlias = str | Callable[[], str | Awaitable[str]]
"""A key, or a function that gives the one to use now; it is called for every request."""

R = TypeVar("R")

_EMPTY_STATUSES = (204, 205)
"""Statuses of success that have no body."""
_EXPIRY_MARGIN = 225.0
"""Seconds before its end at which a grant is not used any more, as Google's own library has it."""
_LOCATION_LENGTH = 200
"""Characters of a redirect's URL in an error message."""
_RECENT = 64
"""Number of recent requests whose keys are removed from error messages."""


class ModelRoute(msgspec.Struct, frozen=True):
    """The URL that serves a model, and the key that was read while looking it up."""

    base_url: str
    """Without a slash at its end."""
    quirks: Any = None
    """As `Provider.quirks`."""
    key: str | None = None
    """For the first request on this route; `None`: there is none, or it has not been read yet."""

    def __repr__(self) -> str:
        # the key is a secret
        return f"Route({public_url(self.base_url)})"


class _Credentials(NamedTuple):
    """Headers, and perhaps a signature function, that authorize a request."""

    headers: Mapping[str, str]
    sign: Sign | None = None


class Access:
    """Access to one provider with one user's credentials. Tasks, threads and event loops may share
    it. Credentials are requested on first use, once for all waiting requests, and stored only
    here."""

    def __init__(
        self,
        provider: Provider,
        transport: Transport,
        *,
        api_key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        system: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Creates the access to a provider's API: where it is, with which key, over which
        transport."""
        self.provider = provider
        self._transport = provider.transport or transport
        self._api_key = api_key
        self._base_url = base_url
        self._headers = headers
        self._environment = environment
        self._system = system
        self._clock = clock
        self._found: Auth | None = None
        self._has_fixed_key = isinstance(api_key, str) and bool(api_key.strip())
        self._fixed: _Credentials | None = None
        self._grant: Grant | None = None
        self._failed: DragomanError | None = None
        self._places: dict[str, ModelEndpoint] = {}
        self.lacks_counts = False
        """True once its API has said that it counts no tokens."""
        self._carried: deque[HttpRequest] = deque(maxlen=_RECENT)
        self._locks: WeakKeyDictionary[AbstractEventLoop, anyio.Lock] = WeakKeyDictionary()

    @property
    def endpoint(self) -> str:
        """Returns the base URL of the access in a form that is safe to show, or an empty text if
        only the credentials or a server that has not started know it."""
        provider = self.provider
        url = (
            find_written_url(provider, self._base_url, self._environment, self._system)
            or provider.base_url
        )
        # A function that starts a server, or None if only the credentials know the URL.
        if not isinstance(url, str):
            return ""
        return public_url(join_url(url, ""))

    def check_key(self) -> None:
        """Checks that requests with this access would carry a key where the provider needs one. A
        function that gives keys is not called.

        Raises:
            AuthenticationError: there is none.
        """
        if callable(self._api_key):
            return
        check_key(
            self.provider,
            self._api_key,
            headers=self._headers,
            environment=self._environment,
            system=self._system,
        )

    @cached_property
    def identity(self) -> tuple[str, str]:
        """Returns two digests of what requests with this access carry: one of the plain headers,
        one of keys and other secrets. A key function gets a random digest, because nobody knows its
        next key."""
        key = self._api_key
        headers = {name.lower(): value for name, value in (self._headers or {}).items()}
        # Without a key the request itself will fail with a message; here the headers suffice.
        with suppress(DragomanError):
            headers = request_headers(
                self.provider,
                api_key=key if isinstance(key, str) else None,
                headers=headers,
                environment=self._environment,
                system=self._system,
            )
        secret = {name: value for name, value in headers.items() if is_secret(name)}
        for name in self.provider.auth_names:
            secret[name] = (self._environment or {}).get(name) or self._system.get(name) or ""
        if callable(key):
            secret["api_key"] = os.urandom(16).hex()
        return _digest_headers(
            {name: value for name, value in headers.items() if name not in secret}
        ), _digest_headers(secret)

    async def base_url(self, model: str, *, embeddings: bool = False) -> str:
        """Returns the provider's base URL. See `route`."""
        return (await self.route(model, embeddings=embeddings)).base_url

    async def route(self, model: str, *, embeddings: bool = False) -> ModelRoute:
        """Finds the access to `model`: where it is asked; may start a local server for it. Results
        of `discovery` are cached.

        Args:
            model: name of the model.
            embeddings: use the provider's own URL for embeddings, if it has one.

        Raises:
            SettingsError: there is no base URL, or it or the credentials cannot be used.
            AuthenticationError: the URL depends on credentials, and there are none.
            DragomanError: as `send`, if the provider must be asked first.
        """
        key, credentials_url = None, None
        if self.provider.auth is not None:
            key = await self._read_key()
            if (auth := self._find_auth(key)) is not None:
                credentials_url = auth.base_url
        provider = self.provider
        if embeddings and provider.embeddings_url is not None:
            provider = msgspec.structs.replace(provider, base_url=provider.embeddings_url)
        base_url = await find_base_url(
            provider,
            self._base_url,
            model=model,
            credentials_url=credentials_url,
            environment=self._environment,
            system=self._system,
        )
        if embeddings or provider.discovery is None:
            return ModelRoute(base_url, provider.quirks, key)
        if (endpoint := self._places.get(base_url)) is None:
            flow = provider.discovery(base_url)
            endpoint = self._places[base_url] = await self._run_flow(
                flow, await self._load_credentials(key)
            )
        return ModelRoute(endpoint.base_url, endpoint.quirks, key)

    async def send(self, request: HttpRequest, route: ModelRoute | None = None) -> Response:
        """Sends a request through this access, with the provider's headers. A 401 is tried once
        more if credentials can be renewed.

        Args:
            request: `path` is the whole URL.
            route: its key is used for the first attempt, so that a key function is called once a request.

        Raises:
            AuthenticationError: there is no key, or no token for the credentials.
            ProviderError: it refused, which subclass tells why, or answered with a redirection or with nothing.
            DragomanError: as `Transport.send`, also from where the credentials are checked.
        """
        key = route.key if route is not None else None
        sent_request = await self._authorize_request(request, await self._load_credentials(key))
        response = await self._transport.send(sent_request)
        if response.status == 401:
            sent_request, response = await self._send_renewed(request, sent_request, response)
        if not 200 <= response.status < 300 or response.status in _EMPTY_STATUSES:
            raise await self._load_refusal(sent_request, response)
        return response

    async def _send_renewed(
        self, request: HttpRequest, sent_request: HttpRequest, response: Response
    ) -> tuple[HttpRequest, Response]:
        """Sends a request whose access was refused (401) again with renewed credentials. Returns
        what was sent last and its response."""
        # Another task may have renewed the grant already: only the refused one is dropped.
        if self._grant is not None and self._grant.headers.items() <= sent_request.headers.items():
            self._grant = None
        try:
            renewed_request = await self._authorize_request(request, await self._load_credentials())
        except BaseException:
            await response.close()
            raise
        # The same credentials would be refused again.
        if renewed_request == sent_request:
            return sent_request, response
        await response.close()
        return renewed_request, await self._transport.send(renewed_request)

    def redact(self, error: DragomanError) -> DragomanError:
        """Returns the same error without the access's keys, which a provider may repeat in its
        message."""
        return redact(
            error,
            {
                secret
                for request in self._carried
                for secret in find_secrets(request.path, request.headers)
            },
        )

    async def fetch(
        self, request: HttpRequest, route: ModelRoute | None = None
    ) -> tuple[Mapping[str, str], bytes]:
        """Sends a request with this access and returns the whole answer: headers, with names in
        lower case, and body.

        Raises:
            DragomanError: as `send`.
        """
        try:
            response = await self.send(request, route)
            try:
                return response.headers, await read_all(response)
            finally:
                await response.close()
        except DragomanError as error:
            error.at(provider=self.provider.name)
            raise

    async def _load_refusal(self, request: HttpRequest, response: Response) -> DragomanError:
        """Reads the response to a request whose access was refused and returns its error. Keys that
        the response repeats, as Google's do, are masked."""
        request_secrets = find_secrets(request.path, request.headers, request_body(request))
        try:
            body = await _read_error(response)
        finally:
            await response.close()
        body = hide_secrets(body, request_secrets)
        if response.status >= 400:
            error = wires.get(self.provider.wire).load_error(
                response.status, response.headers, body
            )
        else:
            location = public_url(response.headers.get("location", ""))[:_LOCATION_LENGTH]
            error = ProviderError(
                f"{self.provider.display_name} provider answered with HTTP {response.status} "
                f"{f'and leads to {location}' if location else 'and no answer'}: check the base URL"
            )
        return redact(
            error.at(provider=self.provider.name, status=response.status, body=body),
            request_secrets,
        )

    async def _authorize_request(
        self, request: HttpRequest, credentials: _Credentials
    ) -> HttpRequest:
        """Returns the request with the provider's headers, signed if the credentials sign
        requests."""
        request = msgspec.structs.replace(
            request, headers={**request.headers, **credentials.headers}
        )
        if credentials.sign is not None:
            if request.body is not None and not isinstance(request.body, bytes):
                # A signature covers the bytes that are sent, so they are made here and never again.
                request = msgspec.structs.replace(request, body=msgspec.json.encode(request.body))
            # Credentials may have to be renewed first, which blocks.
            signature = await anyio.to_thread.run_sync(credentials.sign, request, self._clock())
            request = msgspec.structs.replace(request, headers={**request.headers, **signature})
        self._carried.append(HttpRequest(request.path, request.headers))
        return request

    async def _load_credentials(self, key: str | None = None) -> _Credentials:
        """Returns the access's credentials for the next request. `key`: one that was read
        already."""
        if self._fixed is not None:
            return self._fixed
        if key is None:
            key = await self._read_key()
        headers = dict(self._headers or {})
        sign: Sign | None = None
        if (auth := self._find_auth(key)) is not None:
            sign = auth.sign
            if auth.flow is not None:
                grant = await self._find_grant(auth.flow)
                # The user's own headers win over those of the grant.
                headers = {**grant.headers, **headers}
                sign = grant.sign or sign
        headers = request_headers(
            self.provider,
            api_key=key,
            headers=headers,
            environment=self._environment,
            system=self._system,
        )
        credentials = _Credentials(headers, sign)
        # Where a key was given and nothing else goes with it, all requests have the same.
        if auth is None and self._has_fixed_key:
            self._fixed = credentials
        return credentials

    async def _read_key(self) -> str | None:
        """Returns the access's fixed key, or calls the key function, plain or async."""
        if self._api_key is None or isinstance(self._api_key, str):
            return self._api_key
        key = self._api_key()
        return await key if inspect.isawaitable(key) else key

    def _find_auth(self, key: str | None) -> Auth | None:
        """Finds how the provider authorizes access. Cached, unless a function supplies the key."""
        if self._found is None or callable(self._api_key):
            self._found = find_auth(
                self.provider,
                key,
                headers=self._headers,
                environment=self._environment,
                system=self._system,
            )
        return self._found

    async def _find_grant(self, flow: Callable[[float], Flow]) -> Grant:
        """Returns the access's current grant, or runs the flow for a new one. Tasks that wait
        meanwhile share its result or error."""
        earlier_error = self._failed
        async with self._locks.setdefault(running_loop(), anyio.Lock()):
            now = self._clock()
            grant = self._grant
            # One request asks for a grant; those that wait here meanwhile get it, or its error.
            if grant is None or (
                grant.expires_at is not None and grant.expires_at - _EXPIRY_MARGIN < now
            ):
                # Another request asked and failed while this one waited for the lock.
                if self._failed is not None and self._failed is not earlier_error:
                    raise copy(self._failed)
                try:
                    grant = self._grant = await self._run_flow(flow(now))
                except DragomanError as error:
                    self._failed = copy(error)
                    raise
            return grant

    async def _run_flow(
        self, flow: Generator[HttpRequest, AuthResponse, R], credentials: _Credentials | None = None
    ) -> R:
        """Sends the requests of an authorization flow until it ends. `credentials`: for a flow that
        asks the provider itself."""
        with closing(flow):
            try:
                request = next(flow)
                while True:
                    if credentials is not None:
                        request = await self._authorize_request(request, credentials)
                    response = await self._transport.send(request)
                    try:
                        answer = AuthResponse(response.status, await read_all(response))
                    finally:
                        await response.close()
                    request = flow.send(answer)
            except StopIteration as ended:
                return ended.value
            except DragomanError as error:
                raise error.at(provider=self.provider.name) from error.__cause__


def _digest_headers(headers: Mapping[str, str]) -> str:
    """Returns a digest of headers, whatever their order."""
    return blake2b(msgspec.json.encode(sorted(headers.items())), digest_size=16).hexdigest()


async def _read_error(response: Response) -> bytes:
    """Reads the rest of a refused access's response; if the connection breaks, returns what came
    before."""
    chunks: list[bytes] = []
    try:
        while data := await response.read():
            chunks.append(data)
    except DragomanError:
        pass
    return b"".join(chunks)


def encoding_error(error: UnicodeEncodeError) -> InvalidRequestError:
    """Returns the error for a text in a request that UTF-8 cannot encode: half of a surrogate pair,
    as left by a cut in UTF-16."""
    excerpt = (
        error.object[max(0, error.start - 20) : error.end + 20]
        .encode("ascii", "backslashreplace")
        .decode()
    )
    return InvalidRequestError(
        f'a text of the request holds half a character and cannot be sent: "{excerpt}". '
        'Replace it: text.encode("utf-8", "replace").decode().'
    )
