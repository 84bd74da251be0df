package memoir

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-memories" for processors.New: the memories of an agent's users, in one row per user. It
// returns an error if the agent's name is invalid, or one that wraps ErrConfig.
//
// On its first start the group reads memoir-context from its oldest record, so it takes over the memories that FlightDeck's
// updater has written, if the topic still has them. Do not give it a processors.WithPredecessor: FlightDeck's processing has
// read these records already, so they would be skipped.
func Graph(agent string, c Config) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("memoir: %w", err)
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	b := &binding{topics: catalog, config: c}
	edges := processors.Edges(catalog.MemoriesGroup(),
		processors.Input(catalog.MemoirLookups, b.onLookup),
		processors.Input(catalog.MemoirSessions, b.onSession),
		processors.Input(catalog.MemoirContext, b.onMemory),
		processors.Input(catalog.MemoirDLQ, b.onFailure),
	)
	return goka.DefineGroup(catalog.MemoriesGroup(), append(edges,
		goka.Persist(timed.Of(memoirrow.Table, b.onDeadline)),
		output(catalog.EnrichedMessageInput), output(catalog.MemoirContextSessionEnd),
	)...), nil
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// binding connects the pure transition apply to Goka: it decodes, calls apply, emits the effects and writes the row.
type binding struct {
	topics topics.Catalog
	config Config
}

func (b *binding) onSession(c *processors.Context, in codec.Decoded[topics.MemoirSnapshot]) error {
	return b.apply(c, sessionEnded{recordOf(c, in.Raw), in.Value})
}

func (b *binding) onMemory(c *processors.Context, in codec.Decoded[string]) error {
	return b.apply(c, memoryWritten{recordOf(c, in.Raw), in.Value, string(c.Headers()[topics.HeaderMemoirVersion])})
}

func (b *binding) onFailure(c *processors.Context, in codec.Decoded[topics.MemoirSnapshot]) error {
	return b.apply(c, passFailed{recordOf(c, in.Raw)})
}

func (b *binding) onDeadline(c *processors.Context) error {
	return b.apply(c, deadlineCame{c.Key()})
}

func recordOf(c *processors.Context, raw []byte) *record {
	return &record{User: c.Key(), Cause: c.CauseID(), Partition: c.Partition(), Offset: c.Offset(), Value: raw}
}

// limit is the largest record that may be written, in bytes.
func (b *binding) limit(c *processors.Context) int {
	if most := c.MaxRecordBytes(); most > 0 {
		return min(most, b.config.RecordLimit)
	}
	return b.config.RecordLimit
}

// apply applies an event to the row of its user. A row with a newer version stops the processor: a newer build wrote
// the row, and overwriting it would lose what this build cannot read. A row that cannot be decoded is left unchanged and
// the event's record is dead-lettered; a tombstone on memoir-context deletes it.
func (b *binding) apply(c *processors.Context, e event) error {
	state, err := memoirrow.Table.Of(c.Value())
	if errors.Is(err, rows.ErrVersion) {
		return err
	}
	if err != nil {
		if m, ok := e.(memoryWritten); ok && m.tombstone() {
			if err := forgetParts(c, nil); err != nil {
				return err
			}
			return c.Delete()
		}
		return c.DeadLetter(reasonBroken)
	}
	config := b.config
	config.RecordLimit = b.limit(c)
	var parts partReader
	if c.HasParts() {
		parts = c
	}
	out, err := apply(state, e, parts, c.Now(), config)
	if err != nil {
		return err
	}
	for _, effect := range out.Effects {
		if err := b.perform(c, effect); err != nil {
			return err
		}
	}
	return write(c, out)
}

// perform writes the record of an effect.
func (b *binding) perform(c *processors.Context, out effect) error {
	switch e := out.(type) {
	case snapshotSent:
		return processors.Emit(c, b.topics.MemoirContextSessionEnd, e.Key, e.Snapshot, goka.Headers{
			topics.HeaderID:            []byte(e.ID),
			topics.HeaderMemoirVersion: strconv.AppendUint(nil, e.Version, 10),
			topics.HeaderDeadline:      topics.AppendDeadline(nil, e.DueMs),
		})
	case deadLetter:
		return c.DeadLetter(e.Reason)
	case snapshotDead:
		c.Logger().Error("an ended session does not get into its user's memory: its snapshot is dead-lettered",
			zap.String("key", c.Key()), zap.String("end", e.End), zap.String("reason", e.Reason))
		return c.DeadLetterOther(processors.Letter{
			Topic: b.topics.MemoirSessions.Name(), Partition: e.Partition, Offset: e.Offset, Key: c.Key(), Value: e.Value,
			Headers: goka.Headers{topics.HeaderID: []byte(passID(e.End, 1))}, Reason: e.Reason,
		})
	default:
		return fmt.Errorf("memoir: no topic for %T", out)
	}
}

// write writes the row and its parts.
func write(c *processors.Context, out outcome) error {
	if !out.Changed {
		return nil
	}
	for _, p := range out.New {
		if slices.Contains(out.Unused, p.Number) {
			continue
		}
		if err := c.SetPart(p.Number, p.Value); err != nil {
			return err
		}
	}
	for _, n := range out.Unused {
		if err := c.DeletePart(n); err != nil {
			return err
		}
	}
	if out.Forgotten {
		if err := forgetParts(c, out.Unused); err != nil {
			return err
		}
	}
	if out.State == nil {
		return c.Delete()
	}
	return c.SetValue(out.State)
}

// forgetParts deletes all parts of a row except those that are deleted already: also those that a crash has left, which no row
// names.
func forgetParts(c *processors.Context, except []uint32) error {
	if !c.HasParts() {
		return nil
	}
	numbers, err := c.Parts()
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if slices.Contains(except, n) {
			continue
		}
		if err := c.DeletePart(n); err != nil {
			return err
		}
	}
	return nil
}
