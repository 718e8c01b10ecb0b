"""What was asked of a client, made of the copy that it sends back, where the server has kept nothing of the conversation."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.interrupt import Interrupt, Resume
from dragoman.message import Content, Message, Role, ToolCallPart
from dragoman.orchestration.interrupts import WaitingCall
from dragoman.repair import OpenCall
from dragoman.serve.agents.interrupts import interrupts_in, resumes_in, without_interrupts
from dragoman.wires.wire import Wire

__all__ = ["restored"]


def restored(messages: Sequence[Message], wire: Wire) -> tuple[list[Message], list[Resume]]:
    """The conversation with the calls that were asked about in the last answer, and what the client said to them. All of it may be made up.

    Raises:
        InvalidRequestError: an answer cannot be understood.
    """
    last = max(
        (at for at, message in enumerate(messages) if message.role is Role.MODEL), default=None
    )
    waiting = {} if last is None else interrupts_in(messages[last], wire)
    end = 0 if last is None else last + 1
    tail, resumes = resumes_in(messages[end:], waiting, wire)
    if last is None or not waiting:
        return [*without_interrupts(messages[:end], wire), *tail], []
    answered = {resume.interrupt_id for resume in resumes}
    content: list[Content] = []
    marks: list[Content] = []
    for piece in messages[last].content:
        interrupt = next(
            iter(interrupts_in(messages[last].replace(content=(piece,)), wire).values()), None
        )
        if interrupt is None:
            content.append(piece)
        elif interrupt.id in answered and interrupt.call is not None:
            if interrupt.reason != "approval":
                marks.append(_waiting(interrupt, interrupt.call, len(content)).mark())
            content.append(interrupt.call)
    noted = [Message.user(*marks)] if marks else []
    model = [messages[last].replace(content=tuple(content))] if content else []
    return [*without_interrupts(messages[:last], wire), *model, *noted, *tail], resumes


def _waiting(interrupt: Interrupt, call: ToolCallPart, place: int) -> WaitingCall:
    return WaitingCall(OpenCall(0, place, 0, call), (interrupt,))
