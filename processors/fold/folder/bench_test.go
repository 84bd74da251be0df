package folder

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// deltas is a turn of one block, as the live path has it.
func deltas(n int, text string) []topics.Raw {
	events := []topics.Raw{topics.Raw(`{"type":"message_start","data":{"type":"message_start","id":"msg-0"}}`)}
	for range n {
		events = append(events, fmt.Appendf(nil,
			`{"type": "message_delta", "data": {"type": "message_delta", "id": "msg-0", "delta": %q}}`, text))
	}
	return append(events, topics.Raw(`{"type":"message_end","data":{"type":"message_end","id":"msg-0"}}`),
		topics.Raw(`{"type":"done","data":{"type":"done"}}`))
}

func rate(b *testing.B, events int) {
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(events)/float64(b.N), "ns/event")
}

// BenchmarkFoldDeltas decodes and folds a turn of 10,000 deltas from the bytes of its events.
func BenchmarkFoldDeltas(b *testing.B) {
	raws := deltas(10_000, " token")
	b.ReportAllocs()
	for b.Loop() {
		f := NewFolder()
		for _, raw := range raws {
			e, err := DecodeEvent(raw)
			if err != nil {
				b.Fatal(err)
			}
			if err := f.Add(e); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := f.Batch(End{}); err != nil {
			b.Fatal(err)
		}
	}
	rate(b, len(raws))
}

// BenchmarkFoldArray folds the same turn from one JSON array.
func BenchmarkFoldArray(b *testing.B) {
	raws := deltas(10_000, " token")
	array := AppendMessages(nil, raws)
	b.ReportAllocs()
	b.SetBytes(int64(len(array)))
	for b.Loop() {
		if _, err := FoldJSON(array, nil); err != nil {
			b.Fatal(err)
		}
	}
	rate(b, len(raws))
}

// BenchmarkFoldTools folds calls, refreshes and results.
func BenchmarkFoldTools(b *testing.B) {
	var raws []topics.Raw
	for i := range 1000 {
		id := strconv.Itoa(i)
		raws = append(raws,
			topics.Raw(`{"type":"tool_call","data":{"type":"tool_call","id":"t`+id+`","name":"search","input":{}}}`),
			topics.Raw(`{"type":"tool_call","data":{"type":"tool_call","id":"t`+id+`","name":"search",`+
				`"input":{"q":"x"}}}`),
			topics.Raw(`{"type":"tool_result","data":{"type":"tool_result","id":"t`+id+`","output":"found"}}`))
	}
	b.ReportAllocs()
	for b.Loop() {
		f := NewFolder()
		for _, raw := range raws {
			e, _ := DecodeEvent(raw)
			_ = f.Add(e)
		}
		if _, err := f.Batch(End{}); err != nil {
			b.Fatal(err)
		}
	}
	rate(b, len(raws))
}

// BenchmarkLogAppend stores a turn as logs of up to 512 bytes, as the group table does.
func BenchmarkLogAppend(b *testing.B) {
	var events []Event
	for _, raw := range deltas(10_000, " token") {
		e, _ := DecodeEvent(raw)
		events = append(events, e)
	}
	stored := 0
	b.ReportAllocs()
	for b.Loop() {
		stored = 0
		var tail Log
		for _, e := range events {
			if tail = tail.Append(e); len(tail) > 512 {
				stored += len(tail)
				tail = nil
			}
		}
		stored += len(tail)
	}
	rate(b, len(events))
	b.ReportMetric(float64(stored)/(10_000*float64(len(" token"))), "stored/text")
}

// BenchmarkMemory folds a turn of 10 MB of text and reports the live memory as a multiple of its text: while folding, with
// the batch, and with the encoded batch.
func BenchmarkMemory(b *testing.B) {
	const size = 10 << 20
	text := strings.Repeat("0123456789abcdef", 64)
	delta, err := DecodeEvent(deltas(1, text)[1])
	require.NoError(b, err)
	start, err := DecodeEvent(deltas(1, text)[0])
	require.NoError(b, err)
	var folding, batched, encoded float64
	b.ReportAllocs()
	for b.Loop() {
		before := alive()
		f := NewFolder()
		_ = f.Add(start)
		for range size / len(text) {
			_ = f.Add(delta)
		}
		folding = (alive() - before) / size
		batch, err := f.Batch(End{})
		if err != nil {
			b.Fatal(err)
		}
		batched = (alive() - before) / size
		body := batch.AppendJSON(make([]byte, 0, size+size/8))
		encoded = (alive() - before) / size
		runtime.KeepAlive(body)
		runtime.KeepAlive(batch)
		runtime.KeepAlive(f)
	}
	b.ReportMetric(folding, "folding/text")
	b.ReportMetric(batched, "batched/text")
	b.ReportMetric(encoded, "encoded/text")
}

func alive() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func TestDeltasCostNoAllocations(t *testing.T) {
	raws := deltas(10_000, " token")
	got := testing.AllocsPerRun(5, func() {
		f := NewFolder()
		for _, raw := range raws {
			e, _ := DecodeEvent(raw)
			_ = f.Add(e)
		}
	})
	require.Less(t, got, 100.0)
}

func TestMemoryOfALongTurnIsWithinThreeTimesItsText(t *testing.T) {
	const size = 10 << 20
	text := bytes.Repeat([]byte("0123456789abcdef"), 64)
	e, err := DecodeEvent(deltas(1, string(text))[1])
	require.NoError(t, err)
	start, err := DecodeEvent(deltas(1, "")[0])
	require.NoError(t, err)

	before := alive()
	f := NewFolder()
	require.NoError(t, f.Add(start))
	for range size / len(text) {
		require.NoError(t, f.Add(e))
	}
	b, err := f.Batch(End{})
	require.NoError(t, err)
	require.Less(t, alive()-before, 3.0*size)
	require.Len(t, b.Messages[0], size+len(`{"role":"assistant","content":""}`))
	runtime.KeepAlive(f)
}
