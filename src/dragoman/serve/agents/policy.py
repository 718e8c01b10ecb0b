"""What clients may change of the runs of agents: `AgentPolicy`."""

from __future__ import annotations

from typing import Literal, get_args, get_type_hints

import msgspec

from dragoman.errors import SettingsError
from dragoman.request import Settings

__all__ = ["AgentPolicy"]


class AgentPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What clients may change of the runs of agents.

    Raises:
        SettingsError: there is no setting of a name, or a field has a value that is none of its own.
    """

    system: Literal["keep", "drop", "refuse"] = "keep"
    """The client's system texts: they follow the agent's own, or are left out, or the request is refused."""
    tools: Literal["keep", "drop", "refuse"] = "keep"
    """The client's tools, which the model may call beside the agent's own and the client runs."""
    settings: tuple[str, ...] | None = None
    """Names of the `Settings` that the client may set, and `output_schema`; of all others the agent's count. `None`: all."""
    older: bool = True
    """Whether an agent's card says how clients of A2A 0.3 reach it. Validators of 1.0 take no card that does."""
    on_disconnect: Literal["cancel", "detach"] = "cancel"
    """What becomes of a run whose client leaves: it ends, or goes on and its answer is kept."""

    def __post_init__(self) -> None:
        kinds = get_type_hints(AgentPolicy)
        for field in ("system", "tools", "on_disconnect"):
            values, given = get_args(kinds[field]), getattr(self, field)
            if given not in values:
                raise SettingsError(
                    f"AgentPolicy({field}={given!r:.100}) is unknown; there are {', '.join(values)}"
                )
        known = (*Settings.__struct_fields__, "output_schema")
        for name in self.settings or ():
            if name not in known:
                raise SettingsError(
                    f"AgentPolicy(settings=…) names {name!r}; there are {', '.join(known)}"
                )
