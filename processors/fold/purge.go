package fold

import (
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors"
)

// purge applies a purge to its session's row, and deletes all parts that the row does not name then: those that a crash left
// too. It always succeeds: a row that is damaged is deleted. A row of a newer format stops the processor, as with any other
// input, until a newer build has the partition.
func (b *binding) purge(c *processors.Context, in input) error {
	out, err := b.purged(c, in)
	if errors.Is(err, rows.ErrVersion) {
		return err
	}
	if err != nil {
		c.Logger().Error("fold: the row of a purged session is damaged: its turns end without a batch",
			zap.String("key", c.Key()), zap.Error(err))
		out = outcome{Changed: true}
	}
	if c.HasParts() && out.Changed {
		if out, err = withoutUnnamedParts(c, out); err != nil {
			return err
		}
	}
	return b.perform(c, out)
}

// purged returns the outcome of a purge. A panic, because of a damaged row, is an error.
func (b *binding) purged(c *processors.Context, in input) (out outcome, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			out, err = outcome{}, fmt.Errorf("fold: the purge cannot be applied to the row: panic: %T", thrown)
		}
	}()
	row, err := foldrow.Table.Of(c.Value())
	if err != nil {
		return outcome{}, err
	}
	return b.outcome(c, row, in)
}

// withoutUnnamedParts adds the deletion of all parts in the table that the row of an outcome does not name.
func withoutUnnamedParts(c *processors.Context, out outcome) (outcome, error) {
	all, err := c.Parts()
	if err != nil {
		return out, fmt.Errorf("fold: purge: list the parts of the row: %w", err)
	}
	kept := partsOf(out.Row)
	for _, e := range out.Effects {
		if deleted, ok := e.(partDeleted); ok {
			kept = append(kept, deleted.Number) // it is deleted already
		}
	}
	slices.Sort(all) // in the same order after a restart
	for _, n := range all {
		if !slices.Contains(kept, n) {
			out.Effects = append(out.Effects, partDeleted{Number: n})
		}
	}
	return out, nil
}

// partsOf returns the numbers of the parts that a row names.
func partsOf(r *foldrow.Row) (numbers []uint32) {
	for _, t := range r.GetOpen() {
		numbers = appendParts(t, numbers)
	}
	for _, p := range r.GetClosed() {
		numbers = append(numbers, p.Part)
	}
	return numbers
}

// appendParts appends the numbers of the parts that a turn names.
func appendParts(t *foldrow.Turn, numbers []uint32) []uint32 {
	for _, x := range t.Parts {
		for i := range x.Count {
			numbers = append(numbers, x.First+i)
		}
	}
	for _, h := range t.Held {
		numbers = append(numbers, h.Part)
	}
	for _, run := range t.Runs {
		numbers = appendParts(run, numbers)
	}
	for _, q := range t.Queue {
		numbers = append(numbers, q.Part)
	}
	return append(numbers, t.Request)
}
