package tools_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

const recordLimit = 1 << 20

// sized refuses records as Sarama does: by their size with headers.
func sized(r processors.Outbound) error {
	size := 36 + len(r.Key) + len(r.Value)
	for name, value := range r.Headers {
		size += len(name) + len(value) + 10
	}
	if size > recordLimit {
		return processors.ErrTooLarge
	}
	return nil
}

// A record of tool-use that just fits must not be redelivered without end because the record that its worker writes about it
// does not fit.
func TestRecordNearTheSizeLimitIsSettled(t *testing.T) {
	fill := func(r processors.Inbound, at string) processors.Inbound {
		room := recordLimit - 36 - len(r.Key) - len(r.Value) - len("turntable.id") - len(r.Headers[0].Value) - 10
		r.Value = []byte(strings.Replace(string(r.Value), at, at+strings.Repeat("i", room), 1))
		return r
	}
	longKey := call("t1", "berth", "{}")
	longKey.Key = []byte(strings.Repeat("k", recordLimit-400))
	for name, c := range map[string]struct {
		record processors.Inbound
		topic  string
		said   string // in the record's reason
	}{
		"long tool_id":           {fill(call("t1", "berth", "{}"), `"tool_id":"`), "pilot-tool-use-result", "too_large"},
		"unknown tool":           {fill(call("t1", "crane", "{}"), `"tool_id":"`), "pilot-tool-use-result", "too_large"},
		"long tool_use_id":       {fill(call("t1", "berth", "{}"), `"tool_use_id":"`), "pilot-tool-use-dlq", "tools: no result of the call fits into a record"},
		"long session":           {longKey, "pilot-tool-use-dlq", "tools: no result of the call fits into a record"},
		"call without an id":     {fill(call("", "berth", "{}"), `"tool_id":"`), "pilot-tool-use-dlq", "tools: call has no tool_use_id or no name"},
		"record that is no JSON": {fill(call("t1", "berth", "{"), `"tool_id":"`), "pilot-tool-use-dlq", "tools: record is not a tool call"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, map[string]tools.Func{"berth": returning("N4", nil)}, tools.Config{})
			b.paper.refuse = sized
			b.handle(c.record)
			require.Len(t, b.paper.records, 1)
			got := b.paper.records[0]
			require.Equal(t, c.topic, got.Topic)
			if strings.HasSuffix(c.topic, "-result") {
				require.Contains(t, string(got.Value), c.said)
				return
			}
			require.Equal(t, c.said, string(got.Headers[topics.HeaderErrorReason]))
			if len(c.record.Value) > recordLimit/2 {
				require.Contains(t, got.Headers, topics.HeaderErrorTruncated)
			}
		})
	}
}

func TestRecordThatNothingSettlesIsSkipped(t *testing.T) {
	b := newBench(t, map[string]tools.Func{"berth": returning("N4", nil)}, tools.Config{})
	b.paper.refuse = func(processors.Outbound) error { return processors.ErrTooLarge }
	b.handle(call("t1", "berth", "{}"))
	b.handle(call("", "berth", "{}"))
	require.Empty(t, b.paper.records)
}
