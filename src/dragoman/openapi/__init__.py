"""APIs that an OpenAPI document describes, as tools: `openapi`. Needs `pip install
"dragoman[openapi]"`."""

from __future__ import annotations

from dragoman.openapi.operations import Operation
from dragoman.openapi.security import Credential, Credentials
from dragoman.openapi.toolset import OpenAPIToolset, openapi

__all__ = ["Credential", "Credentials", "OpenAPIToolset", "Operation", "openapi"]
