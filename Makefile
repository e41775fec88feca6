# GreenSched's commands. `make help` prints them from the comments behind the targets.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

ifeq ($(origin ARG),command line)
$(error ARG means nothing here; did you mean ARGS="$(ARG)"?)
endif

# Tests start Python some hundred times: what it compiles is kept, whatever the caller's shell says.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# A file newer than what it was made from: nothing is installed twice.
DEPENDENCIES := .venv/.dependencies-installed
READY := .venv/.greensched-installed

# Tests with these markers start real servers, or compile the simulator's engine; all others are unit
# tests.
SERVERS := controlplane or helm or prometheus or postgresql or e2e
LONG := $(SERVERS) or engine or wheel
LOCK := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --quiet $(if $(UPGRADE),--upgrade)

.PHONY: help
help: ## List these commands
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(READY) ## Install everything into .venv (PYTHON=python3.12 chooses the interpreter)

$(DEPENDENCIES): requirements/dev.txt
	@for candidate in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python; do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    python=$$candidate; break; \
	  fi; \
	done; \
	if [ -z "$${python:-}" ]; then \
	  echo "setup: no Python 3.11 or later on the PATH; install one, or name it: make setup PYTHON=/path/to/python" >&2; \
	  exit 1; \
	fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "setup: $$python comes without venv and pip; on Debian and Ubuntu: apt install python3-venv" >&2; \
	  exit 1; \
	fi; \
	echo "setup: installing pinned dependencies into .venv with $$("$$python" --version) (once, a minute or two)"; \
	"$$python" -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r $<
	@touch $@

$(READY): pyproject.toml $(DEPENDENCIES)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation -e .
	@touch $@
	@echo "setup: done; 'source .venv/bin/activate' puts greensched on the PATH"

.PHONY: check
check: setup ## Format, lint, types, import layers, house rules: before every commit
	@$(MAKE) -j2 --keep-going $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) \
	  check-types check-format check-lint check-layers check-house

.PHONY: check-types
check-types: setup ## Only the types, of sources and tests
	$(BIN)/mypy

.PHONY: check-format
check-format: setup ## Only the format
	$(BIN)/ruff format --quiet --diff .

.PHONY: check-lint
check-lint: setup ## Only the linter
	$(BIN)/ruff check --quiet .

.PHONY: check-layers
check-layers: setup ## Only who may import whom
	$(BIN)/lint-imports

.PHONY: check-house
check-house: setup ## Only the rules of the house that no linter knows
	$(BIN)/pytest --quiet --no-header -m 'recipe or not recipe' tests/test_*.py

.PHONY: test
test: setup ## All but the long tests, on a real control plane (built on first use)
	@# Three on two cores: much of the time is spent waiting for servers. `check` runs tests/test_*.py.
	$(BIN)/pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder --durations=15 \
	  --ignore-glob='*/tests/test_*.py' $(ARGS)

.PHONY: test-unit
test-unit: setup ## The tests that start no server and run no simulation, under a minute
	$(BIN)/pytest --quiet --numprocesses auto -m 'not ($(LONG))' $(ARGS)

# One process: two days at a time would be late for lack of cores.
.PHONY: fault-days
fault-days: setup ## Days on which processes, servers, clocks and users misbehave, nothing late or lost (8 minutes)
	$(BIN)/pytest -m day --durations=8 tests/operator/faults $(ARGS)

.PHONY: smallest-benchmarks
smallest-benchmarks: setup ## The benchmarks that take minutes, each at its smallest size: that they run (5 minutes)
	$(BIN)/pytest -m bench --durations=5 tests/benchmarks $(ARGS)

.PHONY: test-artifacts
test-artifacts: setup ## The wheel, and the images (Linux, root), as they are built and run (3 minutes)
	$(BIN)/pytest -m 'wheel or image' --durations=5 tests/release tests/images $(ARGS)

# A KUBECONFIG of the caller's shell is not meant.
E2E := $(if $(filter command line,$(origin KUBECONFIG)),GREENSCHED_E2E_KUBECONFIG='$(KUBECONFIG)') \
	$(BIN)/pytest -m e2e -rs --durations=10

.PHONY: e2e
e2e: setup ## The chart on two real nodes (Linux, root, no Docker), or any cluster (KUBECONFIG=file)
	@$(E2E) tests/e2e $(ARGS)

.PHONY: e2e-short
e2e-short: setup ## Only that it installs, places by signals, and uninstalls
	@$(E2E) $(foreach name,installed placed_by_signals uninstalled_last,tests/e2e/test_$(name).py) $(ARGS)

# On Docker where it answers, as on a laptop: kind's own node image, our images built by Docker. Else,
# as root on Linux, on an engine in a network of its own, with a node image and images made without a
# registry. Either way `deploy/kind/up.sh` makes the cluster.
.PHONY: e2e-kind
e2e-kind: setup ## The same over five nodes of kind, made by deploy/kind/up.sh and removed afterwards
	@$(BIN)/python -m greensched_testbed.kind test $(ARGS)

.PHONY: images
images: setup ## Our two images as archives, without Docker and registry (Linux, root)
	@$(BIN)/python -m greensched_testbed.end_to_end.our_images

.PHONY: node-image
node-image: setup ## Make a node image for kind without a registry (Linux, root)
	@$(BIN)/python -m greensched_testbed.kind node-image

.PHONY: fuzz
fuzz: setup ## Try new random examples on every property, for as long as it takes
	$(BIN)/pytest --quiet -m 'not ($(SERVERS))' --hypothesis-profile=new $(ARGS)

# Of Debian and Ubuntu: what builds and runs images without Docker, and makes nodes of this machine.
# Docker's own packages bring containerd and runc too, and would have to go for Debian's. On Ubuntu,
# mmdebstrap makes Debian's suites with Debian's keys alone, and looks at them by gpg.
E2E_PACKAGES := buildah busybox-static conntrack debian-archive-keyring gpg iproute2 iptables kmod \
	mmdebstrap nftables util-linux \
	$(shell command -v containerd >/dev/null || echo containerd) \
	$(shell command -v runc >/dev/null || echo runc)

.PHONY: e2e-setup
e2e-setup: ## Install the system packages that tests of images and nodes need (Debian, Ubuntu; root)
	@command -v apt-get >/dev/null || { echo "e2e-setup: no apt-get here; install $(E2E_PACKAGES)" >&2; exit 1; }
	@[ "$$(id -u)" = 0 ] || { echo "e2e-setup: run it as root: sudo make e2e-setup" >&2; exit 1; }
	@if ! dpkg-query --show $(E2E_PACKAGES) >/dev/null 2>&1; then \
	  apt-get update --quiet=2; \
	  DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet=2 --no-install-recommends $(E2E_PACKAGES); \
	fi
	@echo "e2e-setup: all packages are there"

.PHONY: demo
demo: setup ## Held, placed, released: a workload on a real control plane, and its bills (TRACE=file, ARGS="--keep")
	@$(BIN)/greensched demo $(if $(TRACE),--trace '$(TRACE)') $(ARGS)

.PHONY: demo-picture
demo-picture: demo ## The picture of the demo's report in README, anew (needs chromium)
	chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
	  --user-data-dir=build/demo/chromium --hide-scrollbars --window-size=1100,800 \
	  --virtual-time-budget=5000 --screenshot=docs/images/demo.png 'file://$(CURDIR)/build/demo/report.html'

.PHONY: bench-simulator
bench-simulator: setup ## Jobs a second, memory and compile time of the simulator, into build/bench/simulator.json
	@$(BIN)/python -m benchmarks.simulator $(ARGS)

.PHONY: baselines
baselines: setup ## Every policy on every scenario of the gallery, ten seeds, into docs/baselines.md
	@$(BIN)/python -m benchmarks.baselines $(ARGS)

.PHONY: bench-extender
bench-extender: setup ## Throughput, latency, start and memory of the extender, into build/bench/extender.json
	@$(BIN)/python -m benchmarks.extender $(ARGS)

.PHONY: bench-ledger
bench-ledger: setup ## How fast the ledger takes decisions, and its memory, into build/bench/ledger.json
	@$(BIN)/python -m benchmarks.ledger $(ARGS)

.PHONY: bench-operator
bench-operator: setup ## Replans, memory, reviews and a whole held day of the operator, into build/bench/operator.json
	@$(BIN)/python -m benchmarks.bench_operator $(ARGS)

.PHONY: bench-when
bench-when: setup ## Deadlines missed and carbon of every rule that chooses starts, into build/bench/when.json
	@$(BIN)/python -m benchmarks.when $(ARGS)

.PHONY: bench-parity
bench-parity: setup ## The same day on a real control plane and in the simulator, into build/bench/parity.json
	@$(BIN)/python -m benchmarks.parity $(ARGS)

.PHONY: bench-house
bench-house: setup ## Sizes of folders, files and functions, what stands twice, and the command line's weight
	@$(BIN)/python -m benchmarks.house $(ARGS)

.PHONY: bench-real
bench-real: setup ## Images, findings of the review, and end-to-end tests on real nodes and kind, into build/bench/real.json
	@$(BIN)/python -m benchmarks.real $(ARGS)

# The format first: the linter refuses long lines that it would break.
.PHONY: format
format: setup ## Put the code into shape, mend what the linter can
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

.PHONY: docs
docs: setup ## Write tables of docs/, schemas of custom resources and lists of the chart anew from the code
	$(BIN)/python -m docs.generate_tables

SITE_READY := .venv/.site-installed

$(SITE_READY): requirements/site.txt $(DEPENDENCIES)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r $<
	@touch $@

.PHONY: site
site: setup $(SITE_READY) ## The pages as a website with search, into build/site/VERSION/; a broken link fails
	@$(BIN)/python -m docs.build_site $(if $(VERSION),--version '$(VERSION)')

.PHONY: lock
lock: setup ## Pin dependencies with hashes (UPGRADE=1 takes newer versions)
	$(LOCK) --extra all --group dev --output-file requirements/dev.txt
	$(LOCK) --extra all --constraints requirements/dev.txt --output-file requirements/all.txt
	$(LOCK) --extra cli --constraints requirements/dev.txt --output-file requirements/cli.txt
	$(LOCK) --extra extender --constraints requirements/dev.txt --output-file requirements/extender.txt
	$(LOCK) --extra operator --constraints requirements/dev.txt --output-file requirements/operator.txt
	$(subst pyproject.toml,,$(LOCK)) --group kernel --constraints requirements/dev.txt --output-file requirements/kernel.txt
	$(subst pyproject.toml,,$(LOCK)) --group site --constraints requirements/dev.txt --output-file requirements/site.txt

RELEASE = $(BIN)/python -m deploy.release $(1) --version '$(VERSION)' \
	$(if $(REGISTRY),--registry '$(REGISTRY)') $(if $(KEY),--key '$(KEY)') \
	$(if $(IDENTITY),--identity '$(IDENTITY)' --issuer '$(ISSUER)') $(ARGS)

KERNEL_READY := .venv/.kernel-compiler-installed

$(KERNEL_READY): requirements/kernel.txt $(DEPENDENCIES)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r $<
	@touch $@

.PHONY: release
release: setup $(KERNEL_READY) ## What is published of a version, into dist/release/ (VERSION=1.2.3 REGISTRY=… KEY=…; docs/releasing.md)
	@$(call RELEASE,make) $(if $(PLATFORMS),--platforms '$(PLATFORMS)') \
	  $(if $(BUILD_OPTIONS),--build-options='$(BUILD_OPTIONS)') $(if $(REHEARSAL),--rehearsal) \
	  $(if $(filter debian,$(BASE)),--on-debian)

.PHONY: release-verify
release-verify: setup ## Signatures, checksums and digests of what make release made
	@$(call RELEASE,verify)

.PHONY: release-push
release-push: setup ## Bring what make release made into the registry, signed
	@$(call RELEASE,push)

.PHONY: clean
clean: ## Remove build results and caches; .venv and the built control plane stay
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
