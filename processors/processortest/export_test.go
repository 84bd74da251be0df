package processortest

import "time"

// SetPatience makes a blocked step fail sooner.
func (d *Driver) SetPatience(limit time.Duration) { d.patience = limit }

// SetUpdate does what the flag does and returns what undoes it.
func SetUpdate(on bool) (undo func()) {
	was := *update
	*update = on
	return func() { *update = was }
}
