package latency

import (
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/latencyrow"
)

// rowFormat is the format of the row with the latencies of a tool.
var rowFormat = rows.Table[*latencyrow.ToolLatencies]{Name: "latency", Version: latencyrow.Version, Loaded: func(row *latencyrow.ToolLatencies) error {
	_, err := binsOf(row)
	return err
}}
