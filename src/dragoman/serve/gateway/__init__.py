"""Models of any provider behind the endpoints of any wire."""
