"""Templates: prompts with everything that belongs to them, in TOML files of the config folder.

What a command line says is a `Template` as well (`--save` writes it), so using a template is merging
two of them, and then filling `$input` and the other variables in. A template that comes from
elsewhere, by a URL or a plugin, may not name code or files of this machine.
"""

from __future__ import annotations

import os
import re
import string
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import typer

from dragoman.cli.config_files import find_config_folder, write_file
from dragoman.cli.model_options import Scalar

__all__ = [
    "Filled",
    "Template",
    "dump_template",
    "fill_template",
    "find_template_file",
    "list_template_files",
    "load_template",
    "merge_templates",
    "parse_template",
    "save_template",
]

_NAME = re.compile(r"\w[\w.-]{0,99}")
_MAX_BYTES = 2**20
_HINT = "--template"
_TABLES = ("options", "attachment_types", "defaults")
_LOCAL = (
    *("tools", "tools_module", "functions", "attachments", "attachment_types"),
    *("fragments", "system_fragments"),
)
"""What names code and files of this machine."""


class Template(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A prompt with its options. Every field may be left out."""

    prompt: str = ""
    """The prompt, with `$input` where the user's goes, and other variables."""
    system: str = ""
    """The system prompt, with variables."""
    model: str = ""
    """The model string."""
    options: dict[str, Scalar] = {}
    """As `-o`."""
    schema: str | dict[str, Any] = ""
    """As `--schema`, or a JSON Schema as a table."""
    schema_multi: str = ""
    """As `--schema-multi`."""
    tools: tuple[str, ...] = ()
    """As `-T`."""
    tools_module: str = ""
    """As `--tools`."""
    functions: str = ""
    """Python code with functions that become tools."""
    attachments: tuple[str, ...] = ()
    """As `-a`."""
    attachment_types: dict[str, str] = {}
    """File or URL → MIME type, as `--at`."""
    fragments: tuple[str, ...] = ()
    """As `-f`."""
    system_fragments: tuple[str, ...] = ()
    """As `--sf`."""
    extract: bool = False
    """As `--extract`."""
    extract_last: bool = False
    """As `--xl`."""
    defaults: dict[str, Scalar] = {}
    """Variable → its value where `-p` gives none."""


class Filled(NamedTuple):
    """The texts of a template with its variables filled in."""

    prompt: str
    """The prompt with the user's input."""
    system: str
    """The system prompt."""


def find_template_file(name: str) -> Path:
    """Returns the file of a template in the config folder.

    Raises:
        BadParameter: it is no name of a template.
    """
    if not _NAME.fullmatch(name):
        raise typer.BadParameter(
            f"{name!r} is no name of a template; use letters, digits, - and _", param_hint="NAME"
        )
    return find_config_folder() / "templates" / f"{name}.toml"


def list_template_files() -> list[Path]:
    """Returns the files of all stored templates, by name."""
    return sorted((find_config_folder() / "templates").glob("*.toml"))


def load_template(source: str) -> Template:
    """Returns a template by its name, the path of its file, its URL, or `PREFIX:…` for a plugin.

    Raises:
        BadParameter: there is none, or it is broken.
    """
    if "://" in source:
        from dragoman.cli.attachments import fetch_file

        return _forbid_local_fields(
            parse_template(fetch_file(source, _HINT, _MAX_BYTES).data, source), source
        )
    if ":" in source and not Path(source).exists():
        from dragoman.cli.plugins import load_by_prefix

        text = load_by_prefix("template_loaders", source, _HINT)
        return _forbid_local_fields(parse_template(str(text).encode(), source), source)
    # A name has no suffix, so that a file here does not hide a template.
    path = Path(source).expanduser()
    if not (path.suffix == ".toml" or os.sep in source):
        path = find_template_file(source)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise typer.BadParameter(_explain_missing(source, path), param_hint=_HINT) from None
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint=_HINT) from error
    return parse_template(content, str(path))


def parse_template(content: bytes, source: str) -> Template:
    """Returns the template that a TOML text describes. `source`: where it is, for errors.

    Raises:
        BadParameter: it is no TOML, too large, or has a field that no template has.
    """
    if len(content) > _MAX_BYTES:
        raise typer.BadParameter(f"{source} is larger than 1 MB", param_hint=_HINT)
    try:
        return msgspec.convert(tomllib.loads(content.decode()), Template)
    except msgspec.ValidationError as error:
        problem = f"{error}; a template has {', '.join(Template.__struct_fields__)}"
    except (ValueError, RecursionError) as error:
        problem = f"no TOML: {error}"
    raise typer.BadParameter(f"{source}: {problem}", param_hint=_HINT)


def _forbid_local_fields(template: Template, source: str) -> Template:
    """Returns a template from elsewhere.

    Raises:
        BadParameter: it names code or files of this machine.
    """
    fields = [name for name in _LOCAL if getattr(template, name)]
    for name in ("schema", "schema_multi"):
        text = getattr(template, name)
        if (isinstance(text, str) and text.strip().startswith("@")) or str(text).endswith(".json"):
            fields.append(name)
    if fields:
        raise typer.BadParameter(
            f"{source} names code or files of this machine ({', '.join(fields)}); read it, and save "
            "it as a template of your own",
            param_hint=_HINT,
        )
    return template


def _explain_missing(name: str, path: Path) -> str:
    """Returns the error for a template that does not exist."""
    if re.fullmatch(r"-?[\d.]+", name):
        return f"there is no template {name!r}; -t is for templates, a temperature is --temperature"
    names = [file.stem for file in list_template_files()]
    hint = ", ".join(names) or "none yet; --save NAME stores one"
    if matches := get_close_matches(name, names, n=1):
        return f"there is no template {name!r}, did you mean {matches[0]!r}? There are {hint}"
    return f"there is no template {name!r} ({path}); there are {hint}"


def merge_templates(first: Template, second: Template) -> Template:
    """Returns a template with another one's fields on top: lists and code follow, tables are
    merged, and of other fields the second counts if it has them. The prompt is the first's."""
    fields: dict[str, Any] = {}
    for name in Template.__struct_fields__:
        before, after = getattr(first, name), getattr(second, name)
        if not before or not after:
            fields[name] = before or after
        elif isinstance(after, tuple):
            fields[name] = (*before, *after)
        elif name == "functions":
            fields[name] = f"{before}\n\n{after}"
        elif isinstance(after, dict) and isinstance(before, dict) and name != "schema":
            fields[name] = {**before, **after}
        else:
            fields[name] = after
    # One answer has one schema.
    for name, other in (("schema", "schema_multi"), ("schema_multi", "schema")):
        if getattr(second, name):
            fields[other] = getattr(second, other)
    return msgspec.structs.replace(first, **{**fields, "prompt": first.prompt})


def fill_template(template: Template, user_input: str, params: Mapping[str, Scalar]) -> Filled:
    """Returns the prompt and the system prompt of a template with its variables filled in. Input
    for which the prompt has no `$input` follows it.

    Raises:
        BadParameter: a variable has no value, or a `$` is none of a variable.
    """
    # What the user wrote is not looked through for variables.
    values = {**template.defaults, **params, "input": user_input}
    prompt, system = _fill(template.prompt, values), _fill(template.system, values)
    if user_input and "input" not in _list_variables(template.prompt):
        prompt = f"{prompt}\n\n{user_input}" if prompt else user_input
    return Filled(prompt, system)


def _list_variables(text: str) -> list[str]:
    """Returns the variables in a text of a template, each once.

    Raises:
        BadParameter: a `$` is none of a variable.
    """
    pattern = string.Template(text)
    # What a variable cannot be is told with the line, as Python does.
    try:
        names = pattern.get_identifiers()
        pattern.substitute(dict.fromkeys(names, ""))
    except ValueError as error:
        raise typer.BadParameter(
            f"the template has a $ that begins no variable; write $$ for a dollar ({error})",
            param_hint=_HINT,
        ) from error
    return names


def _fill(text: str, values: Mapping[str, Scalar]) -> str:
    missing = [name for name in _list_variables(text) if name not in values]
    if missing:
        options = " ".join(f"-p {name} VALUE" for name in missing)
        raise typer.BadParameter(
            f"the template has variables without a value: {', '.join(missing)}; add {options}",
            param_hint="--param",
        )
    return string.Template(text).substitute(values)


def save_template(name: str, template: Template) -> Path:
    """Writes a template under a name, readable only by the user, and returns its file. Paths of
    files that exist become absolute.

    Raises:
        BadParameter: it is no name of a template, or its text has a `$` that is no variable.
        SettingsError: it cannot be written.
    """
    for text in (template.prompt, template.system):
        _list_variables(text)
    path = find_template_file(name)
    files = {
        field: tuple(map(_make_absolute, getattr(template, field)))
        for field in ("attachments", "fragments", "system_fragments")
    }
    types = {_make_absolute(key): value for key, value in template.attachment_types.items()}
    # The template is used in other directories, too.
    saved = msgspec.structs.replace(template, attachment_types=types, **cast("Any", files))
    write_file(path, dump_template(saved))
    return path


def _make_absolute(source: str) -> str:
    path = Path(source).expanduser()
    return str(path.resolve()) if path.is_file() else source


def dump_template(template: Template) -> str:
    """Returns a template as TOML."""
    fields: dict[str, Any] = {
        name: getattr(template, name)
        for name in Template.__struct_fields__
        if getattr(template, name)
    }
    if isinstance(template.schema, dict):
        fields["schema"] = msgspec.json.encode(template.schema).decode()
    # A key behind a table would be one of the table.
    tables = {name: fields.pop(name) for name in _TABLES if name in fields}
    plain = [f"{name} = {_dump(value)}" for name, value in fields.items()]
    return "\n".join([*plain, *(_dump_table(*table) for table in tables.items()), ""])


def _dump_table(name: str, table: Mapping[str, Scalar]) -> str:
    lines = [f"{_quote_line(key)} = {_dump(value)}" for key, value in table.items()]
    return "\n".join([f"\n[{name}]", *lines])


def _dump(value: Scalar | Sequence[str]) -> str:
    """Returns text, a number, a truth value or a list of texts as TOML."""
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_quote, value))}]"
    return msgspec.json.encode(value).decode()


def _quote(text: str) -> str:
    """Returns a text as TOML: over several lines if it has some."""
    lines = [_quote_line(line) for line in text.split("\n")]
    if len(lines) == 1:
        return lines[0]
    body = "\n".join(line[1:-1] for line in lines)
    return f'"""\n{body}"""'


def _quote_line(text: str) -> str:
    # A string of JSON is one of TOML, except for one character.
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
