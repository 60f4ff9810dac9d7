"""`python3 -m mm`, `python3 path/to/mm`, and the zipapp: hands over to cli.main."""

from __future__ import annotations

import os
import sys

if not __package__:  # started by the folder's path: its parent is where the package is found
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from mm import cli  # noqa: E402 (the path comes first)

if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:]))
