#!/usr/bin/env bash
# Removes the kind cluster of up.sh and its kubeconfig.
set -euo pipefail
kind delete cluster --name greensched
rm -f "$(dirname "${BASH_SOURCE[0]}")/../../build/kind/kubeconfig"
