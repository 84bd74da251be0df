package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/door"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/topics"
)

// settings are the settings that the environment contains.
type settings struct {
	agent     string
	catalog   topics.Catalog
	kafka     processors.Environment
	guarantee processors.Guarantee // empty: that of KAFKA_PROCESSING_GUARANTEE, or the default
	tick      time.Duration
	turn      []turn.Option
	health    string // an address; empty: off

	access // who may use the doors

	// The parts that replace chat-api. Each is off if its variable is not set.
	doors      string   // PORT, as an address
	websocket  string   // WS_PORT, as an address
	resumeKeys [][]byte // WS_RESUME_KEY, and the one before it
	secrets    []string // TOOL_CALLBACK_SECRET, and the one before it
	callbacks  []door.Option
	deliveries bool // ALLOWED_HOST_MAPPING
	services   sink.Services
	delivery   []delivery.Option
	chatGroup  string // OUTPUT_CONSUMER_GROUP: chat-api's group, from whose offsets deliveries start

	policy *approval.Policy // GATE_POLICY; nil: no call waits for a person
}

// readSettings reads the environment. Its error names every invalid variable.
// thinkTimeout is half of the library's default. FlightDeck's Java think consumer drops a step when the model fails, and
// the session is blocked until this time has passed. Its model calls end after 2 minutes.
const thinkTimeout = 5 * time.Minute

func readSettings(logger *zap.Logger) (settings, error) {
	var s settings
	var errs []error
	check := func(err error) { errs = append(errs, err) }
	var err error

	s.kafka, err = processors.FromEnviron(os.Environ())
	check(err)
	fromEnv, err := turn.OptionsFromEnv(os.LookupEnv)
	check(err)
	s.turn = append([]turn.Option{turn.WithThinkTimeout(thinkTimeout)}, fromEnv...)
	s.tick, err = milliseconds("TOOL_AGG_PUNCTUATE_INTERVAL_MS", 250*time.Millisecond)
	check(err)
	s.guarantee, err = chosenGuarantee()
	check(err)
	catalog, err := processors.CatalogOptionsFromEnv(os.LookupEnv)
	check(err)
	check(rejectMemoir(logger))
	check(s.readChat())
	s.access, err = readAccess(logger)
	check(err)
	s.health, err = address("HEALTH_ADDR")
	check(err)

	if s.deliveries {
		catalog = append(catalog, topics.WithDeliveries())
		s.turn = append(s.turn, turn.WithDelivery())
	}
	s.policy, err = readPolicy()
	check(err)
	if s.policy != nil {
		catalog = append(catalog, topics.WithGates())
		s.turn = append(s.turn, turn.WithApproval(*s.policy))
	}
	s.agent = os.Getenv("AGENT_NAME")
	if s.catalog, err = topics.For(s.agent, catalog...); err != nil {
		check(fmt.Errorf("AGENT_NAME: %w", err))
	}
	return s, errors.Join(errs...)
}

// readChat reads the variables of chat-api.
func (s *settings) readChat() error {
	var errs []error
	check := func(err error) { errs = append(errs, err) }
	var err error
	s.doors, err = address("PORT")
	check(err)
	s.websocket, err = address("WS_PORT")
	check(err)
	if s.doors != "" && s.doors == s.websocket && !strings.HasSuffix(s.doors, ":0") {
		check(errors.New("PORT and WS_PORT are the same address, want two"))
	}
	s.resumeKeys, err = resumeKeys(s.websocket)
	check(err)
	s.services, err = sink.ParseServices(os.Getenv("ALLOWED_HOST_MAPPING"))
	if err != nil {
		check(fmt.Errorf("ALLOWED_HOST_MAPPING: %w", err))
	}
	s.deliveries = len(s.services.Names()) > 0
	s.delivery, err = delivery.OptionsFromEnv(os.LookupEnv)
	check(err)
	s.chatGroup = cmp.Or(variable("OUTPUT_CONSUMER_GROUP"), "chat-api-output-group")

	current, previous := os.Getenv("TOOL_CALLBACK_SECRET"), os.Getenv("TOOL_CALLBACK_SECRET_PREVIOUS")
	set := func(secret string) bool { return strings.TrimSpace(secret) != "" }
	switch {
	case set(previous) && !set(current):
		check(errors.New("TOOL_CALLBACK_SECRET_PREVIOUS is set and TOOL_CALLBACK_SECRET is not"))
	case set(current) && s.doors == "":
		check(errors.New("TOOL_CALLBACK_SECRET is set and PORT is not: no tool could call back"))
	}
	for name, secret := range map[string]string{"TOOL_CALLBACK_SECRET": current, "TOOL_CALLBACK_SECRET_PREVIOUS": previous} {
		if _, err := token.NewVerifier(secret); err != nil {
			check(fmt.Errorf("%s has fewer than %d bytes (openssl rand -base64 32)", name, token.MinSecret))
		}
	}
	for name, option := range map[string]door.Option{
		"TOOL_CALLBACK_ANY_AGENT":      door.WithTokensOfAnyAgent(),
		"TOOL_CALLBACK_WITHOUT_EXPIRY": door.WithTokensWithoutExpiry(),
		"TOOL_CALLBACK_SINGLE_USE":     door.WithSingleUseTokens(),
	} {
		switch text := variable(name); {
		case strings.EqualFold(text, "true"):
			s.callbacks = append(s.callbacks, option)
		case text != "" && !strings.EqualFold(text, "false"):
			check(fmt.Errorf("%s: want true or false", name))
		}
	}
	s.secrets = slices.DeleteFunc([]string{current, previous}, func(secret string) bool { return !set(secret) })
	return errors.Join(errs...)
}

// announce logs which parts are enabled, and which variables have no effect.
func (s *settings) announce(logger *zap.Logger) {
	on := []string{"turn"}
	for name, is := range map[string]bool{
		"chat and tool callbacks": s.doors != "", "websocket": s.websocket != "", "deliveries": s.deliveries,
		"gates": s.policy != nil, "health": s.health != "",
	} {
		if is {
			on = append(on, name)
		}
	}
	slices.Sort(on)
	logger.Info("starting", zap.String("group", string(s.catalog.Group())), zap.Strings("brokers", s.kafka.Brokers),
		zap.Strings("applied", s.kafka.Applied), zap.Strings("on", on), zap.Strings("services", s.services.Names()),
		zap.Strings("credentials", s.kinds), zap.Bool("tls", s.tls != nil))
	s.warn(logger)
	if len(s.kafka.Ignored) > 0 {
		logger.Warn("KAFKA_ variables without effect", zap.Strings("names", s.kafka.Ignored))
	}
	if without := s.withoutEffect(); len(without) > 0 {
		logger.Warn("variables without effect", zap.Strings("names", without))
	}
	logger.Info("open turns and histories of FlightDeck's application are not taken over: drain it first")
}

func (s *settings) withoutEffect() (names []string) {
	unused := []string{"PIPELINE_CONSUMER_GROUP"} // every WebSocket reads all records
	if !s.deliveries {
		unused = append(unused, "OUTPUT_CONSUMER_GROUP", "REPLY_RETRY_MAX_MS")
	}
	for _, name := range unused {
		if variable(name) != "" {
			names = append(names, name)
		}
	}
	return names
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

var errMemoir = errors.New("MEMOIR_ENABLED=true is not supported; set MEMOIR_ENABLED=false")

// rejectMemoir reads MEMOIR_ENABLED as FlightDeck does, where only "true" enables; its default was true.
func rejectMemoir(logger *zap.Logger) error {
	value, set := os.LookupEnv("MEMOIR_ENABLED")
	if strings.EqualFold(value, "true") {
		return errMemoir
	}
	if !set {
		logger.Info("MEMOIR_ENABLED is not set and counts as false")
	}
	return nil
}

// variable returns the value of a variable; a blank one counts as unset.
func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// milliseconds reads a duration.
func milliseconds(name string, unset time.Duration) (time.Duration, error) {
	text := variable(name)
	if text == "" {
		return unset, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if limit := int64(366 * 24 * time.Hour / time.Millisecond); err != nil || ms < 1 || ms > limit {
		return unset, fmt.Errorf("%s: want a whole number from 1 to %d", name, limit)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// address reads a port, of the loopback interface, or host:port. Port 0 is any that is free. Only a host opens an address to
// other machines: 0.0.0.0 means all interfaces.
func address(name string) (string, error) {
	text := variable(name)
	if text == "" {
		return "", nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = "", text
	}
	host = cmp.Or(host, "127.0.0.1")
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%s: want a port, or host:port", name)
	}
	return net.JoinHostPort(host, port), nil
}
