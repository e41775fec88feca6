#!/usr/bin/env bash
# Removes the kind cluster of up.sh and its kubeconfig.
set -euo pipefail
kubeconfig=$(dirname "${BASH_SOURCE[0]}")/../../build/kind/kubeconfig
kind delete cluster --name greensched --kubeconfig "$kubeconfig"
rm -f "$kubeconfig"
