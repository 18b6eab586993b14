"""Kubernetes objects: how they are written, what identifies them, which images they run."""
