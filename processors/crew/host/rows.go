package host

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/agent"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/repository"
)

// rows is what a host knows of the rows of agents and repositories.
type rows struct {
	host, from string

	mu      sync.Mutex
	heard   int64 // the highest number of a record of a host with this name
	begun   int64 // the host's own epoch, 0 before it begins
	waiting map[string]struct{}
}

// epoch is the highest one of a host with this name.
func (r *rows) epoch() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard / mailbox.PerEpoch
}

// begin returns the subjects of the rows that wait for an earlier run of the host.
func (r *rows) begin(epoch int64) (waiting []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting = slices.Sorted(maps.Keys(r.waiting))
	r.begun, r.waiting = epoch, nil
	return waiting
}

// see notes a row, nil for one that was deleted. It returns true if a later host has written to it.
func (r *rows) see(subject string, box *mailbox.Mailbox, waits bool) (replaced bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = max(r.heard, box.GetHeard()[r.from])
	if r.begun != 0 {
		return r.heard/mailbox.PerEpoch > r.begun
	}
	if waits {
		r.waiting[subject] = struct{}{}
	} else {
		delete(r.waiting, subject)
	}
	return false
}

// onRow notes a row of one of the tables.
func (h *Host) onRow(r processors.Inbound) {
	var (
		box   *mailbox.Mailbox
		waits bool
		err   error
		key   = string(r.Key)
	)
	subject := mailbox.Agent(key)
	if strings.HasPrefix(r.Topic, string(h.catalog.CrewRepositoriesGroup())) {
		subject = mailbox.Repository(key)
	}
	switch {
	case r.Value == nil:
	case subject == mailbox.Agent(key):
		var s *agent.State
		if s, err = agent.Table.Unmarshal(r.Value); err == nil {
			box, waits = s.GetMailbox(), agent.Live(s) && s.GetMember().GetHost() == h.config.Name
		}
	default:
		var s *repository.State
		if s, err = repository.Table.Unmarshal(r.Value); err == nil {
			box, waits = s.GetMailbox(), repository.HasOpenActions(s, h.config.Name)
		}
	}
	if err != nil {
		h.config.Logger.Error("host cannot read a row; it is skipped", zap.String("subject", subject), zap.Error(err))
		return
	}
	h.out.heard(subject, box.GetHeard()[h.rows.from])
	if h.rows.see(subject, box, waits) {
		h.stopped(ErrReplaced)
	}
}

const (
	// updateRate is how many bytes of updates an agent may have written in a second, after the first updateBurst.
	updateRate, updateBurst = 2 << 20, 2 << 20
	// maxUnheard is how many bytes of updates may be on the topic that the agent's row has not applied.
	maxUnheard = 2 << 20
	// unheardFor is how long the host waits for the row. A row that was deleted, or cannot be decoded, applies nothing.
	unheardFor = 30 * time.Second
)

// share is an agent's share of what all agents of a partition have in common: the groups, the topics and their readers. The input
// topic is read in order, so what one agent is ahead of its row delays the agents of the same partition.
type share struct {
	paid    time.Time // when what was written would have been written at updateRate
	heard   int64     // the last record that the row has applied; 0 if it is not known to have applied any
	unheard []ahead
	bytes   int // of unheard
	moved   chan struct{}
}

// ahead is a record with updates that the row has not applied.
type ahead struct {
	number int64
	size   int
}

// admit waits until the agent may write updates of a size, the host hurries to its end, or nothing is written any more.
func (o *outbox) admit(subject string, size int) {
	for {
		o.mu.Lock()
		s := o.share(subject)
		full := s.bytes > 0 && s.bytes+size > maxUnheard
		wait := s.spend(time.Now(), size, full)
		moved := s.moved
		o.mu.Unlock()
		if wait <= 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-moved:
		case <-timer.C:
			if full {
				o.heard(subject, 0)
			}
		case <-o.hurried:
		case <-o.ctx.Done():
		}
		timer.Stop()
		if o.ends() {
			return
		}
	}
}

// ends reports whether the host ends.
func (o *outbox) ends() bool {
	select {
	case <-o.hurried:
		return true
	default:
		return o.ctx.Err() != nil
	}
}

// share returns the share of a subject. The caller holds the lock.
func (o *outbox) share(subject string) *share {
	s := o.shares[subject]
	if o.shares == nil {
		o.shares = map[string]*share{}
	}
	if s == nil {
		s = &share{moved: make(chan struct{})}
		o.shares[subject] = s
	}
	return s
}

// spend returns how long updates of a size have to wait; if not at all, it counts them as written. full is true if they have to wait
// for the row.
func (s *share) spend(now time.Time, size int, full bool) (wait time.Duration) {
	if full {
		return unheardFor
	}
	paid := s.paid
	if paid.Before(now) {
		paid = now
	}
	paid = paid.Add(timeOf(size))
	if wait = paid.Sub(now) - timeOf(updateBurst); wait <= 0 {
		s.paid = paid
	}
	return wait
}

func timeOf(size int) time.Duration { return time.Duration(size) * time.Second / updateRate }

// sent notes that a record is on the topic. The share ends with the process.
func (o *outbox) sent(subject string, number int64, it item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch it.body.(type) {
	case crewbody.Updates:
		if s := o.share(subject); s.heard != 0 && number > s.heard {
			s.unheard, s.bytes = append(s.unheard, ahead{number, it.size}), s.bytes+it.size
		}
	case crewbody.Exited:
		delete(o.shares, subject)
	}
}

// heard notes the last record that a row has applied, 0 for a row that applies none.
func (o *outbox) heard(subject string, number int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.shares[subject]
	if s == nil {
		return
	}
	if s.heard = number; number == 0 {
		s.unheard, s.bytes = nil, 0
	}
	for len(s.unheard) > 0 && s.unheard[0].number <= number {
		s.bytes -= s.unheard[0].size
		s.unheard = s.unheard[1:]
	}
	close(s.moved)
	s.moved = make(chan struct{})
}
