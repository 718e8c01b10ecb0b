"""Conversations that are kept: `dragoman chat --thread`, `-c`, and `dragoman threads`."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman import DataPart, Message, ToolCallPart, ToolResultPart, load_messages
from dragoman.cli.threads import find_store_file
from dragoman.memory import Memory
from support.cli import Stdin, one_line
from support.llm_server import Llm

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's data is."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "dragoman" / "threads.db"


def keep(name: str, *messages: Message, file: Path) -> None:
    async def kept() -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        async with Memory(f"sqlite:///{file}") as memory:
            await memory.save(messages, name)

    asyncio.run(kept())


def test_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_store_file({"XDG_DATA_HOME": "/d"}) == Path("/d/dragoman/threads.db")
    assert find_store_file({}) == Path.home() / ".local" / "share" / "dragoman" / "threads.db"


@pytest.mark.slow
def test_a_conversation_is_kept_and_gone_on_with(cli: Cli, llm: Llm, data: Path) -> None:
    assert cli("chat", "--thread", "trip", "one")[0] == 0
    assert stat.S_IMODE(data.stat().st_mode) == 0o600
    cli("chat", "--thread", "other", "two")
    cli("chat", "--thread", "trip", "three")
    assert [message.text for message in llm.requests[-1].messages] == [
        "one",
        "You said: one",
        "three",
    ]
    code, out, err = cli("chat", "-c", "four")
    assert (code, out, err) == (0, "You said: four\n", "")
    assert len(llm.requests[-1].messages) == 5
    cli("chat", "five")
    assert [message.text for message in llm.requests[-1].messages] == ["five"]
    assert [line.split()[-1] for line in cli("threads", "list")[1].splitlines()] == [
        "trip",
        "other",
    ]


def test_a_store_is_named_by_an_option_or_the_environment(
    cli: Cli, llm: Llm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    cli("chat", "--thread", "a", "--store", url, "hi")
    assert not data.exists()
    monkeypatch.setenv("DRAGOMAN_STORE", url)
    assert cli("threads", "list")[1].split()[-1] == "a"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("chat", "-c", "hi"), 1, ("no conversation is stored",)),
        (("chat", "-c", "--thread", "a", "hi"), 2, ("not both",)),
        (("chat", "--thread", "", "hi"), 1, ("thread_id is empty",)),
        (("chat", "--thread", "a", "--store", "mysql://x", "hi"), 3, ("mysql",)),
        (("threads", "show", "nobody"), 1, ("nobody",)),
        (
            ("threads", "show", "a", "--store", "sqlite:////nowhere/at/all/x.db"),
            3,
            ("/nowhere/at/all",),
        ),
        (("threads", "export", "a", "--to", "nonsense"), 2, ("--to", "openai_chat")),
        (("threads", "delete", "a"), 2, ("--yes",)),
        (
            ("threads", "list", "--store", "postgresql://u:secret@127.0.0.1:9/d"),
            1,
            ("message store failed",),
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    cli: Cli, arguments: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    found, out, err = cli(*arguments)
    assert (found, out) == (code, "")
    assert one_line(err, *words)
    assert "secret" not in err


CONVERSATION = (
    Message.user("Look\nhere\x1b[31m", DataPart(b"x", "image/png")),
    Message.model("I will.", ToolCallPart("c", "look", {"at": "it"})),
    Message.user(ToolResultPart("c", "look", {"seen": "a river"})),
    Message.model("It is the Glomma."),
)


def test_a_conversation_is_shown(cli: Cli, data: Path) -> None:
    keep("trip", *CONVERSATION, file=data)
    code, out, err = cli("threads", "show", "trip")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert out.splitlines() == [
        "> Look", "here\\u001b[31m", "> [image/png]", "I will.", '[calls look {"at":"it"}]', '> [look: {"seen":"a river"}]', "It is the Glomma."
    ]  # fmt: skip
    code, out, _ = cli("threads", "show", "trip", "--json")
    assert [message.content for message in load_messages(out)] == [
        message.content for message in CONVERSATION
    ]


def test_what_a_memory_wrote_for_the_model_is_not_shown(cli: Cli, data: Path) -> None:
    memo = Message.user("remembered").replace(metadata={"recalled": []})
    keep("trip", memo, Message.user("Hello."), file=data)
    assert cli("threads", "show", "trip") == (0, "> Hello.\n", "")
    assert "remembered" in cli("threads", "show", "trip", "--json")[1]


def test_a_conversation_is_exported(cli: Cli, data: Path) -> None:
    keep("trip", *CONVERSATION, file=data)
    code, out, err = cli("threads", "export", "trip", "--to", "openai_chat")
    assert (code, err) == (0, "")
    assert [message["role"] for message in json.loads(out)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    code, out, err = cli("threads", "export", "trip")
    assert [message.content for message in load_messages(out)] == [
        message.content for message in CONVERSATION
    ]
    keep("odd", Message.user("x", DataPart(b"x", "video/mp4")), file=data)
    code, out, err = cli("threads", "export", "odd", "--to", "cohere")
    assert code == 0
    assert err.startswith("note: ")
    assert "video/mp4" in err


@pytest.mark.slow
def test_conversations_are_deleted(cli: Cli, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        keep(name, Message.user("x"), file=data)
    assert cli("threads", "delete", "a", "b", "--yes") == (0, "", "")
    code, _, err = cli("threads", "delete", "a", "--yes")
    assert code == 1
    assert one_line(err, "no conversation a")
    monkeypatch.setattr(sys, "stdin", Stdin(None))
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert cli("threads", "delete", "c")[0] == 1
    assert [each["id"] for each in json.loads(cli("threads", "list", "--json")[1])] == ["c"]
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    assert cli("threads", "delete", "c")[0] == 0
    assert cli("threads", "list") == (0, "", "note: no conversation is stored\n")


def test_words_are_found(cli: Cli, data: Path) -> None:
    keep("trip", *CONVERSATION, file=data)
    keep("other", Message.user("The Glomma is long."), file=data)
    code, out, _ = cli("threads", "search", "glomma")
    assert code == 0
    assert out.splitlines() == [
        "other  user: The Glomma is long.",
        "trip  model: It is the Glomma.",
    ]
    assert (
        cli("threads", "search", "glomma", "--thread", "trip")[1]
        == "trip  model: It is the Glomma.\n"
    )
    assert json.loads(cli("threads", "search", "long", "--json")[1])[0]["thread"] == "other"
    assert cli("threads", "search", "nothing") == (1, "", "")


def test_help_has_examples(cli: Cli) -> None:
    for command in ("list", "show", "export", "delete", "search"):
        code, out, _ = cli("threads", command, "--help")
        assert code == 0
        assert f"dragoman threads {command}" in out


def test_nothing_is_deleted_where_a_name_is_wrong(cli: Cli) -> None:
    cli("chat", "--thread", "kept", "hi")
    code, _, err = cli("threads", "delete", "kept", "nobody", "--yes")
    assert code == 1
    assert "there is no conversation nobody; nothing was deleted" in err
    assert cli("threads", "list")[1].split()[-1] == "kept"


@pytest.mark.mend("1.14")
@pytest.mark.parametrize("how", [["-c"], ["--thread", "trip"]], ids=["-c", "--thread"])
def test_a_conversation_stays_with_its_model(
    cli: Cli, llm: Llm, data: Path, monkeypatch: pytest.MonkeyPatch, how: list[str]
) -> None:
    """A variable sent what was said to a model on this machine to a hosted one."""
    code, _, err = cli("chat", "I like trains.", "--thread", "trip")
    assert (code, err) == (0, "")
    monkeypatch.setenv("DRAGOMAN_MODEL", "anthropic:claude-sonnet-4-5")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.delenv("OPENAI_COMPATIBLE_BASE_URL")
    code, _, err = cli("chat", "Where do I go?", *how)
    assert code == 0, err
    assert "openai-compatible:tiny answers, as before in this conversation" in err
    assert [request.model for request in llm.requests] == ["tiny", "tiny"]
    code, _, err = cli("chat", "And now?", *how, "-m", "anthropic:claude-sonnet-4-5")
    assert (code, err) == (0, "")
    assert llm.requests[-1].model == "claude-sonnet-4-5"
    assert len(llm.requests[-1].messages) == 5
    cli("chat", "Again?", *how)  # it stays with the one that answered last
    assert llm.requests[-1].model == "claude-sonnet-4-5"


@pytest.mark.mend("1.14")
def test_a_new_conversation_has_the_usual_model(cli: Cli, llm: Llm, data: Path) -> None:
    code, _, err = cli("chat", "Hi.", "--thread", "new")
    assert (code, err) == (0, "")
    code, _, err = cli("chat", "Hi.", "--thread", "new")
    assert (code, err) == (0, "")


SAID = [
    Message.user("The heating at home is broken."),
    Message.model("Is the boiler at home leaking?"),
    Message.user("My cat is called Tom."),
]


@pytest.fixture
def embeds(llm: Llm, monkeypatch: pytest.MonkeyPatch) -> Llm:
    """A model that embeds."""
    monkeypatch.setenv("DRAGOMAN_MODEL", "openai-compatible?chat=tiny&embeddings=e")
    return llm


def test_messages_are_found_by_their_meaning(cli: Cli, embeds: Llm, data: Path) -> None:
    keep("trip", *SAID, file=data)
    keep("other", Message.user("The cat at home."), file=data)
    code, out, err = cli("threads", "search", "--meaning", "broken heating at home", "-n", "2")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "trip  user: The heating at home is broken."
    assert len(out.splitlines()) == 2
    code, out, _ = cli(
        "threads", "search", "--meaning", "cat", "--thread", "other", "--json", "-m", "openai-compatible:e"
    )  # fmt: skip
    (match,) = json.loads(out)
    assert (match["thread"], match["message"]["content"][0]["text"]) == (
        "other",
        "The cat at home.",
    )
    assert 0.3 <= match["score"] <= 1


def test_a_store_is_indexed(cli: Cli, embeds: Llm, data: Path, tmp_path: Path) -> None:
    keep("trip", *SAID, file=data)
    assert cli("memory", "index", "-n", "2") == (
        0,
        "2 texts embedded with openai-compatible?embeddings=e\n",
        "",
    )
    assert cli("memory", "index", f"sqlite:///{data}")[1].startswith("1 texts")
    assert cli("memory", "index")[1].startswith("0 texts")
    assert sorted(text for request in embeds.embedded for text in request.texts) == sorted(
        message.text for message in SAID
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("threads", "search", "--meaning", " "), 2, ("TEXT",)),
        (("threads", "search", "cat", "-m", "local"), 2, ("--meaning",)),
        (("threads", "search", "--meaning", "cat", "-m", "anthropic"), 3, ("embeddings",)),
        (("threads", "search", "--meaning", "cat", "--thread", "nobody"), 1, ("nobody",)),
        (("threads", "search", "--meaning", "cat", "-n", "0"), 2, ("-n",)),
        (("memory", "index", "sqlite:////nowhere/at/all/x.db"), 3, ("/nowhere/at/all",)),
        (("memory", "index", "mysql://x"), 3, ("mysql",)),
        (("memory", "index", "-m", "anthropic"), 3, ("embeddings",)),
        (("memory", "index", "-n", "0"), 2, ("-n",)),
    ],
)
def test_wrong_searches_by_meaning_are_one_line(
    cli: Cli, embeds: Llm, arguments: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    found, out, err = cli(*arguments)
    assert (found, out) == (code, "")
    assert one_line(err, *words)


def test_an_index_that_fails_says_what_it_did(cli: Cli, embeds: Llm, data: Path) -> None:
    keep("trip", *SAID, file=data)

    embeds.embed = lambda body: {"error": {"message": "no more", "type": "x"}}  # type: ignore[method-assign]
    code, out, err = cli("memory", "index")
    assert code in (1, 4)
    assert out == ""
    assert one_line(err)
