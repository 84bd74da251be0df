package wiretest

import "sync"

// Fate is the effect that a sent record must have.
type Fate uint8

// The fates.
const (
	// FateOwn is the default: the oracle reads the record and judges it by the wire format.
	FateOwn Fate = iota
	// FateTurn is that of a message that must end in exactly one output.
	FateTurn
	// FateDeadLetter is that of a record that must be dead-lettered with a reason and have no other effect.
	FateDeadLetter
	// FateTurnOrDeadLetter allows the pipeline to choose one of the two.
	FateTurnOrDeadLetter
	// FateExplained is that of a record that needs no output and no dead letter, such as a tombstone that clears a
	// history, or a record of tool-use-dlq that names no open call.
	FateExplained
)

// Sent is what a sender expects of a record.
type Sent struct {
	Fate Fate
	// Case names the kind of record in reports ("tombstone", "null key").
	Case string
	// Codes are the endings that a message may have: "" is an answer, all others are error codes. Nil allows any ending.
	Codes []string
	// Forgotten requires that the turn of the message starts with an empty history.
	Forgotten bool
	// Route is the reply descriptor that the output of the message must carry. Nil is not checked.
	Route []byte
	// NoRoute requires that the output of the message carries no route.
	NoRoute bool
}

// Ledger stores what senders expect of their records, where that differs from the default. It is safe for concurrent
// use. Its size grows with the number of such records, not with their size.
type Ledger struct {
	mu   sync.Mutex
	sent map[Coord]Sent
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{sent: map[Coord]Sent{}} }

// Note stores what is expected of the record at the coordinate. It does nothing on a nil ledger, or if s expects nothing
// but FateOwn.
func (l *Ledger) Note(at Coord, s Sent) {
	plain := s.Fate == FateOwn && s.Codes == nil && s.Route == nil && !s.NoRoute && !s.Forgotten
	if l == nil || plain {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[at] = s
}

// snapshot copies the ledger, so that a report is made from one state of it.
func (l *Ledger) snapshot() map[Coord]Sent {
	out := map[Coord]Sent{}
	if l == nil {
		return out
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, v := range l.sent {
		out[k] = v
	}
	return out
}
