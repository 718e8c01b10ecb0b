"""What a tool asks a person (`AskUser`, `SignIn`), and what is known of a call beside the call: the
answers that its tool got, and the runs of agents in it. A tool that waited is run again from its
start, and finds them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from dragoman.interrupt import Interrupt, Reason, Resume
from dragoman.json_bytes import JsonMap
from dragoman.message import Message, ToolCallPart

__all__ = [
    "AskUser",
    "CallRecord",
    "CallRecords",
    "InnerRun",
    "SignIn",
]


class AskUser(Exception):
    """Ends the run with a question in `result.pending`. Once it is answered the tool is run again
    from its start, with `ToolContext.answers`: whatever it did before it asked, it does again."""

    reason: Reason = "input"

    def __init__(
        self,
        message: str,
        schema: JsonMap | None = None,
        *,
        expires_at: datetime | None = None,
        metadata: JsonMap = {},
    ) -> None:
        """Creates the question that a tool's call record keeps. `message`: the question, in words.
        `schema`: JSON Schema of the answer; `None`: any JSON value. `expires_at`: after this it can
        only be cancelled. `metadata`: goes along, as JSON."""
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
        """Creates the request to sign in that a tool's call record keeps. `url`: where to sign
        in."""
        super().__init__(message, expires_at=expires_at, metadata={"url": url})


class InnerRun(msgspec.Struct, frozen=True):
    """A run of an agent within a tool, as far as it came."""

    messages: tuple[Message, ...] = ()
    """All of its conversation; with `after`, what is not also that of the run around it. Empty: it
    has not begun, or left nothing."""
    output: Any = None
    """What it gave, once it is done."""
    done: bool = False
    """Whether it came to its end."""
    after: str | None = None
    """Id of the message of the conversation around it up to which that is also its own; `None`: no
    message of it is."""


class AgentWaits(AskUser):
    """An agent within a tool waits, so the tool does."""

    def __init__(self, pending: tuple[Interrupt, ...], runs: tuple[InnerRun, ...]) -> None:
        super().__init__("an agent in the tool waits")
        self.pending = pending
        self.runs = runs


class CallRecord:
    """Of one call, while its tool runs."""

    def __init__(
        self,
        answers: Iterable[Any] = (),
        runs: Iterable[InnerRun] = (),
        resume: Iterable[Resume] = (),
        question_metadata: JsonMap = {},
        *,
        is_edited: bool = False,
    ) -> None:
        """Creates the record of the calls of a run that waited."""
        self.answers = tuple(answers)
        """To the questions of the tool, in the order in which they were asked."""
        self.question_metadata = question_metadata
        """With which the tool asked the last of them."""
        self.runs = list(runs)
        """Runs of agents in the tool, in order."""
        self.resume = tuple(resume)
        """Answers to what the last of them waits for."""
        self.is_edited = is_edited
        """True if a person changed the arguments of the call."""
        self.steps: set[str] = set()
        """Names of the steps that the tool has begun."""
        self.questions = 0
        self.sent = 0


class CallRecords:
    """The records of a run's calls. Two calls may have one id, so a record belongs to the very call
    that is run."""

    def __init__(self) -> None:
        self._records: dict[int, tuple[ToolCallPart, CallRecord]] = {}

    def of(self, call: ToolCallPart) -> CallRecord:
        """Returns the record of a call; a new one where there is none."""
        # By identity, since two calls of a round may have one id; the call is held, so that no
        # other gets its identity.
        return self._records.setdefault(id(call), (call, CallRecord()))[1]

    def edited_arguments(self, call: ToolCallPart) -> JsonMap | None:
        """Returns the arguments of a call if a person changed them."""
        _, record = self._records.get(id(call), (call, None))
        return call.arguments if record is not None and record.is_edited else None

    def begin(self, call: ToolCallPart, record: CallRecord) -> None:
        """Gives a call that is about to be run again its record."""
        self._records[id(call)] = call, record
