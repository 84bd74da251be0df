package fold

import (
	"strings"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// maxError is the maximum size of a batch's error text, in bytes.
	maxError = 4 << 10
	// envelope is an upper bound of a record's size without its large fields: names, numbers, headers, framing.
	envelope = 2 << 10
	// escaped is the maximum size of one byte of text in JSON.
	escaped = 6
)

// fits reports whether a batch fits into a record, by an upper bound of the record's size.
func (s *transition) fits(b topics.BatchMessage) bool {
	size := envelope + escaped*(2*len(s.key)+len(b.TurnID)) + len(b.Messages) + len(b.StopReason) +
		len(b.PendingInteraction) + len(b.PendingInteractions) + len(b.ToolResults) + len(b.Usage)
	if b.Error != nil {
		size += escaped * len(*b.Error)
	}
	return size <= s.config.RecordLimit
}

// clipped limits an error text to maxError.
func clipped(text string) string {
	return truncate.Marked(strings.ToValidUTF8(text, "\ufffd"), maxError)
}
