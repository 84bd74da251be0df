package crewhttp

import "github.com/turntable-streams/turntable/processors/crew/internal/view"

const (
	// busLimit is how many messages a History keeps: the newest.
	busLimit = 5000
	// busByteLimit bounds the texts of the messages that newestMessages keep, in bytes. The newest message is kept at any size.
	busByteLimit = 32 << 20
)

// everyone is the receiver of a message to all agents.
const everyone = "*"

// newestMessages are the newest messages between agents, in the order in which they were sent. The zero value is empty. It is
// not safe for concurrent use.
type newestMessages struct {
	messages []view.BusMessage // those before first are dropped
	first    int
	bytes    int
}

// add adds a message. It does not look for repeats: the caller knows them by the numbers of their events.
func (h *newestMessages) add(m view.BusMessage) {
	h.messages = append(h.messages, m)
	h.bytes += len(m.Content)
	for h.len() > busLimit || h.len() > 1 && h.bytes > busByteLimit {
		h.bytes -= len(h.messages[h.first].Content)
		h.messages[h.first] = view.BusMessage{}
		h.first++
	}
	if h.first > busLimit {
		h.messages = append([]view.BusMessage(nil), h.messages[h.first:]...)
		h.first = 0
	}
}

// len is the number of messages.
func (h *newestMessages) len() int { return len(h.messages) - h.first }

// of returns the messages that an agent sent or got, and those to all agents, oldest first. With an empty ID it returns
// all. The result is the caller's. An ID that no agent has gets the messages to all agents.
func (h *newestMessages) of(agentID string) []view.BusMessage {
	found := []view.BusMessage{}
	for _, m := range h.messages[h.first:] {
		if agentID == "" || m.From == agentID || m.To == agentID || m.To == everyone {
			found = append(found, m)
		}
	}
	return found
}
