package whole

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// memoirAfter is how long a session of these tests is idle before it ends. Some calls of the model take longer.
const memoirAfter = 700 * time.Millisecond

// runMemoirs is the process that is killed. It runs turns, memories, and the worker that updates them.
func runMemoirs(ctx context.Context, c child) error {
	agent, brokers, logger := c.Agent, c.Brokers, kill.Logger(zap.WarnLevel)
	catalog, err := topics.For(agent, topics.WithMemoir())
	if err != nil {
		return err
	}
	turns, turnsErr := turn.Graph(agent, turn.Config{
		Memoir:       &turn.Memoir{After: memoirAfter},
		HistoryLimit: turn.HistoryLimit{Messages: 1},
	}) // most of a session is hidden when it ends
	memories, memoriesErr := memoir.Graph(agent, memoir.Config{Patience: -1}) // sessions of one user are with workers at the same time
	to, toErr := processors.NewPublisher(brokers, processors.WithLogger(logger))
	if err := errors.Join(turnsErr, memoriesErr, toErr); err != nil {
		return err
	}
	worker, err := updater.New(agent, to, updater.Func(addFacts), updater.Config{Config: worker.Config{Logger: logger}})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, graph := range []*goka.GroupGraph{turns, memories} {
		if err := c.serve(ctx, group, catalog, graph, logger); err != nil {
			return err
		}
	}
	group.Go(func() error { return worker.Run(ctx, brokers) })
	return group.Wait()
}

// addFacts is the model that updates memories: it adds the facts of a conversation, each once. It takes a moment, so that
// sessions of one user that end together are based on the same memory.
func addFacts(ctx context.Context, ended updater.Ended) (updater.Memory, error) {
	facts := factsIn(ended.Memory)
	for _, m := range ended.Messages {
		if m.Role != nil && *m.Role == "user" {
			facts = append(facts, factsIn(topics.Text(m.Content))...)
		}
	}
	for range 5 {
		rest(ctx)
	}
	slices.Sort(facts)
	return updater.Memory{Text: strings.Join(slices.Compact(facts), " ")}, ctx.Err()
}

// factsIn returns the facts that a text has: its words that begin with fact-.
func factsIn(text string) (facts []string) {
	for word := range strings.FieldsSeq(text) {
		if strings.HasPrefix(word, "fact-") {
			facts = append(facts, word)
		}
	}
	return facts
}
