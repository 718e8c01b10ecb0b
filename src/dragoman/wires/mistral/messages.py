"""The conversation, where it is other than the family's: ids of calls have nine letters and digits,
and the API wants system messages before all others; one that is loaded from a later place goes back
there, any other becomes a user text marked as such.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from operator import is_not

from msgspec.structs import replace

from dragoman.codec.ids import fit_names, map_call_ids
from dragoman.codec.layout import Layout
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
    own=frozenset(["random_seed", "safe_prompt", "prompt_mode"]),
    of_tools=frozenset(["function"]),
)
"""Where its messages stand."""

_RULES = Quirks()
EVIDENCE = {"document_url": 3, "prefix": 3, "image_url": 2, "input_audio": 3}
"""What tells this format: types of chunks, fields of the model's message."""


def call_votes(call_id: str) -> int:
    """How surely an id of a call is of this format."""
    return 3 if _RULES.ids.fits(call_id) else 1


def note_loaded(conversation: list[Message]) -> list[Message]:
    """Notes what would otherwise not be sent as it is: ids and names that are not fit, late system
    messages, thinking in messages that are none of the model's."""
    call_ids_seen: set[str] = set()
    head = _head(conversation)
    out: list[Message] = []
    for position, message in enumerate(conversation):
        content = [_note_oddities(piece, message.role, call_ids_seen) for piece in message.content]
        if any(map(is_not, content, message.content)):
            message = message.replace(content=tuple(content))
        if message.role is Role.SYSTEM and position > head:
            message = message.replace(native=OWN.with_form(message.native, place="here"))
        out.append(message)
    return out


def _head(conversation: Sequence[Message]) -> int:
    """How many system messages stand before all others."""
    return sum(1 for _ in takewhile(lambda message: message.role is Role.SYSTEM, conversation))


def _note_oddities(piece: Content, role: Role, call_ids_seen: set[str]) -> Content:
    form: Json = {}
    if isinstance(piece, ThinkingPart) and role is not Role.MODEL:
        form["here"] = True
    if isinstance(piece, (ToolCallPart, ToolResultPart)):
        is_call = isinstance(piece, ToolCallPart)
        has_id = "id" not in OWN.fields(piece.native)
        if has_id and (not _RULES.ids.fits(piece.id) or (is_call and piece.id in call_ids_seen)):
            form["as_is"] = True
        if (is_call or "name" in OWN.form(piece.native)) and not _RULES.names.fits(piece.name):
            form["name_as_is"] = True
        if is_call:
            call_ids_seen.add(piece.id)
    return replace(piece, native=OWN.with_form(piece.native, **form)) if form else piece


def dump_input_message(
    out: OutgoingChat, position: int, sent_ids: Mapping[str, str | None]
) -> list[Json]:
    """A system message, or a user's. The API takes no system message after the first others."""
    message = out.messages[position]
    late = message.role is Role.SYSTEM and position > out.head
    if not late or OWN.form(message.native).get("place") == "here":
        return messages.dump_input_message(out, position, sent_ids)
    out.lose(
        position,
        None,
        Lost.system_message,
        "the API takes none after the first others; it is a user's text",
    )
    return [{"role": "user", "content": f"<system>\n{message.text}\n</system>"}]


def explain_unsendable(out: OutgoingChat, position: int, piece: Content) -> str | None:
    """Why a piece of a model's message cannot be sent; `None`: it can."""
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
    """The fields of an `Outgoing` by which a conversation fits the vendor. `tools`: those of the
    request."""

    def is_as_loaded(piece: ToolCallPart | ToolResultPart | ToolSpec, note: str) -> bool:
        return target is None and note in OWN.form(piece.native)

    named = find_named_pieces(conversation, tools)
    as_is = [piece.name for piece in named if is_as_loaded(piece, "name_as_is")]
    ids: dict[tuple[int, int], str] = {}
    if len(named) > len(tools):
        ids = map_call_ids(
            conversation, quirks.ids, as_is=lambda piece: is_as_loaded(piece, "as_is")
        )
    names = fit_names([piece.name for piece in named], quirks.names, as_is=as_is)
    return {"ids": ids, "names": names, "bridge": quirks.bridge, "head": _head(conversation)}
