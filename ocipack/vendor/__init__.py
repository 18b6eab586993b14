"""Vendoring: what a tree takes from elsewhere, fetched once, kept in the tree, and locked.

- `model`: what a vendor file says
- `reader`: the file itself, read strictly
- `lock`: what was fetched: sha256 or commit, and every file
- `pick`: the files of what was fetched that are wanted
- `run`: each entry resolved, fetched, compared with the tree
- `check`: the tree against the lock, with no network
"""
