package fold

import "github.com/go-json-experiment/json/jsontext"

// Batch is a folded turn. Its first three fields are the contract's; the others are not part of its JSON form.
type Batch struct {
	// Messages are JSON objects with exactly the contract's keys, in order.
	Messages []jsontext.Value
	// StopReason is nil for null. It can be any JSON value that a done event named.
	StopReason jsontext.Value
	// PendingInteraction is the last interaction request of a turn that paused; nil for null.
	PendingInteraction jsontext.Value

	// State is End.State, or else derived: failed after an error event, cancelled if that is the stop reason, complete
	// after a done event or a terminal stop reason, else open.
	State State
	// Pending are all requests that neither a response nor a tool result has answered, in order, each as
	// PendingInteraction would have it.
	Pending []jsontext.Value
	// Results are what the messages of tool results leave out, for those that have any of it, in order.
	Results []Result
	// Error is the text of the failure: End.Error, or that of the last error event.
	Error string
	// Usage is an object with those of input, output, total and cost that the last usage event had; nil for none.
	Usage jsontext.Value
	// Malformed counts the events that were left out.
	Malformed int
}

// Result is what a tool result says beyond its message.
type Result struct {
	Message int            // its index in Batch.Messages
	Denied  bool           // the call was refused, not failed
	Data    jsontext.Value // its structured result; nil for none
	Render  jsontext.Value // how it wants to be shown; nil for none
}

// AppendJSON appends the batch as fold gives it: messages, stop_reason and pending_interaction, nulls kept.
func (b Batch) AppendJSON(dst []byte) []byte { return dst }

// AppendEnvelope appends the batch as an agent answers with it: stop_reason and pending_interaction only where they are
// not null.
func (b Batch) AppendEnvelope(dst []byte) []byte { return dst }

// AppendRecord appends the batch with the fields beyond the contract after its three.
func (b Batch) AppendRecord(dst []byte) []byte { return dst }
