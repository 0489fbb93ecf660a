"""`python -m onegrad`."""

from onegrad.cli import main

if __name__ == "__main__":
    main()
