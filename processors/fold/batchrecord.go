package fold

import (
	"strings"

	"github.com/turntable-streams/turntable/internal/clip"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// maxError bounds the text of a failure, which stands beside the batch.
	maxError = 4 << 10
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

func appendResults(dst []byte, results []Result) []byte {
	dst = append(dst, '[')
	for i, r := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.append(dst)
	}
	return append(dst, ']')
}

// clipped bounds foreign text.
func clipped(text string) string { return clip.Marked(strings.ToValidUTF8(text, "\ufffd"), maxError) }
