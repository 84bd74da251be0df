package delivery

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/turntable-streams/turntable/internal/clip"
	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// maxRetryAfter bounds what a receiver may ask for: more than any delivery lives.
const maxRetryAfter = 7 * 24 * time.Hour

// apply takes the receipt of an attempt. That of another attempt than the last, a repeat, and our own final ones change
// nothing (R40). One that comes after the lease still counts while no other attempt was made.
func (e Reported) apply(s *session) {
	r := e.Receipt
	d := s.find(r.DeliveryID)
	if e.tombstone() || r.Final || d == nil || r.Attempt != int64(d.Attempt) {
		return
	}
	if d.Phase != Phase_PHASE_IN_FLIGHT && !d.Lost {
		return
	}
	s.changed = true
	switch r.Outcome {
	case topics.OutcomeDelivered:
		s.deliver(d, r)
	case topics.OutcomeDeferred:
		since := d.EmittedMs
		if d.Lost { // that time does not count already
			since = s.nowMS()
		}
		s.deferFor(d, since)
	case topics.OutcomeRefused:
		s.fail(d, reasonOf(r), r.Status)
		s.bury(d, reasonRefused+clipped(reasonOf(r)))
	default: // failed, and what a newer sink may call it
		s.fail(d, reasonOf(r), r.Status)
		asked := time.Duration(min(max(r.RetryAfterMS, 0), maxRetryAfter.Milliseconds())) * time.Millisecond
		s.retry(d, asked)
	}
}

func reasonOf(r topics.Receipt) string {
	if r.Reason == nil || strings.TrimSpace(*r.Reason) == "" {
		return "failed"
	}
	return *r.Reason
}

// clipped bounds foreign text, and keeps it printable.
func clipped(text string) string {
	return clip.Text(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text), maxReason)
}

// deliver ends a delivery well. Its reply route is used up: FlightDeck's readers of reply-to see a tombstone, unless
// another route of the session is open, which has the same key.
func (s *session) deliver(d *Delivery, r topics.Receipt) {
	s.conclude(d, topics.Receipt{Outcome: topics.OutcomeDelivered, Status: r.Status})
	if d.Routed && len(s.row.Routes) == 0 && !slices.ContainsFunc(s.row.Open, (*Delivery).GetRouted) {
		s.emit(d, "route", d.Round, RouteRemoved{})
	}
}

// bury ends a delivery badly. It is kept for an operator while there is room.
func (s *session) bury(d *Delivery, reason string) {
	s.changed = true
	dead := topics.DeadDelivery{
		Delivery: topics.Delivery{
			DeliveryID: d.Id, SessionID: s.key, TurnID: d.TurnId, RequestID: d.RequestId, Route: d.route(),
			Body: d.Body, CreatedMS: d.CreatedMs, ExpiresMS: d.ExpiresMs, Attempt: int64(d.Attempt),
			NotBeforeMS: d.DueMs,
		},
		Reason: reason, AtMS: s.nowMS(),
	}
	for _, f := range d.Failures {
		dead.Failures = append(dead.Failures, topics.DeliveryFailure{
			Attempt: int64(f.Attempt), Reason: f.Reason, Status: int64(f.Status), AtMS: f.AtMs,
		})
	}
	s.emit(d, "dead", d.Round, Buried(dead))
	s.conclude(d, topics.Receipt{Outcome: topics.OutcomeDead, Reason: &reason})
	if d.Body == nil {
		return
	}
	d.Phase, d.DueMs = Phase_PHASE_DEAD, s.after(s.rules.KeepDead)
	s.row.Dead = append(s.row.Dead, d)
	if len(s.row.Dead) > maxDead {
		s.row.Dead = s.row.Dead[1:]
	}
	s.makeRoom()
}

// conclude gives a delivery its one final receipt.
func (s *session) conclude(d *Delivery, r topics.Receipt) {
	r.DeliveryID, r.SessionID, r.Attempt, r.Route = d.Id, s.key, int64(d.Attempt), d.route()
	r.Final, r.AtMS = true, s.nowMS()
	s.emit(d, "final", d.Round, Ended(r))
	s.row.Open = slices.DeleteFunc(s.row.Open, func(o *Delivery) bool { return o == d })
	if ended := digests.Of(ofEnded, d.Id); !s.remembers(ended) {
		s.remember(ended)
	}
}
