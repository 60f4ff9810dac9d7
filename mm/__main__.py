"""`python3 -m mm` and `python3 path/to/mm`: hands over to cli.main. Runs on old Pythons too, to say that they are too old."""

import os
import sys

if sys.version_info < (3, 9):
    sys.stderr.write("mm: Python 3.9 or later is needed, this is %d.%d\n" % sys.version_info[:2])
    sys.exit(2)

if not __package__:  # started by the folder's path: its parent is where the package is found
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from mm import cli  # noqa: E402 (the path comes first)

if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:]))
