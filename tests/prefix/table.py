"""Plays every scene before the strict provider and prints what came of it.

python tests/prefix/table.py [SCENE …]
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

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
    """Prints a row for each scene, binding and way of asking."""
    for scene in sys.argv[1:] or SCENES:
        for bind in MODELS:
            for is_streamed in (True, False):
                report = play(scene, bind, is_streamed=is_streamed)
                share = 100 * report["stable"] / max(report["expected"], 1)
                print(
                    f"{scene:20} {bind:7} {'stream' if is_streamed else 'whole':7}"
                    f" requests {report.get('requests', 0):3} refused {sum(report['refused'].values()):2}"
                    f" valid {report.get('valid', 0):3} dropped {report.get('dropped', 0):2}"
                    f" missing {report.get('missing', 0):3} stable {share:5.1f} %"
                    f" losses {len(report['losses']):3} {str(report['error'] or '')[:150]!r}"
                )


if __name__ == "__main__":
    main()
