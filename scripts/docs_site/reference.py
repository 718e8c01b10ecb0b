"""The API reference: every public class with its arguments, fields and methods, and every function,
from their docstrings.

A docstring of a field is the text below it, as in the source; arguments stand under `Args:`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from typing import Any, is_typeddict

import msgspec

GROUPS: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "agents": (
        "Agents, runs and results",
        {
            "dragoman": (
                *("Agent", "Chat", "Run", "RunRequest", "RunOptions", "ChatResult", "Partial"),
                *("Interrupt", "Resume", "Limits", "Hooks", "ModelRetry", "ModelInfo", "fallback"),
                *("EmbeddingsResult", "BatchEmbeddingsResult", "cosine_similarity", "most_similar"),
                "remote_agent",
            )
        },
    ),
    "messages": (
        "Messages",
        {
            "dragoman": (
                *("Message", "Role", "TextPart", "Citation", "ThinkingPart", "ToolCallPart"),
                *("ToolResultPart", "DataPart", "LinkPart", "FilePart", "ProviderPart", "MarkPart"),
                *("Origin", "Usage", "FinishReason", "MessageList", "dump_messages"),
                *("load_messages", "repair", "compact"),
            ),
            "dragoman.loss": ("Loss",),
        },
    ),
    "events": (
        "Events",
        {
            "dragoman": (
                *("RunStarted", "StepStarted", "MessageStarted", "PartStarted", "PartDelta"),
                *(
                    "PartFinished",
                    "MessageFinished",
                    "MessageDropped",
                    "StepFinished",
                ),
                *("StateSnapshot", "StateDelta", "Custom", "RunFinished", "RunError", "fold"),
                "unfold",
            ),
            "dragoman.event": ("ToolStarted", "event_to_json", "event_from_json"),
        },
    ),
    "requests": (
        "Requests and settings",
        {
            "dragoman": (
                "Settings",
                "ModelRequest",
                "ToolSpec",
                "ServerTool",
                "Provider",
                "Capability",
            )
        },
    ),
    "tools": (
        "Tools",
        {"dragoman": ("tool", "Tool", "ToolContext", "Toolset", "toolset", "handoff")},
    ),
    "memory": (
        "Memory",
        {
            "dragoman.memory": (
                *("Memory", "Recall", "WorkingMemory", "Titles", "Thread", "ThreadQuery"),
                *("MessageQuery", "Page", "StoredMessage", "Hit", "Working", "open_store"),
            )
        },
    ),
    "servers": (
        "Servers and gateways",
        {
            "dragoman.serve": (
                *("app", "run_server", "serve_http", "serve_grpc", "Gateway", "AgentPolicy"),
                *("AgentCard", "Skill", "Key", "Caller", "ServerLimits", "read_keys"),
            )
        },
    ),
    "runs": (
        "Runs in a log",
        {"dragoman.runs": ("Runs", "open_log", "Limit", "Engine", "RunLog", "RunStatus")},
    ),
    "testing": (
        "Testing",
        {
            "dragoman.testing": (
                *("ScriptedModel", "call", "assert_calls", "format_transcript", "collect_events"),
                *("ScriptedServer", "run_checks", "provider_checks", "wire_checks", "store_checks"),
            )
        },
    ),
}
"""Page → its title, and the names on it by module."""

_SECTION = re.compile(r"^(Args|Raises|Returns|Yields):\s*$", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}([\w.*]+(?: \(.*?\))?): (.*(?:\n {8,}.*)*)", re.MULTILINE)


def pages() -> dict[str, str]:
    """Returns the text of each page by its name."""
    made = {f"reference/{name}": _page(*group) for name, group in GROUPS.items()}
    links = "\n".join(
        f"- [{title}]({name}.md): {', '.join(f'`{each}`' for names in members.values() for each in names)}"
        for name, (title, members) in GROUPS.items()
    )
    made["reference/index"] = (
        "# Reference\n\nEvery public class and function, with its arguments and fields, from the docstrings.\n"
        f"[API](../api.md) is the same by subject, in fewer words.\n\n{links}\n"
    )
    return made


def _page(title: str, members: dict[str, tuple[str, ...]]) -> str:
    parts = [f"# {title}"]
    for module_name, names in members.items():
        module = importlib.import_module(module_name)
        for name in names:
            value = getattr(module, name)
            parts += (
                _class(module_name, name, value)
                if isinstance(value, type)
                else _other(module_name, name, value)
            )
    return "\n\n".join(part for part in parts if part) + "\n"


def _other(module: str, name: str, value: Any) -> list[str]:
    if not callable(value):
        return [
            f"## `{name}`",
            f"`from {module} import {name}`",
            _prose(inspect.getdoc(value) or ""),
        ]
    head = (
        f"## `{name}{_signature(value)}`"
        if len(name + _signature(value)) < 70
        else f"## `{name}()`"
    )
    return [head, f"`from {module} import {name}`", *_described(value, inspect.getdoc(value) or "")]


def _class(module: str, name: str, value: type) -> list[str]:
    parts = [
        f"## `{name}`",
        f"`from {module} import {name}`",
        *_sections(inspect.getdoc(value) or ""),
    ]
    fields = [field for field in _fields(value) if _is_record(value) or field[3]]
    if fields and (_is_record(value) or "__init__" not in vars(value)):
        rows = [
            f"| `{field}` | `{_cell(kind)}` | {f'`{_cell(default)}`' if default else ''} | {_cell(meaning)} |"
            for field, kind, default, meaning in fields
        ]
        parts.append(
            "\n".join(["| field | type | default | meaning |", "|---|---|---|---|", *rows])
        )
    elif "__init__" in vars(value):
        init = vars(value)["__init__"]
        parts += _described(init, inspect.cleandoc(init.__doc__ or ""))
    for method, function in _methods(value):
        parts.append(f"### `{name}.{method}`")
        signature = _signature(function)
        parts.append(f"```text\n{method}{signature}\n```" if signature else "")
        parts += _sections(inspect.getdoc(function) or "")
    return parts


def _is_record(value: type) -> bool:
    """True if a class is made by giving its fields."""
    return issubclass(value, msgspec.Struct | Enum) or is_dataclass(value) or is_typeddict(value)


def _described(function: Any, doc: str) -> list[str]:
    """Returns a function's signature as a table of its arguments, and its docstring."""
    named = {name: text for section, name, text in _entries(doc) if section == "Args"}
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return _sections(doc)
    rows = [
        f"| `{name}` | `{_cell(_annotation(parameter.annotation))}` | {_default(parameter)} | {_cell(named.get(name, ''))} |"
        for name, parameter in parameters.items()
        if name not in ("self", "cls", "unknown")
    ]
    table = (
        "\n".join(["| argument | type | default | meaning |", "|---|---|---|---|", *rows])
        if rows
        else ""
    )
    return [*_sections(doc, without="Args" if named else ""), table]


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return ""
    value = parameter.default
    shown = getattr(value, "__name__", None) if callable(value) else repr(value)
    return f"`{_cell(str(shown)[:60])}`"


def _annotation(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _signature(function: Any) -> str:
    """Returns a signature as one writes it: annotations are texts in the source."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    written: list[str] = []
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    for position, parameter in enumerate(signature.parameters.values()):
        if parameter.name in ("self", "cls", "unknown"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not {
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        } & {*kinds[:position]}:
            written.append("*")
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        kind = _annotation(parameter.annotation)
        default = _default(parameter).strip("`")
        equals = f"{' = ' if kind else '='}{default}" if default else ""
        written.append(f"{stars}{parameter.name}{f': {kind}' if kind else ''}{equals}")
    returned = _annotation(signature.return_annotation)
    return f"({', '.join(written)}){f' -> {returned}' if returned else ''}"


def _methods(value: type) -> Iterator[tuple[str, Any]]:
    """Yields the public methods that the class, or a base of ours, defines."""
    seen: set[str] = set()
    for owner in value.__mro__:
        if not owner.__module__.startswith("dragoman"):
            continue
        for name, function in vars(owner).items():
            if (
                name.startswith("_")
                or name in seen
                or not (inspect.isfunction(function) or isinstance(function, classmethod))
            ):
                continue
            seen.add(name)
            yield name, getattr(value, name)


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def _fields(value: type) -> Iterator[tuple[str, str, str, str]]:
    """Yields name, type, default and meaning of each field of a struct, bases first; of an
    enumeration its members."""
    for owner in reversed(value.__mro__):
        if not owner.__module__.startswith("dragoman"):
            continue
        found = next(
            (
                node
                for node in ast.walk(_tree(owner.__module__))
                if isinstance(node, ast.ClassDef) and node.name == owner.__name__
            ),
            None,
        )
        body = found.body if found else []
        for node, below in zip(body, [*body[1:], None], strict=False):
            yield from _field(node, below)


def _field(node: ast.stmt, below: ast.stmt | None) -> Iterator[tuple[str, str, str, str]]:
    meaning = ""
    if (
        isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    ):
        meaning = inspect.cleandoc(below.value.value)
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        name, kind, given = node.target.id, ast.unparse(node.annotation), node.value
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and meaning:
        name, kind, given = node.targets[0].id, "", node.value
    else:
        return
    if not name.startswith("_"):
        yield name, kind, ast.unparse(given) if given is not None else "", meaning


def _entries(doc: str) -> Iterator[tuple[str, str, str]]:
    """Yields section, name and text of each entry of a docstring's `Args:` and `Raises:`."""
    parts = _SECTION.split(doc)
    for section, text in zip(parts[1::2], parts[2::2], strict=True):
        for found in _ENTRY.finditer(text):
            yield section, found[1], " ".join(found[2].split())


def _sections(doc: str, without: str = "") -> list[str]:
    """Returns a docstring as Markdown: its prose, then a list for each section."""
    parts = _SECTION.split(doc)
    made = [_prose(parts[0])]
    for section in dict.fromkeys(parts[1::2]):
        entries = [f"- `{name}`: {text}" for of, name, text in _entries(doc) if of == section]
        if entries and section != without:
            made.append(f"{section}:\n\n" + "\n".join(entries))
    return made


def _prose(text: str) -> str:
    """Returns the prose of a docstring; what is indented in it is code."""
    made: list[str] = []
    for block in re.split(r"\n\s*\n", textwrap.dedent(text).strip()):
        if block.startswith("    "):
            made.append(f"```text\n{textwrap.dedent(block)}\n```")
        else:
            made.append(block)
    return "\n\n".join(made)


def _cell(text: str) -> str:
    """Returns a text for a cell of a table. Markdown of this site takes a `|` in code as it is."""
    return " ".join(text.split())
