package fold

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turntable-streams/turntable/topics"
)

// Batch is a folded turn. Its first three fields are the contract's; the others are beyond it, and stand in the JSON of
// AppendRecord only. It shares nothing with the folder it came from that the folder still changes.
type Batch struct {
	// Messages are JSON objects with exactly the contract's keys, in order.
	Messages []topics.Raw
	// StopReason is nil for null. It can be any JSON value that a done event named.
	StopReason topics.Raw
	// PendingInteraction is the last interaction request of a turn that paused; nil for null.
	PendingInteraction topics.Raw

	// State is End.State, or else derived: failed after an error, cancelled if that is the stop reason, complete after a
	// done event or with a terminal stop reason, else open.
	State State
	// Pending are all requests that neither a response nor a tool result has answered, in order, each as
	// PendingInteraction would have it, paused or not.
	Pending []topics.Raw
	// Results are what the messages of tool results leave out, for those that have any of it, in order.
	Results []Result
	// Failed tells whether the turn had an error; Error is its text: End.Error, or that of the last error event.
	Failed bool
	Error  string
	// Usage is an object with those of input, output, total and cost that the last usage event had; nil for none.
	Usage topics.Raw
	// Malformed counts the events that were left out.
	Malformed int
}

// Result is what a tool result says beyond its message.
type Result struct {
	Message int        // its index in Batch.Messages
	Denied  bool       // the call was refused, not failed
	Data    topics.Raw // its structured result; nil for none
	Render  topics.Raw // how it wants to be shown; nil for none
}

// Batch is the fold of the events so far. The folder goes on unchanged. It fails with ErrStopReason if the terminal
// result's stop reason is neither string nor null, and with Strict if the turn is paused at a malformed request.
func (f *Folder) Batch(end End) (Batch, error) {
	stop, err := f.resolve(end.StopReason)
	if err != nil {
		return Batch{}, err
	}
	b := Batch{
		Messages: make([]topics.Raw, len(f.messages)), StopReason: stop, State: end.State,
		Failed: f.failed || end.Error != "", Error: end.Error, Usage: usageOf(f.usage), Malformed: f.malformed,
	}
	if b.PendingInteraction, err = f.pendingInteraction(stop); err != nil {
		return Batch{}, err
	}
	for i := range f.messages {
		b.Messages[i] = f.messages[i].encode()
		if r, ok := f.messages[i].result(i); ok {
			b.Results = append(b.Results, r)
		}
	}
	for i := range f.requests {
		if r := &f.requests[i]; !r.answered && (r.data == nil || isObject(r.data)) {
			b.Pending = append(b.Pending, r.pending())
		}
	}
	if b.Error == "" && f.failed {
		b.Error = textOf(f.failure)
	}
	if b.State == "" {
		b.State = b.derived(f.done || !isNull(trimSpace(end.StopReason)))
	}
	return b, nil
}

func (b *Batch) derived(ended bool) State {
	switch {
	case b.Failed:
		return Failed
	case isString(b.StopReason) && unquote(b.StopReason) == "cancelled":
		return Cancelled
	case ended:
		return Complete
	}
	return Open
}

// resolve is the turn's stop reason: the terminal result's, else that of the last done event.
func (f *Folder) resolve(terminal topics.Raw) (topics.Raw, error) {
	terminal = trimSpace(terminal)
	if isNull(terminal) {
		return f.StopReason(), nil
	}
	if !isString(terminal) || !utf8.Valid(terminal) || !valid(terminal) {
		return nil, ErrStopReason
	}
	stop, _ := mended(terminal)
	return bytes.Clone(stop), nil
}

func (f *Folder) pendingInteraction(stop topics.Raw) (topics.Raw, error) {
	if len(f.requests) == 0 || !isString(stop) || unquote(stop) != "paused" {
		return nil, nil
	}
	last := &f.requests[len(f.requests)-1]
	if last.data != nil && !isObject(last.data) {
		return nil, f.refuse("data is no object")
	}
	return last.pending(), nil
}

// AssistantText is the text that the assistant wrote so far, without separators: the strings among the contents of the
// assistant's messages. With Strict it fails where Batch(End{}) does.
func (f *Folder) AssistantText() (string, error) {
	if _, err := f.pendingInteraction(f.StopReason()); err != nil {
		return "", err
	}
	var text strings.Builder
	for i := range f.messages {
		if c := f.messages[i].content(); isString(c) {
			text.WriteString(unquote(c))
		}
	}
	return text.String(), nil
}

func textOf(v topics.Raw) string {
	if isString(v) {
		return unquote(v)
	}
	return string(v)
}

func usageOf(data topics.Raw) topics.Raw {
	var b []byte
	for _, name := range []string{"input", "output", "total", "cost"} {
		if v := lookup(data, name); !isNull(v) {
			b = append(strconv.AppendQuote(append(b, ','), name), ':')
			b = append(b, v...)
		}
	}
	if b == nil {
		return nil
	}
	b[0] = '{'
	return append(b, '}')
}
