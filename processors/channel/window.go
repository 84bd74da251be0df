package channel

import (
	"crypto/sha256"
	"time"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// span is the length of the window of a rate limit.
const span = time.Minute

// window is what is remembered of a person at an account for the rate limit: the events of the last 60 seconds that were
// passed on, at most as many as the limit. The zero value is a person who wrote nothing. A window is immutable.
type window struct {
	passed []hit
	// told is the event after which the person was last told that the limit is reached.
	told hit
}

type hit struct {
	event [16]byte
	at    int64 // Unix nanoseconds
}

// personOf identifies whose window counts for an event: the person at the account, or the recipient if the platform names no
// person.
func personOf(in adapter.Inbound) string {
	o := in.Origin
	who := "u" + o.User
	if o.User == "" {
		who = "r" + o.Recipient
	}
	return o.Channel + "\x00" + o.Account + "\x00" + who
}

// Idle reports whether nothing of the window counts any more, so that it need not be kept.
func (w window) Idle(now time.Time) bool {
	for _, h := range w.passed {
		if h.recent(now) {
			return false
		}
	}
	return !w.told.recent(now)
}

// recent also ends the window of an event from the future: the clock was set back.
func (h hit) recent(now time.Time) bool {
	age := now.UnixNano() - h.at
	return age > -int64(span) && age < int64(span) && h.at != 0
}

type verdict int

const (
	pass   verdict = iota // the event is passed on
	tell                  // the limit is reached, and the person is to be told
	reject                // the limit is reached, and the person was told
)

// take counts an event.
func (w window) take(limit int, event string, now time.Time) (window, verdict) {
	if limit <= 0 {
		return window{}, pass
	}
	sum := sha256.Sum256([]byte(event))
	this := hit{event: [16]byte(sum[:16]), at: now.UnixNano()}
	var passed []hit
	for _, h := range w.passed {
		if !h.recent(now) {
			continue
		}
		if h.event == this.event {
			return w, pass // a repeat
		}
		passed = append(passed, h)
	}
	switch {
	case len(passed) < limit:
		return window{passed: append(passed, this), told: w.told}, pass
	case w.told.event == this.event || !w.told.recent(now):
		return window{passed: passed, told: this}, tell
	default:
		return window{passed: passed, told: w.told}, reject
	}
}
