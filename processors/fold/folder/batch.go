package folder

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turntable-streams/turntable/topics"
)

// Batch is a folded turn. Every encoding has the first three fields; only AppendRecord and AppendRecordFields write the
// others. Later calls of the folder do not change it.
type Batch struct {
	// Messages are JSON objects, in the order of their events. Every message has role and content. A tool call also has
	// tool_call_id, tool_name and input; a tool result also has tool_call_id and is_error.
	Messages []topics.Raw
	// StopReason is the terminal result's stop reason, or else that of the last done event; nil for null. A done event
	// can name any JSON value.
	StopReason topics.Raw
	// PendingInteraction is the last interaction request of a turn that paused; nil for null.
	PendingInteraction topics.Raw

	// State is End.State. If that is empty, State is the first of these that applies: failed after an error event or with
	// End.Error, cancelled if that is the stop reason, complete after a done event or with End.StopReason, open.
	State State
	// Pending are all interaction requests that neither a response nor a tool result has answered, in order, in the form
	// of PendingInteraction. They are set whether the turn paused or not.
	Pending []topics.Raw
	// Results has an entry for each tool result with fields that its message does not have, in order.
	Results []Result
	// Failed reports whether the turn had an error. Error is its text: End.Error, or that of the last error event.
	Failed bool
	Error  string
	// Usage is an object with the members input, output, total and cost of the last usage event, as far as it had them;
	// nil for none.
	Usage topics.Raw
	// Malformed counts the events that were left out.
	Malformed int
}

// Result holds the fields of a tool result that its message does not have.
type Result struct {
	Message int        // index in Batch.Messages
	Denied  bool       // the call was denied; it did not fail
	Data    topics.Raw // structured result; nil for none
	Render  topics.Raw // how a user interface shows it; nil for none
}

// Batch returns the fold of the events so far and does not change the folder. It fails with ErrStopReason if
// end.StopReason is neither a string nor null. With Strict it fails with ErrMalformed if the turn is paused at a malformed
// request.
func (f *Folder) Batch(end End) (Batch, error) {
	stop, err := f.resolve(end.StopReason)
	if err != nil {
		return Batch{}, err
	}
	b := Batch{
		Messages: make([]topics.Raw, len(f.messages)), StopReason: stop, State: end.State,
		Failed: f.failed || end.Error != "", Error: end.Error, Usage: usageOf(f.usage), Malformed: f.malformed,
	}
	if b.PendingInteraction, err = f.pendingInteraction(stop, end.Decided); err != nil {
		return Batch{}, err
	}
	for i := range f.messages {
		b.Messages[i] = f.messages[i].encode()
		if r, ok := f.messages[i].result(i); ok {
			b.Results = append(b.Results, r)
		}
	}
	for i := range f.requests {
		if r := &f.requests[i]; !r.answered && (r.data == nil || isObject(r.data)) && !isDecided(end.Decided, i) {
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

// resolve returns the turn's stop reason: the terminal result's, or else that of the last done event.
func (f *Folder) resolve(terminal topics.Raw) (topics.Raw, error) {
	terminal = trimSpace(terminal)
	if isNull(terminal) {
		return f.StopReason(), nil
	}
	if !isString(terminal) || !utf8.Valid(terminal) || !valid(terminal) {
		return nil, ErrStopReason
	}
	stop, _ := withoutLoneSurrogates(terminal)
	return bytes.Clone(stop), nil
}

func (f *Folder) pendingInteraction(stop topics.Raw, decided []int) (topics.Raw, error) {
	at := len(f.requests) - 1
	for at >= 0 && isDecided(decided, at) {
		at--
	}
	if at < 0 || !isString(stop) || unquote(stop) != "paused" {
		return nil, nil
	}
	last := &f.requests[at]
	if last.data != nil && !isObject(last.data) {
		return nil, f.countMalformed("data is not an object")
	}
	return last.pending(), nil
}

func isDecided(decided []int, i int) bool {
	_, ok := slices.BinarySearch(decided, i)
	return ok
}

// AssistantText concatenates the contents of the assistant's messages so far, without separators. Contents that are not
// strings are skipped. With Strict it fails when Batch(End{}) fails.
func (f *Folder) AssistantText() (string, error) {
	if _, err := f.pendingInteraction(f.StopReason(), nil); err != nil {
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
