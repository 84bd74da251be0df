package memoir_test

import (
	"strings"
	"testing"

	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// A step of 100 kB for a user with a memory of 8 KiB passes the group, without a broker.
func BenchmarkLookup(b *testing.B) {
	r := newRig(b, memoir.Config{})
	r.memories.Pipe("mira", strings.Repeat("likes tea\n", 800), headers("e", topics.HeaderMemoirVersion, topics.MemoirEdit))
	message := `{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}`
	history := strings.TrimSuffix(strings.Repeat(message+",", 100), ",")
	raw := []byte(strings.Replace(step, `"history":[`, `"history":[`+history+`,`, 1) + "}")
	id := processortest.RecordOption(headers("turn/s/enriched/0"))
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		r.lookups.PipeRaw("mira", raw, id)
		r.steps.Next()
	}
}
