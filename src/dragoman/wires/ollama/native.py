"""How this wire keeps what it has beyond the neutral fields: `native["ollama"]`, by the names that this wire uses."""

from dragoman.native import Own

__all__ = ["NAME", "extra", "marked", "response", "spelling"]

NAME = "ollama"

_OWN = Own(NAME)
extra = _OWN.fields
marked = _OWN.note
response = _OWN.response
spelling = _OWN.spelling
