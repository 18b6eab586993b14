"""Where image references stand inside Kubernetes objects."""
