"""What A2A is here: its name, its version, our extension of it, and the words of its older versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from dragoman.codec.native import Own
from dragoman.message import Role

__all__ = [
    "EXTENSION",
    "NAME",
    "OWN",
    "REPLY",
    "ROLES",
    "ROLE_NAMES",
    "VERSION",
    "Quirks",
    "role_of",
]

NAME = "a2a"
OWN = Own(NAME)
"""Its part of `native`."""
VERSION = "1.0"
"""Of the protocol that is written; 0.2 and 0.3 are read too."""
EXTENSION = "https://dragoman.dev/a2a/ext/conversation/v1"
"""URI of our extension. Under it stands, in metadata, what the protocol has no field for; each of its values is a text, since peers
that keep JSON as protobuf change numbers and the order of keys."""
REPLY = "a2a_reply"
"""Name of a custom event by which a run says that it is answered by a message, and no task: for short answers that are not streamed."""
ROLE_NAMES: Mapping[Role, str] = {
    Role.USER: "ROLE_USER",
    Role.MODEL: "ROLE_AGENT",
    Role.SYSTEM: "ROLE_USER",
}
"""Whose a message is → as it is written. The protocol has no system messages: they are the user's, and the extension knows better."""
ROLES: Mapping[str, Role] = {
    "ROLE_USER": Role.USER,
    "ROLE_AGENT": Role.MODEL,
    "user": Role.USER,
    "agent": Role.MODEL,
    "assistant": Role.MODEL,
}
"""As it is read, 0.3 and the time before it included."""


class Quirks(msgspec.Struct, frozen=True):
    """What a peer takes."""

    extras: bool = True
    """Whether it is sent what the protocol has no field for, under `EXTENSION`."""
    version: Literal["1.0", "0.3"] = VERSION
    """Of the protocol that it speaks."""
    binding: Literal["jsonrpc", "rest"] = "jsonrpc"
    """By which it is asked."""
    streams: bool = True
    """Whether it tells a task while it works on it."""


def role_of(value: object) -> Role | None:
    """The role of that name; `None`: there is none."""
    return ROLES.get(value) if isinstance(value, str) else None
