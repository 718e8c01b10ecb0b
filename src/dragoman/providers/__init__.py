"""Provider records, and the registry that finds one by name."""
