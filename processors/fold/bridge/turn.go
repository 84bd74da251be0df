// Package bridge translates other event formats into the events of a turn: Anthropic those of Anthropic's Messages API, Think
// think-responses, and package acp, which needs an SDK, the updates of the Agent Client Protocol. They build on Turn, which
// guarantees the order that fold expects: at most one open block, which a tool call closes, and one result per call.
package bridge

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// Turn collects the events of one turn. Values are JSON and are copied into the events unchanged; nil values are left out.
// The zero value is ready to use. It is not safe for concurrent use.
type Turn struct {
	events []folder.Event
	err    error
	blocks int
	open   *kind
	id     string
	calls  map[string][]*Call // by the caller's ID, in their order
	ids    map[string]bool    // of events
}

// Call is a tool call of a turn.
type Call struct {
	id          string // in the events
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

// Call adds a tool call and closes the open block. If the call exists, it updates the call's input and keeps its first name.
func (t *Turn) Call(id string, name, input topics.Raw) {
	if all := t.calls[id]; len(all) > 0 {
		t.Update(all[len(all)-1], input)
		return
	}
	t.Begin(id, name, input)
}

// Begin adds a tool call and closes the open block. If an earlier call of the turn has the same ID, as with models that
// number their calls from the start in every step, the events of this one have an ID of their own.
func (t *Turn) Begin(id string, name, input topics.Raw) *Call {
	if t.calls == nil {
		t.calls, t.ids = map[string][]*Call{}, map[string]bool{}
	}
	c := &Call{id: id, name: bytes.Clone(name), input: bytes.Clone(input)}
	for n := 2; t.ids[c.id]; n++ {
		c.id = id + "-" + strconv.Itoa(n)
	}
	t.ids[c.id] = true
	t.calls[id] = append(t.calls[id], c)
	t.announce(c)
	return c
}

// Update replaces the input of a call, and closes the open block. It is ignored if the input is empty (nil, null or {}) or
// unchanged, or if the call has a result.
func (t *Turn) Update(c *Call, input topics.Raw) {
	if c.settled || empty(input) || bytes.Equal(c.input, input) {
		return
	}
	c.input = bytes.Clone(input)
	t.announce(c)
}

func (t *Turn) announce(c *Call) {
	t.Close()
	t.Emit("tool_call", Fields{}.Text("id", c.id).Value("name", c.name).Value("input", c.input))
}

// Calls returns the number of calls with that ID.
func (t *Turn) Calls(id string) int { return len(t.calls[id]) }

// Open returns the oldest call with that ID that has no result; nil if there is none.
func (t *Turn) Open(id string) *Call {
	for _, c := range t.calls[id] {
		if !c.settled {
			return c
		}
	}
	return nil
}

// EventID returns the ID that the events of the newest call with that ID have.
func (t *Turn) EventID(id string) string {
	if all := t.calls[id]; len(all) > 0 {
		return all[len(all)-1].id
	}
	return id
}

// Result adds the result of the oldest call with that ID that has none. It is ignored if all of them have one. An output
// that is not a string becomes the text of its JSON, and is also added as the result's structured data.
func (t *Turn) Result(id string, output topics.Raw, isError bool) {
	if c := t.Open(id); c != nil {
		c.settled, id = true, c.id
	} else if t.Calls(id) > 0 {
		return
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
	e, err := folder.NewEvent(kind, data.Object())
	if err != nil && t.err == nil {
		t.err = err
	}
	if err == nil {
		t.events = append(t.events, e)
	}
}

// Take returns the events since the last Take. The caller owns the slice. An event that is invalid (it nests deeper
// than folder.MaxDepth) is missing, and the error says so.
func (t *Turn) Take() ([]folder.Event, error) {
	events, err := t.events, t.err
	t.events, t.err = nil, nil
	return events, err
}

func empty(v topics.Raw) bool {
	v = bytes.TrimSpace(v)
	return len(v) == 0 || v[0] == 'n' || v[0] == '{' && len(bytes.TrimSpace(v[1:len(v)-1])) == 0
}
