# Two commands do all the set-up: `make up` to use it, `make test` to check everything CI checks.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# CI may keep compiled dependencies outside its fresh clone; everywhere else they are in the clone.
ifeq ($(CI),true)
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/gpuaas/target
endif
export CARGO_TERM_COLOR ?= auto
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help up dev build check test test-integrations bench contracts fmt

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## Start the whole cloud on this machine (ARGS="--listen 127.0.0.1:9000" for flags)
	@exec tools/up $(ARGS)

dev: ## Debug build, kept database, restart on change
	@exec tools/up --dev $(ARGS)

build: ## Release binaries, with PostgreSQL beside them, in dist/
	@cargo build --release --locked --bin gpuaasd
	@tools/package $(TARGET)/release

check: ## The fast inner loop: format, clippy, guard, unit tests
	@tools/stages check

test: ## Everything CI runs
	@tools/stages test

test-integrations: ## Slow third-party servers, each cached by checksum
	@tools/stages integrations

bench: ## Measure, and print ratios against floors in the same run
	@tools/stages bench

contracts: ## Write contracts/ from the code
	@cargo run --quiet --locked --bin gpuaasd -- contracts --out contracts
	@GPUAAS_WRITE_SCHEMA=1 cargo test --quiet --locked --bin gpuaasd the_copy_of_the_schema

fmt: ## Format the code
	@cargo fmt --all
