package invoke

import (
	"fmt"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/rows/invokerow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
	"github.com/turntable-streams/turntable/topics"
)

// TurnTable returns the group "{agent}-invoke-turns" for processors.New. It keeps the table of turns that pipelines with
// PipelineConfig.TurnTable read when they start. The catalog for processors.WithTopics needs topics.WithTurns and topics.WithEvents. The
// group reads every record of message-input, agent-events, batch-messages and message-output once and writes nothing but its table: when a
// turn begins, when it ends, and in between once per minute or per 4096 records of its partition. A row has at most 256
// turns and 512 KiB: IDs, offsets, times, and the texts of errors; a purge on session-control deletes it.
//
// Do not reset the group's offsets to later records: the table would lack the turns of the records between, while pipelines
// assume that it has them. TurnTable fails with ErrConfig if a field is out of range or the agent's name is not valid.
func TurnTable(agent string, c TurnTableConfig) (*goka.GroupGraph, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	var check bounds.Check
	bounds.AtLeast(&check, "KeepFor", &c.KeepFor, time.Hour, time.Millisecond)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	b := &turnTable{topics: indexedTopicsOf(catalog), rules: tableRules{kept: c.KeepFor, limit: maxTurnRow}}
	edges := processors.Edges(catalog.TurnsGroup(),
		b.input(catalog.AgentEvents.Spec()), b.input(catalog.MessageInput.Spec()), b.input(catalog.MessageOutput.Spec()),
		b.input(catalog.BatchMessages.Spec()),
		processors.Input(catalog.SessionControl, b.onControl),
	)
	edges = append(edges, goka.Persist(timed.Of(invokerow.Table, b.onDeadline)))
	return goka.DefineGroup(catalog.TurnsGroup(), edges...), nil
}

// turnTable connects the rules of the table to Goka.
type turnTable struct {
	topics indexedTopics
	rules  tableRules
}

// input reads a topic as bytes: few members of few records are needed.
func (b *turnTable) input(s topics.Spec) processors.Source {
	return processors.Input(topics.New(s, codec.Bytes()),
		func(c *processors.Context, in codec.Decoded[[]byte]) error { return b.onRecord(c, in.Raw) },
		processors.Known[[]byte](b.known))
}

// known reports whether the row need not be written because of a record.
func (b *turnTable) known(c *processors.Context, raw []byte) bool {
	s, ok := b.sightingOf(c, raw)
	if !ok {
		return true
	}
	row, err := rowIn(c)
	return err == nil && row != nil && b.rules.has(row, s)
}

func (b *turnTable) onRecord(c *processors.Context, raw []byte) error {
	s, ok := b.sightingOf(c, raw)
	if !ok {
		return nil
	}
	row, err := rowIn(c)
	if err != nil {
		return err
	}
	next, changed := b.within(c).apply(row, s, c.Now())
	if !changed {
		return nil
	}
	return write(c, next)
}

func (b *turnTable) sightingOf(c *processors.Context, raw []byte) (sighting, bool) {
	return b.topics.sightingOf(processors.Inbound{
		Topic: c.Topic(), Partition: c.Partition(), Offset: c.Offset(), Timestamp: c.Timestamp(), Key: []byte(c.Key()), Value: raw,
	})
}

func (b *turnTable) onDeadline(c *processors.Context) error {
	row, err := rowIn(c)
	if err != nil || row == nil {
		return err
	}
	return write(c, b.within(c).expire(c.Key(), row, c.Now()))
}

// onControl deletes the row of a session that is purged.
func (b *turnTable) onControl(c *processors.Context, in codec.Decoded[topics.Control]) error {
	if in.Tombstone() || in.Value.Action != topics.ActionPurge || c.Value() == nil {
		return nil
	}
	return c.Delete()
}

// within returns the rules for rows that fit into a record.
func (b *turnTable) within(c *processors.Context) tableRules {
	r := b.rules
	if limit := c.MaxRecordBytes(); limit > 0 {
		r.limit = min(r.limit, limit/2)
	}
	return r
}

// rowIn returns the row of the context's session, nil if there is none. A row that cannot be decoded stops the group: without
// it the table would lack turns. Pipelines then read the records since the last committed offsets.
func rowIn(c *processors.Context) (*invokerow.Row, error) {
	row, err := invokerow.Table.Of(c.Value())
	if err != nil {
		return nil, fmt.Errorf("%w: row of the table of turns: %w", processors.ErrKeepRecord, err)
	}
	return row, nil
}

func write(c *processors.Context, row *invokerow.Row) error {
	if row == nil {
		if c.Value() == nil {
			return nil
		}
		return c.Delete()
	}
	return c.SetValue(row)
}
