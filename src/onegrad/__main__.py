"""`python -m onegrad`."""

from onegrad.cli.commands import main

if __name__ == "__main__":
    main()
