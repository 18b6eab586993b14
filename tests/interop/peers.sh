#!/usr/bin/env bash
# Build the tools that the interop tests and the benchmarks run against, each at its pinned version.
#
#   tests/interop/peers.sh [NAME...]    all of them, or only those named
#
# They go into $OCIPACK_PEERS, or the user's cache. What is there at the pinned version is left
# alone: DIR/.built/NAME says from what each was built. Needs go; on two idle cores the first run
# takes about 15 minutes, most of it both cosigns and flux; later ones take no time.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${OCIPACK_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/ocipack-peers}
names=(refregd countproxy crane oras regctl kustomize flux cosign3 cosign2)

# Where a name comes from: a package and its version, or a folder beside this script.
origin() {
  case $1 in
    refregd | countproxy) echo "./$1" ;;
    crane) echo github.com/google/go-containerregistry/cmd/crane@v0.22.1 ;;
    oras) echo oras.land/oras/cmd/oras@v1.3.6 ;;
    regctl) echo github.com/regclient/regclient/cmd/regctl@v0.11.7 ;;
    kustomize) echo sigs.k8s.io/kustomize/kustomize/v5@v5.8.1 ;;
    flux) echo github.com/fluxcd/flux2/v2@v2.9.5 ;;
    cosign3) echo github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3 ;;
    cosign2) echo github.com/sigstore/cosign/v2/cmd/cosign@v2.6.5 ;;
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

build() {
  case $1 in
    flux) build_flux "$2" ;;
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
