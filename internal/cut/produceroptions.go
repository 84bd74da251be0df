package cut

import "time"

// ProducerOptions is what a Producer needs beside Sarama's.
type ProducerOptions struct {
	Table string // topic of the group table
	Lease *Lease // may be nil
	// Ordered puts rows behind the outputs of their callback: at least once needs it, a transaction does not.
	Ordered bool
	// Linger is how long a row waits, for newer ones of its key and for others to go with. Zero: until the cut.
	Linger time.Duration
	// Stored, if any, is told the changelog offset of each row that is acknowledged, which the local store has; sealed
	// says that the store has sealed it, with the cut that was made. It is called under the producer's lock.
	Stored func(partition int32, offset int64, sealed bool) error
	// Failed keeps the cause of a refused record, which Goka flattens to text.
	Failed func(error)
	// Broken is called when a row is not written: nobody but the cut waits for it, and the unit must stop.
	Broken func(error)
}
