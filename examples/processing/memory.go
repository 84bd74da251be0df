package main

import (
	"errors"
	"math"
	"os"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// addition is what a capability that is off by default adds to the part turn.
type addition struct {
	name   string // for the log
	turn   func(*turn.Config)
	topics []topics.CatalogOption
	groups []group
}

// group is a group besides that of the turn. Its table is in a directory below that of the turn's.
type group struct {
	directory string
	graph     func(agent string) (*goka.GroupGraph, error)
}

// The variables of long-term memory, which are FlightDeck's.
const (
	memoirEnabled   = "MEMOIR_ENABLED"
	memoirThreshold = "MEMOIR_SESSION_INACTIVITY_THRESHOLD_SECONDS"
	memoirInterval  = "MEMOIR_SESSION_PUNCTUATE_INTERVAL_SECONDS"
)

// longest is the longest duration that can be set: it is added to a time, which must not overflow.
const longest = math.MaxInt64 / 2

// readMemory reads the variables of long-term memory. gated says that calls may wait for a person, which keeps a session open.
func readMemory(gated bool, logger *zap.Logger) (addition, error) {
	on, err := flagged(memoirEnabled)
	after, wrongAfter := duration(memoirThreshold, time.Second, longest, 20*time.Second) // FlightDeck's default
	// The interval has no effect: FlightDeck searches for inactive sessions so often, and here they end on time.
	_, wrongInterval := duration(memoirInterval, time.Second, longest, 0)
	config, wrongGroup := memoir.ConfigFromEnv(os.LookupEnv)
	if err := errors.Join(err, wrongAfter, wrongInterval, wrongGroup); err != nil || !on {
		return addition{}, err
	}
	if variable(memoirThreshold) == "" {
		logger.Warn("a session ends after 20 s without a record, as in FlightDeck: a user who thinks for longer begins a new "+
			"one; set "+memoirThreshold, zap.Duration("after", after))
	}
	return addition{
		name: "memory", topics: []topics.CatalogOption{topics.WithMemoir()},
		groups: []group{{"memories", func(agent string) (*goka.GroupGraph, error) { return memoir.Graph(agent, config) }}},
		turn: func(c *turn.Config) {
			c.Memoir, c.Gates = &turn.Memoir{After: after}, c.Gates || gated
		},
	}, nil
}
