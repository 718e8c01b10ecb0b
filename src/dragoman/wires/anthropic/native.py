"""How this wire keeps what it has beyond the neutral fields: `native["anthropic"]`, by the names that this wire uses."""

from dragoman.native import Own

__all__ = ["NAME", "fields", "is_foreign", "is_ours", "note", "response", "spelled", "spelling"]

NAME = "anthropic"

_OWN = Own(NAME)
fields = _OWN.fields
is_foreign = _OWN.is_foreign
is_ours = _OWN.is_ours
note = _OWN.note
response = _OWN.response
spelled = _OWN.spelled
spelling = _OWN.spelling
