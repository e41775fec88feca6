#!/usr/bin/env bash
# Writes carbon and price of a zone into the status of its GridSignal: from now on, and for six hours
# from an hour on (by default the same values):
#   publish-signal.sh NAME GRAMS_CO2_PER_KWH PRICE_PER_MWH [LATER_GRAMS LATER_PRICE]
set -euo pipefail
[ $# -eq 3 ] || [ $# -eq 5 ] || {
  echo "usage: publish-signal.sh NAME GRAMS_CO2_PER_KWH PRICE_PER_MWH [LATER_GRAMS LATER_PRICE]" >&2
  exit 2
}

now=$(date -u +%s)
at() { # seconds from now -> RFC 3339, with GNU's date or BSD's
  date -u -d "@$((now + $1))" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -r "$((now + $1))" +%Y-%m-%dT%H:%M:%SZ
}

kubectl patch gridsignal "$1" --subresource=status --type=merge --patch "
status:
  observedAt: $(at 0)
  source: example
  current: {startedAt: $(at 0), carbonGramsPerKwh: $2, pricePerMwh: $3, estimated: true}
  forecast:
    - {start: $(at 3600), carbonGramsPerKwh: ${4:-$2}, pricePerMwh: ${5:-$3}}
  forecastEnd: $(at 25200)
"
