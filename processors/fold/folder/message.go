package folder

import (
	"github.com/turntable-streams/turntable/topics"
)

// messageSize is the estimated memory of a message in addition to its values, in bytes.
const messageSize = 64

// message is a message of the batch. Its kind says which fields are set. All values are copies.
type message struct {
	kind    byte // opMessage, opStart for a block of deltas, opCall or opResult
	denied  bool
	id      topics.Raw // of a block, a call or a result
	name    topics.Raw
	payload topics.Raw // content, input or output
	isError topics.Raw
	data    topics.Raw
	render  topics.Raw
	text    text // of a block
}

// encode returns the message with exactly the keys of its kind.
func (m *message) encode() topics.Raw {
	const keys = len(`{"role":"assistant","content":"","tool_call_id":,"tool_name":,"input":}`) + 3*len("null")
	b := make([]byte, 0, keys+len(m.id)+len(m.name)+len(m.payload)+len(m.isError)+m.text.length)
	switch m.kind {
	case opMessage:
		b = append(append(b, `{"role":"assistant","content":`...), orEmpty(m.payload)...)
	case opStart:
		b = m.text.appendTo(append(b, `{"role":"assistant","content":"`...))
		replaceLoneSurrogates(b)
		b = append(b, '"')
	case opCall:
		b = append(append(b, `{"role":"tool","content":"","tool_call_id":`...), orNull(m.id)...)
		b = append(append(b, `,"tool_name":`...), orNull(m.name)...)
		b = append(append(b, `,"input":`...), orNull(m.payload)...)
	case opResult:
		b = append(append(b, `{"role":"tool","content":`...), orEmpty(m.payload)...)
		b = append(append(b, `,"tool_call_id":`...), orNull(m.id)...)
		b = append(append(b, `,"is_error":`...), orNull(m.isError)...)
	}
	return append(b, '}')
}

// content returns the content of an assistant's message as encode writes it; nil for other messages.
func (m *message) content() topics.Raw {
	switch m.kind {
	case opMessage:
		return orEmpty(m.payload)
	case opStart:
		b := m.text.appendTo(append(make([]byte, 0, m.text.length+2), '"'))
		replaceLoneSurrogates(b)
		return append(b, '"')
	}
	return nil
}

func (m *message) result(index int) (r Result, ok bool) {
	if m.kind != opResult || !m.denied && m.data == nil && m.render == nil {
		return Result{}, false
	}
	return Result{Message: index, Denied: m.denied, Data: m.data, Render: m.render}, true
}

func orEmpty(v topics.Raw) topics.Raw {
	if len(v) == 0 {
		return topics.Raw(`""`)
	}
	return v
}

// text is a growing text with its original escapes. It grows by chunks, so that a long text is never copied.
type text struct {
	chunks [][]byte
	length int
}

const (
	firstChunk = 64
	lastChunk  = 64 << 10
)

func (t *text) append(s []byte) {
	t.length += len(s)
	for len(s) > 0 {
		last := len(t.chunks) - 1
		if last < 0 || len(t.chunks[last]) == cap(t.chunks[last]) {
			room := min(max(firstChunk, t.length), lastChunk)
			t.chunks = append(t.chunks, make([]byte, 0, room))
			last++
		}
		c := t.chunks[last]
		n := min(len(s), cap(c)-len(c))
		t.chunks[last] = append(c, s[:n]...)
		s = s[n:]
	}
}

func (t *text) appendTo(dst []byte) []byte {
	for _, c := range t.chunks {
		dst = append(dst, c...)
	}
	return dst
}
