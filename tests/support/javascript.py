"""Programs in JavaScript, run by node without anything installed."""

from __future__ import annotations

from pathlib import Path

__all__ = ["with_openai"]

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
    (folder / "program.mjs").write_text(code)
    return folder / "program.mjs"
