"""Compares the table of profiles with what providers list, and prints where they differ:
`python -m profile_checks.compare PROVIDER FILE…`, each file a provider's answer to a request for its models.

A listing that lacks something proves nothing: it prints what to look at, and changes no file. Only a
recording, a live-verified source or a quoted error may add a refusal to the table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.model.model_list import load_models
from dragoman.model_profile import ModelProfile
from dragoman.profiles import load_shipped
from dragoman.profiles.profile_table import BASE

__all__ = ["compare_listing"]


def compare_listing(vendor: str, body: Any) -> Iterator[str]:
    """Yields a line for each field in which a list and the table differ, and for each chat model
    that the table does not know.

    Args:
        vendor: the vendor in the table.
        body: the provider's answer, as JSON.
    """
    table = load_shipped(sources=True)
    for model in load_models(vendor, body):
        if model.kinds[0] != "chat":
            continue
        entry = table.find_entry(vendor, model.name)
        if entry in (None, BASE):
            yield f"{model.name}: not in the table"
        if entry is None or model.profile is None:
            continue
        yield from _compare_fields(model.name, model.profile, table.profile(vendor, entry))


def _compare_fields(name: str, listed: ModelProfile, profile: ModelProfile) -> Iterator[str]:
    sources = profile.sources or {}
    for field, value in listed.known().items():
        known = getattr(profile, field)
        if known is None:
            yield f"{name}.{field}: unknown in the table; listed {value!r}"
        elif known != value:
            yield f"{name}.{field}: {known!r} by {sources.get(field, '?')}; listed {value!r}"


def main(arguments: list[str]) -> int:
    """Prints all differences. Returns the exit code."""
    if len(arguments) < 2:
        print(__doc__)
        return 2
    vendor, *files = arguments
    for file in files:
        for line in compare_listing(vendor, json.loads(Path(file).read_bytes())):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
