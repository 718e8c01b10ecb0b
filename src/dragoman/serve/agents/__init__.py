"""Agents behind models' endpoints: clients' tools, approvals, and what of a run is shown."""

__all__: list[str] = []
