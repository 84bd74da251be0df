// Package respondertest helps to test workers that look for what an earlier process has published.
package respondertest

import (
	"context"

	"github.com/turntable-streams/turntable/processors"
)

// Interrupted is a publisher whose process ends between the write of a record and the acknowledgement of what it settles:
// Publish writes the records, and then blocks until its context ends.
type Interrupted struct {
	processors.Publisher
	// Written is closed when the records of the first Publish are written. There must be no second one.
	Written chan struct{}
}

// NewInterrupted returns an Interrupted over a publisher.
func NewInterrupted(to processors.Publisher) Interrupted { return Interrupted{to, make(chan struct{})} }

// Publish implements processors.Publisher.
func (p Interrupted) Publish(ctx context.Context, records ...processors.Outbound) error {
	if err := p.Publisher.Publish(ctx, records...); err != nil {
		return err
	}
	close(p.Written)
	<-ctx.Done()
	return ctx.Err()
}
