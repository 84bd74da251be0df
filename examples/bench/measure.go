package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
)

// The subjects of a measurement.
const (
	subjectOurs    = "turntable"
	subjectFloor   = kindFloor
	subjectBare    = kindBareFloor
	subjectGoka    = kindGoka
	subjectForeign = "command"
	subjectPID     = "pid"
)

// trial measures one subject in one scenario.
type trial struct {
	settings
	scenario
	subject string
	brokers *brokers
	number  int // of the trials of this run
	note    *progress

	agent     string
	names     wiretest.Names
	dir       string // for stores
	processes []*process
	player    *player
}

// quietWait is how long no record may arrive after the last turn.
const quietWait = 300 * time.Millisecond

// run measures and removes all that it created, except the topics of an agent that -agent names.
func (t *trial) run(ctx context.Context) (r *result, err error) {
	t.agent = t.settings.agent
	own := t.agent == ""
	started, prefix := strconv.FormatInt(time.Now().UnixMilli(), 36), "s"
	if own {
		t.agent = "bench-" + started + "-" + strconv.Itoa(t.number)
	} else {
		prefix = "s" + started + "-"
	}
	if t.isFloor() {
		t.agent += "-" + strings.ReplaceAll(t.subject, " ", "-")
	}
	t.names = wiretest.NamesOf(t.agent)
	defer func() {
		if own {
			clean, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer stop()
			err = errors.Join(err, t.brokers.forget(clean, t.agent))
		}
	}()
	count, err := t.brokers.topics(ctx, t.agent, int32(t.Partitions))
	if err != nil {
		return nil, err
	}
	t.Partitions = int(count)
	defer func() { err = errors.Join(err, t.end()) }()
	var fresh, again time.Duration
	if t.Stored > 0 && t.subject == subjectOurs {
		t.note.begin(t.label()+fmt.Sprintf(", %d stored sessions", t.Stored), phase{})
		if err := t.fill(ctx); err != nil {
			return nil, err
		}
		if fresh, again, err = t.recover(ctx); err != nil {
			return nil, err
		}
		t.note.clear()
	} else if err := t.start(ctx); err != nil {
		return nil, err
	}
	from, err := t.brokers.ends(ctx, t.names.Enriched, t.names.ToolUse, t.names.MessageOutput)
	if err != nil {
		return nil, err
	}
	b := newBook(prefix, t.Sessions, t.Tools, newPast(t.History))
	if b.steps = t.Steps; t.Said > 0 {
		b.said = b.past.corpus[:min(t.Said, len(b.past.corpus))]
	}
	t.player, err = newPlayer(ctx, t.brokers.addrs, t.names, b,
		playing{partitions: count, from: from, stall: t.stall, notice: t.note.turn})
	if err != nil {
		return nil, err
	}
	defer t.player.Close()
	dead, err := t.brokers.records(ctx, t.deadLetters()...)
	if err != nil {
		return nil, err
	}
	if r, err = t.phases(ctx); err != nil {
		return nil, errors.Join(err, b.faults.err(t.repeats))
	}
	more, err := t.brokers.records(ctx, t.deadLetters()...)
	if err != nil {
		return nil, err
	}
	if more > dead && !t.repeats {
		b.faults.some("dead letters", int(more-dead))
	}
	if fresh > 0 {
		r.Recovered, r.Restarted = seconds(fresh), seconds(again)
	}
	r.Repeats, r.RepeatsOf, r.Broken = b.faults.repeatCount(), b.faults.repeats, b.faults.counts
	return r, b.faults.err(t.repeats)
}

// deadLetters are the topics that must stay empty.
func (t *trial) deadLetters() []string {
	return []string{t.names.DeadLetters, t.names.ToolUseDLQ, t.names.ThinkDLQ}
}

func (t *trial) isFloor() bool { return isFloor(t.subject) }

// isFloor reports whether a subject stores nothing, so that guarantee and storage do not apply.
func isFloor(subject string) bool {
	return subject == subjectFloor || subject == subjectBare || subject == subjectGoka
}

func (t *trial) start(ctx context.Context) error {
	if t.subject == subjectPID {
		t.processes = []*process{{name: "processor", pid: t.pid}}
		_, err := os.FindProcess(t.pid)
		return err
	}
	dir, err := os.MkdirTemp("", "turntable-bench-")
	if err != nil {
		return err
	}
	t.dir = dir
	return t.startAll(ctx)
}

func (t *trial) startAll(ctx context.Context) error {
	for i := range t.Instances {
		p, err := t.startOne(ctx, i)
		if err != nil {
			return err
		}
		t.processes = append(t.processes, p)
	}
	return nil
}

func (t *trial) startOne(ctx context.Context, i int) (*process, error) {
	name, instance := fmt.Sprintf("%s %d", t.subject, i+1), fmt.Sprintf("bench-%d", i+1)
	store := filepath.Join(t.dir, instance)
	if t.subject == subjectForeign {
		return startCommand(name, t.command, "AGENT_NAME="+t.agent, "KAFKA_BOOTSTRAP_SERVERS="+join(t.brokers.addrs),
			"PROCESSING_GUARANTEE="+t.Guarantee, "KAFKA_STATE_DIR="+store, "KAFKA_GROUP_INSTANCE_ID="+instance)
	}
	c := childSpec{
		Kind: kindProcessor, Brokers: t.brokers.addrs, Agent: t.agent, Guarantee: t.Guarantee,
		Partitions: int32(t.Partitions),
	}
	if t.isFloor() {
		c.Kind = t.subject
	}
	if t.Storage == "leveldb" {
		c.Directory = store
	}
	if t.Guarantee == string(processors.ExactlyOnce) || t.Instances > 1 {
		c.Instance = instance
	}
	wait := readyWait
	if t.Stored > 0 {
		wait = storedWait
	}
	return startChild(ctx, name, c, wait)
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

func (t *trial) end() error {
	var errs []error
	for _, p := range t.processes {
		errs = append(errs, p.running(), p.end())
	}
	if t.dir != "" {
		errs = append(errs, os.RemoveAll(t.dir))
	}
	return errors.Join(errs...)
}

// phases are the past, the warm-up, what is measured, and turns alone.
func (t *trial) phases(ctx context.Context) (*result, error) {
	closed := phase{concurrency: t.Concurrency, tools: t.Tools}
	filling, warming, measured, alone := closed, closed, closed, closed
	filling.plain, filling.tools, filling.turns = true, 0, t.Sessions
	warming.turns = t.warmup
	measured.turns, measured.duration, measured.rate = t.turns, t.duration, t.Rate
	if t.turns > 0 {
		measured.duration = 0
	}
	alone.concurrency, alone.turns = 1, t.alone

	if _, err := t.play(ctx, "history", filling); err != nil {
		return nil, err
	}
	if _, err := t.play(ctx, "warm-up", warming); err != nil {
		return nil, err
	}
	r := &result{Subject: t.subject, scenario: t.scenario}
	if t.isFloor() {
		r.Guarantee, r.Storage = "", ""
	}
	if err := t.profile(ctx, true); err != nil {
		return nil, err
	}
	before := t.meter(ctx) // to begin and to write a profile costs too, but not a turn
	load, err := t.play(ctx, "load", measured)
	if err != nil {
		return nil, err
	}
	r.fill(load, before, t.meter(ctx))
	if err := t.profile(ctx, false); err != nil {
		return nil, err
	}
	if t.alone > 0 {
		single, err := t.play(ctx, "alone", alone)
		if err != nil {
			return nil, err
		}
		q := single.quantiles()
		r.Alone = &q
	}
	return r, t.player.quiet(ctx, quietWait)
}

func (t *trial) play(ctx context.Context, name string, ph phase) (*tally, error) {
	t.note.begin(t.label()+", "+name, ph)
	defer t.note.clear()
	tally, err := t.player.play(ctx, ph)
	for _, p := range t.processes {
		err = errors.Join(p.running(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", t.label(), name, err)
	}
	return tally, nil
}

func (t *trial) label() string {
	if t.isFloor() {
		return fmt.Sprintf("%s history %d", t.subject, t.History)
	}
	return fmt.Sprintf("%s %s history %d", t.subject, t.Guarantee, t.History)
}

// profile begins or ends the profiles of all instances.
func (t *trial) profile(ctx context.Context, begin bool) error {
	if t.pprof == "" {
		return nil
	}
	for i, p := range t.processes {
		order := "profiled"
		if begin {
			name := fmt.Sprintf("%02d-%s-%d", t.number, strings.ReplaceAll(t.label(), " ", "-"), i+1)
			dir, err := filepath.Abs(filepath.Join(t.pprof, name))
			if err != nil {
				return err
			}
			order = "profile " + dir
		}
		if err := p.order(ctx, order); err != nil {
			return err
		}
	}
	return nil
}

// reading is the resource usage up to a moment.
type reading struct {
	processor, driver, broker usage
	ok, brokerOK              bool
	logs                      map[string]int64
	traffic                   traffic
}

func (t *trial) meter(ctx context.Context) reading {
	var r reading
	r.logs, r.traffic = t.brokers.logs(ctx, t.agent), t.player.traffic
	r.processor, r.ok = usageOfAll(t.processes)
	r.broker, r.brokerOK = usageOfAll(t.brokers.processes)
	r.driver, _ = usageOf(os.Getpid())
	return r
}
