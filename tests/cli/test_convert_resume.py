"""`dragoman convert` on long inputs: over several processes in order, in constant memory, and going
on after any end."""

from __future__ import annotations

import gc
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any, cast

import pytest

from dragoman.cli import convert_chunks, convert_input, convert_output
from dragoman.cli.convert_chunks import InputChunk, Job, convert_chunk
from dragoman.cli.convert_output import ConvertOutput, find_note_file
from support.cli import SRC, one_line

Cli = Callable[..., tuple[int, str, str]]
RUN = [sys.executable, "-m", "dragoman", "convert"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": SRC}


def rows(count: int, words: int = 3) -> Iterator[str]:
    """Conversations, of which every seventh cannot be read and every fifth loses something."""
    for place in range(count):
        messages: list[Any] = [
            {"role": "user", "content": f"{place} " * words},
            {"role": "assistant", "content": "Ho."},
        ]
        if place % 7 == 3:
            messages.append({"role": "robot"})
        yield (
            json.dumps({"messages": messages, **({"user": str(place)} if place % 5 == 2 else {})})
            + "\n"
        )


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a few conversations."""
    monkeypatch.setattr(convert_input, "CHUNK", 500)


def command(source: str, folder: Path, *more: str) -> list[str]:
    out, report = str(folder / "out.jsonl"), str(folder / "report.jsonl")
    return [
        "convert",
        source,
        "-t",
        "google",
        "-f",
        "openai_chat",
        "--errors",
        "skip",
        "-o",
        out,
        "--report",
        report,
        *more,
    ]


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "in.jsonl"}


@pytest.mark.usefixtures("small")
@pytest.mark.slow
def test_processes_side_by_side_write_what_one_writes(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(rows(200)))
    assert cli(*command(str(source), tmp_path, "-j", "1"))[0] == 1
    alone = written(tmp_path)
    code, _, err = cli(*command(str(source), tmp_path, "-j", "3"))
    assert (code, written(tmp_path)) == (1, alone)
    assert set(alone) == {"out.jsonl", "report.jsonl"}  # no note is left
    assert (
        err.splitlines()[0]
        == "171 of 200 conversations written; 29 could not be read completely; 34 lost something"
    )


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("ended", range(0, 6, 2))
@pytest.mark.parametrize("names", [("in.jsonl",), ("in.jsonl", "in2.jsonl")])
@pytest.mark.slow
def test_an_ended_run_goes_on_to_what_it_would_have_been(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: int, names: tuple[str, ...]
) -> None:
    sources = [str(tmp_path / name) for name in names]
    for source in sources:
        Path(source).write_text("".join(rows(40)))
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    _, _, summary = cli(*command(sources[0], whole, *sources[1:], "-j", "1"))

    add, count = ConvertOutput.add, iter(range(100))

    def ending(self: ConvertOutput, *arguments: Any) -> None:
        if next(count) == ended:
            raise KeyboardInterrupt
        add(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ConvertOutput, "add", ending)
        code, _, err = cli(*command(sources[0], cut, *sources[1:], "-j", "1"))
    assert code == 130
    assert "the same command with --resume continues" in err
    for name in ("out.jsonl", "report.jsonl"):
        with (cut / name).open("ab") as file:
            file.write(b'{"half of a li')  # what was written, and not yet noted
    code, _, err = cli(*command(sources[0], cut, *sources[1:], "-j", "2", "--resume"))
    assert (code, err) == (1, summary)
    assert written(cut) == written(whole)


@pytest.mark.usefixtures("small")
def test_a_run_that_an_error_ended_goes_on_once_it_is_mended(cli: Cli, tmp_path: Path) -> None:
    fine = [row for row in rows(60) if "robot" not in row]
    source, out = tmp_path / "in.jsonl", str(tmp_path / "out.jsonl")
    source.write_text("".join([*fine[:20], "{oops\n", *fine[20:]]))
    code, _, err = cli("convert", str(source), "-t", "google", "-j", "1", "-o", out)
    assert code == 1
    assert one_line(err, "conversation 21: it is no JSON")
    assert len(Path(out).read_text().splitlines()) == 20
    source.write_text("".join(["\n" * 20, *fine[20:]]))  # what is done is not looked at again
    assert cli("convert", str(source), "-t", "google", "-j", "1", "-o", out, "--resume")[0] == 0
    assert [
        json.loads(line)["contents"][0]["parts"][0]["text"]
        for line in Path(out).read_text().splitlines()
    ] == [json.loads(row)["messages"][0]["content"] for row in fine]


@pytest.mark.usefixtures("small")
def test_a_packed_output_goes_on_too(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, whole, cut = (
        tmp_path / "in.jsonl",
        str(tmp_path / "a.jsonl.gz"),
        str(tmp_path / "b.jsonl.gz"),
    )
    source.write_text("".join(row for row in rows(60) if "robot" not in row))
    assert cli("convert", str(source), "-t", "google", "-j", "1", "-o", whole)[0] == 0
    add, count = ConvertOutput.add, iter(range(100))
    with monkeypatch.context() as patch:
        patch.setattr(
            ConvertOutput, "add", lambda *given: add(*given) if next(count) < 4 else 1 / 0
        )
        with pytest.raises(ZeroDivisionError):
            cli("convert", str(source), "-t", "google", "-o", cut, "-j", "1")
    assert cli("convert", str(source), "-t", "google", "-j", "1", "-o", cut, "--resume")[0] == 0
    assert Path(cut).read_bytes() == Path(whole).read_bytes()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("noted", [1, 3, 100])
def test_it_goes_on_after_a_loss_of_power(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: int
) -> None:
    """Of each file what was last made sure of is left."""
    whole, cut, disk = tmp_path / "whole", tmp_path / "cut", dict[int, bytes]()
    whole.mkdir()
    cut.mkdir()
    source = tmp_path / "in.jsonl"
    source.write_text("".join(rows(60)))
    cli(*command(str(source), whole, "-j", "1"))
    add, count = ConvertOutput.add, iter(range(100))

    def synced(number: int) -> None:
        there = os.fstat(number).st_ino
        disk.update(
            (there, path.read_bytes()) for path in cut.iterdir() if path.stat().st_ino == there
        )

    def ending(self: ConvertOutput, *arguments: Any) -> None:
        if next(count) == 8:
            left.extend((path, disk.get(path.stat().st_ino, b"")) for path in cut.iterdir())
            raise KeyboardInterrupt
        add(self, *arguments)

    left: list[tuple[Path, bytes]] = []
    with monkeypatch.context() as patch:
        patch.setattr(ConvertOutput, "add", ending)
        patch.setattr(convert_output, "NOTED", noted)
        patch.setattr(os, "fsync", synced)
        assert cli(*command(str(source), cut, "-j", "1"))[0] == 130
    for path, data in left:
        path.write_bytes(data)
    assert {path.name: len(data) > 0 for path, data in left} == {
        "out.jsonl": noted < 8,
        "report.jsonl": noted < 8,
        "out.jsonl.resume": True,
    }
    assert cli(*command(str(source), cut, "-j", "1", "--resume"))[0] == 1
    assert written(cut) == written(whole)


@pytest.mark.slow
def test_a_reader_that_has_enough_ends_it_quietly(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(row for row in rows(500, 2000) if "robot" not in row))
    with subprocess.Popen(
        [*RUN, str(source), "-t", "google", "-j", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(100)
        process.stdout.close()
        assert (process.wait(timeout=60), process.stderr.read()) == (1, b"")


def test_only_the_same_run_is_gone_on_with(cli: Cli, tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join([*list(rows(3)), "{oops\n"]))
    ask = ("convert", str(source), "-o", str(out))
    assert cli(*ask, "-t", "google")[0] == 1
    code, _, err = cli(*ask, "-t", "anthropic", "--errors", "skip", "--resume")
    assert code == 3
    assert one_line(err, "had another errors, to;", "without --resume")
    out.write_bytes(b"")
    code, _, err = cli(*ask, "-t", "google", "--resume")
    assert code == 1
    assert one_line(err, "is shorter than its unfinished run left it")
    find_note_file(str(out)).write_text("[1]")
    code, _, err = cli(*ask, "-t", "google", "--resume")
    assert code == 1
    assert one_line(err, "is not the note of an unfinished run")


def test_what_is_whole_needs_no_going_on(cli: Cli, tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(rows(3)))
    ask = ("convert", str(source), "-t", "google", "-o", str(out), "--resume")
    assert cli(*ask)[0] == 0  # there is nothing to go on with: it begins
    before = out.read_bytes()
    code, _, err = cli(*ask)
    assert (code, out.read_bytes()) == (0, before)
    assert "so it is whole" in err


@pytest.mark.slow
def test_a_process_that_is_ended_from_outside_ends_the_run(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(rows(200)))
    monkeypatch.setattr(convert_input, "CHUNK", 500)
    monkeypatch.setattr(convert_chunks, "_run_process", _die)
    code, _, err = cli("convert", str(source), "-t", "google", "-j", "2", "--errors", "skip")
    assert code == 1
    assert one_line(err, "was killed", "fewer --jobs")


def _die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def waited(condition: Callable[[], bool]) -> bool:
    """Whether a condition becomes true, in a minute at most."""
    return any(condition() or time.sleep(0.02) for _ in range(3000))


@pytest.mark.parametrize(
    "end", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_to_the_same_output(
    tmp_path: Path, end: signal.Signals
) -> None:
    """The input is a pipe, so that the run cannot be done before it is killed; what is sent is more
    than it reads ahead."""
    data = "".join(row for row in rows(1000, 2000) if "robot" not in row).encode()
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    ask = [*RUN, "-t", "google", "-j", "2", "-q", "-o"]
    subprocess.run([*ask, str(whole)], input=data, env=ENVIRONMENT, check=True, timeout=60)
    with subprocess.Popen(
        [*ask, str(cut)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(data[: len(data) * 3 // 4])
        process.stdin.flush()
        assert waited(lambda: cut.exists() and cut.stat().st_size > 0)
        if end is signal.SIGINT:
            os.killpg(process.pid, end)  # as a terminal does: its workers get it too
        else:
            process.send_signal(end)
        process.wait(timeout=30)
        assert process.returncode == (130 if end is signal.SIGINT else -end)
        assert waited(lambda: not group(process.pid)), "its processes outlive it"
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert find_note_file(str(cut)).exists()
    assert 0 < cut.stat().st_size < whole.stat().st_size
    subprocess.run(
        [*ask, str(cut), "--resume"], input=data, env=ENVIRONMENT, check=True, timeout=60
    )
    assert cut.read_bytes() == whole.read_bytes()
    assert not find_note_file(str(cut)).exists()


def group(leader: int) -> bool:
    """Whether any process of a group is left."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_what_cannot_be_read_keeps_no_chunk() -> None:
    """Nothing waits for the garbage collector, which comes seldom: what a worker needs does not
    grow with the input."""
    lines = [(number, row.encode()) for number, row in enumerate(rows(50), 1)]
    gc.collect()
    gc.disable()
    try:
        chunk = InputChunk(0, "in.jsonl", lines, 0)
        done = convert_chunk(Job("google", "openai_chat", errors="skip"), chunk)
        assert done.summary.left_out == 7
        assert sys.getrefcount(chunk) == 2
    finally:
        gc.enable()


MEASURED = """
import os, sys, threading, time
from pathlib import Path
from dragoman.cli import main

def peak(process):
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)

def watch():
    me = os.getpid()
    while True:
        for child in Path(f"/proc/{me}/task/{me}/children").read_text().split():
            try:
                peaks[child] = max(peaks.get(child, 0), peak(child))
            except OSError:
                pass
        time.sleep(0.01)

peaks = {}
threading.Thread(target=watch, daemon=True).start()
code = main(sys.argv[1:])
print(peak("self"), max(peaks.values()), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="what a process needed is read from /proc"
)
def test_memory_is_that_of_a_few_chunks(tmp_path: Path) -> None:
    """100,000 conversations need no more than 20,000, neither in the command nor in its workers."""
    peaks: list[list[int]] = []
    for count in (20_000, 100_000):
        source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
        with source.open("w") as file:
            file.writelines(rows(count, 60))
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *command(str(source), tmp_path, "-q", "-j", "2")],
            env=ENVIRONMENT,
            capture_output=True,
            timeout=500,
        )
        assert done.returncode == 1, done.stderr  # every seventh cannot be read
        peaks.append([int(each) for each in done.stderr.split()])
        with out.open() as file:
            assert sum(1 for _ in file) == count - (count + 3) // 7
    assert all(large < small + 12_000 for small, large in zip(*peaks, strict=True)), (
        peaks
    )  # of some 40 MB of input


def test_a_worker_whose_command_ends_in_the_middle_of_a_chunk_ends_quietly() -> None:
    ours, theirs = Pipe()
    os.write(ours.fileno(), struct.pack("!i", 1000) + b"a part")
    ours.close()
    assert convert_chunks._run_process(cast("Any", None), theirs) is None


def test_each_process_has_a_chunk_waiting_while_results_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So none idles while the command waits for the disk; more are not read ahead."""
    given: list[int] = []

    def chunks() -> Iterator[InputChunk]:
        for number, row in enumerate(rows(40), 1):
            given.append(number)
            yield InputChunk(0, "in.jsonl", [(number, row.encode())], 0)

    @contextmanager
    def threads(job: Job, jobs: int) -> Generator[list[Connection]]:
        pipes = [Pipe() for _ in range(jobs)]
        for _, theirs in pipes:
            Thread(target=convert_chunks._run_process, args=(job, theirs), daemon=True).start()
        yield [ours for ours, _ in pipes]
        for ours, _ in pipes:
            ours.close()

    monkeypatch.setattr(convert_chunks, "_start_processes", threads)
    turns: list[int] = []
    for turn, (chunk, _) in enumerate(
        convert_chunks.convert_chunks(Job("google", errors="skip"), chunks(), 2), 1
    ):
        assert chunk.lines[0][0] == turn
        turns.append(len(given) - turn)
    assert turns[0] >= 3
    assert max(turns) < convert_chunks._AHEAD * 2
    assert len(given) == 40
