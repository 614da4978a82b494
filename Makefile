# Everything here starts on a machine with Python 3.11 (or newer) and make alone; `make help` says what there is.

PYTHON ?= python3
VENV := .venv
LOCK := requirements-dev.txt

# Debian packages that tests use, each with the command it brings. Without them these tests are skipped, and say so. (The package busybox
# brings the same command without a cron daemon.)
DEBIAN_PACKAGES := iproute2:ip nftables:nft chromium:chromium busybox-static:busybox
# What nightly tests use beside them: an ensemble of ZooKeeper, which brings Java, and what is compared with: Redis (limits), serf (gossip).
NIGHTLY_PACKAGES := zookeeper redis-server:redis-server serf:serf

# (exec: make tells only the process it started that it ends, and that one must be the one that passes it on.)
# What the longer jobs run; override on the command line, e.g. make test PYTEST_ARGS="tests/kit -x".
PYTEST_ARGS ?=
SOAK_ARGS ?= --all --resume --seeds 100000 --jobs $(shell nproc 2>/dev/null || echo 1)
FUZZ_ARGS ?= --inputs 1000000
FUZZ_VIEWS_ARGS ?= --inputs 20000
FUZZ_LIMITS_ARGS ?= --inputs 20000
FUZZ_GOSSIP_ARGS ?= --inputs 15000
FUZZ_ELECTION_ARGS ?= --inputs 3000
BENCH ?= simulator datagrams memory

# The names of the stamps hold check sums, so that neither a clone's file times nor a checkout can fool them: another lock
# file makes a new virtualenv, another pyproject.toml only installs the package again.
LOCKED := $(VENV)/.locked-$(shell cksum < $(LOCK) | tr -s ' ' -)
INSTALLED := $(LOCKED)-package-$(shell cksum < pyproject.toml | tr -s ' ' -)

.DEFAULT_GOAL := help
.PHONY: help setup debian demo check test test-all lint docs soak fuzz bench lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup ## seven agents on this machine: they find each other, one is killed, every promise beside what was measured
	@$(VENV)/bin/holdfast demo

check: setup ## style, spelling, types, imports, and the tests of protocols without a clock, in a minute: before every commit
	@exec env PYTEST_ARGS="$(PYTEST_ARGS)" $(VENV)/bin/python scripts/checks.py style format spelling types imports pure

test: setup debian ## every check: style, spelling, types, imports, documentation, tests in random order with 20 seeds of each scenario, in 7 to 8 minutes on two quiet cores
	@exec env PYTEST_ARGS="$(PYTEST_ARGS)" $(VENV)/bin/python scripts/checks.py

test-all: DEBIAN_PACKAGES += $(NIGHTLY_PACKAGES)
test-all: setup debian ## as make test, with the nightly tests, 200 seeds of each scenario and every page as printed; takes as long as it takes
	@exec env PYTEST_ARGS="--all $(PYTEST_ARGS)" $(VENV)/bin/python scripts/checks.py

lint: setup ## style, spelling, types and imports only
	@$(VENV)/bin/python scripts/checks.py style format spelling types imports

docs: setup ## the documentation, into docs/_build/html
	@$(VENV)/bin/python scripts/checks.py docs

soak: setup ## the machines of views, limits, gossip and elections as in make fuzz (FUZZ_..._ARGS), then seeded sweeps for as long as you like, resumed (SOAK_ARGS)
	@$(VENV)/bin/python -m fuzz.views $(FUZZ_VIEWS_ARGS)
	@$(VENV)/bin/python -m fuzz.limits $(FUZZ_LIMITS_ARGS)
	@$(VENV)/bin/python -m fuzz.gossip $(FUZZ_GOSSIP_ARGS)
	@$(VENV)/bin/python -m fuzz.election $(FUZZ_ELECTION_ARGS)
	@$(VENV)/bin/holdfast lab sweep $(SOAK_ARGS)

fuzz: setup ## hostile messages: the wire (FUZZ_ARGS), three real agents (FUZZ_AGENTS_ARGS), a machine of views (FUZZ_VIEWS_ARGS) or limits (FUZZ_LIMITS_ARGS) alone, a member that lies, of gossip (FUZZ_GOSSIP_ARGS) and of elections (FUZZ_ELECTION_ARGS)
	@$(VENV)/bin/python -m fuzz.wire $(FUZZ_ARGS)
	@$(VENV)/bin/python -m fuzz.agents $(FUZZ_AGENTS_ARGS)
	@$(VENV)/bin/python -m fuzz.views $(FUZZ_VIEWS_ARGS)
	@$(VENV)/bin/python -m fuzz.limits $(FUZZ_LIMITS_ARGS)
	@$(VENV)/bin/python -m fuzz.gossip $(FUZZ_GOSSIP_ARGS)
	@$(VENV)/bin/python -m fuzz.election $(FUZZ_ELECTION_ARGS)

bench: setup ## the short benchmarks, or others: make bench BENCH=tickets; fails if a goal is missed
	@missed=0; for name in $(BENCH); do $(VENV)/bin/python -m benchmarks $$name || missed=1; done; exit $$missed

setup: $(INSTALLED) ## the virtualenv in .venv, from the lock file

debian: ## the Debian packages some tests use, if root and missing
	@scripts/debian.sh $(DEBIAN_PACKAGES)

lock: ## resolve requirements-dev.txt again after a change of dependencies
	@PYTHON="$(PYTHON)" scripts/lock.sh

clean: ## remove what was built, the virtualenv included
	rm -rf $(VENV) build dist docs/_build docs/reference .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find src tests benchmarks fuzz scripts docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(LOCKED):
	@PYTHON="$(PYTHON)" scripts/venv.sh $(VENV) $(LOCK)
	@touch $@

$(INSTALLED): $(LOCKED)
	@$(VENV)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
