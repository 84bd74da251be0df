package host

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json"

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
	waiting map[int64]func(topics.Raw, error) // nil after close
}

// add returns the ID of a new request. done is called once, by the goroutine that reads the agent's output, or never if there
// is no answer.
func (c *calls) add(done func(topics.Raw, error)) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[int64]func(topics.Raw, error){}
	}
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
