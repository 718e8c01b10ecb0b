"""Where an MCP server is, and what is agreed with it: `Options`; how somebody signs in there:
`OAuth`, and where tokens are kept."""

from __future__ import annotations

import os
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast
from urllib.parse import urlsplit

import msgspec

from dragoman.arguments import expect, wrong_type_error
from dragoman.errors import SettingsError
from dragoman.message import Message
from dragoman.request import ModelRequest
from dragoman.tools import Tool
from dragoman.tools.context import Sender
from dragoman.tools.definition import Approval

__all__ = [
    "ApprovalPolicy",
    "Command",
    "MemoryTokenStore",
    "OAuth",
    "Options",
    "Sampling",
    "Server",
    "TokenStore",
    "make_label",
    "parse_server",
]

Sampling: TypeAlias = (
    Sender | str | Callable[[ModelRequest], Message | str | Awaitable[Message | str]]
)
"""What answers when a server asks for a model: an agent, a model string, or a function, plain or
async, of what is asked."""
ApprovalPolicy: TypeAlias = bool | Callable[[Tool], bool | Approval]
"""Whether calls need approval: for all tools, or as a function says of each, which may give a
function of the call."""


class TokenStore(Protocol):
    """Keeps what signing in gave, and what is needed to end a sign-in that has begun. All of it is
    secret."""

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
    """How somebody signs in to a server. One value is for one person: whoever uses the tokens acts
    as who signed in."""

    redirect_uri: str
    """Address to which the person is sent back, with `code` and `state`. All of that address is the
    answer to the interrupt."""
    client_name: str = "dragoman"
    """What people are told asks for access."""
    scope: str | None = None
    """What access is asked for, words with spaces between; `None`: what the server says."""
    client_id: str | None = None
    """Of a client that the server knows; `None`: it is registered, where the server lets it."""
    client_secret: str | None = None
    """That client's, where it has one."""
    client_metadata_url: str | None = None
    """An https address of a document about the client, which servers may take in place of a
    registration."""
    store: TokenStore = msgspec.field(default_factory=MemoryTokenStore)
    """Where tokens are kept. One that all processes share lets a sign-in begin in one and end in
    another."""

    def __repr__(self) -> str:
        return f"OAuth(redirect_uri={self.redirect_uri!r}, client_name={self.client_name!r})"


class Command(msgspec.Struct, frozen=True):
    """A program that is started, and spoken to by its standard input and output."""

    arguments: tuple[str, ...]
    """The program and its arguments."""


Server: TypeAlias = Command | str | Any
"""A program, a URL, or what the library `mcp` can connect to: a server object of this process, or a
transport."""


class Options(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All that `mcp` was given."""

    server: Command | str | Any
    """Where it is."""
    name: str = ""
    """Goes before the descriptions of its tools."""
    prefix: str = ""
    """Goes before their names."""
    headers: Mapping[str, str] = {}
    """For requests to its URL."""
    env: Mapping[str, str] = {}
    """Variables for the program."""
    cwd: str | os.PathLike[str] | None = None
    """Where the program is started."""
    timeout: float | None = 60.0
    """Seconds for a call; `None`: as long as it takes."""
    connect_timeout: float = 60.0
    """Seconds to connect."""
    requires_approval: ApprovalPolicy = False
    """Which calls somebody must allow."""
    sampling: Sampling | None = None
    """What answers when it asks for a model."""
    roots: tuple[str, ...] = ()
    """Directories that it is told of."""
    oauth: OAuth | None = None
    """How somebody signs in."""
    max_result: int = 10_000_000
    """Bytes of a result that are taken."""
    protocol: str = "auto"
    """Which version is spoken: `auto`, `legacy`, or one."""

    def __post_init__(self) -> None:
        is_url = isinstance(self.server, str)
        if (self.headers or self.oauth is not None) and not is_url:
            raise SettingsError(
                "headers= and oauth= are for MCP servers at a URL; give a program its keys with env="
            )
        if (self.env or self.cwd is not None) and not isinstance(self.server, Command):
            raise SettingsError(
                "env= and cwd= are for MCP servers that are started; give one at a URL headers="
            )


def parse_server(server: str | Sequence[str] | object) -> Server:
    """Returns a URL as it is, a command line or its words as a `Command`, and anything else as it
    is.

    Raises:
        SettingsError: an empty or malformed command line, or an address that is none of HTTP.
        TypeError: it is nothing that can be connected to.
    """
    if isinstance(server, str):
        if "://" in server.partition(" ")[0]:
            parts = urlsplit(server)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise SettingsError(
                    f"mcp({server!r:.100}) is no URL of a server: it begins with https:// and a host"
                )
            return server
        try:
            words = shlex.split(server, posix=os.name == "posix")
        except ValueError as error:
            raise SettingsError(
                f"mcp({server!r:.100}) is no command line ({error}); give its words as a list"
            ) from error
    elif isinstance(server, (list, tuple)):
        for index, word in enumerate(server):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            expect(f"server[{index}]", word, str, os.PathLike)  # pyright: ignore[reportUnknownArgumentType]
        words = [os.fspath(word) for word in server]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    elif server is None or isinstance(server, bool | int | float | bytes | Mapping | type | Path):
        raise wrong_type_error(
            "server",
            cast(object, server),
            "a command line, its words, a URL, or a server of the library mcp",
        )
    else:
        return server
    if not words:
        raise SettingsError(
            "mcp() needs a command, such as 'npx -y @scope/server', or a URL that begins with https://"
        )
    return Command(tuple(words))


def make_label(server: Server) -> str:
    """Returns a server's name for errors: its host, or its program without further arguments, which
    may hold keys."""
    if isinstance(server, Command):
        program, *arguments = server.arguments
        what = next((argument for argument in arguments if not argument.startswith("-")), "")
        return f"{Path(program).name} {Path(what).name[:60]}".strip()
    if isinstance(server, str):
        return urlsplit(server).hostname or "MCP"
    return str(getattr(server, "name", None) or type(server).__name__)
