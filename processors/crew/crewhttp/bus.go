package crewhttp

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// busHistory are the last messages between the agents of all crews, in the order in which the index saw them.
type busHistory struct {
	newestMessages
	crews map[string]string // by message
}

func (b *busHistory) add(crew string, m view.BusMessage) {
	b.newestMessages.add(m)
	if b.crews == nil {
		b.crews = map[string]string{}
	}
	b.crews[m.ID] = crew
	if len(b.crews) < 2*busLimit {
		return
	}
	kept := make(map[string]string, busLimit)
	for _, m := range b.of("") {
		kept[m.ID] = b.crews[m.ID]
	}
	b.crews = kept
}

// query returns the newest n messages of the crews that are wanted, oldest first: those from an agent, to it and to all, or all
// of them without an agent.
func (b *busHistory) query(agent string, n int, wanted func(crew, project string) bool) []view.BusMessage {
	found := []view.BusMessage{}
	for _, m := range b.of(agent) {
		if wanted(b.crews[m.ID], "") {
			found = append(found, m)
		}
	}
	return found[max(0, len(found)-n):]
}
