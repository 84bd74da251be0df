package host

import (
	"context"
	"crypto/rand"
	"sync"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// claims are the beginnings of the runs with the host's name. Runs that are followed already read each other's in one order, so that
// two that start in the same second do not have the same epoch, and the earlier one ends at once. A claim with a lower epoch is
// that of a host whose clock is behind, or the repeat of an earlier one. It replaces no one, whatever its place in the topic: rows
// accept the records of the higher epoch only. The host with the lower epoch ends when it reads a row or an action of the other.
type claims struct {
	mu sync.Mutex
	id string // of the host's own claim
	// written is closed when the claim is in the topic. From then on nothing may keep the host from reading it.
	written chan struct{}
	mine    chan int64 // gets the epoch of the host's own claim
	last    int64      // the epoch of the last claim
	own     int64      // that of the host's own claim, 0 until it is read
}

func newClaims() *claims {
	return &claims{id: rand.Text(), written: make(chan struct{}), mine: make(chan int64, 1)}
}

// read notes a claim. It returns true if a run with a higher epoch, or the same, has begun.
func (c *claims) read(a topics.CrewAction) (replaced bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own != 0 {
		return a.ActionID != c.id && a.Epoch >= c.own
	}
	c.last = max(a.Epoch, c.last+1)
	if a.ActionID == c.id {
		c.own = c.last
		c.mine <- c.own
	}
	return false
}

// claim writes the host's claim to an epoch, and returns the epoch that it has got: a higher one if another run has that one. It
// waits for the brokers until ctx ends.
func (h *Host) claim(ctx context.Context, to processors.Publisher, epoch int64) (got int64, ok bool) {
	subject := mailbox.OfHost + h.config.Name
	body := crewbody.HostClaim{}
	out, err := processors.OutboundOf(h.catalog.CrewActions, subject, topics.CrewAction{
		ActionID: h.claims.id, Kind: body.Kind(), Host: h.config.Name, Epoch: epoch, Subject: subject,
		Body: crewbody.Encode(body),
	}, h.claims.id)
	if err == nil {
		err = retry.Until(ctx, func() error { return to.Publish(ctx, out) }, func(err error) {
			h.config.Logger.Warn("host cannot say that it begins, retrying", zap.Error(err))
		})
	}
	if err != nil {
		return 0, false
	}
	close(h.claims.written)
	select {
	case got = <-h.claims.mine:
		return got, true
	case <-ctx.Done():
		return 0, false
	}
}
