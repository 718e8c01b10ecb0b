"""Checks of requests: a `ModelRequest` → body, path and headers, and back.

Each check writes a request with the wire, turns it into JSON and back, and reads it with the same
wire. What returns must equal what was sent, or a `Loss` must report the difference; which
settings a format has is its own affair. `_round_trip_http` also passes path and headers, as a
server receives them, and `_round_trip_body` collects the losses. The last check reads bodies with
wrong values in every field, which may raise nothing but `HistoryError`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.errors import HistoryError
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import Message
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.testing.check import attempt, require, require_equal
from dragoman.testing.mutation import JsonValue
from dragoman.testing.samples import CONVERSATION, SCHEMA, TOOLS, simplify_messages
from dragoman.testing.wire.bench import WireBench, round_trip_json, wire_check

__all__ = [
    "bad_bodies_are_refused",
    "http_requests_are_complete",
    "options_pass_untouched",
    "requests_return",
    "schemas_return_or_are_reported",
    "settings_return_or_are_reported",
    "tools_return",
]

_LOOK = "load_request, dump_request"
_REQUEST = ModelRequest("kit-model-1", (Message.system("Be brief."), Message.user("Hi.")))
_SETTINGS: dict[str, tuple[Any, ...]] = {
    "temperature": (0.0, 0.5),
    "max_tokens": (64,),
    "top_p": (0.9,),
    "top_k": (40,),
    "presence_penalty": (0.25,),
    "frequency_penalty": (0.5,),
    "stop": (("END",), ("END", "STOP")),
    "seed": (7,),
    "tool_choice": ("auto", "none", "required", "get_weather"),
    "parallel_tool_calls": (True, False),
    "reasoning": ("off", "low", "medium", "high", 2048),
}


@wire_check("request", look=_LOOK)
def requests_return(bench: WireBench) -> None:
    """A request returns with its model, its messages and whether it is streamed."""
    for stream in (True, False):
        back = _round_trip_http(bench, _REQUEST.replace(messages=CONVERSATION, stream=stream))
        require_equal(back.model, _REQUEST.model, "the model")
        require_equal(back.stream, stream, "whether it is streamed")
        require_equal(
            simplify_messages(back.messages), simplify_messages(CONVERSATION), "the conversation"
        )


@wire_check("request", look=_LOOK)
def tools_return(bench: WireBench) -> None:
    """Tools return with name, description and schema, in order. A tool that the provider runs
    returns or is reported as a loss."""
    back = _round_trip_http(bench, _REQUEST.replace(tools=TOOLS))
    require_equal(
        [_simplify_tool(tool) for tool in back.tools],
        [_simplify_tool(tool) for tool in TOOLS],
        "the tools",
    )
    _, back, losses = _round_trip_body(bench, _REQUEST.replace(tools=(ServerTool("web_search"),)))
    require(
        losses or any(isinstance(tool, ServerTool) for tool in back.tools),
        "a ServerTool is lost, and no loss reports it",
    )


@wire_check("request", look=_LOOK)
def settings_return_or_are_reported(bench: WireBench) -> None:
    """Every setting returns unchanged, or a `Loss` without a position names it. Reasoning effort
    and budget may replace each other, and default values may be left out."""
    for name, values in _SETTINGS.items():
        for value in values:
            wanted = _REQUEST.replace(settings=Settings(**{name: value}), tools=TOOLS)
            _, back, losses = _round_trip_body(bench, wanted)
            loaded = getattr(back.settings, name)
            # `auto` and parallel calls are the default of every provider, so formats may leave them
            # out.
            usual = loaded is None and value in ("auto", True)
            is_kept = (
                loaded == value
                or usual
                or (name == "reasoning" and loaded is not None and value != "off")
            )
            require(
                is_kept or any(loss.message is None for loss in losses),
                f"the setting {name}={value!r} comes back as {loaded!r}, and no loss reports it: {losses}",
            )


@wire_check("request", look=_LOOK)
def schemas_return_or_are_reported(bench: WireBench) -> None:
    """An output schema returns with the properties that it describes, or is reported as a
    `Loss`."""
    _, back, losses = _round_trip_body(bench, _REQUEST.replace(output_schema=SCHEMA))
    schema = back.output_schema
    require(schema is not None or losses, "the output schema is lost, and no loss reports it")
    if schema is not None:
        require_equal(_simplify_schema(schema), _simplify_schema(SCHEMA), "the output schema")


@wire_check("request", look=_LOOK)
def options_pass_untouched(bench: WireBench) -> None:
    """A body field that dragoman has no name for is written unchanged and returns in `options`."""
    option = {"a": [1, None, {"b": "ü"}], "c": False}
    body, back, _ = _round_trip_body(bench, _REQUEST.replace(options={"kit_option": option}))
    require_equal(body.get("kit_option"), option, "an unknown option in the body")
    require_equal(back.options.get("kit_option"), option, "an unknown option that was loaded")


@wire_check("request", look="dump_http")
def http_requests_are_complete(bench: WireBench) -> None:
    """An HTTP request has a path after the base URL, text headers, and the JSON body and losses of
    `dump_request`. Path or body name the model and whether to stream."""
    wanted = _REQUEST.replace(tools=TOOLS)
    http = [bench.wire.dump_http(wanted.replace(stream=stream)) for stream in (False, True)]
    for request in http:
        require(
            request.path.startswith("/"),
            f"the path must begin with a slash and is {request.path!r}",
        )
        require_equal(request.method, "POST", "the method")
        odd = [name for name, value in request.headers.items() if type(value) is not str]
        require(not odd, f"the headers {odd} are no text")
        body = round_trip_json(request.body, "dump_http")
        require(isinstance(body, dict), f"the body must be an object and is {body!r}")
        require(_REQUEST.model in f"{request.path}{body}", "neither path nor body name the model")
    # Gemini has `stream` in the path, others in the body.
    pairs = [(request.path, round_trip_json(request.body, "dump_http")) for request in http]
    require(pairs[0] != pairs[1], "neither path nor body say whether the answer is to be streamed")
    require_equal(
        pairs[0][1],
        round_trip_json(bench.wire.dump_request(wanted), "dump_request"),
        "the body of dump_http",
    )
    # All settings at once have the most losses: both functions must report the same ones.
    every = Settings(**{name: values[-1] for name, values in _SETTINGS.items()})
    wanted = wanted.replace(tools=(*TOOLS, ServerTool("kit_tool")), settings=every)
    losses: tuple[list[Loss], list[Loss]] = ([], [])
    bench.wire.dump_http(wanted, losses=losses[0])
    bench.wire.dump_request(wanted, losses=losses[1])
    require_equal(*losses, "the losses of dump_http")


@wire_check("request", look="load_request")
def bad_bodies_are_refused(bench: WireBench) -> None:
    """A body that is not a request of this format raises `HistoryError`. Nothing else is ever
    raised."""
    body = round_trip_json(
        bench.wire.dump_request(_REQUEST.replace(tools=TOOLS, output_schema=SCHEMA)), "dump_request"
    )
    wrong: list[JsonValue] = [None, 5, "text", [5], [None], {"a": 5}]
    bad_bodies: list[JsonValue] = [
        {},
        [],
        None,
        5,
        "text",
        *[{**body, key: bad} for key in body for bad in wrong],
    ]
    loaded = [
        attempt(
            lambda bad=bad: bench.wire.load_request(bad),
            msgspec.json.encode(bad).decode()[:300],
            but=(HistoryError,),
        )
        for bad in bad_bodies
    ]
    require(None in loaded, "nothing is refused, not even an empty body")


def _round_trip_http(bench: WireBench, request: ModelRequest) -> ModelRequest:
    """Returns a request as a server reads it from HTTP."""
    http = bench.wire.dump_http(request)
    headers = {name.lower(): value for name, value in http.headers.items()}
    return bench.wire.load_request(
        round_trip_json(http.body, "dump_http"), path=http.path, headers=headers
    )


def _round_trip_body(
    bench: WireBench, request: ModelRequest
) -> tuple[Json, ModelRequest, list[Loss]]:
    """Returns the body of a request, the request that is read from it, and the losses."""
    losses: list[Loss] = []
    body = round_trip_json(bench.wire.dump_request(request, losses=losses), "dump_request")
    back = bench.wire.load_request(body, path=bench.wire.dump_http(request).path)
    return body, back, losses


def _simplify_tool(tool: ToolSpec | ServerTool) -> JsonValue:
    """Returns what must survive of a tool: name, description and schema."""
    if isinstance(tool, ToolSpec):
        return tool.name, tool.description, _simplify_schema(tool.input_schema)
    return tool


def _simplify_schema(schema: JsonValue) -> JsonValue:
    """Returns what must survive of a schema: its type and its properties."""
    return schema.get("type"), dict(schema.get("properties", {}))
