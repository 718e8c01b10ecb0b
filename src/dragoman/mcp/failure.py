"""Why a request to a server came to nothing: `Failure`, and what to do about it."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Failure"]


class Failure(msgspec.Struct, frozen=True):
    """What ended a request, as our side of the connection saw it; nothing that a server says makes one."""

    kind: Literal["unreached", "forgotten", "lost", "status", "sign_in"]
    """`unreached`: the server has not taken it. `forgotten`: nor has it, for it knows the session no more. `lost`: it may have. `status`: HTTP
    refused it. `sign_in`: somebody must sign in."""
    text: str
    """What was wrong, in words."""
    url: str = ""
    """Where to sign in."""
