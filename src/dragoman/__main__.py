"""`python -m dragoman`: the command line."""

import sys

from dragoman.cli import main

__all__: list[str] = []

sys.exit(main())
