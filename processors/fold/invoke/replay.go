package invoke

import (
	"context"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors"
)

// follower is the part of processors.Follower that a pipeline needs.
type follower interface {
	Run(ctx context.Context) error
	Ready() <-chan struct{}
	CatchUp(ctx context.Context, topic, key string) error
	Partitions(topic string) ([]int32, error)
	OffsetAt(topic string, partition int32, since time.Time) (int64, error)
	ReplayFrom(ctx context.Context, topic string, partition int32, begin int64,
		take func(context.Context, processors.Inbound) (more bool)) (next int64, err error)
	ReplayRange(ctx context.Context, topic string, partition int32, begin, end int64,
		take func(context.Context, processors.Inbound) (more bool)) (next int64, err error)
}

const (
	// replaySlots is how many chunks are read from the topic at the same time.
	replaySlots = 8
	// A chunk ends after so many bytes of the session's records, or of all records that were read.
	chunkBytes, chunkScan = 256 << 10, 4 << 20
	// chunkTimeout is the longest time in which a chunk is read.
	chunkTimeout = 30 * time.Second
)

// replay reads the records of a session in a section of a partition again, in chunks. It has a slot only while it reads a
// chunk, and callers take turns: neither a slow client nor a caller with many requests takes the slots of others.
type replay struct {
	records chan sessionRecord
	err     error // set when records is closed
	found   bool  // a record of the turn was read; set when records is closed

	pipeline              *Pipeline
	caller, session, turn string
	section               section
}

// section is a part of a partition: the records from begin on, before end.
type section struct {
	partition  int32
	begin, end int64
}

// replay starts a replay for a caller.
func (p *Pipeline) replay(ctx context.Context, caller, session, turn string, of section) *replay {
	r := &replay{records: make(chan sessionRecord, 16), pipeline: p, caller: caller, session: session, turn: turn, section: of}
	go r.run(ctx)
	return r
}

func (r *replay) run(ctx context.Context) {
	defer close(r.records)
	for next := r.section.begin; next < r.section.end; {
		chunk, after, err := r.read(ctx, next)
		if err != nil {
			r.err = err
			return
		}
		for _, l := range chunk {
			select {
			case r.records <- l:
			case <-ctx.Done():
				r.err = ctx.Err()
				return
			}
		}
		next = after
	}
}

// read reads the chunk that begins at an offset, and returns the offset after it.
func (r *replay) read(ctx context.Context, begin int64) (chunk []sessionRecord, next int64, err error) {
	if err := r.pipeline.slots.Acquire(ctx, r.caller); err != nil {
		return nil, 0, err
	}
	defer r.pipeline.slots.Release()
	reading, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	topic, own, all := r.pipeline.topics.AgentEvents.Name(), 0, 0
	next, err = r.pipeline.follower.ReplayRange(reading, topic, r.section.partition, begin, r.section.end,
		func(_ context.Context, in processors.Inbound) bool {
			all += len(in.Value)
			if string(in.Key) == r.session {
				l, ok := r.pipeline.hub.read(in)
				r.found = r.found || r.isOf(in, l)
				if ok {
					l.past = true
					chunk, own = append(chunk, l), own+len(in.Value)
				}
			}
			return own < chunkBytes && all < chunkScan
		})
	if err != nil && ctx.Err() == nil && reading.Err() != nil {
		err = fmt.Errorf("invoke: reading %s/%d from offset %d took longer than %s, the client may resume: %w",
			topic, r.section.partition, begin, chunkTimeout, err)
	}
	return chunk, next, err
}

// isOf reports whether a record is one of the turn, if only by its ID.
func (r *replay) isOf(in processors.Inbound, l sessionRecord) bool {
	if l.event != nil && l.event.TurnID == r.turn {
		return true
	}
	seen, ok := sightingIn(&r.pipeline.topics, in)
	return ok && seen.turn == r.turn
}
