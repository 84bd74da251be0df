package folder

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// AppendJSON appends an object with messages, stop_reason and pending_interaction, which may be null.
func (b Batch) AppendJSON(dst []byte) []byte { return append(b.appendThree(append(dst, '{')), '}') }

func (b Batch) appendThree(dst []byte) []byte {
	dst = AppendMessages(append(dst, `"messages":`...), b.Messages)
	dst = append(append(dst, `,"stop_reason":`...), orNull(b.StopReason)...)
	return append(append(dst, `,"pending_interaction":`...), orNull(b.PendingInteraction)...)
}

// AppendEnvelope appends the batch in the form of an HTTP response: as AppendJSON, without members that are null.
func (b Batch) AppendEnvelope(dst []byte) []byte {
	dst = AppendMessages(append(dst, `{"messages":`...), b.Messages)
	if !isNull(b.StopReason) {
		dst = append(append(dst, `,"stop_reason":`...), b.StopReason...)
	}
	if !isNull(b.PendingInteraction) {
		dst = append(append(dst, `,"pending_interaction":`...), b.PendingInteraction...)
	}
	return append(dst, '}')
}

// AppendRecord appends an object with the members of AppendJSON, then state, pending_interactions, tool_results, error,
// usage and malformed_events. All of them are always present.
func (b Batch) AppendRecord(dst []byte) []byte {
	return append(b.AppendRecordFields(append(dst, '{')), '}')
}

// AppendRecordFields appends the members of AppendRecord without braces, for a record with additional members.
func (b Batch) AppendRecordFields(dst []byte) []byte {
	dst = b.appendThree(dst)
	dst = append(append(dst, `,"state":"`...), b.State...)
	dst = AppendMessages(append(dst, `","pending_interactions":`...), b.Pending)
	dst = AppendResults(append(dst, `,"tool_results":`...), b.Results)
	dst = append(dst, `,"error":`...)
	if b.Failed {
		dst, _ = jsontext.AppendQuote(dst, b.Error)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(append(dst, `,"usage":`...), orNull(b.Usage)...)
	return strconv.AppendInt(append(dst, `,"malformed_events":`...), int64(b.Malformed), 10)
}

func (r Result) append(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"message":`...), int64(r.Message), 10)
	dst = strconv.AppendBool(append(dst, `,"denied":`...), r.Denied)
	dst = append(append(dst, `,"data":`...), orNull(r.Data)...)
	return append(append(append(dst, `,"render":`...), orNull(r.Render)...), '}')
}

// AppendMessages appends the messages as a JSON array.
func AppendMessages(dst []byte, messages []topics.Raw) []byte {
	dst = append(dst, '[')
	for i, m := range messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m...)
	}
	return append(dst, ']')
}

// AppendResults appends the results as a JSON array, in the form of the member tool_results of AppendRecord.
func AppendResults(dst []byte, results []Result) []byte {
	dst = append(dst, '[')
	for i, r := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.append(dst)
	}
	return append(dst, ']')
}
