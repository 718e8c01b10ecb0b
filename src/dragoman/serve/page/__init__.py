"""The page of a server: its files, and the routes under `/page` that it asks. Everything is the
caller's own; what is another's is as if it were not there."""

__all__: list[str] = []
