"""No module imports another that imports it, also not for types alone or inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src"


def modules_of(root: Path) -> dict[str, Path]:
    """Every module by its name."""
    names: dict[str, Path] = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        names[".".join(parts).removesuffix(".__init__")] = path
    return names


def imports_of(path: Path, modules: Iterable[str]) -> Iterator[str]:
    """The modules that a file imports at its top, for types, or inside its functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield module if module in modules else node.module


def circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """The strongly connected components of more than one module (Tarjan's algorithm, without
    recursion)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: dict[str, None] = {}
    found: list[set[str]] = []
    for root in graph:
        work = [(root, iter(sorted(graph[root])))] if root not in numbers else []
        while work:
            module, imported = work[-1]
            if module not in numbers:
                numbers[module] = lowest[module] = len(numbers)
                stack[module] = None
            for target in imported:
                if target not in numbers:
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in stack:
                    lowest[module] = min(lowest[module], numbers[target])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    lowest[above] = min(lowest[above], lowest[module])
                if lowest[module] == numbers[module]:
                    circle = set[str]()
                    while module not in circle:
                        circle.add(stack.popitem()[0])
                    found += [circle] if len(circle) > 1 else []
    return found


def test_the_algorithm_finds_circles() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str](), "e": {"a", "e"}}
    assert circles(graph) == [{"b", "c"}]
    assert circles({"a": {"b", "c"}, "b": {"a"}, "c": {"d"}, "d": {"a"}}) == [{"a", "b", "c", "d"}]


def test_no_module_imports_one_that_imports_it() -> None:
    modules = modules_of(ROOT)
    graph = {
        name: {module for module in imports_of(path, modules) if module in modules} - {name}
        for name, path in modules.items()
    }
    assert len(graph) > 300
    assert sorted(map(sorted, circles(graph))) == []
