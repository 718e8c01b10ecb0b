"""What a run waits for, and the answer to it: `Interrupt` and `Resume`. Values: they go through
JSON, processes and days."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from dragoman.message import ToolCallPart

__all__ = ["Interrupt", "Reason", "Resume"]

Reason = Literal["tool", "approval", "input", "auth", "doubt"]
"""`tool`: the client runs the call. `approval`: somebody must allow it. `input`: a person is asked.
`auth`: somebody must sign in. `doubt`: the process that ran the call ended, and nobody knows what the
call did: `approve` runs it again, `answer` gives the result that it had, `deny` says that it did
nothing."""


class Resume(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to an `Interrupt`. `Interrupt` makes it: `approve`, `deny`, `answer`, `cancel`."""

    interrupt_id: str
    """Id of the interrupt that is answered."""
    status: Literal["resolved", "cancelled"] = "resolved"
    """`cancelled`: nobody answers it any more; the model is told so."""
    payload: Any = None
    """Of an approval `{"approved": bool, "arguments": {…}, "reason": "…"}`, the latter two
    optional; else `{"value": …}`, any JSON."""
    signature: str | None = None
    """The interrupt's, as it came."""
    metadata: Mapping[str, Any] = {}
    """The interrupt's, as it came: what a client that keeps the history has to bring back."""


class Interrupt(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that a run waits for. It is in `ChatResult.pending` and in `RunFinished.pending`;
    the run has ended."""

    id: str
    """The call's id where the conversation has it once, else with the message's. The same in every
    process."""
    reason: Reason = "tool"
    """What is waited for."""
    call: ToolCallPart | None = None
    """The model's call that waits, as the model made it."""
    message: str | None = None
    """What a person is told or asked, in words."""
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the answer's value; `None`: any."""
    expires_at: datetime | None = None
    """After this it can be denied or cancelled, and nothing else; `None`: never."""
    editable: bool = False
    """Whether an approval may come with other arguments."""
    signature: str | None = None
    """Seals id, call, reason, expiry and thread, where the agent has an `approval_key`."""
    parent: tuple[str, ...] = ()
    """Ids of the calls, outermost first, in whose tools the agent runs that waits."""
    metadata: Mapping[str, Any] = {}
    """What else is known, such as the `url` of a sign-in."""

    def __repr__(self) -> str:
        """Returns what the interrupt waits for, in a line: the fields that a reader needs to answer
        it."""
        call = self.call
        if call is None:
            call_text = []
        else:
            call_text = [
                f"{call.name}({', '.join(f'{key}={value!r:.40}' for key, value in call.arguments.items())})"
            ]
        more = [
            f"{name}={value!r:.60}"
            for name, value in (("message", self.message), ("expires_at", self.expires_at))
            if value
        ]
        return f"Interrupt({', '.join([repr(self.id), repr(self.reason), *call_text, *more])})"

    def approve(self, arguments: Mapping[str, Any] | None = None) -> Resume:
        """Returns the resume of this interrupt that lets the call run. `arguments`: edited ones in
        place of the model's, if the interrupt is `editable`."""
        if arguments is None:
            edited = {}
        else:
            edited = {"arguments": dict(arguments)}
        return self._resume({"approved": True, **edited})

    def deny(self, reason: str | None = None) -> Resume:
        """Denies the call: it is not run, and the model is told so with the reason. The model is
        told so, and the reason."""
        return self._resume({"approved": False, **({} if reason is None else {"reason": reason})})

    def answer(self, value: object) -> Resume:
        """Gives what is waited for: the result of the client's tool, the answer to the question,
        what came of the sign-in; any JSON value."""
        return self._resume({"value": value})

    def cancel(self) -> Resume:
        """Gives up. The model is told that nobody answered."""
        return msgspec.structs.replace(self._resume(None), status="cancelled")

    def _resume(self, payload: object) -> Resume:
        return Resume(self.id, payload=payload, signature=self.signature, metadata=self.metadata)
