package fold

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

const (
	// maxError bounds the text of a failure, which stands beside the batch.
	maxError = 16 << 10
	// envelope bounds what stands around the big parts of a record: field names, numbers, the id header, its frame.
	envelope = 2 << 10
	// escaped is what a byte of text takes in JSON, at most.
	escaped = 6
)

// fits reports whether a batch fits into a record. It counts an upper bound of what it takes on the wire.
func (s *session) fits(b topics.BatchMessage) bool {
	size := envelope + escaped*(2*len(s.key)+len(b.TurnID)) + len(b.Messages) + len(b.StopReason) +
		len(b.PendingInteraction) + len(b.PendingInteractions) + len(b.ToolResults) + len(b.Usage)
	if b.Error != nil {
		size += escaped * len(*b.Error)
	}
	return size <= s.rules.RecordLimit
}

// array joins values into an array.
func array(values []jsontext.Value) topics.Raw {
	n := 2
	for _, v := range values {
		n += len(v) + 1
	}
	joined := append(make([]byte, 0, n), '[')
	for i, v := range values {
		if i > 0 {
			joined = append(joined, ',')
		}
		joined = append(joined, v...)
	}
	return append(joined, ']')
}

// list is array, but nil for none.
func list(values []jsontext.Value) topics.Raw {
	if len(values) == 0 {
		return nil
	}
	return array(values)
}

func resultsOf(results []Result) topics.Raw {
	values := make([]jsontext.Value, len(results))
	for i, r := range results {
		v := strconv.AppendInt([]byte(`{"message":`), int64(r.Message), 10)
		v = strconv.AppendBool(append(v, `,"denied":`...), r.Denied)
		v = appendValue(append(v, `,"data":`...), r.Data)
		v = appendValue(append(v, `,"render":`...), r.Render)
		values[i] = append(v, '}')
	}
	return list(values)
}

func appendValue(b []byte, v jsontext.Value) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	return append(b, v...)
}

// clip bounds foreign text.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= maxError {
		return text
	}
	cut := maxError
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
