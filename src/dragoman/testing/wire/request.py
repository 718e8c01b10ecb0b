"""Checks of a wire's requests: what is asked of a model → a body, a path and headers, and back."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.errors import HistoryError
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import Message
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.testing.check import attempt, demand, same
from dragoman.testing.samples import CONVERSATION, SCHEMA, TOOLS, comparable
from dragoman.testing.wire.bench import WireBench, json_of, wire_check

__all__ = [
    "bad_bodies_are_refused",
    "http_requests_are_complete",
    "options_pass_untouched",
    "requests_return",
    "schemas_return_or_are_told",
    "settings_return_or_are_told",
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
    """A request comes back with its model, its messages and whether it is to be streamed."""
    for stream in (True, False):
        back = _and_back(bench, _REQUEST.replace(messages=CONVERSATION, stream=stream))
        same(back.model, _REQUEST.model, "the model")
        same(back.stream, stream, "whether it is streamed")
        same(comparable(back.messages), comparable(CONVERSATION), "the conversation")


@wire_check("request", look=_LOOK)
def tools_return(bench: WireBench) -> None:
    """Tools come back with name, description and schema, in order; one that the provider runs comes
    back or is told as a loss."""
    back = _and_back(bench, _REQUEST.replace(tools=TOOLS))
    same([_spec(tool) for tool in back.tools], [_spec(tool) for tool in TOOLS], "the tools")
    _, back, losses = _by_body(bench, _REQUEST.replace(tools=(ServerTool("web_search"),)))
    demand(
        losses or any(isinstance(tool, ServerTool) for tool in back.tools),
        "a ServerTool is lost, and no loss tells",
    )


@wire_check("request", look=_LOOK)
def settings_return_or_are_told(bench: WireBench) -> None:
    """Every setting comes back as it was, or else a `Loss` without a place names it. Effort and
    budget of reasoning may stand for one another, and what is usual need not be said."""
    for name, values in _SETTINGS.items():
        for value in values:
            wanted = _REQUEST.replace(settings=Settings(**{name: value}), tools=TOOLS)
            _, back, losses = _by_body(bench, wanted)
            loaded = getattr(back.settings, name)
            usual = loaded is None and value in ("auto", True)
            is_kept = (
                loaded == value
                or usual
                or (name == "reasoning" and loaded is not None and value != "off")
            )
            demand(
                is_kept or any(loss.message is None for loss in losses),
                f"the setting {name}={value!r} comes back as {loaded!r}, and no loss tells: {losses}",
            )


@wire_check("request", look=_LOOK)
def schemas_return_or_are_told(bench: WireBench) -> None:
    """A schema for the answer comes back with what it describes, or else a `Loss` tells."""
    _, back, losses = _by_body(bench, _REQUEST.replace(output_schema=SCHEMA))
    schema = back.output_schema
    demand(schema is not None or losses, "the output schema is lost, and no loss tells")
    if schema is not None:
        same(_core(schema), _core(SCHEMA), "the output schema")


@wire_check("request", look=_LOOK)
def options_pass_untouched(bench: WireBench) -> None:
    """A field of the body that dragoman has no name for is written as it is, and comes back in
    `options`."""
    option = {"a": [1, None, {"b": "ü"}], "c": False}
    body, back, _ = _by_body(bench, _REQUEST.replace(options={"kit_option": option}))
    same(body.get("kit_option"), option, "an unknown option in the body")
    same(back.options.get("kit_option"), option, "an unknown option that was loaded")


@wire_check("request", look="dump_http")
def http_requests_are_complete(bench: WireBench) -> None:
    """A request over HTTP has a path after the base URL, headers of text, and a body of JSON that
    is `dump_request`'s, with the same losses; path or body name the model and say whether to
    stream."""
    wanted = _REQUEST.replace(tools=TOOLS)
    http = [bench.wire.dump_http(wanted.replace(stream=stream)) for stream in (False, True)]
    for request in http:
        demand(
            request.path.startswith("/"),
            f"the path must begin with a slash and is {request.path!r}",
        )
        same(request.method, "POST", "the method")
        odd = [name for name, value in request.headers.items() if type(value) is not str]
        demand(not odd, f"the headers {odd} are no text")
        body = json_of(request.body, "dump_http")
        demand(isinstance(body, dict), f"the body must be an object and is {body!r}")
        demand(_REQUEST.model in f"{request.path}{body}", "neither path nor body name the model")
    pairs = [(request.path, json_of(request.body, "dump_http")) for request in http]
    demand(pairs[0] != pairs[1], "neither path nor body say whether the answer is to be streamed")
    same(
        pairs[0][1],
        json_of(bench.wire.dump_request(wanted), "dump_request"),
        "the body of dump_http",
    )
    every = Settings(**{name: values[-1] for name, values in _SETTINGS.items()})
    wanted = wanted.replace(tools=(*TOOLS, ServerTool("kit_tool")), settings=every)
    losses: tuple[list[Loss], list[Loss]] = ([], [])
    bench.wire.dump_http(wanted, losses=losses[0])
    bench.wire.dump_request(wanted, losses=losses[1])
    same(*losses, "the losses of dump_http")


@wire_check("request", look="load_request")
def bad_bodies_are_refused(bench: WireBench) -> None:
    """What is no request of this format is refused with a `HistoryError`, and nothing else is ever
    raised."""
    body = json_of(
        bench.wire.dump_request(_REQUEST.replace(tools=TOOLS, output_schema=SCHEMA)), "dump_request"
    )
    wrong: list[Any] = [None, 5, "text", [5], [None], {"a": 5}]
    bad_bodies: list[Any] = [
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
    demand(None in loaded, "nothing is refused, not even an empty body")


def _and_back(bench: WireBench, request: ModelRequest) -> ModelRequest:
    """Returns a request after HTTP and back, as a server reads it."""
    http = bench.wire.dump_http(request)
    headers = {name.lower(): value for name, value in http.headers.items()}
    return bench.wire.load_request(json_of(http.body, "dump_http"), path=http.path, headers=headers)


def _by_body(bench: WireBench, request: ModelRequest) -> tuple[Json, ModelRequest, list[Loss]]:
    """Returns the body of a request, what is read of it, and the losses told."""
    losses: list[Loss] = []
    body = json_of(bench.wire.dump_request(request, losses=losses), "dump_request")
    back = bench.wire.load_request(body, path=bench.wire.dump_http(request).path)
    return body, back, losses


def _spec(tool: ToolSpec | ServerTool) -> Any:
    return (
        (tool.name, tool.description, _core(tool.input_schema))
        if isinstance(tool, ToolSpec)
        else tool
    )


def _core(schema: Any) -> Any:
    """Returns what a schema describes: names, types and descriptions of its properties."""
    return schema.get("type"), dict(schema.get("properties", {}))
