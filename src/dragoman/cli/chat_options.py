"""The options of `dragoman chat` that make a prompt, and the `Template` that they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, cast

import msgspec
import typer
from typer.core import TyperCommand

from dragoman.cli.attachments import load_attachments, load_fragments
from dragoman.cli.completion import (
    complete_fragment,
    complete_option,
    complete_template,
    complete_tool,
)
from dragoman.cli.model_options import parse_option
from dragoman.cli.prompt import parse_prompt, read_piped, replace_invalid_text
from dragoman.cli.schema_shorthand import load_schema
from dragoman.cli.templates import Template, fill_template, load_template, merge_templates
from dragoman.json_bytes import JsonMap
from dragoman.message import Content, TextPart

__all__ = [
    "ApproveOption",
    "AttachmentOption",
    "AttachmentTypeOption",
    "ChatCommand",
    "DebugOption",
    "Draft",
    "ExtractLastOption",
    "ExtractOption",
    "FragmentOption",
    "FunctionsOption",
    "MarkdownOption",
    "ModelOptionOption",
    "ParamOption",
    "SaveOption",
    "SchemaMultiOption",
    "SchemaOption",
    "SystemFragmentOption",
    "TemplateOption",
    "ToolOption",
    "make_template",
    "pair",
]

_PAIRS = ("option", "param", "attachment_type")


class ChatCommand(TyperCommand):
    """A command whose options of `_PAIRS` take a name and a value."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # typer has no lists of tuples, but its parser reads them.
        for parameter in self.params:
            if parameter.name in _PAIRS:
                parameter.nargs = 2


Pairs = list[object] | None
"""Names with values, as tuples of two texts."""

TemplateOption = Annotated[
    str | None,
    typer.Option(
        "-t",
        "--template",
        metavar="NAME",
        help="A stored prompt: a name, a file or a URL.",
        autocompletion=complete_template,
    ),
]
ParamOption = Annotated[
    Pairs,
    typer.Option("-p", "--param", metavar="NAME VALUE", help="A variable of the template."),
]
SaveOption = Annotated[
    str | None,
    typer.Option("--save", metavar="NAME", help="Store this prompt as a template; ask nothing."),
]
FragmentOption = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--fragment",
        metavar="SOURCE",
        help="Text before the prompt: a file, a URL, - or a stored name.",
        autocompletion=complete_fragment,
    ),
]
SystemFragmentOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sf",
        "--system-fragment",
        metavar="SOURCE",
        help="The same for the system prompt.",
        autocompletion=complete_fragment,
    ),
]
AttachmentOption = Annotated[
    list[str] | None,
    typer.Option(
        "-a", "--attachment", metavar="FILE", help="An image or another file: a path, a URL or -."
    ),
]
AttachmentTypeOption = Annotated[
    Pairs,
    typer.Option(
        "--at", "--attachment-type", metavar="FILE TYPE", help="The same, with a MIME type."
    ),
]
ToolOption = Annotated[
    list[str] | None,
    typer.Option(
        "-T",
        "--tool",
        metavar="NAME",
        help="A tool of a plug-in or of --tools, or MODULE:NAME.",
        autocompletion=complete_tool,
    ),
]
FunctionsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODE|FILE", help="Python functions that the model may call. The code is run."
    ),
]
DebugOption = Annotated[
    bool, typer.Option("--td", "--tools-debug", help="Show calls of tools, on standard error.")
]
ApproveOption = Annotated[
    bool, typer.Option("--ta", "--tools-approve", help="Ask before each call of a tool.")
]
ModelOptionOption = Annotated[
    Pairs,
    typer.Option(
        "-o",
        "--option",
        metavar="NAME VALUE",
        help="A setting such as temperature, or a field of the provider's API.",
        autocompletion=complete_option,
    ),
]
SchemaOption = Annotated[
    str | None,
    typer.Option(
        "--schema",
        "--output-schema",
        metavar="SCHEMA",
        help="The answer is JSON: 'name, age int: years', a JSON Schema, or @FILE.",
    ),
]
SchemaMultiOption = Annotated[
    str | None,
    typer.Option("--schema-multi", metavar="SCHEMA", help="The answer is a list of such objects."),
]
ExtractOption = Annotated[
    bool, typer.Option("-x", "--extract", help="Print only the first fenced code block.")
]
ExtractLastOption = Annotated[
    bool, typer.Option("--xl", "--extract-last", help="Print only the last one.")
]
MarkdownOption = Annotated[
    bool, typer.Option("--md", help="Render Markdown while it arrives, on a terminal.")
]


class Draft:
    """What a command line asks, with the template that it names."""

    def __init__(self, prompt: str, options: Template, source: str | None, params: Pairs) -> None:
        """Creates the draft.

        Args:
            prompt: what the user wrote.
            options: the other options.
            source: the template to use, as `-t`; None for none.
            params: variables of the template.

        Raises:
            BadParameter: the template does not exist, or is broken.
        """
        self._prompt, self._own = prompt, options
        self._params = {name: parse_option(value) for name, value in pair(params)}
        self._base = None if source is None else load_template(source)
        self.template = options if self._base is None else merge_templates(self._base, options)
        """The options of template and command line together."""
        if self._params and self._base is None:
            raise typer.BadParameter("needs a template, -t", param_hint="--param")

    def load_schema(self) -> JsonMap | None:
        """Returns the JSON Schema of the answer, or None.

        Raises:
            BadParameter: it has a typo, or cannot be read.
        """
        schema = self.template.schema
        if self.template.schema_multi:
            return load_schema(self.template.schema_multi, "--schema-multi", multi=True)
        if isinstance(schema, dict):
            return schema
        return load_schema(schema) if schema else None

    def load_content(self) -> tuple[list[Content], str]:
        """Returns the parts of the prompt, and the system prompt. Reads standard input.

        Raises:
            BadParameter: a file cannot be read, or a variable has no value.
        """
        template = self.template
        fragments = load_fragments(template.fragments)
        files = load_attachments(template.attachments, template.attachment_types)
        system_parts = load_fragments(template.system_fragments, "--system-fragment")
        # What a `-` has read is empty here.
        piped = read_piped()
        parts = parse_prompt(self._prompt, piped)
        system = template.system
        if self._base is not None:
            has_text = bool(self._prompt.strip() or piped.strip())
            user_text = parts[0].text if has_text and isinstance(parts[0], TextPart) else ""
            filled = fill_template(self._base, user_text, self._params)
            texts = [TextPart(filled.prompt)] if filled.prompt else []
            parts = [*texts, *parts[has_text:]]
            system = self._own.system or filled.system
        system_texts = [part.text for part in system_parts if isinstance(part, TextPart)]
        system_texts += [replace_invalid_text(system)] if system else []
        return [*fragments, *parts, *files], "\n\n".join(system_texts)

    def save(self, name: str) -> None:
        """Stores the options of the command line as a template. Variables become its defaults.

        Raises:
            BadParameter: there is nothing to store, or a `$` that begins no variable.
        """
        from dragoman.cli.templates import save_template

        if self._own == Template():
            raise typer.BadParameter(
                "there is nothing to save; give a prompt or options", param_hint="--save"
            )
        save_template(name, self._own)


def pair(pairs: Pairs) -> Sequence[tuple[str, str]]:
    """Returns the names and values of an option of `_PAIRS`."""
    return cast("Sequence[tuple[str, str]]", pairs or ())


def make_template(
    *,
    option: Pairs,
    settings: dict[str, object],
    attachment_type: Pairs,
    **fields: Any,
) -> Template:
    """Returns the template of a command line's options. Options that were not given are None.

    `settings`: options with a name of their own, which win over `-o`.
    """
    options = {name: parse_option(value) for name, value in pair(option)}
    options |= {name: value for name, value in settings.items() if value is not None}
    filled_fields = {name: value for name, value in fields.items() if value}
    return msgspec.convert(
        {**filled_fields, "options": options, "attachment_types": dict(pair(attachment_type))},
        Template,
    )
