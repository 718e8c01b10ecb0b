"""What everything that keeps something in a database shares. Needs the extra `sql` or
`postgres`."""

__all__: list[str] = []
