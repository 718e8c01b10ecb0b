"""dragoman: one conversation, every model provider, every agent protocol."""
