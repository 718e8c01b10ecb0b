"""Fields of a run's request that a protocol has no place for, carried beside it by clients of ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from dragoman.request import RunRequest

__all__ = ["with_carried"]


def with_carried(
    request: RunRequest, held: Mapping[str, Any], names: Collection[str]
) -> RunRequest:
    """A request with those of its fields that were carried. `names`: fields that may be; fields that are none of a request's kind
    change nothing."""
    fields = {name: value for name, value in held.items() if name in names}
    try:
        given = msgspec.convert(fields, RunRequest)
    except (ValueError, TypeError, RecursionError):
        return request
    return request.replace(**{name: getattr(given, name) for name in fields})
