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
	subjectTurntable = "turntable"
	subjectFloor     = kindFloor
	subjectBare      = kindBareFloor
	subjectGoka      = kindGoka
	subjectCommand   = "command"
	subjectPID       = "pid"
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

// quietWait is how long to read after the last turn, to detect unexpected records.
const quietWait = 300 * time.Millisecond

// run measures, and then deletes its directory and its topics. It keeps the topics of an agent that -agent names.
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
			err = errors.Join(err, t.brokers.deleteTopics(clean, t.agent))
		}
	}()
	count, err := t.brokers.createTopics(ctx, t.agent, int32(t.Partitions))
	if err != nil {
		return nil, err
	}
	t.Partitions = int(count)
	defer func() { err = errors.Join(err, t.stopProcesses()) }()
	var fresh, again time.Duration
	if t.Stored > 0 && t.subject == subjectTurntable {
		t.note.begin(t.label()+fmt.Sprintf(", %d stored sessions", t.Stored), phase{})
		if err := t.storeSessions(ctx); err != nil {
			return nil, err
		}
		if fresh, again, err = t.measureRecovery(ctx); err != nil {
			return nil, err
		}
		t.note.clear()
	} else if err := t.start(ctx); err != nil {
		return nil, err
	}
	from, err := t.brokers.endOffsets(ctx, t.names.Enriched, t.names.ToolUse, t.names.MessageOutput)
	if err != nil {
		return nil, err
	}
	b := newConversations(prefix, t.Sessions, t.Tools, newInitialHistory(t.History))
	if b.steps = t.Steps; t.Said > 0 {
		b.toolText = b.initialHistory.corpus[:min(t.Said, len(b.initialHistory.corpus))]
	}
	t.player, err = newPlayer(ctx, t.brokers.addrs, t.names, b,
		playerOptions{partitions: count, from: from, stall: t.stall, onProgress: t.note.turn})
	if err != nil {
		return nil, err
	}
	defer t.player.Close()
	dead, err := t.brokers.records(ctx, t.deadLetters()...)
	if err != nil {
		return nil, err
	}
	if r, err = t.phases(ctx); err != nil {
		return nil, errors.Join(err, b.violations.err(t.repeats))
	}
	more, err := t.brokers.records(ctx, t.deadLetters()...)
	if err != nil {
		return nil, err
	}
	if more > dead && !t.repeats {
		b.violations.addCount("dead letters", int(more-dead))
	}
	if fresh > 0 {
		r.Recovered, r.Restarted = seconds(fresh), seconds(again)
	}
	r.Repeats, r.RepeatsOf, r.Broken = b.violations.repeatCount(), b.violations.repeats, b.violations.counts
	return r, b.violations.err(t.repeats)
}

// deadLetters returns the topics that must stay empty.
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
		p, err := t.startInstance(ctx, i)
		if err != nil {
			return err
		}
		t.processes = append(t.processes, p)
	}
	return nil
}

func (t *trial) startInstance(ctx context.Context, i int) (*process, error) {
	name, instance := fmt.Sprintf("%s %d", t.subject, i+1), fmt.Sprintf("bench-%d", i+1)
	store := filepath.Join(t.dir, instance)
	if t.subject == subjectCommand {
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
	wait := readyTimeout
	if t.Stored > 0 {
		wait = recoveryTimeout
	}
	return startChild(ctx, name, c, wait)
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

func (t *trial) stopProcesses() error {
	var errs []error
	for _, p := range t.processes {
		errs = append(errs, p.running(), p.stop())
	}
	if t.dir != "" {
		errs = append(errs, os.RemoveAll(t.dir))
	}
	return errors.Join(errs...)
}

// phases plays the turns that create the histories, the warm-up, the measured phase, and turns one at a time.
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
	before := t.readUsage(ctx) // to begin and to write a profile costs too, but not a turn
	load, err := t.play(ctx, "load", measured)
	if err != nil {
		return nil, err
	}
	r.fill(load, before, t.readUsage(ctx))
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
	return r, t.player.drain(ctx, quietWait)
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
		if err := p.command(ctx, order); err != nil {
			return err
		}
	}
	return nil
}

// reading is the resource usage up to a moment.
type usageReading struct {
	processor, driver, broker usage
	ok, brokerOK              bool
	logs                      map[string]int64
	traffic                   traffic
}

func (t *trial) readUsage(ctx context.Context) usageReading {
	var r usageReading
	r.logs, r.traffic = t.brokers.logSizes(ctx, t.agent), t.player.traffic
	r.processor, r.ok = usageOfAll(t.processes)
	r.broker, r.brokerOK = usageOfAll(t.brokers.processes)
	r.driver, _ = usageOf(os.Getpid())
	return r
}
