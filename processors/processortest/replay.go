package processortest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/store"
)

// ErrReplay is wrapped by the errors of Replay if the redelivery changed something.
var ErrReplay = errors.New("processortest: replay differs")

// Replay redelivers every record, in the order in which they were written, with the tables in their current state.
// Production does this after a crash if no offset was committed. Replay then returns an error that wraps ErrReplay for each
// difference:
//
//   - a row that is not the same as before, byte for byte,
//   - an output that does not repeat an earlier output. A repeat has the same topic, key, turntable.id and value, except for
//     members named "timestamp" in a JSON value. For records without turntable.id, all headers must be the same.
//
// A graph need not repeat its outputs, because it may drop the redelivered record as a duplicate.
//
// Deadlines are not replayed and the clock does not move. Records between two graphs of the driver are replayed too. The
// test need not read the repeats.
//
// The errors contain groups, keys, topics and IDs. The values that differ are written to the test's log.
func (d *Driver) Replay() error {
	d.tb.Helper()
	before, err := d.readTables()
	if err != nil {
		return err
	}
	written := d.enqueueSince(0)
	if err := d.settle(); err != nil {
		d.fail(err)
		return err
	}
	after, err := d.readTables()
	if err != nil {
		return err
	}
	return errors.Join(append(d.compareRows(before, after), d.compareOutputs(written)...)...)
}

// enqueueSince queues every record for all its readers that was delivered from a position on. It returns the current number of outputs of each topic.
func (d *Driver) enqueueSince(position int64) map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	timers := make(map[string]bool)
	for _, r := range d.runners {
		timers[store.TimerTopic(string(r.graph.Group()))] = r.timed != nil
	}
	written := make(map[string]int)
	for topic, l := range d.logs {
		written[topic] = len(l.outputs)
		if timers[topic] {
			continue
		}
		for _, reader := range d.readers(topic) {
			for _, r := range l.records {
				if !r.held && r.delivered >= position {
					d.enqueue(reader, r)
				}
			}
		}
	}
	return written
}

// rowKey identifies a row among all tables.
type rowKey struct {
	group goka.Group
	key   string
}

// readTables returns the rows of all tables, with their parts.
func (d *Driver) readTables() (map[rowKey][]byte, error) {
	all := make(map[rowKey][]byte)
	for _, r := range d.runners {
		if r.rows == nil {
			continue
		}
		group := r.graph.Group()
		err := r.rows.each(func(key string, row []byte) { all[rowKey{group, key}] = bytes.Clone(row) })
		if err != nil {
			return nil, fmt.Errorf("processortest: table of group %s: %w", group, err)
		}
	}
	return all, nil
}

func (d *Driver) compareRows(before, after map[rowKey][]byte) []error {
	d.tb.Helper()
	var errs []error
	all := maps.Clone(before)
	maps.Copy(all, after)
	names := slices.SortedFunc(maps.Keys(all), func(a, b rowKey) int {
		return slices.Compare([]string{string(a.group), a.key}, []string{string(b.group), b.key})
	})
	for _, name := range names {
		rowBefore, existed := before[name]
		rowAfter, exists := after[name]
		if existed == exists && bytes.Equal(rowBefore, rowAfter) {
			continue
		}
		d.tb.Logf("group %s, row %q:\n before: %q\n after:  %q", name.group, name.key, rowBefore, rowAfter)
		errs = append(errs, fmt.Errorf("%w: group %s, row %q", ErrReplay, name.group, name.key))
	}
	return errs
}

// compareOutputs compares the outputs of the replay with the earlier ones, and removes them from the outputs to read.
func (d *Driver) compareOutputs(written map[string]int) []error {
	d.tb.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, topic := range slices.Sorted(maps.Keys(d.logs)) {
		l := d.logs[topic]
		first, repeats := l.outputs[:written[topic]], l.outputs[written[topic]:]
		l.outputs = first
		identities := make(map[string]bool, len(first))
		for _, r := range first {
			identities[r.identity()] = true
		}
		for _, r := range repeats {
			if identities[r.identity()] {
				continue
			}
			d.tb.Logf("topic %s, key %q, id %q: %q", topic, r.key, r.id(), r.value)
			errs = append(errs, fmt.Errorf("%w: topic %s, key %q, id %q does not repeat an earlier output", ErrReplay, topic, r.key, r.id()))
		}
	}
	return errs
}
