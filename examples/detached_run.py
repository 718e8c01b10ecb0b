"""A run that goes on while its reader comes and goes: the first reader leaves, a second reads on
from there, in another `Runs`.

python examples/detached_run.py [URL OF A LOG]
"""

from __future__ import annotations

import asyncio
import sys

from dragoman import Agent, PartDelta
from dragoman.runs import Runs, open_log


async def main(url: str = "memory:") -> None:
    async with open_log(url) as log, Runs(log) as runs, Runs(log) as elsewhere:
        run_id = await runs.start(Agent(), "Tell me about rivers.", thread_id="rivers")
        next_offset = 0
        async for offset, event in runs.attach(run_id):
            next_offset = offset + 1
            if isinstance(event, PartDelta) and offset > 6:
                print("the first reader leaves after:", event.delta)
                break
        async for _, event in elsewhere.attach(run_id, next_offset):
            if isinstance(event, PartDelta):
                print(event.delta, end="", flush=True)
        status = await elsewhere.status(run_id)
        print(f"\n{status.state}, {status.end} events")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
