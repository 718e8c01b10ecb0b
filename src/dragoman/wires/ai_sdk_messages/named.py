"""Who answered, as a part that is written tells it to its reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_list, if_object
from dragoman.wires.ai_sdk_messages.own import OURS
from dragoman.wires.ai_sdk_messages.signatures import provider_of

__all__ = ["named_in"]

_KEYS = ("providerMetadata", "callProviderMetadata", "resultProviderMetadata", "providerOptions")
_SIGNED = ("reasoning", "redacted-reasoning")


def named_in(part: Mapping[str, Any]) -> str | None:
    """The provider, by our name; `None`: nothing tells it. In ai 4 Anthropic alone signs."""
    for key in _KEYS:
        for name, value in if_object(part.get(key)).items() if key in part else ():
            if name != OURS and (found := provider_of(name, if_object(value))):
                return found
    if part.get("type") not in _SIGNED:
        return None
    signed = any(
        if_object(each).keys() & {"signature", "data"} for each in if_list(part.get("details"))
    )
    return "anthropic" if signed or part.keys() & {"signature", "data"} else None
