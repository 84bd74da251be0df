package instance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/recovery"
	"github.com/turntable-streams/turntable/internal/store"
	"github.com/turntable-streams/turntable/internal/timer"
)

var (
	// ErrRan is returned by a second Run.
	ErrRan = errors.New("unit: Run was already called")
	// ErrGaveUp says that the restart limit is reached; it wraps the last failure.
	ErrGaveUp = errors.New("unit: gave up, restart limit reached")
	// ErrNotRunning is returned by methods that need a running unit.
	ErrNotRunning = errors.New("unit: not running")

	errUnreachable = errors.New("no client")
)

// Unit is one instance of a group. It is safe for concurrent use.
type Unit struct {
	cfg    Config
	group  string
	timed  timer.Timed // nil for a group without deadlines
	health health
	// silence is shared by the connections of Goka's clients. It times out brokers that hang.
	silence *kafka.Silence

	kill   chan struct{}
	killed sync.Once

	mu   sync.Mutex
	ran  bool
	cur  *run       // the running attempt
	last cut.Member // of the attempt before

	// State that an attempt passes to the next one.
	seen     bool        // the start offsets of new inputs were committed
	inputs   inputs      // as they were then
	relist   bool        // the metadata of committed offsets is out of date
	unlisted atomic.Bool // the brokers reject metadata of this size
}

// New returns a unit that is not running. It sends no requests. Its error wraps ErrConfig and joins every reason why the
// configuration cannot be used.
func New(cfg Config) (*Unit, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	u := &Unit{cfg: cfg, group: string(cfg.Graph.Group()), kill: make(chan struct{})}
	u.cfg.Graph, u.timed = timer.WithEdge(cfg.Graph)
	session := cfg.Sarama().Consumer.Group.Session.Timeout
	u.silence = kafka.NewSilence(session, session)
	u.health.now, u.health.hook = cfg.Clock.Now, cfg.Hooks.State
	u.health.since = cfg.Clock.Now()
	u.cfg.Logger = cfg.Logger.With(zap.String("group", u.group))
	return u, nil
}

// Run joins the group and blocks until ctx ends. Then it drains the records in flight, commits the last cut and returns
// nil. A failure stops the unit as a whole and restarts it after a growing wait. Run returns an error if the restart limit
// is reached (ErrGaveUp), another process has joined with the instance id (cut.ErrFenced), another unit of the group uses
// the storage directory (store.ErrInUse), the unit was killed (cut.ErrKilled), ctx ends while the unit waits for a
// restart, or a failure needs an operator: damaged or recreated topics and stores, brokers that are too old, wrong
// partition counts. Run can be called once; after that it returns ErrRan.
func (u *Unit) Run(ctx context.Context) error {
	u.mu.Lock()
	ran := u.ran
	u.ran = true
	u.mu.Unlock()
	if ran {
		return ErrRan
	}
	defer u.health.enter(Stopped)
	release, err := u.holdDirectory()
	if err == nil {
		defer release()
		err = u.supervise(ctx)
	}
	if err != nil {
		u.health.failed(err, u.health.get().Restarts)
		return err
	}
	return u.leave()
}

func (u *Unit) supervise(ctx context.Context) error {
	wait := &backoff.ExponentialBackOff{
		InitialInterval: u.cfg.Restart.Initial, MaxInterval: u.cfg.Restart.Max,
		Multiplier: 2, RandomizationFactor: 0.2,
	}
	wait.Reset()
	restarts := 0
	for {
		started := time.Now()
		u.health.enter(Recovering)
		err := u.attempt(ctx)
		switch {
		case err == nil:
			return nil // ctx has ended and everything is drained
		case u.wasKilled():
			return cut.ErrKilled
		case errors.Is(err, cut.ErrFenced):
			return err // a restart would fence the newer process, and the two would fence each other indefinitely
		case hopeless(err):
			return err
		}
		if time.Since(started) >= u.cfg.Restart.Reset {
			restarts = 0
			wait.Reset()
		}
		if !u.outage(err) {
			restarts++
		}
		u.health.failed(err, restarts)
		if u.cfg.Restart.Limit >= 0 && restarts > u.cfg.Restart.Limit {
			u.cfg.Logger.Error("giving up", zap.Int("restarts", restarts-1), zap.Error(err))
			return fmt.Errorf("%w: group %s, %d restarts: %w", ErrGaveUp, u.group, restarts-1, err)
		}
		d := wait.NextBackOff()
		u.health.enter(Degraded)
		u.cfg.Logger.Warn("the unit failed and restarts after the wait", zap.Int("restart", restarts), zap.Duration("wait", d),
			zap.Error(err))
		if u.cfg.Hooks.Restart != nil {
			u.cfg.Hooks.Restart(err, d)
		}
		if ctx.Err() != nil || !u.pause(ctx, d) {
			if u.wasKilled() {
				return cut.ErrKilled
			}
			return err // stopped while it was down: the failed attempt was not drained
		}
	}
}

// outage reports whether a unit that has been Running can reach no broker. Such an outage is transient and does not count
// as a failure of the unit. If the unit has never been Running, the addresses may be wrong. Brokers that reject the
// authentication, or whose certificates are not trusted, are reachable.
func (u *Unit) outage(err error) bool {
	if !u.health.ran() || !errors.Is(err, errUnreachable) || !errors.Is(err, sarama.ErrOutOfBrokers) {
		return false
	}
	var untrusted *tls.CertificateVerificationError
	return !errors.Is(err, sarama.ErrSASLAuthenticationFailed) && !errors.As(err, &untrusted)
}

// hopeless reports whether an error persists until an operator resolves it, so that a restart is useless.
func hopeless(err error) bool {
	for _, e := range []error{
		recovery.ErrShorter, recovery.ErrRecreated, recovery.ErrOldBrokers, recovery.ErrPartitions,
		store.ErrDamaged, store.ErrNewerFormat,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (u *Unit) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	case <-u.kill:
		return false
	}
}

// Kill stops the unit without draining or committing anything; Run returns cut.ErrKilled soon after. The next owner of the
// partitions handles the records in flight again.
func (u *Unit) Kill() { u.killed.Do(func() { close(u.kill) }) }

func (u *Unit) wasKilled() bool {
	select {
	case <-u.kill:
		return true
	default:
		return false
	}
}

// leave removes a static member from its group, so that other members take its partitions at once: Sarama sends no
// LeaveGroup request for static members.
func (u *Unit) leave() error {
	if u.cfg.Instance == "" || u.cfg.KeepMembership {
		return nil
	}
	admin, err := sarama.NewClusterAdmin(u.cfg.Brokers, u.cfg.Sarama())
	if err == nil {
		_, err = admin.RemoveMemberFromConsumerGroup(u.group, []string{u.cfg.Instance})
		err = errors.Join(err, admin.Close())
	}
	if err != nil {
		// Everything is committed: the other members only wait for the session timeout.
		u.cfg.Logger.Warn("the static member stays in the group until its session times out", zap.Error(err))
	}
	return nil
}

// Health returns a snapshot of the unit's state.
func (u *Unit) Health() Health {
	h := u.health.get()
	r := u.current()
	if r == nil {
		return h
	}
	if g := r.currentGroup(); g != nil {
		h.Lag = g.Lag()
	}
	if h.State != Running {
		return h
	}
	if err := r.failing(); err != nil {
		h.State, h.Err = Degraded, err
	}
	if !r.lease.Held() {
		h.State = Degraded
	}
	if n, why := r.uncommitted(); h.State == Running && n >= tolerableCuts {
		h.State, h.Err = Degraded, why
	}
	return h
}

// Get reads and decodes the current row of a key of the group table, uncommitted changes of the open cut included. It
// returns nil if there is none, ErrNotRunning if the key's partition is not recovered here, and an error that wraps
// ErrConfig if the group has no table.
func (u *Unit) Get(key string) (any, error) {
	r := u.current()
	if r == nil {
		return nil, ErrNotRunning
	}
	table := u.cfg.Graph.GroupTable()
	if table == nil {
		return nil, fmt.Errorf("%w: group %s has no table", ErrConfig, u.group)
	}
	// Goka's own Get dereferences nil while a table is recovering.
	raw, err := r.tables.get(codec.PartitionOf(key, r.partitions.Load()), key)
	if err != nil || raw == nil {
		return nil, err
	}
	return table.Codec().Decode(raw)
}

// Visit calls the graph's visitor of that name for every row of the partitions that this instance owns, and blocks until
// all are visited. Its effects are part of a cut, and no cut is made while it runs: use it only for tables that can be
// visited in less than the drain limit. One visit runs at a time. ctx is checked only before the visit begins; the end of
// the session ends the visit with an error.
func (u *Unit) Visit(ctx context.Context, name string, meta any) error {
	r := u.current()
	if r == nil {
		return ErrNotRunning
	}
	return r.visit(ctx, name, meta)
}

func (u *Unit) current() *run {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.cur
}
