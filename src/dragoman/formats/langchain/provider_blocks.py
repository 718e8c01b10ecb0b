"""Blocks that LangChain keeps as a provider has them: those of Anthropic's Messages API, and items
of the Responses API, where a text is a block with its item's id. They are read and written by those
wires, so that what is signed goes back as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_objects, if_text, read_extra_fields
from dragoman.content import Content
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Message, Role
from dragoman.wires import anthropic, openai_responses
from dragoman.wires.openai_responses.tools import CALL_ITEMS
from dragoman.wires.openai_responses.tools_results import RESULT_ITEMS

__all__ = [
    "ANTHROPIC",
    "RESPONSES",
    "dump_blocks",
    "dump_exploded",
    "family",
    "load_blocks",
    "load_exploded",
    "without_index",
]

ANTHROPIC, RESPONSES = anthropic.name, openai_responses.name
Block = Json
_ITEMS = {*CALL_ITEMS, *RESULT_ITEMS, "mcp_list_tools", "reasoning"}
_TEXTS = {"text": "output_text", "refusal": "refusal"}
"""Type of a block of a text → that of the block in the provider's item."""
_CITATIONS = {"url_citation", "file_citation", "container_file_citation", "file_path"}
"""Types of annotations of the API's own."""
_OF_BLOCK = {"output_text": "text", "refusal": "refusal"}
_OF_ITEM = ("id", "phase")
"""Fields of a message item that LangChain keeps with each of its texts."""


_ANTHROPIC_TYPES = frozenset(
    [
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "document",
        "container_upload",
        "search_result",
        "tool_addition",
        "tool_removal",
    ]
)
"""Types of blocks that only Anthropic has."""
_USER_TYPES = ("input_text", "input_image", "input_file")
"""Types of the blocks of a user in Responses."""


def family(block: JsonMap, role: Role) -> str | None:
    """Returns the wire whose block it is; `None` if it is LangChain's own, or of no known wire."""
    block_type = if_text(block.get("type"))
    if block_type == "compaction":
        return ANTHROPIC if "content" in block else RESPONSES
    if _is_anthropic(block, block_type):
        return ANTHROPIC
    if _is_responses(block, block_type, role):
        return RESPONSES
    return None


def _is_anthropic(block: JsonMap, block_type: str) -> bool:
    """True if only Anthropic writes such a block, by its type or its fields."""
    if block_type in _ANTHROPIC_TYPES:
        return True
    if block_type == "image":
        return isinstance(block.get("source"), dict)
    if block_type == "text":
        return "citations" in block or "cache_control" in block
    # `web_search_tool_result` and its like; `server_tool_result` is LangChain's standard block.
    return block_type.endswith("tool_result") and block_type != "server_tool_result"


def _is_responses(block: JsonMap, block_type: str, role: Role) -> bool:
    """True if only Responses writes such a block, by its type or its fields."""
    if role is not Role.MODEL:
        return block_type in _USER_TYPES
    if block_type in _TEXTS:
        fields = {"type", block_type, "annotations", "logprobs", *_OF_ITEM}
        return bool(if_text(block.get("id"))) and set(block) <= fields
    if block_type == "reasoning":
        # LangChain's standard block of reasoning holds its text in `reasoning`.
        return "summary" in block or ("content" in block and "reasoning" not in block)
    return block_type in _ITEMS


def load_blocks(wire: str, blocks: Sequence[Block], role: Role) -> tuple[Content, ...]:
    """Returns the pieces that blocks of one wire, beside each other in a LangChain message, stand
    for.

    Raises:
        HistoryError: they cannot be read.
    """
    if wire == ANTHROPIC:
        entry = {"role": "assistant" if role is Role.MODEL else "user", "content": list(blocks)}
        return anthropic.load_messages({"messages": [entry]})[0].content
    if role is Role.MODEL:
        items = _dump_responses_items(blocks)
    else:
        items = [{"role": "user", "content": list(blocks)}]
    messages = openai_responses.load_messages({"input": items})
    if any(message.role is not role for message in messages):
        raise HistoryError("an item of the client's stands in a message of the model's")
    return tuple([piece for message in messages for piece in message.content])


def dump_blocks(wire: str, pieces: Sequence[Content], role: Role, losses: list[Loss]) -> list[Any]:
    """Returns pieces as LangChain blocks of a wire. What the wire cannot hold is added to `losses`,
    with the place of the piece among `pieces`."""
    message = Message(Role.MODEL if role is Role.MODEL else Role.USER, tuple(pieces))
    if wire == ANTHROPIC:
        entries = anthropic.dump_messages([message], losses=losses)["messages"]
        content: Any = []
        if entries:
            content = entries[0]["content"]
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return list(content)
    items = if_objects(openai_responses.dump_messages([message], losses=losses).get("input"))
    blocks: list[Any] = []
    for item in items:
        if "role" not in item:
            blocks.append(item)
            continue
        blocks += _split_item(item, message.role)
    return blocks


def _split_item(item: JsonMap, role: Role) -> list[Any]:
    """Returns the blocks of a message item. Those of the model's have the item's id and phase, as
    LangChain has no items of messages."""
    content = item.get("content")
    if isinstance(content, str):
        inner = [{"type": "output_text", "text": content}]
    else:
        inner = if_list(content)
    if role is not Role.MODEL:
        return inner
    about = {key: item[key] for key in _OF_ITEM if key in item}
    return [_text_block(if_object(block), about) for block in inner]


def load_exploded(blocks: Sequence[Block]) -> tuple[Content, ...]:
    """Returns the piece that the LangChain standard blocks of one reasoning item were made of."""
    first = read_extra_fields(blocks[0], "reasoning", "extras")
    summary = [
        {"type": "summary_text", "text": block["reasoning"]}
        for block in blocks
        if "reasoning" in block
    ]
    item = {**first, **if_object(blocks[0].get("extras")), "summary": summary}
    return load_blocks(RESPONSES, [item], Role.MODEL)


def dump_exploded(piece: Content) -> list[Block]:
    """Returns a reasoning item as LangChain standard blocks, one for each piece of its summary."""
    item = if_object(next(iter(dump_blocks(RESPONSES, [piece], Role.MODEL, [])), None))
    common, more = (
        {key: item[key] for key in ("type", "id") if key in item},
        read_extra_fields(item, "type", "id", "summary"),
    )
    texts = [piece.get("text", "") for piece in if_objects(item.get("summary"))]
    if not texts:
        return [{**common, **({"extras": more} if more else {})}]
    return [
        {**common, **({} if index else more), "reasoning": text} for index, text in enumerate(texts)
    ]


def _dump_responses_items(blocks: Sequence[Block]) -> list[Block]:
    """Returns LangChain blocks of a provider as items of the Responses API: adjacent texts of one
    message are one item."""
    items: list[Block] = []
    for block in blocks:
        block_type = if_text(block.get("type"))
        if block_type not in _TEXTS:
            items.append(block)
            continue
        about = {key: block[key] for key in _OF_ITEM if key in block}
        item_block = {**read_extra_fields(block, *_OF_ITEM), "type": _TEXTS[block_type]}
        before = items[-1] if items else {}
        if before.get("type") == "message" and "id" in about and before.get("id") == about["id"]:
            before["content"].append(item_block)
            continue
        item = {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            **about,
            "content": [item_block],
        }
        items.append(item)
    return items


def _text_block(block: Block, about: JsonMap) -> Block:
    return {**block, "type": _OF_BLOCK.get(block.get("type", ""), block.get("type")), **about}


def without_index(item: Block) -> Block:
    """Returns a reasoning item without the numbers by which LangChain puts a stream together."""
    pieces = [read_extra_fields(piece, "index") for piece in if_objects(item.get("summary"))]
    if pieces:
        return {**item, "summary": pieces}
    return item
