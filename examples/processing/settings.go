package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/delivery/websocket"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/topics"
)

// settings are the settings that the environment contains.
type settings struct {
	agent     string
	catalog   topics.Catalog
	kafka     processors.Environment
	guarantee processors.Guarantee // empty: that of KAFKA_PROCESSING_GUARANTEE, or the default
	tick      time.Duration
	turn      turn.Config
	health    string // an address; empty: off

	access // who may use the doors

	parts   parts // those that run in this process
	imports bool  // HISTORY_IMPORT

	// The parts that replace chat-api.
	doors      string           // PORT, as an address; empty if they do not run
	websocket  string           // WS_PORT, as an address; empty if it does not run
	resumeKeys [][]byte         // WS_RESUME_KEY, and the one before it
	audience   websocket.Config // WS_OPERATORS, WS_EVERYONE_SEES_ALL
	chat       turnhttp.Config  // TOOL_CALLBACK_SECRET, and the one before it
	services   sink.Services    // ALLOWED_HOST_MAPPING; with one, some process delivers outputs
	delivery   delivery.Config
	chatGroup  string // OUTPUT_CONSUMER_GROUP: chat-api's group, from whose offsets deliveries start

	gated  bool             // GATE_POLICY is set: calls may wait for a person
	policy *approval.Policy // what it contains, for the turn

	additions []addition // to the turn: memory, costs, latencies
}

// thinkTimeout is half of the library's default. FlightDeck's Java think consumer drops a step when the model fails, and
// the session is blocked until this time has passed. Its model calls end after 2 minutes.
const thinkTimeout = 5 * time.Minute

// readSettings reads the environment. Its error names every invalid variable.
func readSettings(logger *zap.Logger) (settings, error) {
	var s settings
	var errs []error
	check := func(err error) { errs = append(errs, err) }
	var err error

	s.parts, err = readParts()
	check(err)
	check(s.readImport())
	s.kafka, err = processors.FromEnviron(os.Environ())
	check(err)
	s.turn, err = turn.ConfigFromEnv(os.LookupEnv)
	check(err)
	s.turn.ThinkTimeout = cmp.Or(s.turn.ThinkTimeout, thinkTimeout)
	s.turn.SourceAgent = "agent-1" // as FlightDeck's application, which does not know the agent's name
	s.turn.BothSpellings, err = forSDK()
	check(err)
	s.turn.OrderedOutputs, err = flagged(orderedVariable) // for readers that show records in order of arrival, as chat-api does
	check(err)
	s.tick, err = duration("TOOL_AGG_PUNCTUATE_INTERVAL_MS", time.Millisecond, 366*24*time.Hour, 250*time.Millisecond)
	check(err)
	s.guarantee, err = chosenGuarantee()
	check(err)
	catalog, err := processors.CatalogOptionsFromEnv(os.LookupEnv)
	check(err)
	check(s.readChat())
	if s.parts.listens() || variable("PARTS") == "" {
		s.access, err = readAccess(logger)
		check(err)
	}
	if s.parts.websocket || variable("PARTS") == "" {
		s.audience, err = readAudience(s.websocket, s.authenticate != nil)
		check(err)
	}
	s.health, err = address("HEALTH_ADDR")
	check(err)

	if len(s.services.Names()) > 0 {
		catalog = append(catalog, topics.WithDeliveries())
		s.turn.Delivery = true
	}
	if s.gated = variable("GATE_POLICY") != ""; s.gated {
		catalog = append(catalog, topics.WithGates())
	}
	if s.gated && s.parts.turn {
		s.policy, err = readPolicy()
		check(err)
		s.turn.Approval = s.policy
	}
	check(s.readAdditions(logger))
	for _, a := range s.additions {
		catalog = append(catalog, a.topics...)
		a.turn(&s.turn)
	}
	s.agent = os.Getenv("AGENT_NAME")
	if s.catalog, err = topics.For(s.agent, catalog...); err != nil {
		check(fmt.Errorf("AGENT_NAME: %w", err))
	}
	return s, errors.Join(errs...)
}

// readAdditions reads what is off by default and belongs to the turn.
func (s *settings) readAdditions(logger *zap.Logger) error {
	memory, badMemory := readMemory(s.gated, logger)
	costs, badCosts := readSpending()
	latencies, badLatencies := readLatencies()
	for _, a := range []addition{memory, costs, latencies} {
		if a.name != "" {
			s.additions = append(s.additions, a)
		}
	}
	return errors.Join(badMemory, badCosts, badLatencies)
}

// readChat reads the variables of chat-api. Addresses are checked even if their part runs in another process.
func (s *settings) readChat() error {
	var errs []error
	check := func(err error) { errs = append(errs, err) }
	doors, err := address("PORT")
	check(err)
	screen, err := address("WS_PORT")
	check(err)
	if s.parts.doors {
		s.doors = doors
	}
	if s.parts.websocket {
		s.websocket = screen
	}
	if s.doors != "" && s.doors == s.websocket && !strings.HasSuffix(s.doors, ":0") {
		check(errors.New("PORT and WS_PORT are the same address, want two"))
	}
	if s.parts.websocket || variable("PARTS") == "" {
		s.resumeKeys, err = resumeKeys(s.websocket)
		check(err)
	}
	s.services, err = sink.ParseServices(os.Getenv("ALLOWED_HOST_MAPPING"))
	if err != nil {
		check(fmt.Errorf("ALLOWED_HOST_MAPPING: %w", err))
	}
	s.delivery, err = delivery.ConfigFromEnv(os.LookupEnv)
	check(err)
	s.chatGroup = cmp.Or(variable("OUTPUT_CONSUMER_GROUP"), "chat-api-output-group")
	s.chat, err = readDoor(s.parts.doors)
	check(err)
	return errors.Join(errs...)
}

// announce logs which parts are enabled, and which variables have no effect.
func (s *settings) announce(logger *zap.Logger) {
	on := s.parts.names()
	for name, is := range map[string]bool{"gates": s.gated && (s.parts.turn || s.parts.listens()), "health": s.health != ""} {
		if is {
			on = append(on, name)
		}
	}
	if s.parts.turn {
		for _, a := range s.additions {
			on = append(on, a.name)
		}
	}
	slices.Sort(on)
	logger.Info("starting", zap.String("group", string(s.catalog.Group())), zap.Strings("brokers", s.kafka.Brokers),
		zap.Strings("applied", s.kafka.Applied), zap.Strings("on", on), zap.Strings("services", s.services.Names()),
		zap.Strings("credentials", s.kinds), zap.Bool("tls", s.tls != nil))
	if _, set := os.LookupEnv(memoirEnabled); s.parts.turn && !set {
		logger.Info("MEMOIR_ENABLED is not set and counts as false")
	}
	s.warn(logger)
	if len(s.kafka.Ignored) > 0 {
		logger.Warn("KAFKA_ variables without effect", zap.Strings("names", s.kafka.Ignored))
	}
	if without := s.withoutEffect(); len(without) > 0 {
		logger.Warn("variables without effect", zap.Strings("names", without))
	}
	switch {
	case s.imports:
		logger.Info("open turns of FlightDeck's application are not taken over: drain it first")
	case s.parts.turn:
		logger.Info("open turns and histories of FlightDeck's application are not taken over: drain it first, or set HISTORY_IMPORT=true on the first start")
	}
}

// chosenGuarantee reads PROCESSING_GUARANTEE; a blank one counts as unset.
func chosenGuarantee() (processors.Guarantee, error) {
	switch text := variable("PROCESSING_GUARANTEE"); text {
	case "", "at_least_once", "exactly_once", "exactly_once_v2":
		return processors.Guarantee(text), nil
	default:
		return "", errors.New("PROCESSING_GUARANTEE: want at_least_once or exactly_once")
	}
}
