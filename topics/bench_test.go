package topics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// history is an array of messages of about so many bytes.
func history(size int) Raw {
	var w writer
	w.b = append(w.b, '[')
	for i := 0; len(w.b) < size; i++ {
		role := "user"
		text := fmt.Sprintf("Message %d asks \"which berth\" is free.\n%s", i, strings.Repeat("Näheres folgt. ", 20))
		if i%2 == 1 {
			role = "assistant"
		}
		writeMessage(&w, Message{
			SessionID: ptr("harbor-s19"), UserID: ptr("mira"), Role: &role, Content: appendText(nil, text),
			Timestamp: ptr("2026-06-20T08:14:50Z"), Metadata: Raw(`{"locale":"en-US","client":"web"}`),
		})
	}
	return append(w.b, ']')
}

func thinkRecord(tb testing.TB, size int) []byte {
	d := thinkWire.codec().Unmarshal(records(tb, "think-request-response")[0])
	require.NoError(tb, d.Err)
	d.Value.PreviousMessages = history(size)
	record, err := thinkWire.Marshal(d.Value)
	require.NoError(tb, err)
	return record
}

// BenchmarkThinkResponseDecode shows that a history costs one scan and no memory: the allocations are those of the
// other fields, whatever its size.
func BenchmarkThinkResponseDecode(b *testing.B) {
	for _, size := range []int{0, 100 << 10, 1 << 20} {
		record := thinkRecord(b, size)
		c := thinkWire.codec()
		b.Run(fmt.Sprintf("history=%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(record)))
			b.ReportAllocs()
			for b.Loop() {
				if d := c.Unmarshal(record); d.Err != nil {
					b.Fatal(d.Err)
				}
			}
		})
	}
}

// BenchmarkThinkResponseDecodeWhole is what decoding the history would cost.
func BenchmarkThinkResponseDecodeWhole(b *testing.B) {
	record := thinkRecord(b, 100<<10)
	b.SetBytes(int64(len(record)))
	b.ReportAllocs()
	for b.Loop() {
		var v any
		if err := json.Unmarshal(record, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEnrichedMessageEncode(b *testing.B) {
	m := EnrichedMessage{
		SessionID: ptr("harbor-s19"), UserID: ptr("mira"), Cost: ptr(0.0041), History: history(100 << 10),
		LatestInput: Raw(records(b, "message-input")[0]), Timestamp: ptr("2026-06-20T08:15:03.188Z"),
	}
	c := enrichedWire.codec()
	b.SetBytes(int64(len(m.History)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Marshal(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSplice(b *testing.B) {
	previous, input, response := history(100<<10), Raw(records(b, "message-input")[0]), history(1)
	b.SetBytes(int64(len(previous)))
	b.ReportAllocs()
	for b.Loop() {
		Splice(previous, input, response)
	}
}

func TestDecodingAHistoryTakesNoMemory(t *testing.T) {
	measure := func(size int) float64 {
		record, c := thinkRecord(t, size), thinkWire.codec()
		return testing.AllocsPerRun(20, func() { c.Unmarshal(record) })
	}
	require.InDelta(t, measure(0), measure(200<<10), 1)
}
