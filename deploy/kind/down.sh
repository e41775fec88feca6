#!/usr/bin/env bash
# Removes the kind cluster of up.sh and its kubeconfig.
set -euo pipefail
kind delete cluster --name greensched
rm -f "${TMPDIR:-/tmp}/greensched-kind.kubeconfig"
