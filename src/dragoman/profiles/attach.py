"""How a profile comes to a request: lowering on its way to the wire, and the facts that the wire
itself writes by."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.loss import Loss
from dragoman.model_profile import ModelProfile
from dragoman.profiles.lower import lower
from dragoman.request import ModelRequest, ServerTool, Settings

__all__ = ["attach_profile", "lower_for", "needs_profile"]

_WRITING_WIRES = ("anthropic", "google")
"""Wires that write by a profile even where the request has no settings: one demands `max_tokens`,
the other writes calls and results by the model's generation."""
_NOTHING = Settings()


def needs_profile(request: ModelRequest, wire: str) -> bool:
    """Returns whether a profile is to be attached to a request: whether anything in it depends on
    what its model accepts; if not, no table is loaded for it. `wire`: name of the wire that writes
    it."""
    return (
        wire in _WRITING_WIRES
        or request.settings != _NOTHING
        or request.output_schema is not None
        or any(isinstance(tool, ServerTool) for tool in request.tools)
    )


def lower_for(
    request: ModelRequest, profile: ModelProfile | None, wire: str
) -> tuple[ModelRequest, tuple[Loss, ...]]:
    """Attaches a profile to a request: returns it as it is sent to a model with this profile, and
    what was changed.

    What a client wrote in the API and for the model that it goes to is sent as it is: a refusal is
    the client's answer.
    """
    is_clients_own = request.as_sent and not request.renamed
    if profile is None or request.verbatim is not None or is_clients_own:
        return request, ()
    return lower(request, profile, wire=wire)


def attach_profile(quirks: Any, wire: Any, profile: ModelProfile | None) -> Any:
    """Returns a wire's record of differences with the profile of the model that is asked; the same
    where the wire does not write by it.

    Args:
        quirks: the record; `None`: the wire's defaults.
        wire: the wire's package.
        profile: `None`: nothing is known.
    """
    record = getattr(wire, "Quirks", None)
    if profile is None or record is None or "profile" not in record.__struct_fields__:
        return quirks
    return msgspec.structs.replace(record() if quirks is None else quirks, profile=profile)
