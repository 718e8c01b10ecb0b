"""Agents behind the endpoints of agent protocols: cards, conversations, runs."""

__all__: list[str] = []
