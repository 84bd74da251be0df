package peerhttp

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/internal/audit"
)

const (
	// refusedTimeout is how long the answer to a refused request waits for the record of the refusal.
	refusedTimeout = 5 * time.Second
	// maxBuckets bounds the labels whose refusals are counted: configurations change.
	maxBuckets = 2 * peer.MaxEntries
)

// refuse answers a request of a peer that is refused, after the record of it was written. inboundID is the label of its token,
// empty if there is none, and req what was read of its body.
func (h *Handler) refuse(r *request, inboundID string, req peerwire.Request, refusal *peerwire.Refusal) answer {
	switch {
	case refusal.Code == peerwire.CodeUnknownToken:
		late := r.Fail("", &entrance.Refusal{Status: refusal.Status, Text: string(refusal.Code)})
		if late.Status == http.StatusTooManyRequests {
			return h.turnAway(r, inboundID, late)
		}
	case refusal.Status == http.StatusUnauthorized, refusal.Status == http.StatusForbidden, refusal.Status == http.StatusTooManyRequests:
		if r.Caller.Name() == "" && inboundID != "" {
			r.Caller.Subject = subjectOf(inboundID)
		}
		// The text may have what the request says.
		r.Refuse(&entrance.Refusal{Status: refusal.Status, Text: string(refusal.Code)})
	}
	h.writeRefused(r, inboundID, req, refusal)
	return refused(refusal)
}

// turnAway answers a request of a peer that its entrance refused.
func (h *Handler) turnAway(r *request, inboundID string, refusal *entrance.Refusal) answer {
	refusal.SetHeader(r.w.Header())
	told := refusalOf(refusal)
	h.writeRefused(r, inboundID, peerwire.Request{}, told)
	a := refused(told)
	if refusal.RetryAfter > 0 {
		a.retryAfter = refusal.RetryAfter
	}
	return a
}

// writeRefused writes the record of a refused request, unless there are too many. A failure is logged: the request is refused
// anyway.
func (h *Handler) writeRefused(r *request, inboundID string, req peerwire.Request, refusal *peerwire.Refusal) {
	now := h.config.Clock.Now()
	omitted, ok := h.refusals.take(inboundID, now)
	fields := []zap.Field{zap.String("agent", h.topics.Agent), zap.String("inbound", inboundID)}
	if omitted > 0 {
		h.config.Logger.Warn("peer door refused requests without a record of each", append(fields, zap.Int64("omitted", omitted))...)
	}
	if !ok || r.settings.InstanceID == "" { // without an instance there is no chain
		return
	}
	record := audit.Refused(req, inboundID, refusal, now)
	record.InstanceID = r.settings.InstanceID
	out, err := processors.OutboundOf(h.events, record.InstanceID, record, "refused/"+rand.Text())
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), refusedTimeout)
		defer cancel()
		err = h.to.Publish(ctx, out)
	}
	if err != nil {
		h.config.Logger.Error("peer door cannot write the record of a refused request", append(fields, zap.Error(err))...)
	}
}

// refusals bounds the records of refused requests, for each label of a token, and for all requests without one. It is safe for
// concurrent use.
type refusals struct {
	perSecond int

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	limit   *rate.Limiter
	omitted int64
}

func newRefusals(perSecond int) *refusals {
	return &refusals{perSecond: perSecond, buckets: map[string]*bucket{}}
}

// take reports whether a record may be written. omitted is how many were not, since one was; it is 0 if this one is not either.
func (f *refusals) take(label string, now time.Time) (omitted int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.buckets[label]
	if b == nil {
		if len(f.buckets) == maxBuckets {
			clear(f.buckets)
		}
		b = &bucket{limit: rate.NewLimiter(rate.Limit(f.perSecond), f.perSecond)}
		f.buckets[label] = b
	}
	if !b.limit.AllowN(now, 1) {
		b.omitted++
		return 0, false
	}
	omitted, b.omitted = b.omitted, 0
	return omitted, true
}

// subjectOf names a peer in limits and in the operator's audit.
func subjectOf(inboundID string) string { return "peer " + inboundID }
