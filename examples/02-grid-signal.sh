#!/bin/sh
# Publishes what the grid of zone DE does now and for three hours more, by hand:
#   examples/02-grid-signal.sh
# Numbers are made up. Values hold until the next start; a price may be negative.
set -eu

now=$(date -u +%s)
at() { # seconds from now -> RFC 3339, with GNU's date or BSD's
  date -u -d "@$((now + $1))" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -r "$((now + $1))" +%Y-%m-%dT%H:%M:%SZ
}

# The object is created by apply; what the grid does goes into its status, which the API server keeps apart.
kubectl apply -f "$(dirname "$0")/02-grid-signal.yaml"
kubectl patch gridsignal de --subresource=status --type=merge --patch "
status:
  observedAt: $(at 0)
  source: by-hand
  current: {startedAt: $(at 0), carbonGramsPerKwh: 290, pricePerMwh: 61.2, estimated: false}
  forecast:
    - {start: $(at 3600), carbonGramsPerKwh: 270, pricePerMwh: 53}
    - {start: $(at 7200), carbonGramsPerKwh: 258, pricePerMwh: -2.5}
    - {start: $(at 10800), carbonGramsPerKwh: 255, pricePerMwh: 47}
  forecastEnd: $(at 14400)
"
kubectl get gridsignal de
