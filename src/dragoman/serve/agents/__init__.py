"""Agents behind models' endpoints: clients' tools, approvals, and what of a run is shown."""
