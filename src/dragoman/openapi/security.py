"""With which keys the requests of an API go. No model and no tool's schema ever has a key."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.errors import SettingsError
from dragoman.json_bytes import JsonMap
from dragoman.openapi.document import Document, pointer
from dragoman.openapi.operations import Operation
from dragoman.tools import ToolContext

__all__ = ["Credential", "Credentials", "Scheme", "check_names", "select_schemes"]

Credential = str | Callable[[ToolContext[Any]], str | Awaitable[str]]
"""A key, or a function, plain or async, that gives it for a call. For basic authentication:
`user:password`."""
Credentials = Credential | Mapping[str, Credential]
"""A key for whatever an operation needs, or one for each security scheme, by its name in the
document."""


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
        """Returns the credential of an OpenAPI scheme as it is sent, with its prefix."""
        key = self.credential
        if callable(key):
            result = key(context)
            key = await result if isawaitable(result) else result
        if self.prefix == "Basic ":
            key = base64.b64encode(key.encode()).decode()
        return self.prefix + key


def check_names(document: Document, credentials: Credentials | None) -> None:
    """Raises `SettingsError` where a key is given for a security scheme that the OpenAPI document
    does not have."""
    if credentials is None or isinstance(credentials, str) or callable(credentials):
        return
    declared = _security_schemes(document)
    if unknown := sorted(credentials.keys() - declared.keys()):
        names = ", ".join(declared) or "none"
        raise SettingsError(
            f"api_key= names {', '.join(unknown)}, and the document's security schemes are: {names}"
        )


def select_schemes(
    document: Document, operation: Operation, credentials: Credentials | None
) -> list[Scheme]:
    """Returns the credentials of an OpenAPI operation's requests: those of its first security
    requirement that is complete."""
    if credentials is None:
        return []
    declared = _security_schemes(document)
    requirements = operation.fields.get("security")
    for requirement in if_list(
        document.root.get("security") if requirements is None else requirements
    ):
        names = list(if_object(requirement))
        candidates = [
            _read_scheme(document, name, declared, _find_credential(credentials, name, names))
            for name in names
        ]
        if names and None not in candidates:
            return [scheme for scheme in candidates if scheme is not None]
    return []


def _security_schemes(document: Document) -> JsonMap:
    return if_object(if_object(document.root.get("components")).get("securitySchemes"))


def _find_credential(credentials: Credentials, name: str, names: list[str]) -> Credential | None:
    if isinstance(credentials, str) or callable(credentials):
        return credentials if len(names) == 1 else None
    return credentials.get(name)


def _read_scheme(
    document: Document, name: str, declared: JsonMap, credential: Credential | None
) -> Scheme | None:
    """Returns the OpenAPI security scheme of a name with the caller's credential, or None if it is
    missing or unsupported."""
    if credential is None or name not in declared:
        return None
    fields, _ = document.follow(declared[name], pointer("#/components/securitySchemes", name))
    scheme_type, scheme = fields.get("type"), if_text(fields.get("scheme")).lower()
    if scheme_type == "apiKey":
        return Scheme(credential, if_text(fields.get("in")), if_text(fields.get("name")))
    if scheme_type in ("oauth2", "openIdConnect") or (scheme_type, scheme) == ("http", "bearer"):
        return Scheme(credential, "header", "Authorization", "Bearer ")
    if (scheme_type, scheme) == ("http", "basic"):
        return Scheme(credential, "header", "Authorization", "Basic ")
    return None
