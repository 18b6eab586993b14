"""Turn a GitOps tree into a signed, digest-pinned OCI artifact; deliver nothing else."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
