"""How this wire keeps what it has beyond the neutral fields: `native["ollama"]`, by the names that this wire uses."""

from dragoman.codec.native import Own

__all__ = ["NAME", "OWN", "extra", "marked", "response", "spelling"]

NAME = "ollama"

OWN = Own(NAME)
extra = OWN.fields
marked = OWN.note
response = OWN.response
spelling = OWN.spelling
