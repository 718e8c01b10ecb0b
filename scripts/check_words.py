"""Checks how the package is written: names, comments and density, against the numbers reached.

    python scripts/check_words.py [--list]

Each measure has a bound in `BOUNDS`, which is what the package had when the bound was written. New
code is held to it, and a bound only ever becomes stricter. `--list` names what counts against a
measure. The rules behind the numbers are in CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "src" / "dragoman"
VAGUE = frozenset(
    [
        "each",
        "found",
        "place",
        "places",
        "at",
        "own",
        "one",
        "made",
        "known",
        "given",
        "left",
        "held",
        "kept",
        "shown",
        "said",
        "told",
        "sent",
        "asked",
        "here",
        "there",
        "mine",
        "ours",
        "others",
        "rest",
        "how",
        "kind",
        "word",
        "words",
        "it",
    ]
)
"""Names that say nothing of the value."""
PARTICIPLES = frozenset(
    [
        "given",
        "known",
        "found",
        "made",
        "told",
        "shown",
        "said",
        "sent",
        "held",
        "kept",
        "left",
        "taken",
        "begun",
        "done",
        "gone",
        "seen",
        "written",
        "drawn",
        "built",
        "lost",
        "met",
        "paid",
        "spoken",
        "stood",
        "stuck",
        "swept",
        "understood",
        "chosen",
        "hidden",
    ]
)
VERBS = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "speed"})
"""Words in -ed that are verbs."""
COMPLEX = 10
"""Paths through a function from which on it is complex."""
BRANCHES = (
    ast.If, ast.For, ast.While, ast.AsyncFor, ast.ExceptHandler, ast.IfExp, ast.comprehension,
    ast.Assert, ast.match_case,
)  # fmt: skip
BOUNDS = {
    "vague names per 1,000 names": 6.0,
    "functions named by a participle per 1,000": 8.0,
    "class names with two meanings": 1.0,
    "ternaries per 1,000 lines": 11.5,
    "complex functions per 1,000": 35.0,
    "annotations with Any per 1,000": 63.0,
    "tokens per line of code": 8.3,
    "lines of code per comment": 62.0,
}
"""Measure → the most that it may be."""


class Module(NamedTuple):
    """A module that is measured."""

    path: str
    source: str
    tree: ast.Module


def count_paths(function: ast.AST) -> int:
    """Returns the cyclomatic complexity of a function."""
    paths = 1
    for node in ast.walk(function):
        paths += isinstance(node, BRANCHES)
        if isinstance(node, ast.BoolOp):
            paths += len(node.values) - 1
        if isinstance(node, ast.comprehension):
            paths += len(node.ifs)
    return paths


def is_participle(name: str) -> bool:
    """Returns whether a function's name begins with a participle."""
    word = name.strip("_").split("_")[0]
    if word in VERBS:
        return False
    return word in PARTICIPLES or (word.endswith("ed") and len(word) > 4)


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yields the names of variables and parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def annotations(tree: ast.AST) -> Iterator[ast.expr]:
    """Yields all annotations."""
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            value = getattr(node, name, None)
            if isinstance(value, ast.expr):
                yield value


def docstring_lines(tree: ast.AST) -> set[int]:
    """Returns the lines of texts that stand alone."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def measure(modules: list[Module]) -> tuple[dict[str, float], dict[str, list[str]]]:
    """Returns the measures, and what counts against them."""
    counts: Counter[str] = Counter()
    listed: dict[str, list[str]] = defaultdict(list)
    classes: dict[str, set[str]] = defaultdict(set)
    for path, source, tree in modules:
        names = list(bound_names(tree))
        counts["names"] += len(names)
        vague = [name for name in names if name.strip("_") in VAGUE]
        listed["vague names per 1,000 names"] += [f"{path}: {name}" for name in vague]
        counts["lines"] += source.count("\n")
        for node in ast.walk(tree):
            if isinstance(node, ast.IfExp):
                listed["ternaries per 1,000 lines"].append(f"{path}:{node.lineno}")
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            counts["functions"] += 1
            place = f"{path}:{node.lineno} {node.name}"
            if count_paths(node) > COMPLEX:
                listed["complex functions per 1,000"].append(place)
            if not node.name.startswith("__") and is_participle(node.name):
                listed["functions named by a participle per 1,000"].append(place)
        for annotation in annotations(tree):
            counts["annotations"] += 1
            if any(
                isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(annotation)
            ):
                listed["annotations with Any per 1,000"].append(f"{path}:{annotation.lineno}")
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].add(path.rpartition("/")[2])
        code, comments, tokens = count_tokens(source, docstring_lines(tree))
        counts["code"] += code
        counts["comments"] += comments
        counts["tokens"] += tokens
    # The same room of each wire may hold a class of the same name.
    listed["class names with two meanings"] = [
        name for name, rooms in classes.items() if len(rooms) > 1
    ]
    parts = {
        "vague names per 1,000 names": "names",
        "functions named by a participle per 1,000": "functions",
        "ternaries per 1,000 lines": "lines",
        "complex functions per 1,000": "functions",
        "annotations with Any per 1,000": "annotations",
    }
    measures = {name: 1000 * len(listed[name]) / counts[part] for name, part in parts.items()}
    measures["class names with two meanings"] = len(listed["class names with two meanings"])
    measures["tokens per line of code"] = counts["tokens"] / counts["code"]
    measures["lines of code per comment"] = counts["code"] / max(counts["comments"], 1)
    return measures, listed


def count_tokens(source: str, documentation: set[int]) -> tuple[int, int, int]:
    """Returns the lines of code, the comments on lines of their own, and the tokens of code."""
    code: set[int] = set()
    comments: set[int] = set()
    tokens = 0
    layout = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            if len(token.string) >= 20:
                comments.add(line)
        elif token.type not in layout and line not in documentation:
            code.update(range(line, token.end[0] + 1))
            tokens += 1
    return len(code), len(comments - code), tokens


def main() -> int:
    """Prints what is over its bound. Returns 1 if anything is."""
    modules = []
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text()
        modules.append(Module(path.relative_to(PACKAGE).as_posix(), source, ast.parse(source)))
    measures, listed = measure(modules)
    failed = False
    for name, most in BOUNDS.items():
        is_over = measures[name] > most
        failed |= is_over
        if is_over or "--list" in sys.argv:
            print(f"{name}: {measures[name]:.1f}, at most {most:g}")
        if "--list" in sys.argv:
            print(*[f"  {entry}" for entry in listed[name]], sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
