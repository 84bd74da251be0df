package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
)

// errNoCommit says that the brokers have not committed a transaction in its timeout. The restart decides its outcome.
var errNoCommit = errors.New("instance: the transaction is not committed")

const (
	// cutsEvery is how often the cuts are checked.
	cutsEvery = time.Second
	// slowCut is how long a cut or the records in flight may take before that is logged. It is logged again after as long
	// as repeatWait.
	slowCut    = 5 * time.Second
	repeatWait = 15 * time.Second
)

// watchCuts logs that a cut, the records in flight or a join take long, until ctx ends: a processor that waits says for what.
// Under exactly once it fails the run when a transaction has not been committed in its timeout, because the broker has aborted
// it by then; Sarama would ask for many minutes.
func (r *run) watchCuts(ctx context.Context, every time.Duration) {
	limit := r.instance.transactionTimeout()
	tick := time.NewTicker(min(every, limit/4))
	defer tick.Stop()
	long := min(slowCut, limit/2)
	next := long
	session := r.client.Config().Consumer.Group.Session.Timeout
	joining := time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		var w cut.Wait
		switch g := r.currentGroup(); {
		case g == nil:
			joining = time.Now()
		case g.Current() != nil:
			joining = time.Time{}
			w = g.Current().Waiting()
		case joining.IsZero():
			joining = time.Now()
		case time.Since(joining) >= session/5:
			r.logJoin(session)
			joining = time.Now().Add(repeatWait)
		}
		switch {
		case w.For < long:
			next = long
		case w.For >= next:
			next = w.For + repeatWait
			r.logWait(w)
		}
		if w.Commit && w.For >= limit && r.instance.cfg.Guarantee == ExactlyOnce {
			r.broken(fmt.Errorf("%w: group %s, %s", errNoCommit, r.instance.group, w.For.Round(time.Second)))
			r.giveUpTransaction()
		}
	}
}

func (r *run) logWait(w cut.Wait) {
	what := "records in flight are not done: their callbacks have not returned, or the brokers do not acknowledge their outputs"
	if w.Commit {
		what = "a cut is not committed: the brokers do not answer"
	}
	r.instance.cfg.Logger.Warn(what, zap.Duration("for", w.For.Round(time.Second)), zap.Int("records", w.Records))
}

// logJoin says why the group takes long to give this member its partitions.
func (r *run) logJoin(session time.Duration) {
	why := "waiting for the group: its coordinator waits until all members have joined again, or the session of a killed one times out"
	if r.instance.cfg.InstanceID == "" {
		why += "; with WithInstance, a process that restarts takes over its own membership at once"
	}
	r.instance.cfg.Logger.Warn(why, zap.Duration("session_timeout", session))
}
