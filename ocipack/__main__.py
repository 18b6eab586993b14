"""`python -m ocipack`."""

from __future__ import annotations

from ocipack.cli import main

if __name__ == "__main__":
    main()
