GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
GOTESTSUM   := gotest.tools/gotestsum@v1.13.0
FUZZTIME    ?= 10s
BENCHTIME   ?= 1s
KILLS       ?= 100
TURNS       ?= 500
INSTANCES   ?= 1
CHAOS       := TURNTABLE_KILLS=$(KILLS) TURNTABLE_TURNS=$(TURNS) TURNTABLE_INSTANCES=$(INSTANCES)

# Packages are found by what is in their files, so that no list has to be kept.
holding   = $(sort $(dir $(shell grep -rlE --include='$(1)' --exclude-dir=node_modules --exclude-dir=testdata '$(2)' .)))
declaring = $(call holding,*_test.go,$(TEST)($(1)))
TEST      := ^func Test[A-Za-z0-9_]*
# The packages whose tests depend on the tag kafka: by a build constraint, or because they use internal/testing/testbroker.
KAFKA     := ^//go:build kafka|"github.com/turntable-streams/turntable/internal/testing/testbroker"
ON_KAFKA   = $(call holding,*_test.go,$(KAFKA))
# The packages with property tests.
PROPERTY  := ^[[:space:]]+"pgregory.net/rapid"
PROPERTIES = $(call holding,*_test.go,$(PROPERTY))
# The packages that start goroutines, or whose tests do: also by a server, a bubble or processors on a broker. The race detector finds
# nothing in others. The packages that they import are compiled with it, too.
STARTS    := ^[[:space:]]*go (func|[a-zA-Z_.]+)\(|\.Go\(|httptest\.New(TLS|Unstarted)?Server|synctest\.Test|testing/testbroker"
RACING     = $(call holding,*.go,$(STARTS))
# The packages with brokers that only make nightly tests under the race detector: .ci/run has time for the two with most goroutines.
NIGHTLY_RACE = $(filter-out ./internal/instance/ ./processors/crew/host/,$(ON_KAFKA))
# The tests that fill a row or a record to its limit, in one goroutine. make race leaves them out: they take longest, and have no races.
FILLING   := Rows?[A-Za-z]*Stays?Small|(Row|Queue)IsBounded|DelegationsAreLimited|FillARow|AreForgottenLater|EveryFlawOfAPipeline
# The tests that kill processes, the tests of the turn against a model, and the one of a Kafka cluster.
KILLING   ?= SurviveKills|(Is|Are)Killed|OnlyAfterCrashes
MODELS    := TurnKeepsItsPromises|ALongSessionIsNeverTooLarge
CLUSTER   := ClusterFaults
WORKERS   := ModelCallsAreRepeatedOnlyAfterCrashes
# The tests of workers beside those of turns.
ON_4_1    := $(WORKERS)|CancelReaches|DeadlineOfTheTurn|DelaysAnotherByOneSlot|BothModes|StaysAConsumerGroup|RestartOfTheBroker|LongCallIsMadeOnce|RepeatsOnlyTheRunningCall|HungProcess|DeploymentRepeats

# $(call tests,NAME,FLAGS,PACKAGES) runs go test and prints a line for each package, and the output of tests that fail. OUT/NAME.json
# keeps what every test printed, OUT/NAME.xml is a JUnit report. RERUNS=2 repeats tests that failed, and succeeds if they pass then;
# internal/testing/report lists them. A data race is a failure in any case.
OUT    ?= bin/test
RERUNS ?= 0
tests   = $(GO) run $(GOTESTSUM) --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary skipped \
	--jsonfile $(OUT)/$(1).json --junitfile $(OUT)/$(1).xml --rerun-fails=$(RERUNS) --rerun-fails-max-failures 5 \
	--rerun-fails-abort-on-data-race --packages '$(3)' -- -vet=off $(2)

# The race detector ignores the known races inside Sarama. Any other race fails a test.
export GORACE := suppressions='$(CURDIR)/internal/kafka/race.suppressions' $(GORACE)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9.-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: ## run two agents with scripted models and open their console (RUN=-plain prints every record, and ends with standard input)
	@$(GO) run ./examples/topology -memory $(RUN)

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

# Property tests draw their cases from one seed, so that a run fails only for a change. Pure functions have no races: make race draws
# few. make property tries new cases.
RAPID_SEED   ?= 1
RAPID_CHECKS ?= 100
test race test-kills test-models test-long test-kafka: export TURNTABLE_RAPID_SEED = $(RAPID_SEED)
test: export TURNTABLE_RAPID_CHECKS = $(RAPID_CHECKS)
race: export TURNTABLE_RAPID_CHECKS = 10
# make test runs each test of a broker under both guarantees: under the race detector, one for each test is enough.
race: export TURNTABLE_GUARANTEES ?= one
# Compilers, linkers and tests end soon: a larger heap saves some of their processor time.
test race test-kills test-models test-kafka test-kafka-4.1 test-kafka-cluster: export GOGC ?= 400

.PHONY: test
test: ## run all tests (under five minutes on two cores, eight the first time)
	@$(call tests,test,-p 6 -timeout 20m,$(ON_KAFKA) ./...)

.PHONY: race
race: ## run the tests of all packages that start goroutines under the race detector (EXCEPT="PACKAGES" leaves some out)
	@$(call tests,race,-race -p 5 -timeout 30m -skip '$(FILLING)',$(filter-out $(EXCEPT),$(ON_KAFKA) $(RACING)))

CHECKS ?= 1000

.PHONY: property
property: ## run the property tests on random cases (CHECKS=1000), of which make test runs the same 100 each time
	@TURNTABLE_RAPID_CHECKS=$(CHECKS) $(call tests,property,-count 1 -timeout 60m,$(PROPERTIES))

LONG_TURNS  ?= 10000
LONG_SEEDS  ?= 1000
LONG_CHECKS ?= 300
LONG_KILLS  ?= TURNTABLE_KILLS=20 TURNTABLE_TURNS=120 TURNTABLE_GATES=200 TURNTABLE_DELEGATIONS=500 TURNTABLE_SESSIONS=100 \
	TURNTABLE_TASKS=100 TURNTABLE_ROUNDS=12

.PHONY: test-kills
test-kills: ## run the kill tests at full size and under both guarantees (KILLING=PATTERN selects tests; LONG_KILLS= is the usual size)
	@TURNTABLE_LONG=1 $(LONG_KILLS) $(call tests,test-kills,-count 1 -p 2 -timeout 60m -run '$(KILLING)',$(call declaring,$(KILLING)))

.PHONY: test-models
test-models: ## run the model test and the long session of the turn (LONG_SEEDS=1000 LONG_TURNS=10000)
	@TURNTABLE_TURNS=$(LONG_TURNS) TURNTABLE_SEEDS=$(LONG_SEEDS) \
		$(call tests,test-models,-count 1 -timeout 30m -run '$(MODELS)',$(call declaring,$(MODELS)))

GROUPS ?= 100000

.PHONY: test-groups
test-groups: ## simulate 100,000 consumer groups of workers with faults, each with its own seed (GROUPS=100000, or a range: GROUPS=300-399)
	TURNTABLE_GROUPS=$(GROUPS) $(GO) test -count 1 -timeout 90m -run SimulatedGroups $(call declaring,SimulatedGroups)

OUTAGES ?= 20m

.PHONY: test-outages
test-outages: ## outages of broker, connections and process, one after the other, on a real Kafka under exactly once (OUTAGES=20m)
	TURNTABLE_OUTAGES=$(OUTAGES) $(GO) test -tags kafka -count 1 -timeout 60m -v -run OutagesUnderExactlyOnce $(call declaring,OutagesUnderExactlyOnce)

.PHONY: test-long
test-long: test-kills test-models ## run the kill, model and property tests at full size (LONG_CHECKS=300)
	$(MAKE) property CHECKS=$(LONG_CHECKS) PROPERTIES='$(filter-out $(ON_KAFKA) ./processors/fold/invoke/,$(PROPERTIES))'

.PHONY: nightly
nightly: ## run what takes hours: all tests at full size, each version and size of Kafka, new random cases, fuzzing, deliberate breaks
	$(MAKE) test-kills test-models test-groups test-outages property model fuzz breaks smoke
	$(MAKE) race TURNTABLE_GUARANTEES=both
	$(MAKE) test-kafka test-kafka-4.1 test-kafka-cluster GOTESTFLAGS=-race
	$(MAKE) chaos-kafka chaos-workers-kafka

chaos chaos-kafka chaos-workers-kafka: export TURNTABLE_LONG = 1

.PHONY: chaos
chaos: ## run the long kill test: 100 random SIGKILLs during 500 turns (KILLS=100 TURNS=500 INSTANCES=1)
	$(CHAOS) $(GO) test -count 1 -timeout 30m -v -run TestTurnsSurviveKills $(call declaring,TurnsSurviveKills)

.PHONY: chaos-kafka
chaos-kafka: ## run the long kill test on a real Kafka (needs Java 17, the first time Maven)
	$(CHAOS) $(GO) test -tags kafka -count 1 -timeout 60m -v -run TestTurnsSurviveKills $(call declaring,TurnsSurviveKills)

.PHONY: chaos-workers-kafka
chaos-workers-kafka: ## deploy, kill and pause model workers on a real Kafka (KILLS=100; KAFKA_TEST_VERSION=4.1.1: no share groups)
	TURNTABLE_KILLS=$(KILLS) $(GO) test -tags kafka -count 1 -timeout 60m -v -run $(WORKERS) $(call declaring,$(WORKERS))

SEEDS ?= 5000

.PHONY: model
model: ## run the long model test of the turn: random histories against an oracle (SEEDS=5000, or a range: SEEDS=300-399)
	TURNTABLE_SEEDS=$(SEEDS) $(GO) test -count 1 -timeout 60m -v -run TurnKeepsItsPromises $(call declaring,TurnKeepsItsPromises)

.PHONY: kafka
kafka: ## start a real Kafka without Docker and print its addresses (PORT=, NODES=1 or 3; needs Java 17, the first time Maven)
	@$(GO) run ./internal/testing/kafkatest/kafka start $(if $(PORT),-port $(PORT)) $(if $(NODES),-nodes $(NODES))

.PHONY: kafka-stop
kafka-stop: ## stop the Kafka that make kafka started, and delete its data
	@$(GO) run ./internal/testing/kafkatest/kafka stop

.PHONY: test-kafka
test-kafka: ## run the integration tests on a real Kafka (needs Java 17, the first time Maven; GOTESTFLAGS=-race; EXCEPT="PACKAGES")
	@$(call tests,test-kafka,$(GOTESTFLAGS) -p 2 -timeout 60m -tags kafka -skip '$(CLUSTER)',$(filter-out $(EXCEPT),$(ON_KAFKA)))

.PHONY: test-kafka-4.1
test-kafka-4.1: ## run the tests of workers on Kafka 4.1, which has no share groups (RUN=PATTERN selects tests)
	@KAFKA_TEST_VERSION=4.1.1 $(call tests,test-kafka-4.1,$(GOTESTFLAGS) -p 1 -count 1 -timeout 30m -tags kafka -run '$(or $(RUN),$(ON_4_1))',\
		$(call declaring,$(or $(RUN),$(ON_4_1))))
	$(if $(RUN),,@KAFKA_TEST_VERSION=4.1.1 $(call tests,test-kafka-4.1-workers,$(GOTESTFLAGS) -p 1 -count 1 -timeout 30m -tags kafka,./processors/worker/...))

.PHONY: test-kafka-cluster
test-kafka-cluster: ## run the fault tests on a Kafka of three brokers (FAULTS=PATTERN selects faults)
	@$(call tests,test-kafka-cluster,$(GOTESTFLAGS) -count 1 -timeout 30m -tags kafka -run '$(CLUSTER)/$(FAULTS)',$(call declaring,$(CLUSTER)))

.PHONY: test-node
test-node: ## test that the ai package from npm can read the Vercel streams, topics/asyncapi.json, and the TypeScript workers (needs Node 20)
	$(GO) build -o bin/ ./examples/invoke
	cd examples/invoke && npm ci --no-audit --no-fund && npm test
	cd internal/testing/asyncapi && npm ci --ignore-scripts --no-audit --no-fund && npm test
	cd examples/workers/typescript && npm ci --ignore-scripts --no-audit --no-fund && npm run check
	TURNTABLE_NODE=node $(GO) test -vet=off -count 1 -run WorkersOfOtherLanguages $(call declaring,WorkersOfOtherLanguages)

.PHONY: test-python
test-python: ## test the Python workers against an agent (needs Python 3.9 with venv)
	python3 -m venv bin/python
	bin/python/bin/pip install --quiet --disable-pip-version-check -r examples/workers/python/requirements.txt
	TURNTABLE_PYTHON=$(CURDIR)/bin/python/bin/python $(GO) test -vet=off -count 1 -run WorkersOfOtherLanguages \
		$(call declaring,WorkersOfOtherLanguages)

INSTALLED := processors/crew/host
RUN_AGENT ?= Installed

.PHONY: agents
agents: ## test real coding agents, from npm and with a loopback model: allow, deny, no answer, interrupt, kill (needs Node 22; RUN_AGENT=PATTERN)
	mkdir -p bin/agents
	cp $(INSTALLED)/testdata/agents/*.json bin/agents/
	cd bin/agents && npm install --no-save --ignore-scripts --no-audit --no-fund
	TURNTABLE_NPM_AGENTS=$(CURDIR)/bin/agents/node_modules $(GO) test -tags agents -count 1 -timeout 30m -v -run '$(RUN_AGENT)' ./$(INSTALLED)

.PHONY: test-browser
test-browser: ## test the console in Chromium with axe-core (installs Debian's chromium if there is none; needs npm)
	processors/console/vendor.sh
	processors/console/browser.sh

.PHONY: bench
bench: export TURNTABLE_IDLE_SESSIONS ?= 1000000
bench: ## run all benchmarks (BENCHTIME=1s); fails if one allocates more than its baseline
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 30m ./... | \
		$(GO) run ./internal/testing/report allocs -baseline $(ALLOCS)

ALLOCS  = internal/testing/report/allocs.txt
GUARDED = ./codec ./topics ./processors/turn ./processors/fold/folder
GUARD = $(GO) test -run '^$$' -bench '$(shell awk '!/^\#/ { split($$2, n, "/"); print n[1] }' $(ALLOCS) | \
	sort -u | tr '\n' '|' | sed 's/|$$//; s/.*/^(&)$$/')' -benchmem -benchtime 300x $(GUARDED)

.PHONY: bench-guard
bench-guard: ## check that no hot path makes over 10 % more allocations than in internal/testing/report/allocs.txt
	@$(GUARD) | $(GO) run ./internal/testing/report allocs -baseline $(ALLOCS)

.PHONY: bench-baseline
bench-baseline: ## update internal/testing/report/allocs.txt with the current allocations
	@$(GUARD) | $(GO) run ./internal/testing/report allocs -baseline $(ALLOCS) -write

.PHONY: load
load: ## measure the cost of a turn on a real Kafka, compared to the floor (LOAD="-sweep all -json FILE"; needs Java 17)
	@$(GO) build -o bin/bench ./internal/bench
	@bin/bench $(if $(KAFKA_BOOTSTRAP_SERVERS),-brokers $(KAFKA_BOOTSTRAP_SERVERS),-kafka) -sweep table $(LOAD)

.PHONY: bench-hostile
bench-hostile: ## measure honest clients of every door beside 1,000 hostile connections (HOSTILE="-hostile 1000 -honest 50 -for 5s -rounds 4 -doors chat,channel")
	@$(GO) build -o bin/hostile ./internal/bench/hostile
	@bin/hostile $(HOSTILE)

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME=10s each
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg; \
		done; \
	done

.PHONY: breaks
breaks: ## break each promise on purpose, and require that a test fails that names it
	internal/testing/breaks/run

.PHONY: mutants
mutants: ## change operators of the transitions one at a time, and count those that no test notices (MUTANTS="gate fold" SAMPLE=8)
	internal/testing/mutants/run $(MUTANTS)

.PHONY: generate
generate: ## regenerate the generated code
	$(GO) generate ./...

.PHONY: vet
vet: ## run go vet
	$(GO) vet ./...
	$(GO) vet -tags kafka,lint $(ON_KAFKA) ./internal/layering
	$(GO) vet -tags agents ./$(INSTALLED)
	$(GO) vet -tags browser ./processors/console

.PHONY: lint
lint: vet ## run go vet and staticcheck, check dependencies and documents, the format (gofumpt), go.mod and the patches of make breaks
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(STATICCHECK) -tags kafka,lint $(ON_KAFKA) ./internal/layering
	$(GO) test -vet=off -tags lint ./internal/layering
	git apply --check internal/testing/breaks/*.patch
	@unformatted=$$($(GO) run $(GOFUMPT) -l .); \
		if [ -n "$$unformatted" ]; then echo "gofumpt would change:" $$unformatted; exit 1; fi
	$(GO) mod tidy -diff

.PHONY: format
format: ## format the code with gofumpt
	$(GO) run $(GOFUMPT) -w .
