package team

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
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

// setTimer sets a timer of an agent. One with the same label is replaced.
func (w *work) setTimer(o order, c command.SetTimer) string {
	w.removeTimers(func(t *Timer) bool { return t.AgentId == o.from.Id && t.Label == c.Label })
	n := 0
	for _, t := range w.Timers {
		if t.AgentId == o.from.Id {
			n++
		}
	}
	every := time.Duration(c.Delay).Milliseconds()
	t := &Timer{
		Id: w.step.NewID("timer"), AgentId: o.from.Id, Label: c.Label, Message: c.Message, EveryMs: every, Repeat: c.Repeat,
		DueMs: w.now() + every,
	}
	if n >= maxAgentTimers || size(w.Timers)+size([]*Timer{t}) > maxTimerBytes {
		return o.refused("there are too many timers, or the message is too long")
	}
	w.Timers = append(w.Timers, t)
	w.timerEvent("timer:created", t)
	return fmt.Sprintf("The timer %q (%s) fires in %s.", t.Label, t.Id, time.Duration(c.Delay))
}

// cancelTimer removes timers of an agent by their ID or their label.
func (w *work) cancelTimer(o order, c command.CancelTimer) string {
	n := w.removeTimers(func(t *Timer) bool {
		return t.AgentId == o.from.Id && (c.TimerID != "" && t.Id == c.TimerID || c.Label != "" && t.Label == c.Label)
	})
	if n == 0 {
		return o.refused("you have no such timer")
	}
	return fmt.Sprintf("Cancelled %d timers.", n)
}

// removeTimers removes timers and returns how many.
func (w *work) removeTimers(gone func(*Timer) bool) (n int) {
	w.Timers = slices.DeleteFunc(w.Timers, func(t *Timer) bool {
		if !gone(t) {
			return false
		}
		w.timerEvent("timer:cancelled", t)
		n++
		return true
	})
	return n
}

// listTimers answers with the timers of an agent.
func (w *work) listTimers(o order, _ command.Nothing) string {
	var lines []string
	for _, t := range w.Timers {
		if t.AgentId == o.from.Id {
			lines = append(lines, fmt.Sprintf("- %s (%s): %s, at %s", t.Label, t.Id, truncate.Characters(t.Message, 80), view.Time(t.DueMs)))
		}
	}
	if len(lines) == 0 {
		return "You have no timers."
	}
	return "Your timers:\n" + strings.Join(lines, "\n")
}
