"""`dragoman threads` where nothing is kept, and where the file is no database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Cli = Callable[..., tuple[int, str, str]]


def test_an_empty_list_says_so_on_standard_error(cli: Cli, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'threads.db'}"
    assert cli("threads", "list", "--store", store) == (0, "", "note: no conversation is stored\n")
    assert cli("threads", "list", "--store", store, "--json")[1:] == ("[]\n", "")


def test_an_error_of_a_file_names_it(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("this is no database, it is a text of more than a few words " * 40)
    code, _, err = cli("threads", "list", "--store", f"sqlite:///{file}")
    assert code != 0
    assert str(file) in err
