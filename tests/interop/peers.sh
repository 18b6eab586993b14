#!/usr/bin/env bash
# Build the tools that the interop tests and the benchmarks run against, each at its pinned version.
#
#   tests/interop/peers.sh [NAME...]    all of them, or only those named
#
# They go into $OCIPACK_PEERS, or the user's cache. What is there at the pinned version is left
# alone: DIR/.built/NAME says from what each was built. Needs go; on two idle cores the first run
# takes about 15 minutes, most of it both cosigns, helm and flux; later ones take no time.
#
# kube-apiserver, source-controller and kustomize-controller, which tests/interop/real_flux.py runs,
# are built only by name: they take another 20 minutes. So is policy-tester, of sigstore's
# policy-controller, which tests/interop/test_policy_tester.py asks: 3 minutes; and conformance, the
# suite of the distribution specification, which comes from its repository by git.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${OCIPACK_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/ocipack-peers}
names=(refregd countproxy crane oras regctl kustomize kubeconform helm flux cosign3 cosign2)

# Where a name comes from: a package and its version, or a folder beside this script.
origin() {
  case $1 in
    refregd | countproxy) echo "./$1" ;;
    crane) echo github.com/google/go-containerregistry/cmd/crane@v0.22.1 ;;
    oras) echo oras.land/oras/cmd/oras@v1.3.6 ;;
    regctl) echo github.com/regclient/regclient/cmd/regctl@v0.11.7 ;;
    kubeconform) echo github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0 ;;
    kustomize) echo sigs.k8s.io/kustomize/kustomize/v5@v5.8.1 ;;
    helm) echo helm.sh/helm/v4/cmd/helm@v4.3.2 ;;
    flux) echo github.com/fluxcd/flux2/v2@v2.9.5 ;;
    cosign3) echo github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3 ;;
    cosign2) echo github.com/sigstore/cosign/v2/cmd/cosign@v2.6.5 ;;
    kube-apiserver) echo k8s.io/kubernetes@v1.36.3 ;;
    source-controller | kustomize-controller) echo "github.com/fluxcd/$1@v1.9.3" ;;
    policy-tester) echo github.com/sigstore/policy-controller@v0.13.0 ;;
    conformance) echo https://github.com/opencontainers/distribution-spec@967efdc079b91785ad18c77cc4f8991a47feefbf ;;
    *) echo "peers.sh: no such peer: $1" >&2; return 2 ;;
  esac
}

# What a build depends on: the pinned version, or the sources in this repository.
stamp() {
  case $2 in
    ./*) (cd "$here/go" && cat go.mod go.sum "$1"/*.go | sha256sum) ;;
    *) echo "$2" ;;
  esac
}

# flux has a replace directive, which `go install` refuses, and embeds manifests that its own
# build downloads; no command that is used here reads them, so an empty one stands in.
build_flux() {
  local source=$work/flux
  cp -r "$(go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')" "$source"
  chmod -R u+w "$source"
  mkdir -p "$source/cmd/flux/manifests"
  echo '# empty' >"$source/cmd/flux/manifests/empty.yaml"
  (cd "$source" && go build -ldflags="-s -w -X main.VERSION=${1##*@v}" -o "$work/bin/" ./cmd/flux)
}

# These have modules inside of the module, by replace directives, which `go install` refuses: the
# main package $1 of module $2 is built from a module that has the same ones, theirs at version $3.
build_main() {
  local module=${2%@*} version=${2#*@} source
  source=$(go mod download -json "$2" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
  mkdir "$work/main"
  {
    printf 'module peers\n%s\nrequire %s %s\n' "$(grep -m1 '^go ' "$source/go.mod")" "$module" "$version"
    grep '=>' "$source/go.mod" | sed -e 's/^replace //' -e 's/^[[:space:]]*/replace /' |
      awk -v version="$3" '$4 ~ /^\.\// { $4 = $2 " " version } { print }'
  } >"$work/main/go.mod"
  printf '//go:build tools\npackage peers\nimport _ "%s"\n' "$1" >"$work/main/tools.go"
  (cd "$work/main" && export GOFLAGS=-mod=mod && go mod tidy -e && go build -ldflags='-s -w' -o "$work/bin/" "$1")
  rm -rf "$work/main"
}

# Its go.mod has replace directives, too, all of them by version: built as the main module it is.
build_tester() {
  local source=$work/tester
  cp -r "$(go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')" "$source"
  chmod -R u+w "$source"
  (cd "$source" && go build -mod=mod -buildvcs=false -ldflags='-s -w' -o "$work/bin/" ./cmd/tester)
}

# No release of that module can be had from a proxy of modules.
build_conformance() {
  git init -q "$work/spec"
  git -C "$work/spec" fetch -q --depth 1 "${1%@*}" "${1##*@}"
  git -C "$work/spec" -c advice.detachedHead=false checkout -q FETCH_HEAD
  (cd "$work/spec/conformance" && go build -ldflags='-s -w' -o "$work/bin/conformance" .)
}

build() {
  case $1 in
    conformance) build_conformance "$2" ;;
    policy-tester) build_tester "$2" ;;
    flux) build_flux "$2" ;;
    kube-apiserver) build_main k8s.io/kubernetes/cmd/kube-apiserver "$2" "v0.${2##*@v1.}" ;;
    source-controller | kustomize-controller) build_main "${2%@*}" "$2" "${2##*@}" ;;
    refregd | countproxy) (cd "$here/go" && go build -mod=readonly -o "$work/bin/" "$2") ;;
    *) GOBIN=$work/bin go install -ldflags='-s -w' "$2" ;;
  esac
}

mkdir -p "$dir/.built"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec 9>"$dir/.lock"
flock 9 # two runs at once would build everything twice
export CGO_ENABLED=0
cd "$work" # outside any module
[ $# -gt 0 ] || set -- "${names[@]}"
for name; do
  from=$(origin "$name")
  want=$(stamp "$name" "$from")
  if [ -x "$dir/$name" ] && [ "$(cat "$dir/.built/$name" 2>/dev/null)" = "$want" ]; then continue; fi
  echo "building $name from $from" >&2
  rm -rf "$work/bin" && mkdir "$work/bin"
  build "$name" "$from"
  rm -f "$dir/.built/$name"
  mv "$work/bin/"* "$dir/$name"
  echo "$want" >"$dir/.built/$name"
done
