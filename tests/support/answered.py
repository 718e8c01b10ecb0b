"""What a tool knows that is run again with the answers to its questions."""

from __future__ import annotations

from typing import Any

from dragoman import ToolContext
from dragoman.tools import AskUser
from dragoman.tools.call_record import CallRecord, CallRecords

__all__ = ["answered"]


def answered(*answers: Any, to: AskUser | None = None) -> ToolContext[Any]:
    """The context of a call whose questions got these answers. `to`: the last of them."""
    context = ToolContext[Any](None, records=CallRecords())
    assert context.records is not None
    context.records.begin(
        context.call, CallRecord(answers, question_metadata=to.metadata if to is not None else {})
    )
    return context
