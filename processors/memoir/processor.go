package memoir

import (
	"fmt"
	"slices"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-memories" for processors.New: the memories of an agent's users, in one row per user. It
// returns an error if the agent's name is invalid, or one that wraps ErrConfig.
//
// On its first start the group reads memoir-context from its oldest record, so it takes over the memories that FlightDeck's
// updater has written, if the topic still has them. Do not give it a processors.WithPredecessor: FlightDeck's processing has
// read these records already, so they would be skipped.
func Graph(agent string, cfg Config) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("memoir: %w", err)
	}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	m := &machine.Machine[*memoirrow.State, event]{
		Table: memoirrow.Table, Broken: reasonBroken, Purges: forgets, Named: partsOf, Due: func(read time.Time) event { return deadlineCame{read} },
		Apply: func(c *processors.Context, row *memoirrow.State, e event) (machine.Outcome[*memoirrow.State], error) {
			config, parts := cfg, readPart(c.Part)
			config.RecordLimit = cfg.recordLimit(c)
			if !c.HasParts() {
				parts = nil
			}
			out, err := apply(row, c.Key(), e, parts, c.Now(), catalog, config)
			logLost(c, out)
			return out, err
		},
	}
	return m.Graph(catalog.MemoriesGroup(), []processors.Source{
		processors.Input(catalog.MemoirLookups, (&lookups{catalog, cfg}).onLookup),
		machine.Input(m, catalog.MemoirSessions, func(r *machine.Record, v topics.MemoirSnapshot) event { return sessionEnded{r, v} }),
		machine.Input(m, catalog.MemoirContext, func(r *machine.Record, text string) event {
			return memoryWritten{r, text, string(r.Headers[topics.HeaderMemoirVersion])}
		}),
		machine.Input(m, catalog.MemoirDLQ, func(r *machine.Record, _ topics.MemoirSnapshot) event { return passFailed{r} }),
	}, machine.Output(catalog.EnrichedMessageInput), machine.Output(catalog.MemoirContextSessionEnd)), nil
}

// forgets reports whether an event removes everything that is known of a user.
func forgets(e event) bool {
	m, ok := e.(memoryWritten)
	return ok && m.Tombstone()
}

// partsOf returns the numbers of the parts that a row names.
func partsOf(row *memoirrow.State) (numbers []uint32) {
	for _, p := range slices.Concat(row.GetPending(), row.GetSettled()) {
		if p.Part != 0 {
			numbers = append(numbers, p.Part)
		}
	}
	return numbers
}

// logLost logs the ended sessions that are dead-lettered.
func logLost(c *processors.Context, out machine.Outcome[*memoirrow.State]) {
	for _, e := range out.Effects {
		if e.Held == nil {
			continue
		}
		end, _, _ := passOf(string(e.Held.Headers[topics.HeaderID]))
		c.Logger().Error("an ended session does not get into its user's memory: its snapshot is dead-lettered",
			zap.String("key", c.Key()), zap.String("end", end), zap.String("reason", e.Reason))
	}
}

// recordLimit is the largest record that may be written, in bytes.
func (c *Config) recordLimit(x *processors.Context) int {
	if most := x.MaxRecordBytes(); most > 0 {
		return min(most, c.RecordLimit)
	}
	return c.RecordLimit
}
