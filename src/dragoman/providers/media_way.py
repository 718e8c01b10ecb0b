"""How a provider makes media: with an image model, or with code that it runs. Its record lists the
ways, and `media_plan` chooses among them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from dragoman.json_bytes import JsonMap

__all__ = ["MediaWay"]

_NO_FORMATS: Mapping[str, str] = MappingProxyType({})


class MediaWay(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which a provider makes media."""

    mode: str
    """Its name, for the metadata of results."""
    makes: tuple[str, ...]
    """The MIME types that it makes; `*/*` makes any."""
    tool: str | None = None
    """The tool of the provider that makes them; `None`: the model itself does."""
    tool_options: tuple[str, ...] = ()
    """Options of a request that are fields of the tool; the others are fields of the body."""
    formats: Mapping[str, str] = _NO_FORMATS
    """MIME type → the value of the tool's field `output_format`."""
    options: JsonMap = {}
    """Body fields of each request."""
    instructions: str = ""
    """System text that tells the model how to hand over its files. `{types}` is replaced by the
    MIME types."""
    max_tokens: int | None = None
    """Most tokens of an answer, unless a setting says otherwise."""
    needs_media_model: bool = True
    """Whether the provider's media model is asked; else its chat model."""
    endpoint: bool = False
    """Whether the provider's endpoint for images makes them, with its image model."""
    combines: bool = False
    """Whether one request can hold it together with the provider's other ways."""
