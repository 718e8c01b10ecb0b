"""What a tool raises that must know something from a person before it can go on: `AskUser`, `SignIn`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dragoman.interrupt import Reason

__all__ = ["AskUser", "SignIn"]


class AskUser(Exception):
    """Ends the run with a question in `result.pending`. Once it is answered the tool is run again from its start, with
    `ToolContext.answers`: whatever it did before it asked, it does again."""

    reason: Reason = "input"

    def __init__(
        self,
        message: str,
        schema: Mapping[str, Any] | None = None,
        *,
        expires_at: datetime | None = None,
        metadata: Mapping[str, Any] = {},
    ) -> None:
        """`message`: the question, in words. `schema`: JSON Schema of the answer; `None`: any JSON value. `expires_at`: after this
        it can only be cancelled. `metadata`: goes along, as JSON."""
        super().__init__(message)
        self.message = message
        self.schema = schema
        self.expires_at = expires_at
        self.metadata = metadata


class SignIn(AskUser):
    """The same where somebody must sign in at an address first."""

    reason: Reason = "auth"

    def __init__(
        self, url: str, message: str = "Please sign in.", *, expires_at: datetime | None = None
    ) -> None:
        """`url`: where to sign in."""
        super().__init__(message, expires_at=expires_at, metadata={"url": url})
