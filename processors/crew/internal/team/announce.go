package team

import (
	"strings"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// announce tells a lead which of its tasks can begin.
func (w *work) announce(leadID string, list []*Task) {
	lead := w.Roster.Find(leadID)
	if len(list) == 0 || lead == nil || view.Ended(lead.Status) {
		return
	}
	lines := make([]string, len(list))
	for i, t := range list {
		lines[i] = "- " + t.Id + " (" + t.Role + "): " + truncate.Characters(t.Description, 80)
	}
	w.note(lead, "Tasks that can begin now:\n"+strings.Join(lines, "\n"))
}
