#!/usr/bin/env bash
# Writes what a zone's grid does from now on into the status of its GridSignal:
#   publish-signal.sh NAME GRAMS_CO2_PER_KWH PRICE_PER_MWH
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: publish-signal.sh NAME GRAMS_CO2_PER_KWH PRICE_PER_MWH" >&2; exit 2; }

now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
kubectl patch gridsignal "$1" --subresource=status --type=merge --patch "
status:
  observedAt: $now
  source: example
  current: {startedAt: $now, carbonGramsPerKwh: $2, pricePerMwh: $3, estimated: true}
"
