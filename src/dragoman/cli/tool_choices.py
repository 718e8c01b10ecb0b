"""Tools of a prompt: `--tools MODULE`, `-T NAME` and `--functions CODE`, and `dragoman tools`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from inspect import isfunction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer

from dragoman.cli.terminal import echo, echo_json, to_one_line
from dragoman.errors import ToolError

if TYPE_CHECKING:
    from dragoman.hooks import Hooks, ToolEnd, ToolStart
    from dragoman.tools import Tool

__all__ = ["TOOLS", "ToolChoice", "choose_tools", "debug_hooks", "read_functions"]

_MAX_BYTES = 2**20
_MAX_SHOWN = 2000
"""Characters of a result that `--td` shows."""


class ToolChoice(NamedTuple):
    """Which tools the model may call."""

    names: Sequence[str] = ()
    """Names of tools, or `MODULE:NAME`."""
    module: str = ""
    """A module with tools: all of them, or those with the names."""
    functions: str = ""
    """Python code with functions."""
    approves: bool = False
    """Whether each call needs an approval."""


def choose_tools(choice: ToolChoice) -> list[Tool]:
    """Returns the chosen tools, each once.

    Raises:
        BadParameter: a tool, a module or a plug-in is not there or cannot be loaded.
    """
    from dragoman.cli.modules import load_tools

    module_tools: list[Tool] = load_tools(choice.module) if choice.module else []
    tools = module_tools if not choice.names else _find_named(choice.names, module_tools)
    if choice.functions:
        tools = [*tools, *_run_functions(choice.functions)]
    unique = list({chosen_tool.name: chosen_tool for chosen_tool in tools}.values())
    if not choice.approves:
        return unique
    return [msgspec.structs.replace(chosen_tool, requires_approval=True) for chosen_tool in unique]


def _find_named(names: Iterable[str], module_tools: Sequence[Tool]) -> list[Tool]:
    """Returns tools by their names: of the module, of another one, or of plug-ins, which are loaded
    only if the module lacks one."""
    by_name = {module_tool.name: module_tool for module_tool in module_tools}
    if any(":" not in name and name not in by_name for name in names):
        by_name = {**dict(_load_plugin_tools()), **by_name}
    return [_find_tool(name, by_name) for name in names]


def _find_tool(name: str, by_name: dict[str, Tool]) -> Tool:
    if name in by_name:
        return by_name[name]
    if ":" in name:
        from dragoman.cli.modules import load_value

        return _make_tool(load_value(name, "--tool", lambda module, _: module), "--tool")
    matches = get_close_matches(name, by_name, n=1)
    hint = f", did you mean {matches[0]!r}?" if matches else "."
    raise typer.BadParameter(
        f"there is no tool {name!r}{hint} Known are {', '.join(by_name) or 'none'}; plug-ins bring "
        "tools, and --tools MODULE those of a module",
        param_hint="--tool",
    )


def _load_plugin_tools() -> list[tuple[str, Tool]]:
    """Returns the tools of all plug-ins with their names."""
    from dragoman.cli.plugins import load_plugins

    tools = [
        _make_tool(source, f"plug-in {name}")
        for name, plugin in load_plugins()
        for source in plugin.tools
    ]
    return [(brought.name, brought) for brought in tools]


def _make_tool(source: Callable[..., Any] | Tool, option: str) -> Tool:
    """Returns a tool of a function, and a tool as it is.

    Raises:
        BadParameter: it is neither, or no model can fill its parameters.
    """
    from dragoman.tools import tool
    from dragoman.tools.definition import is_tool

    if is_tool(source):
        return source
    if not isfunction(source):
        raise typer.BadParameter(f"{source!r:.100} is no tool and no function", param_hint=option)
    try:
        new_tool: Tool = tool(source)
        # The schema is built when it is read.
        _ = new_tool.spec
    except ToolError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
    return new_tool


def read_functions(arguments: Iterable[str]) -> str:
    """Returns the code of `--functions`, each a file whose name ends in `.py`, or code.

    Raises:
        BadParameter: a file cannot be read.
    """
    return "\n\n".join(map(_read_code, arguments))


def _read_code(argument: str) -> str:
    if "\n" in argument or not argument.endswith(".py"):
        return argument
    try:
        with Path(argument).expanduser().open(encoding="utf-8") as file:
            return file.read(_MAX_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise typer.BadParameter(
            f"cannot read {argument}: {reason}", param_hint="--functions"
        ) from error


def _run_functions(code: str) -> list[Tool]:
    """Runs code, and returns tools of the functions that it defines, without those whose name
    begins with an underscore.

    Raises:
        BadParameter: the code is wrong, raises, or defines no function.
    """
    from dragoman.tools.definition import is_tool

    # By this name functions of the code are told from imported ones.
    names: dict[str, Any] = {"__name__": "functions"}
    try:
        exec(compile(code, "--functions", "exec"), names)  # noqa: S102 - the user's own code
    except (Exception, SystemExit) as error:
        line = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        raise typer.BadParameter(
            f"{line}{type(error).__name__}: {getattr(error, 'msg', error)}",
            param_hint="--functions",
        ) from error
    functions = [
        value
        for name, value in names.items()
        if not name.startswith("_")
        and (is_tool(value) or (isfunction(value) and value.__module__ == "functions"))
    ]
    if not functions:
        raise typer.BadParameter("the code defines no function", param_hint="--functions")
    return [_make_tool(function, "--functions") for function in functions]


def debug_hooks(begin: Callable[[], object]) -> Hooks:
    """Returns hooks that show each call of a tool and its result on standard error. `begin`: ends
    the line of the answer on the terminal."""

    from dragoman.hooks import Hooks

    def show_call(start: ToolStart) -> None:
        begin()
        arguments = msgspec.json.encode(start.call.arguments or {}).decode()
        echo(f"Tool call: {to_one_line(f'{start.call.name}({arguments})')}", err=True)

    def show_result(end: ToolEnd) -> None:
        if end.result is not None:
            text = str(end.result.result)
            shortened = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
            echo(f"  {shortened}", err=True)

    return Hooks(tool_start=show_call, tool_end=show_result)


TOOLS = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Tools for prompts.")


@TOOLS.command(name="list")
def list_tools(
    tools: Annotated[
        str | None, typer.Option(metavar="MODULE", help="Also those of a Python module.")
    ] = None,
    functions: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE|FILE", help="Also those of Python code, which is run."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the tools that plug-ins bring, for -T NAME.

    \b
    dragoman tools list
    dragoman tools list --tools mytools --json
    """
    listed = dict(_load_plugin_tools())
    if tools is not None:
        from dragoman.cli.modules import find_tools, load_module

        module_tools = find_tools(tools, load_module(tools, "--tools"), "--tools")
        listed |= {module_tool.name: module_tool for module_tool in module_tools}
    if functions:
        listed |= {
            function_tool.name: function_tool
            for function_tool in _run_functions(read_functions(functions))
        }
    specs = [listed_tool.spec for listed_tool in listed.values()]
    if json:
        echo_json([msgspec.to_builtins(spec) for spec in specs])
        return
    for spec in specs:
        parameters = ", ".join(spec.input_schema.get("properties", {}))
        echo(f"{spec.name}({parameters}): {to_one_line(spec.description)}")
