"""Audio by its media types, raw samples as a WAV file, and transcripts as subtitles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from struct import pack
from typing import Any

from dragoman.content import DataPart
from dragoman.json_bytes import JsonMap

__all__ = [
    "AUDIO_FORMATS",
    "dump_subtitles",
    "is_pcm",
    "is_recording",
    "normalize_audio_type",
    "read_sample_rate",
    "wrap_wav",
]

AUDIO_FORMATS = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
"""OpenAI's name of a format of speech, which others took → its media type."""
_SPELLINGS = {
    "audio/mp3": "audio/mpeg",
    "audio/x-mp3": "audio/mpeg",
    "audio/opus": "audio/ogg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/x-aac": "audio/aac",
    "audio/l16": "audio/pcm",
}
_RATE = re.compile(r"rate=([0-9]{4,6})\b", re.IGNORECASE)
_USUAL_RATE = 24_000
"""Samples of raw audio in a second, where nothing is said: as OpenAI and Gemini make it."""
_SAMPLE_BYTES = 2


def normalize_audio_type(mime_type: str) -> str:
    """Returns a media type without its parameters, in the usual spelling."""
    plain = mime_type.partition(";")[0].strip().lower()
    return _SPELLINGS.get(plain, plain)


def is_pcm(mime_type: str) -> bool:
    """True if a media type is that of raw samples, such as `audio/L16;rate=24000`."""
    return normalize_audio_type(mime_type) == "audio/pcm"


def read_sample_rate(mime_type: str) -> int:
    """Returns the samples in a second of raw audio of this media type."""
    match = _RATE.search(mime_type)
    return int(match[1]) if match else _USUAL_RATE


def is_recording(mime_type: str) -> bool:
    """True if a file of this type may be heard as audio: audio, video with a sound track, or what
    nobody knows."""
    plain = normalize_audio_type(mime_type)
    return plain.startswith(("audio/", "video/")) or plain in (
        "application/ogg",
        "application/octet-stream",
    )


def wrap_wav(part: DataPart) -> DataPart:
    """Returns raw audio samples (16 bits, one channel, little endian) as a WAV file."""
    rate, size = read_sample_rate(part.mime_type), len(part.data)
    # The head of a RIFF file: format 1 is plain samples, and sizes leave out what precedes them.
    sample_format = pack(
        "<HHIIHH", 1, 1, rate, rate * _SAMPLE_BYTES, _SAMPLE_BYTES, 8 * _SAMPLE_BYTES
    )
    head = b"RIFF" + pack("<I", 36 + size) + b"WAVEfmt " + pack("<I", 16) + sample_format
    return DataPart(head + b"data" + pack("<I", size) + part.data, "audio/wav", part.name)


def dump_subtitles(segments: Sequence[JsonMap], *, vtt: bool) -> str:
    """Writes the segments of transcribed audio (`start` and `end` in seconds, `text`) as subtitles:
    SRT, or WebVTT."""
    mark = "." if vtt else ","
    cues: list[str] = []
    for number, segment in enumerate(segments, 1):
        times = f"{_format_cue_time(segment.get('start'), mark)} --> {_format_cue_time(segment.get('end'), mark)}"
        cue = f"{times}\n{_line(segment.get('text'))}\n"
        cues.append(cue if vtt else f"{number}\n{cue}")
    return ("WEBVTT\n\n" if vtt else "") + "\n".join(cues)


def _line(text: Any) -> str:
    """Returns a text in which no line can be taken for another cue."""
    return " ".join(str(text or "").split()).replace("-->", "->")


def _format_cue_time(seconds: Any, mark: str) -> str:
    """Returns a time of the audio in a subtitle's cue, `HH:MM:SS` and milliseconds after the
    `mark`."""
    number = seconds if isinstance(seconds, int | float) and 0 <= seconds < 360_000 else 0
    thousandths = round(number * 1000)
    minutes, rest = divmod(thousandths, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}{mark}{rest % 1000:03}"
