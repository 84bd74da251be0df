package mailbox

import "github.com/turntable-streams/turntable/topics"

// Effect is a record to write.
type Effect interface{ effect() }

// Mail is an input for a row.
type Mail struct {
	To    string // subject of the row
	Input topics.CrewInput
}

// Act is an action for a host.
type Act struct {
	Subject string // of the row that waits for the receipt
	Action  topics.CrewAction
}

// Happened is an event.
type Happened struct {
	Event topics.CrewEvent
}

// Ask opens, or withdraws, a gate.
type Ask struct {
	Request topics.GateRequest
	ID      string // turntable.id of the record
}

// Letter dead-letters the record of the step.
type Letter struct {
	Reason string
}

func (Mail) effect()     {}
func (Act) effect()      {}
func (Happened) effect() {}
func (Ask) effect()      {}
func (Letter) effect()   {}
