// Package audit records who wrote, answered or was refused at the HTTP and WebSocket doors of this module. Each door has an
// option WithAudit that takes a Sink. By default a door logs its events (Log).
//
// Events contain no payload and no token. Session and request IDs are those of the request.
package audit

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// Action is what a caller did.
type Action string

// The actions.
const (
	// Write: a message was written, or a turn was started.
	Write Action = "write"
	// Answer: the result of a tool call, or a decision about a gate, was written.
	Answer Action = "answer"
	// Cancel: a message or a turn was cancelled.
	Cancel Action = "cancel"
	// Purge: a session was deleted.
	Purge Action = "purge"
	// Revoke: the revocation of a standing approval was written.
	Revoke Action = "revoke"
	// Refuse: the request was refused with status 401, 403 or 429.
	Refuse Action = "refuse"
)

// Event is one request that had an effect, or that was refused.
type Event struct {
	At     time.Time
	Door   string // chat, callback, gate, invoke or websocket
	Agent  string // empty if the door does not know it
	Action Action
	// Subject is auth.Caller.Name; empty if the caller is not authenticated. Address is the remote address without port.
	Subject, Address string
	// Session and RequestID are empty if the request was refused before they were known.
	Session, RequestID string
	// Status is the HTTP status of the answer, and Reason why a request was refused.
	Status int
	Reason string
}

// Sink receives events. A door calls it from several goroutines, before it answers the request. It must not block.
type Sink func(Event)

// refusalsPerSecond bounds the log lines about refused requests, so that a flood of them does not fill a disk.
const refusalsPerSecond = 100

// Log returns a sink that logs each event at level info, and refused requests at level warn. Of more than 100 refused
// requests per second it logs 100; the next line has the number of those that were left out in the field "omitted".
func Log(l *zap.Logger) Sink {
	var mu sync.Mutex
	var omitted int64
	bucket := rate.NewLimiter(refusalsPerSecond, refusalsPerSecond)
	return func(e Event) {
		fields := []zap.Field{
			zap.String("door", e.Door), zap.String("agent", e.Agent), zap.String("action", string(e.Action)),
			zap.String("subject", e.Subject), zap.String("address", e.Address), zap.String("session", e.Session),
			zap.String("request_id", e.RequestID), zap.Int("status", e.Status),
		}
		if e.Action != Refuse {
			l.Info("audit", fields...)
			return
		}
		mu.Lock()
		if !bucket.AllowN(e.At, 1) {
			omitted++
			mu.Unlock()
			return
		}
		left := omitted
		omitted = 0
		mu.Unlock()
		fields = append(fields, zap.String("reason", e.Reason))
		if left > 0 {
			fields = append(fields, zap.Int64("omitted", left))
		}
		l.Warn("audit", fields...)
	}
}

// Tee returns a sink that passes each event to all sinks.
func Tee(sinks ...Sink) Sink {
	return func(e Event) {
		for _, s := range sinks {
			s(e)
		}
	}
}

// Counts counts events. The zero value is ready for use. It is safe for concurrent use.
type Counts struct {
	mu     sync.Mutex
	counts map[Count]uint64
}

// Count is what Counts distinguishes: the door, the action, and for refused requests the status.
type Count struct {
	Door   string
	Action Action
	Status int // 0 unless the action is Refuse
}

// Sink returns a sink that counts events and passes them to next, unless next is nil.
func (c *Counts) Sink(next Sink) Sink {
	return func(e Event) {
		k := Count{Door: e.Door, Action: e.Action}
		if e.Action == Refuse {
			k.Status = e.Status
		}
		c.mu.Lock()
		if c.counts == nil {
			c.counts = map[Count]uint64{}
		}
		c.counts[k]++
		c.mu.Unlock()
		if next != nil {
			next(e)
		}
	}
}

// All returns a copy of the counters.
func (c *Counts) All() map[Count]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[Count]uint64, len(c.counts))
	for k, n := range c.counts {
		all[k] = n
	}
	return all
}
