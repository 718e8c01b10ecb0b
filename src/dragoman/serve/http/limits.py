"""How much a server takes, from one client and from all."""

from __future__ import annotations

import msgspec

from dragoman.arguments import expect
from dragoman.errors import ContextLengthError, InvalidRequestError, SettingsError
from dragoman.request import ModelRequest, RunRequest

__all__ = ["ServerLimits", "check_conversation", "check_request"]


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a server takes. `None`: as much as comes.

    Raises:
        SettingsError: one is not above 0.
    """

    body_bytes: int | None = 32 * 1024 * 1024
    """Most bytes of a request's body; files stand in it as base64."""
    bodies_bytes: int | None = 1024 * 1024 * 1024
    """Most bytes of the bodies of all calls that run."""
    body_seconds: float | None = 60.0
    """Most seconds that a body may take to come."""
    depth: int | None = 128
    """Most levels of objects and lists in a body; never more than 128."""
    values: int | None = 2_000_000
    """Most commas and opening brackets in a body, which bound what it takes in memory: some 60
    bytes each."""
    form_parts: int | None = 100
    """Most fields and files of a form."""
    field_bytes: int | None = 1024 * 1024
    """Most bytes of a field of a form that is no file."""
    file_bytes: int | None = 25 * 1024 * 1024
    """Most bytes of a file of a form."""
    messages: int | None = 10_000
    """Most messages of a conversation."""
    conversation_bytes: int | None = 128 * 1024 * 1024
    """Most bytes of a conversation as it is kept, in JSON."""
    tools: int | None = 512
    """Most tools of a request."""
    open_calls: int | None = 4096
    """Most calls that run at a time."""
    calls_per_caller: int | None = None
    """Most of them with one key."""
    run_seconds: float | None = 3600.0
    """Most seconds that a call may run."""
    write_seconds: float | None = 120.0
    """So long a client may read nothing of what was sent, before its call is ended."""
    kept_seconds: float | None = 30 * 24 * 3600.0
    """So long answers are kept; of a conversation that goes on all are, until its latest is that
    old."""
    keep_seconds: float | None = 5.0
    """So long an answer waits to be kept, before its client gets its end all the same."""
    ping_seconds: float = 10.0
    """After so much silence a stream gets a sign that it is still open, where its format has
    one."""

    def __post_init__(self) -> None:
        """Raises `SettingsError` for a server limit that is no number above 0."""
        for name in self.__struct_fields__:
            value: object = getattr(self, name)
            expect(
                f"ServerLimits({name})",
                value,
                int,
                float,
                *([] if name == "ping_seconds" else [type(None)]),
            )
            if isinstance(value, int | float) and not value > 0:
                raise SettingsError(
                    f"ServerLimits({name}={value}) must be above 0; None takes the limit away"
                )


def check_request(request: ModelRequest | RunRequest, limits: ServerLimits) -> None:
    """Raises where a request holds more than the server's limits say.

    Raises:
        ContextLengthError: it has too many messages.
        InvalidRequestError: it has too many tools.
    """
    if limits.messages is not None and len(request.messages) > limits.messages:
        raise ContextLengthError(
            f"the conversation has {len(request.messages)} messages, and this server takes {limits.messages}; leave out its beginning"
        )
    if limits.tools is not None and len(request.tools) > limits.tools:
        raise InvalidRequestError(
            f"the request has {len(request.tools)} tools, and this server takes {limits.tools}"
        ).at(field="tools")


def check_conversation(size: int, most: int | None) -> None:
    """Raises where a kept conversation is larger than the server's limits allow. `size`, `most`:
    bytes.

    Raises:
        ContextLengthError: it is.
    """
    if most is not None and size > most:
        raise ContextLengthError(
            f"the conversation has more than {most} bytes, which is the most that this server takes; begin a new one"
        )
