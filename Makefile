# Placet: everything a newcomer needs is here. `make` alone lists the targets.

GO      ?= go
WITHPG  := GO='$(GO)' scripts/test-postgres
BIN     := bin
RACE    := ./fault ./txn ./token ./httpapi ./mcpserver ./inbox ./internal/review ./internal/tui ./event ./decision ./call ./run ./flow ./delivery ./channel/... ./job ./store/... ./tool ./policy/... ./placettest ./internal/pgtest/... ./internal/tidy ./internal/debian ./internal/daemontest ./internal/browsertest .
# The packages whose tests take longest; started first, the others run beside them.
SLOW    := ./store/postgres ./inbox/e2e ./internal/cli ./store/sqlite
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build the binary into bin/placet
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X github.com/placet-dev/placet/internal/cli.version=$(VERSION)" -o $(BIN)/placet ./cmd/placet

.PHONY: demo
demo: build ## Run a real tool call and an agent with a person in between; leave a call to decide yourself
	@$(BIN)/placet demo .demo

.PHONY: test
test: ## Run every test
	$(GO) vet ./...
	$(WITHPG) $(GO) test -timeout 30m $(SLOW) ./...

.PHONY: e2e
e2e: ## Walk every page in a real browser and write screenshots to .e2e/
	@rm -rf .e2e
	PLACET_E2E_OUT='$(CURDIR)/.e2e' $(GO) test ./inbox/... -count=1

.PHONY: race
race: ## Run the tests of everything concurrent under the race detector, with fewer rounds
	CGO_ENABLED=1 $(WITHPG) $(GO) test -race -timeout 30m $(RACE)

.PHONY: check
check: fmt lint test race ## Everything that a change has to pass

.PHONY: fmt
fmt: ## Fail if a file is not formatted
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not formatted:"; echo "$$out"; exit 1; fi

.PHONY: lint
lint: ## Run the linters; builds them at their pinned versions the first time
	@.ci/lint

.PHONY: states
states: ## Write docs/states.md from the state machines; a test fails where it is stale
	$(GO) run ./internal/states

.PHONY: pages
pages: ## Write the inbox's pages from their templates; a test fails where they are stale
	$(GO) tool templ generate -path inbox

.PHONY: bench
bench: ## Measure the floor and the product side by side, as ratios
	PLACET_TEST_PG_DURABLE=1 $(WITHPG) $(GO) run ./internal/bench

SIMULATE ?= 10m
.PHONY: simulate
simulate: ## Let daemons work while processes and networks fail, for SIMULATE (10m)
	PLACET_SIMULATE=$(SIMULATE) $(WITHPG) $(GO) test ./internal/simulate -run '^TestSimulate$$' -count=1 -timeout 0 -v

FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME (30s)
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg 2>/dev/null | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; $(GO) test $$pkg -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x; \
		done; done

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN) .demo .e2e
