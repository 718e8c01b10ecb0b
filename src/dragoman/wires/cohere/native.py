"""How this wire keeps what it has beyond the neutral fields: `native["cohere"]`, by the names that this wire uses."""

from dragoman.native import Own

__all__ = ["NAME", "extra", "marked", "respelled", "response", "spelling"]

NAME = "cohere"

_OWN = Own(NAME)
extra = _OWN.fields
marked = _OWN.note
respelled = _OWN.spelled
response = _OWN.response
spelling = _OWN.spelling
