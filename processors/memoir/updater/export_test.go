package updater

import "github.com/turntable-streams/turntable/processors"

// Observe takes a record of message-output, as Run does.
func (w *Worker) Observe(r processors.Inbound) { w.memories.Observe(r) }
