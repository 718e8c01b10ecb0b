"""`dragoman generate`: files from a prompt, such as images and PDFs.

The output and the MIME types are checked before anything is asked. What a run that fails has made
is saved before its error is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from dragoman.cli.progress import show_progress
from dragoman.cli.prompt import parse_prompt, read_piped, replace_invalid_text
from dragoman.cli.save_files import Output, check_output, guess_types, save_files
from dragoman.cli.settings import choose_model
from dragoman.cli.terminal import echo, echo_json, to_one_line

if TYPE_CHECKING:
    from dragoman.agent import Agent
    from dragoman.message import Content
    from dragoman.result import ChatResult

__all__ = ["generate"]


def generate(
    prompt: Annotated[
        str, typer.Argument(help="What to make; @path attaches a file.", show_default=False)
    ] = "",
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PATH",
            help="A file, or a folder for several.  [default: this folder]",
            show_default=False,
        ),
    ] = None,
    mime_type: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="What to make, such as image/png; give it several times for several.  "
            "[default: by the name of the output, else image/png]",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            envvar="DRAGOMAN_MODEL",
            help="Such as google.",
            callback=choose_model,
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A field of the provider's tool or request, such as size=1536x1024.",
            show_default=False,
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option("-s", "--system", metavar="TEXT", help="A system prompt.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the provider is.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the output if it exists.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("-v", "--verbose", help="Show the model's words and the usage, on stderr."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the files, the output and the usage as JSON.")
    ] = False,
) -> None:
    """Make images and other files, and print where they are.

    \b
    dragoman generate "a lighthouse" -o lighthouse.png -m google
    dragoman generate "the same at night: @lighthouse.png" -o night.png -m openai-responses
    dragoman generate "a one-page invoice" -o invoice.pdf -m anthropic
    dragoman generate "a cat" -o cats/ -m openai-responses --option size=1024x1024
    dragoman generate "sales of a year, and a chart" -o out/ --mime-type text/csv --mime-type image/png

    \b
    The model is -m, else DRAGOMAN_MODEL, else that of dragoman models default. The provider makes
    images with an image model and other files with code that it runs. Keys come from environment
    variables (dragoman providers lists them) or dragoman keys.
    """
    import asyncio

    types = guess_types(output, mime_type)
    options = dict(map(_parse_option, option or ()))
    target = check_output(output, force=force)
    agent = _make_agent(model, system, base_url)
    content = parse_prompt(prompt, read_piped())
    if not content:
        raise typer.BadParameter(
            "there is nothing to make; give a prompt, or pipe one in", param_hint="PROMPT"
        )
    asyncio.run(_generate(agent, content, types, options, target, force, verbose, json))


def _make_agent(model: str | None, system: str | None, base_url: str | None) -> Agent[None]:
    """Returns the agent of `dragoman generate`. Here the name after a colon is that of the model
    which makes the files.

    Raises:
        AuthenticationError: there is no key, which is reported before anything is read.
    """
    from dragoman import providers
    from dragoman.agent import Agent
    from dragoman.model.resolve_model import ModelString, parse_model_string
    from dragoman.providers.keys import find_key

    if model is not None:
        string = parse_model_string(model)
        media = string.media or string.chat
        model = str(ModelString(string.provider, string.chat, None, media))
    agent = Agent[None](model, system=system and replace_invalid_text(system), base_url=base_url)
    find_key(providers.get(agent.provider_name))
    return agent


def _parse_option(text: str) -> tuple[str, Any]:
    """Returns the name and the value of an option of `dragoman generate`: JSON, else the text as it
    is.

    Raises:
        BadParameter: it has no name.
    """
    name, mark, value = text.partition("=")
    if not (mark and name):
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--option")
    try:
        return name, msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError):
        return name, replace_invalid_text(value)


async def _generate(
    agent: Agent[None],
    content: list[Content],
    types: list[str],
    options: dict[str, Any],
    target: Output,
    force: bool,
    verbose: bool,
    json: bool,
) -> None:
    """Asks for `dragoman generate`, saves the files, and prints where they are."""
    from dragoman.errors import DragomanError

    failed: DragomanError | None = None
    try:
        async with agent:
            with show_progress(f"making {', '.join(types)}, Ctrl-C stops", quiet=json):
                result = await agent.generate_media(content, mime_types=types, options=options)
    except DragomanError as error:
        if error.result is None:
            raise
        failed, result = error, error.result
    # What is paid for is saved, also where the rest has failed.
    saved = _save(agent, result, target, types, force=force)
    _print_result(result, saved, verbose=verbose, json=json and failed is None)
    if failed is not None:
        raise failed
    if not saved:
        raise _explain_nothing(result, types)


def _save(
    agent: Agent[None], result: ChatResult[str], target: Output, types: list[str], *, force: bool
) -> list[str]:
    """Saves the files that `dragoman generate` made. Returns where each is: its path, or its
    URL."""
    from dragoman.message import DataPart, FilePart, LinkPart, Role

    files = agent.files(result)
    data = [file for file in files if isinstance(file, DataPart)]
    saved = [str(file) for file in save_files(data, target, types, force=force)]
    for file in files:
        if isinstance(file, FilePart):
            echo(f"note: the file {file.name or file.id} was not fetched", err=True)
    spoken = [message for message in result.messages if message.role is Role.MODEL]
    links = [part for message in spoken for part in message.parts if isinstance(part, LinkPart)]
    return saved + [link.url for link in links]


def _print_result(result: ChatResult[str], saved: list[str], *, verbose: bool, json: bool) -> None:
    """Prints where the files that `dragoman generate` made are."""
    from dragoman.cli.screen import find_cost, format_usage, show_notes

    if json:
        echo_json({"files": saved, "output": result.output, "usage": result.usage})
    else:
        for where in saved:
            echo(to_one_line(where))
    show_notes(result)
    if verbose:
        if result.output:
            echo(result.output, err=True)
        echo(format_usage(result.usage, find_cost([result])), err=True)


def _explain_nothing(result: ChatResult[str], types: list[str]) -> Exception:
    """Returns the error of `dragoman generate` for an answer without a file."""
    from dragoman.errors import ContentRefusedError, ProviderError
    from dragoman.message import FinishReason

    refused = (FinishReason.refusal, FinishReason.content_filter, FinishReason.recitation)
    quote = f': "{result.output:.300}"' if result.output else ""
    if result.finish_reason in refused:
        return ContentRefusedError(f"the provider refuses to make this{quote}")
    return ProviderError(f"the model made no {' or '.join(types)}{quote}")
