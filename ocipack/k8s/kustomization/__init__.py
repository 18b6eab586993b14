"""What a kustomization reads, decided before kustomize starts.

kustomize reads any file that a kustomization names and fetches any address, and Flux lets it: a
pull request could put the runner's files into a ConfigMap. Whether one may is decided here, from
the bytes of the tree alone, and by an allow-list: a field, a plugin or a way of writing that is
not known to be harmless is refused by name.

The checks, each with a test that fails without it (tests/unit/test_kustomization_confinement.py):

1. the file means the same to every YAML reader (`k8s.yaml.nodes`)
2. every field is known, spelt in its own case (kustomize matches names in any case)
3. every path is relative, without characters that an address or a second reading needs
4. no path leads out of the tree
5. every path names what the packed tree holds: a file, or a directory with one kustomization
6. plugin configurations are of builtin kinds with known fields; Helm is refused
7. what a string says when it may be a path or a document is decided as kustomize decides it
8. no directory reaches itself or one above it; the whole is bounded

- `fields`: the allow-list
- `paths`: what a path may look like, and what it names
- `reader`: one file
- `walk`: what it reaches
"""
