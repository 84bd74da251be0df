package host

import (
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

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
	r.begun = epoch
	for subject := range r.waiting {
		waiting = append(waiting, subject)
	}
	r.waiting = nil
	slices.Sort(waiting)
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
	if !waits {
		delete(r.waiting, subject)
		return false
	}
	if r.waiting == nil {
		r.waiting = map[string]struct{}{}
	}
	r.waiting[subject] = struct{}{}
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
