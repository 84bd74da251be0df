package host

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/topics"
)

// message is a message of JSON-RPC 2.0 that the host sends.
type message struct {
	JSONRPC string     `json:"jsonrpc"`
	ID      topics.Raw `json:"id,omitzero"`
	Method  string     `json:"method,omitzero"`
	Params  topics.Raw `json:"params,omitzero"`
	Result  topics.Raw `json:"result,omitzero"`
	Error   *rpcError  `json:"error,omitzero"`
}

// received is a message of an agent.
type received struct {
	ID     topics.Raw `json:"id"`
	Method string     `json:"method"`
	Params topics.Raw `json:"params"`
	Result topics.Raw `json:"result"`
	Error  topics.Raw `json:"error"`
}

// rpcError is an error of JSON-RPC. Its text is shortened: it is external.
type rpcError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string {
	return fmt.Sprintf("%s (code %d)", truncate.Marked(e.Message, 500), e.Code)
}

// The codes of errors.
const (
	codeInvalidRequest = -32600
	codeInvalidParams  = -32602
	codeNoMethod       = -32601
	codeInternal       = -32603
	codeCancelled      = -32800
	codeSignIn         = -32000
	codeNotPermitted   = -32001
	codeNoSuchResource = -32002
)

var errClosed = errors.New("the agent's process has ended")

// calls are the host's requests that an agent has not answered yet.
type calls struct {
	mu      sync.Mutex
	last    int64
	waiting map[int64]func(topics.Raw, error)
}

// add returns the ID of a new request. done is called once, by the goroutine that reads the agent's output, or never if there
// is no answer.
func (c *calls) add(done func(topics.Raw, error)) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.waiting[c.last] = done
	return c.last
}

// answer passes an answer to the request's function. It returns false if there is no such request.
func (c *calls) answer(m received) bool {
	id, ok := integer(m.ID)
	if !ok {
		return false
	}
	c.mu.Lock()
	done := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if done == nil {
		return false
	}
	done(m.Result, m.err())
	return true
}

func encoded(v any) topics.Raw {
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("host: encode: " + err.Error()) // the values are of this package
	}
	return raw
}

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

// paired replaces halves of surrogate pairs in the escapes of a JSON text by U+FFFD, in place. Agents that are written in
// JavaScript write such halves when they cut a text between the two. A record cannot hold them.
func paired(line []byte) []byte {
	for i := 0; i+1 < len(line); i++ {
		if line[i] != '\\' {
			continue
		}
		if first, ok := escaped(line[i:]); !ok {
			i++ // the escape of one character, such as \"
		} else if !utf16.IsSurrogate(first) {
			i += escapeSize - 1
		} else if second, ok := escaped(line[i+escapeSize:]); ok && utf16.DecodeRune(first, second) != '\uFFFD' {
			i += 2*escapeSize - 1
		} else {
			copy(line[i:], `\ufffd`)
			i += escapeSize - 1
		}
	}
	return line
}

const escapeSize = len(`\ufffd`)

// escaped is the unit of UTF-16 that an escape at the beginning of a text stands for.
func escaped(text []byte) (unit rune, ok bool) {
	if len(text) < escapeSize || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:escapeSize]), 16, 16)
	return rune(n), err == nil
}
