"""Carry images, charts and artifacts across an air gap, with all that proves them.

- `record`, `site`: what is in an archive, and how it is read again
- `contents`, `save`: from proven places to the members of an archive, and the stream of them
- `check`: whether an archive is whole, and what its items are made of
- `load`: from an archive into a registry
- `compare`: what two archives have that the other has not

An archive is an OCI image layout in a tar (docs/airgap.md).
"""
