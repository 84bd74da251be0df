package wiretest

import (
	"context"
	"sync"
)

// backlog delays records, so that they are sent after the turn they belong to, as a worker's late repeats are. It is
// bounded: a record beyond the limit sends the oldest.
type backlog struct {
	mu    sync.Mutex
	limit int
	held  []late
}

type late struct {
	record Record
	known  Sent
}

func newBacklog(limit int) *backlog { return &backlog{limit: limit} }

// hold delays a record and returns the one that must be sent to make room for it, if any.
func (b *backlog) hold(l late) (late, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = append(b.held, l)
	if len(b.held) <= b.limit {
		return late{}, false
	}
	out := b.held[0]
	b.held = append(b.held[:0], b.held[1:]...)
	return out, true
}

func (b *backlog) drain() []late {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.held
	b.held = nil
	return out
}

func (d *Driver) sendLate(ctx context.Context, r Record, known Sent) error {
	out, full := d.backlog.hold(late{record: r, known: known})
	if !full {
		return nil
	}
	_, err := d.Send(ctx, out.record, out.known)
	return err
}

// Release sends all delayed records.
func (d *Driver) Release(ctx context.Context) error {
	for _, l := range d.backlog.drain() {
		if _, err := d.Send(ctx, l.record, l.known); err != nil {
			return err
		}
	}
	return nil
}
