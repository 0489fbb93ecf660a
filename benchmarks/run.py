"""`onegrad bench` from a checkout."""

import sys

from onegrad.cli.commands import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench"]
    main()
