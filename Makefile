# Everything a person or a CI machine does with this repository. `make help` lists it.
#
# Build products never go into the checkout: they live in $CARGO_TARGET_DIR, by default in the user's cache directory.
# Several checkouts may share that directory. What comes from a registry (RocksDB: many minutes of two cores) is compiled
# once for all of them; the agfs crates themselves are known to cargo by their path, so each checkout builds its own.
# A machine that has the directory from before therefore builds only what changed.
#
# There is one profile, release, for running, testing, linting and measuring: a second one would compile RocksDB again.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/agfs/target
# A Rust toolchain installed for this user only is found too.
export PATH := $(PATH):$(HOME)/.cargo/bin

PREFIX ?= /usr/local
DIR ?= ./workspace
ACCEPTANCE ?= ../shared/acceptance/check.py
AGFS := $(CARGO_TARGET_DIR)/release/agfs
CARGO ?= cargo
LOCKED ?= --locked

.PHONY: help run build test test-long lint bench acceptance install clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20
	@echo
	@echo "  binary: $(AGFS)"

run: build ## install what is missing, build, and mount a space at ./workspace (DIR=...); Ctrl-C unmounts
	exec $(AGFS) up $(DIR)

build: ## install what is missing and build the release binary
	deploy/bootstrap.sh build
	$(CARGO) build --release $(LOCKED)

test: ## install what the tests need and run everything, real mounts included
	deploy/bootstrap.sh test
	deploy/test-tools.sh
	deploy/sum-tests.sh \
	  '$(CARGO) fmt --all --check' \
	  '$(CARGO) clippy --workspace --all-targets --release $(LOCKED) -- -D warnings' \
	  'deploy/small-disk.sh $(CARGO) test --workspace --release $(LOCKED) --no-fail-fast' \
	  'deploy/system-tests.sh $(AGFS)'

test-long: export AGFS_TEST_LONG := 1
test-long: test ## the same with the runs that take minutes each at their full length

lint: ## formatting and clippy only
	deploy/bootstrap.sh test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --release $(LOCKED) -- -D warnings

bench: ## the benchmarks; figures are kept in docs/performance.md
	deploy/bootstrap.sh build
	$(CARGO) bench --workspace --benches $(LOCKED)

acceptance: build ## the acceptance run (ACCEPTANCE=path of its check.py) on the release binary
	@test -e '$(ACCEPTANCE)' || { echo "no acceptance run at $(ACCEPTANCE): say where with ACCEPTANCE=..." >&2; exit 1; }
	python3 '$(ACCEPTANCE)' $(AGFS)

install: build ## the binary and the systemd unit below $(DESTDIR)$(PREFIX)
	install -D -m 755 $(AGFS) '$(DESTDIR)$(PREFIX)/bin/agfs'
	install -d '$(DESTDIR)$(PREFIX)/lib/systemd/system'
	sed 's|/usr/local|$(PREFIX)|g' deploy/agfs-server.service > '$(DESTDIR)$(PREFIX)/lib/systemd/system/agfs-server.service'

clean: ## the agfs crates' build products; compiled dependencies stay
	$(CARGO) clean --release -p agfs -p agfs-core -p agfs-proto -p agfs-client -p agfs-fuse -p agfs-server -p agfs-difftest
