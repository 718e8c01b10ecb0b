"""The shorthand of `--schema` (issue 30, 4): what `llm` takes gives the schema that `llm` makes of
it, and a typo is told with its position."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.schema_shorthand import load_schema, parse_shorthand
from support.cli import one_line
from support.llm_server import Llm, obliging

TYPES = {"int": "integer", "float": "number", "bool": "boolean", "str": "string", "": "string"}


def described(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


STRING, INTEGER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("name, bio", described(name=STRING, bio=STRING)),
        (
            "name, age int, balance float, active bool",
            described(
                name=STRING, age=INTEGER, balance={"type": "number"}, active={"type": "boolean"}
            ),
        ),
        (
            "  name : full name ,  age   int  :  years: all ",
            described(
                name={**STRING, "description": "full name"},
                age={**INTEGER, "description": "years: all"},
            ),
        ),
        (
            "\n  name\n\n  bio: short, at most three sentences\n",
            described(name=STRING, bio={**STRING, "description": "short, at most three sentences"}),
        ),
        ("\n name, age int \n", described(name=STRING, age=INTEGER)),
        ("größe float", described(größe={"type": "number"})),
    ],
)
def test_it_gives_the_schema_that_llm_gives(text: str, schema: dict[str, Any]) -> None:
    assert parse_shorthand(text) == schema


def test_lists_and_fields_that_may_be_missing_are_more_than_llm_has() -> None:
    assert parse_shorthand("name, age? int, tags list?") == {
        "type": "object",
        "properties": {
            "name": STRING,
            "age": INTEGER,
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name"],
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name, age itn", "column 11: 'itn' is no type, there are str, int, float, bool, list"),
        ("name, age itn", "did you mean int?"),
        ("name, :years", "column 7: a name is missing before the colon"),
        ("a, b, a int", "column 7: the field 'a' is there twice"),
        ("name: full, must be it", "column 18: 'be' is no type"),
        ("age int years", "column 9: 'years' follows the type"),
        ("name\n age innt", "line 2, column 6: 'innt' is no type"),
        ("na$me", "column 1: 'na$me' is no name"),
        ("", "it has no field"),
        (" , ", "it has no field"),
    ],
)
def test_a_typo_is_told_with_its_position_in_one_line(
    cli, llm: Llm, text: str, problem: str
) -> None:
    code, out, err = cli("chat", "x", "--schema", text) if text else (2, "", "error: \n")
    assert (code, out) == (2, "")
    assert one_line(err)
    assert not llm.requests
    with pytest.raises(ValueError, match=r".") as error:
        parse_shorthand(text)
    assert problem in str(error.value)
    if text:
        assert " ".join(problem.split()) in err


NAMES = st.from_regex(r"[a-zA-Z_]\w{0,8}", fullmatch=True)
WORDS = st.text("abc xyz.;", max_size=12).map(str.strip)


@given(
    st.lists(st.tuples(NAMES, st.sampled_from([*TYPES]), WORDS), min_size=1, max_size=6),
    st.booleans(),
)
def test_what_is_written_is_read(fields: list[tuple[str, str, str]], in_lines: bool) -> None:
    unique = {name: (kind, words) for name, kind, words in fields}
    text = ("\n" if in_lines else ", ").join(
        f"{name} {kind}" + (f": {words}" if words else "") for name, (kind, words) in unique.items()
    )
    schema = parse_shorthand(text)
    assert schema["required"] == list(unique)
    for name, (kind, words) in unique.items():
        assert schema["properties"][name]["type"] == TYPES[kind]
        assert schema["properties"][name].get("description", "") == words


@given(st.text(max_size=60))
def test_any_text_is_a_schema_or_one_error(text: str) -> None:
    try:
        schema = parse_shorthand(text)
    except ValueError as error:
        assert str(error)
    else:
        assert set(schema["required"]) <= set(schema["properties"])


def test_a_schema_is_a_shorthand_json_or_a_file(tmp_path: Path) -> None:
    schema = described(name=STRING)
    file = tmp_path / "s.json"
    file.write_text(json.dumps(schema))
    for argument in ("name", json.dumps(schema), str(file), f"@{file}"):
        assert load_schema(argument) == schema
    assert load_schema("name", multi=True) == described(items={"type": "array", "items": schema})


def test_the_answer_has_the_schema(cli, llm: Llm) -> None:
    llm.reply = obliging
    code, out, err = cli("A dog", "--schema", "name, age int")
    assert (code, json.loads(out), err) == (0, {"name": "Oslo", "age": 7}, "")
    code, out, _ = cli("Two dogs", "--schema-multi", "name")
    assert json.loads(out) == {"items": [{"name": "Oslo"}]}
    schema = llm.requests[1].output_schema
    assert schema is not None
    assert [*schema["properties"]["items"]["items"]["properties"]] == ["name"]


def test_schemas_dsl_prints_the_schema(cli) -> None:
    code, out, err = cli("schemas", "dsl", "name, age int")
    assert (code, json.loads(out), err) == (0, described(name=STRING, age=INTEGER), "")
    code, _, err = cli("schemas", "dsl", "name, age itn")
    assert code == 2
    assert one_line(err, "column 11")
