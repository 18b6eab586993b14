"""Content and its names: digests, references, descriptors, manifests, stores. No I/O."""
