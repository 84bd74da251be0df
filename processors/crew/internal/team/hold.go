package team

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/crewbody"
)

// maxHold bounds how long decisions wait for a client that does not repeat that it looks at them.
const maxHold = 5 * time.Minute

// queueHeld stops the timers of decisions while a person looks at them. A client's hold ends with its connection: the door
// repeats it, and it expires.
func (w *work) queueHeld(in crewbody.QueueHeld) {
	client := kept(in.Client, maxName)
	w.Holds = slices.DeleteFunc(w.Holds, func(h *Hold) bool { return h.Client == client })
	until := min(in.UntilMS, w.now()+maxHold.Milliseconds())
	switch {
	case !in.Held || until <= w.now():
		if len(w.Holds) == 0 {
			w.release(w.now())
		}
		return
	case len(w.Holds) == maxHolds:
		w.Holds = w.Holds[1:]
	}
	if w.HeldSinceMs == 0 {
		w.HeldSinceMs = w.now()
	}
	w.Holds = append(w.Holds, &Hold{Client: client, UntilMs: until})
}

// expireHolds ends the holds that clients do not repeat.
func (w *work) expireHolds() {
	end := int64(0)
	for _, h := range w.Holds {
		end = max(end, h.UntilMs)
	}
	w.Holds = slices.DeleteFunc(w.Holds, func(h *Hold) bool { return h.UntilMs <= w.now() })
	if len(w.Holds) == 0 && w.HeldSinceMs > 0 {
		w.release(end)
	}
}

// release lets the timers of decisions run again from a time on. Each goes on with what was left of it.
func (w *work) release(at int64) {
	since := w.HeldSinceMs
	w.HeldSinceMs = 0
	if since == 0 {
		return
	}
	for _, d := range w.Decisions {
		if d.Status == Recorded && d.ConfirmMs > 0 {
			d.ConfirmMs += max(0, at-max(since, d.CreatedMs))
		}
	}
}
