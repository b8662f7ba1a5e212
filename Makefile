# machmeter: `make` builds and characterizes this machine in a minute; `make test` sets up what tests need and runs all.
CARGO ?= cargo
export MACHMETER_COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)

CHORES = $(or $(CARGO_TARGET_DIR),target)/debug/xtask

# Incremental compilation takes a sixth of the CPU time of our own crates and two fifths of the bytes in `target`. Only a later edit gains
# from it: `make quick` and `cargo test` keep it.
test check: export CARGO_INCREMENTAL ?= 0

.PHONY: all build run test quick check docs static cross bench fuzz audit setup clean

all: build run

build:
	$(CARGO) build --release --locked

# Through cargo, which knows where it builds.
run:
	$(CARGO) run --release --locked --quiet

# Everything that can fail: set-up, static checks, then all tests.
test: setup check
	$(CARGO) test --workspace --locked --no-fail-fast

# For the desk: format, lints and unit tests of the crates that changed since main.
quick:
	$(CARGO) xtask quick

setup:
	./scripts/setup-tests

# Static checks: format, lints, architecture, machine code of the loops, documentation and schema against the program. The chores are
# compiled with the tests: by themselves they would choose other features of the same crates, and compile all of them again.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) build --workspace --bins --tests --locked
	for chore in arch asm schema reference docs; do $(CHORES) $$chore || exit 1; done
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

# Pages and pictures of the book that the program writes itself; the picture of the report needs Chromium.
docs:
	$(CARGO) xtask docs --write
	$(CARGO) xtask schema --write
	$(CARGO) run --quiet -p machmeter-report --example draw_docs -- docs
	./scripts/draw-report docs

# One file without libraries beside it, for machines of any distribution. Position and libraries are fixed when it is linked.
# A test then runs every verb of it.
static: target := $(shell rustc --print host-tuple)
static:
	RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" \
		$(CARGO) build --release --locked --target $(target) -p machmeter
	MACHMETER_STATIC_PROGRAM=$$PWD/target/$(target)/release/machmeter \
		$(CARGO) test --locked -p machmeter --test cli -- a_static_build

# The same for aarch64, with the tests that an emulator can run.
cross:
	./scripts/cross

bench: build
	./bench/run

# Every parser of foreign bytes for a minute, with at most 1 GiB and 10 s for one input.
# The Parquet crate reserves what a page's header claims before it decodes the page: a gigabyte at most, of which little is used.
fuzz:
	@if ! $(CARGO) +nightly --version >/dev/null 2>&1; then echo "fuzz: a nightly compiler is missing: rustup toolchain install nightly"; \
	elif ! $(CARGO) fuzz --version >/dev/null 2>&1; then echo "fuzz: cargo-fuzz is missing: cargo install cargo-fuzz"; \
	else cp Cargo.lock fuzz/; for target in $$($(CARGO) +nightly fuzz list); do \
		mkdir -p fuzz/target/found/$$target; $(CARGO) +nightly fuzz run $$target fuzz/target/found/$$target fuzz/corpus/$$target -- \
			-max_total_time=60 -rss_limit_mb=1024 -malloc_limit_mb=1100 -timeout=10 || exit 1; done; fi

audit:
	./scripts/audit

clean:
	$(CARGO) clean
