package invoke

import "slices"

// The media types of batches and streams, in the order in which a 406 lists them, and the default order of streams.
var (
	batchTypes  = []MediaType{JSON}
	streamTypes = []MediaType{JSONL, NDJSON, SSE}
	byDefault   = []MediaType{NDJSON, SSE}
)

// negotiate chooses the media type of the response before the agent runs. stream is the request's flag, nil for none; it is
// ignored unless the agent's shape is Both. If the client accepts no type that the agent supports, ok is false and supported
// lists the types of the agent.
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

// offered returns whether the agent's shape and the flag allow a batch and a stream.
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

// requested returns the type that a 406 names as requested.
func (a Accept) requested() MediaType {
	switch {
	case len(a.Wanted) > 0:
		return a.Wanted[0]
	case len(a.Refused) > 0:
		return a.Refused[0]
	}
	return ""
}
