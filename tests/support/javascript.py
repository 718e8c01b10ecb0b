"""Programs in JavaScript, run by node."""

from __future__ import annotations

from pathlib import Path

__all__ = ["installed", "with_installed", "with_openai"]

CACHE = Path(__file__).parents[2] / ".cache"
"""Where `make service` installs packages, by names; `.done` in each says that it has."""

OPENAI = """
export default class OpenAI {
  constructor(options) {
    this.chat = {completions: {create: async (body) => {
      const headers = {"content-type": "application/json", authorization: `Bearer ${options.apiKey}`};
      return await (await fetch(options.baseURL + "/chat/completions", {method: "POST", headers, body: JSON.stringify(body)})).json();
    }}};
  }
}
"""


def with_openai(folder: Path, code: str) -> Path:
    """A program in a folder where `openai` is what asks for a chat and no more."""
    package = folder / "node_modules" / "openai"
    package.mkdir(parents=True)
    (package / "index.mjs").write_text(OPENAI)
    (package / "package.json").write_text('{"name": "openai", "exports": "./index.mjs"}')
    return _program(folder, code)


def installed(home: str) -> bool:
    """Whether the packages of this name are there."""
    return (CACHE / home / ".done").exists()


def with_installed(folder: Path, code: str, home: str) -> Path:
    """A program in a folder where the packages of this name are."""
    (folder / "node_modules").symlink_to(CACHE / home / "node_modules")
    return _program(folder, code)


def _program(folder: Path, code: str) -> Path:
    (folder / "program.mjs").write_text(code)
    return folder / "program.mjs"
