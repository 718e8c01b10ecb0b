"""What `make profiles` prints stays as good as it is: held against recorded traffic and a table of
facts, which are beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import models
from profile_checks.__main__ import FACTS, LEAST_FORESEEN, MOST_LEFT, TRAFFIC
from profile_checks.compare import compare_listing
from profile_checks.matrix import count_left
from profile_checks.recordings import find_recordings, is_of_the_model, predict


@pytest.mark.slow
def test_no_accepted_request_is_refused_and_most_refused_ones_are_foreseen() -> None:
    if not TRAFFIC.is_dir():
        pytest.skip(f"recorded traffic is absent: {TRAFFIC} (set DRAGOMAN_TRAFFIC)")
    recordings = list(find_recordings(TRAFFIC))
    accepted = [recording for recording in recordings if recording.status == 200]
    assert len(accepted) > 2000
    assert [
        (recording.name, predict(recording)) for recording in accepted if predict(recording)
    ] == []
    refused = [recording for recording in recordings if is_of_the_model(recording)]
    foreseen = [recording for recording in refused if predict(recording)]
    assert len(foreseen) >= LEAST_FORESEEN * len(refused) > 0


def test_few_settings_are_refused_after_lowering() -> None:
    if not FACTS.is_file():
        pytest.skip(f"the table of facts is absent: {FACTS} (set DRAGOMAN_FACTS)")
    before, left, total = count_left(FACTS)
    assert total == 1258
    assert left <= MOST_LEFT < before


def test_the_page_of_models_is_that_of_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "models.md"
    assert page.read_text("utf-8") == models.markdown(), "make pages"


def test_a_listing_is_compared_with_the_table() -> None:
    body = {
        "data": [
            {"id": "claude-opus-4-7", "max_input_tokens": 1_000_000, "max_tokens": 64_000},
            {"id": "claude-opus-9"},
            {"id": "voyage-embed"},
        ]
    }
    assert list(compare_listing("anthropic", body)) == [
        "claude-opus-4-7.output: 128000 by T (anthropic.opus-4-7); listed 64000",
        "claude-opus-9: not in the table",
    ]
