"""Items of OpenAI's Agents SDK: what `to_input_list()` gives and its sessions store. They are items
of the Responses API, in the list alone, and with them what the SDK notes of models that it does not
reach by that API (`provider_data` of an item).

Signatures in it are lifted to the wire of the provider that signed, so that they go back to it. A
reasoning item of Anthropic's stands for several blocks of thinking: it is as many pieces, each with
its signature; the first knows what else the item held.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec.format_layout import Layout
from dragoman.codec.json_values import if_list, if_object, if_objects, if_text, read_extra_fields
from dragoman.codec.native import WireNative, read_signatures
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import (
    NOTES,
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from dragoman.wires import openai_responses
from dragoman.wires.openai_responses.content import dump_reasoning, load_reasoning
from dragoman.wires.openai_responses.quirks import NAME, OWN
from dragoman.wires.openai_responses.quirks import OWN as RESPONSES

__all__ = ["FAKE_ID", "dump_messages", "layout", "lift", "load_messages", "lower", "name", "votes"]

FAKE_ID = "__fake_id__"
"""The id of items that no Responses API made."""
_OWN = WireNative("openai_agents")
_DATA = "provider_data"
_BLOCKS = "thinking_blocks"
_FAMILIES = {"claude": "anthropic", "gemini": "google"}
_PREFIXES = {"gemini": "google", "vertex_ai": "google"}


def lift(message: Message) -> Message:
    """Returns a model message that the Responses wire has read, with the origin that its Agents SDK
    items name, and with signatures moved to their provider's wire."""
    message = message.replace(content=_with_items(message.content, {}))
    items = [_item_fields(piece) for piece in message.content]
    if any(item.get("id") == FAKE_ID for item in items):
        message = message.replace(origin=None)
    data = [provider_data for item in items if (provider_data := if_object(item.get(_DATA)))]
    if not data:
        return message
    content: list[Content] = []
    for piece in message.content:
        content += _lift_piece(piece)
    return message.replace(content=tuple(content), origin=_find_item_origin(data) or message.origin)


def _lift_piece(piece: Content) -> Sequence[Content]:
    """Returns a piece of an Agents SDK message with its signature where its provider's wire has it;
    thinking becomes as many pieces as it has blocks."""
    if isinstance(piece, ThinkingPart):
        return _lift_thinking(piece)
    if isinstance(piece, ToolCallPart):
        return [_lift_call(piece)]
    return [piece]


def lower(message: Message, position: int, losses: list[Loss]) -> tuple[Message, tuple[int, ...]]:
    """Returns a message as the Responses wire writes it for the SDK, and the former place of each
    piece. The inverse of `lift`. Signatures that have no place are added to `losses`."""
    if message.role is not Role.MODEL:
        return message, tuple(range(len(message.content)))
    content: list[Content] = []
    part_indexes: list[int] = []
    index = 0
    parts = message.content
    if not any(
        isinstance(piece, DataPart | LinkPart | FilePart) for piece in parts
    ):  # they are texts beside items
        parts = _with_items(parts, {"id": FAKE_ID, "status": "completed", "type": "message"})
    while index < len(parts):
        piece, taken = parts[index], 1
        if isinstance(piece, ThinkingPart):
            piece, taken = _lower_thinking(message, index)
            loses_signature = taken == 1 and _is_signed_elsewhere(piece)
        else:
            loses_signature = _has_unplaced_signature(piece)
        if loses_signature:
            why = "the SDK has no place for what this provider signed"
            losses.append(Loss(position, index, Lost.signature, why))
        if isinstance(piece, ToolCallPart):
            piece = _lower_call(piece, message.origin)
        content.append(piece)
        part_indexes.append(index)
        index += taken
    return message.replace(content=tuple(content)), tuple(part_indexes)


def _has_unplaced_signature(piece: Content) -> bool:
    """True if the Agents SDK has no place for what a provider signed in a piece other than
    thinking."""
    if isinstance(piece, ProviderPart):
        return False
    signatures = read_extra_fields(read_signatures(piece.native), NAME)
    if isinstance(piece, ToolCallPart):
        # The SDK keeps what Gemini signed in a call's `provider_data`.
        signatures.pop("google", None)
    return bool(signatures)


def _with_items(content: Sequence[Content], item: Json) -> tuple[Content, ...]:
    """Returns the content, where each text that no item of the API's begins begins one with these
    fields: the Agents SDK takes a text without them for a message of its own, apart from the
    thinking before and the calls behind it."""
    pieces: list[Content] = []
    goes_on = False
    for piece in content:
        is_of_item = RESPONSES.is_ours(piece.native)
        goes_on = isinstance(piece, TextPart) and (is_of_item or goes_on)
        if isinstance(piece, TextPart) and not goes_on:
            piece = replace(
                piece,
                native={**(piece.native or {}), **(RESPONSES.with_notes(None, item=item) or {})},
            )
        pieces.append(piece)
    return tuple(pieces)


def _item_fields(piece: Content) -> Json:
    """Returns the fields of the Agents SDK item that a piece is, or begins."""
    return {
        **RESPONSES.fields(piece.native),
        **if_object(RESPONSES.notes(piece.native).get("item")),
    }


def _find_item_origin(data: Sequence[JsonMap]) -> Origin | None:
    """Returns the origin that the Agents SDK items of a message name, or None."""
    model = _find_text(data, "model")
    provider = _name_provider(model)
    if not provider and any(_BLOCKS in fields for fields in data):
        provider = "anthropic"
    if not provider:
        return None
    model_name = model.partition("/")[2] or model
    response_id = _find_text(data, "response_id") or None
    return Origin(provider, model=model_name or None, response_id=response_id)


def _find_text(data: Sequence[JsonMap], field: str) -> str:
    """Returns the first text that stands in this field of `data`; empty if there is none."""
    return next((text for fields in data if (text := if_text(fields.get(field)))), "")


def _name_provider(model: str) -> str:
    """Returns the provider that a model's name in the Agents SDK tells by its prefix (`gemini/…`),
    or else by its family; empty if it tells none."""
    prefix, slash, _ = model.partition("/")
    if slash:
        return _PREFIXES.get(prefix, prefix)
    families = _FAMILIES.items()
    return next((provider for family, provider in families if model.startswith(family)), "")


def _is_by(origin: Origin | None, provider: str) -> bool:
    """True if a provider answered, or nothing says that another did."""
    return origin is None or origin.provider == provider


def _dump_provider_data(prefix: str, origin: Origin | None) -> Json:
    """Returns the `provider_data` that the OpenAI Agents SDK notes at an item of a model that it
    calls through LiteLLM, such as `gemini/…`. `prefix`: LiteLLM's for the provider."""
    model = origin and (origin.model or origin.served_model)
    if model:
        return {"model": f"{prefix}/{model}"}
    return {}


# ------------------------------------------------------------------ thinking


def _lift_thinking(part: ThinkingPart) -> list[ThinkingPart]:
    """Splits the Agents SDK's reasoning item into the thinking blocks that Anthropic signed in its
    `provider_data`."""
    item = dump_reasoning(part)
    data = if_object(item.get(_DATA))
    blocks = if_objects(data.get(_BLOCKS))
    if not blocks or not all(_is_block(block) for block in blocks):
        return [part]
    envelope = read_extra_fields(item, "type", "summary", "content", "encrypted_content")
    envelope[_DATA] = read_extra_fields(data, _BLOCKS)
    if _dump_reasoning_item(envelope, blocks) == item:
        note = envelope
    else:
        note = item
    parts = [_load_block(block) for block in blocks]
    first = parts[0]
    noted = _OWN.note(item=note, blocks=len(parts), mark=True) or {}
    return [replace(first, native={**noted, **(first.native or {})}), *parts[1:]]


def _lower_thinking(message: Message, index: int) -> tuple[ThinkingPart, int]:
    """Returns the thinking that is written as one item, and how many pieces from `index` on it
    stands for: the Agents SDK puts all blocks of Anthropic's thinking into one."""
    first = message.content[index]
    assert isinstance(first, ThinkingPart)
    notes = _OWN.notes(first.native)
    has_item = "item" in notes
    if not has_item and not (_is_by(message.origin, "anthropic") and _is_anthropics(first)):
        return _with_id(first), 1
    parts = _same_item_parts(message.content[index:], notes.get("blocks") if has_item else None)
    blocks = [_dump_block(part) for part in parts]
    item = if_object(notes.get("item"))
    if not has_item:
        item = {"id": FAKE_ID, _DATA: _dump_provider_data("anthropic", message.origin)}
    data = if_object(item.get(_DATA))
    is_whole = item.get("type") == "reasoning"
    if not is_whole or data.get(_BLOCKS) != blocks:
        envelope = read_extra_fields(item, "type", "summary", "content", "encrypted_content")
        item = _dump_reasoning_item({**envelope, _DATA: read_extra_fields(data, _BLOCKS)}, blocks)
    return load_reasoning(item), len(parts)


def _with_id(part: ThinkingPart) -> ThinkingPart:
    """Returns thinking with an id of its item: the Agents SDK knows no item of thinking without
    one."""
    if RESPONSES.is_ours(part.native):
        return part
    return replace(part, native={**(part.native or {}), NAME: {"id": FAKE_ID}})


def _same_item_parts(content: Sequence[Content], most: object) -> list[ThinkingPart]:
    """Returns the pieces at the start of `content` that belong to one Agents SDK item. `most`: how
    many blocks the item had when it was read, if it was."""
    if isinstance(most, int):
        limit = max(most, 1)
    else:
        limit = len(content)
    parts: list[ThinkingPart] = []
    for piece in content[:limit]:
        if not isinstance(piece, ThinkingPart):
            break
        begins_item = not _is_anthropics(piece) or _OWN.is_ours(piece.native)
        if parts and begins_item:
            break
        parts.append(piece)
    return parts


def _dump_reasoning_item(envelope: JsonMap, blocks: Sequence[JsonMap]) -> Json:
    """Returns the item that the Agents SDK makes of blocks of thinking. `envelope`: its other
    fields."""
    texts = [text for block in blocks if (text := if_text(block.get("thinking")))]
    signatures = [signature for block in blocks if (signature := if_text(block.get("signature")))]
    return {
        "type": "reasoning",
        **envelope,
        "summary": [{"type": "summary_text", "text": "".join(texts)}] if texts else [],
        "content": [{"type": "reasoning_text", "text": text} for text in texts],
        **({"encrypted_content": "\n".join(signatures)} if signatures else {}),
        _DATA: {**if_object(envelope.get(_DATA)), _BLOCKS: [*blocks]},
    }


def _is_block(block: JsonMap) -> bool:
    thinking = block.get("type") == "thinking" and isinstance(block.get("thinking"), str)
    return thinking or (block.get("type") == "redacted_thinking" and "thinking" not in block)


def _load_block(block: JsonMap) -> ThinkingPart:
    """Returns an Anthropic thinking block in the Agents SDK's `provider_data` as thinking."""
    if block["type"] == "redacted_thinking":
        return ThinkingPart(native={"anthropic": dict(block)})
    block_fields = read_extra_fields(block, "type", "thinking")
    return ThinkingPart(block["thinking"], {"anthropic": block_fields} if block_fields else None)


def _dump_block(part: ThinkingPart) -> Json:
    """Returns thinking as an Anthropic block for the Agents SDK's `provider_data`."""
    block_fields = if_object((part.native or {}).get("anthropic"))
    if "type" in block_fields:
        return dict(block_fields)
    return {"type": "thinking", "thinking": part.text, **block_fields}


def _is_anthropics(part: ThinkingPart) -> bool:
    return bool(part.native) and "anthropic" in part.native


def _is_signed_elsewhere(part: ThinkingPart) -> bool:
    """Returns whether another provider than OpenAI signed the thinking."""
    native = part.native or {}
    return any(
        value
        for key, value in native.items()
        if not key.endswith(NOTES) and key not in (NAME, "openai_agents")
    )


# ------------------------------------------------------------------ calls


def _lift_call(call: ToolCallPart) -> ToolCallPart:
    """Returns a call with Gemini's signature moved from the Agents SDK's `provider_data` to
    Google's native fields."""
    fields = RESPONSES.fields(call.native)
    data = if_object(fields.get(_DATA))
    signature = if_text(data.get("thought_signature"))
    if not signature:
        return call
    item_fields = {**fields, _DATA: read_extra_fields(data, "thought_signature")}
    return replace(
        call,
        native={
            **(call.native or {}),
            NAME: item_fields,
            "google": {"thoughtSignature": signature},
        },
    )


def _lower_call(call: ToolCallPart, origin: Origin | None) -> ToolCallPart:
    """Returns a call with Gemini's signature moved from Google's native fields to the Agents SDK's
    `provider_data`."""
    signature = if_text(if_object((call.native or {}).get("google")).get("thoughtSignature"))
    if not signature:
        return call
    fields = RESPONSES.fields(call.native)
    if _DATA in fields:
        data = if_object(fields[_DATA])
    else:
        data = _dump_provider_data("gemini", origin)
    item_fields = {**fields, _DATA: {**data, "thought_signature": signature}}
    return replace(call, native={**(call.native or {}), NAME: item_fields})


name = "openai_agents"
layout = Layout(fields=())
"""Its list stands in no body of a request."""


def votes(message: object) -> int:
    """Returns how surely an object is an item of the SDK: 0 = cannot be, 1 = could be (or one of
    the Responses API alone), 2 = likely, 3 = hardly anything else."""
    fields = if_object(message)
    vote = openai_responses.votes(read_extra_fields(fields, "provider_data"))
    if vote and ("provider_data" in fields or fields.get("id") == FAKE_ID):
        return 3
    return min(vote, 1)


def load_messages(
    payload: object, *, origin: Origin | None = None, problems: list[Problem] | None = None
) -> list[Message]:
    """Reads a list of items. `origin` is given to the model's messages where the items do not name
    a model. With `problems`, an item that cannot be read is left out and noted there.

    Raises:
        HistoryError: it is no list, or an item cannot be read and no problems are noted.
    """
    if not isinstance(payload, list):
        raise HistoryError(
            "items of the Agents SDK are a list, as result.to_input_list() or session.get_items() gives it"
        )
    messages = openai_responses.load_messages(
        {"input": cast("list[Any]", payload)}, origin=origin, problems=problems
    )
    return [lift(message) if message.role is Role.MODEL else message for message in messages]


def dump_messages(
    messages: Iterable[Message], *, target: Origin | None = None, losses: list[Loss] | None = None
) -> list[Json]:
    """Writes messages as a list of items, for `Runner.run(agent, items)` or
    `session.add_items(items)`. What they cannot hold is added to `losses`."""
    lowered_messages: list[Message] = []
    part_indexes: list[tuple[int, ...]] = []
    signed: list[Loss] = []
    for position, message in enumerate(messages):
        if message.role is Role.SYSTEM:  # instructions are the agent's in the SDK
            message = message.replace(native=OWN.with_form(message.native, place="input"))
        lowered, indexes = lower(message, position, signed)
        lowered_messages.append(lowered)
        part_indexes.append(indexes)
    noted: list[Loss] = []
    payload = openai_responses.dump_messages(lowered_messages, target=target, losses=noted)
    if losses is not None:
        losses += [*signed, *(_locate_loss(loss, part_indexes) for loss in noted)]
    items = payload["input"]
    return if_list(items) or ([{"role": "user", "content": items}] if items else [])


def _locate_loss(loss: Loss, part_indexes: list[tuple[int, ...]]) -> Loss:
    """Returns a loss of the Agents SDK's format at the place that the piece has in the message that
    was given."""
    if loss.message is None or loss.part is None:
        return loss
    return Loss(
        loss.message, part_indexes[loss.message][loss.part], loss.what, loss.why, loss.which
    )
