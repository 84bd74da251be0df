package auth

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// AuditAction is what a caller did.
type AuditAction string

// The actions.
const (
	// AuditWrite: a message was written, or a turn was started.
	AuditWrite AuditAction = "write"
	// AuditAnswer: the result of a tool call, or a decision about a gate, was written.
	AuditAnswer AuditAction = "answer"
	// AuditCancel: a message or a turn was cancelled.
	AuditCancel AuditAction = "cancel"
	// AuditPurge: a session was deleted.
	AuditPurge AuditAction = "purge"
	// AuditRevoke: the revocation of a standing approval was written.
	AuditRevoke AuditAction = "revoke"
	// AuditRefuse: the request was refused with status 401, 403 or 429.
	AuditRefuse AuditAction = "refuse"
)

// AuditEvent is one request that had an effect, or that was refused: who wrote, answered or was refused at a door. A door passes
// its events to Door.Audit. By default it logs them (LogAudit).
//
// Events contain no payload and no token. Session and request IDs are those of the request.
type AuditEvent struct {
	At     time.Time
	Door   string // chat, callback, gate, invoke or websocket
	Agent  string // empty if the door does not know it
	Action AuditAction
	// Subject is Caller.Name; empty if the caller is not authenticated. Address is the remote address without port.
	Subject, Address string
	// Session and RequestID are empty if the request was refused before they were known.
	Session, RequestID string
	// Status is the HTTP status of the answer, and Reason why a request was refused.
	Status int
	Reason string
}

// AuditSink receives events. A door calls it from several goroutines, before it answers the request. It must not block.
type AuditSink func(AuditEvent)

// refusalsPerSecond bounds the log lines about refused requests, so that a flood of them does not fill a disk.
const refusalsPerSecond = 100

// LogAudit returns a sink that logs each event at level info, and refused requests at level warn. Of more than 100 refused
// requests per second it logs 100; the next line has the number of those that were left out in the field "omitted".
func LogAudit(l *zap.Logger) AuditSink {
	var mu sync.Mutex
	var omitted int64
	bucket := rate.NewLimiter(refusalsPerSecond, refusalsPerSecond)
	return func(e AuditEvent) {
		fields := []zap.Field{
			zap.String("door", e.Door), zap.String("agent", e.Agent), zap.String("action", string(e.Action)),
			zap.String("subject", e.Subject), zap.String("address", e.Address), zap.String("session", e.Session),
			zap.String("request_id", e.RequestID), zap.Int("status", e.Status),
		}
		if e.Action != AuditRefuse {
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

// AuditTee returns a sink that passes each event to all sinks.
func AuditTee(sinks ...AuditSink) AuditSink {
	return func(e AuditEvent) {
		for _, s := range sinks {
			s(e)
		}
	}
}

// AuditCounts counts events. The zero value is ready for use. It is safe for concurrent use.
type AuditCounts struct {
	mu     sync.Mutex
	counts map[AuditCount]uint64
}

// AuditCount is what AuditCounts distinguishes: the door, the action, and for refused requests the status.
type AuditCount struct {
	Door   string
	Action AuditAction
	Status int // 0 unless the action is AuditRefuse
}

// AuditSink returns a sink that counts events and passes them to next, unless next is nil.
func (c *AuditCounts) Sink(next AuditSink) AuditSink {
	return func(e AuditEvent) {
		k := AuditCount{Door: e.Door, Action: e.Action}
		if e.Action == AuditRefuse {
			k.Status = e.Status
		}
		c.mu.Lock()
		if c.counts == nil {
			c.counts = map[AuditCount]uint64{}
		}
		c.counts[k]++
		c.mu.Unlock()
		if next != nil {
			next(e)
		}
	}
}

// All returns a copy of the counters.
func (c *AuditCounts) All() map[AuditCount]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[AuditCount]uint64, len(c.counts))
	for k, n := range c.counts {
		all[k] = n
	}
	return all
}
