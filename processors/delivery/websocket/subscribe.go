package websocket

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// subscription is what a client asks for.
type subscription struct {
	session string
	last    string // the last event it got; empty: it is new
}

// maxFrameDepth is how deep a client's frame may nest.
const maxFrameDepth = 16

// parseSubscription reads a client's frame. ok is false for what is to be ignored: other types, no session, no JSON. A
// session that is a number or a boolean is its text, as at the chat door; of several members with one name the last
// counts.
func parseSubscription(frame []byte) (s subscription, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(frame), jsontext.AllowDuplicateNames(true))
	whole, err := d.ReadValue()
	if err != nil || codec.Deeper(whole, maxFrameDepth) {
		return subscription{}, false
	}
	word := func(name string) string {
		value, _ := topics.Lookup(topics.Raw(whole), name)
		if len(value) == 0 || strings.IndexByte("{[n", value[0]) >= 0 || value[0] != '"' && name != "session_id" {
			return ""
		}
		return *topics.TextOf(value)
	}
	s = subscription{session: word("session_id"), last: word("last_event_id")}
	return s, word("type") == "subscribe" && strings.TrimSpace(s.session) != ""
}
