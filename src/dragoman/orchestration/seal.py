"""Signatures of interrupts: an approval counts only for what was to be approved, and nobody can make one up."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime
from typing import Any

import msgspec

from dragoman.errors import ResumeError
from dragoman.interrupt import Interrupt, Resume

__all__ = ["Seal"]

_VERSION = "1"
_encode = msgspec.json.Encoder(order="deterministic").encode


class Seal(msgspec.Struct, frozen=True):
    """Signs what a run waits for, and checks what comes back. A token is `VERSION.EXPIRY.HMAC`, and behind a `+` that of an agent
    within a tool; the expiry is in it since formats of clients have no field for it."""

    key: bytes | None = None
    """The agent's `approval_key`; `None`: nothing is signed."""
    thread: str | None = None
    """Id of the conversation, where one was given."""

    def sealed(self, interrupt: Interrupt, state: bytes = b"") -> Interrupt:
        """The interrupt with its signature. `state`: what its call has been through before, which the signature holds, too."""
        if self.key is None:
            return interrupt
        own = self._token(interrupt, interrupt.id, _seconds(interrupt.expires_at), state)
        inner = f"+{interrupt.signature}" if interrupt.signature else ""
        return msgspec.structs.replace(interrupt, signature=own + inner)

    def check(self, interrupt: Interrupt, resume: Resume, now: datetime, state: bytes = b"") -> str | None:
        """Holds an answer against the signature that it brings → that of the agent within, if any.

        Raises:
            ResumeError: it brings none, it was signed for something else, or it is too late.
        """
        if self.key is None:
            return resume.signature
        own, _, inner = (resume.signature or "").partition("+")
        expiry = own.split(".")[1] if own.count(".") == 2 else ""
        if not own:
            raise ResumeError(
                f"the answer to {resume.interrupt_id!r} brings no signature; make it of the interrupt itself, "
                "with approve() or answer(), and send its `signature` along"
            )
        if not hmac.compare_digest(own.encode(), self._token(interrupt, resume.interrupt_id, expiry, state).encode()):
            raise ResumeError(
                f"the signature of the answer to {resume.interrupt_id!r} is not that of this call: it was made for another "
                "tool, other arguments or answers, another conversation or with another approval_key. Ask anew"
            )
        if expiry and now.timestamp() > int(expiry):
            raise late(resume.interrupt_id)
        return inner or None

    def _token(self, interrupt: Interrupt, interrupt_id: str, expiry: str, state: bytes) -> str:
        call = interrupt.call
        fields: list[Any] = [
            interrupt_id,
            call and call.name,
            call and call.arguments,
            interrupt.reason,
            expiry,
            self.thread,
            *([state.decode()] if state else []),
        ]
        mac = hmac.digest(self.key or b"", _encode([_VERSION, *fields]), "sha256")
        return f"{_VERSION}.{expiry}.{mac.hex()}"


def late(interrupt_id: str) -> ResumeError:
    """The error for an answer that comes too late."""
    return ResumeError(
        f"{interrupt_id!r} has expired; it can be denied or cancelled, or the conversation goes on without it"
    )


def _seconds(moment: datetime | None) -> str:
    if moment is None:
        return ""
    return str(int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()))
