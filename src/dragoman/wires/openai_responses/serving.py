"""Describes the Responses API for a server: request bodies, further fields, lists of models, token
counts, and what a server stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dragoman.codec.body_schema import (
    BOOLEAN,
    EMBEDDINGS_BODY,
    MEDIA_BODIES,
    TEXT,
    any_of,
    declare_types,
    list_schema,
    object_schema,
)
from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.codec.serving import RequestFields, SealForm
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, Message, Role, ThinkingPart
from dragoman.request import HttpRequest, ModelRequest
from dragoman.wires.chat.serving import OPENAI_MINOR, dump_model, dump_models
from dragoman.wires.openai_responses.messages import dump_messages
from dragoman.wires.openai_responses.quirks import OWN, Quirks
from dragoman.wires.openai_responses.tools_groups import tool_groups

__all__ = [
    "forward",
    "bodies",
    "read_call_id",
    "dump_deleted",
    "dump_input_items",
    "dump_model",
    "dump_models",
    "dump_seal",
    "is_lasting",
    "dump_token_count",
    "find_item_references",
    "index_items",
    "LINKS",
    "load_seal",
    "request_fields",
    "seal",
    "replace_items",
    "dump_unfinished",
]

_MINOR = [
    "include",
    "reasoning.summary",
    "text.format",
    "truncation",
    "stream_options",
    "max_tool_calls",
]
request_fields = RequestFields(
    idle={
        "store": (False, True),
        "background": (False,),
        "truncation": ("disabled",),
        "stream": (False,),
        "tools": ([],),
        "input": ([],),
        "instructions": ("",),
        "top_logprobs": (0,),
        "text": ({"format": {"type": "text"}}, {}),
        "reasoning": ({},),
        "text.verbosity": ("medium",),
    },
    minor=frozenset([*OPENAI_MINOR, *_MINOR]),
    unstored={"store": False},
    references=frozenset(["previous_response_id", "conversation", "prompt"]),
    groups=tool_groups,
    types=declare_types(
        number=("temperature", "top_p"),
        whole=("max_output_tokens", "max_tool_calls"),
        flag=("stream", "parallel_tool_calls", "store", "background"),
        text_or_object=("tool_choice", "conversation"),
        list=("tools", "include"),
        object=("reasoning", "text", "metadata", "stream_options"),
        text=("previous_response_id", "truncation"),
    ),
)
"""Facts about request fields that have no neutral counterpart."""

_INPUT = object_schema(
    {"model": TEXT, "input": any_of(TEXT, list_schema({"type": "object"}, least=1))}, stream=BOOLEAN
)
bodies = {
    "/v1/responses": _INPUT,
    "/v1/responses/input_tokens": _INPUT,
    "/v1/embeddings": EMBEDDINGS_BODY,
    **MEDIA_BODIES,
}
"""Path → JSON Schema of the body that clients send there."""

_PREFIX = "resp_"
LINKS = ("background", "conversation", "previous_response_id")
"""Fields of a request that say what it continues from, or what becomes of its answer."""


def forward(request: ModelRequest, body: JsonMap, quirks: Quirks | None) -> HttpRequest:  # noqa: ARG001 as of `Forward`
    """Passes a client's body on as it is, except for what the server itself does: it runs requests
    in the background, and knows which answers were stored."""
    fields = {name: value for name, value in body.items() if name not in LINKS or not value}
    return HttpRequest("/responses", body={**fields, "model": request.model})


def read_call_id(response_id: str) -> str:
    """Returns the id of a response without its prefix."""
    return response_id.removeprefix(_PREFIX)


def dump_unfinished(body: JsonMap, state: str, error: JsonMap | None) -> Json:
    """Writes what the server answers for a Responses answer that is not completed. `state`:
    `in_progress`, `failed` or `cancelled`. `error`: the body of its error."""
    what = if_object(if_object(error).get("error"))
    message = what.get("message") or "the response could not be made; send the request again"
    failure = {"code": "server_error", "message": message} if state == "failed" else None
    usage = body.get("usage") if body.get("output") else None
    return {**body, "status": state, "error": failure, "incomplete_details": None, "usage": usage}


def find_item_references(body: JsonMap) -> list[tuple[int, str]]:
    """Returns the Responses items of a request that are only named: the index of each in its
    `input`, and its id."""
    listed = if_list(body.get("input"))
    return [
        (index, name) for index, item in enumerate(listed) if (name := _reference(if_object(item)))
    ]


def _reference(item: JsonMap) -> str:
    """Returns the id if a Responses item only refers to another one, else an empty text. The type
    may be left out."""
    is_one = item.get("type") == "item_reference" or (
        item.keys() <= {"type", "id"} and item.get("type") is None
    )
    if is_one:
        return if_text(item.get("id"))
    return ""


def index_items(response: JsonMap) -> dict[str, Json]:
    """Returns the items of a whole response by the ids that requests may name."""
    items = [if_object(item) for item in if_list(response.get("output"))]
    return {name: item for item in items if (name := if_text(item.get("id")))}


def replace_items(body: JsonMap, items: Mapping[int, JsonMap]) -> Json:
    """Returns a Responses request with other items at these indexes of its `input`."""
    return {
        **body,
        "input": [items.get(index, item) for index, item in enumerate(if_list(body.get("input")))],
    }


def dump_deleted(call_id: str) -> Json:
    """Writes the answer to a request to delete a response."""
    return {"id": f"{_PREFIX}{call_id}", "object": "response", "deleted": True}


def dump_token_count(count: int) -> Json:
    """Writes the answer to a request to count tokens."""
    return {"object": "response.input_tokens", "input_tokens": count}


def is_lasting(message: Message) -> bool:
    """True if a system text belongs to its conversation. An item of the input does; instructions
    are for one answer."""
    return OWN.form(message.native).get("place") == "input"


def dump_input_items(messages: Iterable[Message]) -> list[Json]:
    """Writes the input of a Responses request as a list of items, oldest first, each with an id."""
    spoken = [
        message for message in messages if message.role is not Role.SYSTEM or is_lasting(message)
    ]
    items = dump_messages(spoken).get("input", [])
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    return [_dump_listed_item(item, index) for index, item in enumerate(items)]


def _dump_listed_item(item: Json, index: int) -> Json:
    """Returns a Responses item as the list of input items has it."""
    kind = item.get("type", "message")
    listed = {"type": kind, "id": f"{_PREFIXES.get(kind, 'item')}_{index}", **item}
    if kind != "message":
        return {**listed, "status": item.get("status", "completed")}
    if isinstance(text := item.get("content"), str):
        by_model: Json = {"type": "output_text", "text": text, "annotations": []}
        listed["content"] = [
            by_model if item.get("role") == "assistant" else {"type": "input_text", "text": text}
        ]
    return {**listed, "status": item.get("status", "completed")}


_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
}


def dump_seal(token: str) -> ThinkingPart:
    """Returns the piece in which a client keeps a server's token: encrypted reasoning."""
    return ThinkingPart(native=OWN.note({"encrypted_content": token}))


def load_seal(piece: Content) -> str | None:
    """Returns the token that a piece may hold, or None."""
    fields = OWN.fields(piece.native) if isinstance(piece, ThinkingPart) else {}
    return if_text(fields.get("encrypted_content")) or None


seal = SealForm(dump_seal, load_seal)
"""Where clients keep a server's token."""
