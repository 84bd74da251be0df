package delivery

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// maxRetryAfter bounds a receiver's Retry-After.
const maxRetryAfter = 7 * 24 * time.Hour

// apply applies a sink's receipt of an attempt. Repeats, final receipts (which this package writes itself) and receipts
// of any attempt but the last change nothing. A receipt after the end of its lease counts as long as no other attempt was
// made.
func (e receiptArrived) apply(t *transition) {
	r := e.Receipt
	d := t.find(r.DeliveryID)
	if e.Tombstone() || r.Final || d == nil || r.Attempt != int64(d.Attempt) {
		return
	}
	if d.Phase != deliveryrow.Phase_PHASE_IN_FLIGHT && !d.Lost {
		return
	}
	t.changed = true
	switch r.Outcome {
	case topics.OutcomeDelivered:
		t.deliver(d, topics.Receipt{Outcome: r.Outcome, Status: r.Status, Response: r.Response})
	case topics.OutcomeSuppressed:
		reason := clipped(reasonOf(r))
		t.deliver(d, topics.Receipt{Outcome: r.Outcome, Reason: &reason, Response: r.Response})
	case topics.OutcomeDeferred:
		since := d.EmittedMs
		if d.Lost { // endLease has already credited the time until now
			since = t.nowMS()
		}
		t.postpone(d, since)
	case topics.OutcomeRefused:
		t.recordProgress(d, r.Response)
		t.recordFailure(d, reasonOf(r), r.Status)
		t.markDead(d, reasonRefused+clipped(reasonOf(r)))
	default: // failed, or an outcome that only newer sinks write
		t.recordProgress(d, r.Response)
		t.recordFailure(d, reasonOf(r), r.Status)
		t.retry(d, time.Duration(min(max(r.RetryAfterMS, 0), maxRetryAfter.Milliseconds()))*time.Millisecond)
	}
}

func reasonOf(r topics.Receipt) string {
	if r.Reason == nil || strings.TrimSpace(*r.Reason) == "" {
		return "failed"
	}
	return *r.Reason
}

// clipped returns a text of a receipt with at most maxReason bytes and only printable characters.
func clipped(text string) string {
	return truncate.Text(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text), maxReason)
}

// deliver ends a delivery that is done. Its reply route is used up, so a tombstone removes it from reply-to, where other
// readers may look for it. All routes of a session have one key: there is no tombstone while the session has another one.
func (t *transition) deliver(d *deliveryrow.Delivery, r topics.Receipt) {
	t.end(d, r)
	switch {
	case !d.Routed || t.routedIsOpen():
	case len(t.row.Routes) > 0:
		t.withhold(d.GetToken())
	default:
		machine.Tombstone(&t.Effects, t.topics.ReplyTo, t.key, outputID(d.Id, "route", d.Round))
	}
}

// routedIsOpen reports whether a delivery to a reply route is open.
func (t *transition) routedIsOpen() bool {
	return slices.ContainsFunc(t.row.Open, (*deliveryrow.Delivery).GetRouted)
}

// markDead ends a delivery as dead. The delivery stays in the row for an operator's requeue while there is room, unless
// it was too large to keep its body.
func (t *transition) markDead(d *deliveryrow.Delivery, reason string) {
	t.changed = true
	dead := topics.DeadDelivery{
		Delivery: topics.Delivery{
			DeliveryID: d.Id, SessionID: t.key, TurnID: d.TurnId, RequestID: d.RequestId, Route: routeOf(d),
			Body: d.Body, CreatedMS: d.CreatedMs, ExpiresMS: d.ExpiresMs, Attempt: int64(d.Attempt),
			NotBeforeMS: d.DueMs, Channel: rawOf(d.Channel), Progress: rawOf(d.Progress),
		},
		Reason: reason, AtMS: t.nowMS(),
	}
	for _, f := range d.Failures {
		dead.Failures = append(dead.Failures, topics.DeliveryFailure{
			Attempt: int64(f.Attempt), Reason: f.Reason, Status: int64(f.Status), AtMS: f.AtMs,
		})
	}
	machine.Emit(&t.Effects, t.topics.DeliveryDLQ, t.key, outputID(d.Id, "dead", d.Round), dead)
	t.end(d, topics.Receipt{Outcome: topics.OutcomeDead, Reason: &reason})
	if d.Body == nil {
		return
	}
	d.Phase, d.DueMs = deliveryrow.Phase_PHASE_DEAD, t.after(t.config.KeepDead)
	t.row.Dead = append(t.row.Dead, d)
	if len(t.row.Dead) > maxDead {
		t.row.Dead = t.row.Dead[1:]
	}
	t.makeRoom()
}

// end emits the final receipt of a delivery and removes it from the open ones.
func (t *transition) end(d *deliveryrow.Delivery, r topics.Receipt) {
	r.DeliveryID, r.SessionID, r.Attempt, r.Route = d.Id, t.key, int64(d.Attempt), routeOf(d)
	r.Final, r.AtMS, r.Response = true, t.nowMS(), responseOf(d, r)
	machine.Emit(&t.Effects, t.topics.DeliveryReceipts, t.key, outputID(d.Id, "final", d.Round), r)
	t.row.Open = slices.DeleteFunc(t.row.Open, func(o *deliveryrow.Delivery) bool { return o == d })
	if ended := digests.Of(ofEnded, d.Id); !t.remembers(ended) {
		t.remember(ended)
	}
}
