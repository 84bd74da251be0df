package invoke

import "github.com/turntable-streams/turntable/topics"

// vercelForm writes the Vercel UI message stream: server-sent events of parts, between a start and [DONE].
type vercelForm struct {
	message, session, trace string
	projection              *projection
	resumed                 bool // the client has received the beginning
	continued               bool // the response continues a turn that has paused
	same                    bool // the client adds it to the message that has the beginning
	news                    bool // an event was written
}

func (f *vercelForm) begin(dst []byte) []byte {
	if f.resumed {
		return dst
	}
	start := part("start").text("messageId", f.message).
		with("messageMetadata", newObject().text("sessionId", f.session).value())
	parts := []topics.Raw{start.value(), part("start-step").value()}
	if f.continued {
		parts = parts[:1] // the results of calls belong to the step before
	}
	return frames(dst, EventID{}, parts)
}

func (f *vercelForm) event(dst []byte, item Item, muted bool) []byte {
	if !muted && !f.news {
		if f.news = true; f.continued {
			f.projection.another(f.same)
		}
	}
	parts := f.projection.event(item.Event)
	if muted {
		return dst
	}
	return frames(dst, item.shown(), parts)
}

func (*vercelForm) keepalive(dst []byte) []byte { return append(dst, comment...) }

func (f *vercelForm) end(dst []byte, o outcome) []byte {
	p := f.projection
	switch {
	case !f.continued:
	case !f.news:
		p.stepping = false // the turn waits for other answers
	case !p.stepping:
		dst = frames(dst, EventID{}, []topics.Raw{part("start-step").value()})
		p.stepping = true
	}
	return append(frames(dst, EventID{}, p.end(o, f.trace)), "data: [DONE]\n\n"...)
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
