// Package bridge builds the events of a turn for packages that translate other event formats. Turn guarantees the order
// that fold expects: at most one open block, which a tool call closes, and one result per call. Each translation is a
// package of its own below this one, so that a program links only those it uses.
package bridge

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/topics"
)

// Turn collects the events of one turn. Values are JSON and are copied into the events unchanged; nil values are left out.
// The zero value is ready to use. It is not safe for concurrent use.
type Turn struct {
	events []fold.Event
	err    error
	blocks int
	open   *kind
	id     string
	calls  map[string]*call
}

type call struct {
	name, input topics.Raw
	settled     bool
}

// kind is a kind of block.
type kind struct{ prefix, start, delta, end string }

var (
	messageBlock = kind{"msg-", "message_start", "message_delta", "message_end"}
	thoughtBlock = kind{"reason-", "thought_start", "thought_delta", "thought_end"}
)

// Text adds a piece of the assistant's text, a JSON string, to the open message block. It opens one if necessary. An empty
// string and any other value are ignored.
func (t *Turn) Text(piece topics.Raw) { t.piece(&messageBlock, piece) }

// Thought adds a piece of the assistant's reasoning to the open thought block, as Text does to the message block.
func (t *Turn) Thought(piece topics.Raw) { t.piece(&thoughtBlock, piece) }

func (t *Turn) piece(k *kind, piece topics.Raw) {
	if jsontext.Value(piece).Kind() != '"' || len(piece) == len(`""`) {
		return
	}
	if t.open != k {
		t.Close()
		t.open, t.id = k, k.prefix+strconv.Itoa(t.blocks)
		t.blocks++
		t.Emit(k.start, Fields{}.Text("id", t.id))
	}
	t.Emit(k.delta, Fields{}.Text("id", t.id).Value("delta", piece))
}

// Close closes the open block, if there is one. Later text begins a new message.
func (t *Turn) Close() {
	if t.open != nil {
		t.Emit(t.open.end, Fields{}.Text("id", t.id))
		t.open = nil
	}
}

// Call adds a tool call and closes the open block. If the call exists, it updates the call's input and keeps its first
// name. An update is ignored if the input is empty (nil, null or {}) or unchanged, or if the call has a result.
func (t *Turn) Call(id string, name, input topics.Raw) {
	if c := t.calls[id]; c != nil {
		if c.settled || empty(input) || bytes.Equal(c.input, input) {
			return
		}
		name, c.input = c.name, bytes.Clone(input)
	} else {
		if t.calls == nil {
			t.calls = map[string]*call{}
		}
		t.calls[id] = &call{name: bytes.Clone(name), input: bytes.Clone(input)}
	}
	t.Close()
	t.Emit("tool_call", Fields{}.Text("id", id).Value("name", name).Value("input", input))
}

// Called reports whether a call with that id was added.
func (t *Turn) Called(id string) bool { return t.calls[id] != nil }

// Result adds the result of a call. Further results of the call are ignored. An output that is not a string becomes the
// text of its JSON, and is also added as the result's structured data.
func (t *Turn) Result(id string, output topics.Raw, isError bool) {
	if c := t.calls[id]; c != nil {
		if c.settled {
			return
		}
		c.settled = true
	}
	var data topics.Raw
	if k := jsontext.Value(output).Kind(); k != '"' && k != 'n' && len(output) > 0 {
		data, output = output, Text(string(output))
	}
	t.Emit("tool_result", Fields{}.Text("id", id).Value("output", output).Value("data", data).Flag("isError", isError))
}

// Usage adds the token counts and the cost of the turn so far.
func (t *Turn) Usage(input, output, total, cost topics.Raw) {
	f := Fields{}.Value("input", input).Value("output", output).Value("total", total).Value("cost", cost)
	if len(f) > 0 {
		t.Emit("usage", f)
	}
}

// Data adds an event that does not change a batch, such as a plan or a status.
func (t *Turn) Data(name string, data topics.Raw) {
	t.Emit("data", Fields{}.Text("name", name).Value("data", data))
}

// File adds a file that the assistant shows.
func (t *Turn) File(url, mediaType string) {
	t.Emit("file", Fields{}.Text("url", url).Text("mediaType", mediaType))
}

// Fail ends the turn with an error.
func (t *Turn) Fail(message string) {
	t.Close()
	t.Emit("error", Fields{}.Text("message", message))
	t.Emit("done", nil)
}

// Done ends the turn, with a stop reason if it is not empty.
func (t *Turn) Done(stopReason string) {
	t.Close()
	var f Fields
	if stopReason != "" {
		f = f.Text("stopReason", stopReason)
	}
	t.Emit("done", f)
}

// Emit adds an event of any type.
func (t *Turn) Emit(kind string, fields Fields) {
	data := append(Fields{}.Text("type", kind), fields...)
	e, err := fold.NewEvent(kind, data.Object())
	if err != nil && t.err == nil {
		t.err = err
	}
	if err == nil {
		t.events = append(t.events, e)
	}
}

// Take returns the events since the last Take. The caller owns the slice. An event that is invalid (it nests deeper
// than fold.MaxDepth) is missing, and the error says so.
func (t *Turn) Take() ([]fold.Event, error) {
	events, err := t.events, t.err
	t.events, t.err = nil, nil
	return events, err
}

func empty(v topics.Raw) bool {
	v = bytes.TrimSpace(v)
	return len(v) == 0 || v[0] == 'n' || v[0] == '{' && len(bytes.TrimSpace(v[1:len(v)-1])) == 0
}
