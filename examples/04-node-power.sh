#!/bin/sh
# Tells what an administrator may write on a node: its grid zone, what it draws, its power budget.
#   examples/04-node-power.sh NODE
set -eu
node=${1:?"usage: 04-node-power.sh NODE (one of: kubectl get nodes)"}

# zone: else a map from topology.kubernetes.io/region and /zone.
# power-model: a machine of the shipped catalogue; pue: power usage effectiveness of its site.
kubectl label node "$node" --overwrite \
  greensched.io/grid-zone=DE \
  greensched.io/power-model=epyc-7763-1s \
  greensched.io/pue=1.25

# power-curve-watts: measured at 0, 10 ... 100 % load; wins over the model.
# power-budget-watts: hard limit, refused by filter when extender.powerLimits.enabled is set.
kubectl annotate node "$node" --overwrite \
  greensched.io/power-curve-watts=56.8,100,116,130,143,162,191,211,231,250,268 \
  greensched.io/power-budget-watts=500

echo "Take it back with: kubectl label node $node greensched.io/grid-zone- greensched.io/power-model- greensched.io/pue-"
echo "and: kubectl annotate node $node greensched.io/power-curve-watts- greensched.io/power-budget-watts-"
