"""Reads and writes the conversation where it differs from the family's.

Ids of calls have nine letters and digits. The API wants system messages before all others: a later
one that was loaded goes back to its place, any other becomes a marked text of the user's.
`note_loaded` notes such oddities of a loaded conversation, so that without a target it is written
as it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from operator import is_not

from msgspec.structs import replace

from dragoman.codec.fit_ids import fit_names, map_call_ids
from dragoman.codec.format_layout import Layout
from dragoman.json_bytes import Json
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    Message,
    Origin,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ToolSpec
from dragoman.wires.chat import messages
from dragoman.wires.chat.record import DialectRecord, OutgoingChat, find_named_pieces
from dragoman.wires.mistral.quirks import OWN, Quirks

__all__ = [
    "EVIDENCE",
    "call_votes",
    "dump_input_message",
    "fit",
    "note_loaded",
    "explain_unsendable",
    "LAYOUT",
]

LAYOUT = Layout(
    fields=("messages",),
    distinctive=frozenset(["random_seed", "safe_prompt", "prompt_mode"]),
    of_tools=frozenset(["function"]),
)
"""Where the messages stand in the body of a request."""

_RULES = Quirks()
EVIDENCE = {"document_url": 3, "prefix": 3, "image_url": 2, "input_audio": 3}
"""Types of chunks and fields of the model's message that tell this format from others."""


def call_votes(call_id: str) -> int:
    """Returns how surely an id of a call belongs to the Mistral format."""
    if _RULES.ids.fits(call_id):
        return 3
    return 1


def note_loaded(conversation: list[Message]) -> list[Message]:
    """Notes in loaded Mistral messages what would otherwise be changed when it is sent: unfit ids
    and names, late system messages, and thinking in messages that are not the model's."""
    call_ids_seen: set[str] = set()
    head = _count_head(conversation)
    noted: list[Message] = []
    for position, message in enumerate(conversation):
        content = [_note_oddities(piece, message.role, call_ids_seen) for piece in message.content]
        if any(map(is_not, content, message.content)):
            message = message.replace(content=tuple(content))
        if message.role is Role.SYSTEM and position > head:
            message = message.replace(native=OWN.with_form(message.native, place="here"))
        noted.append(message)
    return noted


def _count_head(conversation: Sequence[Message]) -> int:
    """Returns the number of system messages before all others."""
    return sum(1 for _ in takewhile(lambda message: message.role is Role.SYSTEM, conversation))


def _note_oddities(piece: Content, role: Role, call_ids_seen: set[str]) -> Content:
    """Returns a piece of a Mistral message with notes of what would otherwise be changed when it is
    sent."""
    form: Json = {}
    if isinstance(piece, ThinkingPart) and role is not Role.MODEL:
        form["here"] = True
    if isinstance(piece, (ToolCallPart, ToolResultPart)):
        is_call = isinstance(piece, ToolCallPart)
        has_id = "id" not in OWN.fields(piece.native)
        is_duplicate = is_call and piece.id in call_ids_seen
        if has_id and (is_duplicate or not _RULES.ids.fits(piece.id)):
            form["as_is"] = True
        has_name = is_call or "name" in OWN.form(piece.native)
        if has_name and not _RULES.names.fits(piece.name):
            form["name_as_is"] = True
        if is_call:
            call_ids_seen.add(piece.id)
    if not form:
        return piece
    return replace(piece, native=OWN.with_form(piece.native, **form))


def dump_input_message(
    out: OutgoingChat, position: int, sent_ids: Mapping[str, str | None]
) -> list[Json]:
    """Writes a system or user message. A system message that follows any other role becomes a user
    message and is noted as a loss, since the Mistral API takes system messages only at the
    start."""
    message = out.messages[position]
    late = message.role is Role.SYSTEM and position > out.head
    # "here" notes a message that was read from this format at such a place. It is written back as it
    # was read.
    if not late or OWN.form(message.native).get("place") == "here":
        return messages.dump_input_message(out, position, sent_ids)
    why = "the API takes none after the first others; it is a user's text"
    out.lose(position, None, Lost.system_message, why)
    return [{"role": "user", "content": f"<system>\n{message.text}\n</system>"}]


def explain_unsendable(out: OutgoingChat, position: int, piece: Content) -> str | None:
    """Returns why a piece of a model's message cannot be sent to Mistral, or None if it can."""
    if isinstance(piece, ThinkingPart) and not out.quirks.thinking:
        return out.unreadable[position] or "the server takes no thinking back"
    return messages.explain_unsendable(out, position, piece)


def fit(
    chat: DialectRecord,  # noqa: ARG001 as of a method
    conversation: Sequence[Message],
    target: Origin | None,
    quirks: Quirks,
    tools: Sequence[ToolSpec],
) -> Json:
    """Returns the fields of an `OutgoingChat` by which a conversation fits the vendor. `tools`: the
    Mistral request's."""

    def is_as_loaded(piece: ToolCallPart | ToolResultPart | ToolSpec, note: str) -> bool:
        return target is None and note in OWN.form(piece.native)

    named_pieces = find_named_pieces(conversation, tools)
    # Without a target a loaded conversation keeps its ids and names, even unfit ones.
    as_is = [piece.name for piece in named_pieces if is_as_loaded(piece, "name_as_is")]
    ids: dict[tuple[int, int], str] = {}
    if len(named_pieces) > len(tools):
        ids = map_call_ids(
            conversation, quirks.ids, as_is=lambda piece: is_as_loaded(piece, "as_is")
        )
    names = fit_names([piece.name for piece in named_pieces], quirks.names, as_is=as_is)
    return {"ids": ids, "names": names, "bridge": quirks.bridge, "head": _count_head(conversation)}
