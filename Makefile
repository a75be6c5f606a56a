# Everything a contributor runs. `make` alone lists the targets.
GO           ?= go
TEST_TIMEOUT ?= 10m
FUZZ_TIME    ?= 20s
VERSION      ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LINT_VERSION := v2.15.0
LINT         := bin/golangci-lint-$(LINT_VERSION)

.DEFAULT_GOAL := help
.PHONY: help build test test-deps chaos lint vet cross bench demo fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/postburner
	$(GO) build -trimpath -ldflags '-X github.com/postburner/postburner/app.Version=$(VERSION)' -o bin/postburner .

test: test-deps ## install what the tests need, then run all of them with the race detector
	POSTBURNER_REQUIRE_BEANSTALKD=1 $(GO) test -race -timeout $(TEST_TIMEOUT) ./...

test-deps: ## install beanstalkd and a C compiler (for -race) if they are missing
	@sh integration/install-deps.sh

chaos: test-deps ## the long form of the chaos test: 20,000 jobs under random faults (about 6 minutes)
	@seed=$${POSTBURNER_CHAOS_SEED:-$$(date +%s)}; echo "seed $$seed; the same schedule again: make chaos POSTBURNER_CHAOS_SEED=$$seed"; \
	POSTBURNER_REQUIRE_BEANSTALKD=1 POSTBURNER_CHAOS=full POSTBURNER_CHAOS_SEED=$$seed \
	  $(GO) test -race -v -count 1 -timeout 30m -run '^TestChaos$$' ./integration

lint: vet $(LINT) ## gofmt, vet and golangci-lint
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo 'not formatted, run gofmt -w on:'; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(LINT) run ./...

vet:
	$(GO) vet ./...

$(LINT):
	@mkdir -p bin
	GOBIN=$(CURDIR)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv bin/golangci-lint $(LINT)

cross: ## compile for the other platforms: linux/arm64, darwin, windows
	GOOS=linux GOARCH=arm64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	GOOS=windows GOARCH=amd64 $(GO) vet ./...

bench: test-deps ## measure side by side what docs/PERFORMANCE.md reports (some minutes)
	$(GO) run ./bench

demo: ## the main job on the embedded broker; nothing to install
	$(GO) run . demo

fuzz: ## run every fuzz target for FUZZ_TIME each
	@set -e; for file in $$(git grep -l '^func Fuzz' -- '*_test.go'); do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$file); do \
	    echo "== $$(dirname $$file) $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_TIME) ./$$(dirname $$file); \
	  done; \
	done

clean: ## remove what the targets made
	rm -rf bin
