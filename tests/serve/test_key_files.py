"""Keys of clients from a file or a variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import SettingsError
from dragoman.serve.http.callers import Key, parse_keys, read_keys

TEXT = """\
# who may call
sk-one-0123456789
  sk-two-0123456789\tbob

sk-three-0123456789 carol gpt-* local
"""
KEYS = [
    Key("sk-one-0123456789"),
    Key("sk-two-0123456789", "bob"),
    Key("sk-three-0123456789", "carol", models=("gpt-*", "local")),
]


def test_a_line_is_a_key_with_its_name_and_its_models() -> None:
    assert parse_keys(TEXT, where="x") == KEYS
    assert parse_keys("sk-one-0123456789", where="x") == KEYS[:1]


@pytest.mark.parametrize("text", ["", "\n", "# sk-one-0123456789"])
def test_a_file_without_keys_lets_nobody_in_and_is_an_error(text: str) -> None:
    with pytest.raises(SettingsError, match="KEYS has no key"):
        parse_keys(text, where="KEYS")


def test_an_error_names_the_line_and_shows_no_secret() -> None:
    with pytest.raises(SettingsError, match="KEYS, line 2") as caught:
        parse_keys("sk-one-0123456789\nhush\n", where="KEYS")
    assert "hush" not in str(caught.value)


def test_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "keys"
    file.write_text("\ufeff" + TEXT)
    file.chmod(0o600)
    assert read_keys(file) == KEYS
    assert not caplog.records
    file.chmod(0o644)
    assert read_keys(file) == KEYS
    assert "chmod 600" in caplog.text
    assert "sk-one" not in caplog.text


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"x" * 2_000_000])
def test_what_is_no_file_of_keys(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "keys").write_bytes(data)
    for path in (tmp_path / "keys", tmp_path, tmp_path / "none"):
        with pytest.raises(SettingsError, match="keys|none|" + tmp_path.name):
            read_keys(path)
