package delivery

import (
	"fmt"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
)

// TableCodec returns the codec of Graph's table, for a goka.View. Rows hold bearer tokens.
func TableCodec() goka.Codec { return deliveryrow.Table.Codec() }

// CircuitCodec returns the codec of RoutesGraph's table, for a goka.View.
func CircuitCodec() goka.Codec { return deliveryrow.CircuitTable.Codec() }

// Describe returns the deliveries of a session as text for operators: IDs, routes, sizes, deadlines and failures, but
// no bodies and no tokens. The row is a value of the table, as Processor.Get and a goka.View with TableCodec return
// it; nil is a session without a row.
func Describe(row any) (string, error) {
	s, err := deliveryrow.Table.Of(row)
	if err != nil {
		return "", err
	}
	return describe(s), nil
}

func describe(s *deliveryrow.State) string {
	if s == nil {
		return "no state\n"
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, d := range s.Open {
		describeDelivery(line, d)
	}
	for _, d := range s.Dead {
		describeDelivery(line, d)
	}
	for _, r := range s.Routes {
		line("route %s: expires %s", r.Id, at(r.ExpiresMs))
	}
	line("remembered: %d", len(s.Remembered)/machine.DigestSize)
	line("next deadline: %s", at(s.DeadlineMs))
	return b.String()
}

var phaseTexts = map[deliveryrow.Phase]string{
	deliveryrow.Phase_PHASE_ROUTE: "waits for its route until", deliveryrow.Phase_PHASE_PENDING: "is due",
	deliveryrow.Phase_PHASE_IN_FLIGHT: "waits for its receipt until", deliveryrow.Phase_PHASE_DEAD: "dead, kept until",
}

func describeDelivery(line func(string, ...any), d *deliveryrow.Delivery) {
	line("delivery %s to %s, %d bytes: attempt %d, %s %s", d.Id, routeOf(d).Key(), len(d.Body), d.Attempt, phaseTexts[d.Phase],
		at(d.DueMs))
	for _, f := range d.Failures {
		line("  attempt %d: %s", f.Attempt, f.Reason)
	}
}

// DescribeCircuit returns the state of a route at a time as text for operators. The row is a value of RoutesGraph's table, as
// Processor.Get and a goka.View with CircuitCodec return it; nil is a route without a row.
func DescribeCircuit(row any, now time.Time) (string, error) {
	c, err := deliveryrow.CircuitTable.Of(row)
	if err != nil {
		return "", err
	}
	gate := circuitGate(c, now)
	text := fmt.Sprintf("%s, %d in flight, %d failures in a row", circuitPhase(c, now), gate.InFlight, c.GetFailures())
	if c.GetReason() != "" {
		text += ", last: " + c.Reason
	}
	if circuitPhase(c, now) == CircuitOpen {
		text += ", until " + at(c.OpenUntilMs)
	}
	return text + "\n", nil
}

func at(ms int64) string {
	if ms == 0 {
		return "none"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}
