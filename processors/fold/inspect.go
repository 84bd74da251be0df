package fold

import (
	"fmt"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
)

// TableCodec returns the codec of Graph's table, for a goka.View.
func TableCodec() goka.Codec { return foldrow.Table.Codec() }

// Describe returns a readable description of a session's turns: ids, counts, sizes and deadlines, without any text of the
// turns. The row is a value of the table, as Processor.Get and a goka.View with TableCodec return
// it; nil is a session without a row.
func Describe(row any) (string, error) {
	r, err := foldrow.Table.Of(row)
	if err != nil {
		return "", err
	}
	return describe(r), nil
}

func describe(r *foldrow.Row) string {
	if r == nil {
		return "no state\n"
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, t := range r.Open {
		parts := uint32(0)
		for _, x := range t.Parts {
			parts += x.Count
		}
		line("turn %q, attempt %d: %d records, %d bytes in %d parts, last record %s", t.Id, t.Attempt, t.Seq,
			int(t.PartsSize)+len(t.Tail), parts, at(t.TouchedMs))
		if t.Stepped {
			line("  step %d, settled: %t, attempt %d shown, %d attempts and %d records kept", t.Step, t.Settled, t.Shown,
				len(t.Runs), len(t.Queue))
		}
		if len(t.Held) > 0 {
			line("  record %d is missing since %s, %d are held", t.Seq+1, at(t.GapMs), len(t.Held))
		}
		switch {
		case len(t.Gates) > 0:
			line("  waits for %d decisions, the last since %s", len(t.Gates), at(t.GatesMs))
		case t.Paused:
			line("  paused, waits for its runner to continue")
		}
		if t.Done {
			line("  done, waits for its terminal record")
		}
	}
	closed := uint32(0)
	for _, p := range r.Closed {
		closed += p.Count
	}
	line("remembered: %d", closed)
	line("next deadline: %s", at(r.DeadlineMs))
	return b.String()
}

func at(ms int64) string {
	if ms == 0 {
		return "none"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}
