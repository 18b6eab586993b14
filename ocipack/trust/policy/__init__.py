"""What must be true before anything is trusted. Silence means no."""

from ocipack.trust.policy.model import Policy

__all__ = ["Policy"]
