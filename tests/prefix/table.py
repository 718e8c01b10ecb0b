"""Plays every scene before the strict provider and prints what came of it.

python tests/prefix/table.py [SCENE …]
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

from dragoman.loss import Lost
from prefix.scenes import SCENES
from prefix.stage import Stage

PROVIDER = Path(__file__).parents[3] / "shared" / "checks" / "prefix_provider.py"
MODELS = {"prefix": "anthropic:claude-opus-5-5", "block": "anthropic:claude-sonnet-4-5"}


def load_provider() -> ModuleType:
    """The strict provider as a module."""
    spec = importlib.util.spec_from_file_location("prefix_provider", PROVIDER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def play(scene: str, bind: str, *, is_streamed: bool) -> dict[str, Any]:
    """Plays one scene, and returns the provider's report with the error that ended it, if any."""
    address, provider, server = load_provider().start(bind)
    stage = Stage(address, MODELS[bind], is_streamed=is_streamed)
    try:
        asyncio.run(SCENES[scene].play(stage))
        error = None
    except Exception as caught:
        error = caught
    finally:
        server.shutdown()
        server.server_close()
    return {**provider.report(), "error": error, "losses": stage.losses}


def main() -> None:
    """Prints a row for each scene, or with `--markdown` the table of the documentation."""
    arguments = sys.argv[1:]
    is_markdown = "--markdown" in arguments
    scenes = [name for name in arguments if not name.startswith("--")] or list(SCENES)
    for scene in scenes:
        cells: list[str] = []
        for bind, is_streamed in product(MODELS, (True, False)):
            report = play(scene, bind, is_streamed=is_streamed)
            cells.append(describe(report))
            if not is_markdown:
                way = "streamed" if is_streamed else "whole"
                print(f"{scene:40} {bind:7} {way:9} {cells[-1]} {str(report['error'] or '')[:150]}")
        if is_markdown:
            print(f"| {scene} | {join_ways(cells[:2])} | {join_ways(cells[2:])} |")


def describe(report: dict[str, Any]) -> str:
    """What came of a scene, in words."""
    share = 100 * report["stable"] / max(report["expected"], 1)
    words = [
        f"{report.get('requests', 0)} requests",
        f"{sum(report['refused'].values())} refused",
        f"{report.get('missing', 0)} missing",
        f"{share:.0f} % stable",
    ]
    if report.get("dropped"):
        words.append(f"{report['dropped']} dropped")
    announced = [loss for loss in report["losses"] if loss.what in (Lost.prefix, Lost.thinking)]
    if announced:
        words.append(f"{len(announced)} losses")
    return ", ".join(words)


def join_ways(cells: list[str]) -> str:
    """The cell of a streamed and of a whole scene, once where both are the same."""
    return " / ".join(dict.fromkeys(cells))


if __name__ == "__main__":
    main()
