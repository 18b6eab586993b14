#!/bin/sh
# Flux puts in its own variables and takes one of two dollars away: the doubled ones are the shell's.
set -eu
for target in podinfo storefront console; do
  url="http://$${target}.$${NAMESPACE}.svc/"
  curl --silent --show-error --fail --max-time 5 --output /dev/null "$$url"
  echo "$$url answers in ${CLUSTER_NAME}"
done
