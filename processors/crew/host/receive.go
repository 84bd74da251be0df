package host

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/topics"
)

// receive decodes a line of an agent. It returns an error for a line that is no message of JSON-RPC. What can be read of such a
// line is returned too, because the other side of the request waits for an answer.
func receive(line []byte) (m received, err error) {
	if err = json.Unmarshal(line, &m); err == nil {
		return m, nil
	}
	m = received{}
	if err = json.Unmarshal(paired(line), &m); err == nil {
		return m, nil
	}
	var members map[string]topics.Raw
	if json.Unmarshal(line, &members, jsontext.AllowDuplicateNames(true)) != nil {
		return received{}, err
	}
	m = received{ID: members["id"], Result: members["result"], Error: members["error"]}
	if len(m.ID) > 0 && (m.ID[0] == '{' || m.ID[0] == '[') {
		m.ID = nil // what cannot be sent back
	}
	if method := members["method"]; len(method) > 0 && string(method) != "null" {
		m.Method = "invalid"
	}
	return m, err
}

// err is the error in an answer, nil if there is none. Agents also send errors in other shapes than that of JSON-RPC. The error
// wraps an rpcError if its code is a number.
func (m received) err() error {
	if len(m.Error) == 0 || string(m.Error) == "null" {
		return nil
	}
	if text, ok := textOf(m.Error); ok {
		return errors.New(truncate.Marked(text, 500))
	}
	var members map[string]topics.Raw
	if json.Unmarshal(m.Error, &members, jsontext.AllowDuplicateNames(true)) != nil {
		return errors.New(truncate.Marked(string(m.Error), 500))
	}
	text, ok := textOf(members["message"])
	if !ok || text == "" {
		text = "the agent gave no message"
	}
	code, ok := integer(members["code"])
	if !ok {
		return fmt.Errorf("%s (code %s)", truncate.Marked(text, 500), truncate.Marked(string(members["code"]), 100))
	}
	return &rpcError{Code: code, Message: text}
}

// integer is a whole number, which agents also write as a text or with a fraction of zero.
func integer(raw topics.Raw) (n int64, ok bool) {
	text, ok := textOf(raw)
	if !ok {
		text = string(raw)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53
}

// textOf is a JSON string.
func textOf(raw topics.Raw) (text string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}
