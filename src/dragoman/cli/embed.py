"""`dragoman embed`: vectors of texts in a JSON file, and search in such files by meaning.

`create` splits the files into chunks and embeds all of them in one call, which makes the batches.
`keep` stores each batch as it arrives, so that a failure loses only what is missing. `search` reads
the files twice: first only who made them, since vectors of different models cannot be compared,
then one file after the other, of which only the nearest chunks stay in memory. `text` embeds a
single text. The records at the top define the JSON of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import typer

from dragoman.cli.progress import show_progress
from dragoman.cli.prompt import read_piped, replace_invalid_text
from dragoman.cli.settings import expand_alias, find_default_model
from dragoman.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from dragoman.agent import Agent
    from dragoman.message import Usage
    from dragoman.result import Vector

__all__ = ["ModelOption", "create", "make_embedder", "search", "text"]

T = TypeVar("T")

ModelOption = Annotated[
    str | None,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        help="Such as openai, or openai:text-embedding-3-large.",
        callback=expand_alias,
    ),
]
_Dimensions = Annotated[
    int | None, typer.Option(min=1, help="Numbers of each vector, where the model can shorten it.")
]
_BaseUrl = Annotated[str | None, typer.Option(metavar="URL", help="Where the provider is.")]
_Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Show the usage, on standard error.")
]


class _Chunk(msgspec.Struct):
    text: str
    vector: list[float]
    offset: int


class _Document(msgspec.Struct):
    file: str
    chunks: list[_Chunk]


class _EmbeddingSettings(msgspec.Struct, omit_defaults=True, kw_only=True):
    """How the vectors of a file were made."""

    model: str
    created: str
    chunk_size: int
    chunk_overlap: int
    dimensions: int | None = None


class _EmbeddingsFile(_EmbeddingSettings, kw_only=True):
    """The file that `create` writes and `search` reads."""

    documents: list[_Document]


def create(
    files: Annotated[
        list[str] | None, typer.Argument(help="Text files.", show_default=False)
    ] = None,
    model: ModelOption = None,
    chunk_size: Annotated[int, typer.Option(min=1, help="Most characters of a chunk.")] = 512,
    chunk_overlap: Annotated[
        int | None,
        typer.Option(min=0, help="Characters that parts of a long sentence share.  [default: 100]"),
    ] = None,
    dimensions: _Dimensions = None,
    base_url: _BaseUrl = None,
    verbose: _Verbose = False,
) -> None:
    """Split text files into chunks and print a vector for each, as JSON.

    A chunk is a paragraph, or as many sentences of a longer one as fit. If a request fails, the vectors
    so far are printed, and the error names the files that lack some.

    \b
    dragoman embed create notes/*.md > notes.json
    dragoman embed create book.txt -m openai --dimensions 256 --chunk-size 1000 > book.json

    \b
    The model is -m, else that of DRAGOMAN_MODEL's provider, else local: the embedded model,
    which needs no key. The JSON:
    {model, created, chunk_size, chunk_overlap, documents: [{file, chunks: [{text, vector, offset}]}]}
    """
    if chunk_overlap is None:
        # A default of 100 would not be below a small chunk size.
        chunk_overlap = min(100, chunk_size // 5)
    if chunk_overlap >= chunk_size:
        raise typer.BadParameter(
            f"must be below --chunk-size, {chunk_size}", param_hint="--chunk-overlap"
        )
    from datetime import UTC, datetime

    from dragoman.embeddings.splitting import chunks
    from dragoman.errors import DragomanError

    documents = [
        (file, chunks(_read_text(file), chunk_size, chunk_overlap)) for file in files or ()
    ]
    texts = [chunk.text for _, cut in documents for chunk in cut]
    if not texts:
        raise typer.BadParameter(
            "there is nothing to embed; give files that hold text", param_hint="FILES"
        )

    agent, name = make_embedder(model, base_url)
    vectors: list[Vector | None] = [None] * len(texts)
    usage: Usage | None = None
    failed: DragomanError | None = None

    def keep(index: int, batch: Sequence[Vector]) -> None:
        vectors[index : index + len(batch)] = batch

    with show_progress("embedding", len(texts), unit="chunks") as progress:
        try:
            options: Any = {"dimensions": dimensions, "progress": progress, "keep": keep}
            usage = _run_with_agent(agent, lambda: agent.embed_documents(texts, **options)).usage
        except DragomanError as error:
            if all(vector is None for vector in vectors):
                raise
            failed = error
    # Vectors are in the order of all chunks of all files.
    remaining_vectors = iter(vectors)
    embedded_files = [
        (file, [(chunk, next(remaining_vectors)) for chunk in cut]) for file, cut in documents
    ]
    embedded = _EmbeddingsFile(
        model=name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        dimensions=dimensions,
        documents=[
            _Document(
                file,
                [
                    _Chunk(chunk.text, vector, chunk.offset)
                    for chunk, vector in cut
                    if vector is not None
                ],
            )
            for file, cut in embedded_files
        ],
    )
    _print_result(embedded, usage, verbose)
    if failed is not None:
        lacking = [file for file, cut in embedded_files if any(vector is None for _, vector in cut)]
        # Raised after the output, so that the vectors so far are not lost.
        failed.message += f"; {vectors.count(None)} of {len(vectors)} chunks have no vector, in {', '.join(lacking)}"
        raise failed


def search(
    path: Annotated[
        str, typer.Argument(help="A file that create has written, or a folder of such files.")
    ],
    query: Annotated[str, typer.Option("-q", "--query", metavar="TEXT", help="What to look for.")],
    model: ModelOption = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="Most results.")] = 10,
    base_url: _BaseUrl = None,
    verbose: _Verbose = False,
) -> None:
    """Find the chunks that are nearest in meaning to a text, and print them as JSON.

    \b
    dragoman embed search -q "How do I reset it?" notes.json
    dragoman embed search -q "holidays" folder-of-json -n 3

    \b
    The model is the one that made the files.
    The JSON, nearest first: {query, results: [{file, text, offset, similarity}]}
    """
    from heapq import nlargest

    from dragoman.embeddings.similarity import cosine_similarity
    from dragoman.errors import InvalidRequestError

    query = replace_invalid_text(query)
    if not query.strip():
        raise typer.BadParameter("there is nothing to look for", param_hint="--query")
    files = list(_list_files(path))
    makers = {
        (entry.model, entry.dimensions)
        for entry in (_load_file(file, _EmbeddingSettings) for file in files)
    }
    if len(makers) > 1:
        names = ", ".join(
            sorted(f"{name}, {size} numbers" if size else name for name, size in makers)
        )
        raise typer.BadParameter(
            f"the files were made with different models: {names}", param_hint="PATH"
        )
    ((made_with, dimensions),) = makers
    agent, _ = make_embedder(model or made_with, base_url)
    result = _run_with_agent(agent, lambda: agent.embed_query(query, dimensions=dimensions))
    scored = (
        (cosine_similarity(result.embeddings, chunk.vector), document.file, chunk)
        # One at a time: their vectors may be more than memory holds.
        for file in files
        for document in _load_file(file, _EmbeddingsFile).documents
        for chunk in document.chunks
    )
    try:
        # Keeps only `limit` results in memory.
        nearest = nlargest(limit, scored, key=lambda entry: entry[0])
    except InvalidRequestError as error:
        raise typer.BadParameter(str(error), param_hint="--model") from error
    results = [
        {"file": file, "text": chunk.text, "offset": chunk.offset, "similarity": similarity}
        for similarity, file, chunk in nearest
    ]
    _print_result({"query": query, "results": results}, result.usage, verbose, indent=2)


def text(
    text: Annotated[
        str, typer.Argument(help="Left out: what is piped in.", show_default=False)
    ] = "",
    model: ModelOption = None,
    dimensions: _Dimensions = None,
    base_url: _BaseUrl = None,
    verbose: _Verbose = False,
) -> None:
    """Print the vector of one text, as JSON: {model, vector}.

    \b
    dragoman embed text "a red bicycle"
    cat letter.txt | dragoman embed text -m mistral
    """
    text = replace_invalid_text(text) or read_piped("TEXT")
    if not text.strip():
        raise typer.BadParameter(
            "there is nothing to embed; give a text, or pipe one in", param_hint="TEXT"
        )
    agent, name = make_embedder(model, base_url)
    result = _run_with_agent(agent, lambda: agent.embed_query(text, dimensions=dimensions))
    _print_result({"model": name, "vector": result.embeddings}, result.usage, verbose)


def make_embedder(model: str | None, base_url: str | None) -> tuple[Agent[None], str]:
    """Returns the agent and its embeddings model as a model string. Here the name after a colon is
    an embeddings model, not a chat model."""
    from dragoman.agent import Agent
    from dragoman.model.resolve_model import ModelString, parse_model_string

    if model is None:
        model = find_default_model()
    else:
        string = parse_model_string(model)
        model = str(ModelString(string.provider, None, string.embeddings or string.chat))
    agent = Agent[None](model, base_url=base_url)
    return agent, str(
        ModelString(agent.provider_name, None, parse_model_string(agent.model).embeddings)
    )


def _run_with_agent(agent: Agent[None], work: Callable[[], Awaitable[T]]) -> T:
    """Runs the work of `dragoman embed` with an open agent in an event loop."""
    import asyncio

    async def run() -> T:
        async with agent:
            return await work()

    return asyncio.run(run())


def _read_text(file: str) -> str:
    """Returns the text of a file to embed.

    Raises:
        BadParameter: it cannot be read, or is not UTF-8.
    """
    try:
        # Line ends as they are, since offsets count them.
        return Path(file).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{file} is no text in UTF-8", param_hint="FILES") from error
    except OSError as error:
        raise typer.BadParameter(
            f"cannot read {file}: {error.strerror}", param_hint="FILES"
        ) from error


def _list_files(path: str) -> Iterator[Path]:
    """Yields a file of embeddings, or the JSON files of a folder."""
    folder = Path(path)
    if not folder.is_dir():
        yield folder
        return
    files = sorted(folder.glob("*.json"))
    if not files:
        raise typer.BadParameter(f"no .json file is in {path}", param_hint="PATH")
    yield from files


def _load_file(file: Path, wanted_type: type[T]) -> T:
    """Returns the content of an embeddings file.

    Raises:
        BadParameter: it cannot be read, or is something else.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=wanted_type)
    except OSError as error:
        raise typer.BadParameter(
            f"cannot read {file}: {error.strerror}", param_hint="PATH"
        ) from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise typer.BadParameter(
            f"{file} is not what dragoman embed create writes: {error}", param_hint="PATH"
        ) from error


def _print_result(value: object, usage: Usage | None, verbose: bool, indent: int = 0) -> None:
    """Prints the JSON of `dragoman embed`, with `indent` for people or on one line, and the usage
    with `verbose`."""
    echo_json(value, indent=indent)
    if verbose:
        from dragoman.cli.screen import format_usage

        echo(format_usage(usage), err=True)
