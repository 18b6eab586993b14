"""YAML as Kubernetes reads it.

No Python library reads YAML as kubectl and kustomize do: what is text, a number or a truth value,
what a repeated key means and where one document ends all differ, and a check that sees another
value than the cluster is worse than none. Only libyaml's events are used; the rules of the two Go
readers (`sigs.k8s.io/yaml` behind kubectl, kyaml behind kustomize and Flux) are ours.

- `limits`: the numbers that bound every reading
- `scalars`: what one scalar means in each dialect
- `events`: the seam to libyaml, and positions
- `values`: from events to values
- `nodes`: the careful reading of a file that must mean one thing to everyone
- `documents`: a stream, split as the Go readers split it
"""
