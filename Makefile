.DEFAULT_GOAL := help

# How many times the kill test kills, and how long each fuzz target runs.
KILLS ?= 30
FUZZTIME ?= 10s
# How long chaos breaks things, and its seed; 0: another one each time.
CHAOS ?= 10m
SEED ?= 0
# How many orders simulate tries; HELIX_SEED=n repeats one alone.
SEEDS ?= 100000
# How long soak keeps its load up.
SOAK ?= 30m

# Where a release's archives go.
DIST ?= dist

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

.PHONY: test
test: ## run the tests
	go test ./...

.PHONY: race
race: ## run the tests with the race detector (needs a C compiler)
	go test -race -timeout 20m ./...

.PHONY: lint
lint: ## gofmt, go vet and staticcheck
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; }
	go vet ./...
	go tool staticcheck ./...

.PHONY: kill
kill: ## kill -9 a server KILLS times and check that nothing is lost
	HELIX_KILLS=$(KILLS) go test -count=1 -run TestKill -timeout 20m ./integration

.PHONY: simulate
simulate: ## interleave all that may happen to a session's bytes, in SEEDS orders
	GOGC=400 HELIX_FIRST_SEED=$${HELIX_FIRST_SEED:-$$(date +%s)000} HELIX_SEEDS=$(SEEDS) go test -count=1 -v -run 'TestLifecycle$$' -timeout 6h ./eventlog/jetstream

.PHONY: chaos
chaos: ## break three nodes for CHAOS while 200 sessions stream, then one that is killed and one that loses its power
	go run ./integration/chaos -seed $(SEED) -for $(CHAOS)
	go run ./integration/chaos -seed $(SEED) -for 2m -nodes 1 -sessions 60
	go run ./integration/chaos -seed $(SEED) -for 2m -nodes 1 -sessions 60 -faults power

.PHONY: soak
soak: ## keep 300 sessions under way for SOAK: memory, goroutines and files stay flat, and no record is lost
	go run ./integration/soak -seed $(SEED) -for $(SOAK)

.PHONY: hostile
hostile: ## run two tenants against one daemon: one attacks, the other must not notice
	go run ./integration/hostile

.PHONY: recovery
recovery: ## measure how long nodes, leaders and a restart take to recover
	go run ./integration/recovery

.PHONY: storm
storm: ## cut 10,000 SSE clients of two nodes off at once
	go run ./integration/storm

.PHONY: waiting
waiting: ## suspend 20,000 sessions and show that they cost nothing
	HELIX_SUSPENDED=20000 go test -count=1 -v -run TestWaitingCostsNothing -timeout 20m ./integration

.PHONY: aisdk
aisdk: ## run the AI SDK's own clients, versions 5 to 7, against a daemon (needs node and npm)
	cd integration/aisdk && npm ci --no-audit --no-fund --loglevel=error
	HELIX_AISDK=1 go test -count=1 -v -run TestAISDK -timeout 10m ./integration

.PHONY: readme
readme: ## run the web page and component of chat-ui.md in Chromium (needs node, npm and chromium)
	cd integration/readme && npm ci --no-audit --no-fund --loglevel=error
	HELIX_README=1 go test -count=1 -v -run TestReadme -timeout 5m ./integration

.PHONY: debugger
debugger: ## use the debugger's page in Chromium as people do (needs node, npm and chromium)
	cd integration/debugger && npm ci --no-audit --no-fund --loglevel=error
	HELIX_BROWSER=1 go test -count=1 -v -run 'TestDebugger$$' -timeout 15m ./integration

.PHONY: pictures
pictures: ## make the documentation's pictures of the debugger anew
	cd integration/debugger && npm ci --no-audit --no-fund --loglevel=error
	HELIX_BROWSER=1 DEBUGGER_PICTURES=$(CURDIR)/docs/pictures go test -count=1 -run TestPictures -timeout 5m ./integration

.PHONY: docs
docs: ## run every command of the documentation (needs curl and jq; with ip and unshare each page has a network of its own)
	HELIX_DOCS=1 go test -count=1 -run 'TestDocs$$' -timeout 10m ./integration

.PHONY: clients
clients: ## measure what 500 idle and 500 active SSE clients get and cost
	go run ./integration/clients

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

.PHONY: rivals
rivals: ## measure helixd beside raw JetStream, Redis Streams and Durable Streams (needs redis-server, node and npm)
	cd integration/rivals/durable-streams && npm ci --no-audit --no-fund --loglevel=error
	cd integration/rivals && go run .

.PHONY: release
release: ## build the archives of a release, into DIST
	cmd/helixd/packaging/release $(DIST)

.PHONY: reproducible
reproducible: ## build one twice, from two places, and compare every byte
	cmd/helixd/packaging/reproducible

.PHONY: image
image: ## build the container image, or its content where there is no docker, and try it (as root)
	cmd/helixd/packaging/image

.PHONY: unit
unit: ## run the systemd unit, also with commands of agents (as root; needs systemd)
	cmd/helixd/packaging/unit

.PHONY: run
run: ## start a development server
	go run ./cmd/helixd dev

.PHONY: ci
ci: ## what continuous integration runs
	.ci/run
