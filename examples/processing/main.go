// Processing runs the turn processor of one agent, configured by the environment. It replaces FlightDeck's `processing`
// application: the same topics, group and variables. It ends with 0 on SIGTERM or Ctrl-C, after a drain.
//
//	AGENT_NAME=support KAFKA_BOOTSTRAP_SERVERS=kafka:9092 KAFKA_STATE_DIR=/var/lib/turntable processing
//
// It is also the model of how to embed Turntable: environment to options, graph, processor, Run.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

func main() {
	logger := zap.Must(zap.NewProduction(zap.AddStacktrace(zap.FatalLevel)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait for the drain
	err := run(ctx, logger)
	if err != nil {
		logger.Error("processing ends", zap.Error(err))
	}
	_ = logger.Sync()
	if err != nil {
		os.Exit(1)
	}
}

func run(ctx context.Context, logger *zap.Logger) error {
	processor, err := configure(logger)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return processor.Run(ctx) })
	if addr := os.Getenv("HEALTH_ADDR"); addr != "" {
		group.Go(func() error { return serveHealth(ctx, addr, processor, logger) })
	}
	return group.Wait()
}

// configure makes the processor that the environment describes. Its error names every variable that is wrong.
func configure(logger *zap.Logger) (*processors.Processor, error) {
	agent := os.Getenv("AGENT_NAME")
	kafka, kafkaErr := processors.FromEnviron(os.Environ())
	rules, rulesErr := turn.OptionsFromEnv(os.LookupEnv)
	tick, tickErr := milliseconds("TOOL_AGG_PUNCTUATE_INTERVAL_MS", 250*time.Millisecond)
	guarantee, guaranteeErr := chosenGuarantee()
	ttl, ttlErr := milliseconds("REPLY_TO_STATE_TTL_MS", topics.DefaultRouteTTL)
	catalog, agentErr := topics.For(agent, topics.WithRouteTTL(ttl))
	if agentErr != nil {
		agentErr = fmt.Errorf("AGENT_NAME: %w", agentErr)
	}
	err := errors.Join(agentErr, kafkaErr, rulesErr, tickErr, ttlErr, guaranteeErr, refuseMemoir(logger))
	if err != nil {
		return nil, err
	}
	graph, err := turn.Graph(agent, rules...)
	if err != nil {
		return nil, err
	}
	logger.Info("starting", zap.String("group", string(catalog.Group())), zap.Strings("brokers", kafka.Brokers),
		zap.Strings("applied", kafka.Applied))
	if len(kafka.Ignored) > 0 {
		logger.Warn("KAFKA_ variables without effect", zap.Strings("names", kafka.Ignored))
	}
	logger.Info("open turns and histories of FlightDeck's application are not taken over: drain it first")
	options := append(kafka.Options,
		processors.WithTopics(catalog), processors.WithTick(tick), processors.WithLogger(logger))
	if guarantee != "" {
		options = append(options, processors.WithGuarantee(guarantee))
	}
	if id := derivedInstance(); id != "" {
		options = append(options, processors.WithInstance(id))
	}
	return processors.New(kafka.Brokers, graph, options...)
}

// chosenGuarantee reads PROCESSING_GUARANTEE; a blank one counts as unset.
func chosenGuarantee() (processors.Guarantee, error) {
	switch text := strings.TrimSpace(os.Getenv("PROCESSING_GUARANTEE")); text {
	case "", "at_least_once", "exactly_once", "exactly_once_v2":
		return processors.Guarantee(text), nil
	default:
		return "", fmt.Errorf("PROCESSING_GUARANTEE=%q, want at_least_once or exactly_once", text)
	}
}

// derivedInstance makes a static member of a process that keeps its tables: killed and started again it goes on at once,
// where a dynamic member would wait out the session of its former life. Host and state directory name one process at a
// time, since the directory is locked. Without a directory nothing tells two processes of a host apart.
func derivedInstance() string {
	dir, err := filepath.Abs(os.Getenv("KAFKA_STATE_DIR"))
	host, unnamed := os.Hostname()
	if err != nil || unnamed != nil || strings.TrimSpace(os.Getenv("KAFKA_STATE_DIR")) == "" ||
		os.Getenv("KAFKA_GROUP_INSTANCE_ID") != "" {
		return ""
	}
	sum := sha256.Sum256([]byte(host + "\x00" + dir))
	return host + "-" + hex.EncodeToString(sum[:4])
}

var errMemoir = errors.New("MEMOIR_ENABLED=true: there is no memoir here yet; run with MEMOIR_ENABLED=false")

// refuseMemoir reads MEMOIR_ENABLED as FlightDeck does, where only "true" enables; its default was true.
func refuseMemoir(logger *zap.Logger) error {
	value, set := os.LookupEnv("MEMOIR_ENABLED")
	if strings.EqualFold(value, "true") {
		return errMemoir
	}
	if !set {
		logger.Info("MEMOIR_ENABLED is not set and counts as false")
	}
	return nil
}

// milliseconds reads a duration; a blank variable counts as unset.
func milliseconds(name string, unset time.Duration) (time.Duration, error) {
	text := strings.TrimSpace(os.Getenv(name))
	if text == "" {
		return unset, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if limit := int64(366 * 24 * time.Hour / time.Millisecond); err != nil || ms < 1 || ms > limit {
		return unset, fmt.Errorf("%s=%q, want a whole number from 1 to %d", name, text, limit)
	}
	return time.Duration(ms) * time.Millisecond, nil
}
