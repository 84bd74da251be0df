// Package bus is the history of the messages between agents, as a door shows it.
package bus

import "github.com/turntable-streams/turntable/processors/crew/view"

const (
	// Limit is how many messages a History keeps: the newest.
	Limit = 5000
	// ByteLimit bounds the texts of the messages that a History keeps, in bytes. The newest message is kept at any size.
	ByteLimit = 32 << 20
)

// everyone is the receiver of a message to all agents.
const everyone = "*"

// History is the newest messages in the order in which they were sent. The zero value is empty. It is not safe for concurrent
// use.
type History struct {
	messages []view.BusMessage // those before first are dropped
	first    int
	bytes    int
}

// Add adds a message. It does not look for repeats: the caller knows them by the numbers of their events.
func (h *History) Add(m view.BusMessage) {
	h.messages = append(h.messages, m)
	h.bytes += len(m.Content)
	for h.Len() > Limit || h.Len() > 1 && h.bytes > ByteLimit {
		h.bytes -= len(h.messages[h.first].Content)
		h.messages[h.first] = view.BusMessage{}
		h.first++
	}
	if h.first > Limit {
		h.messages = append([]view.BusMessage(nil), h.messages[h.first:]...)
		h.first = 0
	}
}

// Len is the number of messages.
func (h *History) Len() int { return len(h.messages) - h.first }

// Messages returns the messages that an agent sent or got, and those to all agents, oldest first. With an empty ID it returns
// all. The result is the caller's. An ID that no agent has gets the messages to all agents.
func (h *History) Messages(agentID string) []view.BusMessage {
	found := []view.BusMessage{}
	for _, m := range h.messages[h.first:] {
		if agentID == "" || m.From == agentID || m.To == agentID || m.To == everyone {
			found = append(found, m)
		}
	}
	return found
}
