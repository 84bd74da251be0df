package processortest

import "time"

// SetStepTimeout makes a blocked step fail sooner.
func (d *Driver) SetStepTimeout(limit time.Duration) { d.stepTimeout = limit }

// SetUpdate sets the flag -processortest.update and returns a function that restores it.
func SetUpdate(on bool) (undo func()) {
	was := *update
	*update = on
	return func() { *update = was }
}
