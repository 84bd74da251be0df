// Package toolcall reads the tool calls of a reply: it gives each an ID of its own, and makes an object of its arguments.
package toolcall

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// IDs gives the calls of a reply IDs that no other call of the turn has. They are the same for every repeat of the step.
type IDs struct {
	seed     string
	messages []topics.Message
	used     map[string]bool
	calls    int
}

// New returns the IDs of the next reply of a conversation. seed names the step.
func New(seed string, messages []topics.Message) *IDs { return &IDs{seed: seed, messages: messages} }

// maxID is the length of the longest ID that is kept, in bytes.
const maxID = 200

// Next returns the ID of the next call, given the one that the model gave it: that ID, unless it is blank, very long or used.
func (d *IDs) Next(id string) string {
	if d.used == nil {
		d.used = usedIn(d.messages)
	}
	if strings.TrimSpace(id) == "" || len(id) > maxID {
		id = fmt.Sprintf("call_%s_%d", Digest("call", d.seed)[:24], d.calls)
	}
	d.calls++
	own := id
	for n := 2; d.used[own]; n++ {
		own = id + "-" + strconv.Itoa(n)
	}
	d.used[own] = true
	return own
}

// usedIn returns the IDs of the calls of a conversation's last turn, which begins with the last message of a user.
func usedIn(messages []topics.Message) map[string]bool {
	used := map[string]bool{}
	for i := len(messages) - 1; i >= 0; i-- {
		switch m := messages[i]; {
		case m.Role != nil && *m.Role == "tool":
		case m.Role == nil || *m.Role != "assistant":
			return used
		case jsontext.Value(m.Content).Kind() == '[':
			blocks, _ := topics.Elements(m.Content)
			for _, b := range blocks {
				if kind, _ := topics.Lookup(b, "type"); topics.Text(kind) == "tool_use" {
					id, _ := topics.Lookup(b, "id")
					used[topics.Text(id)] = true
				}
			}
		}
	}
	return used
}

// Digest returns a digest of texts, in hexadecimal.
func Digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}
