package crewhttp

import (
	"slices"

	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

const (
	// busLimit is how many messages the index keeps: the newest.
	busLimit = 5000
	// busByteLimit bounds the texts of these messages, in bytes. The newest message is kept at any size.
	busByteLimit = 32 << 20
)

// everyone is the receiver of a message to all agents.
const everyone = "*"

// newestMessages are the newest messages between the agents of all crews, in the order in which the index saw them. The zero value is
// empty. It is not safe for concurrent use.
type newestMessages struct {
	messages []crewMessage
	bytes    int
}

type crewMessage struct {
	crew string
	view.BusMessage
}

// add adds a message. It does not look for repeats: the caller knows them by the numbers of their events.
func (h *newestMessages) add(crew string, m view.BusMessage) {
	h.messages = append(h.messages, crewMessage{crew, m})
	h.bytes += len(m.Content)
	for len(h.messages) > busLimit || len(h.messages) > 1 && h.bytes > busByteLimit {
		h.bytes -= len(h.messages[0].Content)
		h.messages[0] = crewMessage{}
		h.messages = h.messages[1:]
	}
}

// query returns the newest n messages of the crews that are wanted, oldest first: those from an agent, to it and to all, or all
// of them without an agent. An ID that no agent has gets the messages to all agents.
func (h *newestMessages) query(agentID string, n int, wanted func(crew, project string) bool) []view.BusMessage {
	found := []view.BusMessage{}
	for _, m := range slices.Backward(h.messages) {
		if len(found) == n {
			break
		}
		concerns := agentID == "" || m.From == agentID || m.To == agentID || m.To == everyone
		if concerns && wanted(m.crew, "") {
			found = append(found, m.BusMessage)
		}
	}
	slices.Reverse(found)
	return found
}
