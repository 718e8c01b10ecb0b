"""Writes the output of `dragoman convert`, with a note of the progress beside it, so that an
interrupted run can continue.

The note is replaced only after the output that it describes is on the disk. So a run continues at
the last note, and overwrites what came after it.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

from dragoman.cli.convert_chunks import ConvertedChunk, InputChunk, Summary
from dragoman.errors import HistoryError, SettingsError
from dragoman.json_bytes import Json

__all__ = ["NOTED", "Note", "ConvertOutput", "find_note_file"]

NOTED = 16
"""Chunks between two notes."""


class Note(msgspec.Struct, frozen=True):
    """The progress of a run."""

    how: Json
    """The options of the run, as JSON."""
    behind: tuple[int, int] = (0, 0)
    """The index of the file and the number of the last finished conversation in it."""
    output: int = 0
    """Bytes of the output so far."""
    report: int = 0
    """Bytes of the report so far."""
    summary: Summary = Summary()
    """The numbers so far."""


def find_note_file(output: str) -> Path:
    """Returns the path of the note of an unfinished run."""
    return Path(f"{output}.resume")


def _get_size(path: str) -> int:
    """Returns the bytes of an output file, or 0 if it does not exist."""
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0


class ConvertOutput:
    """The output, the report and the note of a run. Standard output has no note.

    Args:
        output: path, or `-`.
        report: path of the report, or None for no report.
        settings: the options of the run, for the note.
        resume: continue an unfinished run.

    Raises:
        SettingsError: the unfinished run had other options.
        HistoryError: its files changed since.
    """

    def __init__(self, output: str, report: str | None, settings: Json, *, resume: bool) -> None:
        """Creates the writer of converted conversations; the files are opened on entering."""
        self._path, self._report_path = output, report
        self._note_path = find_note_file(output) if output != "-" else None
        self.note = Note(settings)
        if resume and self._note_path is not None:
            self.note = self._read_note(self._note_path, settings)
        self._behind = 0
        self._files = ExitStack()

    @property
    def is_whole(self) -> bool:
        """True if there is an output without a note, as a finished run leaves it."""
        return (
            self._note_path is not None
            and not self._note_path.exists()
            and Path(self._path).exists()
        )

    def __enter__(self) -> Self:
        """Opens the output and the report of `convert`."""
        # Closes what is open already if a later file cannot be opened.
        with self._files as files:
            if self._note_path is not None:
                # Before the output, so that an output without a note is a whole one.
                self._write_note()
            self._output = self._open_output(files, self._path, self.note.output)
            self._report = None
            if self._report_path is not None:
                self._report = self._open_output(files, self._report_path, self.note.report)
            self._files = files.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Saves the progress of an unfinished output."""
        # The note before holds.
        with self._files, suppress(OSError):
            if self._behind:
                self._save_progress()

    def add(self, chunk: InputChunk, done: ConvertedChunk) -> None:
        """Writes the result of a chunk. Every few chunks the progress is saved; after an
        interruption the chunks since then are converted again."""
        self._output.write(done.output)
        self._output.flush()
        report = self.note.report
        if self._report is not None:
            self._report.write(done.report)
            self._report.flush()
            report += len(done.report)
        self.note = Note(
            self.note.how,
            (chunk.file, done.last) if done.last else self.note.behind,
            self.note.output + len(done.output),
            report,
            self.note.summary + done.summary,
        )
        self._behind += 1
        # Waiting for the disk after each chunk would take most of the time.
        if self._behind == NOTED:
            self._save_progress()

    def finish(self) -> None:
        """Deletes the note once the whole output is on the disk."""
        if self._note_path is not None:
            self._sync_to_disk()
            self._note_path.unlink()
        self._behind = 0

    def _save_progress(self) -> None:
        """Writes the note after the output that it describes, so that it is right after a power
        failure too."""
        if self._note_path is not None:
            self._sync_to_disk()
            self._write_note()
        self._behind = 0

    def _sync_to_disk(self) -> None:
        """Waits until output and report are on the disk."""
        for path, file in ((self._path, self._output), (self._report_path, self._report)):
            if file is not None and path != "-":
                file.flush()
                os.fsync(file.fileno())

    def _read_note(self, path: Path, settings: Json) -> Note:
        """Returns the note of an unfinished output, or a new one."""
        try:
            note = msgspec.json.decode(path.read_bytes(), type=Note)
        except FileNotFoundError:
            return Note(settings)
        except ValueError as error:
            raise HistoryError(
                f"{path} is not the note of an unfinished run: {error}; start without --resume"
            ) from error
        if other := [
            key for key in {**note.how, **settings} if note.how.get(key) != settings.get(key)
        ]:
            raise SettingsError(
                f"the unfinished run of {self._path} had another {', '.join(sorted(other))}; use the same, or start without --resume"
            )
        for file, size in ((self._path, note.output), (self._report_path, note.report)):
            if file is not None and _get_size(file) < size:
                raise HistoryError(
                    f"{file} is shorter than its unfinished run left it; start without --resume"
                )
        return note

    def _write_note(self) -> None:
        """Replaces the note about the output at once, so that a crash leaves the old or the new
        one."""
        assert self._note_path is not None
        new = self._note_path.with_name(self._note_path.name + "~")
        with new.open("wb") as file:
            file.write(msgspec.json.encode(self.note))
            file.flush()
            os.fsync(file.fileno())
        # Renaming is atomic, so there is always a complete note.
        new.replace(self._note_path)

    @staticmethod
    def _open_output(files: ExitStack, path: str, size: int) -> BinaryIO:
        """Opens a file to write after its first `size` bytes."""
        if path == "-":
            return sys.stdout.buffer
        file = files.enter_context(Path(path).open("r+b" if size else "wb"))  # noqa: SIM115 it is in a with block
        # Drops what an interrupted run wrote after its last note.
        file.truncate(size)
        file.seek(size)
        return file
