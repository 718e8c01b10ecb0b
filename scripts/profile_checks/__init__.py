"""Checks of the table of model profiles. `python -m profile_checks` prints what it foresees of recorded
traffic, and which settings would still be refused after lowering, by a table of facts beside the
repository. `python -m profile_checks.compare PROVIDER FILE…` compares it with what providers list."""
