"""A client's body on its way to a provider of the same API: as it is, but for the name of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dragoman.request import HttpRequest, ModelRequest

__all__ = ["Forward", "forward_to"]

Forward: TypeAlias = Callable[[ModelRequest, Mapping[str, Any], Any], HttpRequest]
"""(request, its verbatim body, quirks) → path, headers and body. The request says the model, whether to stream, and what headers held."""


def forward_to(path: str) -> Forward:
    """Forwards to an API that has the model in the body."""

    def forward(request: ModelRequest, body: Mapping[str, Any], quirks: Any) -> HttpRequest:  # noqa: ARG001 as of `Forward`
        return HttpRequest(path, body={**body, "model": request.model})

    return forward
