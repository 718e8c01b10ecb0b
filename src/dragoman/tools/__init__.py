"""Tools: their schema and their execution."""
