package wiretest

import "sync"

// Fate is what must become of a record that was sent.
type Fate uint8

// The fates.
const (
	// FateOwn: nothing is noted; the oracle reads the record and judges by the contract.
	FateOwn Fate = iota
	// FateTurn: a message that must end in exactly one output.
	FateTurn
	// FateDeadLetter: must be on the group's dead-letter topic, with a reason, and have no other effect.
	FateDeadLetter
	// FateTurnOrDeadLetter: one of the two, whichever the pipeline decides.
	FateTurnOrDeadLetter
	// FateExplained: a rule lets it vanish (a tombstone that clears, a record of tool-use-dlq that names no open call).
	FateExplained
)

// Sent is what the sender knows about a record.
type Sent struct {
	Fate Fate
	// Case names the kind of record in reports ("tombstone", "null key").
	Case string
	// Codes are the ends a message may have: "" is an answer, else an error code. None: any.
	Codes []string
	// Forgotten: the turn of a message must start with an empty history.
	Forgotten bool
	// Route is the reply descriptor the output of a message must carry; nil: not judged here.
	Route []byte
	// NoRoute: the output of the message must carry none.
	NoRoute bool
}

// Ledger holds what the senders know about the records that are not plain. It is safe for concurrent use and grows
// with the number of such records, not with their size.
type Ledger struct {
	mu   sync.Mutex
	sent map[Coord]Sent
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{sent: map[Coord]Sent{}} }

// Note remembers what is known of the record at the coordinate. A nil ledger forgets; nothing known takes no space.
func (l *Ledger) Note(at Coord, s Sent) {
	plain := s.Fate == FateOwn && s.Codes == nil && s.Route == nil && !s.NoRoute && !s.Forgotten
	if l == nil || plain {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[at] = s
}

// snapshot copies the ledger: a report is made over what was known when it began.
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
