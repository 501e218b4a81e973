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

# How long alerts have to be quiet, and by how much their durations are divided.
HEALTHY ?= 2m
SCALE ?= 10

# Where a release's archives go.
DIST ?= dist

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## start a development server with demo agents
	@echo "The first build takes two to three minutes: NATS and SQLite are compiled with it."
	go run ./cmd/helixd dev

.PHONY: test
test: ## run the tests
	go test ./...

.PHONY: lint
lint: ## gofmt, go vet and staticcheck
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; }
	go vet ./...
	go tool staticcheck ./...

.PHONY: race
race: ## run the tests with the race detector (needs a C compiler)
	go test -race -timeout 20m ./...

.PHONY: ci
ci: ## run everything that continuous integration runs
	.ci/run

.PHONY: docs
docs: ## run every command of the documentation (needs curl, jq)
	HELIX_DOCS=1 go test -count=1 -run 'TestDocs$$' -timeout 10m ./integration

.PHONY: hour
hour: ## a newcomer's first hour, from a release (needs curl, jq, node, npm, chromium)
	cmd/helixd/packaging/release $(DIST) $(shell go env GOOS)/$(shell go env GOARCH)
	cd integration/readme && npm ci --no-audit --no-fund --loglevel=error
	HELIX_RELEASE=$(abspath $(DIST)) go test -count=1 -v -run TestFirstHour -timeout 10m ./integration

.PHONY: month
month: ## an operator's first month, from a release, while clients use it (needs curl, jq, openssl)
	cmd/helixd/packaging/release $(DIST) $(shell go env GOOS)/$(shell go env GOARCH)
	HELIX_RELEASE=$(abspath $(DIST)) go test -count=1 -v -run TestFirstMonth -timeout 12m ./integration

.PHONY: js
js: ## build the web client's npm tarball into DIST (needs node, npm)
	mkdir -p $(DIST)
	cd httpapi/js && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build && npm pack --silent --pack-destination $(abspath $(DIST))

.PHONY: jstest
jstest: js ## test the web client against a daemon (needs node, npm)
	cd integration/aisdk && npm ci --no-audit --no-fund --loglevel=error
	HELIX_JS=1 go test -count=1 -v -run TestJS -timeout 5m ./integration

.PHONY: readme
readme: ## run the pages of docs/guides/chat-ui.md (needs node, npm, chromium)
	cd integration/readme && npm ci --no-audit --no-fund --loglevel=error
	HELIX_README=1 go test -count=1 -v -run TestReadme -timeout 5m ./integration

.PHONY: aisdk
aisdk: ## run the AI SDK's own clients, versions 5 to 7 (needs node, npm)
	cd integration/aisdk && npm ci --no-audit --no-fund --loglevel=error
	HELIX_AISDK=1 go test -count=1 -v -run TestAISDK -timeout 10m ./integration

.PHONY: durable
durable: ## run the suite and the client of the Durable Streams protocol (needs node, npm)
	cd integration/durable && npm ci --no-audit --no-fund --loglevel=error
	HELIX_DURABLE=1 go test -count=1 -v -run 'TestDurableStreams$$' -timeout 5m ./integration

.PHONY: story
story: ## run one session through OpenAI's SDK, AG-UI, the debugger, Durable Streams and the command line (needs node, npm, Chromium)
	for folder in openai agui durable debugger; do (cd integration/$$folder && npm ci --no-audit --no-fund --loglevel=error) || exit; done
	HELIX_STORY=1 go test -count=1 -v -run TestOneStory -timeout 5m ./integration

.PHONY: openai
openai: ## run the official OpenAI SDKs for Node and Go (needs node, npm)
	cd integration/openai && npm ci --no-audit --no-fund --loglevel=error
	HELIX_OPENAI=1 go test -count=1 -v -run 'TestOpenAI$$' -timeout 5m ./integration

.PHONY: agui
agui: ## run AG-UI's own client (needs node, npm)
	cd integration/agui && npm ci --no-audit --no-fund --loglevel=error
	HELIX_AGUI=1 go test -count=1 -v -run 'TestAGUI$$' -timeout 5m ./integration

.PHONY: copilotkit
copilotkit: ## run CopilotKit's runtime and client in front of a daemon (needs node, npm)
	cd integration/copilotkit && npm ci --no-audit --no-fund --loglevel=error
	HELIX_COPILOTKIT=1 go test -count=1 -v -run 'TestCopilotKit$$' -timeout 5m ./integration

.PHONY: debugger
debugger: ## use the debugger's page (needs node, npm, chromium)
	cd integration/debugger && npm ci --no-audit --no-fund --loglevel=error
	HELIX_BROWSER=1 go test -count=1 -v -run 'TestDebugger$$' -timeout 15m ./integration

.PHONY: pictures
pictures: ## make the pictures of the documentation again; with DEBUGGER_STATES=FOLDER also those of all states
	cd integration/debugger && npm ci --no-audit --no-fund --loglevel=error
	HELIX_BROWSER=1 DEBUGGER_PICTURES=$(CURDIR)/docs/pictures go test -count=1 -run TestPictures -timeout 15m ./integration

.PHONY: kill
kill: ## kill a server KILLS times; no record may be lost
	HELIX_FULL=1 HELIX_KILLS=$(KILLS) go test -count=1 -run TestKill -timeout 20m ./integration

.PHONY: simulate
simulate: ## interleave what may happen to a session's bytes, in SEEDS orders
	GOGC=400 HELIX_FIRST_SEED=$${HELIX_FIRST_SEED:-$$(date +%s)000} HELIX_SEEDS=$(SEEDS) go test -count=1 -v -run 'TestLifecycle$$' -timeout 6h ./eventlog/jetstream/internal/maintenance

.PHONY: chaos
chaos: ## break nodes, links and disks for CHAOS while sessions stream
	go run ./integration/chaos -seed $(SEED) -for $(CHAOS)
	go run ./integration/chaos -seed $(SEED) -for 2m -nodes 1 -sessions 60
	go run ./integration/chaos -seed $(SEED) -for 2m -nodes 1 -sessions 60 -faults power

# The commit of the last release.
RELEASED = $(shell awk 'END {print $$2}' integration/testdata/releases/list)

.PHONY: upgrade
upgrade: ## upgrade from the last release and go back, also in a cluster under load
	HELIX_UPGRADE=1 go test -count=1 -v -run 'TestReleases|TestUpgrade' -timeout 10m ./integration
	go run ./integration/chaos -seed $(SEED) -short -from $(RELEASED)

.PHONY: grow
grow: ## an operator grows a deployment while sessions stream
	go run ./integration/chaos -seed $(SEED) -nodes 1 -story grow,join,replace -sessions 24
	go run ./integration/chaos -seed $(SEED) -nodes 3 -story partitions -sessions 24
	HELIX_GROW=1 go test -count=1 -run 'TestABackupGoesAnywhere' -timeout 10m ./integration

.PHONY: soak
soak: ## keep 300 sessions busy for SOAK; nothing may grow
	go run ./integration/soak -seed $(SEED) -for $(SOAK)

.PHONY: hostile
hostile: ## one tenant attacks another, which must not notice
	go run ./integration/hostile

.PHONY: waiting
waiting: ## suspend 20,000 sessions; they may cost nothing
	HELIX_SUSPENDED=20000 go test -count=1 -v -run TestWaitingCostsNothing -timeout 20m ./integration

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

.PHONY: recovery
recovery: ## measure how soon work continues after a failure
	go run ./integration/recovery

.PHONY: storm
storm: ## disconnect 10,000 SSE clients at once and measure
	go run ./integration/storm

.PHONY: clients
clients: ## measure what 500 idle and 500 active SSE clients cost
	go run ./integration/clients

.PHONY: rivals
rivals: ## measure beside Redis and others (needs redis-server, node, npm)
	cd integration/rivals/durable-streams && npm ci --no-audit --no-fund --loglevel=error
	cd integration/rivals && go run .

.PHONY: alerts
alerts: ## break daemons, and see that Prometheus' alerts fire (as root)
	cd integration/alerts && go run . -healthy $(HEALTHY) -scale $(SCALE)

.PHONY: release
release: ## build a release's archives into DIST
	cmd/helixd/packaging/release $(DIST)

.PHONY: reproducible
reproducible: ## build a release twice and compare every byte
	cmd/helixd/packaging/reproducible

.PHONY: kube
kube: ## render the Helm chart and compose.yaml, and run their nodes
	cd integration/kube && go vet ./... && go test -count=1 ./...

.PHONY: lab
lab: ## the regression lab on 500 recorded sessions, and unchanged agents 100 times
	HELIX_FULL=1 HELIX_LAB_ROUNDS=100 go test -count=1 -v -timeout 30m ./agentloop/lab

.PHONY: size
size: ## measure the constants of helixd size
	HELIX_SIZE=1 go test -count=1 -v -run 'TestSize$$' -timeout 10m ./integration

.PHONY: image
image: ## build the container image and try it (as root)
	cmd/helixd/packaging/image

.PHONY: unit
unit: ## run the systemd unit (as root; needs systemd)
	cmd/helixd/packaging/unit
