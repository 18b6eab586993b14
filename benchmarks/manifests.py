"""Manifests to validate: generated, the same in every run; and the schemas for the peer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from ocipack.k8s.resource import resources
from ocipack.k8s.schemas.catalog import Catalog
from ocipack.k8s.yaml.documents import read
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.validate.crd import Conversion, custom_kinds

FILES, EACH = 500, 4

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: releases.shop.example.com
spec:
  group: shop.example.com
  scope: Namespaced
  names: {kind: Release, plural: releases, singular: release}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              required: [chart, interval]
              properties:
                chart: {type: string, minLength: 1}
                interval: {type: string, pattern: '^([0-9]+(ms|s|m|h))+$'}
                suspend: {type: boolean}
                history: {type: integer, minimum: 0}
                values:
                  type: object
                  x-kubernetes-preserve-unknown-fields: true
"""

_META = """\
metadata:
  name: {name}
  namespace: team-{team}
  labels:
    app.kubernetes.io/name: {name}
    app.kubernetes.io/part-of: shop
"""

_DEPLOYMENT = (
    "apiVersion: apps/v1\nkind: Deployment\n"
    + _META
    + """\
spec:
  replicas: {count}
  revisionHistoryLimit: 3
  selector:
    matchLabels:
      app.kubernetes.io/name: {name}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {name}
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: "9797"
    spec:
      serviceAccountName: {name}
      securityContext:
        runAsNonRoot: true
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: main
          image: registry.example.com/shop/{name}@sha256:{digest}
          imagePullPolicy: IfNotPresent
          args: ["--port=8080", "--level=info"]
          env:
            - name: POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            - name: DB_URL
              valueFrom:
                secretKeyRef: {{name: db-{number}, key: url}}
          ports:
            - {{name: http, containerPort: 8080, protocol: TCP}}
            - name: metrics
              containerPort: 9797
          livenessProbe:
            httpGet: {{path: /healthz, port: http}}
            initialDelaySeconds: 5
          readinessProbe:
            httpGet:
              path: /readyz
              port: http
          resources:
            limits: {{cpu: 500m, memory: 256Mi}}
            requests:
              cpu: 100m
              memory: 64Mi
          securityContext:
            allowPrivilegeEscalation: false
            capabilities: {{drop: [ALL]}}
          volumeMounts:
            - name: data
              mountPath: /data
      volumes:
        - name: data
          emptyDir: {{}}
"""
)
_SERVICE = (
    "apiVersion: v1\nkind: Service\n"
    + _META
    + """\
spec:
  type: ClusterIP
  selector:
    app.kubernetes.io/name: {name}
  ports:
    - name: http
      port: 80
      targetPort: http
"""
)
_CONFIG = (
    "apiVersion: v1\nkind: ConfigMap\n"
    + _META
    + """\
data:
  LOG_LEVEL: info
  RETRIES: "{count}"
  config.yaml: |
    server:
      port: 8080
      hosts: [a.example.com, b.example.com]
    features:
      fast: true
"""
)
_INGRESS = (
    "apiVersion: networking.k8s.io/v1\nkind: Ingress\n"
    + _META
    + """\
spec:
  ingressClassName: nginx
  tls:
    - hosts: [{name}.example.com]
      secretName: {name}-tls
  rules:
    - host: {name}.example.com
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: {name}
                port: {{name: http}}
"""
)
_POLICY = (
    "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n"
    + _META
    + """\
spec:
  podSelector:
    matchLabels: {{app.kubernetes.io/name: {name}}}
  policyTypes: [Ingress]
  ingress:
    - from:
        - namespaceSelector:
            matchLabels: {{team: t{team}}}
      ports:
        - {{protocol: TCP, port: 8080}}
"""
)
_AUTOSCALER = (
    "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n"
    + _META
    + """\
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}
  minReplicas: 1
  maxReplicas: 9
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {{type: Utilization, averageUtilization: 70}}
"""
)
_ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\n" + _META
_RELEASE = (
    "apiVersion: shop.example.com/v1\nkind: Release\n"
    + _META
    + """\
spec:
  chart: shop
  interval: {count}m
  history: 3
  values:
    image: {{tag: v1.{count}.0}}
    replicas: {count}
"""
)
KINDS = (
    *(_DEPLOYMENT, _SERVICE, _CONFIG, _INGRESS),
    *(_POLICY, _AUTOSCALER, _ACCOUNT, _RELEASE),
)


def document(number: int, dice: Random) -> str:
    """One document; the kinds come in turn."""
    return KINDS[number % len(KINDS)].format(
        name=f"app-{number}",
        number=number,
        team=number % 20,
        count=dice.randint(1, 9),
        digest=f"{dice.getrandbits(256):064x}",
    )


def documents(count: int) -> Iterator[str]:
    """So many documents."""
    dice = Random(7)  # noqa: S311 - reproducible noise
    return (document(number, dice) for number in range(count))


def write(folder: Path, spoil: Callable[[int, str], str] = lambda _, text: text) -> None:
    """Write 2,000 documents in 500 files, each through `spoil`."""
    folder.mkdir()
    every = [spoil(number, text) for number, text in enumerate(documents(FILES * EACH))]
    for file in range(FILES):
        text = "---\n".join(every[file * EACH : (file + 1) * EACH])
        (folder / f"f{file:04}.yaml").write_text(text)


def write_stream(path: Path, size: int) -> None:
    """Write at least `size` bytes of documents into one file."""
    dice, number = Random(7), 0  # noqa: S311 - as above
    with path.open("w") as file:
        while file.tell() < size:
            file.write(document(number, dice) + "---\n")
            number += 1


_FAULTS: tuple[tuple[str, str, str], ...] = (
    ("an unknown field", "\nspec:\n", "\nspec:\n  typoField: 1\n"),
    ("a field of metadata that is none", "\n  labels:\n", "\n  label: x\n  labels:\n"),
    ("a label that is a number", "part-of: shop", "part-of: 5"),
    ("a truth value for a text", "  namespace: ", "  namespace: true #"),
    ("a text for a number", "replicas: ", "replicas: a"),
    ("a number for a text in data", 'RETRIES: "', "RETRIES: 5 #"),
    ("a missing required field", "  maxReplicas: 9\n", ""),
    ("a pattern that does not match", "m\n  history", " minutes\n  history"),
    ("a mapping for a list", "  rules:\n    - host:", "  rules:\n      host:"),
    ("no name", "metadata:\n  name: ", "metadata:\n  nam: "),
    ("a key that is there twice", "\nspec:\n", "\nspec: {}\nspec:\n"),
    ("text that is no YAML", "\n  labels:\n", "\n  labels: [\n"),
    ("a kind of no API", "kind: Service\n", "kind: Servce\n"),
    ("an API that is gone", "autoscaling/v2\n", "autoscaling/v2beta2\n"),
    ("a port for nobody", "containerPort: 9797", "containerPort: 99797"),
    ("a policy that is none", "IfNotPresent", "Sometimes"),
    ("a name that is none", "  name: app-", "  name: App_"),
)


def spoiled(number: int, text: str) -> str:
    """Break every fifth document in one of several ways, if its kind lets it."""
    return fault(number, text)[1]


def fault(number: int, text: str) -> tuple[str, str]:
    """The name of what is wrong with a document (empty: nothing), and the document."""
    if number % 5:
        return "", text
    for step in range(len(_FAULTS)):
        name, old, new = _FAULTS[(number // 5 + step) % len(_FAULTS)]
        if old in text:
            return name, text.replace(old, new, 1)
    return "", text


def write_schemas(folder: Path) -> None:
    """Write our schemas as the peer wants them: one file for each kind, all it needs inside."""
    folder.mkdir()
    catalog = Catalog.of()
    for api in catalog.api_versions():
        for kind in catalog.served(api):
            text = catalog.document(catalog.find(api, kind))
            (folder / _name(api, kind)).write_text(text)
    (resource,) = resources(read(CRD.encode(), Dialect.FLUX), Dialect.FLUX)
    (custom,) = custom_kinds(resource)
    schema = Conversion(custom).document(catalog)
    (folder / _name(custom.api_version, custom.kind)).write_text(json.dumps(schema))


def _name(api: str, kind: str) -> str:
    group, _, version = api.rpartition("/")
    middle = f"-{group.partition('.')[0]}" if group else ""
    return f"{kind.lower()}{middle}-{version}.json"
