"""`python -m camserver` is the `camserver` command."""

from camserver.cli import main

if __name__ == "__main__":
    main()
