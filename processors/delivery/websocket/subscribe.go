package websocket

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// subscription is a client's subscribe frame.
type subscription struct {
	session string
	last    string // the event_id of the last frame it received; empty for a client that does not resume
}

// maxFrameDepth bounds the nesting of a client's frame.
const maxFrameDepth = 16

// parseSubscription parses a client's frame. ok is false if the frame must be ignored: it is not JSON, has another type, or
// names no session. A session_id that is a number or a boolean is taken as text, as the chat door does. If several members
// have one name, the last counts.
func parseSubscription(frame []byte) (s subscription, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(frame), jsontext.AllowDuplicateNames(true))
	object, err := d.ReadValue()
	if err != nil || codec.Deeper(object, maxFrameDepth) {
		return subscription{}, false
	}
	member := func(name string) string {
		value, _ := topics.Lookup(topics.Raw(object), name)
		if len(value) == 0 || strings.IndexByte("{[n", value[0]) >= 0 || value[0] != '"' && name != "session_id" {
			return ""
		}
		return *topics.TextOf(value)
	}
	s = subscription{session: member("session_id"), last: member("last_event_id")}
	return s, member("type") == "subscribe" && strings.TrimSpace(s.session) != ""
}
