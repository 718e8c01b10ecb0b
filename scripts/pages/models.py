"""`docs/models.md`: what dragoman knows of each vendor's models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dragoman.model_profile import ModelProfile
from dragoman.profiles import load_shipped
from dragoman.profiles.profile_table import BASE

__all__ = ["markdown"]

_HEAD = """# Models

`make pages` generates this page from `src/dragoman/profiles/models.toml`. It shows what dragoman knows of the models of each
vendor. An empty cell is unknown: dragoman then sends the request as it is. `dragoman models PROVIDER -v --why` shows every field
of a model with its source.

Each request is adapted to the model before it is sent: a setting becomes the nearest value that the model accepts, or is left out.
Each change is a `Loss` in `ChatResult.losses`. `Agent(on_loss="error")` refuses the request instead.

```python
from dragoman import profiles

profile = profiles.get("anthropic:claude-opus-5-5")
assert profile.efforts == ("low", "medium", "high", "xhigh", "max")
assert profile.forced == "no"
```

To correct dragoman, or to describe a model under a name of your own, register a profile. Your word goes before everything else.

```python
profiles.register("azure:my-deployment", like="openai:gpt-5.4")
profiles.register("openai:gpt-9", profiles.ModelProfile(refused=("temperature",)))
```

`profiles.load("my-models.toml")` reads a file of your own in the format of the shipped table, and `DRAGOMAN_PROFILES` names such
files for every process. `Agent(profile=…)` describes the agent's own model.

A name is found by its longest beginning in the table. Dates and sizes behind it do not matter (`gpt-5-2025-08-07`, `gpt-5-mini`). A
newer version (`gpt-5.7`) and a moving alias (`…-latest`) get only what holds for the vendor's whole API, unless the table names them.
"""
_COLUMNS = (
    "models",
    "thinks",
    "efforts or budget",
    "off",
    "not accepted",
    "forced tool",
    "schema",
    "prompt, answer",
    "retires",
)


def markdown() -> str:
    """The page."""
    table = load_shipped(sources=True)
    lines = [*_HEAD.rstrip().split("\n"), ""]
    vendor = ""
    for name, key in table.entries():
        if name != vendor:
            vendor = name
            lines += ["", f"## {vendor}", "", *_row(_COLUMNS), *_row(["---"] * len(_COLUMNS))]
        names = table.names(vendor, key)
        title = "the API" if key == BASE else ", ".join(f"`{name}`" for name in names)
        lines += _row([title, *_cells(table.profile(vendor, key))])
    lines += ["", "## Sources", "", *_row(("in `sources`", "what it is")), *_row(["---"] * 2)]
    for letter, meaning in table.legend.items():
        lines += _row((f"`{letter}`", meaning))
    return "\n".join(lines) + "\n"


def _cells(profile: ModelProfile) -> Iterator[str]:
    """The cells of a row behind its names."""
    yield profile.thinks or ""
    yield _thinking(profile)
    yield "cannot" if profile.off == () else _code(profile.off or ())
    yield _refused(profile)
    yield profile.forced or ""
    yield _schema(profile)
    yield ", ".join(
        f"{number:,}" for number in (profile.input, profile.output) if number is not None
    )
    yield "retired" if profile.retired else str(profile.retires or "")


def _thinking(profile: ModelProfile) -> str:
    parts = [_code(profile.efforts)] if profile.efforts else []
    if profile.budget and "budget" in (profile.ways or ()):
        least, most = profile.budget
        parts.append(f"{least:,} to {most:,} tokens" if most else f"{least:,} tokens or more")
    return "; ".join(parts)


def _refused(profile: ModelProfile) -> str:
    """What is refused: always, or while the model thinks."""
    texts = [_code(profile.refused or ())]
    fixed = _code(profile.fixed or ())
    texts += [f"{fixed} but the default"] if fixed else []
    thinking = _code((*(profile.refused_thinking or ()), *(profile.fixed_thinking or ())))
    texts += [f"while it thinks {thinking}"] if thinking else []
    texts += [f"`{first}` with `{second}`" for first, second in profile.together or ()]
    ignored = _code(profile.ignored or ())
    texts += [f"ignores {ignored}"] if ignored else []
    return "; ".join(filter(None, texts))


def _schema(profile: ModelProfile) -> str:
    if profile.schema is None:
        return ""
    if profile.schema and profile.schema_tools is False:
        return "not with tools"
    return "yes" if profile.schema else "no"


def _code(words: Iterable[str]) -> str:
    return " ".join(f"`{word}`" for word in words)


def _row(cells: Iterable[str]) -> list[str]:
    return [f"| {' | '.join(cells)} |"]
