"""Requests of an API's tools, over a real server: where arguments, keys and redirects go, and what
answers become."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import pytest

from dragoman import DataPart, ToolCallPart
from dragoman.errors import SettingsError
from dragoman.message import ToolResultPart
from dragoman.openapi import openapi
from dragoman.tools import ToolContext, ToolExecutor
from dragoman.transport import Exchange, Player
from support.openapi import PNG, document, json_body, operation, parameter, serving

pytestmark = pytest.mark.anyio
LIST = {"type": "array", "items": {"type": "string"}}
OBJECT = {"type": "object"}


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, list[str]]]:
    with serving() as started:
        yield started


async def call(
    base: str,
    fields: dict[str, Any],
    path: str = "/echo",
    method: str = "get",
    *,
    doc: Any = {},
    deps: Any = None,
    how: Any = {},
    **arguments: Any,
) -> ToolResultPart:
    """What a call of the one operation of a document gives."""
    tools = openapi(
        document({path: {method: {"operationId": "it", **fields}}}, **doc), base_url=base, **how
    )
    async with tools:
        (tool,) = await tools.list_tools(ToolContext(deps))
        done = await ToolExecutor().execute_single(
            ToolCallPart("1", "it", arguments), {"it": tool}, ToolContext(deps)
        )
        return done.part


async def asked(*given: Any, **arguments: Any) -> dict[str, Any]:
    part = await call(*given, **arguments)
    assert not part.is_error, part.result
    return part.result


QUERIES: list[tuple[dict[str, Any], Any, str]] = [
    ({}, "a b&c=d/é+", "p=a%20b%26c%3Dd%2F%C3%A9%2B"),
    ({"schema": {"type": "boolean"}}, True, "p=true"),
    ({"schema": {"type": "number"}}, 1.5, "p=1.5"),
    ({"schema": LIST}, ["a", "b,c"], "p=a&p=b%2Cc"),
    ({"schema": LIST, "explode": False}, ["a", "b,c"], "p=a,b%2Cc"),
    ({"schema": LIST, "style": "pipeDelimited", "explode": False}, ["a", "b"], "p=a%7Cb"),
    ({"schema": LIST, "style": "spaceDelimited", "explode": False}, ["a", "b"], "p=a%20b"),
    ({"schema": LIST}, [], ""),
    ({"schema": OBJECT}, {"a": 1, "b": [2]}, "a=1&b=%5B2%5D"),
    ({"schema": OBJECT, "explode": False}, {"a": 1, "b": "x"}, "p=a,1,b,x"),
    ({"schema": OBJECT, "style": "deepObject"}, {"a": {"b": [1, 2]}, "c": "x"}, "p%5Ba%5D%5Bb%5D%5B0%5D=1&p%5Ba%5D%5Bb%5D%5B1%5D=2&p%5Bc%5D=x"),
    ({"schema": None, "content": {"application/json": {"schema": OBJECT}}}, {"a": [1]}, "p=%7B%22a%22%3A%5B1%5D%7D"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "value", "query"), QUERIES)
async def test_query_parameters_are_written_in_their_style(
    server: tuple[str, list[str]], fields: dict[str, Any], value: Any, query: str
) -> None:
    given = {key: each for key, each in {**parameter("p"), **fields}.items() if each is not None}
    got = (await asked(f"{server[0]}/echo", operation(given), "/", p=value))["query"]
    assert parse_qsl(got) == parse_qsl(query)  # the client decodes what need not be encoded


async def test_path_header_and_cookie_parameters_stand_in_their_places(
    server: tuple[str, list[str]],
) -> None:
    fields = operation(
        parameter("id", "path"),
        parameter("list", "path", LIST),
        parameter("X-Trace", "header", OBJECT, explode=True),
        parameter("colour", "cookie"),
        parameter("none"),
    )
    got = await asked(
        server[0], fields, "/echo/{id}/of/{list}", id="a/b?c#d", list=["x", "y z"], **{"X-Trace": {"a": 1, "b": "c"}}, colour="deep blue"
    )  # fmt: skip
    assert got["path"] == "/echo/a%2Fb%3Fc%23d/of/x,y%20z"
    assert (got["headers"]["x-trace"], got["headers"]["cookie"], got["query"]) == (
        "a=1,b=c",
        "colour=deep%20blue",
        "",
    )


@pytest.mark.parametrize("value", ["..", ".", "", "%2e%2e", "../admin", "..\\x"])
async def test_no_argument_leads_to_another_path(server: tuple[str, list[str]], value: str) -> None:
    part = await call(server[0], operation(parameter("id", "path")), "/echo/{id}/x", id=value)
    if part.is_error:
        assert value in ("..", ".", "")
        assert "path" in part.result["error"]
    else:
        assert part.result["path"].startswith("/echo/")
        assert part.result["path"].count("/") == 3
    twice = await call(
        server[0],
        operation(parameter("a", "path"), parameter("b", "path")),
        "/echo/x/{a}{b}",
        a=".",
        b=".",
    )
    assert "lead to another path" in twice.result["error"]


async def test_a_header_holds_no_line_break(server: tuple[str, list[str]]) -> None:
    part = await call(
        server[0], operation(parameter("X-A", "header")), "/echo/x", **{"X-A": "a\r\nX-B: c"}
    )
    assert "X-A: a header holds no line breaks" in part.result["error"]


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
async def test_a_json_body_is_an_argument_beside_a_parameter_of_its_name(
    server: tuple[str, list[str]], method: str
) -> None:
    fields = operation(
        parameter("body"), requestBody=json_body(OBJECT, "application/vnd.shop+json", required=True)
    )
    got = await asked(
        server[0], fields, "/echo/x", method, body="query", request_body={"a": [1, None, "é"]}
    )
    assert (got["method"], got["query"]) == (method.upper(), "body=query")
    assert (got["body"], got["headers"]["content-type"]) == (
        '{"a":[1,null,"é"]}',
        "application/vnd.shop+json",
    )


async def test_forms_and_texts_are_bodies_too(server: tuple[str, list[str]]) -> None:
    form = operation(requestBody=json_body(OBJECT, "application/x-www-form-urlencoded"))
    got = await asked(server[0], form, "/echo/x", "post", body={"a": "b c", "l": [1, 2], "n": None})
    assert (got["body"], got["headers"]["content-type"]) == (
        "a=b%20c&l=1&l=2",
        "application/x-www-form-urlencoded",
    )
    assert "a form is an object" in (await call(server[0], operation(requestBody=json_body({}, "application/x-www-form-urlencoded")), "/echo/x", "post", body=[1])).result["error"]  # fmt: skip
    text = operation(requestBody=json_body({"type": "string"}, "text/plain"))
    assert (await asked(server[0], text, "/echo/x", "post", body="é"))["body"] == "é"
    assert (await asked(server[0], text, "/echo/x", "post"))["body"] == ""


async def test_answers_are_json_text_or_files(server: tuple[str, list[str]]) -> None:
    async def other(what: str) -> Any:
        return (await call(server[0], operation(), f"/other/{what}")).result

    assert await other("text") == "plain"
    assert await other("image") == (DataPart(PNG, "image/png"),)
    assert await other("nothing") == {"status": 204}
    assert (await other("latin"), await other("odd")) == ("é", "odd")
    assert (await call(server[0], operation(), "/other/text", "head")).result == {"status": 200}
    assert (await asked(server[0], operation(), "/echo/x", "options"))["method"] == "OPTIONS"
    assert await other("broken") == "{"


async def test_errors_are_told_with_status_and_a_cut_body(server: tuple[str, list[str]]) -> None:
    part = await call(server[0], operation(), "/other/missing")
    assert part.is_error
    assert part.result["error"] == 'HTTP 404 Not Found: {"detail":"no such thing for None"}'
    long = (await call(server[0], operation(), "/other/long", "post")).result["error"]
    assert long.startswith("HTTP 500 Internal Server Error: xxx")
    assert len(long) < 2100
    assert (await call(server[0], operation(), "/other/teapot")).result[
        "error"
    ] == "HTTP 418 I'm a Teapot"
    gone = await call("http://127.0.0.1:9", operation(), "/x", "post")
    assert "cannot connect to 127.0.0.1:9" in gone.result["error"]


async def test_what_reads_is_repeated_and_what_writes_is_not(server: tuple[str, list[str]]) -> None:
    base, methods = server
    methods.clear()
    for method in ("get", "post", "delete"):
        part = await call(base, operation(), "/other/busy", method)
        assert part.result["error"] == "HTTP 503 Service Unavailable: later"
    assert methods == ["GET", "GET", "GET", "POST", "DELETE"]


async def test_redirects_are_followed_on_the_same_host_alone(server: tuple[str, list[str]]) -> None:
    fields = operation(requestBody=json_body(OBJECT))
    moved = await asked(server[0], fields, "/other/moved", "post", body={"a": 1})
    assert (moved["method"], moved["path"], moved["query"], moved["body"]) == (
        "POST",
        "/echo/moved",
        "a=1",
        '{"a":1}',
    )
    seen = await asked(server[0], fields, "/other/seen", "post", body={"a": 1})
    assert (seen["method"], seen["body"], "content-type" in seen["headers"]) == ("GET", "", False)
    away = await call(server[0], operation(), "/other/away")
    assert away.result["error"] == "HTTP 307: it redirects to another host, which is not followed"
    assert (
        "more than 5 times" in (await call(server[0], operation(), "/other/loop")).result["error"]
    )


KEYS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"type": "http", "scheme": "Bearer"}, "k y", "headers.authorization", "Bearer k y"),
    ({"type": "http", "scheme": "basic"}, "me:pw", "headers.authorization", "Basic bWU6cHc="),
    ({"type": "oauth2", "flows": {}}, "tok", "headers.authorization", "Bearer tok"),
    ({"type": "apiKey", "in": "header", "name": "X-Key"}, "k", "headers.x-key", "k"),
    ({"type": "apiKey", "in": "query", "name": "key"}, "k&y", "query", "key=k%26y"),
    ({"type": "apiKey", "in": "cookie", "name": "sid"}, "k", "headers.cookie", "sid=k"),
]


@pytest.mark.parametrize(("scheme", "key", "where", "sent"), KEYS)
@pytest.mark.parametrize("by", ["value", "name", "function", "coroutine"])
async def test_keys_go_where_the_scheme_says_and_are_no_argument(
    server: tuple[str, list[str]], scheme: dict[str, Any], key: str, where: str, sent: str, by: str
) -> None:
    async def later(context: ToolContext[str]) -> str:
        return context.deps

    api_key: Any = {
        "value": key,
        "name": {"main": key},
        "function": lambda context: context.deps,
        "coroutine": later,
    }[by]
    location, name = scheme.get("in", "header"), scheme.get("name", "Authorization")
    doc = {"components": {"securitySchemes": {"main": scheme}}, "security": [{"main": []}]}
    fields = operation(parameter(name, location, required=True))
    how = {"api_key": api_key}
    (tool,) = openapi(document({"/x": {"get": fields}}, **doc), base_url=server[0], **how).tools
    assert tool.input_schema["properties"] == {}
    got: Any = await asked(server[0], fields, "/echo/x", doc=doc, how=how, deps=key)
    for step in where.split("."):
        got = got[step]
    assert got == sent


async def test_the_first_requirement_for_which_there_are_all_keys_is_met(
    server: tuple[str, list[str]],
) -> None:
    header = {"type": "apiKey", "in": "header"}
    doc = {
        "components": {
            "securitySchemes": {name: {**header, "name": f"X-{name}"} for name in "abc"}
        },
        "security": [{"a": [], "b": []}, {"c": []}],
    }

    async def sent(api_key: Any, **fields: Any) -> list[str]:
        got = await asked(
            server[0], operation(**fields), "/echo/x", doc=doc, how={"api_key": api_key}
        )
        return sorted(name for name in got["headers"] if name.startswith("x-"))

    assert await sent({"a": "1", "b": "2", "c": "3"}) == ["x-a", "x-b"]
    assert await sent({"b": "2", "c": "3"}) == ["x-c"]
    assert await sent("one") == ["x-c"]
    for api_key, fields in (({"b": "2"}, {}), ("one", {"security": []})):
        with pytest.raises(SettingsError, match="api_key= would go with no request"):
            await sent(api_key, **fields)
    with pytest.raises(
        SettingsError, match="api_key= names d, and the document's security schemes are: a, b, c"
    ):
        await sent({"c": "1", "d": "2"})
    assert await sent("one", security=[{}, {"a": []}]) == ["x-a"]


async def test_a_key_that_the_server_repeats_is_not_told(server: tuple[str, list[str]]) -> None:
    doc = {
        "components": {"securitySchemes": {"m": {"type": "http", "scheme": "bearer"}}},
        "security": [{"m": []}],
    }
    part = await call(server[0], operation(), "/other/missing", doc=doc, how={"api_key": "sesame"})
    assert part.result["error"] == 'HTTP 404 Not Found: {"detail":"no such thing for ***"}'


async def test_the_callers_headers_go_before_a_models(server: tuple[str, list[str]]) -> None:
    fields = operation(
        parameter("X-Tenant", "header"),
        parameter("Host", "header"),
        parameter("Authorization", "header"),
    )
    (tool,) = openapi(
        document({"/x": {"get": fields}}), base_url=server[0], headers={"x-tenant": "t"}
    ).tools
    assert tool.input_schema["properties"] == {}
    got = await asked(server[0], fields, "/echo/x", how={"headers": {"x-tenant": "t"}})
    assert got["headers"]["x-tenant"] == "t"
    how = {"headers": lambda context: {"X-Tenant": context.deps}}
    got = await asked(
        server[0], fields, "/echo/x", how=how, deps="mine", **{"X-Tenant": "another's"}
    )
    assert got["headers"]["x-tenant"] == "mine"


async def test_a_path_of_the_document_leads_to_no_other_host(server: tuple[str, list[str]]) -> None:
    for path in ("@example.invalid/x", ":80@example.invalid/"):
        part = await call(server[0], operation(), path)
        assert part.is_error
        assert "another host" in part.result["error"]
    got = await asked(server[0], operation(parameter("q")), "/echo/x?fixed=1", q="2")
    assert got["query"] == "fixed=1&q=2"


async def test_a_transport_of_the_callers_sends_all_once_and_stays_open() -> None:
    class Kept(Player):
        closed = False

        async def close(self) -> None:
            self.closed = True

    player = Kept(
        [Exchange(status=503), Exchange(body=b"[1]", headers={"content-type": "application/json"})]
    )
    for result in ({"error": "HTTP 503 Service Unavailable"}, [1]):
        part = await call(
            "https://h.example/v1", operation(parameter("q")), q="é", how={"transport": player}
        )
        assert part.result == result
    assert [(one.method, one.path) for one in player.requests] == [
        ("GET", "https://h.example/v1/echo?q=%C3%A9")
    ] * 2
    assert not player.closed


async def test_connections_are_given_back_when_the_last_leaves(
    server: tuple[str, list[str]],
) -> None:
    tools = openapi(document({"/echo/x": {"get": operation(operationId="it")}}), base_url=server[0])
    (tool,) = tools.tools
    pools = tools._requests._transport._pools
    async with tools:
        async with tools:
            await ToolExecutor().execute_single(
                ToolCallPart("1", "it", {}), {"it": tool}, ToolContext(None)
            )
        assert len(pools) == 1
    assert len(pools) == 0
