"""Chooses among a provider's ways of making media, by the MIME types that are asked for.

The plan is a way that makes all of them, ways that one request can hold together, or the last way,
which writes files of any type with code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from dragoman.capability import Capability
from dragoman.errors import SettingsError
from dragoman.providers.media_way import MediaWay
from dragoman.providers.provider import Provider

__all__ = ["MediaPlan", "check_mime_types", "list_ways", "plan_media"]

_ENDPOINT = MediaWay(
    mode="images_endpoint", makes=("image/png", "image/jpeg", "image/webp"), endpoint=True
)
"""The way of a provider that has an endpoint for images and no other way."""
_MIME_TYPE = re.compile(r"[a-z]+/(\*|[a-z0-9][a-z0-9.+-]{0,126})")
_MOST_TYPES = 16


class MediaPlan(msgspec.Struct, frozen=True):
    """The ways in which one request makes its media."""

    ways: tuple[MediaWay, ...]
    """One, or several that one request holds."""
    mime_types: tuple[str, ...]
    """The MIME types that are asked for."""

    @property
    def mode(self) -> str:
        """Returns the plan's mode, that of its way; `mixed` if there are several."""
        modes = [way.mode for way in self.ways]
        if len(modes) == 1:
            return modes[0]
        return "mixed"

    @property
    def endpoint(self) -> bool:
        """Whether the provider's endpoint for images is asked."""
        return any(way.endpoint for way in self.ways)

    @property
    def needs_media_model(self) -> bool:
        """Whether the provider's media model is asked; else its chat model."""
        return any(way.needs_media_model for way in self.ways)


def check_mime_types(mime_types: Iterable[str]) -> tuple[str, ...]:
    """Returns the MIME types to plan media for in lower case, each once.

    Raises:
        SettingsError: there is none, there are too many, or one is none, such as `png`.
    """
    if isinstance(mime_types, str):
        mime_types = (mime_types,)
    types = tuple(dict.fromkeys([str(mime_type).strip().lower() for mime_type in mime_types]))
    if not types:
        raise SettingsError(
            'mime_types is empty: name at least one type to make, such as mime_types=["image/png"]'
        )
    if len(types) > _MOST_TYPES:
        raise SettingsError(f"mime_types has {len(types)} types: give {_MOST_TYPES} at most")
    for mime_type in types:
        if not _MIME_TYPE.fullmatch(mime_type):
            raise SettingsError(
                f"{mime_type[:60]!r} is no MIME type: write one such as image/png or application/pdf"
            )
    return types


def plan_media(provider: Provider, mime_types: Sequence[str]) -> MediaPlan:
    """Returns the plan by which a provider makes media of these types.

    Raises:
        SettingsError: it makes no media, or none of one of these types.
    """
    ways = list_ways(provider)
    if not ways:
        raise SettingsError(
            f"{provider.display_name} provider makes no media; openai-responses, google and anthropic do",
            provider=provider.name,
        )
    chosen: dict[str, MediaWay] = {}
    for mime_type in mime_types:
        way = _find_way(ways, mime_type)
        if way is None:
            types = ", ".join([pattern for way in ways for pattern in way.makes])
            raise SettingsError(
                f"{provider.display_name} provider makes no {mime_type}; it makes {types}",
                provider=provider.name,
            )
        chosen[way.mode] = way
    chosen_ways = tuple(chosen.values())
    if len(chosen_ways) > 1 and not all(way.combines for way in chosen_ways):
        # Code can draw an image, but an image model cannot write a document.
        chosen_ways = ways[-1:]
    return MediaPlan(chosen_ways, tuple(mime_types))


def list_ways(provider: Provider) -> tuple[MediaWay, ...]:
    """Returns the ways in which a provider makes media, the best one first."""
    if provider.media_ways or Capability.images not in provider.capabilities:
        return provider.media_ways
    return (_ENDPOINT,)


def _find_way(ways: Iterable[MediaWay], mime_type: str) -> MediaWay | None:
    """Returns for a media plan the first way that makes a type. `image/*` asks for any that it
    stands for."""
    for way in ways:
        for pattern in way.makes:
            if fnmatchcase(mime_type, pattern) or fnmatchcase(pattern, mime_type):
                return way
    return None
