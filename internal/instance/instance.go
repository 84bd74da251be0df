package instance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/internal/store"
)

var (
	// ErrRan is returned by a second Run.
	ErrRan = errors.New("instance: Run was already called")
	// ErrGaveUp says that the restart limit is reached; it wraps the last failure.
	ErrGaveUp = errors.New("instance: gave up, restart limit reached")
	// ErrNotRunning is returned by methods that need a running instance.
	ErrNotRunning = errors.New("instance: not running")

	errUnreachable = errors.New("no client")
)

// Instance is one instance of a group. It is safe for concurrent use.
type Instance struct {
	cfg    Config
	group  string
	timed  store.Timed // nil for a group without deadlines
	health health
	// silence is shared by the connections of Goka's clients. It times out brokers that hang.
	silence *kafka.Silence

	warning *retry.Warning // while it fails
	kill    chan struct{}
	killed  sync.Once

	mu   sync.Mutex
	ran  bool
	cur  *run       // the current run; nil between runs
	last cut.Member // of the run before

	// State that a run passes to the next one.
	seen     bool        // the start offsets of new inputs were committed
	inputs   inputs      // as they were then
	relist   bool        // the metadata of committed offsets is out of date
	unlisted atomic.Bool // the brokers reject metadata of this size
	// progressed says that the current run has committed records.
	progressed atomic.Bool
	attempts   *cut.Attempts
}

// New returns an instance that is not running. It sends no requests. Its error wraps ErrConfig and joins every reason
// why the configuration cannot be used.
func New(cfg Config) (*Instance, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	inst := &Instance{cfg: cfg, group: string(cfg.Graph.Group()), kill: make(chan struct{}), attempts: cut.NewAttempts()}
	inst.cfg.Graph, inst.timed = store.WithTimerEdge(cfg.Graph)
	session := cfg.Sarama().Consumer.Group.Session.Timeout
	inst.silence = kafka.NewSilence(session, session)
	inst.health.now, inst.health.hook = cfg.Clock.Now, cfg.Hooks.State
	inst.health.since = cfg.Clock.Now()
	inst.cfg.Logger = cfg.Logger.With(zap.String("group", inst.group))
	inst.warning = retry.NewWarning(inst.cfg.Logger, cfg.Clock, "the instance failed and restarts after the wait", "the instance runs again")
	return inst, nil
}

// Run joins the group and blocks until ctx ends. Then it drains the records in flight, commits the last cut and returns
// nil. A failure stops the instance as a whole and restarts it after a growing wait. Run returns an error if the restart
// limit is reached (ErrGaveUp), another process has joined with the instance id (cut.ErrFenced), another instance of the
// group uses the storage directory (store.ErrInUse), the instance was killed (cut.ErrKilled), ctx ends while the
// instance waits for a restart, or a failure needs an operator: damaged or recreated topics and stores, brokers that are
// too old, wrong partition counts. Run can be called once; after that it returns ErrRan.
func (inst *Instance) Run(ctx context.Context) error {
	inst.mu.Lock()
	ran := inst.ran
	inst.ran = true
	inst.mu.Unlock()
	if ran {
		return ErrRan
	}
	defer inst.health.enter(Stopped)
	release, err := inst.holdDirectory()
	if err == nil {
		defer release()
		err = inst.prepare(ctx)
	}
	if err == nil && ctx.Err() != nil {
		return nil // stopped before it was a member
	}
	if err == nil {
		err = inst.supervise(ctx)
	}
	if err != nil {
		inst.health.failed(err, inst.health.get().Restarts)
		return err
	}
	return inst.leave()
}

// prepare calls Config.Prepare. It returns nil if ctx has ended meanwhile.
func (inst *Instance) prepare(ctx context.Context) error {
	if inst.cfg.Prepare == nil {
		return nil
	}
	inst.health.enter(Recovering)
	preparing, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-inst.kill:
			cancel()
		case <-preparing.Done():
		}
	}()
	err := inst.cfg.Prepare(preparing, inst.health.note)
	switch {
	case inst.wasKilled():
		return cut.ErrKilled
	case ctx.Err() != nil:
		return nil
	}
	return err
}

// Kill stops the instance without draining or committing anything; Run returns cut.ErrKilled soon after. The next owner
// of the partitions handles the records in flight again.
func (inst *Instance) Kill() { inst.killed.Do(func() { close(inst.kill) }) }

func (inst *Instance) wasKilled() bool {
	select {
	case <-inst.kill:
		return true
	default:
		return false
	}
}

// leave removes a static member from its group, so that other members take its partitions at once: Sarama sends no
// LeaveGroup request for static members.
func (inst *Instance) leave() error {
	if inst.cfg.InstanceID == "" || inst.cfg.KeepMembership {
		return nil
	}
	admin, err := sarama.NewClusterAdmin(inst.cfg.Brokers, inst.cfg.Sarama())
	if err == nil {
		_, err = admin.RemoveMemberFromConsumerGroup(inst.group, []string{inst.cfg.InstanceID})
		err = errors.Join(err, admin.Close())
	}
	if err != nil {
		// Everything is committed: the other members only wait for the session timeout.
		inst.cfg.Logger.Warn("the static member stays in the group until its session times out", zap.Error(err))
	}
	return nil
}

// Health returns a snapshot of the instance's state.
func (inst *Instance) Health() Health {
	h := inst.health.get()
	r := inst.current()
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
func (inst *Instance) Get(key string) (any, error) {
	r := inst.current()
	if r == nil {
		return nil, ErrNotRunning
	}
	table := inst.cfg.Graph.GroupTable()
	if table == nil {
		return nil, fmt.Errorf("%w: group %s has no table", ErrConfig, inst.group)
	}
	// Goka's own Get dereferences nil while a table is recovering.
	raw, err := r.tables.get(codec.PartitionOf(key, r.partitions.Load()), key)
	if err != nil || raw == nil {
		return nil, err
	}
	return table.Codec().Decode(raw)
}

func (inst *Instance) current() *run {
	inst.mu.Lock()
	defer inst.mu.Unlock()
	return inst.cur
}
