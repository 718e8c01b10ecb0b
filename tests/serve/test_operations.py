"""What those ask for who run a server: health, metrics, the log, the OpenAPI document."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import jsonschema
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.routing import Mount

from dragoman import serve, wires
from dragoman.codec.serving import Route
from dragoman.errors import InvalidRequestError, OverloadedError
from dragoman.event import Event, MessageStarted, OpenText, PartDelta, PartStarted, RunError
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Origin, Role
from dragoman.result import Usage
from dragoman.serve.http.call_metrics import find_offered_name
from dragoman.serve.http.callers import Key
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, exchange
from support.serving import ASKS, asking, served

WIRES = sorted(ASKS)
LABELS = ("wire", "purpose", "model", "status", "kind", "what")
KEY, NARROW = "a-key-for-everything", "a-key-for-one-model"
ANSWER = Message.model("Hello.").replace(usage=Usage(input_tokens=7, output_tokens=3))
BEGIN: list[Event] = [
    MessageStarted("1", Role.MODEL),
    PartStarted("1", 0, OpenText()),
    PartDelta("1", 0, "Hel"),
]


def seen(app: Any, method: str, path: str, body: object = b"", **how: Any) -> Exchange:
    return asyncio.run(exchange(app, method, path, body, **how))


def chat(app: Any, wire: str = "openai_chat", *, stream: bool = True, **how: Any) -> Exchange:
    path, body = asking(wire, stream=stream)
    return seen(app, "POST", path, body, **how)


def metrics(app: Any) -> dict[tuple[str, ...], float]:
    """Name and labels' values → value, without buckets and times of making."""
    text = seen(app, "GET", "/metrics").body.decode()
    return {
        (
            sample.name.removeprefix("dragoman_"),
            *[sample.labels[each] for each in LABELS if each in sample.labels],
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
    }


# health


@pytest.mark.parametrize("host", ["10.1.2.3:8000", "pod.cluster", "localhost"])
@pytest.mark.parametrize("prefix", ["", "/llm"])
def test_probes_come_by_any_host_and_need_no_key(host: str, prefix: str) -> None:
    app, _ = served(ANSWER, auth=KEY)
    whole = Starlette(routes=[Mount("/llm", app=app)]) if prefix else app
    for path in ("/healthz", "/readyz"):
        assert [
            seen(whole, method, prefix + path, host=host).status for method in ("GET", "HEAD")
        ] == [200, 200]
    assert seen(whole, "POST", f"{prefix}/healthz", host="localhost").status in (404, 405)


def test_a_server_that_ends_lives_and_is_not_ready() -> None:
    app, _ = served(ANSWER)
    app.state.service.gate.closed = True
    assert (seen(app, "GET", "/healthz").status, seen(app, "GET", "/readyz").status) == (200, 503)


def test_nothing_else_passes_the_guard() -> None:
    app, _ = served(ANSWER)
    for path in ("/metrics", "/openapi.json", "/healthz/", "/healthz/../metrics", "/v1/models"):
        assert seen(app, "GET", path, host="evil.example").status == 421


# metrics


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_a_call_is_counted_by_wire_purpose_model_and_status(wire: str, stream: bool) -> None:
    app, _ = served(ANSWER)
    chat(app, wire, stream=stream)
    found = metrics(app)
    labels = (wire, "chat", "")
    assert found["calls_total", *labels, "200"] == found["call_seconds_count", *labels] == 1
    assert (found["tokens_total", *labels, "input"], found["tokens_total", *labels, "output"]) == (
        7,
        3,
    )
    assert found.get(("first_event_seconds_count", *labels), 0) <= int(stream)
    assert found["open_calls",] == 0


def test_a_gateways_names_and_patterns_are_the_models_there_are() -> None:
    gateway = serve.Gateway({"fast": ScriptedModel(["x", "x"]), "o-*": "openai:gpt-*"})
    app = serve.app(gateway=gateway)
    for model in ("fast", "fast", "nobody", "nobody2", "\n" * 9):
        path, body = asking("openai_chat", stream=False)
        seen(app, "POST", path, {**body, "model": model})
    found = {key: value for key, value in metrics(app).items() if key[0] == "calls_total"}
    assert found == {
        ("calls_total", "openai_chat", "chat", "fast", "200"): 2,
        ("calls_total", "openai_chat", "chat", "", "404"): 3,
    }


@pytest.mark.parametrize(
    ("model", "label"),
    [
        ("a", "a"),
        ("b", "b"),
        ("o-1", "o-*"),
        ("o-", "o-*"),
        ("x-1-y", "x-*-y"),
        ("z", "a"),
        ("", "a"),
    ],
)
def test_a_name_is_one_that_is_offered(model: str, label: str) -> None:
    assert find_offered_name(model, ["a", "b", "o-*", "x-*-y"]) == label
    assert find_offered_name(model, []) == ""


@pytest.mark.parametrize(
    ("steps", "how", "status"),
    [
        ([OverloadedError("x")], {}, "503"),
        ([RunError(InvalidRequestError("x"))], {}, "400"),
        ([*BEGIN, RunError(OverloadedError("x"))], {}, "503"),
        ([*BEGIN, OverloadedError("x")], {}, "503"),
        ([*BEGIN, ValueError("x")], {}, "502"),
        ([*BEGIN, 1e6], {"leaves_after": 2}, "499"),
        ([1e6], {"leaves_after": 0}, "499"),
    ],
)
def test_what_went_wrong_has_its_status(steps: Any, how: Any, status: str) -> None:
    app, _ = served(*steps)
    chat(app, **how)
    assert [key[-1] for key in metrics(app) if key[0] == "calls_total"] == [status]


def test_what_came_without_a_key_is_counted_too() -> None:
    app, _ = served(ANSWER, auth=KEY)
    chat(app)
    text = seen(app, "GET", "/metrics", headers={"authorization": f"Bearer {KEY}"}).body.decode()
    assert 'status="401"' in text
    assert KEY not in text


@pytest.mark.parametrize("place", ["start", "end"])
def test_losses_and_costs_are_counted(place: str) -> None:
    lost = tuple(
        [Loss(None, None, what, "why") for what in (Lost.option, Lost.option, Lost.thinking)]
    )
    origin = Origin("openai", "https://api.openai.com/v1", "gpt-4o", "gpt-4o-2024-08-06")
    app, _ = served(*_finished(lost, {place: origin}))
    chat(app, stream=False)
    found = metrics(app)
    labels = ("openai_chat", "chat", "")
    assert (
        found["losses_total", *labels, "option"],
        found["losses_total", *labels, "thinking"],
    ) == (2, 1)
    assert found["cost_dollars_total", *labels] == pytest.approx(1000 * 2.5e-6 + 100 * 1e-5)


def _finished(losses: tuple[Loss, ...], origins: dict[str, Origin]) -> list[Event]:
    from dragoman.event import MessageFinished, PartFinished
    from dragoman.message import TextPart

    usage = Usage(input_tokens=1000, output_tokens=100)
    start = MessageStarted("1", Role.MODEL, losses=losses, origin=origins.get("start"))
    text = [
        PartStarted("1", 0, OpenText()),
        PartDelta("1", 0, "x"),
        PartFinished("1", 0, TextPart("x")),
    ]
    return [
        start,
        *text,
        MessageFinished("1", usage=usage, origin=origins.get("end")),
    ]


def test_metrics_are_for_those_who_may_use_every_model() -> None:
    app, _ = served(ANSWER, auth=[KEY, Key(NARROW, models=["m"])])
    asked = [
        seen(app, "GET", "/metrics", headers=headers).status
        for headers in _bearers("", "wrong-key", NARROW, KEY)
    ]
    assert asked == [401, 401, 403, 200]
    assert seen(app, "GET", f"/metrics?key={KEY}").status == 401


def _bearers(*keys: str) -> list[dict[str, str]]:
    return [{"authorization": f"Bearer {key}"} if key else {} for key in keys]


def test_two_servers_count_for_themselves() -> None:
    (one, _), (two, _) = served(ANSWER), served(ANSWER)
    chat(one)
    assert not [key for key in metrics(two) if key[0] == "calls_total"]


# the log


def test_a_call_is_a_line_without_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    app, _ = served(ANSWER, auth={"ada": KEY})
    with caplog.at_level(logging.INFO, "dragoman.serve.calls"):
        chat(app, "google", stream=False, headers={"x-goog-api-key": KEY})
        seen(app, "GET", f"/v1beta/models?key={KEY}")
        chat(app, headers={"authorization": "Bearer no-such-key"})
    lines = [
        record.getMessage() for record in caplog.records if record.name == "dragoman.serve.calls"
    ]
    assert re.fullmatch(
        r"POST /v1beta/models/\{model\}:generateContent 200 by ada, [\d.]+ s, 7 \+ 3 tokens, [0-9a-f]{32}",
        lines[0],
    )
    assert re.fullmatch(r"GET /v1beta/models 200 by ada, [\d.]+ s, [0-9a-f]{32}", lines[1])
    assert re.fullmatch(r"POST /v1/chat/completions 401, [\d.]+ s, [0-9a-f]{32}", lines[2])


@pytest.mark.parametrize(
    ("wire", "header"),
    [("openai_chat", "x-request-id"), ("google", "x-request-id"), ("anthropic", "request-id")],
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_and_a_refusal_have_the_id_of_their_line(
    wire: str, header: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the official clients of OpenAI and Anthropic look for it."""
    app, _ = served(ANSWER, auth={"ada": KEY})
    with caplog.at_level(logging.INFO, "dragoman.serve.calls"):
        keys = [{"authorization": f"Bearer {KEY}"}, {"authorization": "Bearer no-such-key"}]
        answers = [chat(app, wire, stream=stream, headers=key) for key in keys]
    lines = [
        record.getMessage() for record in caplog.records if record.name == "dragoman.serve.calls"
    ]
    assert [answer.status for answer in answers] == [200, 401]
    assert [answer.headers[header] for answer in answers] == [
        line.rpartition(" ")[2] for line in lines
    ]
    assert [answer.headers["x-request-id"] for answer in answers] == [
        answer.headers[header] for answer in answers
    ]


# the OpenAPI document


def document(app: Any, path: str = "/openapi.json") -> dict[str, Any]:
    return seen(app, "GET", path).json


def test_every_route_stands_in_the_document_and_nothing_else() -> None:
    app, _ = served(ANSWER)
    routes = {
        (re.sub(r":path\b", "", route.path), method.lower())
        for route in app.routes
        for method in route.methods
        if method != "HEAD" or route.methods == {"HEAD"}
    }
    paths = document(app)["paths"]
    described = {(path, method) for path, methods in paths.items() for method in methods}
    assert described == routes | {("/healthz", "get"), ("/readyz", "get")}
    ids = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("wire", WIRES)
def test_a_body_that_clients_send_fits_and_one_without_its_fields_does_not(wire: str) -> None:
    app, _ = served(ANSWER)
    path, body = asking(wire, stream=True)
    place = path.partition("?")[0].replace("models/m:", "models/{model}:")
    place = place.replace("/model/m/", "/model/{model}/")
    [content] = document(app)["paths"][place]["post"]["requestBody"]["content"].values()
    jsonschema.validate(body, content["schema"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({}, content["schema"])


@pytest.mark.parametrize("wire", WIRES)
def test_every_post_of_a_wire_has_a_schema_of_its_body(wire: str) -> None:
    made: Any = wires.get(wire)
    posts = {
        route.path for route in made.routes if route.method == "POST" and "{id}" not in route.path
    }
    assert posts == made.bodies.keys()
    for schema in made.bodies.values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("wire", WIRES)
def test_errors_are_of_the_form_that_the_document_says(wire: str) -> None:
    app, _ = served(OverloadedError("x", retry_after=3))
    path, body = asking(wire, stream=False)
    schema = document(app)["components"]["schemas"][f"{wire}_error"]
    for sent in (body, b"{", b"[]", {}, {"model": "nobody"}):
        answer = seen(app, "POST", path, sent)
        assert answer.status >= 400
        jsonschema.validate(answer.json, schema)


def test_keys_are_said_where_they_are_needed() -> None:
    open_, _ = served(ANSWER)
    closed, _ = served(ANSWER, auth=KEY)
    assert not [
        each
        for methods in document(open_)["paths"].values()
        for each in methods.values()
        if "security" in each
    ]
    found = document(closed)
    assert found["paths"]["/v1/chat/completions"]["post"]["security"] == [{"bearer": []}]
    assert found["paths"]["/v1/messages"]["post"]["security"] == [
        {"header_x-api-key": []},
        {"bearer": []},
    ]
    assert found["components"]["securitySchemes"]["query_key"] == {
        "type": "apiKey",
        "in": "query",
        "name": "key",
    }


def test_a_server_below_a_path_says_so() -> None:
    app, _ = served(ANSWER)
    assert document(app)["servers"] == [{"url": "/"}]
    assert document(Starlette(routes=[Mount("/llm", app=app)]), "/llm/openapi.json")["servers"] == [
        {"url": "/llm"}
    ]


def test_a_wire_without_schemas_is_described_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.serve.http.method_paths import method_paths
    from dragoman.serve.http.openapi import describe_server

    class Wire:
        def __getattr__(self, name: str) -> Any:
            return getattr(wires.get("cohere"), name)

        name = "plugged"
        bodies: dict[str, Any] = {}
        routes = (Route("POST", "/ask", "chat"),)

    plugged: Any = Wire()
    found = describe_server(
        method_paths([plugged], lambda _, purpose: purpose == "chat"), has_keys=True
    )
    operation = found["paths"]["/plugged/ask"]["post"]
    assert operation["requestBody"]["content"] == {
        "application/json": {"schema": {"type": "object"}}
    }
    assert operation["security"] == [{"bearer": []}]
