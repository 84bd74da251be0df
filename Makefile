GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
FUZZTIME    ?= 10s
BENCHTIME   ?= 1s
KILLS       ?= 100
TURNS       ?= 500
INSTANCES   ?= 1
CLUSTER     := TestClusterFaults
WORKERS     := ModelCallsAreRepeatedOnlyAfterCrashes
# The packages whose tests depend on the tag kafka: by a build constraint, or because they use internal/testing/testbroker.
ON_KAFKA     = $(sort $(dir $(shell grep -rlE --include='*_test.go' \
	'^//go:build kafka|"github.com/turntable-streams/turntable/internal/testing/testbroker"' .)))
# The packages whose tests take longest start first, so that none of them runs alone at the end.
SLOWEST     := ./processors/turn/integration ./processors/turn ./internal/layering ./internal/integration/whole ./examples/processing \
	./processors/fold/invoke ./internal/instance ./processors/worker/internal/consumer ./internal/integration/agents ./processors/crew/host
# The packages with property tests.
PROPERTIES   = $(sort $(dir $(shell grep -rl --include='*_test.go' '"pgregory.net/rapid"' .)))
CHAOS       := TURNTABLE_KILLS=$(KILLS) TURNTABLE_TURNS=$(TURNS) TURNTABLE_INSTANCES=$(INSTANCES)

# The race detector ignores the known races inside Sarama. Any other race fails a test.
export GORACE := suppressions='$(CURDIR)/internal/kafka/race.suppressions' $(GORACE)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9.-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: ## run the topology example: two agents answer a question, a later session remembers an earlier one, then your questions
	@$(GO) run ./examples/topology -memory

.PHONY: multiagent
multiagent: ## run two agents as separate processes; one calls the other as a tool over HTTP
	@$(GO) run ./examples/multiagent $(if $(KAFKA_BOOTSTRAP_SERVERS),-brokers $(KAFKA_BOOTSTRAP_SERVERS))

.PHONY: approval
approval: ## run an agent that asks a person before it pays: approve, deny, edit and no answer
	@$(GO) run ./examples/approval $(if $(KAFKA_BOOTSTRAP_SERVERS),-brokers $(KAFKA_BOOTSTRAP_SERVERS))

.PHONY: peers
peers: ## run three instances that delegate tasks: an offline one, an approval, a revoked token, a loop, the audit
	@$(GO) run ./examples/peers

.PHONY: channels
channels: ## run agents on Slack and e-mail, played by loopback servers: handed-off tasks, a kill, an approval, a removed channel
	@$(GO) run ./examples/channels

.PHONY: crew
crew: ## run a crew of scripted coding agents: delegation, permissions, a lock conflict, commits, kill -9 (a real one: go run ./examples/crew -agent CMD)
	@$(GO) run ./examples/crew $(if $(KAFKA_BOOTSTRAP_SERVERS),-brokers $(KAFKA_BOOTSTRAP_SERVERS))

.PHONY: smoke
smoke: ## build the container image of bin/processing twice, compare, and try it; without Docker, the same binary
	@examples/processing/smoke.sh

.PHONY: build
build: ## build the examples' binaries into bin/
	$(GO) build -o bin/ ./examples/...

.PHONY: test
test: ## run all tests under the race detector (about ten minutes on two cores, and two more the first time)
	$(GO) test -race -vet=off -p 4 -timeout 30m $(SLOWEST) ./...

# Property tests of make test draw a few cases from one seed, so that a run fails only for a change. make test-long draws more from
# it, without the race detector, which takes eight times as long and finds nothing in pure functions. make property tries new cases.
RAPID_SEED   ?= 1
RAPID_CHECKS ?= 30
test test-long test-kafka: export TURNTABLE_RAPID_SEED = $(RAPID_SEED)
test: export TURNTABLE_RAPID_CHECKS = $(RAPID_CHECKS)

CHECKS ?= 1000

.PHONY: property
property: ## run the property tests on random cases (CHECKS=1000), which make test runs on the same 30
	TURNTABLE_RAPID_CHECKS=$(CHECKS) $(GO) test -count 1 -timeout 60m $(PROPERTIES)

LONG_KILLS       ?= 20
LONG_TURNS       ?= 10000
LONG_SEEDS       ?= 1000
LONG_DELEGATIONS ?= 500
LONG_CHECKS      ?= 300

.PHONY: test-long
test-long: ## run the kill, model and property tests and the long session of the turn at full size (LONG_KILLS=20 LONG_SEEDS=1000 ...)
	TURNTABLE_RAPID_CHECKS=$(LONG_CHECKS) $(GO) test -count 1 -timeout 30m $(filter-out %/integration/ ./internal/integration/% ./processors/fold/invoke/ ./internal/layering/,$(PROPERTIES))
	TURNTABLE_RAPID_CHECKS=$(LONG_CHECKS) $(GO) test -count 1 -timeout 30m -run 'GateIndexIsBounded|IndexFromRowAndTail' ./processors/fold/invoke
	TURNTABLE_LONG=1 TURNTABLE_TURNS=200 TURNTABLE_KILLS=6 $(GO) test -race -count 1 -timeout 30m -run EveryTurnYieldsOneBatch ./internal/integration/capabilities
	TURNTABLE_TURNS=$(LONG_TURNS) $(GO) test -count 1 -timeout 30m -run ALongSessionIsNeverTooLarge ./processors/turn
	TURNTABLE_SEEDS=$(LONG_SEEDS) $(GO) test -count 1 -timeout 30m -run TurnKeepsItsPromises ./processors/turn
	TURNTABLE_TURNS=120 TURNTABLE_KILLS=$(LONG_KILLS) $(GO) test -count 1 -timeout 30m -run TurnsSurviveKills ./processors/turn/integration
	TURNTABLE_DELEGATIONS=$(LONG_DELEGATIONS) TURNTABLE_KILLS=12 $(GO) test -count 1 -timeout 30m -run ResultsReachTheirOrigins ./internal/integration/whole
	TURNTABLE_KILLS=$(LONG_KILLS) $(GO) test -count 1 -timeout 30m -run $(WORKERS) ./processors/turn/think/integration
	TURNTABLE_SESSIONS=100 TURNTABLE_KILLS=10 $(GO) test -count 1 -timeout 30m -run MemoriesLoseNothing ./internal/integration/whole
	TURNTABLE_ROUNDS=12 TURNTABLE_KILLS=$(LONG_KILLS) $(GO) test -count 1 -timeout 30m -run CrewsSurviveKills ./internal/integration/whole

.PHONY: chaos
chaos: ## run the long kill test: 100 random SIGKILLs during 500 turns (KILLS=100 TURNS=500 INSTANCES=1)
	$(CHAOS) $(GO) test -count 1 -timeout 30m -v -run TurnsSurviveKills ./processors/turn/integration

.PHONY: chaos-kafka
chaos-kafka: ## run the long kill test on a real Kafka (needs Java 17, the first time Maven)
	$(CHAOS) $(GO) test -tags kafka -count 1 -timeout 60m -v -run TurnsSurviveKills ./processors/turn/integration

.PHONY: chaos-workers-kafka
chaos-workers-kafka: ## deploy, kill and pause model workers on a real Kafka (KILLS=100; KAFKA_TEST_VERSION=4.1.1: no share groups)
	TURNTABLE_KILLS=$(KILLS) $(GO) test -tags kafka -count 1 -timeout 60m -v -run $(WORKERS) ./processors/turn/think/integration

SEEDS ?= 5000

.PHONY: model
model: ## run the long model test of the turn: random histories against an oracle (SEEDS=5000, or a range: SEEDS=300-399)
	TURNTABLE_SEEDS=$(SEEDS) $(GO) test -count 1 -timeout 60m -v -run TurnKeepsItsPromises ./processors/turn

.PHONY: kafka
kafka: ## start a real Kafka without Docker and print its addresses (PORT=, NODES=1 or 3; needs Java 17, the first time Maven)
	@$(GO) run ./internal/testing/kafkatest/kafka start $(if $(PORT),-port $(PORT)) $(if $(NODES),-nodes $(NODES))

.PHONY: kafka-stop
kafka-stop: ## stop the Kafka that make kafka started, and delete its data
	@$(GO) run ./internal/testing/kafkatest/kafka stop

.PHONY: test-kafka
test-kafka: ## run the integration tests on a real Kafka (needs Java 17, the first time Maven)
	$(GO) test -race -p 2 -timeout 60m -tags kafka -skip '^$(CLUSTER)$$' $(ON_KAFKA)

.PHONY: test-kafka-4.1
test-kafka-4.1: ## run the tests of workers on Kafka 4.1, which has no share groups
	KAFKA_TEST_VERSION=4.1.1 $(GO) test -race -p 1 -count 1 -timeout 30m -tags kafka ./processors/worker/... ./processors/turn/think/integration

.PHONY: test-kafka-cluster
test-kafka-cluster: ## run the fault tests on a Kafka of three brokers
	$(GO) test -race -count 1 -timeout 30m -tags kafka -v -run '^$(CLUSTER)$$' ./processors/turn/integration

.PHONY: test-node
test-node: ## test that the ai package from npm can read the Vercel streams (needs Node 20)
	$(GO) build -o bin/ ./examples/invoke
	cd examples/invoke && npm ci --no-audit --no-fund && npm test

.PHONY: bench
bench: export TURNTABLE_IDLE_SESSIONS ?= 1000000
bench: ## run all benchmarks (BENCHTIME=1s); fails if one allocates more than its baseline
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 30m ./... | \
		$(GO) run ./internal/testing/allocs -baseline internal/testing/allocs/baseline.txt

GUARDED = ./codec ./topics ./processors/turn ./processors/fold
GUARD = $(GO) test -run '^$$' -bench '$(shell awk '!/^\#/ { split($$2, n, "/"); print n[1] }' internal/testing/allocs/baseline.txt | \
	sort -u | tr '\n' '|' | sed 's/|$$//; s/.*/^(&)$$/')' -benchmem -benchtime 300x $(GUARDED)

.PHONY: bench-guard
bench-guard: ## check that no hot path makes over 10 % more allocations than in internal/testing/allocs/baseline.txt
	@$(GUARD) | $(GO) run ./internal/testing/allocs -baseline internal/testing/allocs/baseline.txt

.PHONY: bench-baseline
bench-baseline: ## update internal/testing/allocs/baseline.txt with the current allocations
	@$(GUARD) | $(GO) run ./internal/testing/allocs -baseline internal/testing/allocs/baseline.txt -write

.PHONY: load
load: ## measure the cost of a turn on a real Kafka, compared to the floor (LOAD="-sweep all -json FILE"; needs Java 17)
	@$(GO) build -o bin/bench ./examples/bench
	@bin/bench $(if $(KAFKA_BOOTSTRAP_SERVERS),-brokers $(KAFKA_BOOTSTRAP_SERVERS),-kafka) -sweep table $(LOAD)

.PHONY: bench-hostile
bench-hostile: ## measure honest clients of every door beside 1,000 hostile connections (HOSTILE="-hostile 1000 -honest 50 -for 20s")
	@$(GO) build -o bin/hostile ./examples/hostile
	@bin/hostile $(HOSTILE)

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME=10s each
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg; \
		done; \
	done

.PHONY: generate
generate: ## regenerate the generated code
	$(GO) generate ./...

.PHONY: vet
vet: ## run go vet
	$(GO) vet ./...
	$(GO) vet -tags kafka ./...

.PHONY: lint
lint: vet ## run go vet and staticcheck, and check the format (gofumpt) and go.mod
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(STATICCHECK) -tags kafka ./...
	@unformatted=$$($(GO) run $(GOFUMPT) -l .); \
		if [ -n "$$unformatted" ]; then echo "gofumpt would change:" $$unformatted; exit 1; fi
	$(GO) mod tidy -diff

.PHONY: format
format: ## format the code with gofumpt
	$(GO) run $(GOFUMPT) -w .
