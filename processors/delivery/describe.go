package delivery

import (
	"fmt"
	"strings"
	"time"
)

// Describe returns the deliveries of a session as text for operators: IDs, routes, sizes, deadlines and failures, but
// no bodies and no tokens. A nil state is a session without a row.
func Describe(s *State) string {
	if s == nil {
		return "no state\n"
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, d := range s.Open {
		describe(line, d)
	}
	for _, d := range s.Dead {
		describe(line, d)
	}
	for _, r := range s.Routes {
		line("route %s: expires %s", r.Id, at(r.ExpiresMs))
	}
	line("remembered: %d", len(s.Remembered)/memorySize)
	line("next deadline: %s", at(s.DeadlineMs))
	return b.String()
}

var phaseTexts = map[Phase]string{
	Phase_PHASE_ROUTE: "waits for its route until", Phase_PHASE_PENDING: "is due",
	Phase_PHASE_IN_FLIGHT: "waits for its receipt until", Phase_PHASE_DEAD: "dead, kept until",
}

func describe(line func(string, ...any), d *Delivery) {
	line("delivery %s to %s, %d bytes: attempt %d, %s %s", d.Id, d.route().Key(), len(d.Body), d.Attempt, phaseTexts[d.Phase],
		at(d.DueMs))
	for _, f := range d.Failures {
		line("  attempt %d: %s", f.Attempt, f.Reason)
	}
}

// DescribeCircuit returns the state of a route at a time as text for operators. A nil circuit is a route without a row.
func DescribeCircuit(c *Circuit, now time.Time) string {
	gate := c.Gate(now)
	text := fmt.Sprintf("%s, %d in flight, %d failures in a row", c.Phase(now), gate.InFlight, c.GetFailures())
	if c.GetReason() != "" {
		text += ", last: " + c.Reason
	}
	if c.Phase(now) == CircuitOpen {
		text += ", until " + at(c.OpenUntilMs)
	}
	return text + "\n"
}

func at(ms int64) string {
	if ms == 0 {
		return "none"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}
