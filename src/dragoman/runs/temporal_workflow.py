"""The workflow that drives one run on Temporal. It has no logic of an agent, so that it never changes
while it is under way, and it imports nothing of dragoman: workflows are replayed from their history."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

__all__ = ["ACTIVITY", "HEARTBEAT", "WORKFLOW", "DriveRun"]

WORKFLOW = "dragoman-run"
ACTIVITY = "dragoman-drive"
HEARTBEAT = timedelta(seconds=20)
"""Time without a heartbeat after which Temporal takes a worker for dead."""
_LONGEST = timedelta(days=30)
"""Time that one worker may drive a run. Then it is handed over."""
_RETRY = RetryPolicy(initial_interval=timedelta(seconds=0.1), maximum_interval=timedelta(seconds=5))
_LONGEST_PAUSE = 8
"""The pauses double until they are so many times the first one."""
_MOST_CALLS = 100
"""Calls of one execution. A new one takes its place then, so that its history stays short."""


# Outside the sandbox, which would import the package of this module again.
@workflow.defn(name=WORKFLOW, sandboxed=False)
class DriveRun:
    """Has a run driven until it is over."""

    @workflow.run
    async def run(self, run_id: str, again_seconds: float) -> None:
        """`again_seconds`: first pause before a run is tried again."""
        for number in range(_MOST_CALLS):
            again = await workflow.execute_activity(
                ACTIVITY,
                run_id,
                result_type=bool,
                start_to_close_timeout=_LONGEST,
                heartbeat_timeout=HEARTBEAT,
                retry_policy=_RETRY,
            )
            if not again:
                return
            await workflow.sleep(again_seconds * min(2**number, _LONGEST_PAUSE))
        workflow.continue_as_new(args=[run_id, again_seconds])
