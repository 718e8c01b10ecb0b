"""Signs interrupts, so that an approval is valid only for the call that was shown and cannot be
forged.

A token is `VERSION.EXPIRY.NONCE.HMAC`. The HMAC covers the interrupt (id, tool, arguments, reason,
schema), the expiry, the thread, the owner and the nonce, so that the approval is of no use to
another caller or in another conversation. Expiry and nonce are in the token because formats of
clients have no field for them. The nonce names the question: it is derived from the id of the
model's message, so that a question that is asked for again gets the same token, and what stops a
replay is a claim on it (`claim_name`). Behind a `+` is the token of an agent within the tool.

Tokens of version 1 had neither owner nor nonce. They are refused: the question must be asked anew.
"""

from __future__ import annotations

import hmac
import os
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from dragoman.errors import ResumeError
from dragoman.interrupt import Interrupt, Resume

__all__ = ["SIGNED", "Seal"]

SIGNED = "token:"
"""Prefix of claims of signed answers: they are unique among all questions of their owner."""
_VERSION = "2"
_encode = msgspec.json.Encoder(order="deterministic").encode


class Seal(msgspec.Struct, frozen=True):
    """Signs interrupts and checks the answers."""

    key: bytes | None = None
    """The agent's `approval_key`; `None`: nothing is signed."""
    thread: str | None = None
    """Id of the conversation, if it has one."""
    owner: str | None = None
    """Owner of the conversation: the run's `resource_id`, if it has one."""

    def sign_interrupt(self, interrupt: Interrupt, state: bytes = b"") -> Interrupt:
        """Returns the interrupt with its signature. `state`: earlier answers to its call, which are
        signed too."""
        if self.key is None:
            return interrupt
        token = _Token(_dump_expiry(interrupt.expires_at), _make_nonce(interrupt))
        outer = self._sign_interrupt(interrupt, interrupt.id, token, state)
        inner = f"+{interrupt.signature}" if interrupt.signature else ""
        return msgspec.structs.replace(interrupt, signature=outer + inner)

    def check(
        self, interrupt: Interrupt, resume: Resume, now: datetime, state: bytes = b""
    ) -> str | None:
        """Checks the seal (signature) of an answer. Returns the inner signature for an agent inside
        the tool, or None.

        Raises:
            ResumeError: it brings none, it was signed for something else, or it is too late.
        """
        if self.key is None:
            return resume.signature
        outer, _, inner = (resume.signature or "").partition("+")
        if not outer:
            raise ResumeError(
                f"the answer to {resume.interrupt_id!r} brings no signature; make it of the interrupt itself, "
                "with approve() or answer(), and send its `signature` along"
            )
        token = _parse_token(outer)
        # In constant time, so that nobody can guess a signature byte by byte.
        if not hmac.compare_digest(
            outer.encode(),
            self._sign_interrupt(interrupt, resume.interrupt_id, token, state).encode(),
        ):
            raise ResumeError(
                f"the signature of the answer to {resume.interrupt_id!r} is not that of this call: it was made for another "
                "tool, other arguments or answers, another user, another conversation, with another approval_key or by an "
                "earlier release. Ask anew"
            )
        if token.expiry and now.timestamp() > int(token.expiry):
            raise late_error(resume.interrupt_id)
        return inner or None

    def claim_name(self, resume: Resume, interrupt_id: str) -> str:
        """Returns from the seal the name under which an answer is claimed before it takes effect:
        the nonce of its token, which is unique; without signatures the interrupt's id, which is
        unique in its conversation only."""
        if self.key is None:
            return interrupt_id
        return SIGNED + _parse_token((resume.signature or "").partition("+")[0]).nonce

    def _sign_interrupt(
        self, interrupt: Interrupt, interrupt_id: str, token: _Token, state: bytes
    ) -> str:
        """Returns the signature for an interrupt."""
        call = interrupt.call
        fields: list[Any] = [
            interrupt_id,
            call and call.name,
            call and call.arguments,
            interrupt.reason,
            token.expiry,
            token.nonce,
            self.thread,
            self.owner,
            state.decode(),
            interrupt.schema,
        ]
        mac = hmac.digest(self.key or b"", _encode([_VERSION, *fields]), "sha256")
        return f"{_VERSION}.{token.expiry}.{token.nonce}.{mac.hex()}"


class _Token(NamedTuple):
    """The readable fields of a token."""

    expiry: str = ""
    """Seconds since 1970; empty: never."""
    nonce: str = ""


def _parse_token(token: str) -> _Token:
    """Returns the fields of a seal's token; empty ones, which no signature matches, if it is
    malformed."""
    fields = token.split(".")
    if len(fields) != 4 or fields[0] != _VERSION:
        return _Token()
    return _Token(fields[1], fields[2])


def _make_nonce(interrupt: Interrupt) -> str:
    """Returns a nonce for a seal derived from the ids of message and interrupt, or a random one
    without them."""
    message_id = interrupt.metadata.get("message_id")
    # A history without ids, which only its client keeps: the token alone has the nonce.
    if not message_id:
        return os.urandom(16).hex()
    return blake2b(_encode([message_id, interrupt.id]), digest_size=16).hexdigest()


def late_error(interrupt_id: str) -> ResumeError:
    """Returns the error for an answer after the expiry in its seal."""
    return ResumeError(
        f"{interrupt_id!r} has expired; it can be denied or cancelled, or the conversation goes on without it"
    )


def _dump_expiry(moment: datetime | None) -> str:
    """Returns the expiry that a seal signs as seconds since 1970; empty without one."""
    if moment is None:
        return ""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return str(int(moment.timestamp()))
