"""Options of an MCP server: where it is (`Command`, a URL), limits and policies (`Options`), and
sign-in (`OAuth`, `TokenStore`)."""

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
"""Answers when a server asks for a model: an agent, a model string, or a function of the request,
plain or async."""
ApprovalPolicy: TypeAlias = bool | Callable[[Tool], bool | Approval]
"""Whether calls need approval: for all tools, or by a function of each tool, which may also return
a function of the call."""


class TokenStore(Protocol):
    """Stores tokens of sign-ins, and the state of unfinished ones. All of it is secret."""

    async def load(self, key: str) -> bytes | None:
        """Returns the value saved last, or None. `key`: the server's URL."""
        ...

    async def save(self, key: str, value: bytes) -> None:
        """Saves a value in place of the earlier one."""
        ...


class MemoryTokenStore:
    """Stores tokens in this process."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    async def load(self, key: str) -> bytes | None:
        """See `TokenStore`."""
        return self._values.get(key)

    async def save(self, key: str, value: bytes) -> None:
        """See `TokenStore`."""
        self._values[key] = value


class OAuth(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """How a user signs in to a server. Make one per user: requests with its tokens act for the user
    who signed in."""

    redirect_uri: str
    """The URL to which the user returns with `code` and `state`. The complete URL is the answer to
    the interrupt."""
    client_name: str = "dragoman"
    """The name that the user sees as the one who asks for access."""
    scope: str | None = None
    """The requested scopes, separated by spaces; by default what the server suggests."""
    client_id: str | None = None
    """The id of a client that the server knows; by default a client is registered if the server
    allows it."""
    client_secret: str | None = None
    """The secret of that client, if it has one."""
    client_metadata_url: str | None = None
    """An https URL of a document about the client, which servers may accept in place of a
    registration."""
    store: TokenStore = msgspec.field(default_factory=MemoryTokenStore)
    """Where tokens are stored. With a shared store a sign-in may start in one process and end in
    another."""

    def __repr__(self) -> str:
        return f"OAuth(redirect_uri={self.redirect_uri!r}, client_name={self.client_name!r})"


class Command(msgspec.Struct, frozen=True):
    """A program to start and to talk to over its standard input and output."""

    arguments: tuple[str, ...]
    """The program and its arguments."""


Server: TypeAlias = Command | str | Any
"""A program, a URL, or what the library `mcp` can connect to: a server object of this process, or a
transport."""


class Options(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All arguments of `mcp`."""

    server: Command | str | Any
    """The server's program, URL or object."""
    name: str = ""
    """Prefix of the tools' descriptions."""
    prefix: str = ""
    """Prefix of the tools' names."""
    headers: Mapping[str, str] = {}
    """HTTP headers of requests."""
    env: Mapping[str, str] = {}
    """Environment variables of the program."""
    cwd: str | os.PathLike[str] | None = None
    """Working directory of the program."""
    timeout: float | None = 60.0
    """Seconds per call; `None` waits without limit."""
    connect_timeout: float = 60.0
    """Seconds to connect."""
    requires_approval: ApprovalPolicy = False
    """Which calls need approval."""
    sampling: Sampling | None = None
    """Answers when the server asks for a model."""
    roots: tuple[str, ...] = ()
    """Directories that the server is told about."""
    oauth: OAuth | None = None
    """How a user signs in."""
    max_result: int = 10_000_000
    """Most bytes of a result."""
    protocol: str = "auto"
    """The protocol version: `auto`, `legacy`, or one version."""

    def __post_init__(self) -> None:
        """Raises `SettingsError` for options that do not fit the way in which the MCP server is
        reached."""
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
    """Reads the option that names an MCP server: returns a command line or its words as a
    `Command`, and a URL or an object unchanged.

    Raises:
        SettingsError: the command line is empty or malformed, or the URL is not HTTP.
        TypeError: nothing can connect to the value.
    """
    if isinstance(server, str):
        # Only the first word: a command may have a URL among its arguments.
        if "://" in server.partition(" ")[0]:
            parts = urlsplit(server)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise SettingsError(
                    f"mcp({server!r:.100}) is no URL of a server: it begins with https:// and a host"
                )
            return server
        try:
            # On Windows a backslash is a part of a path.
            words = shlex.split(server, posix=os.name == "posix")
        except ValueError as error:
            raise SettingsError(
                f"mcp({server!r:.100}) is no command line ({error}); give its words as a list"
            ) from error
    elif isinstance(server, (list, tuple)):
        # isinstance() leaves the type of the items unknown; the check gives it.
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
    """Returns from the options an MCP server's name for errors: its host, or its program without
    further arguments, since those may hold keys."""
    if isinstance(server, Command):
        program, *arguments = server.arguments
        # `npx -y @scope/server` is named after the package.
        what = next((argument for argument in arguments if not argument.startswith("-")), "")
        return f"{Path(program).name} {Path(what).name[:60]}".strip()
    if isinstance(server, str):
        return urlsplit(server).hostname or "MCP"
    return str(getattr(server, "name", None) or type(server).__name__)
