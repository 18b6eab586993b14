"""Registries (OCI distribution-spec 1.1): one repository each as a Store.

`registries.Registries` makes the stores of a run; they share connections, tokens and what is
known about each registry.
"""
