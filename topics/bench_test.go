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

// BenchmarkThinkResponseDecodeWithHistory is what decoding the history would cost.
func BenchmarkThinkResponseDecodeWithHistory(b *testing.B) {
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

// Records of the size that a turn without a history has.
const (
	smallMessage = `{"session_id":"load-000123","user_id":"mira","role":"user","content":"Which berth is free at ` +
		`18:00, and who asked for \"the long one\"?\nThe pilot wants to know.","timestamp":"2026-06-20T08:15:03.120Z",` +
		`"metadata":{"locale":"en-US","client":"web","request_id":"load-000123-1"}}`
	toolMessage = `{"session_id":"load-000123","user_id":"mira","role":"tool","content":[{"tool_use_id":"tu_1","name":` +
		`"berth_lookup","result":{"berth":"12","free":true}},{"tool_use_id":"tu_2","name":"pilot","result":` +
		`{"result":"aboard"}}],"timestamp":"2026-06-20T08:15:05.120Z","metadata":null}`
	smallResult = `{"session_id":"load-000123","tool_use_id":"tu_1","tool_id":"tu_1","name":"berth_lookup","result":` +
		`{"berth":"12","free":true,"until":"2026-06-21T06:00:00Z"},"latency_ms":12,"status":"success","total_tools":2,` +
		`"timestamp":"2026-06-20T08:15:05.410Z"}`
)

func benchmarkDecode[T any](b *testing.B, f wire[T], text string) {
	record, c := []byte(text), f.codec()
	b.ReportAllocs()
	for b.Loop() {
		if d := c.Unmarshal(record); d.Err != nil {
			b.Fatal(d.Err)
		}
	}
}

func benchmarkEncode[T any](b *testing.B, f wire[T], v T) {
	c := f.codec()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMessageDecode(b *testing.B)       { benchmarkDecode(b, messageWire, smallMessage) }
func BenchmarkToolUseResultDecode(b *testing.B) { benchmarkDecode(b, toolResultWire, smallResult) }

func BenchmarkDecodeMessage(b *testing.B) {
	message := Raw(smallMessage)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeMessage(message); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigestOf(b *testing.B) {
	sorted := `{"role":"tool","content":[{"name":"look","result":{"text":"Berth 12 is free."},"status":"success",` +
		`"tool_use_id":"a"},{"name":"look","result":{"text":"Berth 14 is free."},"status":"success","tool_use_id":"b"}]}`
	for name, record := range map[string]string{"text": smallMessage, "results": toolMessage, "sorted results": sorted} {
		m, err := DecodeMessage(Raw(record))
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				DigestOf(m)
			}
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	metadata := Raw(`{"locale":"en-US","client":"web","request_id":"load-000123-1"}`)
	b.ReportAllocs()
	for b.Loop() {
		Lookup(metadata, "request_id")
	}
}

func BenchmarkOutputEncode(b *testing.B) {
	benchmarkEncode(b, outputWire, Output{
		SessionID: ptr("load-000123"), UserID: ptr("mira"), Content: strings.Repeat("Berth 12 is free. ", 8),
		InputTokens: 311, OutputTokens: 58, Cost: ptr(0.0063), SourceAgent: "harbor",
		ReplyTo:   Raw(`{"callbackService":"harbor-web","route_id":"0123456789abcdef0123456789abcdef"}`),
		Timestamp: "2026-06-20T08:15:05.412Z", RequestID: ptr("load-000123-1"),
	})
}

func BenchmarkToolUseEncode(b *testing.B) {
	benchmarkEncode(b, toolUseWire, ToolUseItem{
		ToolUseID: ptr("tu_1"), ToolID: ptr("tu_1"), Name: ptr("berth_lookup"), Input: Raw(`{"at":"18:00"}`),
		SessionID: ptr("load-000123"), TotalTools: 2, Timestamp: ptr("2026-06-20T08:15:05.410Z"),
	})
}

func BenchmarkEnrichedMessageEncode(b *testing.B)      { benchmarkEnriched(b, 100<<10) }
func BenchmarkSmallEnrichedMessageEncode(b *testing.B) { benchmarkEnriched(b, 0) }

func benchmarkEnriched(b *testing.B, size int) {
	b.SetBytes(int64(size))
	benchmarkEncode(b, enrichedWire, EnrichedMessage{
		SessionID: ptr("harbor-s19"), UserID: ptr("mira"), Cost: ptr(0.0041), History: history(size),
		LatestInput: Raw(records(b, "message-input")[0]), Timestamp: ptr("2026-06-20T08:15:03.188Z"),
	})
}

func BenchmarkSplice(b *testing.B) {
	previous, input, response := history(100<<10), Raw(records(b, "message-input")[0]), history(1)
	b.SetBytes(int64(len(previous)))
	b.ReportAllocs()
	for b.Loop() {
		Splice(previous, input, response)
	}
}

func TestDecodingAHistoryDoesNotCopyIt(t *testing.T) {
	measure := func(size int) float64 {
		record, c := thinkRecord(t, size), thinkWire.codec()
		return testing.AllocsPerRun(20, func() { c.Unmarshal(record) })
	}
	// One allocation per message would be hundreds. A few depend on what the pools contain.
	require.InDelta(t, measure(0), measure(200<<10), 20)
}
