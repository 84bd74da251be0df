package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors"
)

var errUsage = errors.New("bench: flags")

// settings are the flags.
type settings struct {
	brokers []string
	kafka   bool
	agent   string
	pid     int
	command string

	one      scenario // the scenario of the flags, without -guarantee both
	both     bool     // guarantees
	sweep    string
	floor    bool
	turns    int
	duration time.Duration
	warmup   int
	alone    int
	stall    time.Duration
	repeats  bool

	json, pprof string
}

// scenario is the configuration of a measurement.
type scenario struct {
	History     int     `json:"history_bytes"`
	Partitions  int     `json:"partitions"`
	Tools       int     `json:"tools"`
	Steps       int     `json:"steps"`
	Said        int     `json:"said_bytes,omitzero"`
	Sessions    int     `json:"sessions"`
	Instances   int     `json:"instances"`
	Concurrency int     `json:"concurrency"`
	Rate        float64 `json:"rate,omitzero"`
	Guarantee   string  `json:"guarantee"`
	Storage     string  `json:"storage"`
	Stored      int     `json:"stored_sessions,omitzero"`
}

func parse(args []string, notes io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(notes)
	brokers := f.String("brokers", "", "bootstrap addresses; default: start a broker")
	f.BoolVar(&s.kafka, "kafka", false, "start a real Kafka (needs Java 17)")
	f.StringVar(&s.agent, "agent", "", "agent whose topics are used; default: new topics, which are deleted at the end")
	f.IntVar(&s.pid, "pid", 0, "process id of a running processor")
	f.StringVar(&s.command, "command", "", "program to measure; it gets AGENT_NAME, KAFKA_BOOTSTRAP_SERVERS, "+
		"PROCESSING_GUARANTEE, KAFKA_STATE_DIR and KAFKA_GROUP_INSTANCE_ID")
	f.IntVar(&s.one.History, "history", 0, fmt.Sprintf("bytes of history per session, 0 or at least %d", minHistory))
	f.IntVar(&s.one.Partitions, "partitions", 4, "partitions of topics that are created")
	f.IntVar(&s.one.Tools, "tools", 2, "tool calls per step")
	f.IntVar(&s.one.Steps, "steps", 1, "steps per turn: the number of responses with tool calls")
	f.IntVar(&s.one.Said, "said", 0, "bytes of text in a tool result; 0: one sentence")
	f.IntVar(&s.one.Sessions, "sessions", 1000, "distinct sessions")
	f.IntVar(&s.one.Instances, "instances", 1, "processes of the processor")
	f.IntVar(&s.one.Concurrency, "concurrency", 100, "turns open at a time, each of a different session")
	f.Float64Var(&s.one.Rate, "rate", 0, "begin this many turns per second, regardless of open turns; 0: closed loop with -concurrency")
	f.StringVar(&s.one.Guarantee, "guarantee", string(processors.AtLeastOnce), "at_least_once, exactly_once or both")
	f.StringVar(&s.one.Storage, "storage", "leveldb", "leveldb or memory")
	f.IntVar(&s.one.Stored, "stored", 0, "further sessions in the table; the time to recover them is measured")
	f.IntVar(&s.turns, "turns", 0, "turns to measure; 0: all that begin within -duration")
	f.DurationVar(&s.duration, "duration", 10*time.Second, "how long the measured phase begins turns")
	f.IntVar(&s.warmup, "warmup", 2000, "turns before the measured phase")
	f.IntVar(&s.alone, "alone", 500, "turns that run one at a time, at the end")
	f.DurationVar(&s.stall, "timeout", time.Minute, "fail if no record arrives for this long while turns are open")
	f.BoolVar(&s.repeats, "repeats", false, "allow repeats")
	f.BoolVar(&s.floor, "floor", false, "also measure the floor, and print ratios to it")
	f.StringVar(&s.sweep, "sweep", "", "table: three histories, both guarantees, the floor; growth: stored sessions and instances; "+
		"all: each dimension too")
	f.StringVar(&s.json, "json", "", "file for the results as JSON")
	f.StringVar(&s.pprof, "pprof", "", "directory for CPU and allocation profiles of the measured phase")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, fmt.Errorf("%w: %w", errUsage, err)
	}
	s.brokers = strings.FieldsFunc(*brokers, func(r rune) bool { return r == ',' || r == ' ' })
	if s.one.Guarantee == "both" {
		s.both, s.one.Guarantee = true, string(processors.AtLeastOnce)
	}
	if err := s.check(f.Args()); err != nil {
		return s, fmt.Errorf("%w: %w", errUsage, err)
	}
	return s, nil
}

// check returns an error that lists all invalid settings.
func (s settings) check(rest []string) error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	o := s.one
	foreign := s.pid != 0 || s.command != ""
	wrong(len(rest) > 0, "unexpected %q", rest)
	wrong(o.History != 0 && o.History < minHistory, "-history %d: 0 or at least %d", o.History, minHistory)
	wrong(o.Partitions < 1 || o.Instances < 1, "-partitions and -instances are at least 1")
	wrong(o.Instances > o.Partitions, "-instances %d: more than -partitions", o.Instances)
	wrong(o.Tools < 0, "-tools %d", o.Tools)
	wrong(o.Steps < 1, "-steps %d", o.Steps)
	wrong(o.Said < 0, "-said %d", o.Said)
	wrong(o.Concurrency < 1 || o.Sessions < o.Concurrency, "-concurrency %d: from 1 to -sessions", o.Concurrency)
	wrong(o.Sessions > 9_999_999, "-sessions %d: at most 9999999", o.Sessions)
	wrong(o.Stored < 0 || o.Stored > 9_999_999, "-stored %d: from 0 to 9999999", o.Stored)
	wrong(o.Rate < 0, "-rate %v", o.Rate)
	wrong(o.Guarantee != string(processors.AtLeastOnce) && o.Guarantee != string(processors.ExactlyOnce),
		"-guarantee %s: at_least_once, exactly_once or both", o.Guarantee)
	wrong(o.Storage != "leveldb" && o.Storage != "memory", "-storage %s: leveldb or memory", o.Storage)
	wrong(s.turns < 0 || s.warmup < 0 || s.alone < 0, "-turns, -warmup and -alone are not negative")
	wrong(s.turns == 0 && s.duration <= 0, "-turns or -duration")
	wrong(s.stall <= 0, "-timeout %v", s.stall)
	wrong(!slices.Contains([]string{"", "table", "growth", "all"}, s.sweep), "-sweep %s: table, growth or all", s.sweep)
	wrong(s.kafka && len(s.brokers) > 0, "-kafka and -brokers exclude each other")
	wrong(s.pid != 0 && s.command != "", "-pid and -command exclude each other")
	wrong(s.pid != 0 && (len(s.brokers) == 0 || s.agent == ""), "-pid needs -brokers and -agent")
	wrong(s.pid != 0 && (s.both || s.sweep != "" || o.Instances > 1), "-pid measures one process and excludes -guarantee both, -sweep and -instances")
	wrong(foreign && s.pprof != "", "-pprof needs the processor of this library")
	return errors.Join(errs...)
}
