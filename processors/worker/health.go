package worker

import (
	"cmp"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// Health is a snapshot of a worker. Calls have keys, which are session IDs, and Err may name one: show them to operators only.
type Health struct {
	// Mode is how the worker gets its records; Auto until it has chosen.
	Mode Mode
	// Ready says that the worker is a member of its group and takes records.
	Ready bool
	// Calls are the records that the worker holds, the oldest first, and the handlers that it has abandoned.
	Calls []Call
	// Lag is the number of records that are not settled, by topic and partition. In a consumer group it covers the
	// partitions that this worker owns and is current. In a share group it covers the whole group and is at most 15 s old.
	// It is nil if the worker does not know it: it has just started, or may not describe the group.
	Lag map[string]map[int32]int64
	// Err is the last error of a handler, a dead letter or the group. It is kept after a recovery.
	Err error
}

// Call is a record that a worker handles.
type Call struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       []byte
	// Attempt is the number of the handler's call for the record, from 1. It is 0 if the record is only dead-lettered.
	Attempt int
	// Age is how long the worker has held the record.
	Age time.Duration
	// Waiting reports that the record waits for a limit and occupies no slot.
	Waiting bool
	// Abandoned reports that the handler ignores the end of its context. Its slot is free; its goroutine continues.
	Abandoned bool
}

// running is a record that the worker holds, or the abandoned handler of one. It is guarded by Worker.mu.
type running struct {
	record    processors.Inbound
	since     time.Time
	attempt   int
	waiting   bool
	handlers  int // goroutines of handlers that have not returned
	over      bool
	abandoned bool
}

// Ready reports whether the worker is a member of its group and takes records.
func (w *Worker) Ready() bool { return w.Health().Ready }

// Health returns a snapshot of the worker's state. It does not block.
func (w *Worker) Health() Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := Health{Mode: w.mode, Err: w.lastErr}
	if w.source != nil {
		s := w.source.Status()
		h.Ready, h.Lag = s.Joined, s.Lag
		if h.Err == nil {
			h.Err = s.Err
		}
	}
	now := w.config.Clock.Now()
	for c := range w.calls {
		h.Calls = append(h.Calls, Call{
			Topic: c.record.Topic, Partition: c.record.Partition, Offset: c.record.Offset, Key: c.record.Key,
			Attempt: c.attempt, Age: now.Sub(c.since), Waiting: c.waiting, Abandoned: c.abandoned,
		})
	}
	slices.SortFunc(h.Calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(b.Age, a.Age), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition),
			cmp.Compare(a.Offset, b.Offset))
	})
	return h
}

func (w *Worker) begin(d source.Delivery) *running {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &running{record: d.Record, since: w.config.Clock.Now()}
	w.calls[c] = struct{}{}
	return c
}

// end removes a record from the calls, unless an abandoned handler still runs.
func (w *Worker) end(c *running) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.over = true
	if c.handlers == 0 {
		delete(w.calls, c)
	}
}

func (w *Worker) waiting(c *running, yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.waiting = yes
}

// crowded reports whether the records of one session occupy more than half of the slots, and at least two.
func (w *Worker) crowded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	slots := map[string]int{}
	for c := range w.calls {
		if !c.waiting && !c.over {
			key := string(c.record.Key)
			if slots[key]++; key != "" && slots[key] > max(w.config.Concurrency/2, 1) {
				return true
			}
		}
	}
	return false
}

func (w *Worker) calling(c *running, attempt int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.attempt = attempt
	c.handlers++
}

func (w *Worker) returned(c *running) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.handlers--; c.handlers == 0 && c.over {
		delete(w.calls, c)
	}
}

func (w *Worker) abandon(c *running) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.abandoned = true
}

func (w *Worker) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastErr = err
}

// log logs a message about a record, by its coordinates and key.
func (c *core) log(level zapcore.Level, message string, r processors.Inbound, fields ...zap.Field) {
	c.logger.Log(level, message, append([]zap.Field{
		zap.String("topic", r.Topic), zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset),
		zap.ByteString("key", r.Key),
	}, fields...)...)
}
