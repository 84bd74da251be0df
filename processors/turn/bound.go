package turn

// The bound methods return upper bounds of proto.Size at a fraction of its cost: the lengths of the fields that can be
// long, plus the maximum size of every other field and of every field's tag and length.
const (
	// most bounds a field's tag together with its varint value or its length prefix.
	most = 2 + 10
	// partBound bounds a Part: a tag with a length, and two numbers.
	partBound = 3 * most
)

func (s *State) bound() int {
	if s == nil {
		return 0
	}
	size := 28*most + len(s.LastTurn) + len(s.MemoryKey) + len(s.History) + len(s.Hidden) + textBound(s.UserId) + len(s.Causes) + len(s.Requests) + len(s.Calls) + len(s.Steps) +
		most*len(s.UsedRoutesMs) + s.Turn.bound() + len(s.unknownFields)
	for _, f := range s.largeFields() {
		if !f.hasParts() {
			continue
		}
		size += partBound * len(*f.parts)
		for _, p := range *f.parts {
			size += len(p.unknownFields)
		}
	}
	for _, a := range s.Waiting {
		size += most + a.bound()
	}
	for _, r := range s.Routes {
		size += most + r.bound()
	}
	for _, h := range s.Early {
		size += most + h.bound()
	}
	for _, g := range s.OtherGates {
		size += 4*most + len(g.GateId) + len(g.TurnId) + len(g.unknownFields)
	}
	return size
}

func (t *OpenTurn) bound() int {
	if t == nil {
		return 0
	}
	size := 15*most + t.Message.bound() + len(t.Input) + len(t.Prompt) + len(t.Tail) + len(t.Results) + textBound(t.UserId) +
		len(t.unknownFields)
	if t.Compaction != nil {
		size += 2*most + len(t.Compaction.unknownFields)
	}
	if t.Stream != nil {
		size += 4*most + len(t.Stream.unknownFields)
	}
	for _, c := range t.Calls {
		size += 8*most + textBound(c.ToolUseId) + textBound(c.Name) + c.Result.bound() + c.Gate.bound() + len(c.unknownFields)
	}
	for _, h := range t.Held {
		size += most + h.bound()
	}
	return size
}

func (a *Accepted) bound() int {
	if a == nil {
		return 0
	}
	return 13*most + len(a.TurnId) + textBound(a.RequestId) + textBound(a.UserId) + a.Route.bound() + len(a.Input) +
		len(a.Origin) + len(a.Task) + len(a.EphemeralPrompt) + len(a.unknownFields)
}

func (r *Result) bound() int {
	if r == nil {
		return 0
	}
	return 9*most + textBound(r.SessionId) + textBound(r.ToolUseId) + textBound(r.ToolId) + textBound(r.Name) +
		len(r.Result) + textBound(r.Status) + textBound(r.Timestamp) + len(r.unknownFields)
}

func (g *Gate) bound() int {
	if g == nil {
		return 0
	}
	return 7*most + len(g.GateId) + textBound(g.ToolId) + len(g.Input) + textBound(g.SessionId) + textBound(g.Timestamp) +
		len(g.unknownFields)
}

func (h *Held) bound() int {
	size := 16*most + len(h.ToolUseId) + h.Result.bound() + len(h.Value) + len(h.Digest) + len(h.Topic) +
		len(h.TurnId) + len(h.Input) + len(h.unknownFields)
	for _, header := range h.Headers {
		size += 3*most + len(header.Name) + len(header.Value) + len(header.unknownFields)
	}
	return size
}

func (r *ReplyRoute) bound() int {
	if r == nil {
		return 0
	}
	return 5*most + textBound(r.RequestId) + len(r.ReplyTo) + len(r.TurnId) + len(r.unknownFields)
}

func textBound(text *string) int {
	if text == nil {
		return 0
	}
	return len(*text)
}
