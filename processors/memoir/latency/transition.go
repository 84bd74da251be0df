package latency

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/latencyrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// measurement is a record of tool-use-latency.
type measurement struct {
	*machine.Record
	Latency topics.ToolLatency
}

// outcome is what a record, or a deadline, changes.
type outcome = machine.Outcome[*latencyrow.ToolLatencies]

// The reasons of dead letters, in their error.reason header.
const (
	reasonTombstone = "latency: tombstone"
	reasonTool      = "latency: its tool_name is not its key"
	reasonLongName  = "latency: the name of its tool is empty or too long"
	reasonNegative  = "latency: it is negative"
	reasonBroken    = "latency: the row cannot be decoded"
)

const (
	statusError = "error"
	// maxName is the length of a tool's name in bytes. A model can invent names.
	maxName = 256
)

// apply adds a record to the row of its tool, nil if it has none. A nil record is the row's deadline. It does not modify
// row.
func apply(row *latencyrow.ToolLatencies, tool string, r *measurement, now time.Time, config *Config) outcome {
	if r == nil {
		return expire(row, now, config)
	}
	switch v := r.Latency; {
	case r.Tombstone():
		return rejected(reasonTombstone)
	case tool == "" || len(tool) > maxName:
		return rejected(reasonLongName)
	case v.ToolName != nil && *v.ToolName != tool:
		return rejected(reasonTool)
	case v.LatencyMS < 0:
		return rejected(reasonNegative)
	case config.window().Has(row.GetSeen(), r.ID, now):
		return outcome{}
	}
	next := &latencyrow.ToolLatencies{}
	if row != nil {
		next = proto.CloneOf(row)
	}
	if err := measureTools(next, r.Latency.LatencyMS); err != nil {
		return rejected(reasonBroken)
	}
	next.Version = latencyrow.Version
	if r.Latency.Status == statusError {
		next.Errors++
	}
	next.Seen, next.AddedMs = config.window().Add(next.Seen, r.ID, now), now.UnixMilli()
	if next.DeadlineMs == 0 {
		next.DeadlineMs = config.deadline(next)
	}
	return outcome{Row: next, Changed: true}
}

func rejected(reason string) outcome {
	var es machine.Effects
	es.DeadLetter(reason)
	return outcome{Effects: es.List()}
}

// measureTools adds a latency.
func measureTools(t *latencyrow.ToolLatencies, ms int64) error {
	bins, err := binsOf(t)
	if err != nil {
		return err
	}
	ms = min(ms, Longest.Milliseconds())
	t.Count++
	t.SumMs, t.MaxMs = addLimited(t.SumMs, ms), max(t.MaxMs, ms)
	if ms == 0 {
		t.Zeros++
		return nil
	}
	putBins(t, addBin(bins, int32(indexes.Index(float64(ms))), 1))
	return nil
}

// deadline returns when the IDs of a row are forgotten, or the row is removed. It is set once, not with each record: if records
// were added after it was set, the deadline moves when it comes.
func (c *Config) deadline(row *latencyrow.ToolLatencies) int64 {
	after := c.Expiry
	if row.Seen != nil {
		after = min(after, c.RememberFor+time.Second)
	}
	return time.UnixMilli(row.AddedMs).Add(after).UnixMilli()
}

// expire returns the row at its deadline: without IDs if the last one is old enough, and without the row if its tool had no
// call for long enough.
func expire(row *latencyrow.ToolLatencies, now time.Time, config *Config) outcome {
	if row == nil {
		return outcome{}
	}
	if !time.UnixMilli(row.AddedMs).Add(config.Expiry).After(now) {
		return outcome{Changed: true}
	}
	next := proto.CloneOf(row)
	next.Seen = config.window().Prune(next.Seen, now)
	if next.DeadlineMs = config.deadline(next); next.DeadlineMs <= now.UnixMilli() {
		// An ID that was added while the clock was ahead outlasts the last one that was added. It waits another window: an
		// earlier deadline would be due at each tick until then.
		removed := time.UnixMilli(row.AddedMs).Add(config.Expiry)
		forgotten := now.Add(config.RememberFor + time.Second)
		next.DeadlineMs = max(min(removed.UnixMilli(), forgotten.UnixMilli()), now.UnixMilli()+1)
	}
	return outcome{Row: next, Changed: true}
}
