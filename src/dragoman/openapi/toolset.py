"""The operations of an OpenAPI document as tools: `openapi`.

`openapi` checks its arguments, loads the document, and makes a tool of each selected operation:
`select_schemes` finds the keys that it takes, `read_arguments` its arguments, and the handler
writes the request and sends it through the `ApiRequests` that all tools share. Parameters that a
key or a header fills are hidden from the model. Operations that cannot be a tool are logged and
listed in `left_out`. The toolset may be entered in several event loops; each closes its own
connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import WeakKeyDictionary

from dragoman.arguments import expect, expect_callable, expect_each
from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import SettingsError
from dragoman.json_bytes import JsonMap
from dragoman.logs import logger
from dragoman.openapi.document import Document, load
from dragoman.openapi.operations import (
    Body,
    Operation,
    Parameter,
    Unsupported,
    list_operations,
    read_arguments,
)
from dragoman.openapi.request import ApiRequests, Headers, write_request
from dragoman.openapi.security import Credentials, Scheme, check_names, select_schemes
from dragoman.openapi.servers import operation_url, server_url
from dragoman.tools import Tool, ToolContext, Toolset

if TYPE_CHECKING:
    from dragoman.transport import Transport

__all__ = ["OpenAPIToolset", "openapi"]

_LOG = logger("openapi")
_CONTEXT = "tool_context__"
"""The handlers' parameter that no argument may be called."""
_REPEATABLE = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PUT"})
"""Methods by which asking twice does what asking once does."""


class OpenAPIToolset(Toolset):
    """A tool for each operation of a document. Made by `openapi`."""

    def __init__(
        self, name: str, tools: Sequence[Tool], left_out: Mapping[str, str], requests: ApiRequests
    ) -> None:
        """Creates a toolset of OpenAPI operations. `left_out`: operations that cannot be tools, and
        why."""
        self.name = name
        self.tools = tuple(tools)
        """The tools, in the document's order."""
        self.left_out = left_out
        """Operations that can be no tool: name → why."""
        self._requests = requests
        self._inside: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()

    async def list_tools(self, context: ToolContext[Any]) -> Sequence[Tool]:  # noqa: ARG002
        """Returns a tool for each selected operation."""
        return self.tools

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._inside[loop] = self._inside.get(loop, 0) + 1
        return self

    async def __aexit__(self, *error: object) -> None:
        """Closes the connections of this event loop to the API after the last run has left."""
        loop = asyncio.get_running_loop()
        self._inside[loop] = self._inside.get(loop, 1) - 1
        if not self._inside[loop]:
            await self._requests.close()


def openapi(
    document: JsonMap | str | Path,
    *,
    base_url: str | None = None,
    api_key: Credentials | None = None,
    headers: Headers | None = None,
    include: Callable[[Operation], bool] | Iterable[str] | None = None,
    transport: Transport | None = None,
    name: str | None = None,
) -> OpenAPIToolset:
    """Makes a toolset of the operations of an API with an OpenAPI document, for
    `Agent(tools=[openapi(…)])`. The document is one of OpenAPI 3.0 or 3.1, as a dict, as its text,
    or in a file; in JSON, or in YAML where PyYAML is installed.

    `base_url`: where requests go, in place of the document's servers; it must be given with keys or
    headers. `api_key`: the key that the document's security schemes ask for, or several by the
    schemes' names; each a text or a function of the `ToolContext`. `headers`: of each request,
    likewise. `include`: names of operations, or a function that chooses them. `transport`: sends
    the requests; left out, one with a limit of a minute for each read. `name`: what errors call the
    set; left out, the document's title.

    Requests go to the base URL's host and to no other. Those that read are repeated where they
    fail, those that write are not.

    Raises:
        SettingsError: the document cannot be read, is wrong, does not say where it is served, or has no use for the key; or a library lacks.
        TypeError: an argument is of another type.
    """
    expect("document", document, Mapping, str, Path)
    expect("base_url", base_url, str, type(None))
    if not isinstance(cast(object, api_key), str | Mapping):
        expect_callable("api_key", api_key, "a text, a function that gives one, or several by name")
    if not isinstance(cast(object, headers), Mapping):
        expect_callable("headers", headers, "a mapping, or a function that gives one")
    api = load(document)
    base = server_url(api, base_url, has_keys=api_key is not None or headers is not None)
    check_names(api, api_key)
    requests = ApiRequests(transport, headers)
    tools: list[Tool] = []
    left_out: dict[str, str] = {}
    is_used = api_key is None
    for api_operation in _select_operations(list_operations(api), include):
        keys = select_schemes(api, api_operation, api_key)
        is_used = is_used or bool(keys)
        hidden = {
            (key.location, key.name.lower() if key.location == "header" else key.name)
            for key in keys
        }
        if headers is not None and not callable(headers):
            hidden |= {("header", header.lower()) for header in headers}
        try:
            parameters, body, schema = read_arguments(api, api_operation, hidden, {_CONTEXT})
        except Unsupported as reason:
            left_out[api_operation.name] = str(reason)
            continue
        url = operation_url(api_operation, base, is_given=base_url is not None)
        handler = _make_handler(requests, api_operation, url, keys, parameters, body)
        tools.append(
            Tool(
                api_operation.name,
                api_operation.description,
                handler,
                schema,
                idempotent=api_operation.method in _REPEATABLE,
            )
        )
    # A key that no request carries is most likely a mistake, so it is an error.
    if not is_used:
        raise SettingsError(
            "api_key= would go with no request: the document does not say how these operations take this key. "
            'Give it as headers=, such as {"Authorization": "Bearer …"}'
        )
    title = name or _title(api)
    for operation, reason in left_out.items():
        _LOG.warning("%s: the operation %s is left out: %s", title, operation, reason)
    return OpenAPIToolset(title, tools, left_out, requests)


def _select_operations(
    every: list[Operation], include: Callable[[Operation], bool] | Iterable[str] | None
) -> Iterable[Operation]:
    """Returns the OpenAPI operations that `include` selects: all, by a function, or by name."""
    if include is None:
        return every
    if callable(include):
        return filter(include, every)
    names = set(expect_each("include", include, str))
    if unknown := names - {operation.name for operation in every}:
        raise SettingsError(
            f"the document has no operation {', '.join(sorted(unknown))}; it has {', '.join(operation.name for operation in every)}"
        )
    return [operation for operation in every if operation.name in names]


def _make_handler(
    requests: ApiRequests,
    operation: Operation,
    url: str,
    keys: Sequence[Scheme],
    parameters: Sequence[Parameter],
    body: Body | None,
) -> Callable[..., Any]:
    """Returns the handler of an operation's tool, which writes and sends its OpenAPI request."""

    async def handler(tool_context__: ToolContext[Any], **arguments: Any) -> Any:
        written = write_request(operation, parameters, body, arguments)
        return await requests.send(operation.method, url, written, keys, tool_context__)

    return handler


def _title(document: Document) -> str:
    return if_text(if_object(document.root.get("info")).get("title")) or "OpenAPI"
