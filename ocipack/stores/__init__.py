"""Places that hold content: memory, OCI layouts, registries."""
