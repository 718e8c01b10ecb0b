"""What a client allows is done once, however often its request comes in: each answer is claimed before it is acted upon.

A signed answer is claimed by the nonce of its token under its owner, whatever stands around it. One
without a signature is claimed under its conversation: the thread that the client names or goes on
with, the answer that it goes on from, or the words up to the model's message as the client sends
them. So other words in front are another conversation; only `approval_key` rules that out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dragoman.orchestration.interrupts import since_model
from dragoman.orchestration.seal import SIGNED
from dragoman.serve.calls.call import Call
from dragoman.serve.conversations.recalling import Recalled
from dragoman.serve.conversations.threads import resource_of, scope_of
from dragoman.serve.store.records import conversation_key

__all__ = ["claim_of"]


def claim_of(call: Call, known: Recalled) -> Callable[[str, str, str], Awaitable[bool]]:
    """The `claim` of a run: it notes an answer in the log that all processes of the server share.

    The thread that the run works in is not asked: a request that names none may get a new one each
    time that it is sent.
    """
    place = _place(call, known)
    owner = f"owner:{resource_of(call)}"

    async def claim(_: str, name: str, run_id: str) -> bool:
        return await call.service.log.claim(
            owner if name.startswith(SIGNED) else place, name, run_id
        )

    return claim


def _place(call: Call, known: Recalled) -> str:
    if known.thread_id is not None:
        return known.thread_id
    scope = scope_of(resource_of(call), None)
    if known.parent is not None:
        return f"answer:{scope}{known.parent}"
    return conversation_key(known.shown[: since_model(known.shown)], scope)
