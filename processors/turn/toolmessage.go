package turn

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// copies are those of a result in a tool message, beside the one in the content.
type copies struct {
	text     bool // as text in the content, for the workers that need the second spelling of the record for the model
	metadata bool
}

// emitResults emits the completed step and its tool message, unless they exceed the record limit even with shortened
// results. It returns the tool message.
func (s *transition) emitResults(with copies) toolMessage {
	turn := s.row.Turn
	message := s.buildToolMessage(with)
	if s.excess(s.rules.limit(s.rules.accepted.input), with) <= 0 {
		s.emit(turn.Message.TurnId, turn.Step, s.completed(), 0)
		s.emit(turn.Message.TurnId, turn.Step, message, 0)
	}
	return message
}

func (s *session) completed() completed {
	turn := s.row.Turn
	c := completed{
		SessionID:     &s.key,
		UserID:        turn.UserId,
		ExpectedCount: int64(len(turn.Calls)),
		Results:       make([]topics.ToolUseResult, len(turn.Calls)),
		Expected:      make([]topics.ExpectedTool, len(turn.Calls)),
		DeadlineMS:    turn.DeadlineMs,
		Emitted:       true,
		Timestamp:     s.timestamp(),
	}
	for i, call := range turn.Calls {
		c.Results[i] = resultRecord(call.Result)
		c.Expected[i] = topics.ExpectedTool{ToolUseID: call.ToolUseId, Name: call.Name}
	}
	return c
}

// resultRecord converts a result to its topic's record type.
func resultRecord(r *turnrow.Result) topics.ToolUseResult {
	return topics.ToolUseResult{
		SessionID: r.SessionId, ToolUseID: r.ToolUseId, ToolID: r.ToolId, Name: r.Name, Result: r.Result,
		LatencyMS: r.LatencyMs, Status: r.Status, TotalTools: r.TotalTools, Timestamp: r.Timestamp,
	}
}

func (s *session) buildToolMessage(with copies) toolMessage {
	turn := s.row.Turn
	role := roleTool
	contentSize, metadataSize := sizesOf(turn.Calls, with.text)
	content := append(make([]byte, 0, envelope/2+contentSize), '[')
	metadata := append(make([]byte, 0, envelope/2+metadataSize), `{"tool_results":[`...)
	for i, c := range turn.Calls {
		if i > 0 {
			content, metadata = append(content, ','), append(metadata, ',')
		}
		content = appendEntry(content, c, with.text)
		r := resultRecord(c.Result)
		if !with.metadata {
			r.Result = nil // it is in the content
		}
		metadata = append(metadata, topics.EncodeToolResult(r)...)
	}
	metadata = append(metadata, `],"tool_count":`...)
	metadata = strconv.AppendInt(metadata, int64(len(turn.Calls)), 10)
	metadata = append(metadata, `,"source":"tool-execution"}`...)
	return toolMessage{
		SessionID: &s.key,
		UserID:    turn.UserId,
		Role:      &role,
		Content:   append(content, ']'),
		Timestamp: s.timestamp(),
		Metadata:  metadata,
	}
}

// appendEntry appends a call as the model sees it, with the id and the name that the model gave.
func appendEntry(b []byte, c *turnrow.Call, text bool) []byte {
	b = appendText(append(b, `{"tool_use_id":`...), c.ToolUseId)
	b = appendText(append(b, `,"name":`...), c.Name)
	b = appendResult(append(b, `,"result":`...), c.Result)
	b = appendText(append(b, `,"status":`...), c.Result.Status)
	if text {
		b = appendResultText(append(b, `,"content":`...), c.Result)
	}
	return append(b, '}')
}

// appendResultText appends a result as a JSON string that contains its JSON text. FlightDeck's Java worker gives the model
// the same text.
func appendResultText(b []byte, r *turnrow.Result) []byte {
	b, _ = jsontext.AppendQuote(b, appendResult(nil, r)) // invalid UTF-8 is replaced
	return b
}

// sortedContent returns the content of the tool message with the members of each entry sorted by name: the same JSON value,
// which digests then need not sort. size is the size of the content.
func (s *session) sortedContent(size int, text bool) topics.Raw {
	b := append(make([]byte, 0, size), '[')
	for i, c := range s.row.Turn.Calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		if text {
			b = append(appendResultText(append(b, `"content":`...), c.Result), ',')
		}
		b = appendText(append(b, `"name":`...), c.Name)
		b = appendResult(append(b, `,"result":`...), c.Result)
		b = appendText(append(b, `,"status":`...), c.Result.Status)
		b = append(appendText(append(b, `,"tool_use_id":`...), c.ToolUseId), '}')
	}
	return append(b, ']')
}

// fitResults makes the tool message fit into room bytes, and the completed step into a record. fits is false if it cannot.
//
// The tool message contains every result twice, in the content and in the metadata, and with text a third time. If that is
// too large, the copies in the metadata are omitted. If it is still too large, the largest results are replaced by too_large
// errors.
func (s *transition) fitResults(room int, text bool) (with copies, fits bool) {
	with = copies{text: text, metadata: true}
	if s.excess(room, with) <= 0 {
		return with, true
	}
	with.metadata = false
	if s.excess(room, with) > 0 {
		s.shortenResults(room, with)
	}
	return with, s.excess(room, with) <= 0
}

// excess returns by how many bytes the tool message or the completed step is too large; 0 or less if both fit.
func (s *session) excess(room int, with copies) int {
	return max(s.sizeOfToolMessage(with)-room, s.sizeOfCompleted()-s.rules.limit(s.rules.accepted.completed))
}

// shortenResults replaces the largest results by errors until the tool message fits into room bytes and the completed step
// into a record, or no more can be saved.
func (s *transition) shortenResults(room int, with copies) {
	message, completed := s.sizeOfToolMessage(with)-room, s.sizeOfCompleted()-s.rules.limit(s.rules.accepted.completed)
	calls := slices.Clone(s.row.Turn.Calls)
	slices.SortStableFunc(calls, func(a, b *turnrow.Call) int {
		return cmp.Compare(len(b.Result.Result), len(a.Result.Result))
	})
	for _, c := range calls {
		short := s.tooLargeResult(c, c.Result)
		gain := len(c.Result.Result) - len(short.Result)
		if message <= 0 && completed <= 0 || gain <= 0 {
			return
		}
		message -= gain
		if with.text {
			message -= sizeAsText(c.Result) - sizeAsText(short)
		}
		completed -= gain
		c.Result = short
	}
}

// tooLargeResult returns the error that replaces a result that does not fit.
func (s *session) tooLargeResult(c *turnrow.Call, r *turnrow.Result) *turnrow.Result {
	text := "the tool's result has " + strconv.Itoa(len(r.Result)) + " bytes, which is too large"
	short := s.synthesise(c.ToolUseId, c.Name, len(s.row.Turn.Calls), r.LatencyMs, text, "too_large")
	if c.Edited {
		short.Result = markEdited(short.Result)
	}
	return short
}

func (s *session) sizeOfToolMessage(with copies) int {
	turn := s.row.Turn
	content, results := sizesOf(turn.Calls, with.text)
	if !with.metadata {
		for _, c := range turn.Calls {
			results -= max(len(c.Result.Result)-len(`null`), 0)
		}
	}
	return envelope + s.keySize() + quoted(turn.UserId) + content + results
}

func (s *session) sizeOfCompleted() int {
	turn := s.row.Turn
	_, results := sizesOf(turn.Calls, false)
	return envelope + 2*s.keySize() + quoted(turn.UserId) + results + expectedSize(turn.Calls)
}

// sizesOf returns upper bounds of the sizes of a tool message's content and metadata.
func sizesOf(calls []*turnrow.Call, text bool) (content, metadata int) {
	const entry, result = 64, 224 // field names, punctuation, numbers
	for _, c := range calls {
		r := c.Result
		content += entry + quoted(c.ToolUseId) + quoted(c.Name) + quoted(r.Status) + len(r.Result)
		if text {
			content += sizeAsText(r)
		}
		metadata += result + quoted(r.SessionId) + quoted(r.ToolUseId) + quoted(r.ToolId) + quoted(r.Name) +
			quoted(r.Status) + quoted(r.Timestamp) + len(r.Result)
	}
	return content, metadata
}

// sizeAsText returns the size of the copy of a result as text in a tool message, at most.
func sizeAsText(r *turnrow.Result) int {
	return len(`,"content":`) + max(quotedBytes(topics.Raw(r.Result)), len(`"{}"`))
}

func expectedSize(calls []*turnrow.Call) int {
	size := 0
	for _, c := range calls {
		size += 32 + quoted(c.ToolUseId) + quoted(c.Name)
	}
	return size
}
