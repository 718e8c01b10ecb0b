"""How this wire keeps what it has beyond the neutral fields: `native["cohere"]`, by the names that this wire uses."""

from dragoman.codec.native import Own

__all__ = ["NAME", "OWN", "extra", "marked", "respelled", "response", "spelling"]

NAME = "cohere"

OWN = Own(NAME)
extra = OWN.fields
marked = OWN.note
respelled = OWN.spelled
response = OWN.response
spelling = OWN.spelling
