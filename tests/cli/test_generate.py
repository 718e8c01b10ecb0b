"""`dragoman generate`: files from a prompt, where they go, and how it ends."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import DataPart, LinkPart, TextPart
from dragoman.cli.save_files import Output, save_files
from dragoman.errors import ContentRefusedError, InvalidRequestError, ProviderError
from dragoman.providers import REGISTRY
from dragoman.testing import ScriptedModel
from support.cli import Stdin, one_line
from support.llm_server import decoded
from support.media import PNG, Stub, held, responded, said

IMAGE = DataPart(PNG, "image/png", "cat.png")
CSV = DataPart(b"a,b", "text/csv", "table.csv")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets a provider answer by a script."""

    def use(*answers: Any, like: str = "google", **fields: Any) -> ScriptedModel:
        scripted = ScriptedModel.like(like, list(answers), **fields)
        own = {**REGISTRY._own, scripted.name: lambda: scripted}
        monkeypatch.setattr(REGISTRY, "_own", own)
        monkeypatch.setenv("DRAGOMAN_MODEL", scripted.name)
        return scripted

    return use


def test_an_image_is_saved_and_its_path_is_printed(cli, folder: Path, model: Any) -> None:
    scripted = model([IMAGE, "Here it is."])
    code, out, err = cli("generate", "a lighthouse", "-o", "lighthouse.png")
    assert (code, out, err) == (0, "lighthouse.png\n", "")
    assert (folder / "lighthouse.png").read_bytes() == PNG
    assert scripted.bodies[0]["contents"][0]["parts"] == [{"text": "a lighthouse"}]


def test_verbose_shows_the_words_and_the_usage(cli, folder: Path, model: Any) -> None:
    model([IMAGE, "Here it is."])
    code, out, err = cli("generate", "a lighthouse", "-v")
    assert (code, out) == (0, "cat.png\n")
    assert "Here it is." in err
    assert "Usage: Input: " in err
    assert (folder / "cat.png").exists()


def test_json_has_the_files(cli, folder: Path, model: Any) -> None:
    model([IMAGE, "Here."])
    code, out, _ = cli("generate", "a cat", "-o", "a.png", "--json")
    told = decoded(out)
    assert (code, told["files"], told["output"]) == (0, ["a.png"], "Here.")
    assert told["usage"]["input_tokens"] > 0


def test_the_name_of_the_output_says_the_type(cli, folder: Path, model: Any) -> None:
    scripted = model([CSV])
    assert cli("generate", "a table", "-o", "t.csv")[:2] == (0, "t.csv\n")
    assert "text/csv" in str(scripted.bodies[0]["systemInstruction"])


def test_several_files_go_to_a_folder_and_overwrite_nothing(cli, folder: Path, model: Any) -> None:
    (folder / "cat.png").write_bytes(b"mine")
    model([IMAGE, CSV])
    code, out, _ = cli("generate", "x", "--mime-type", "image/png", "--mime-type", "text/csv")
    assert (code, out) == (0, "cat-2.png\ntable.csv\n")
    assert (folder / "cat.png").read_bytes() == b"mine"


def test_a_folder_is_made(cli, folder: Path, model: Any) -> None:
    model([IMAGE])
    assert cli("generate", "x", "-o", "new/")[:2] == (0, f"new{os.sep}cat.png\n")


def test_further_files_stand_beside_the_output(cli, folder: Path, model: Any) -> None:
    model([CSV, IMAGE, DataPart(PNG + b"2", "image/png")])
    assert cli("generate", "x", "-o", "a.png")[1] == "a.png\na-2.png\na.csv\n"
    assert (folder / "a.png").read_bytes() == PNG


def test_an_output_that_exists_is_refused_before_anything_is_asked(
    cli, folder: Path, model: Any
) -> None:
    scripted = model([IMAGE])
    (folder / "a.png").write_bytes(b"mine")
    code, out, err = cli("generate", "x", "-o", "a.png")
    assert (code, out) == (2, "")
    assert one_line(err, "a.png exists", "--force")
    assert not scripted.sent
    assert cli("generate", "x", "-o", "a.png", "--force")[0] == 0
    assert (folder / "a.png").read_bytes() == PNG


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "no/a.png"), "the folder no does not exist"),
        (("-o", "a.zzz"), "says no MIME type"),
        (("--option", "size"), "'size' is not NAME=VALUE"),
    ],
)
def test_a_wrong_argument_is_an_error_of_usage(
    cli, folder: Path, model: Any, arguments: tuple[str, ...], words: str
) -> None:
    scripted = model([IMAGE])
    code, _, err = cli("generate", "x", *arguments)
    assert code == 2
    assert one_line(err, words)
    assert not scripted.sent


def test_a_prompt_is_needed(cli, folder: Path, model: Any) -> None:
    model([IMAGE])
    code, _, err = cli("generate", "-o", "a.png")
    assert code == 2
    assert one_line(err, "there is nothing to make")


def test_an_unknown_mime_type_is_an_error_of_settings(cli, folder: Path, model: Any) -> None:
    model([IMAGE])
    code, _, err = cli("generate", "x", "--mime-type", "png")
    assert code == 3
    assert one_line(err, "'png' is no MIME type")


def test_a_provider_that_makes_no_media_is_an_error_of_settings(cli, folder: Path) -> None:
    code, _, err = cli("generate", "x", "-m", "local")
    assert code == 3
    assert one_line(err, "makes no media", "openai-responses, google and anthropic do")


def test_a_missing_key_is_named(cli, folder: Path) -> None:
    code, _, err = cli("generate", "x", "-m", "google")
    assert code == 4
    assert one_line(err, "GEMINI_API_KEY")


def test_a_refused_image_ends_with_4(cli, folder: Path, model: Any) -> None:
    model(ContentRefusedError("Not that."), like="openai-responses")
    code, out, err = cli("generate", "x", "-o", "a.png")
    assert (code, out) == (4, "")
    assert one_line(err, "Not that.")
    assert not (folder / "a.png").exists()


def test_an_answer_without_a_file_ends_with_4(cli, folder: Path, model: Any) -> None:
    model(["I cannot draw."])
    code, out, err = cli("generate", "x", "-o", "a.png")
    assert (code, out) == (4, "")
    assert one_line(err, "the model made no image/png", "I cannot draw.")


@pytest.fixture
def held_files(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets OpenAI Responses answer with files that it holds."""

    def use(answers: dict[str, Any]) -> None:
        record = msgspec.structs.replace(
            REGISTRY.get("openai-responses"), base_url="http://x/v1", transport=Stub(answers)
        )
        own = {**REGISTRY._own, "openai-responses": lambda: record}
        monkeypatch.setattr(REGISTRY, "_own", own)
        monkeypatch.setenv("DRAGOMAN_MODEL", "openai-responses")
        monkeypatch.setenv("OPENAI_API_KEY", "k")

    return use


def test_what_there_is_is_saved_when_a_file_is_gone(cli, folder: Path, held_files: Any) -> None:
    gone = (404, {}, b'{"error": {"message": "Container is expired."}}')
    held_files(
        {
            "/responses": responded(said("Here.", "c1", "c2")),
            held("c1"): (200, {}, b"a,b"),
            held("c2"): gone,
        }
    )
    code, out, err = cli("generate", "x", "-o", "t.csv")
    assert (code, out) == (4, "t.csv\n")
    assert "Container is expired." in err
    assert "c2.csv was not fetched" in err
    assert (folder / "t.csv").read_bytes() == b"a,b"


def test_a_file_over_the_limit_ends_with_4(
    cli, folder: Path, held_files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("dragoman.model.media_generation")
    monkeypatch.setattr(module, "_MOST_BYTES", 2)
    held_files({"/responses": responded(said("Here.", "c1")), held("c1"): (200, {}, b"a,b")})
    code, _, err = cli("generate", "x", "-o", "t.csv")
    assert code == 4
    assert "MiB together" in err


def test_files_that_are_mentioned_are_attached(cli, folder: Path, model: Any) -> None:
    (folder / "old.png").write_bytes(PNG)
    scripted = model([IMAGE])
    assert cli("generate", "At night: @old.png", "-o", "new.png")[0] == 0
    text, image = scripted.requests[0].messages[-1].content
    assert text == TextPart("At night: old.png")
    assert isinstance(image, DataPart)


def test_options_are_json_or_text_and_the_model_is_that_of_the_media(
    cli, folder: Path, model: Any
) -> None:
    scripted = model([IMAGE], like="openai-responses")
    code, _, _ = cli(
        "generate", "x", "-m", "openai-responses:gpt-x", "--option", "size=1x1", "--option",
        "output_compression=5", "-s", "Be kind.",
    )  # fmt: skip
    assert code == 0
    [tool] = scripted.bodies[0]["tools"]
    assert (tool["size"], tool["output_compression"]) == ("1x1", 5)
    assert scripted.bodies[0]["model"] == "gpt-x"
    assert scripted.bodies[0]["instructions"] == "Be kind."


def test_the_url_of_an_image_is_printed(cli, folder: Path, model: Any) -> None:
    def draw(_: Any) -> LinkPart:
        return LinkPart("https://x/a.png", "image/png")

    model(like="openai", media=draw)
    assert cli("generate", "x", "-o", "a.png")[:2] == (0, "https://x/a.png\n")


def test_progress_is_shown_on_a_terminal_alone(
    cli, folder: Path, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model([IMAGE], [IMAGE])
    assert cli("generate", "x", "-o", "a.png")[2] == ""
    monkeypatch.setattr(sys, "stdin", Stdin(b""))
    monkeypatch.setattr("dragoman.cli.progress._DELAY_SECONDS", 0.0)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    err = cli("generate", "x", "-o", "b.png")[2]
    assert "making image/png, Ctrl-C stops" in err


def test_an_error_of_the_provider_is_one_line(cli, folder: Path, model: Any) -> None:
    model(InvalidRequestError("Bad size."))
    code, _, err = cli("generate", "x", "-o", "a.png")
    assert code == 4
    assert one_line(err, "Bad size.")
    model(ProviderError("Down."))
    assert cli("generate", "x", "-o", "a.png")[0] == 4


@given(
    st.text(max_size=130)
    | st.sampled_from(
        ["../../x", "..", "/etc/passwd", "a\x00b", "C:\\x", ".bashrc", "\u202egpj.exe"]
    ),
    st.sampled_from(["image/png", "x", "", "text/plain; a=b"]),
)
def test_no_name_leaves_the_folder(tmp_path_factory: Any, name: str, mime_type: str) -> None:
    folder = tmp_path_factory.mktemp("out")
    [path] = save_files([DataPart(b"x", mime_type, name)], Output(folder, True), [], force=True)
    assert path.parent == folder
    assert list(folder.iterdir()) == [path]
    assert not path.name.startswith(".")
    assert path.read_bytes() == b"x"
