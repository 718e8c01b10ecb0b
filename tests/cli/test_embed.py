"""`dragoman embed`: the cases of the seed's command line (SC-041 … SC-047, SC-058), and `embed
text`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from support.cli import SRC, Stdin, one_line
from support.embeddings import SIZE
from support.llm_server import Llm, decoded

MODEL = "openai-compatible?embeddings=e"


@pytest.fixture(autouse=True)
def _model(llm: Llm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "DRAGOMAN_MODEL", f"openai-compatible?chat=tiny&embeddings={MODEL.rpartition('=')[2]}"
    )


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("Rivers flow to the sea.\n\n  Cats sleep a lot. \n")
    (tmp_path / "b.txt").write_text("Bread is made of flour, water and salt.")
    return tmp_path


def created(cli: Any, *arguments: str) -> Any:
    code, out, err = cli("embed", "create", *arguments)
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    return decoded(out)


def test_sc041_a_file_becomes_chunks_with_vectors(cli, llm: Llm, notes: Path) -> None:
    file = str(notes / "a.md")
    told = created(cli, file)
    assert {key: told[key] for key in ("model", "chunk_size", "chunk_overlap")} == {
        "model": MODEL,
        "chunk_size": 512,
        "chunk_overlap": 100,
    }
    assert told.keys() == {"model", "created", "chunk_size", "chunk_overlap", "documents"}
    (document,) = told["documents"]
    assert document["file"] == file
    assert [(chunk["text"], chunk["offset"]) for chunk in document["chunks"]] == [
        ("Rivers flow to the sea.", 0),
        ("Cats sleep a lot.", 27),
    ]
    assert {len(chunk["vector"]) for chunk in document["chunks"]} == {SIZE}
    assert [request.model for request in llm.embedded] == ["e"]


def test_sc042_several_files_are_sent_together(cli, llm: Llm, notes: Path) -> None:
    told = created(cli, str(notes / "b.txt"), str(notes / "a.md"))
    assert [len(document["chunks"]) for document in told["documents"]] == [1, 2]
    assert len(llm.embedded) == 1


def test_sc044_the_size_of_chunks_can_be_chosen(cli, notes: Path) -> None:
    told = created(cli, str(notes / "b.txt"), "--chunk-size", "16", "--chunk-overlap", "4")
    texts = [chunk["text"] for chunk in told["documents"][0]["chunks"]]
    assert texts == ["Bread is made of", "e of flour, wate", "water and salt."]
    assert (told["chunk_size"], told["chunk_overlap"]) == (16, 4)
    assert created(cli, str(notes / "b.txt"), "--chunk-size", "20")["chunk_overlap"] == 4
    code, _, err = cli(
        "embed", "create", str(notes / "b.txt"), "--chunk-size", "16", "--chunk-overlap", "16"
    )
    assert code == 2
    assert one_line(err, "--chunk-overlap", "16")


def test_sc043_the_model_is_the_options(cli, llm: Llm, notes: Path) -> None:
    for given in ("openai-compatible:other", "openai-compatible?chat=c&embeddings=other"):
        told = created(cli, str(notes / "b.txt"), "-m", given, "--dimensions", "4")
        assert (told["model"], told["dimensions"]) == ("openai-compatible?embeddings=other", 4)
        assert len(told["documents"][0]["chunks"][0]["vector"]) == 4
    assert {request.model for request in llm.embedded} == {"other"}


@pytest.mark.parametrize(
    "names",
    [(), ("missing.txt",), ("empty.txt",), ("a.md", "missing.txt"), ("picture.png",), (".",)],
)
def test_no_file_or_nothing_in_it_is_exit_code_2(
    cli, llm: Llm, notes: Path, names: tuple[str, ...]
) -> None:
    (notes / "empty.txt").write_text(" \n\n")
    (notes / "picture.png").write_bytes(b"\x89PNG\xff")
    code, out, err = cli("embed", "create", *[str(notes / name) for name in names])
    assert (code, out) == (2, "")
    assert one_line(err, "FILES")
    assert llm.embedded == []


@pytest.mark.slow
def test_a_request_that_fails_loses_no_vector_of_the_others(cli, llm: Llm, notes: Path) -> None:
    (notes / "long.txt").write_text("\n\n".join(f"Paragraph {number}" for number in range(300)))
    embed = llm.embed

    def failing(body: Any) -> Any:
        if any("Paragraph 290" in text for text in body["input"]):
            while not llm.embedded:
                sleep(0.01)
            sleep(0.5)  # until the client has read an answer to another
            return {"error": {"message": "overloaded"}}
        return embed(body)

    llm.embed = failing
    code, out, err = cli("embed", "create", str(notes / "a.md"), str(notes / "long.txt"))
    assert code not in (0, 2)
    short, long = decoded(out)["documents"]
    lacking = 300 - len(long["chunks"])
    assert len(short["chunks"]) == 2
    assert 0 < lacking < 300
    assert all(chunk["vector"] for chunk in long["chunks"])
    assert one_line(err, f"{lacking} of 302 chunks", "long.txt")
    assert "a.md" not in err
    llm.embed = lambda _: {"error": {"message": "overloaded"}}
    code, out, err = cli("embed", "create", str(notes / "a.md"))
    assert (code != 0, out) == (True, "")


@pytest.fixture
def made(cli, notes: Path) -> Path:
    for name in ("a.md", "b.txt"):
        _, out, _ = cli("embed", "create", str(notes / name), "--dimensions", "64")
        (notes / f"{name}.json").write_text(out)
    return notes


def test_sc045_search_finds_the_nearest_with_the_files_own_model(
    cli, llm: Llm, made: Path, monkeypatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_MODEL", "anthropic")
    code, out, err = cli("embed", "search", "-q", "where do cats sleep", str(made / "a.md.json"))
    assert (code, err) == (0, "")
    told = decoded(out)
    assert told["query"] == "where do cats sleep"
    first, second = told["results"]
    assert first.keys() == {"file", "text", "offset", "similarity"}
    assert (first["file"], first["text"], first["offset"]) == (
        str(made / "a.md"),
        "Cats sleep a lot.",
        27,
    )
    assert first["similarity"] > second["similarity"]
    assert (llm.embedded[-1].model, llm.embedded[-1].dimensions) == ("e", 64)


def test_sc046_a_folders_files_are_searched_as_one(cli, made: Path) -> None:
    _, out, _ = cli("embed", "search", str(made), "--query", "bread flour")
    results = decoded(out)["results"]
    assert len(results) == 3
    assert Path(results[0]["file"]).name == "b.txt"
    _, out, _ = cli("embed", "search", str(made), "-q", "bread flour", "-n", "1")
    assert decoded(out)["results"] == results[:1]


def test_ten_results_are_shown(cli, made: Path) -> None:
    (made / "long.txt").write_text("\n\n".join(f"Paragraph {number}" for number in range(14)))
    _, out, _ = cli("embed", "create", str(made / "long.txt"), "--dimensions", "64")
    (made / "long.json").write_text(out)
    _, out, _ = cli("embed", "search", "-q", "paragraph", str(made))
    assert len(decoded(out)["results"]) == 10


def test_sc047_the_usage_is_told_on_standard_error(cli, made: Path) -> None:
    code, out, err = cli("embed", "search", "-v", "-q", "x", str(made))
    assert code == 0
    assert decoded(out)["results"]
    assert err == "Usage: Input: 3 tokens, Output: 0 tokens, Total: 3 tokens\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("notes",), ("-q",)),
        (("-q", " ", "."), ("--query",)),
        (("-q", "x", "missing.json"), ("missing.json", "No such file")),
        (("-q", "x", "a.md"), ("a.md", "dragoman embed create")),
        (("-q", "x", "none"), ("no .json file",)),
        (("-q", "x", "."), ("different models", "e2")),
        (("-q", "x", "a.md.json", "-m", "openai-compatible:e"), ("--model",)),
    ],
)
def test_sc058_what_cannot_be_searched_is_exit_code_2(
    cli, made: Path, monkeypatch, arguments, words
) -> None:
    monkeypatch.chdir(made)
    (made / "none").mkdir()
    other = (made / "b.txt.json").read_text().replace("embeddings=e", "embeddings=e2")
    (made / "b.txt.json").write_text(other)
    if "--model" in words:
        (made / "a.md.json").write_text(
            (made / "a.md.json").read_text().replace(',"dimensions":64', "")
        )
    code, out, err = cli("embed", "search", *arguments)
    assert (code, out) == (2, "")
    assert one_line(err, *words)


def test_embed_wants_a_command(cli) -> None:
    code, out, err = cli("embed")
    assert (code, out) == (2, "")
    assert all(f"\n  {command} " in err for command in ("create", "search", "text"))


def test_text_prints_the_vector_of_an_argument_or_of_what_is_piped_in(
    cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = cli("embed", "text", "a river")
    assert (code, decoded(out)["model"], len(decoded(out)["vector"])) == (0, MODEL, SIZE)
    monkeypatch.setattr("sys.stdin", Stdin(b"a river\n"))
    assert cli("embed", "text")[1] == out
    monkeypatch.setattr("sys.stdin", Stdin(b"  "))
    code, _, err = cli("embed", "text")
    assert code == 2
    assert one_line(err, "nothing to embed")


def test_a_provider_without_embeddings_is_exit_code_3(cli) -> None:
    code, _, err = cli("embed", "text", "x", "-m", "anthropic")
    assert code == 3
    assert one_line(err, "makes no embeddings", "openai")


def test_progress_is_shown_on_a_terminal_only(
    cli, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.cli.progress._DELAY_SECONDS", 0.0)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert cli("embed", "create", str(notes / "a.md"))[2] == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    code, _, err = cli("embed", "create", str(notes / "a.md"))
    assert code == 0
    assert "embedding" in err and "2 of 2 chunks" in err


def test_offsets_count_the_files_own_line_ends(cli, notes: Path) -> None:
    file = notes / "windows.txt"
    file.write_bytes(b"\xef\xbb\xbfOne.\r\n\r\nTwo.\r\n")
    (document,) = created(cli, str(file))["documents"]
    assert [(chunk["text"], chunk["offset"]) for chunk in document["chunks"]] == [
        ("One.", 0),
        ("Two.", 8),
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.slow
def test_a_full_disk_is_one_line(llm: Llm, notes: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", "providers"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=50, env={**os.environ, "PYTHONPATH": SRC},
        )  # fmt: skip
    assert done.returncode == 1
    assert one_line(done.stderr, "No space left")
