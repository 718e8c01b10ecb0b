"""Keys of an API: which an operation needs, and where they go. No model and no tool's schema ever has them."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.errors import SettingsError
from dragoman.openapi.document import Document, pointer
from dragoman.openapi.operations import Operation
from dragoman.tools import ToolContext

__all__ = ["Credential", "Credentials", "Scheme", "check_names", "schemes"]

Credential = str | Callable[[ToolContext[Any]], str | Awaitable[str]]
"""A key, or a function, plain or async, that gives it for a call. For basic authentication: `user:password`."""
Credentials = Credential | Mapping[str, Credential]
"""A key for whatever an operation needs, or one for each security scheme, by its name in the document."""


class Scheme(msgspec.Struct, frozen=True):
    """Where a key goes, and whose it is."""

    credential: Credential
    """The key."""
    location: str
    """`header`, `query` or `cookie`."""
    name: str
    """Of the header, the parameter or the cookie."""
    prefix: str = ""
    """What stands before it."""

    async def value(self, context: ToolContext[Any]) -> str:
        """What is sent."""
        key = self.credential
        if callable(key):
            given = key(context)
            key = await given if isawaitable(given) else given
        if self.prefix == "Basic ":
            key = base64.b64encode(key.encode()).decode()
        return self.prefix + key


def check_names(document: Document, credentials: Credentials | None) -> None:
    """Raises `SettingsError` where a key is given for a security scheme that the document does not have."""
    if credentials is None or isinstance(credentials, str) or callable(credentials):
        return
    known = _known(document)
    if unknown := sorted(credentials.keys() - known.keys()):
        names = ", ".join(known) or "none"
        raise SettingsError(
            f"api_key= names {', '.join(unknown)}, and the document's security schemes are: {names}"
        )


def schemes(
    document: Document, operation: Operation, credentials: Credentials | None
) -> list[Scheme]:
    """The keys that an operation's requests have: of the first of its requirements for which there are all."""
    if credentials is None:
        return []
    known = _known(document)
    given = operation.fields.get("security")
    for requirement in if_list(document.root.get("security") if given is None else given):
        names = list(if_object(requirement))
        found = [
            _scheme(document, name, known, _credential(credentials, name, names)) for name in names
        ]
        if names and None not in found:
            return [one for one in found if one is not None]
    return []


def _known(document: Document) -> Mapping[str, Any]:
    return if_object(if_object(document.root.get("components")).get("securitySchemes"))


def _credential(credentials: Credentials, name: str, names: list[str]) -> Credential | None:
    if isinstance(credentials, str) or callable(credentials):
        return credentials if len(names) == 1 else None
    return credentials.get(name)


def _scheme(
    document: Document, name: str, known: Mapping[str, Any], credential: Credential | None
) -> Scheme | None:
    if credential is None or name not in known:
        return None
    fields, _ = document.followed(known[name], pointer("#/components/securitySchemes", name))
    kind, scheme = fields.get("type"), if_text(fields.get("scheme")).lower()
    if kind == "apiKey":
        return Scheme(credential, if_text(fields.get("in")), if_text(fields.get("name")))
    if kind in ("oauth2", "openIdConnect") or (kind, scheme) == ("http", "bearer"):
        return Scheme(credential, "header", "Authorization", "Bearer ")
    if (kind, scheme) == ("http", "basic"):
        return Scheme(credential, "header", "Authorization", "Basic ")
    return None
