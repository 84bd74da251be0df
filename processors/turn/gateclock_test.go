package turn

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/topics"
)

// Whenever gates of others open and end, and however often their records are repeated: a think step ends when it has waited for
// its timeout while none of its gates was open, and never before.
func TestStepEndsAfterItsTimeoutWithoutGates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlay(t, withGates, func(r *rules) { r.SupersedeGates = rapid.Bool().Draw(t, "supersede") })
		p.send("message-input", requestMessage("hi", "r1"))
		left := p.rules.ThinkTimeout
		open, made := map[string]time.Time{}, 0
		var past []event
		last := func() event { return p.past[len(p.past)-1] }
		// pass lets time pass, up to the next deadline of a gate or the step.
		pass := func(d time.Duration) (ended bool) {
			for d > 0 {
				next := d
				if len(open) == 0 {
					next = min(next, left)
				}
				for _, at := range open {
					next = min(next, at.Sub(p.now))
				}
				d -= next
				if len(open) == 0 {
					left -= next
				}
				es := p.wait(next)
				for id, at := range open {
					if !at.After(p.now) {
						delete(open, id)
					}
				}
				if left <= 0 {
					require.Equal(t, topics.CodeThinkTimeout, the[answered](t, es).Error.Code)
					return true
				}
				require.Empty(t, emitted[answered](es), "%s are left", left)
			}
			return false
		}
		for range rapid.IntRange(1, 40).Draw(t, "moves") {
			switch rapid.IntRange(0, 6).Draw(t, "move") {
			case 0, 1:
				made++
				ttl := time.Duration(rapid.IntRange(1, 60).Draw(t, "ttl")) * time.Minute
				g := foldGate(p, fmt.Sprint("g", made), "r1", ttl)
				require.Empty(t, p.request(g))
				past = append(past, last())
				open[g.GateID] = p.now.Add(ttl + gateGrace)
			case 2, 3:
				if made == 0 {
					continue
				}
				g := foldGate(p, fmt.Sprint("g", rapid.IntRange(1, made).Draw(t, "gate")), "r1", time.Hour)
				require.Empty(t, p.send("gate-outcomes", gateEnd(g, topics.GateApproved)))
				past = append(past, last())
				delete(open, g.GateID)
			case 4:
				if len(past) > 0 {
					require.Empty(t, p.repeat(rapid.SampledFrom(past).Draw(t, "again")))
				}
			case 5:
				if es := p.send("message-input", message("hello?")); p.rules.SupersedeGates {
					require.Len(t, emitted[gateRequested](es), len(open))
					clear(open)
				}
			default:
				if pass(time.Duration(rapid.IntRange(0, 900).Draw(t, "seconds")) * time.Second) {
					return
				}
			}
		}
		clear(open)
		for id := range made {
			p.send("gate-outcomes", gateEnd(foldGate(p, fmt.Sprint("g", id+1), "r1", time.Hour), topics.GateDenied))
		}
		require.True(t, pass(left))
	})
}
