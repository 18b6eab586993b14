"""What the built-in kinds of each Kubernetes version look like: derived data, and its reading."""
