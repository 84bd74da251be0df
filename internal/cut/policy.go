package cut

import "time"

// Policy says when a cut is made. The defaults were measured on a local broker.
type Policy struct {
	// Every is the minimum age of a cut: it is made at the first moment after that with nothing in flight. Zero: at each
	// such moment.
	Every time.Duration
	// Force is how long after Every a cut waits for such a moment before the gate shuts for it.
	Force time.Duration
	// Backlog, if not zero, is the number of records by which a claim must lag for Lagging to be used instead of Force:
	// fewer, larger cuts when latency is high already.
	Backlog int64
	Lagging time.Duration
	// Linger is how long a table row is held for others (ProducerOptions.Linger).
	Linger time.Duration
	// Flush is the minimum time between two writes of the local store, unless a store is Heavy. Of the rows that a key gets
	// in that time only the last one is written, and of parts only those that are still used. After a crash the missing
	// rows are read from the changelog. Zero: the local store is written with each cut.
	Flush time.Duration
	// Drain bounds how long revocation and stop wait for records in flight. It must be below the rebalance timeout.
	Drain time.Duration
	// MaxRecords and MaxBytes bound what is handed to Goka before the gate shuts until all of it is done. They also bound
	// what is handed out while the last cut is being closed, its flush to the local store included; the gate then stays
	// shut until that cut is closed. At most twice as much is therefore in memory: the cut that is closing and the next.
	MaxRecords int
	MaxBytes   int
}

// AtLeastOncePolicy returns the default policy of the at-least-once closer.
func AtLeastOncePolicy() Policy {
	return Policy{
		Every:      100 * time.Millisecond,
		Force:      time.Second,
		Linger:     100 * time.Millisecond / lingers,
		Flush:      flushes,
		Drain:      5 * time.Second,
		MaxRecords: 10_000,
		MaxBytes:   64 << 20,
	}
}

const (
	// lingers is how many times rows are sent per minimum age of a cut.
	lingers = 10
	// flushes is the default of Policy.Flush: as long as a few turns of a busy session.
	flushes = time.Second
)

// With returns the policy with every as the minimum age of a cut; Linger, if not zero, is scaled with it.
func (p Policy) With(every time.Duration) Policy {
	p.Every = every
	if p.Linger > 0 {
		p.Linger = every / lingers
	}
	return p
}

// ExactlyOncePolicy returns the default policy of the transactional closer: a cut at each moment with nothing in flight,
// after 10 ms at the latest (the p99 latency is 18 ms at 1,000 records/s; with 100 ms it is 96 ms), and after 100 ms under
// backlog, when commits limit the throughput.
func ExactlyOncePolicy() Policy {
	return Policy{
		Force:      10 * time.Millisecond,
		Backlog:    2000,
		Lagging:    100 * time.Millisecond,
		Flush:      flushes,
		Drain:      5 * time.Second,
		MaxRecords: 10_000,
		MaxBytes:   64 << 20,
	}
}
