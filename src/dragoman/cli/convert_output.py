"""What `dragoman convert` writes, so that an unfinished run can go on: beside the output stands a
note of how far it is."""

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
"""Chunks after which it is made sure that they are on the disk, and noted."""


class Note(msgspec.Struct, frozen=True):
    """How far a run is."""

    how: Json
    """What was asked for, as JSON has it."""
    behind: tuple[int, int] = (0, 0)
    """Place of the file, and number of the conversation in it, that is done."""
    output: int = 0
    """Bytes of the output up to there."""
    report: int = 0
    """Bytes of the report up to there."""
    summary: Summary = Summary()
    """What became of the conversations up to there."""


def find_note_file(output: str) -> Path:
    """Where the note of a run stands while it is not finished."""
    return Path(f"{output}.resume")


class ConvertOutput:
    """The output, the report and the note of a run; standard output has no note.

    Args:
        output: path, or `-`.
        report: path of the report; `None`: there is none.
        how: what was asked for, as the note keeps it.
        resume: whether to go on with an unfinished run.

    Raises:
        SettingsError: the unfinished run was another one.
        HistoryError: its files are not as it left them.
    """

    def __init__(self, output: str, report: str | None, settings: Json, *, resume: bool) -> None:
        self._path, self._report_path = output, report
        self._note_path = None if output == "-" else find_note_file(output)
        self.note = (
            self._read_note(settings) if resume and self._note_path is not None else Note(settings)
        )
        self._behind = 0
        self._files = ExitStack()

    @property
    def is_whole(self) -> bool:
        """Whether there is an output without a note, as a run that has ended leaves it."""
        return (
            self._note_path is not None
            and not self._note_path.exists()
            and Path(self._path).exists()
        )

    def __enter__(self) -> Self:
        with self._files as files:
            if self._note_path is not None:
                # Before the output, so that an output without a note is a whole one.
                self._write_note()
            self._report = None
            self._output = self._open(files, self._path, self.note.output)
            self._report = (
                None
                if self._report_path is None
                else self._open(files, self._report_path, self.note.report)
            )
            self._files = files.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Notes how far it is, where it is not finished."""
        # The note before holds.
        with self._files, suppress(OSError):
            if self._behind:
                self._save_progress()

    def add(self, chunk: InputChunk, done: ConvertedChunk) -> None:
        """What came of a chunk. It is noted now and then, once it is on the disk: what comes behind
        the last note is done again."""
        self._output.write(done.output)
        self._output.flush()
        if self._report is not None:
            self._report.write(done.report)
            self._report.flush()
        self.note = Note(
            self.note.how,
            (chunk.file, done.last) if done.last else self.note.behind,
            self.note.output + len(done.output),
            self.note.report + (len(done.report) if self._report is not None else 0),
            self.note.summary + done.summary,
        )
        self._behind += 1
        if self._behind == NOTED:
            self._save_progress()

    def finish(self) -> None:
        """The run is done, and all of it on the disk."""
        if self._note_path is not None:
            self._sync()
            self._note_path.unlink()
        self._behind = 0

    def _save_progress(self) -> None:
        """Notes how far it is, behind what it tells of, so that the note holds after a loss of
        power too."""
        if self._note_path is not None:
            self._sync()
            self._write_note()
        self._behind = 0

    def _sync(self) -> None:
        for path, file in ((self._path, self._output), (self._report_path, self._report)):
            if file is not None and path != "-":
                file.flush()
                os.fsync(file.fileno())

    def _read_note(self, settings: Json) -> Note:
        assert self._note_path is not None
        try:
            note = msgspec.json.decode(self._note_path.read_bytes(), type=Note)
        except FileNotFoundError:
            return Note(settings)
        except ValueError as error:
            raise HistoryError(
                f"{self._note_path} is no note of an unfinished run: {error}; begin without --resume"
            ) from error
        if other := [
            key for key in {**note.how, **settings} if note.how.get(key) != settings.get(key)
        ]:
            raise SettingsError(
                f"the unfinished run of {self._path} had another {', '.join(sorted(other))}; give it the same, or begin without --resume"
            )
        for path, size in ((self._path, note.output), (self._report_path, note.report)):
            if (
                path is not None
                and (Path(path).stat().st_size if Path(path).exists() else 0) < size
            ):
                raise HistoryError(
                    f"{path} is shorter than its unfinished run left it; begin without --resume"
                )
        return note

    def _write_note(self) -> None:
        assert self._note_path is not None
        new = self._note_path.with_name(self._note_path.name + "~")
        with new.open("wb") as file:
            file.write(msgspec.json.encode(self.note))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._note_path)

    @staticmethod
    def _open(files: ExitStack, path: str, size: int) -> BinaryIO:
        """A file that goes on behind so many bytes."""
        if path == "-":
            return sys.stdout.buffer
        file = files.enter_context(Path(path).open("r+b" if size else "wb"))  # noqa: SIM115 it is in a with block
        file.truncate(size)
        file.seek(size)
        return file
