"""A request's body and path ↔ `ModelRequest`. Model and stream stand in the path,
`/models/MODEL:generateContent`."""

from __future__ import annotations

import re
from functools import partial
from operator import is_
from typing import Any

import msgspec

from dragoman.codec.dump_with_history import dump_tools_with_history
from dragoman.codec.fit_ids import invert_names
from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields
from dragoman.codec.serving import Route
from dragoman.codec.wire_operations import RequestDump, RequestEnvelope, RequestFormat
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import FinishReason
from dragoman.repair import repair
from dragoman.request import HttpRequest, ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires.google.keys import merged, snake_form, snakes, to_camel_case, to_snake_case
from dragoman.wires.google.messages import (
    dump_conversation,
    load_conversation,
    prepare_conversation,
)
from dragoman.wires.google.quirks import NAME, OWN, Quirks
from dragoman.wires.google.settings import dump_settings, load_settings
from dragoman.wires.google.tools import (
    SERVER_TOOLS,
    OutgoingContents,
    dump_tool_choice,
    dump_tools,
    load_tool_choice,
    load_tools,
)
from dragoman.wires.google.usage import CONTINUATION_TOKEN

__all__ = [
    "count_field",
    "dump_count",
    "dump_http",
    "dump_request",
    "forward",
    "load_request",
    "model_of_path",
    "routes",
]

_ACTIONS = {
    "generateContent": "chat",
    "streamGenerateContent": "chat",
    "countTokens": "count_tokens",
    "embedContent": "embeddings",
    "batchEmbedContents": "embeddings",
}
routes: tuple[Route, ...] = (
    *(
        Route("POST", f"/v1beta/models/{{model}}:{action}", purpose)
        for action, purpose in _ACTIONS.items()
    ),
    Route("GET", "/v1beta/models", "models"),
    Route("GET", "/v1beta/models/{model}", "model"),
    *(
        Route("POST", f"/v1/models/{{model}}:{action}", purpose)
        for action, purpose in _ACTIONS.items()
    ),
    Route("GET", "/v1/models", "models", "x-goog-api-key"),
    Route("GET", "/v1/models/{model}", "model", "x-goog-api-key"),
)
"""AI Studio's, in both versions that its libraries ask for; an answer is streamed where its path
says so."""

_PATH = re.compile(r"(?:^|/)((?:publishers|projects|tunedModels|endpoints|models)/[^?]+):(\w+)")
_SSE = re.compile(r"[?&](?:\$|%24)?alt=sse(?:&|$)")
"""By what a client asks for Server-Sent Events; else a stream is an array."""
_OBJECTS = ("generationConfig", "toolConfig", "systemInstruction", "tools")
_CONVERSATION = ("systemInstruction", "contents")
_INCLUDE = "includeServerSideToolInvocations"
_CHOICE = "functionCallingConfig"
_JOINED = ("generationConfig", "toolConfig")
"""Options that are joined, where they are objects, with what the settings say there."""


def _load_gemini_body(body: JsonMap, received: RequestEnvelope) -> ModelRequest:
    """Converts a Gemini body to the neutral request. A body for counting tokens, which may hold a
    whole request, is read too."""
    snake: set[str] = set()
    fields = to_camel_case(if_object(body), snake)
    form: Json = {}
    if len(fields) == 1 and (inner := if_object(fields.get("generateContentRequest"))):
        form["within"] = True
        fields = to_camel_case(inner, snake)
    if not isinstance(fields.get("contents"), list | dict):
        raise HistoryError('the body must be an object with a list "contents"').at(field="contents")
    if nulls := [key for key in _OBJECTS if key in fields and fields[key] is None]:
        form["null"] = nulls
    options = read_extra_fields(fields, *nulls, *_CONVERSATION)
    if isinstance(fields["contents"], dict):
        form["contents"] = "object"
    payload = {key: fields[key] for key in _CONVERSATION if key in fields}
    messages = load_conversation(payload, received.origin, received.problems)
    tools, tools_form = _take_tools(options)
    settings, choice_form = _take_choice(options)
    schema = None
    if isinstance(config := options.get("generationConfig"), dict):
        del options["generationConfig"]
        further, schema, unread, config_form = load_settings(if_object(config))
        settings |= further
        if config_form or not config:
            form["config"] = config_form or "empty"
        if unread:
            options["generationConfig"] = unread
    form |= {**tools_form, **choice_form}
    model, stream = model_of_path(received.path)
    if stream and _SSE.search(received.path) is None:
        form["stream"] = "array"
    if isinstance(named := options.get("model"), str) and named.endswith(model or named):
        model = model or named.removeprefix("models/")
        form["model"] = options.pop("model").removesuffix(model)
    if tools and schema is not None:
        form["tools_with_schema"] = True
    if _has_both_types(tools) and _INCLUDE not in if_object(options.get("toolConfig")):
        form["include"] = "absent"
    form |= snake_form(snake)
    native, wire = OWN.note(form=form), NAME if options else None
    return ModelRequest(
        model,
        tuple(messages),
        tools,
        Settings(**settings),
        schema,
        stream,
        options,
        native,
        wire=wire,
    )


def model_of_path(path: str) -> tuple[str, bool]:
    """Converts a Gemini request's path to the model, and whether the answer is streamed."""
    match = _PATH.search(path)
    if match is None:
        return "", False
    model = re.sub(
        r"^(projects/[^/]+/locations/[^/]+/)?(publishers/google/)?models/|^projects/[^/]+/locations/[^/]+/",
        "",
        match[1],
    )
    return model, match[2].startswith("stream")


def _dump_gemini_request(sending: RequestDump[Quirks]) -> HttpRequest:
    """Converts the neutral request to path, headers and body. A model's name that has a `/` stays
    as it is."""
    sending, continuation = _take_continuation(sending)
    request = sending.request
    form = OWN.form(request.native)
    prepare = partial(prepare_conversation, model=request.model)
    out, payload, _, _ = sending.conversation(prepare, dump_conversation, "contents")
    if request.settings.parallel_tool_calls is not None:
        out.lose(None, None, Lost.setting, "the API has no such setting", "parallel_tool_calls")
    tools = _select_tools(request, out, form)
    body: Json = {
        **dict.fromkeys(form.get("null", ())),
        **{
            key: value
            for key, value in request.options.items()
            if key not in _JOINED or not isinstance(value, dict)
        },
        **payload,
        **continuation,
    }
    if form.get("contents") == "object" and len(body["contents"]) == 1:
        body["contents"] = body["contents"][0]

    def dump() -> Json:
        """Writes one field of a Gemini request."""
        if entries := dump_tools(tools, out):
            return {
                "tools": entries[0]
                if form.get("tools") == "object" and len(entries) == 1
                else entries
            }
        return {}

    body |= dump_tools_with_history(sending.turn, out, tools, dump)[0]
    if "tools" in form and "tools" not in body:
        body["tools"] = [] if form["tools"] == "empty" else {}
    tool_config = _tool_config(request, tools, out, form)
    if tool_config or form.get("toolConfig") == "empty":
        body["toolConfig"] = tool_config
    config_form = form.get("config", {})
    config = dump_settings(request, if_object(config_form), out)
    if config or config_form == "empty":
        body["generationConfig"] = config
    if "model" in form:
        body["model"] = form["model"] + request.model
    snake = snakes(form)
    if "within" in form:
        body = {"generateContentRequest": to_snake_case(body, snake)}
    return HttpRequest(
        _gemini_path(request, out.quirks),
        {},
        to_snake_case(body, snake),
        names=invert_names(out.names),
    )


def _take_continuation(sending: RequestDump[Quirks]) -> tuple[RequestDump[Quirks], Json]:
    """Returns what to send for an answer that Gemini suspended, and the field that lets it go on:
    the API wants the same request again, without what it has said so far."""
    messages, target = sending.request.messages, sending.target
    if not messages or messages[-1].finish_reason is not FinishReason.pause:
        return sending, {}
    suspended = messages[-1]
    token = OWN.response(suspended.native).get(CONTINUATION_TOKEN)
    is_own = target is None or (
        suspended.origin is not None and suspended.origin.provider == target.provider
    )
    if not isinstance(token, str) or not is_own:
        return sending, {}
    earlier = tuple(repair(messages[:-1]))
    if sending.turn is not None:
        # Nothing is remembered of it: the next request has another end.
        sending.turn.history, sending.turn.messages = None, earlier
    request = sending.request.replace(messages=earlier)
    return msgspec.structs.replace(sending, request=request), {CONTINUATION_TOKEN: token}


def forward(request: ModelRequest, body: JsonMap, quirks: Quirks | None) -> HttpRequest:
    """Returns a client's Gemini request body as it is, but for results that it has twice. Its name
    of the model stands in the path, and may stand in the Gemini body too."""
    if "model" in body:
        body = {**body, "model": OWN.form(request.native).get("model", "") + request.model}
    contents = if_list(body.get("contents"))
    sent = [_drop_repeated_results(content) for content in contents]
    if not all(map(is_, sent, contents)):
        body = {**body, "contents": sent}
    return HttpRequest(_gemini_path(request, quirks or Quirks()), body=body)


def _drop_repeated_results(content: Any) -> Any:
    """Returns a content of a Gemini body with each result once. Google refuses more results than
    there were calls, and Gemini CLI sends those of a session that it resumes twice."""
    once: list[Any] = []
    results: dict[str, Json] = {}
    parts = if_list(if_object(content).get("parts"))
    for part in parts:
        result = if_object(if_object(part).get("functionResponse"))
        id_ = if_text(result.get("id"))
        if not id_ or results.setdefault(id_, result) is result or results[id_] != result:
            once.append(part)
    return content if len(once) == len(parts) else {**content, "parts": once}


count_field = "totalTokens"
"""Field of the answer to `dump_count` that holds the number."""


def dump_count(http: HttpRequest, quirks: Quirks | None) -> HttpRequest:
    """Returns the request that counts the tokens of a request for an answer. AI Studio takes that
    as a whole, Vertex its fields."""
    path = http.path.rpartition(":")[0]
    body = if_object(http.body)
    if "generateContentRequest" not in body and (quirks or Quirks()).models == "models":
        body = {"generateContentRequest": {"model": path.removeprefix("/"), **body}}
    return HttpRequest(f"{path}:countTokens", http.headers, body)


def _gemini_path(request: ModelRequest, quirks: Quirks) -> str:
    """Returns the path of a Gemini request, which names the model and the method."""
    if "/" in request.model:
        model = request.model
    else:
        model = f"{quirks.models}/{request.model}"
    if request.stream:
        method = "streamGenerateContent?alt=sse"
    else:
        method = "generateContent"
    return f"/{model}:{method}"


def _find_body_fault(body: JsonMap) -> HistoryError | None:
    """Returns the error for a Gemini body without contents, or None."""
    if body.get("contents") or "generateContentRequest" in body:
        return None
    return HistoryError(
        "there is nothing to send: the API needs a message that is not a system message"
    )


_REQUESTS = RequestFormat(
    NAME,
    Quirks,
    _load_gemini_body,
    _dump_gemini_request,
    ("contents",),
    _find_body_fault,
    server_tools=SERVER_TOOLS,
)
load_request, dump_request, dump_http = (
    _REQUESTS.load_request,
    _REQUESTS.dump_request,
    _REQUESTS.dump_http,
)


def _take_tools(options: Json) -> tuple[tuple[ToolSpec | ServerTool, ...], Json]:
    """Takes the tools out of a Gemini body and returns them with their wire form. The API takes a
    single object for a list."""
    entries = options.pop("tools", None)
    if entries is None:
        return (), {}
    if tool_entries := if_list(entries):
        return tuple(load_tools(tool_entries)), {}
    form = {
        "tools": "object"
        if isinstance(entries, dict) and entries
        else "empty"
        if entries == []
        else "{}"
    }
    return tuple(load_tools([entries] if entries else [])), form


def _take_choice(options: Json) -> tuple[Json, Json]:
    """Removes the tool choice from a Gemini body. Returns the setting, and its wire form; the rest
    of `toolConfig` stays an option."""
    if not isinstance(options.get("toolConfig"), dict):
        return {}, {}
    snake: set[str] = set()
    config = to_camel_case(options.pop("toolConfig"), snake)
    form = {**({} if config else {"toolConfig": "empty"}), **snake_form(snake, "toolConfig_snake")}
    chosen = load_tool_choice(config.get(_CHOICE))
    if chosen is not None:
        del config[_CHOICE]
    if config:
        options["toolConfig"] = config
    if chosen is None:
        return {}, form
    choice, choice_form = chosen
    return {"tool_choice": choice}, {**form, **({"choice": choice_form} if choice_form else {})}


def _tool_config(
    request: ModelRequest,
    tools: tuple[ToolSpec | ServerTool, ...],
    out: OutgoingContents,
    form: JsonMap,
) -> Json:
    """Returns the field `toolConfig` of a Gemini request."""
    config: Json = {}
    if (choice := request.settings.tool_choice) is not None:
        config[_CHOICE] = dump_tool_choice(choice, out, if_object(form.get("choice")))
    if _has_both_types(tools) and "include" not in form and out.quirks.allows("server_and_tools"):
        config[_INCLUDE] = True
    return to_snake_case(
        merged(config, if_object(request.options.get("toolConfig"))),
        snakes(form, "toolConfig_snake"),
    )


def _select_tools(
    request: ModelRequest, out: OutgoingContents, form: JsonMap
) -> tuple[ToolSpec | ServerTool, ...]:
    """Returns the tools of a Gemini request, without functions where the model does not take them
    beside an output schema."""
    if (
        request.output_schema is None
        or "tools_with_schema" in form
        or out.quirks.allows("schema_tools")
    ):
        return request.tools
    if functions := [tool.name for tool in request.tools if isinstance(tool, ToolSpec)]:
        why = "the model takes no functions together with an output schema"
        out.lose(None, None, Lost.tool, why, ", ".join(functions))
    return tuple(tool for tool in request.tools if isinstance(tool, ServerTool))


def _has_both_types(tools: tuple[ToolSpec | ServerTool, ...]) -> bool:
    return len({type(tool) for tool in tools}) > 1
