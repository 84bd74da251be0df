package invoke

import (
	"errors"

	"github.com/turntable-streams/turntable/topics"
)

// ndjson writes one event per line.
type ndjson struct{ canonicalForm }

func (*ndjson) begin(dst []byte) []byte { return dst }

func (f *ndjson) event(dst []byte, item Item, muted bool) []byte {
	f.saw(item)
	if muted {
		return dst
	}
	return line(dst, item.Event.Wrapped())
}

func (*ndjson) keepalive(dst []byte) []byte {
	return line(dst, extra("keepalive", newObject().value()))
}

func (f *ndjson) end(dst []byte, o outcome) []byte {
	for _, v := range f.closing(o) {
		dst = line(dst, v)
	}
	return dst
}

func line(dst []byte, value topics.Raw) []byte { return append(respace(dst, value, true), '\n') }

// sse writes one event per frame, with its ID.
type sse struct{ canonicalForm }

func (*sse) begin(dst []byte) []byte { return dst }

func (f *sse) event(dst []byte, item Item, muted bool) []byte {
	f.saw(item)
	if muted {
		return dst
	}
	return frame(dst, item.shown(), item.Event.Wrapped())
}

func (*sse) keepalive(dst []byte) []byte { return append(dst, comment...) }

func (f *sse) end(dst []byte, o outcome) []byte {
	for _, v := range f.closing(o) {
		dst = frame(dst, EventID{}, v)
	}
	return dst
}

const comment = ": keepalive\n\n"

// frame appends a frame of server-sent events, without an ID if id is not printable.
func frame(dst []byte, id EventID, value topics.Raw) []byte {
	if id.printable() {
		dst = append(append(append(dst, "id: "...), id.String()...), '\n')
	}
	dst = append(dst, "data: "...)
	return append(respace(dst, value, true), "\n\n"...)
}

// canonicalForm is the end of a stream, which both canonical formats share.
type canonicalForm struct{ failed bool }

func (f *canonicalForm) saw(item Item) { f.failed = f.failed || item.Event.Type == "error" }

// closing returns the objects after the last event: an error event, unless the turn already had one, and stream_end. Neither
// adds a message when a client folds the stream.
func (f *canonicalForm) closing(o outcome) []topics.Raw {
	var list []topics.Raw
	end := newObject().text("state", string(o.state()))
	var superseded *Superseded
	switch {
	case errors.As(o.err, &superseded):
		list = append(list, extra("error", newObject().text("message", "the attempt was superseded").value()))
		end = end.text("reason", "superseded").text("resume", superseded.By.String())
	case o.err != nil:
		e := streamError(o.err)
		if !f.failed {
			list = append(list, extra("error", newObject().text("message", e.Text).value()))
		}
		end = end.text("reason", e.Code)
	}
	if superseded == nil && o.at.printable() && o.at.Seq > 0 {
		end = end.text("last_event_id", o.at.String())
	}
	return append(list, extra("stream_end", end.value()))
}

func extra(kind string, data topics.Raw) topics.Raw {
	return newObject().text("type", kind).with("data", data).value()
}

// streamError returns the error that is reported in a stream.
func streamError(err error) Error {
	e := clientError(err)
	var reported *Error
	if !errors.As(err, &reported) {
		e.Text = runText
	}
	if e.Code == "" {
		e.Code = runFailed
	}
	return e
}
