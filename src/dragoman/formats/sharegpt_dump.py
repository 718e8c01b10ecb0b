"""Messages → a conversation of ShareGPT, with all that it cannot hold noted.

The format has turns of plain text, in which calls, results and thinking stand between tags.
`_dump_turns` splits each message: results get turns of their own, all else becomes one. Ids are
written only where `_with_ids` finds that a reader, who pairs results with the first open call of
that name, would choose another call.

After an answer is written, `_is_read_as` reads it again. If tags inside a text would be taken for
something else, those pieces are recorded as lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.codec.json_values import has_error, if_object, if_text
from dragoman.codec.marks import strip_all_marks
from dragoman.codec.media import describe_as_text, media_label, read_media_text
from dragoman.codec.native import read_signatures
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.signature_check import name_part_type
from dragoman.formats.sharegpt_tags import (
    TAGS,
    Held,
    dump_answer,
    dump_function_call,
    dump_results,
    load_answer,
)
from dragoman.formats.sharegpt_tools import OWN, Called, OpenCalls
from dragoman.json_bytes import Json
from dragoman.loss import Loss, Lost
from dragoman.message import (
    NOTES,
    Content,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

__all__ = ["dump_messages"]

_SPEAKERS = {Role.USER: "human", Role.MODEL: "gpt", Role.SYSTEM: "system"}
_UNSIGNED = "the format has no place for what its provider signed"
Places = set[tuple[int, int]]
"""Position of a message, place of a piece in it."""
Pieces = Sequence[tuple[int, Content]]
"""Pieces of a message, each with its place in it."""
Results = list[tuple[int, ToolResultPart]]
"""Results of a message, each with its place in it."""


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,
    losses: list[Loss] | None = None,
) -> Json | list[Json]:
    """Returns `{"conversations": […], …}`; the list alone where the messages were read from one.
    What the ShareGPT format cannot hold is added to `losses`."""
    conversation = tuple(messages)
    plain, positions = strip_all_marks(conversation)
    out = Outgoing(
        messages=plain,
        target=target,
        quirks=None,
        losses=[] if losses is None else losses,
        unreadable=(),
        ids={},
        names={},
        part_indexes=positions,
    )
    written = _with_ids(plain)
    document: Json = {"conversations": []}
    for position, message in enumerate(plain):
        document = _with_fields(out, position, document)
        if not message.content and conversation[position].content:
            continue  # there are marks in it alone
        if "system" not in document and _is_of_field(message, position):
            document["system"] = _dump_plain_turn(out, position, list(enumerate(message.content)))
        else:
            document["conversations"] += _dump_turns(out, position, written)
    alone = any(OWN.form(message.native).get("payload") == "list" for message in plain)
    if alone and len(document) == 1:
        return document["conversations"]
    return document


def _with_fields(out: Outgoing[Any], position: int, document: Json) -> Json:
    """Returns a ShareGPT conversation with the fields that stood around the message when it was
    read. Those that it has already, from a message of another conversation, are lost."""
    extra = if_object(OWN.notes(out.messages[position].native).get("document"))
    if twice := [field for field in extra if field in document]:
        out.lose(position, None, Lost.field, "another conversation has it", ", ".join(twice))
    return {**extra, **document}


def _is_of_field(message: Message, position: int) -> bool:
    """True if a message was read from the field `system`, and still can stand there."""
    is_of_field = OWN.form(message.native).get("place") == "system"
    return is_of_field and position == 0 and message.role is Role.SYSTEM and message.text != ""


def _with_ids(messages: Sequence[Message]) -> Places:
    """Returns the calls and results whose ids must be written in ShareGPT, since a reader would
    otherwise take a result for that of another call, or for one of none that is known."""
    pairing, written = OpenCalls(), Places()
    places_by_id: dict[str, Places] = {}
    for position, message in enumerate(messages):
        if message.role is Role.USER:
            pairing.end()
        for part_index, piece in enumerate(message.content):
            if not isinstance(piece, ToolCallPart | ToolResultPart):
                continue
            if "id" in OWN.form(piece.native):
                written.add((position, part_index))
            if piece.run_by == "provider":
                continue
            places = places_by_id.setdefault(piece.id, Places())
            places.add((position, part_index))
            if isinstance(piece, ToolCallPart):
                if _is_sent(message, piece):
                    pairing.call(Called(piece.id, piece.name, position, part_index))
            elif message.role is Role.USER:
                written |= _ids_of_result(piece, (position, part_index), places, pairing)
    return written


def _ids_of_result(
    result: ToolResultPart, place: tuple[int, int], places: Places, pairing: OpenCalls
) -> Places:
    """Answers the call of a result in `pairing`. Returns whose ids must be written in ShareGPT so
    that a reader finds the same call. `places`: all calls and results with its id."""
    if result.id:
        answered = pairing.find(result.id, "")
    else:
        answered = pairing.find("", result.name)
    form = OWN.form(result.native)
    # Without ids a reader takes the first open call of that name, or of any name.
    is_unnamed = not form.keys().isdisjoint(("plain", "bare", "nameless"))
    read_as = answered
    if "id" not in form:
        read_as = pairing.find("", "" if is_unnamed else result.name)
    if answered is None:
        # Its call has a result already, or there is none; a made-up id says nothing.
        if result.id and "made" not in form:
            return places
        return {place} if read_as is not None else Places()
    pairing.answer(answered)
    if read_as == answered:
        return Places()
    return {place, (answered.position, answered.place)}


def _is_sent(message: Message, call: ToolCallPart) -> bool:
    return message.role is Role.MODEL and call.run_by != "provider" and call.name != ""


def _dump_turns(out: Outgoing[Any], position: int, written: Places) -> Iterator[Json]:
    """Yields the ShareGPT turns of a message: those of its results, then one for all else."""
    message = out.messages[position]
    results, pieces = _split_results(message)
    if results:
        if pieces and pieces[0][0] < results[-1][0]:
            why = "results stand in turns of their own, before all else"
            out.lose(position, pieces[0][0], Lost.order, why)
        yield from _result_turns(out, position, results, written)
        if not pieces:
            return
    form = OWN.form(message.native)
    if message.role is Role.MODEL:
        speaker, value = _dump_model_turn(out, position, pieces, written)
    else:
        speaker, value = (
            if_text(form.get("from")) or _SPEAKERS[message.role],
            _dump_plain_turn(out, position, pieces),
        )
    if value is None:
        return
    yield {
        "from": speaker,
        "value": None if not value and "value" in form else value,
        **OWN.fields(message.native),
    }


def _split_results(message: Message) -> tuple[Results, Pieces]:
    """Returns the results that have ShareGPT turns of their own, and all other pieces of a message,
    each with its place in it."""
    results: Results = []
    pieces: list[tuple[int, Content]] = []
    is_user = message.role is Role.USER
    for part_index, piece in enumerate(message.content):
        if is_user and isinstance(piece, ToolResultPart) and piece.run_by != "provider":
            results.append((part_index, piece))
        else:
            pieces.append((part_index, piece))
    return results, pieces


def _result_turns(
    out: Outgoing[Any], position: int, results: Results, written: Places
) -> Iterator[Json]:
    """Yields the ShareGPT turns for the tool results of a message."""
    for turn in _group_results(results):
        note = if_object(OWN.notes(turn[0][1].native).get("turn"))
        values = {
            id(part): _dump_result_value(out, position, part_index, part)
            for part_index, part in turn
        }
        ids = _find_ids(position, turn, written)
        value = dump_results(
            [part for _, part in turn],
            lambda part, values=values: values[id(part)],
            lambda part, ids=ids: ids.get(id(part)),
        )
        yield {
            "from": if_text(note.get("from")) or "tool",
            "value": None if not value and "value" in note else value,
            **if_object(note.get("fields")),
        }


def _group_results(results: Results) -> list[Results]:
    """Returns results by the ShareGPT turns to write: those beside each other share one, except
    where they were read from turns of their own."""
    turns: list[Results] = []
    is_alone_before = True
    for part_index, part in results:
        # A plain text has no tags that could tell it from a result beside it.
        is_alone = "plain" in OWN.form(part.native)
        if is_alone or is_alone_before or "turn" in OWN.notes(part.native):
            turns.append([])
        turns[-1].append((part_index, part))
        is_alone_before = is_alone
    return turns


def _dump_result_value(
    out: Outgoing[Any], position: int, part_index: int, part: ToolResultPart
) -> Any:
    """Returns what a tool result says in ShareGPT, as JSON's value."""
    if part.is_error and not has_error(part.result):
        out.lose(position, part_index, Lost.is_error, "the format has no mark for a failed tool")
    if not part.is_content:
        return part.result
    texts: list[str] = []
    for piece in part.result:
        if isinstance(piece, TextPart):
            texts.append(piece.text)
            continue
        if read_media_text(piece) is None:
            why = "the format holds text only; a text names it"
            out.lose(position, part_index, name_part_type(piece), why, media_label(piece))
        texts.append(describe_as_text(piece))
    if len(texts) > 1:
        out.lose(position, part_index, Lost.texts, "the pieces of a result are one text")
    return "".join(texts)


def _dump_model_turn(
    out: Outgoing[Any], position: int, pieces: Pieces, written: Places
) -> tuple[str, str | None]:
    """Returns the speaker and the text of the ShareGPT turn for a model's content; no text if
    nothing is left of it."""
    message = out.messages[position]
    form = OWN.form(message.native)
    writable = _writable_parts(out, position, pieces)
    ids = _find_ids(position, pieces, written)
    speaker = if_text(form.get("from")) or "gpt"
    if "calls" in form:
        calls = [piece for _, piece in writable if isinstance(piece, ToolCallPart)]
        if calls and len(calls) == len(writable):
            return speaker, dump_function_call(calls, form["calls"], lambda call: ids.get(id(call)))
        # A turn `function_call` holds nothing else; the message was edited since it was read.
        speaker = "gpt"
    if pieces and not writable:
        return speaker, None
    value = dump_answer([piece for _, piece in writable], lambda call: ids.get(id(call)))
    _report_tags(out, position, pieces, writable, value)
    return speaker, value


def _report_tags(
    out: Outgoing[Any],
    position: int,
    pieces: Pieces,
    writable: Sequence[tuple[int, Held]],
    value: str,
) -> None:
    """Notes as lost the pieces with ShareGPT tags in their text, if a reader takes `value`, which
    is written for `writable`, for other pieces."""
    suspects = [entry for entry in writable if _has_tags(entry[1])]
    if suspects and not _is_read_as(value, [piece for _, piece in writable]):
        # The message's own pieces are named; `writable` has joined texts.
        for part_index, piece in [entry for entry in pieces if _has_tags(entry[1])] or suspects:
            why = "it has tags in it that are read as something else"
            out.lose(position, part_index, name_part_type(piece), why)


def _find_ids(position: int, pieces: Pieces, written: Places) -> dict[int, str]:
    """Returns the ids of the calls and results that must be written in ShareGPT, by the identity of
    the piece."""
    return {
        id(piece): piece.id
        for part_index, piece in pieces
        if isinstance(piece, ToolCallPart | ToolResultPart) and (position, part_index) in written
    }


def _has_tags(piece: Content) -> bool:
    return isinstance(piece, TextPart | ThinkingPart) and TAGS.search(piece.text) is not None


def _is_read_as(value: str, parts: Sequence[Held]) -> bool:
    """True if the text of a ShareGPT turn is read as these pieces."""
    read = load_answer(value)
    return [type(piece) for piece in read] == [type(piece) for piece in parts] and all(
        isinstance(part, ToolCallPart) or part.text == getattr(read_part, "text", None)
        for part, read_part in zip(read, parts, strict=True)
    )


def _writable_parts(out: Outgoing[Any], position: int, pieces: Pieces) -> list[tuple[int, Held]]:
    """Returns the pieces of a ShareGPT answer that the format holds, texts that stand beside each
    other as one."""
    writable: list[tuple[int, Held]] = []
    has_tags = any(isinstance(piece, ToolCallPart | ThinkingPart) for _, piece in pieces)
    for part_index, piece in pieces:
        if isinstance(piece, ToolCallPart) and _is_sent(out.messages[position], piece):
            _drop_signature(out, position, part_index, piece)
            if piece.state == "cut":
                out.lose(
                    position,
                    part_index,
                    Lost.tool_call,
                    "it was cut, and is written as one that is not valid",
                )
            writable.append((part_index, piece))
        elif isinstance(piece, ThinkingPart):
            if _holds_thinking(out, position, part_index, piece):
                writable += [(part_index, piece)]
        elif isinstance(piece, ToolCallPart | ToolResultPart | ProviderPart):
            out.lose(
                position,
                part_index,
                name_part_type(piece),
                "the format has no place for it",
                _which(piece),
            )
        else:
            _drop_signature(out, position, part_index, piece)
            text = _as_text(out, position, part_index, piece)
            _add_text(out, position, part_index, text, writable, has_tags=has_tags)
    return writable


def _add_text(
    out: Outgoing[Any],
    position: int,
    part_index: int,
    text: str,
    writable: list[tuple[int, Held]],
    *,
    has_tags: bool,
) -> None:
    """Adds a text to the writable pieces, joined to that before it. `has_tags`: there are pieces
    between tags in the ShareGPT answer."""
    before = writable[-1][1] if writable else None
    if isinstance(before, TextPart):
        out.lose(position, part_index, Lost.texts, "a turn is one text; they are joined")
        writable[-1] = (writable[-1][0], replace(before, text=before.text + text))
    elif has_tags and not text.strip():
        why = "blank text beside tags is not told from what stands between them"
        out.lose(position, part_index, Lost.text, why)
    else:
        writable.append((part_index, TextPart(text)))


def _holds_thinking(out: Outgoing[Any], position: int, part_index: int, part: ThinkingPart) -> bool:
    """Returns whether thinking can be written. Lost thinking and signatures are noted."""
    if not part.text and not OWN.is_ours(part.native):
        out.lose(position, part_index, Lost.thinking, "nothing of it can be read")
        return False
    if any(
        value
        for key, value in (part.native or {}).items()
        if not key.endswith(NOTES) and key != "sharegpt"
    ):
        out.lose(position, part_index, Lost.signature, _UNSIGNED)
    return True


def _drop_signature(out: Outgoing[Any], position: int, part_index: int, piece: Content) -> None:
    if piece.native and read_signatures(piece.native):
        out.lose(position, part_index, Lost.signature, _UNSIGNED)


def _which(piece: Content) -> str:
    """Returns what a loss calls a piece."""
    return str(getattr(piece, "name", "") or getattr(piece, "kind", ""))


def _dump_plain_turn(out: Outgoing[Any], position: int, pieces: Pieces) -> str | None:
    """Returns the ShareGPT turn's text for a message that is not the model's, or None if nothing is
    left of it."""
    texts: list[str] = []
    for part_index, piece in pieces:
        if isinstance(piece, ToolCallPart | ToolResultPart | ProviderPart | ThinkingPart):
            out.lose(
                position,
                part_index,
                name_part_type(piece),
                "the format has no place for it",
                _which(piece),
            )
        else:
            if texts:
                out.lose(position, part_index, Lost.texts, "a turn is one text; they are joined")
            texts.append(_as_text(out, position, part_index, piece))
    if texts or not pieces:
        return "".join(texts)
    return None


def _as_text(out: Outgoing[Any], position: int, part_index: int, piece: Any) -> str:
    """Returns a piece as text to write in a ShareGPT turn; a file is named, as a loss."""
    if isinstance(piece, TextPart):
        return piece.text
    if read_media_text(piece) is None:
        out.lose(
            position,
            part_index,
            name_part_type(piece),
            "the format holds text only; a text names it",
            media_label(piece),
        )
    return describe_as_text(piece)
