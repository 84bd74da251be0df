package tools

import (
	"bytes"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// The statuses of a result, and the reasons of error results.
const (
	success = "success"
	failure = "error"

	reasonFailed   = "tool_failed"
	reasonUnknown  = "unknown_tool"
	reasonTimeout  = "timeout"
	reasonInvalid  = "invalid_result"
	reasonTooLarge = "too_large"
)

// result is the outcome of a call.
type result struct {
	status string
	value  topics.Raw // an object
}

func failed(text, reason string) result {
	b, _ := jsontext.AppendQuote([]byte(`{"error":`), text) // invalid UTF-8 is replaced
	b, _ = jsontext.AppendQuote(append(b, `,"reason":`...), reason)
	return result{failure, append(b, '}')}
}

// errResult is wrapped by the error about a value that cannot be encoded as JSON.
var errResult = errors.New("tools: value is not valid JSON")

// resultOf encodes the return value of a tool as a JSON object.
func resultOf(value any) (result, error) {
	var raw []byte
	switch v := value.(type) {
	case topics.Raw:
		raw = bytes.Clone(v)
	case jsontext.Value:
		raw = bytes.Clone(v)
	default:
		var err error
		if raw, err = json.Marshal(v, json.Deterministic(true)); err != nil {
			return result{}, fmt.Errorf("%w: %T", errResult, value) // the error may quote the value
		}
	}
	text := jsontext.Value(raw)
	if len(raw) > 0 {
		err := text.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		if err != nil || !utf8.Valid(text) {
			return result{}, fmt.Errorf("%w: %T", errResult, value)
		}
	}
	if len(text) == 0 || text[0] == 'n' {
		return result{success, topics.Raw("{}")}, nil
	}
	return result{success, topics.WrapResult(topics.Raw(text))}, nil
}

// record encodes a result. It returns an error if the turn could not decode the record.
func (w *Worker) record(c Call, res result, took time.Duration) (processors.Outbound, error) {
	at := topics.Timestamp(w.rules.Clock.Now())
	id := ""
	if c.id != "" {
		id = c.id + resultSuffix
	}
	t := w.topics.ToolUseResult
	out, err := processors.OutboundOf(t, c.SessionID, topics.ToolUseResult{
		SessionID: &c.SessionID, ToolUseID: &c.ToolUseID, ToolID: c.toolID, Name: &c.Name, Result: res.value,
		LatencyMS: max(took.Milliseconds(), 0), Status: &res.status, TotalTools: c.total, Timestamp: &at,
	}, id)
	if err != nil {
		return out, err
	}
	return out, t.Codec().Unmarshal(out.Value).Err
}
