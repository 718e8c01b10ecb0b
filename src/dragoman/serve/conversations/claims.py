"""What a client allows is done once, however often and wherever its request comes in: each answer is noted before it is acted upon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dragoman.orchestration.interrupts import since_model
from dragoman.serve.calls.call import Call
from dragoman.serve.conversations.recalling import Recalled
from dragoman.serve.conversations.threads import resource_of, scope_of
from dragoman.serve.store.records import conversation_key

__all__ = ["claim_of"]


def claim_of(call: Call, known: Recalled, thread_id: str | None) -> Callable[[str, str, str], Awaitable[bool]]:
    """The `claim` of a run: it notes an answer in the log that all processes of the server share, under its conversation. `thread_id`: its
    thread; without one it is what was answered, or the words that the client sends."""
    place = thread_id or _place(call, known)

    async def claim(_: str, interrupt_id: str, run_id: str) -> bool:
        return await call.service.log.claim(place, interrupt_id, run_id)

    return claim


def _place(call: Call, known: Recalled) -> str:
    scope = scope_of(resource_of(call), None)
    if known.parent is not None:
        return f"answer:{scope}{known.parent}"
    return conversation_key(known.shown[: since_model(known.shown)], scope)
