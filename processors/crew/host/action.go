package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/git"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// onAction does the action of a record. Those of a row come in order. It does not wait for agents.
func (h *Host) onAction(ctx context.Context, r processors.Inbound) {
	if r.Value == nil {
		return
	}
	d := h.catalog.CrewActions.Codec().Unmarshal(r.Value)
	if d.Err != nil {
		h.config.Logger.Error("host cannot read an action; it is skipped", zap.Int32("partition", r.Partition),
			zap.Int64("offset", r.Offset), zap.Error(d.Err))
		return
	}
	a := d.Value
	if a.Host == h.config.Name && a.Kind == (crewbody.HostClaim{}).Kind() {
		if h.claims.read(a) {
			h.stopped(ErrReplaced)
		}
		return
	}
	select {
	case <-h.claims.written:
	case <-h.ready:
	case <-ctx.Done():
		return
	}
	h.acting.Lock()
	defer h.acting.Unlock()
	if !h.begun { // the host's claim may be behind this action
		h.held = append(h.held, a)
		return
	}
	h.act(ctx, a)
}

// act does an action. acting is locked.
func (h *Host) act(ctx context.Context, a topics.CrewAction) {
	switch {
	case a.Host != h.config.Name:
	case a.Epoch > h.epoch:
		h.stopped(ErrReplaced)
	case a.Epoch != 0 && a.Epoch < h.epoch:
		h.tellStarted(a.Subject) // the row does not know yet
	case h.isNew(a.ActionID):
		if err := h.do(ctx, a); err != nil {
			h.config.Logger.Error("host cannot do an action; it is skipped", zap.String("action", a.ActionID),
				zap.String("kind", a.Kind), zap.Error(err))
		}
	}
}

// isNew reports whether an action was not done before, and remembers it.
func (h *Host) isNew(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known.Contains(id) {
		return false
	}
	h.known.Add(id, struct{}{})
	return true
}

func (h *Host) do(ctx context.Context, a topics.CrewAction) error {
	switch a.Kind {
	case crewbody.Start{}.Kind():
		return with(a, func(c crewbody.Start) { h.start(a.ActionID, c) })
	case crewbody.Send{}.Kind():
		return with(a, func(c crewbody.Send) { h.of(c.AgentID, c.Run, func(r *run) { r.prompt(c) }) })
	case crewbody.Cancel{}.Kind():
		return with(a, func(c crewbody.Cancel) { h.of(c.AgentID, c.Run, func(r *run) { r.cancel(c) }) })
	case crewbody.Answer{}.Kind():
		return with(a, func(c crewbody.Answer) { h.of(c.AgentID, c.Run, func(r *run) { r.asks.decide(c) }) })
	case crewbody.Stop{}.Kind():
		return with(a, func(c crewbody.Stop) { h.current(c.AgentID, c.Run, func(r *run) { r.stop(stopReason{}) }) })
	case crewbody.Commit{}.Kind():
		return with(a, func(c crewbody.Commit) {
			h.runGit(ctx, a, c.Cwd, func(ctx context.Context) crewbody.Receipt { return git.Commit(ctx, c, a.ActionID) })
		})
	case crewbody.Dirty{}.Kind():
		return with(a, func(c crewbody.Dirty) {
			h.runGit(ctx, a, c.Cwd, func(ctx context.Context) crewbody.Receipt { return git.Dirty(ctx, c, a.ActionID) })
		})
	default:
		return fmt.Errorf("host: unknown kind of action")
	}
}

func with[T crewbody.Body](a topics.CrewAction, do func(T)) error {
	body, err := crewbody.Decode[T](a.Body)
	if err == nil {
		do(body)
	}
	return err
}

// of passes the run to do, if it is the agent's current one and has a process. A run that has ended has said so.
func (h *Host) of(agent, id string, do func(*run)) {
	h.current(agent, id, func(r *run) {
		if r.spawned.Load() {
			do(r)
		}
	})
}

func (h *Host) current(agent, id string, do func(*run)) {
	h.mu.Lock()
	r := h.runs[agent]
	h.mu.Unlock()
	if r != nil && r.id == id {
		do(r)
	}
}

// start starts a process for an agent, after its earlier one has ended.
func (h *Host) start(id string, c crewbody.Start) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return
	}
	var before <-chan struct{}
	if old := h.runs[c.AgentID]; old != nil {
		old.stop(stopReason{})
		before = old.done
	}
	r := newRun(h, id, c)
	if before == nil && len(h.runs) >= h.config.MaxAgents {
		h.working.Go(func() {
			r.failed(crewbody.StageProcess, false, fmt.Errorf("the host runs %d agents, which is its limit", h.config.MaxAgents))
			r.end()
		})
		return
	}
	h.runs[c.AgentID] = r
	h.working.Go(func() {
		r.live(before)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.runs[c.AgentID] == r {
			delete(h.runs, c.AgentID)
		}
	})
}

// runGit runs a git action beside others, and sends its receipt to the row that waits for it. A host that is stopped before
// sends none: the next run of the host is asked again.
func (h *Host) runGit(ctx context.Context, a topics.CrewAction, cwd string, do func(context.Context) crewbody.Receipt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return
	}
	h.working.Go(func() {
		select {
		case h.git <- struct{}{}:
		case <-ctx.Done():
			return
		}
		defer func() { <-h.git }()
		receipt := crewbody.Receipt{ActionID: a.ActionID, Failed: true}
		if _, err := h.config.workDir(cwd); err != nil {
			receipt.Error = err.Error()
		} else if receipt = do(ctx); receipt.Failed && ctx.Err() != nil {
			return
		}
		if err := h.out.put(h.life, a.Subject, item{body: receipt}); err != nil {
			h.config.Logger.Warn("host is stopped before a receipt was written", zap.String("action", a.ActionID))
		}
	})
}

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
		warning := retry.NewWarning(h.config.Logger, nil, "host cannot say that it begins, retrying", "host has said that it begins")
		err = retry.Until(ctx, func() error { return to.Publish(ctx, out) }, func(err error) { warning.Failed(err) })
		if err == nil {
			warning.Over()
		}
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
