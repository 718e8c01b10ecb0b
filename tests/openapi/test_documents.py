"""What a document becomes: names, schemas, servers; and what is wrong with one, with its place."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import SettingsError
from dragoman.openapi import OpenAPIToolset, openapi
from dragoman.tools import Tool
from support.openapi import document, json_body, operation, parameter

BASE = "https://api.example"


def tools_of(doc: Any, **how: Any) -> dict[str, Tool]:
    return {tool.name: tool for tool in openapi(doc, **{"base_url": BASE, **how}).tools}


def only(fields: dict[str, Any], *, version: str = "3.1.0", path: str = "/x", **more: Any) -> Tool:
    (tool,) = openapi(
        document({path: {"post": fields}}, version=version, **more), base_url=BASE
    ).tools
    return tool


def wrong(doc: Any, match: str, **how: Any) -> None:
    with pytest.raises(SettingsError, match=match):
        openapi(doc, **{"base_url": BASE, **how})


# names and texts


def test_each_operation_is_a_tool_by_its_id_or_else_by_method_and_path() -> None:
    doc = document(
        {
            "/pets": {"get": operation(operationId="listPets"), "post": operation()},
            "/pets/{id}": {
                "parameters": [parameter("id", "path")],
                "get": operation(),
                "trace": operation(),
            },
            "/pets/id": {"get": operation(operationId="get_pets_id"), "x-internal": {"a": 1}},
        }
    )
    assert list(tools_of(doc)) == ["listPets", "post_pets", "get_pets_id_2", "get_pets_id"]
    assert [tool.idempotent for tool in tools_of(doc).values()] == [True, False, True, True]
    assert openapi(doc, base_url=BASE).name == "Shop"
    assert openapi(doc, base_url=BASE, name="pets").name == "pets"


def test_two_operations_of_one_id_are_an_error_with_both_places() -> None:
    doc = document(
        {"/a": {"get": operation(operationId="x")}, "/b": {"put": operation(operationId="x")}}
    )
    wrong(
        doc, "the operations at '#/paths/~1a/get' and '#/paths/~1b/put' have one operationId, 'x'"
    )


def test_the_description_is_summary_and_description() -> None:
    assert (
        only(operation(summary="Buys.", description="Buys it.")).description == "Buys.\n\nBuys it."
    )
    assert only(operation(summary="Buys.", description="Buys.")).description == "Buys."


def test_include_chooses_by_name_or_by_function() -> None:
    doc = document(
        {"/a": {"get": operation(operationId="a", tags=["t"]), "put": operation(operationId="b")}}
    )
    assert list(tools_of(doc, include=["b"])) == ["b"]
    assert list(tools_of(doc, include=lambda one: one.method == "GET" and "t" in one.tags)) == ["a"]
    wrong(doc, "the document has no operation c; it has a, b", include=["c"])
    with pytest.raises(TypeError, match="include must be a sequence of str"):
        openapi(doc, base_url=BASE, include="a")


# arguments


def test_parameters_of_path_and_operation_make_one_object_without_collisions() -> None:
    fields = operation(
        parameter("id", "query", {"type": "integer"}, description="Its number."),
        parameter("id", "header", {"type": "boolean"}, required=True),
        parameter("tool_context__"),
        parameter("Authorization", "header"),
        parameter("Accept", "header"),
    )
    item = {
        "parameters": [parameter("id", "path"), parameter("id", "query", {"type": "string"})],
        "post": fields,
    }
    (tool,) = openapi(document({"/x/{id}": item}), base_url=BASE).tools
    assert tool.input_schema == {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "query_id": {"description": "Its number.", "type": "integer"},
            "header_id": {"type": "boolean"},
            "query_tool_context__": {"type": "string"},
        },
        "additionalProperties": False,
        "required": ["id", "header_id"],
    }


def test_references_become_definitions_also_those_to_themselves() -> None:
    schemas = {
        "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}, "of": {"$ref": "#/components/schemas/a~1b"}}},
        "a/b": {"type": "string", "example": "x", "xml": {}, "x-more": 1},
        "unused": {"type": "null"},
    }  # fmt: skip
    components = {
        "schemas": schemas,
        "parameters": {"page": parameter("page", schema={"$ref": "#/components/schemas/a~1b"})},
        "requestBodies": {"node": json_body({"$ref": "#/components/schemas/Node"}, required=True)},
    }
    fields = operation(
        {"$ref": "#/components/parameters/page"},
        requestBody={"$ref": "#/components/requestBodies/node"},
    )
    schema = only(fields, components=components).input_schema
    assert schema["properties"] == {
        "page": {"$ref": "#/$defs/a_1b"},
        "body": {"$ref": "#/$defs/Node"},
    }
    assert schema["$defs"] == {
        "a_1b": {"type": "string"},
        "Node": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/Node"}, "of": {"$ref": "#/$defs/a_1b"}},
        },
    }
    tool = only(fields, components=components)
    assert tool.convert_arguments({"body": {"next": {"next": {"of": "x"}}}})
    with pytest.raises(Exception, match=r"body.next.of: should be string"):
        tool.convert_arguments({"body": {"next": {"of": 1}}})


def test_what_is_read_only_is_no_argument_and_names_like_keywords_stay() -> None:
    body = {
        "type": "object",
        "required": ["id", "example"],
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "example": {"type": "string", "example": "x", "deprecated": True},
            "nullable": {
                "allOf": [{"type": "object", "properties": {"xml": {"items": {"example": 1}}}}]
            },
        },
    }
    assert only(operation(requestBody=json_body(body))).input_schema["properties"]["body"] == {
        "type": "object",
        "required": ["example"],
        "properties": {
            "example": {"type": "string"},
            "nullable": {"allOf": [{"type": "object", "properties": {"xml": {"items": {}}}}]},
        },
    }


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"allOf": [{"type": "string"}], "nullable": True}, {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "maximum": 1, "exclusiveMaximum": False}, {"type": "integer", "maximum": 1}),
    ],
)  # fmt: skip
def test_schemas_of_3_0_become_json_schema(given: dict[str, Any], made: dict[str, Any]) -> None:
    assert (
        only(operation(parameter("p", schema=given)), version="3.0.4").input_schema["properties"][
            "p"
        ]
        == made
    )


def test_true_and_false_are_schemas_since_3_1() -> None:
    body = {"properties": {"items": True, "b": {"items": False, "anyOf": [True, {"not": False}]}}}
    fields = operation(requestBody=json_body(body))
    assert only(fields).input_schema["properties"]["body"] == body
    wrong(document({"/x": {"post": fields}}, version="3.0.0"), "/schema/properties/b/")


def test_operations_that_cannot_be_written_are_left_out_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    doc = document(
        {
            "/a": {"post": operation(operationId="xml", requestBody=json_body({}, "application/xml"))},
            "/b": {"get": operation(parameter("p", schema={"type": "array"}, style="matrix", required=True), operationId="odd")},
            "/c/{id}": {"get": operation(operationId="lacks")},
            "/d": {"get": operation(parameter("p", style="matrix"), parameter("q"), operationId="fine")},
        }
    )  # fmt: skip
    tools = openapi(doc, base_url=BASE)
    assert [tool.name for tool in tools.tools] == ["fine"]
    assert list(tools.tools[0].input_schema["properties"]) == ["q"]
    assert tools.left_out == {
        "xml": "its body is written as application/xml",
        "odd": "its parameter 'p' is written in the style 'matrix'",
        "lacks": "its path has id, of which no parameter tells",
    }
    assert (
        "Shop: the operation xml is left out: its body is written as application/xml" in caplog.text
    )


def test_a_body_of_several_kinds_is_the_json_one() -> None:
    content = {kind: {"schema": {"title": kind}} for kind in ("text/plain", "application/xml", "application/x-www-form-urlencoded", "application/json; charset=utf-8")}  # fmt: skip
    tool = only(operation(requestBody={"content": content}))
    assert tool.input_schema["properties"]["body"] == {"title": "application/json; charset=utf-8"}


# servers


def test_requests_go_to_the_first_server_with_its_variables_defaults() -> None:
    servers = [
        {"url": "https://{region}.example:{port}/v1/", "variables": {"region": {"default": "eu"}, "port": {"default": "8443", "enum": ["8443"]}}},
        {"url": "https://other.example"},
    ]  # fmt: skip
    assert urls(document({"/x": {"get": operation()}}, servers=servers), base_url=None) == [
        "https://eu.example:8443/v1"
    ]
    assert urls(document({"/x": {"get": operation()}}, servers=servers), base_url="http://h/") == [
        "http://h"
    ]


def urls(doc: Any, **how: Any) -> list[str]:
    """The base URL of each tool, as its handler holds it."""
    cells = [dict(zip(t.handler.__code__.co_freevars, t.handler.__closure__, strict=True)) for t in openapi(doc, **how).tools]  # type: ignore[union-attr]  # fmt: skip
    return [cell["url"].cell_contents for cell in cells]


@pytest.mark.parametrize(
    "servers", [[], [{"url": "/v1"}], [{"url": "{host}/v1"}], [{"url": "ftp://x"}], None]
)
def test_an_address_that_is_not_whole_must_be_given(servers: Any) -> None:
    doc = document(
        {"/x": {"get": operation()}}, **({} if servers is None else {"servers": servers})
    )
    wrong(doc, "no whole address: give base_url=", base_url=None)
    wrong(doc, "no whole address: give base_url=", base_url="/v1")
    wrong(doc, "no query and no fragment", base_url="https://h/?a=1")


def test_keys_go_where_the_caller_says_and_never_where_a_document_says() -> None:
    scheme = {"securitySchemes": {"k": {"type": "http", "scheme": "bearer"}}}
    paths = {"/x": {"get": operation(security=[{"k": []}])}}
    doc = document(paths, servers=[{"url": "https://evil.example"}], components=scheme)
    wrong(
        doc,
        "give base_url=: keys and headers are sent where the caller says",
        base_url=None,
        api_key="k",
    )
    wrong(doc, "give base_url=: keys and headers", base_url=None, headers={"a": "b"})
    assert urls(doc, base_url=BASE, api_key="k") == [BASE]


def test_an_operation_may_have_a_server_of_the_same_host_alone() -> None:
    def with_server(url: str, **how: Any) -> list[str]:
        paths = {
            "/x": {"get": operation(servers=[{"url": url}])},
            "/y": {"servers": [{"url": url}], "get": operation()},
        }
        return urls(document(paths, servers=[{"url": "https://h.example/v1"}]), **how)

    assert with_server("https://h.example/v2") == ["https://h.example/v2"] * 2
    assert with_server("/v3") == ["https://h.example/v3"] * 2
    assert with_server("https://evil.example", base_url=BASE) == [BASE] * 2
    with pytest.raises(
        SettingsError,
        match=r"'#/paths/~1x/get' goes to another host, 'https://evil.example': give base_url=",
    ):
        with_server("https://evil.example")


# how a document is given


def test_a_document_is_a_dict_a_text_or_a_file_in_json_or_yaml(tmp_path: Path) -> None:
    doc = document({"/x": {"get": operation(parameter("p"), operationId="it")}})
    (tmp_path / "doc.json").write_text(json.dumps(doc, indent=1))
    (tmp_path / "doc.yaml").write_text(YAML)
    for form in (doc, json.dumps(doc), tmp_path / "doc.json", YAML, tmp_path / "doc.yaml"):
        assert tools_of(form)["it"].input_schema["properties"] == {"p": {"type": "string"}}


YAML = """
openapi: 3.0.3
info: {title: Shop, version: 2026-01-01}
paths:
  /x:
    get:
      operationId: it
      parameters:
        - {name: p, in: query, schema: &text {type: string}}
      responses:
        200: {description: ok}
"""


def test_yaml_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    wrong(YAML, "pip install pyyaml")


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openapi_pydantic", None)
    wrong(document({}), r"pip install '\.\[openapi\]' in ")


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ("https://api.example/openapi.json", "name a file by Path"),
        (Path("/nowhere/doc.json"), "cannot be read: .*No such file"),
        ("{", "cannot be read"),
        ("[\n]", "is an object, and this is none"),
        ("a: [\n", "neither JSON nor YAML"),
        ("a: &x\n  b: *x\n", "cannot be read as JSON: it holds itself"),
        ("a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{n}: &{n} [{','.join([f'*{m}'] * 9)}]\n" for m, n in zip("abcdefg", "bcdefgh", strict=True)), "cannot be read as JSON: it is too large"),
        ({"swagger": "2.0"}, "of version swagger 2.0: convert it"),
        ({"openapi": "4.0.0"}, "of version '4.0.0'"),
        ({"openapi": 3.1}, "of version 3.1"),
        ({"openapi": "3.1.0", "info": {"title": "x", "version": object()}}, "cannot be read as JSON"),
        ({"openapi": "3.1.0", "paths": {}}, "wrong at #/info|wrong at #: "),
        (document({"/x": {"get": {"parameters": [{"name": "p", "in": "nowhere"}], "responses": {}}}}), "wrong at #/paths/~1x/get/parameters/0/in: "),
        (document({"/x": {"get": 5}}), "wrong at #/paths/~1x/get: "),
        (document({"/x": {"get": operation({"$ref": "#/components/parameters/none"})}}), "refers to '#/components/parameters/none', and there is nothing"),
        (document({"/x": {"get": operation({"$ref": "other.json#/a"})}}), "refers to 'other.json#/a', and only what is in it is read"),
        (document({"/x": {"get": operation(parameter("p", schema={"$ref": "#/info/title"}))}}), "no schema at '#/info/title', but 'Shop'"),
        (document({"/x": {"get": operation({"$ref": "#/info"})}}), "no parameter at '#/info'"),
        (document({"/x": {"get": operation({"$ref": "#/info/title"})}}), "no object at '#/info/title'"),
        (document({"/x": {"get": operation({"$ref": "#/components/parameters/a"})}}, components={"parameters": {"a": {"$ref": "#/components/parameters/a"}}}), "which refers to itself"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_document_is_told_with_its_place(given: Any, match: str) -> None:
    wrong(given, match)


# documents as they are found


def test_a_document_as_frameworks_write_it() -> None:
    tools = openapi(Path(__file__).parent / "data" / "framework.json", base_url=BASE)
    assert [tool.name for tool in tools.tools] == [
        "read_items_items_get",
        "create_item_items_post",
        "login_token_post",
    ]
    create = tools.tools[1].input_schema
    assert create["required"] == ["body"]
    assert create["$defs"]["Item"]["properties"]["price"] == {
        "type": "number",
        "exclusiveMinimum": 0.0,
        "title": "Price",
    }
    assert tools.left_out == {"upload_upload_post": "its body is written as multipart/form-data"}


def test_a_document_of_3_0_with_all_kinds_of_references() -> None:
    tools = openapi(Path(__file__).parent / "data" / "petstore.yaml", base_url=BASE)
    assert [tool.name for tool in tools.tools] == [
        "listPets",
        "createPets",
        "showPetById",
        "findByStatus",
    ]
    pet = tools.tools[1].input_schema
    assert pet["$defs"]["Pet"]["properties"]["parents"]["items"] == {"$ref": "#/$defs/Pet"}
    assert pet["$defs"]["Pet"]["required"] == ["name"]
    assert tools.tools[0].input_schema["properties"]["limit"]["type"] == ["integer", "null"]


# hostile documents


def _leaves(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [at, *[place for key, each in below for place in _leaves(each, (*at, key))]]


WHOLE = document(
    {
        "/x/{id}": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "servers": [{"url": "/v2"}],
            "post": operation(
                parameter("q", schema={"type": "array", "items": {"$ref": "#/components/schemas/N"}}, style="form", explode=False),
                operationId="it",
                tags=["t"],
                requestBody={"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/N"}}}},
                security=[{"k": []}],
            ),
        }
    },
    servers=[{"url": "https://{a}.example", "variables": {"a": {"default": "x"}}}],
    components={
        "parameters": {"id": parameter("id", "path")},
        "schemas": {"N": {"type": "object", "properties": {"n": {"anyOf": [{"$ref": "#/components/schemas/N"}, {"type": "null"}]}}, "required": ["n"]}},
        "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-K"}},
    },
)  # fmt: skip


def _put(target: Any, place: tuple[Any, ...], value: Any) -> None:
    """Sets what stands at a place, if that is still there."""
    try:
        for step in place[:-1]:
            target = target[step]
        target[place[-1]] = value
    except (LookupError, TypeError):
        pass


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 5), st.sampled_from(["", "x", "#", "#/", "#/components/schemas/N", "#/paths", "header", "/", "{", "\x00"]),
    st.just([]), st.just({}), st.just([{}]), st.just([[]]), st.just({"$ref": "#/components/schemas/N"}), st.just({"$ref": "#/paths/~1x~1{id}/post"}), st.just({"x": {}}),
)  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(_leaves(WHOLE)[1:]), VALUES), min_size=1, max_size=3),
    st.booleans(),
)
def test_whatever_stands_in_a_document_it_is_read_or_refused_by_an_error_of_ours(
    changes: list[tuple[tuple[Any, ...], Any]], is_3_0: bool
) -> None:
    doc = json.loads(json.dumps(WHOLE))
    if is_3_0:
        doc["openapi"] = "3.0.3"
    for place, value in changes:
        _put(doc, place, deepcopy(value))
    try:
        tools = openapi(doc, base_url=BASE, api_key="k")
    except SettingsError:
        return
    assert isinstance(tools, OpenAPIToolset)
    for tool in tools.tools:
        json.dumps(tool.spec.input_schema)
