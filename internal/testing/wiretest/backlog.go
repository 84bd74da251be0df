package wiretest

import (
	"context"
	"sync"
)

// backlog delays records until after the turn they belong to, like the late repeats of a worker. When it is full, adding a
// record releases the oldest one.
type backlog struct {
	mu    sync.Mutex
	limit int
	held  []delayedRecord
}

type delayedRecord struct {
	record   Record
	expected Sent
}

func newBacklog(limit int) *backlog { return &backlog{limit: limit} }

// add delays a record. If the backlog is full, it returns the oldest record, which must be sent now.
func (b *backlog) add(l delayedRecord) (delayedRecord, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = append(b.held, l)
	if len(b.held) <= b.limit {
		return delayedRecord{}, false
	}
	out := b.held[0]
	b.held = append(b.held[:0], b.held[1:]...)
	return out, true
}

func (b *backlog) drain() []delayedRecord {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.held
	b.held = nil
	return out
}

func (d *Driver) sendLate(ctx context.Context, r Record, expected Sent) error {
	out, full := d.backlog.add(delayedRecord{record: r, expected: expected})
	if !full {
		return nil
	}
	_, err := d.Send(ctx, out.record, out.expected)
	return err
}

// Release sends all delayed records.
func (d *Driver) Release(ctx context.Context) error {
	for _, l := range d.backlog.drain() {
		if _, err := d.Send(ctx, l.record, l.expected); err != nil {
			return err
		}
	}
	return nil
}
