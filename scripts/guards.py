"""Whether the mutating test of the wires finds a guard that is missing: takes guards out, one at a
time, and runs it.

    python scripts/guards.py src/dragoman/wires/google               all guards of a wire, 100,000 inputs each
    python scripts/guards.py --total 40 src/dragoman/wires           some of all wires

A guard is what passes over or refuses a value of the wrong kind: a call of `if_object`, `as_text`,
`bound` …, of which its argument is left, and a condition with `isinstance`, which is taken as true.
Exit code 1: some are not missed (listed).
"""

import argparse
import ast
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from mutants import Mutant
from warm import ROOT, Broken, Change, children

GUARDS = {
    "as_index", "as_list", "as_object", "as_text", "bound", "bound_value", "if_list", "if_object", "if_objects", "if_text", "need_object",
}  # fmt: skip
BATCH = 1_000


def guards(parent: ast.AST) -> Iterator[Mutant]:
    """All guards below a node, as mutants without them."""
    for field, value in ast.iter_fields(parent):
        for place, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST):
                continue
            at = place if isinstance(value, list) else None
            match node:
                case ast.Call(ast.Name(name) | ast.Attribute(_, name), [first, *_]) if (
                    name in GUARDS
                ):
                    yield Mutant(parent, field, at, node, first)
                case ast.Call(ast.Name("isinstance")):
                    yield Mutant(parent, field, at, node, ast.Constant(value=True))
                case _:
                    pass
            yield from guards(node)


def hunt(wire: str | None, count: int) -> int:
    """Puts inputs through → 1: something was found."""
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    from fuzz.run import Plan, batch

    return int(
        any(
            batch(Plan(9, wire, recordings=60), range(at, at + BATCH))[1]
            for at in range(0, count, BATCH)
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Takes guards out of the wires; the mutating test must find each."
    )
    parser.add_argument("modules", nargs="+", type=Path)
    parser.add_argument(
        "--count", type=int, default=100_000, help="inputs for each (default 100,000)"
    )
    parser.add_argument("--total", type=int, help="so many guards, drawn (default: all)")
    parser.add_argument("--minutes", type=float, default=10, help="at most, for each")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    os.chdir(ROOT)
    paths = [path.resolve() for path in given.modules]
    files = [
        file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
    ]
    found: list[tuple[Path, Change]] = []
    for file in files:
        broken = Broken(file, ast.parse(file.read_bytes()))
        found += [(file, Change(broken, guard)) for guard in guards(broken.tree)]
    chosen = random.Random(0).sample(found, min(given.total or len(found), len(found)))

    def works() -> Iterator[tuple[str, object]]:
        yield "nothing", lambda: hunt(None, 2 * BATCH)
        for file, change in chosen:
            parts = file.relative_to(ROOT / "src" / "dragoman").parts
            wire = parts[1] if parts[0] == "wires" and parts[2:] else None
            name = f"{file.relative_to(ROOT)}:{getattr(change.mutant.old, 'lineno', 0)}: {change.mutant}"
            yield name, lambda wire=wire, change=change: change() or hunt(wire, given.count)

    missed = 0
    for number, (name, code) in enumerate(children(works(), 60 * given.minutes, given.jobs)):
        if name == "nothing" and code:
            print(
                "the test finds something in what is there: that must be mended first, or nothing can be told"
            )
        elif name != "nothing" and not code:
            missed += 1
            print(f"\rnot missed: {name}")
        print(f"\r{number} of {len(chosen)}, {missed} not missed", end=" ", flush=True)
    print()
    sys.exit(min(1, missed))


if __name__ == "__main__":
    main()
