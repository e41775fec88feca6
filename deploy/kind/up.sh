#!/usr/bin/env bash
# From nothing to the first scheduled pods on kind. Needs docker, kind, kubectl and helm.
# Run it again after a change: it rebuilds the image and upgrades the release.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cluster=greensched
repository=localhost/greensched

for program in docker kind kubectl helm; do
  command -v "$program" >/dev/null || { echo "up.sh: $program is missing; see docs/install.md" >&2; exit 1; }
done

if ! kind get clusters | grep -qx "$cluster"; then
  kind create cluster --config "$here/cluster.yaml" --wait 120s
fi
# Not under /tmp, where another user could put a file of that name first.
export KUBECONFIG="$root/build/kind/kubeconfig"
(umask 077 && mkdir -p "$root/build/kind")
kind export kubeconfig --name "$cluster" --kubeconfig "$KUBECONFIG"

# The tag is the image's content, so that a rebuilt image rolls its Deployments.
images=()
for component in extender operator; do
  id=$(docker build --quiet --target "$component" "$root")
  tag=${id#sha256:}
  tag=${tag:0:12}
  docker tag "$id" "$repository-$component:$tag"
  kind load docker-image --name "$cluster" "$repository-$component:$tag"
  images+=(--set "$component.image.repository=$repository-$component" --set-string "$component.image.tag=$tag")
done

helm upgrade --install greensched "$root/deploy/helm/greensched" \
  --namespace greensched --create-namespace \
  "${images[@]}" --wait --timeout 5m

# Made-up values: Germany dirtier and dearer than Sweden.
kubectl apply -f "$here/gridsignals.yaml"
"$here/publish-signal.sh" de 380 92
"$here/publish-signal.sh" se-se3 24 41

kubectl delete job first --ignore-not-found
kubectl apply -f "$here/pods.yaml"
# `kubectl wait` fails at once while the Job has not made its pods yet.
for _ in $(seq 60); do
  [ -n "$(kubectl get pods --selector job-name=first --output name)" ] && break
  sleep 1
done
kubectl wait pod --selector job-name=first --for=condition=PodScheduled --timeout=60s
kubectl get pods --selector job-name=first -o wide

echo
echo "Look around with: export KUBECONFIG=$KUBECONFIG"
echo "Remove it with:   $here/down.sh"
