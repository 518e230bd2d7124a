# Every target says what it needs. `make test` and `make demo` need Go and python3 only.
SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c

GO       ?= go
BIN      := bin/skald-connectors
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS  := -s -w $(if $(VERSION),-X main.version=$(VERSION))
BUILD    := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)'
FUZZTIME ?= 5000x
PKGS     ?= ./...
TESTFLAGS ?=
NORACE   := TestTooLong|TestKeysOfTheMinisignProgram|TestKillAt|TestEndlessIndex|TestClientTooLong|TestClientEndless
SYSTEMS  := linux windows darwin

# Without this each end of a process of a race build takes a second, and the tests start very many.
export GORACE ?= atexit_sleep_ms=0

.PHONY: all build demo test check lint fmt vet staticcheck tidy race fuzz catalog integration bench cover man release clean

all: build

build: ## the program, static, in bin/
	$(BUILD) -o $(BIN) ./cmd/skald-connectors

# The home of the demonstration is thrown away at its end. Installed files are read-only, hence the chmod.
demo: build ## install a connector from the built-in marketplace into a throw-away home and show its record
	@home=$$(mktemp -d); trap 'chmod -R u+w "$$home"; rm -rf "$$home"' EXIT; \
	run() { echo "\$$ skald-connectors $$*"; $(BIN) --home "$$home" --index builtin --no-input "$$@" </dev/null; echo; }; \
	run install http-fetch --yes; \
	run list; \
	run info http-fetch; \
	echo "\$$ cat HOME/activations/http-fetch.json"; \
	cat "$$home/activations/http-fetch.json"

test: ## all tests; those that want a tool which is not here are skipped and say why
	$(GO) test -timeout 30m $(TESTFLAGS) $(PKGS)

check: lint race fuzz catalog ## everything that a change has to pass

lint: fmt vet staticcheck tidy ## what reads the source without running it

fmt:
	@out=$$(gofmt -d .) || true; if [ -n "$$out" ]; then echo "$$out"; echo 'run gofmt -w on these files'; exit 1; fi

vet:
	@for os in $(SYSTEMS); do echo "go vet, $$os"; GOOS=$$os $(GO) vet ./...; done

staticcheck:
	$(GO) tool staticcheck ./...

tidy:
	$(GO) mod tidy -diff

race:
	$(GO) test -race $(PKGS)

# go test fuzzes one target at a time; a pattern that matches two is an error. FUZZTIME is a count by default: a time
# that runs out while a worker is busy is reported as a failure of the target.
fuzz: ## each fuzz target, FUZZTIME inputs (5000x) or as long (30s)
	@grep -rEo --include='*_test.go' --exclude-dir=testdata '^func Fuzz[A-Za-z0-9_]+' . | while IFS=: read -r file name; do \
		name=$${name#func }; dir=$$(dirname "$$file"); echo "$$dir $$name"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$dir" | grep -Ev '^(fuzz: elapsed|PASS$$)' || exit 1; done

catalog: build ## the committed index of the built-in marketplace is what its tree compiles to
	$(BIN) catalog compile connectors --verify

# A test that needs a real tool (a keyring daemon, bubblewrap, a mail server, node) skips where the tool is missing.
# What the race detector makes too slow runs without it first: NORACE.
# Here nothing of that kind may be missing: SKALD_TEST_REQUIRE=1 tells the helpers that skip to fail instead, and, for
# those that do not ask, every skip left in the log fails the target, unless it is about the user (root), the system,
# or a helper that is a test only as a child of another.
integration: ## all tests with the race detector and the real tools, none skipped
	@mkdir -p bin; bad=0; \
	SKALD_TEST_REQUIRE=1 $(MAKE) --no-print-directory test PKGS='./launch ./catalog ./cmd/skald-connectors' TESTFLAGS='-count=1 -run "$(NORACE)"' || bad=1; \
	SKALD_TEST_REQUIRE=1 $(MAKE) --no-print-directory test TESTFLAGS='-race -count=1 -v -timeout 40m' 2>&1 | tee bin/integration.log | grep -Ev '^(=== |PASS$$)|^ *--- PASS' || bad=1; \
	awk '/_test\.go:[0-9]+: / { why = $$0 } \
		/--- SKIP/ && !/SKIP: Fuzz/ && why !~ /root|[Ww]indows|darwin|platform|-short|race detector|only as a child/ { print; print why; n++ } \
		END { if (n) print "skipped, " n " in all; install what they need (.ci/run has the list)"; exit n > 0 }' bin/integration.log || bad=1; \
	exit $$bad

bench: ## all benchmarks, and a table of them against the goals; ratios to an anchor of the same run are what counts
	$(GO) test -run '^$$' -bench . -benchmem -timeout 60m $(PKGS) | $(GO) run ./testdata/bench/table

cover: ## coverage of each package
	@mkdir -p bin
	$(GO) test -coverprofile=bin/cover.out $(PKGS)
	$(GO) tool cover -func=bin/cover.out | tail -n 1

man: ## manual pages, in dist/man; the program itself does not carry the writer of them
	@mkdir -p dist/man
	$(GO) run -tags man ./cmd/skald-connectors man dist/man

release: ## the program for each system, in dist/, with SHA256SUMS
	@rm -rf dist && mkdir -p dist
	@for os in $(SYSTEMS); do for arch in amd64 arm64; do \
		ext=; [ $$os != windows ] || ext=.exe; out=dist/skald-connectors_$(or $(VERSION),unknown)_$${os}_$$arch$$ext; echo "$$out"; \
		GOOS=$$os GOARCH=$$arch $(BUILD) -o "$$out" ./cmd/skald-connectors; done; done
	@cd dist && sha256sum skald-connectors_* > SHA256SUMS && cat SHA256SUMS

clean:
	rm -rf bin dist
