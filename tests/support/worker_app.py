"""An application whose agents a `dragoman worker` of a test drives. Its environment says how slow it
is, and where its tools note what they did."""

from __future__ import annotations

import os
from pathlib import Path

from dragoman import RunRequest, ToolContext, tool
from support.durable import Acts, call, durable_agent

NOTES = os.environ.get("DRAGOMAN_TEST_ACTS")
SECONDS = float(os.environ.get("DRAGOMAN_TEST_SECONDS", "0"))
"""Seconds of each tool, and of each piece of a word of the model."""

support = durable_agent(Acts(Path(NOTES) if NOTES else None, SECONDS), seconds=SECONDS)[0]


@tool
async def spend(context: ToolContext[str]) -> str:
    """Says whose money it is."""
    return f"of {context.deps}"


@tool(requires_approval=True)
async def transfer() -> str:
    """Transfers money."""
    return "done"


sales = durable_agent(Acts(), ((call("spend", "s1"),), ("Sold.",)), tools=[spend])[0]
careful = durable_agent(Acts(), ((call("transfer", "t1"),), ("Sent.",)), tools=[transfer])[0]
number = 1


def make_deps(request: RunRequest) -> str:
    """Returns the deps of a run: whose conversation it is."""
    return request.resource_id or "nobody"
