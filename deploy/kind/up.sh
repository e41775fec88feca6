#!/usr/bin/env bash
# Creates a kind cluster with GreenSched and shows work placed, held and released. Needs docker, kind,
# kubectl and helm. Run it again after a change: it rebuilds the images and upgrades the release.
#
# Optional, from the environment:
#   GREENSCHED_NODE_IMAGE      image of kind's nodes; default: kind's own (`make node-image` makes one)
#   GREENSCHED_EXTENDER_IMAGE  image in Docker, with its tag; default: built from this checkout
#   GREENSCHED_OPERATOR_IMAGE  the same
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cluster=greensched
repository=localhost/greensched

say() { printf '\n== %s\n' "$*"; }

# Waits up to a minute until a command prints something, which not every `kubectl wait` can.
until_output() {
  for _ in $(seq 60); do
    [ -z "$("$@")" ] || return 0
    sleep 1
  done
  echo "up.sh: no output within a minute from: $*" >&2
  return 1
}

for image in "${GREENSCHED_EXTENDER_IMAGE:-}" "${GREENSCHED_OPERATOR_IMAGE:-}"; do
  # A registry's port is not a tag, and kind cannot load an image by its digest.
  if [ -n "$image" ] && [[ ${image##*/} != *:?* || $image == *@* ]]; then
    echo "up.sh: $image has no tag, or a digest; use REPOSITORY:TAG (docker tag adds a tag)" >&2
    exit 1
  fi
done

for program in docker kind kubectl helm; do
  command -v "$program" >/dev/null || { echo "up.sh: $program is missing; see docs/install.md" >&2; exit 1; }
done

# A separate file, so that the user's stays unchanged. Not under /tmp, where another user could create
# a file of that name first.
export KUBECONFIG="$root/build/kind/kubeconfig"
(umask 077 && mkdir -p "$root/build/kind")

say "1. A cluster: four workers in two grid zones, Germany (DE) and Sweden (SE-SE3)"
if kind get clusters 2>/dev/null | grep -qx "$cluster"; then
  echo "the cluster $cluster exists already"
  if [ -n "${GREENSCHED_NODE_IMAGE:-}" ]; then
    echo "GREENSCHED_NODE_IMAGE is ignored: the nodes keep their image. To replace them, first run $here/down.sh"
  fi
else
  kind create cluster --config "$here/cluster.yaml" --wait 180s \
    ${GREENSCHED_NODE_IMAGE:+--image "$GREENSCHED_NODE_IMAGE"}
fi
kind export kubeconfig --quiet --name "$cluster" --kubeconfig "$KUBECONFIG"
kubectl wait nodes --all --for=condition=Ready --timeout=120s >/dev/null
kubectl get nodes --label-columns greensched.io/grid-zone,node.kubernetes.io/instance-type

say "2. GreenSched's two images, onto the workers"
images=()
values=()
for component in extender operator; do
  given="GREENSCHED_$(tr '[:lower:]' '[:upper:]' <<<"$component")_IMAGE" # bash 3.2 of macOS has no ^^
  image=${!given:-}
  if [ -z "$image" ]; then
    echo "building $component (the first time takes some minutes)"
    id=$(docker build --quiet --target "$component" "$root")
    # The tag is the image's digest, so that a rebuilt image restarts its Deployments' pods.
    tag=${id#sha256:}
    image=$repository-$component:${tag:0:12}
    docker tag "$id" "$image"
  fi
  echo "$component: $image"
  images+=("$image")
  values+=(--set "$component.image.repository=${image%:*}" --set-string "$component.image.tag=${image##*:}")
done
printf '%s\n' "${images[@]}" >"$root/build/kind/images"
workers=$(kind get nodes --name "$cluster" | grep -v control-plane | paste -sd , -)
echo "loading both into four nodes (a minute or two)"
kind load docker-image --quiet --name "$cluster" --nodes "$workers" "${images[@]}"

say "3. The chart, in mode enforce: work that may wait is held"
helm upgrade --install greensched "$root/deploy/helm/greensched" \
  --namespace greensched --create-namespace --set policy.mode=enforce \
  "${values[@]}" --wait --timeout 5m >/dev/null
kubectl get deployments --namespace greensched

say "4. Made-up grids: Germany dirty and expensive; Sweden clean, and cleaner from an hour on"
kubectl apply -f "$here/gridsignals.yaml"
"$here/publish-signal.sh" de 380 92
"$here/publish-signal.sh" se-se3 24 41 5 9
kubectl get gridsignals

say "5. Placed: eight pods that opt in go to the cleaner zone"
kubectl delete job first may-wait --ignore-not-found
kubectl apply -f "$here/pods.yaml"
# `kubectl wait` fails at once if the Job has not created its pods yet.
until_output kubectl get pods --selector job-name=first --output name
kubectl wait pod --selector job-name=first --for=condition=PodScheduled --timeout=60s >/dev/null
kubectl get pods --selector job-name=first -o 'custom-columns=POD:.metadata.name,NODE:.spec.nodeName'

say "6. Held: a Job with a deadline in six hours waits for the cleaner hour"
kubectl apply -f "$here/held-job.yaml"
until_output kubectl get job may-wait --output 'jsonpath={.metadata.annotations.greensched\.io/planned-start}'
kubectl get job may-wait
kubectl describe job may-wait | grep -E 'greensched\.io/(planned-start|latest-start)|Held'

say "7. Released: the annotation run-now starts the Job at once"
echo "kubectl annotate job may-wait greensched.io/run-now=true"
kubectl annotate job may-wait greensched.io/run-now=true
until_output kubectl get job may-wait --output 'jsonpath={.status.active}'
kubectl get job may-wait
kubectl describe job may-wait | grep -E 'greensched\.io/release'

echo
echo "Look around with: export KUBECONFIG=$KUBECONFIG"
echo "Remove it with:   $here/down.sh"
