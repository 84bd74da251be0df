package main

import (
	"bytes"
	"strconv"
)

// This file reads and writes records as bytes without decoding them. Each field has a known position, because the fields of
// the wire format have a fixed order, and quotes inside JSON strings are always escaped.

// request has the large fields of a think-request as raw JSON. They alias the record.
type request struct{ history, latest []byte }

// headLength is the maximum length of the small fields before a record's large one.
const headLength = 2048

func readRequest(value []byte) (request, bool) {
	history, rest, ok := bigField(value, `"history":`, `,"latest_input":`)
	if !ok {
		return request{}, false
	}
	end := bytes.LastIndex(rest, []byte(`,"memoir_context":`))
	if end < 0 {
		return request{}, false
	}
	return request{history: history, latest: rest[:end]}, true
}

// bigField splits a record around its long field, from the first occurrence of its name to the last occurrence of the
// next field. It does not read the bytes between.
func bigField(value []byte, name, next string) (field, rest []byte, ok bool) {
	start := bytes.Index(value[:min(len(value), headLength)], []byte(name))
	end := bytes.LastIndex(value, []byte(next))
	if start < 0 || end < start+len(name) {
		return nil, nil, false
	}
	return value[start+len(name) : end], value[end+len(next):], true
}

// text returns the first JSON string with that name, which must not contain escapes. IDs and names contain none.
func text(value []byte, name string) ([]byte, bool) {
	at := bytes.Index(value, []byte(name))
	if at < 0 {
		return nil, false
	}
	value = value[at+len(name):]
	end := bytes.IndexByte(value, '"')
	if end < 0 {
		return nil, false
	}
	return value[:end], true
}

// arrayContents returns a JSON array without its brackets.
func arrayContents(array []byte) []byte { return array[1 : len(array)-1] }

// splice appends the elements of arrays, between brackets, to dst.
func splice(dst []byte, contents ...[]byte) []byte {
	dst = append(dst, '[')
	first := true
	for _, c := range contents {
		if len(c) == 0 {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, c...)
	}
	return append(dst, ']')
}

func appendMessage(dst []byte, s *session, content, now string) []byte {
	dst = append(dst, `{"session_id":"`...)
	dst = append(dst, s.name...)
	dst = append(dst, `","user_id":"`...)
	dst = append(dst, s.name...)
	dst = append(dst, `","role":"user","content":"`...)
	dst = append(dst, content...)
	dst = append(dst, `","timestamp":"`...)
	dst = append(dst, now...)
	return append(dst, `","metadata":{"locale":"en-US","client":"web"}}`...)
}

// appendModelMessage appends a message of the model; content is raw JSON.
func appendModelMessage(dst []byte, s *session, content []byte, now string) []byte {
	dst = append(dst, `{"session_id":"`...)
	dst = append(dst, s.name...)
	dst = append(dst, `","user_id":"`...)
	dst = append(dst, s.name...)
	dst = append(dst, `","role":"assistant","content":`...)
	dst = append(dst, content...)
	dst = append(dst, `,"timestamp":"`...)
	dst = append(dst, now...)
	return append(dst, `","metadata":null}`...)
}

// appendCallID appends the ID of a tool call of the open step: session, turn and number in the turn.
func appendCallID(dst []byte, s *session, call int) []byte {
	return strconv.AppendInt(appendCallPrefix(dst, s), int64(s.firstCall+call), 10)
}

func appendCallPrefix(dst []byte, s *session) []byte {
	dst = append(dst, s.name...)
	dst = append(dst, '.')
	dst = strconv.AppendInt(dst, int64(s.turn), 10)
	return append(dst, '.')
}

func appendBlocks(dst []byte, s *session, calls int) []byte {
	dst = append(dst, `[{"type":"text","text":"Let me look."}`...)
	for i := range calls {
		dst = append(dst, `,{"type":"tool_use","id":"`...)
		dst = appendCallID(dst, s, i)
		dst = append(dst, `","name":"berth_lookup","input":{"at":"18:00","harbour":"north"}}`...)
	}
	return append(dst, ']')
}

func appendToolUses(dst []byte, s *session, calls int, now string) []byte {
	dst = append(dst, '[')
	for i := range calls {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"tool_use_id":"`...)
		dst = appendCallID(dst, s, i)
		dst = append(dst, `","tool_id":"berth_lookup","name":"berth_lookup","input":{"at":"18:00","harbour":"north"},`...)
		dst = append(dst, `"session_id":"`...)
		dst = append(dst, s.name...)
		dst = append(dst, `","total_tools":`...)
		dst = strconv.AppendInt(dst, int64(calls), 10)
		dst = append(dst, `,"timestamp":"`...)
		dst = append(dst, now...)
		dst = append(dst, `"}`...)
	}
	return append(dst, ']')
}

// appendResult appends the result of a call, which contains the call's id, so that a misplaced result is detected.
func appendResult(dst []byte, s *session, id []byte, calls int, said, now string) []byte {
	dst = append(dst, `{"session_id":"`...)
	dst = append(dst, s.name...)
	dst = append(dst, `","tool_use_id":"`...)
	dst = append(dst, id...)
	dst = append(dst, `","tool_id":"berth_lookup","name":"berth_lookup","result":{"berth":"N4","call":"`...)
	dst = append(dst, id...)
	dst = append(dst, `","text":"`...)
	dst = append(dst, said...)
	dst = append(dst, `"},"latency_ms":212,`...)
	dst = append(dst, `"status":"success","total_tools":`...)
	dst = strconv.AppendInt(dst, int64(calls), 10)
	dst = append(dst, `,"timestamp":"`...)
	dst = append(dst, now...)
	return append(dst, `"}`...)
}

// response is a think-response to write.
type response struct {
	previous   [][]byte // elements, joined by splice
	latest     []byte
	said, uses []byte // an array's elements; an array, or nil
	end        bool
	compaction bool
}

func (r response) size() int {
	n := len(r.latest) + len(r.said) + len(r.uses) + 640
	for _, p := range r.previous {
		n += len(p) + 1
	}
	return n
}

func appendResponse(dst []byte, s *session, r response, now string) []byte {
	dst = append(dst, `{"session_id":"`...)
	dst = append(dst, s.name...)
	dst = append(dst, `","user_id":"`...)
	dst = append(dst, s.name...)
	dst = append(dst, `","total_session_cost":0.0063,"previous_session_cost":0.0041,"think_cost":0.0022,`...)
	dst = append(dst, `"think_input_tokens":311,"think_output_tokens":58,"previous_messages":`...)
	dst = splice(dst, r.previous...)
	dst = append(dst, `,"last_input_message":`...)
	dst = append(dst, r.latest...)
	dst = append(dst, `,"last_input_response":[`...)
	dst = append(dst, r.said...)
	dst = append(dst, `],"tool_uses":`...)
	if r.uses == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, r.uses...)
	}
	dst = append(dst, `,"end_turn":`...)
	dst = strconv.AppendBool(dst, r.end)
	dst = append(dst, `,"compaction":`...)
	dst = strconv.AppendBool(dst, r.compaction)
	dst = append(dst, `,"compaction_input_tokens":0,"compaction_output_tokens":0,"compaction_cost":0.0,"timestamp":"`...)
	dst = append(dst, now...)
	return append(dst, `"}`...)
}

// appendEntry appends an entry of a tool message: the result of a call.
func appendEntry(dst []byte, r toolResult) []byte {
	dst = append(dst, `{"tool_use_id":"`...)
	dst = append(dst, r.id...)
	dst = append(dst, `","name":"`...)
	dst = append(dst, r.name...)
	dst = append(dst, `","result":`...)
	dst = append(dst, r.result...)
	return append(dst, `,"status":"success"}`...)
}

// appendToolMessage appends a tool message. entries and results are the elements of its arrays.
func appendToolMessage(dst, session, entries, results []byte, total int, now string) []byte {
	dst = append(dst, `{"session_id":"`...)
	dst = append(dst, session...)
	dst = append(dst, `","user_id":"`...)
	dst = append(dst, session...)
	dst = append(dst, `","role":"tool","content":[`...)
	dst = append(dst, entries...)
	dst = append(dst, `],"timestamp":"`...)
	dst = append(dst, now...)
	dst = append(dst, `","metadata":{"tool_results":[`...)
	dst = append(dst, results...)
	dst = append(dst, `],"tool_count":`...)
	dst = strconv.AppendInt(dst, int64(total), 10)
	return append(dst, `,"source":"tool-execution"}}`...)
}
