package gate

import (
	"fmt"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
)

// Table is the table of Graph: a processors.Processor that runs it, or a goka.View.
type Table interface {
	Get(session string) (row any, err error)
}

// Inspect returns the open gates of a session, in the order in which they were opened. Its errors are those of the table
// and of Gates.
func Inspect(t Table, session string) ([]View, error) {
	row, err := t.Get(session)
	if err != nil {
		return nil, fmt.Errorf("gate: read the row of a session: %w", err)
	}
	s, err := gaterow.Table.Of(row)
	if err != nil {
		return nil, err
	}
	return gates(session, &gaterow.State{Open: s.GetOpen()}), nil
}

// TableCodec returns the codec of Graph's table, for a goka.View.
func TableCodec() goka.Codec { return gaterow.Table.Codec() }

// Describe returns the gates of a session as text for operators: IDs, tools, sizes, deadlines and outcomes, but no
// arguments, messages and answers. The row is a value of the table, as Processor.Get and a goka.View with TableCodec return
// it; nil is a session without a row.
func Describe(row any) (string, error) {
	s, err := gaterow.Table.Of(row)
	if err != nil {
		return "", err
	}
	return describe(s), nil
}

func describe(s *gaterow.State) string {
	if s == nil {
		return "no state\n"
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, g := range s.Open {
		line("gate %s: %s %q, %d bytes, expires %s%s", g.Id, g.Kind, g.Tool, len(g.Args), at(g.ExpiresMs), closing(g))
	}
	for _, g := range s.Closed {
		line("gate %s: %s %q, %s (%s) at %s", g.Id, g.Kind, g.Tool, g.Outcome.GetStatus(), g.Outcome.GetCause(),
			at(g.Outcome.GetAtMs()))
	}
	for _, h := range s.Early {
		line("early: for gate %s, %d bytes, expires %s", h.GateId, len(h.Value), at(h.ExpiresMs))
	}
	for _, a := range s.Grants {
		line("grant %s: %q, expires %s", a.Id, a.Tool, at(a.ExpiresMs))
	}
	line("remembered: %d", len(s.Remembered)/machine.DigestSize)
	line("next deadline: %s", at(s.DeadlineMs))
	return b.String()
}

func closing(g *gaterow.Gate) string {
	if g.Closing == "" {
		return ""
	}
	return fmt.Sprintf(", closing (%s)", g.Closing)
}

func at(ms int64) string {
	if ms == 0 {
		return "none"
	}
	return iso(ms)
}
