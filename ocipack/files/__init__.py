"""The local file system: a tree read once, a private place to work, a directory written whole."""
