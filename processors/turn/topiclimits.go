package turn

import (
	"github.com/lovoo/goka"
)

// topicLimits are the sizes of the largest records that topics accept, in bytes; 0 means Config.RecordLimit.
type topicLimits struct {
	model, tool, completed, input, output, gate, event, compaction, memoir int
}

// limit returns the size of the largest record that may be sent to a topic. of is the topic's element of rules.accepted.
func (r *rules) limit(of int) int {
	if of == 0 {
		return r.RecordLimit
	}
	return min(of, r.RecordLimit)
}

// limited knows how large the records of topics may be. *processors.Context implements it.
type limited interface {
	MaxRecordBytes(to ...goka.Stream) int
}

// within lowers the rules for topics that accept less than Config.RecordLimit.
func (b *binding) within(r *rules, from limited) {
	if from.MaxRecordBytes() >= r.RecordLimit {
		return
	}
	of := func(topics ...goka.Stream) int { return from.MaxRecordBytes(topics...) }
	t := b.topics
	r.accepted = topicLimits{
		model: of(t.EnrichedMessageInput.Stream()), tool: of(t.ToolUse.Stream(), t.ToolUseDLQ.Stream()),
		completed: of(t.ToolUseAllComplete.Stream()), input: of(t.MessageInput.Stream()), output: of(t.MessageOutput.Stream()),
		gate: of(t.GateRequests.Stream()), event: of(t.AgentEvents.Stream()), compaction: of(t.CompactionRequest.Stream()),
		memoir: of(t.MemoirSessions.Stream(), t.SessionEnd.Stream()),
	}
	if r.Memoir != nil {
		r.accepted.model = min(r.accepted.model, of(t.MemoirLookups.Stream()))
	}
	table := of(goka.Stream(goka.GroupTable(t.Group())))
	r.RowLimit = min(r.RowLimit, table-table/16)
}
