"""How this wire keeps what it has beyond the neutral fields: `native["anthropic"]`, by the names that this wire uses."""

from dragoman.codec.native import Own

__all__ = ["NAME", "OWN", "fields", "is_foreign", "is_ours", "note", "notes", "response", "spelled", "spelling"]

NAME = "anthropic"

OWN = Own(NAME)
fields = OWN.fields
is_foreign = OWN.is_foreign
is_ours = OWN.is_ours
note = OWN.note
notes = OWN.notes
response = OWN.response
spelled = OWN.spelled
spelling = OWN.spelling
