package memoir

import (
	"maps"
	"sort"
	"strings"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// lookups passes steps for the model on. It changes no row.
type lookups struct {
	topics topics.Catalog
	config Config
}

// onLookup adds the user's memory to a step for the model and passes it on. A step is never lost because of a memory: it goes on
// without one if the row cannot be read, and with the first lines of one that does not fit into the record.
func (l *lookups) onLookup(c *processors.Context, in codec.Decoded[topics.EnrichedMessage]) error {
	if in.Tombstone() {
		return c.DeadLetter(reasonTombstone)
	}
	m := in.Value
	if m.SessionID == nil || processors.CheckSession(*m.SessionID) != nil {
		return c.DeadLetter(reasonNoSession)
	}
	state, err := memoirrow.Table.Of(c.Value())
	if err != nil {
		c.Logger().Error("the row of a user's memory cannot be read: a step goes to the model without the memory",
			zap.String("key", c.Key()), zap.Error(err))
	}
	headers := c.Headers()
	if id := c.CauseID(); string(headers[topics.HeaderID]) != id {
		headers = maps.Clone(headers)
		if headers == nil {
			headers = goka.Headers{}
		}
		headers[topics.HeaderID] = []byte(id)
	}
	memory := state.GetMemory()
	m.MemoirContext = nil
	if memory != "" {
		m.MemoirContext = &memory
		raw, err := l.topics.EnrichedMessageInput.Codec().Marshal(m)
		if err != nil {
			return err
		}
		if over := recordSize(*m.SessionID, raw, headers) - l.config.recordLimit(c); over > 0 {
			m.MemoirContext = l.shorter(memory, m.BothSpellings, over)
			c.Logger().Warn("a memory does not fit into the record of a step and was cut at a line",
				zap.String("key", c.Key()), zap.Int("bytes", len(memory)))
		}
	}
	return processors.Emit(c, l.topics.EnrichedMessageInput, *m.SessionID, m, headers)
}

// recordSize is at least the size of a record as the producer counts it.
func recordSize(key string, value []byte, headers goka.Headers) int {
	const record, header = 64, 16
	size := record + len(key) + len(value)
	for name, v := range headers {
		size += header + len(name) + len(v)
	}
	return size
}

// shorter returns the first lines of a memory such that a record is at least over bytes shorter with them, nil if there are none.
func (l *lookups) shorter(memory string, both bool, over int) *string {
	size := func(text *string) int {
		raw, err := l.topics.EnrichedMessageInput.Codec().Marshal(topics.EnrichedMessage{MemoirContext: text, BothSpellings: both})
		if err != nil {
			return 0
		}
		return len(raw)
	}
	full := size(&memory)
	lines := strings.SplitAfter(memory, "\n")
	ends := make([]int, len(lines)) // the length of the memory up to each line
	for i, line := range lines {
		ends[i] = len(line)
		if i > 0 {
			ends[i] += ends[i-1]
		}
	}
	n := sort.Search(len(lines), func(i int) bool {
		text := memory[:ends[i]]
		return full-size(&text) < over
	})
	if n == 0 {
		return nil
	}
	text := strings.TrimSuffix(memory[:ends[n-1]], "\n")
	return &text
}
