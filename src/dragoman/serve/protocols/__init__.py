"""Agents behind the endpoints of agent protocols: cards, conversations, runs."""
