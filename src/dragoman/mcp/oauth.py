"""Signing in to MCP servers: `OAuth`, and where tokens are kept."""

from __future__ import annotations

from typing import Protocol

import msgspec

__all__ = ["MemoryTokenStore", "OAuth", "TokenStore"]


class TokenStore(Protocol):
    """Keeps what signing in gave, and what is needed to end a sign-in that has begun. All of it is secret."""

    async def load(self, key: str) -> bytes | None:
        """What was saved last; `None`: nothing. `key`: the server's URL."""
        ...

    async def save(self, key: str, value: bytes) -> None:
        """Keeps it in place of what was saved before."""
        ...


class MemoryTokenStore:
    """Keeps tokens in this process."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    async def load(self, key: str) -> bytes | None:
        """See `TokenStore`."""
        return self._values.get(key)

    async def save(self, key: str, value: bytes) -> None:
        """See `TokenStore`."""
        self._values[key] = value


class OAuth(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """How somebody signs in to a server. One value is for one person: whoever uses the tokens acts as who signed in."""

    redirect_uri: str
    """Address to which the person is sent back, with `code` and `state`. All of that address is the answer to the interrupt."""
    client_name: str = "dragoman"
    """What people are told asks for access."""
    scope: str | None = None
    """What access is asked for, words with spaces between; `None`: what the server says."""
    client_id: str | None = None
    """Of a client that the server knows; `None`: it is registered, where the server lets it."""
    client_secret: str | None = None
    """That client's, where it has one."""
    client_metadata_url: str | None = None
    """An https address of a document about the client, which servers may take in place of a registration."""
    store: TokenStore = msgspec.field(default_factory=MemoryTokenStore)
    """Where tokens are kept. One that all processes share lets a sign-in begin in one and end in another."""

    def __repr__(self) -> str:
        return f"OAuth(redirect_uri={self.redirect_uri!r}, client_name={self.client_name!r})"
