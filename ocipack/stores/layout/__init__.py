"""An OCI image layout, a directory or a `.tar`, as a store (OCI image-spec, image-layout.md)."""

from ocipack.stores.layout.store import LayoutStore

__all__ = ["LayoutStore"]
