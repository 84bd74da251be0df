package main

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors"
)

// journal reads the topics of the flow from their beginnings. It prints the records that are written after begin, and tells
// those who wait what it has read.
type journal struct {
	flow     []shown
	order    map[string]int // the index in flow, by topic
	screen   *screen
	follower *processors.Follower

	mu      sync.Mutex
	new     []processors.Inbound // not yet taken
	begun   bool
	seen    *seen
	changed chan struct{} // closed and replaced when seen has changed
}

func newJournal(brokers []string, flow []shown, s *seen, screen *screen, opts ...processors.Option) (j *journal, err error) {
	j = &journal{flow: flow, order: map[string]int{}, screen: screen, seen: s, changed: make(chan struct{})}
	var names []string
	for i, t := range flow {
		j.order[t.Name] = i
		names = append(names, t.Name)
	}
	j.follower, err = processors.NewTableFollower(brokers, names, j.add, opts...)
	return j, err
}

func (j *journal) add(r processors.Inbound) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.new = append(j.new, r)
}

// pace is how long records are collected to be put in order: the follower reads several topics at once.
const pace = 20 * time.Millisecond

// run takes what the follower reads until ctx ends.
func (j *journal) run(ctx context.Context) error {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			j.take()
		case <-ctx.Done():
			return nil
		}
	}
}

// begin waits until all records are read that earlier runs have written. Later ones are printed.
func (j *journal) begin(ctx context.Context) error {
	select {
	case <-j.follower.Ready():
	case <-ctx.Done():
		return ctx.Err()
	}
	j.take()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.begun = true
	return nil
}

// take takes the new records, in the order of their timestamps and, in the same millisecond, that of the flow.
func (j *journal) take() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.new) == 0 {
		return
	}
	slices.SortStableFunc(j.new, func(a, b processors.Inbound) int {
		return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(j.order[a.Topic], j.order[b.Topic]))
	})
	for _, r := range j.new {
		if j.begun {
			j.screen.record(j.flow[j.order[r.Topic]], r)
		}
		j.seen.take(r)
	}
	j.new = nil
	close(j.changed)
	j.changed = make(chan struct{})
}

// look calls f with what was seen. f must keep no map of it.
func (j *journal) look(f func(*seen)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(j.seen)
}

// wait blocks until found returns true, for which look applies.
func (j *journal) wait(ctx context.Context, found func(*seen) bool) error {
	for {
		j.mu.Lock()
		ok, changed := found(j.seen), j.changed
		j.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle waits until the records are printed that are written now, for example the last ones of a turn. It waits 2 s at most.
func (j *journal) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for _, t := range j.flow {
		if j.follower.CatchUpTopic(ctx, t.Name) != nil {
			break
		}
	}
	j.take()
}
