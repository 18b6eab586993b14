#!/bin/sh
# Ship examples/hello into an OCI layout, verify it, and see two tampered copies refused.
# Needs `ocipack` and `python3` on PATH; writes into ./demo and nowhere else.
set -eu
rm -rf demo && mkdir demo
export COSIGN_PASSWORD=ocipack-example   # of the throw-away key in keys-example/, never of a real one

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
refused() { # run a command that must be refused with exit code 1
  code=0; "$@" || code=$?
  [ "$code" = 1 ] || { echo "expected exit code 1, got $code: $*" >&2; exit 1; }
}

say '1. Ship: pack, render, check, copy, sign, verify, then tag'
ocipack ship examples/hello --to ocidir://demo/site:stable --key keys-example/cosign.key

say '2. Verify: the digest, and who signed it'
place=$(ocipack verify ocidir://demo/site:stable --key keys-example/cosign.pub --explain)
echo "$place"

say '3. Pull: verified first, unpacked then'
ocipack pull "$place" --key keys-example/cosign.pub -o demo/unpacked
ls demo/unpacked

say '4. A copy whose manifest was altered is refused'
cp -r demo/site demo/altered-manifest
python3 examples/tamper.py demo/altered-manifest manifest
refused ocipack verify ocidir://demo/altered-manifest:stable --key keys-example/cosign.pub

say '5. A copy whose layer was altered is refused'
cp -r demo/site demo/altered-layer
python3 examples/tamper.py demo/altered-layer layer
refused ocipack pull ocidir://demo/altered-layer:stable --key keys-example/cosign.pub -o demo/never
test ! -e demo/never

say 'Done: a verified artifact in demo/site, and two tampered copies refused.'
