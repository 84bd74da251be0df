package processortest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/timer"
)

// ErrReplay is what Replay returns, wrapped, where the second delivery changed something.
var ErrReplay = errors.New("processortest: replay differs")

// Replay delivers every record once more, at its offset and in the order in which the records were written, against
// the tables as they are now: what an at-least-once broker does when no offset was committed. It then compares. Each
// table must be what it was, byte for byte. Each output of the replay must repeat one of the outputs before it, that
// is: topic, key and value are equal, members named "timestamp" of a JSON value left out of account, and so is
// turntable.id, or all headers where a record has no id. A repeat that is missing is no difference, for whoever has
// seen the record before may keep silent.
//
// Deadlines are not replayed, and the clock stands still. Records between two graphs of the driver are replayed like
// piped ones. Repeats do not count as outputs that somebody has to read.
//
// The error names tables, keys, topics and ids; the values that differ are in the test's log.
func (d *Driver) Replay() error {
	d.tb.Helper()
	before, err := d.snapshot()
	if err != nil {
		return err
	}
	written := d.replayed()
	if err := d.settle(); err != nil {
		d.fail(err)
		return err
	}
	after, err := d.snapshot()
	if err != nil {
		return err
	}
	return errors.Join(append(d.rowsThatDiffer(before, after), d.outputsThatDiffer(written)...)...)
}

// replayed queues every record for all its readers and returns how many outputs each topic has before that.
func (d *Driver) replayed() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	timers := make(map[string]bool)
	for _, r := range d.runners {
		timers[timer.Topic(string(r.graph.Group()))] = r.timed != nil
	}
	written := make(map[string]int)
	for topic, l := range d.logs {
		written[topic] = len(l.outputs)
		if timers[topic] {
			continue
		}
		for _, reader := range d.readers(topic) {
			for _, r := range l.records {
				d.enqueue(reader, r)
			}
		}
	}
	return written
}

// rowKey names a row among all tables.
type rowKey struct {
	group goka.Group
	key   string
}

func (d *Driver) snapshot() (map[rowKey][]byte, error) {
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

func (d *Driver) rowsThatDiffer(before, after map[rowKey][]byte) []error {
	d.tb.Helper()
	var errs []error
	all := maps.Clone(before)
	maps.Copy(all, after)
	names := slices.SortedFunc(maps.Keys(all), func(a, b rowKey) int {
		return slices.Compare([]string{string(a.group), a.key}, []string{string(b.group), b.key})
	})
	for _, name := range names {
		was, had := before[name]
		is, has := after[name]
		if had == has && bytes.Equal(was, is) {
			continue
		}
		d.tb.Logf("group %s, row %q:\n before: %q\n after:  %q", name.group, name.key, was, is)
		errs = append(errs, fmt.Errorf("%w: group %s, row %q", ErrReplay, name.group, name.key))
	}
	return errs
}

// outputsThatDiffer compares what the replay wrote with what there was, and takes it out of the outputs to read.
func (d *Driver) outputsThatDiffer(written map[string]int) []error {
	d.tb.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, topic := range slices.Sorted(maps.Keys(d.logs)) {
		l := d.logs[topic]
		first, repeats := l.outputs[:written[topic]], l.outputs[written[topic]:]
		l.outputs = first
		known := make(map[string]bool, len(first))
		for _, r := range first {
			known[r.identity()] = true
		}
		for _, r := range repeats {
			if known[r.identity()] {
				continue
			}
			d.tb.Logf("topic %s, key %q, id %q: %q", topic, r.key, r.id(), r.value)
			errs = append(errs, fmt.Errorf("%w: topic %s, key %q, id %q is no repeat", ErrReplay, topic, r.key, r.id()))
		}
	}
	return errs
}
