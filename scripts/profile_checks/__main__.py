"""Prints the counts of `make profiles`; exit code 1 if one is worse than it may be."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

from profile_checks.matrix import count_left
from profile_checks.recordings import find_recordings, is_of_the_model, predict

ROOT = Path(__file__).resolve().parents[2]
TRAFFIC = Path(os.environ.get("DRAGOMAN_TRAFFIC") or ROOT.parent / "shared" / "traffic")
FACTS = Path(
    os.environ.get("DRAGOMAN_FACTS") or ROOT.parent / "shared" / "reference" / "models.toml"
)
MOST_LEFT = 14
LEAST_FORESEEN = 0.8


def main() -> int:
    """Prints all counts. Returns the exit code."""
    is_good = True
    if TRAFFIC.is_dir():
        is_good = _print_recordings()
    else:
        print(f"recorded traffic is absent: {TRAFFIC} (set DRAGOMAN_TRAFFIC)")
    if not FACTS.is_file():
        print(f"the table of facts is absent: {FACTS} (set DRAGOMAN_FACTS)")
        return 0 if is_good else 1
    before, left, total = count_left(FACTS, verbose="-v" in sys.argv)
    print(f"settings x models: {total}; refused as asked: {before}; after lowering: {left}")
    return 0 if is_good and left <= MOST_LEFT else 1


def _print_recordings() -> bool:
    """Prints the counts of recorded traffic. Returns whether they are good enough."""
    accepted = false = refused = foreseen = 0
    reasons: Counter[str] = Counter()
    for recording in find_recordings(TRAFFIC):
        found = predict(recording)
        if recording.status == 200:
            accepted += 1
            if found:
                false += 1
                reasons[f"{recording.vendor}.{recording.entry}: {', '.join(found)}"] += 1
                if "-v" in sys.argv:
                    print("falsely refused:", recording.name, *found)
        elif is_of_the_model(recording):
            refused += 1
            foreseen += bool(found)
            if "-v" in sys.argv:
                print("refused:", recording.name, "foreseen as" if found else "MISSED", *found)
    print(f"accepted requests of known models: {accepted}; falsely refused: {false}")
    for reason, count in reasons.most_common():
        print(f"  {count} x {reason}")
    print(f"refused for what the model lacks: {refused}; foreseen: {foreseen}")
    return not false and foreseen >= LEAST_FORESEEN * refused


if __name__ == "__main__":
    sys.exit(main())
