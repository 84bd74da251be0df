package team

import (
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// fireTimers sends the messages of the timers that are due. One that repeats is due again after its delay; what it missed while
// the group did not run is not made up for.
func (w *work) fireTimers() {
	for _, t := range slices.Clone(w.Timers) {
		if t.DueMs > w.now() {
			continue
		}
		m := w.Roster.Find(t.AgentId)
		if gone := m == nil || view.Ended(m.Status); gone || !t.Repeat {
			w.Timers = slices.DeleteFunc(w.Timers, func(o *Timer) bool { return o == t })
			if gone {
				continue
			}
		}
		w.send(m.Id, crewbody.Prompt{Text: fmt.Sprintf("[Timer %q]: %s", t.Label, t.Message)})
		if t.Repeat {
			t.DueMs += (w.now()-t.DueMs)/t.EveryMs*t.EveryMs + t.EveryMs
		}
		w.timerEvent("timer:fired", t)
	}
}

// timerEvent tells people about a timer.
func (w *work) timerEvent(kind string, t *Timer) {
	w.step.Event(kind, map[string]any{"timer": map[string]any{
		"id": t.Id, "agentId": t.AgentId, "label": t.Label, "message": t.Message, "delayMs": t.EveryMs, "repeat": t.Repeat,
		"fireAt": view.Time(t.DueMs),
	}})
}
