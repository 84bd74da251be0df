package instance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/store"
	"github.com/turntable-streams/turntable/topics"
)

// supervise restarts the instance after each failure until ctx ends, it is killed, the restart limit is reached or a
// failure needs an operator.
func (inst *Instance) supervise(ctx context.Context) error {
	wait := &backoff.ExponentialBackOff{
		InitialInterval: inst.cfg.Restart.Initial, MaxInterval: inst.cfg.Restart.Max,
		Multiplier: 2, RandomizationFactor: 0.2,
	}
	wait.Reset()
	restarts := 0
	for {
		started := time.Now()
		inst.health.enter(Recovering)
		inst.progressed.Store(false)
		err := inst.runOnce(ctx)
		switch {
		case err == nil:
			return nil // ctx has ended and everything is drained
		case inst.wasKilled():
			return cut.ErrKilled
		case errors.Is(err, cut.ErrFenced):
			return err // a restart would fence the newer process, and the two would fence each other indefinitely
		case hopeless(err):
			return err
		}
		// A run that cannot write its store commits records nevertheless, and so would the next one, indefinitely.
		progressed := inst.progressed.Load() && !errors.Is(err, cut.ErrStore)
		if progressed || time.Since(started) >= inst.cfg.Restart.Reset {
			restarts = 0
			wait.Reset()
		}
		if !inst.outage(err) {
			restarts++
		}
		inst.health.failed(err, restarts)
		if inst.cfg.Restart.Limit >= 0 && restarts > inst.cfg.Restart.Limit {
			inst.cfg.Logger.Error("giving up", zap.Int("restarts", restarts-1), zap.Error(err))
			return fmt.Errorf("%w: group %s, %d restarts: %w", ErrGaveUp, inst.group, restarts-1, err)
		}
		d := wait.NextBackOff()
		inst.health.enter(Degraded)
		inst.warning.Failed(err, zap.Int("restart", restarts), zap.Duration("wait", d))
		if inst.cfg.Hooks.Restart != nil {
			inst.cfg.Hooks.Restart(err, d)
		}
		if ctx.Err() != nil || !inst.pause(ctx, d) {
			if inst.wasKilled() {
				return cut.ErrKilled
			}
			return err // stopped while it was down: the failed run was not drained
		}
	}
}

// outage reports whether an instance that has been Running can reach no broker. Such an outage is transient and does not
// count as a failure of the instance. If the instance has never been Running, the addresses may be wrong. Brokers that
// reject the authentication, or whose certificates are not trusted, are reachable.
func (inst *Instance) outage(err error) bool {
	if !inst.health.ran() || !errors.Is(err, errUnreachable) || !errors.Is(err, sarama.ErrOutOfBrokers) {
		return false
	}
	var untrusted *tls.CertificateVerificationError
	return !errors.Is(err, sarama.ErrSASLAuthenticationFailed) && !errors.As(err, &untrusted)
}

// hopeless reports whether an error persists until an operator resolves it, so that a restart is useless.
func hopeless(err error) bool {
	for _, e := range []error{
		ErrShorter, ErrRecreated, ErrOldBrokers, ErrPartitions, topics.ErrArchive,
		store.ErrDamaged, store.ErrNewerFormat,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// pause waits for d. It returns false if ctx ends or the instance is killed first.
func (inst *Instance) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	case <-inst.kill:
		return false
	}
}
