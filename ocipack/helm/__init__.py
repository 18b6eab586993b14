"""Helm charts: what is in one, and the artifact that `helm push` makes of it. No I/O.

- `metadata`: Chart.yaml as Helm reads it and writes it as JSON
- `chart`: the archive, and the artifact
- `index`: the index.yaml of a classic repository
"""
