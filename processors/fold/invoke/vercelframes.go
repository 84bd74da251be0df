package invoke

import "github.com/turntable-streams/turntable/topics"

// vercelForm writes the Vercel UI message stream: server-sent events of parts, between a start and [DONE].
type vercelForm struct {
	message, session, trace string
	projection              *projection
	resumed                 bool // the client has received the beginning
}

func newVercel(message, session, trace string, resumed bool) *vercelForm {
	return &vercelForm{message: message, session: session, trace: trace, projection: newProjection(), resumed: resumed}
}

func (f *vercelForm) begin(dst []byte) []byte {
	if f.resumed {
		return dst
	}
	start := part("start").text("messageId", f.message).
		with("messageMetadata", newObject().text("sessionId", f.session).value())
	return frames(dst, EventID{}, []topics.Raw{start.value(), part("start-step").value()})
}

func (f *vercelForm) event(dst []byte, item Item, muted bool) []byte {
	parts := f.projection.event(item.Event)
	if muted {
		return dst
	}
	return frames(dst, item.shown(), parts)
}

func (*vercelForm) keepalive(dst []byte) []byte { return append(dst, comment...) }

func (f *vercelForm) end(dst []byte, o outcome) []byte {
	return append(frames(dst, EventID{}, f.projection.end(o, f.trace)), "data: [DONE]\n\n"...)
}

// frames appends the parts of an event. Only the last has the ID, so that a client that has received it has all parts.
func frames(dst []byte, id EventID, parts []topics.Raw) []byte {
	for i, p := range parts {
		if i < len(parts)-1 {
			dst = frame(dst, EventID{}, p)
			continue
		}
		dst = frame(dst, id, p)
	}
	return dst
}
