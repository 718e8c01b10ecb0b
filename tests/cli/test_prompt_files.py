"""Fragments and attachments of a prompt (issue 30, 4): files, URLs, standard input, stored texts."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from dragoman import DataPart, Message, TextPart
from dragoman.cli import attachments
from dragoman.transport import AddressPolicy
from support.cli import Stdin, one_line
from support.llm_server import Llm

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "dragoman"


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of files whose address is let in."""

    class Files(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages = {"/a.txt": b"from the web", "/p": PNG, "/big": b"x" * 2000}
            content = pages.get(self.path)
            self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    policy = AddressPolicy(["127.0.0.1"], schemes=["http"], ports=[port])
    monkeypatch.setattr(attachments, "make_policy", lambda _: policy)
    yield f"http://127.0.0.1:{port}"
    server.shutdown()
    server.server_close()


def content(llm: Llm) -> tuple[object, ...]:
    return llm.requests[-1].messages[-1].content


def test_fragments_stand_before_the_prompt(cli, llm: Llm, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n")
    (tmp_path / "b").write_text("zwölf")
    assert cli("Sum up", "-f", str(tmp_path / "a.md"), "-f", str(tmp_path / "b"))[0] == 0
    assert content(llm) == (TextPart("# A\n"), TextPart("zwölf"), TextPart("Sum up"))
    assert cli("-f", str(tmp_path / "b"))[0] == 0
    assert content(llm) == (TextPart("zwölf"),)


def test_system_fragments_stand_before_the_system_prompt(cli, llm: Llm, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("Be brief.")
    cli("x", "--sf", str(tmp_path / "rules"), "-s", "Be kind.")
    assert llm.requests[0].messages[0] == Message.system("Be brief.\n\nBe kind.")


def test_standard_input_is_a_fragment_or_an_attachment_once(
    cli, llm: Llm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(b"piped @x"))
    cli("Sum up", "-f", "-")
    assert content(llm) == (TextPart("piped @x"), TextPart("Sum up"))
    monkeypatch.setattr(sys, "stdin", Stdin(PNG))
    cli("What?", "-a", "-")
    part = content(llm)[-1]
    assert isinstance(part, DataPart)
    assert (part.data, part.mime_type) == (PNG, "image/png")
    monkeypatch.setattr(sys, "stdin", Stdin(b"once"))
    code, _, err = cli("x", "-f", "-", "-f", "-")
    assert code == 2
    assert one_line(err, "it can be read once")
    monkeypatch.setattr(sys, "stdin", Stdin(None))
    assert one_line(cli("x", "-f", "-")[2], "pipe something in")


def test_a_url_is_read_with_limits(
    cli, llm: Llm, web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("Sum up", "-f", f"{web}/a.txt", "-a", f"{web}/p")
    text, prompt, picture = content(llm)
    assert (text, prompt) == (TextPart("from the web"), TextPart("Sum up"))
    assert isinstance(picture, DataPart)
    assert picture.mime_type == "image/png"
    assert one_line(cli("x", "-f", f"{web}/nothing")[2], "/nothing", "404")
    monkeypatch.setattr(attachments, "_MAX_BYTES", 1000)
    code, _, err = cli("x", "-f", f"{web}/big")
    assert code == 2
    assert one_line(err, "/big")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/x",
        "http://localhost/x",
        "http://169.254.169.254/latest",
        "http://[::1]/x",
        "file:///etc/passwd",
        "http://",
        "https://x.example:99999/y",
    ],
)
@pytest.mark.parametrize("option", ["-f", "-a", "-t"])
def test_a_url_of_this_network_is_refused(cli, llm: Llm, url: str, option: str) -> None:
    code, out, err = cli("x", option, url)
    assert (code, out) == (2, "")
    assert one_line(err, url)
    assert not llm.requests


def test_the_type_of_an_attachment_is_told_or_given(cli, llm: Llm, tmp_path: Path) -> None:
    scan, notes = tmp_path / "scan", tmp_path / "notes.txt"
    scan.write_bytes(PNG)
    notes.write_text("milk")
    cli("x", "-a", str(scan), "-a", str(notes), "--at", str(scan), "image/webp")
    _, picture, text, webp = content(llm)
    assert isinstance(picture, DataPart)
    assert isinstance(webp, DataPart)
    assert (picture.mime_type, webp.mime_type) == ("image/png", "image/webp")
    assert isinstance(text, TextPart)
    assert "milk" in text.text
    assert one_line(cli("x", "--at", str(scan), "picture")[2], "is no type", "image/png")


def test_what_cannot_be_read_is_one_line(cli, llm: Llm, tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(PNG)
    (tmp_path / "empty").write_text("")
    for arguments, words in {
        ("-f", "/nowhere"): ("/nowhere", "No such file"),
        ("-a", "/nowhere.png"): ("/nowhere.png", "No such file"),
        ("-f", str(tmp_path)): ("directory",),
        ("-f", str(tmp_path / "p.png")): ("is not text", "-a"),
        ("--sf", str(tmp_path / "p.png")): ("is not text",),
        ("-a", str(tmp_path / "empty")): ("is empty",),
        ("-f", "gh:x/y"): ("no plug-in loads 'gh'",),
        ("-f", "nul\0byte"): (),
    }.items():
        code, out, err = cli("x", *arguments)
        assert (code, out) == (2, ""), arguments
        assert one_line(err, *words)
    assert not llm.requests


def test_a_file_that_does_not_end_is_cut_off(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "_MAX_BYTES", 1000)
    assert one_line(cli("x", "-a", "/dev/zero")[2], "/dev/zero", "larger than")


def test_texts_are_stored_under_a_name(cli, llm: Llm, tmp_path: Path, config: Path) -> None:
    (tmp_path / "style.md").write_text("Short\x1b[2J sentences.\nNo riddles.\n")
    assert cli("fragments", "set", "style", str(tmp_path / "style.md")) == (0, "", "")
    assert stat.S_IMODE((config / "fragments" / "style").stat().st_mode) == 0o600
    (tmp_path / "style.md").unlink()
    cli("Write", "-f", "style", "--sf", "style")
    assert content(llm)[0] == TextPart("Short\x1b[2J sentences.\nNo riddles.\n")
    code, out, _ = cli("fragments", "list")
    assert (code, out.startswith("style: ")) == (0, True)
    assert "\x1b" not in out
    assert "No riddles." in cli("fragments", "show", "style")[1]
    assert cli("fragments", "remove", "style") == (0, "", "")
    for command in ("show", "remove"):
        code, _, err = cli("fragments", command, "style")
        assert code == 2
        assert one_line(err, "no fragment is stored as 'style'")
    assert one_line(cli("fragments", "set", "../x", "-")[2], "no name of a fragment")
    assert one_line(cli("fragments", "set", "x", "/nowhere")[2], "/nowhere")
