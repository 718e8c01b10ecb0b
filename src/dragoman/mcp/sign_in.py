"""OAuth sign-in that ends in another request than it started in, perhaps in another process: its
state is in the token store.

The library's OAuth client waits for the user within one request. `SignInAuth` stops there: it
stores the unfinished sign-in and raises `SignInNeeded`, which becomes an interrupt. `take_answer`
stores the URL to which the user returned, and the next request finishes the sign-in.
"""

from __future__ import annotations

import secrets
import time
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, PKCEParameters
from mcp.client.auth.utils import validate_authorization_response_iss
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from dragoman.errors import ToolError
from dragoman.json_bytes import Json
from dragoman.mcp.options import OAuth
from dragoman.mcp.streams import Failure

__all__ = ["SignInAuth", "take_answer"]

_GOOD_FOR = 600.0
"""Seconds for which an unfinished sign-in is offered again."""


class SignInNeeded(BaseException):
    """Ends a request that needs a sign-in. It is no `Exception`, since the library would log that
    with a traceback."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class _PendingSignIn(msgspec.Struct, frozen=True):
    """A sign-in that waits for its answer."""

    url: str
    state: str
    verifier: str
    at: float
    code: str | None = None
    issuer: str | None = None


class _StoredSignIn(msgspec.Struct, frozen=True, omit_defaults=True):
    """The entry of one server in the token store."""

    tokens: Json | None = None
    expires_at: float | None = None
    client: Json | None = None
    begun: _PendingSignIn | None = None


async def take_answer(server: str, oauth: OAuth, address: str) -> None:
    """Stores the answer to an unfinished sign-in at an MCP server. An answer to another sign-in, or
    a repeated one, changes nothing.

    Raises:
        ToolError: the user was refused or did not agree.
    """
    stored = await _load_sign_in(server, oauth)
    begun = stored.begun
    # Some applications pass on only the query of the address.
    query = parse_qs(urlsplit(address).query if "://" in address else address.lstrip("?"))
    state = query.get("state", [""])[0]
    # The state proves that the answer belongs to this sign-in (RFC 6749, section 10.12).
    if begun is None or not secrets.compare_digest(state.encode(), begun.state.encode()):
        return
    if "code" not in query:
        await _save(server, oauth, msgspec.structs.replace(stored, begun=None))
        why = query.get("error_description", query.get("error", ["no code came back"]))[0]
        raise ToolError(f"the sign-in failed: {why[:500]}")
    begun = msgspec.structs.replace(
        begun, code=query["code"][0], issuer=query.get("iss", [None])[0]
    )
    await _save(server, oauth, msgspec.structs.replace(stored, begun=begun))


class SignInAuth(OAuthClientProvider):
    """The library's OAuth client, whose flow stops where a user is needed and continues when it
    runs again."""

    def __init__(self, server: str, oauth: OAuth) -> None:
        """Creates the OAuth sign-in to an MCP server."""
        metadata = OAuthClientMetadata(
            redirect_uris=[AnyUrl(oauth.redirect_uri)],
            client_name=oauth.client_name,
            scope=oauth.scope,
            token_endpoint_auth_method="client_secret_post" if oauth.client_secret else None,
        )
        self._server, self._oauth = server, oauth
        self._failure: Failure | None = None
        super().__init__(
            server, metadata, _Storage(server, oauth), client_metadata_url=oauth.client_metadata_url
        )

    async def _initialize(self) -> None:
        await super()._initialize()
        self.context.token_expiry_time = (await _load_sign_in(self._server, self._oauth)).expires_at

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        """Returns the user's code and the verifier of that MCP sign-in.

        Raises:
            SignInNeeded: there is no code yet.
        """
        stored = await _load_sign_in(self._server, self._oauth)
        begun = stored.begun
        if begun is not None and begun.code is not None:
            await _save(self._server, self._oauth, msgspec.structs.replace(stored, begun=None))
            # Protects against an answer from another server (RFC 9207).
            validate_authorization_response_iss(begun.issuer, self.context.oauth_metadata)
            self._failure = None
            return begun.code, begun.verifier
        if self._failure is None:
            # Several calls that need the sign-in show the user the same address.
            if begun is None or not 0 <= time.time() - begun.at <= _GOOD_FOR:
                begun = self._start_sign_in()
                await _save(self._server, self._oauth, msgspec.structs.replace(stored, begun=begun))
            self._failure = Failure("sign_in", "somebody must sign in", begun.url)
        raise SignInNeeded(self._failure)

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        """Remembers a failed exchange of the sign-in's code, so that the next request reports
        it."""
        try:
            await super()._handle_token_response(response)
        except OAuthFlowError as error:
            # The library does not ask again in this connection, so the next request reports it.
            self._failure = Failure("status", f"signing in failed: {error}")
            raise

    def _start_sign_in(self) -> _PendingSignIn:
        """Returns a new sign-in with its URL, state and PKCE verifier."""
        context = self.context
        metadata = context.oauth_metadata
        # The default path for servers without metadata is in the MCP specification of 2025-03-26.
        endpoint = urljoin(context.get_authorization_base_url(context.server_url), "/authorize")
        if metadata and metadata.authorization_endpoint:
            endpoint = str(metadata.authorization_endpoint)
        pkce, state = PKCEParameters.generate(), secrets.token_urlsafe(32)
        fields = {
            "response_type": "code",
            "client_id": context.client_info.client_id if context.client_info else "",
            "redirect_uri": self._oauth.redirect_uri,
            "state": state,
            "code_challenge": pkce.code_challenge,
            "code_challenge_method": "S256",
        }
        if context.should_include_resource_param(context.protocol_version):
            fields["resource"] = context.get_resource_url()
        if scope := context.client_metadata.scope:
            fields["scope"] = scope
            # OpenID Connect requires it with this scope (Core 1.0, section 11).
            if "offline_access" in scope.split():
                fields["prompt"] = "consent"
        separator = "&" if urlsplit(endpoint).query else "?"
        return _PendingSignIn(
            f"{endpoint}{separator}{urlencode(fields)}", state, pkce.code_verifier, time.time()
        )


class _Storage:
    """The library's token storage, on top of a `TokenStore`."""

    def __init__(self, server: str, oauth: OAuth) -> None:
        self._server, self._oauth = server, oauth

    async def get_tokens(self) -> OAuthToken | None:
        tokens = (await _load_sign_in(self._server, self._oauth)).tokens
        return OAuthToken.model_validate(tokens) if tokens is not None else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Stores the OAuth tokens of a sign-in, with the time at which they expire."""
        stored = await _load_sign_in(self._server, self._oauth)
        # Tokens say only in how many seconds they expire, which means nothing later.
        expires_at = None
        if tokens.expires_in is not None:
            expires_at = time.time() + tokens.expires_in
        changed = msgspec.structs.replace(
            stored, tokens=tokens.model_dump(mode="json"), expires_at=expires_at
        )
        await _save(self._server, self._oauth, changed)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Returns for a sign-in the OAuth client that was registered, or the one that the options
        name, or None."""
        client = (await _load_sign_in(self._server, self._oauth)).client
        if client is not None:
            return OAuthClientInformationFull.model_validate(client)
        if self._oauth.client_id is None:
            return None
        return OAuthClientInformationFull(
            client_id=self._oauth.client_id,
            client_secret=self._oauth.client_secret,
            redirect_uris=[AnyUrl(self._oauth.redirect_uri)],
            token_endpoint_auth_method="client_secret_post"
            if self._oauth.client_secret
            else "none",
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        stored = await _load_sign_in(self._server, self._oauth)
        client = client_info.model_dump(mode="json", exclude_none=True)
        await _save(self._server, self._oauth, msgspec.structs.replace(stored, client=client))


async def _load_sign_in(server: str, oauth: OAuth) -> _StoredSignIn:
    """Loads the state of an MCP server's sign-in from the token store."""
    data = await oauth.store.load(server)
    if data is None:
        return _StoredSignIn()
    return msgspec.json.decode(data, type=_StoredSignIn)


async def _save(server: str, oauth: OAuth, stored: _StoredSignIn) -> None:
    await oauth.store.save(server, msgspec.json.encode(stored))
