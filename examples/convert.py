"""A file of conversations, in whatever formats they are, becomes one of Anthropic's bodies."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from dragoman import formats
from dragoman.cli import main as dragoman

ROWS = [
    {
        "messages": [
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": "Hello."},
        ],
        "seed": 7,
    },
    {
        "contents": [
            {"role": "user", "parts": [{"text": "Hi."}]},
            {"role": "model", "parts": [{"text": "Hello."}]},
        ]
    },
    {"conversations": [{"from": "human", "value": "Hi."}, {"from": "gpt", "value": "Hello."}]},
    [{"type": "human", "data": {"content": "Hi."}}, {"type": "ai", "data": {"content": "Hello."}}],
]


def main() -> None:
    with TemporaryDirectory() as folder:
        source, out, report = (
            Path(folder, name) for name in ("in.jsonl", "out.jsonl", "report.jsonl")
        )
        source.write_text("".join(json.dumps(row) + "\n" for row in ROWS))

        # as `dragoman convert in.jsonl --to anthropic -o out.jsonl --report report.jsonl`
        dragoman(
            ["convert", str(source), "--to", "anthropic", "-o", str(out), "--report", str(report)]
        )
        print(out.read_text(), end="")
        print(report.read_text(), end="")

    made = formats.convert(ROWS[0], "google")  # one conversation, in a program
    print(made.format, "→", json.dumps(made.payload), [str(loss) for loss in made.losses])


if __name__ == "__main__":
    main()
