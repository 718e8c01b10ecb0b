"""Commands that messages name work here (`providers/hints.py`)."""

from __future__ import annotations

import shlex
import sys

import pytest

from dragoman.providers import hints


@pytest.mark.parametrize(
    ("pip", "found", "begins"),
    [
        (True, {}, [sys.executable, "-m", "pip", "install"]),
        (True, {"python": sys.executable}, ["python", "-m", "pip", "install"]),
        (False, {"uv": "/bin/uv"}, ["uv", "pip", "install", "--python", sys.executable]),
        (False, {}, ["python3", "-m", "pip", "--python", sys.executable, "install"]),
    ],
)
def test_what_installs_a_package_is_what_is_there(
    monkeypatch: pytest.MonkeyPatch, pip: bool, found: dict[str, str], begins: list[str]
) -> None:
    monkeypatch.setattr(hints, "find_spec", lambda _: object() if pip else None)
    monkeypatch.setattr("shutil.which", found.get)
    *command, package = shlex.split(hints.install_command("xllamacpp"))
    assert command == begins
    assert package.startswith("xllamacpp")


def test_our_own_command_is_called_as_the_shell_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", {"dragoman": "/bin/dragoman"}.get)
    assert hints.command_line("local pull") == "dragoman local pull"
    monkeypatch.setattr("shutil.which", {}.get)
    assert hints.command_line("local pull") == f"{sys.executable} -m dragoman local pull"
