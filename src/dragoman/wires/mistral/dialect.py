"""Mistral's chat API as a format of the Chat family: the tables that differ from the family's, and
the operations that are its own."""

from __future__ import annotations

from msgspec.structs import replace

from dragoman import errors
from dragoman.codec.error_rules import ErrorRules, compile_patterns
from dragoman.errors import DragomanError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.chat import ChatDialect
from dragoman.wires.chat import tools as chat_tools
from dragoman.wires.chat import usage as chat_usage
from dragoman.wires.chat.errors import make_error
from dragoman.wires.chat.record import DialectRecord, ErrorLine
from dragoman.wires.chat.request import ROUTES
from dragoman.wires.chat.serving import TRANSCRIPTION_ROUTE
from dragoman.wires.chat.settings import SETTINGS, as_it_is, tool_choice
from dragoman.wires.mistral import content, encode, messages
from dragoman.wires.mistral.decode import Decoder
from dragoman.wires.mistral.quirks import NAME, OWN, Quirks

__all__ = ["WIRE", "MistralChat"]

# settings, and tools of a request

_WORDS = {"auto": "auto", "none": "none"}
WAYS = {
    **SETTINGS,
    "seed": (as_it_is("random_seed", int),),
    "tool_choice": (
        tool_choice({**_WORDS, "any": "required"}),
        tool_choice({**_WORDS, "required": "required"}, "required"),
    ),
}
"""Setting → the ways to write it."""
_RULES = Quirks()


def load_tool(chat: DialectRecord, tool: JsonMap) -> ToolSpec | ServerTool:
    """Reads one tool of a request. Notes a name that would otherwise be changed when it is sent."""
    spec = chat_tools.load_tool(chat, tool)
    if not isinstance(spec, ToolSpec) or _RULES.names.fits(spec.name):
        return spec
    return replace(spec, native=OWN.with_form(spec.native, name_as_is=True))


# tokens, and the reason to stop

COUNTS = {
    **chat_usage.COUNTS,
    "cache_read_tokens": (*chat_usage.COUNTS["cache_read_tokens"], ("num_cached_tokens",)),
}
FINISH = {
    "stop": FinishReason.stop,
    "length": FinishReason.length,
    "model_length": FinishReason.length,
    "tool_calls": FinishReason.tool_calls,
    "error": FinishReason.error,
}
WORDS = {
    FinishReason.stop: ("stop",),
    FinishReason.length: ("length", "model_length"),
    FinishReason.tool_calls: ("tool_calls",),
    FinishReason.error: ("error",),
    FinishReason.cancelled: ("error",),
}

# errors
#
# `{"object": "error", "message", "type", "param", "code"}` comes from the models, `{"detail": …}`
# from the checks before them (a text, or the fields that are wrong), `{"message", "request_id"}`
# from the gateway.

RULES = ErrorRules(
    patterns=compile_patterns((errors.RateLimitError, r"tier.?capacity|capacity.?exceeded"))
)
"""A lack of capacity is the server's fault, but the tier's limit is the caller's."""
ERRORS: tuple[ErrorLine, ...] = (
    (errors.AuthenticationError, 401, "unauthorized", "1000"),
    (errors.PermissionDeniedError, 403, "forbidden", None),
    (errors.ModelNotFoundError, 400, "invalid_model", "1500"),
    (errors.ContextLengthError, 400, "context_length_exceeded", "3051"),
    (errors.RequestTooLargeError, 413, "invalid_request_invalid_args", "3051"),
    (errors.UnsupportedTypeError, 415, "invalid_request_invalid_args", "3051"),
    (errors.InvalidRequestError, 400, "invalid_request_invalid_args", "3051"),
    (errors.HistoryError, 400, "invalid_request_message_order", "3230"),
    (errors.ContentRefusedError, 403, "content_policy", None),
    (errors.RateLimitError, 429, "rate_limited", "1300"),
    (errors.OverloadedError, 503, "overloaded", None),
    (errors.ProviderTimeoutError, 504, "timeout", None),
    (errors.ProviderError, 502, "internal_server_error", None),
    (errors.ProviderConnectionError, 502, "internal_server_error", None),
    (errors.DecodeError, 502, "internal_server_error", None),
    (DragomanError, 500, "internal_server_error", None),
)


def error_of(chat: DialectRecord, chunk: JsonMap) -> DragomanError | None:
    """Returns the error that a chunk holds instead of an answer, in any of its shapes, or None."""
    is_error = chunk.get("object") == "error" or chunk.get("error")
    if "choices" not in chunk:
        is_error = is_error or chunk.get("detail") or chunk.get("message")
    if is_error:
        return make_error(chat, chunk)
    return None


def error_body(message: str, error_type: str, code: str | None, status: int) -> Json:
    """Returns the body of an error."""
    body = {"object": "error", "message": message, "type": error_type, "param": None, "code": code}
    return {**body, "raw_status_code": status}


class MistralChat(ChatDialect, frozen=True, kw_only=True, eq=False):
    """Mistral's chat API."""

    decoder_type, encoder_type = Decoder, encode.Encoder
    whole_response = staticmethod(encode.dump_response)
    fit, note_loaded = messages.fit, staticmethod(messages.note_loaded)
    choose_block_type, write_block = content.choose_block_type, staticmethod(content.write_block)
    dump_noted_block = staticmethod(content.dump_noted_block)
    dump_input_message = staticmethod(messages.dump_input_message)
    explain_unsendable = staticmethod(messages.explain_unsendable)
    load_tool = load_tool
    error_of, error_body = error_of, staticmethod(error_body)
    call_votes = staticmethod(messages.call_votes)


WIRE = MistralChat(
    name=NAME,
    own=OWN,
    title="Mistral chat",
    id_prefix="",
    quirks=Quirks,
    thinking=(),
    empty="",
    # what the official clients write
    no_ids=("null",),
    no_text={"content": ""},
    further=("model",),
    readers=content.BLOCKS,
    settings=WAYS,
    counts=COUNTS,
    finish=FINISH,
    words=WORDS,
    errors=ERRORS,
    evidence=messages.EVIDENCE,
    layout=messages.LAYOUT,
    routes=(*ROUTES, TRANSCRIPTION_ROUTE),
    error_rules=RULES,
    takes_empty=False,
    signed=False,
    bare_results=True,
    keeps_form=True,
    calls_have_names=True,
    usage_apart=False,
)
"""The wire."""
