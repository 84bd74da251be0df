package cut

import "time"

// ProducerOptions configures a Producer.
type ProducerOptions struct {
	Table string // topic of the group table
	Lease *Lease // nil: always held
	// Limits are those of the topics; nil: all accept what Sarama accepts.
	Limits *Limits
	// Ordered sends rows only after the outputs of their callback are acknowledged. At least once needs it; a transaction
	// does not.
	Ordered bool
	// Linger is how long a row is held for newer rows of its key and for other rows of its batch. Zero: until the cut.
	Linger time.Duration
	// Stored, if not nil, is called with the changelog offset of each acknowledged row. The local store already has the
	// row; sealed says that the store has sealed it with its cut. Stored is called with the producer's lock held.
	Stored func(partition int32, offset int64, sealed bool) error
	// Failed records the cause of a failed record, which Goka converts to text.
	Failed func(error)
	// Broken is called when a row is not written. Only the cut waits for rows, so Broken must stop the instance.
	Broken func(error)
}
