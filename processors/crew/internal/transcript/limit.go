package transcript

import (
	"bytes"
	"encoding/hex"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// Bounds of what a row keeps of a session.
const (
	maxCalls     = 200
	maxCallBytes = 48 << 10 // of all tool calls together
	maxContent   = 4 << 10  // bytes of the content of a tool call
	maxField     = 2 << 10  // bytes of each other value of a tool call
	maxName      = 256      // bytes of IDs and names
	maxTitle     = 512      // bytes of titles
	maxPlan      = 16 << 10 // bytes of a plan
	maxEntry     = 1 << 10  // bytes of the text of an entry of a plan
	maxList      = 16 << 10 // bytes of the commands, of the modes, and of the options
)

// idOf returns an ID as rows keep it. Cut IDs could be equal, so a long one is replaced by its digest.
func idOf(id string) string {
	if len(id) <= maxName {
		return id
	}
	d := digests.Of("crew-tool-call", id)
	return hex.EncodeToString(d[:])
}

// whole returns a copy of a value, nil if it has more bytes than limit: half a value is no JSON.
func whole(v topics.Raw, limit int) []byte {
	if len(v) > limit {
		return nil
	}
	return bytes.Clone(v)
}

// first returns an array of the first of elements that have no more than limit bytes together.
func first(elements []topics.Raw, limit int) []byte {
	list := []byte{'['}
	for _, e := range elements {
		if len(list)+len(e)+2 > limit {
			break
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, e...)
	}
	return append(list, ']')
}
