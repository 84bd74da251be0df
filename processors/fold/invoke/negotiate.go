package invoke

import "slices"

// The types of each family in the order in which a refusal names them, and that of a stream nobody chose.
var (
	batchTypes  = []MediaType{JSON}
	streamTypes = []MediaType{JSONL, NDJSON, SSE}
	byDefault   = []MediaType{NDJSON, SSE}
)

// negotiate decides what a request is answered with, before anything runs. stream is the body's flag, nil for none; an
// agent of one shape does not look at it. ok is false where the client takes nothing that the agent can give; supported
// is what it can give then.
func negotiate(a Accept, shape Shape, stream *bool) (answer MediaType, supported []MediaType, ok bool) {
	batches, streams := offered(shape, stream)
	for _, m := range a.Wanted {
		if m.Streams() && streams || !m.Streams() && batches {
			return m, nil, true
		}
	}
	for _, m := range defaults(batches, streams) {
		switch {
		case slices.Contains(a.Refused, m):
		case len(a.Wanted) == 0 || a.allows(m):
			return m, nil, true
		}
	}
	if batches {
		return "", batchTypes, false
	}
	return "", streamTypes, false
}

// offered are the families that are left by the agent's shape and the flag.
func offered(shape Shape, stream *bool) (batches, streams bool) {
	switch {
	case shape == BatchOnly:
		return true, false
	case shape == StreamOnly:
		return false, true
	case stream == nil:
		return true, true
	}
	return !*stream, *stream
}

func defaults(batches, streams bool) []MediaType {
	var list []MediaType
	if batches {
		list = append(list, JSON)
	}
	if streams {
		list = append(list, byDefault...)
	}
	return list
}

// requested is the type that a refusal names as asked for.
func (a Accept) requested() MediaType {
	switch {
	case len(a.Wanted) > 0:
		return a.Wanted[0]
	case len(a.Refused) > 0:
		return a.Refused[0]
	}
	return ""
}
