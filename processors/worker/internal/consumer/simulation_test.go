package consumer

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// simulation is a group of workers on a simulated broker, in a bubble. The seed chooses when processes start, stop, are killed
// or suspended, when wires are cut, and how long calls take.
type simulation struct {
	seed    uint64
	ordered bool
	broker  *simBroker
	running sync.WaitGroup

	mu        sync.Mutex
	processes []*simProcess
	calls     map[at]map[int64][]*simCall
	calm      bool // no faults any more, and no long calls
	story     []string
	failed    string
}

// simCall is a call of the model for a record.
type simCall struct {
	by       *simProcess
	ctx      context.Context // ends when the call is lost
	began    time.Time       // when its record was delivered
	running  bool
	answered bool
	released bool  // it ended without an answer, and its record was given back
	handed   bool  // a rebalance began before it was answered
	within   int32 // the generation in which its record was delivered
}

func (s *simulation) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *simulation) note(format string, args ...any) {
	s.story = append(s.story, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

// fail ends the simulation. The caller holds no lock.
func (s *simulation) fail(format string, args ...any) {
	s.locked(func() { s.failLocked(format, args...) })
}

func (s *simulation) failLocked(format string, args ...any) {
	s.note("FAILED: "+format, args...)
	if s.failed == "" {
		s.failed = fmt.Sprintf(format, args...)
	}
}

// handle is the handler of a process.
func (p *simProcess) handle(ctx context.Context, d source.Delivery) source.Verdict {
	where, offset := at{d.Record.Topic, d.Record.Partition}, d.Record.Offset
	delivered := time.Now()
	p.mu.Lock()
	within := p.broker.generation
	p.mu.Unlock()
	r := p.random(fmt.Sprint(p.name, where, "/", offset), d.Count)
	if r.IntN(4) == 0 { // it waits for a limit
		d.Wait(true)
		p.sleep(ctx, time.Duration(r.IntN(int(3*time.Second))))
		d.Wait(false)
	}
	p.unfrozen()
	d.Confirm(ctx)
	if ctx.Err() != nil || p.work.Err() != nil {
		return source.Released
	}
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return source.Released
	}
	c := p.begin(ctx, where, offset, delivered, within, d.Repeated)
	calm := p.calm
	p.mu.Unlock()
	length := 20 + r.IntN(400)
	if !calm && r.IntN(6) == 0 {
		length = r.IntN(12_000)
	}
	p.sleep(ctx, time.Duration(length)*time.Millisecond+time.Duration(r.IntN(1_000_000)))
	p.unfrozen()
	for p.work.Err() == nil && ctx.Err() == nil && p.request(func() error { return nil }) != nil {
		p.sleep(ctx, 100*time.Millisecond) // the answer cannot be written
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.running = false
	switch {
	case p.dead:
		return source.Released
	case ctx.Err() != nil:
		small := p.broker.limit < progress.MaxMetadata // then commits leave handovers out
		if !p.fault(c.began) && !small && !p.answered(where, offset) && time.Since(c.began) < simHandover {
			p.failLocked("%s loses %v/%d without a reason: %v", p.name, where, offset, context.Cause(ctx))
		}
		p.note("%s loses %v/%d: %v", p.name, where.id, offset, context.Cause(ctx))
		c.released = true
		return source.Released
	case p.work.Err() != nil:
		c.released = true
		return source.Released
	case r.IntN(12) == 0:
		d.Failed(d.Attempts + 1)
		c.released = true
		p.note("%s fails for %v/%d", p.name, where.id, offset)
		return source.Released
	}
	c.answered, c.handed = true, p.broker.joining || p.broker.generation != c.within
	p.note("%s answers %v/%d", p.name, where.id, offset)
	return source.Settled
}

// sleep waits for d, or until ctx or the process ends.
func (p *simProcess) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-p.work.Done():
	}
}

// setFaulty changes the faults of a process. The caller holds the lock.
func (p *simProcess) setFaulty() {
	if now := p.dead || p.cut || p.flaky || p.thawed != nil; p.faulty && !now {
		p.healthy = time.Now()
		p.faulty = false
	} else {
		p.faulty = now
	}
}

func (p *simProcess) heal() {
	p.cut, p.flaky = false, false
	if p.thawed != nil {
		close(p.thawed)
		p.thawed = nil
	}
	p.setFaulty()
}

// alive returns the processes that were not killed or stopped. The caller holds the lock.
func (s *simulation) alive() (alive []*simProcess) {
	for _, p := range s.processes {
		if !p.dead && p.ctx.Err() == nil {
			alive = append(alive, p)
		}
	}
	return alive
}

// disturb lets something happen.
func (s *simulation) disturb(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.random("disturb", n)
	alive := s.alive()
	s.broker.put(int32(r.IntN(len(s.broker.ends))), r.IntN(4))
	if len(alive) == 0 || len(alive) < 4 && r.IntN(4) == 0 {
		s.note("start %s", s.start().name)
		return
	}
	p := alive[r.IntN(len(alive))]
	until := time.Duration(r.IntN(int(7 * time.Second)))
	switch r.IntN(7) {
	case 0:
		s.note("stop %s", p.name)
		p.stop()
		return
	case 1:
		s.note("kill %s", p.name)
		p.heal()
		p.dead = true
		p.setFaulty()
		p.stop()
		return
	case 2:
		if p.thawed == nil {
			s.note("suspend %s for %s", p.name, until)
			p.thawed = make(chan struct{})
		}
	case 3:
		s.note("cut %s for %s", p.name, until)
		p.cut = true
	case 4:
		s.note("flaky %s for %s", p.name, until)
		p.flaky = true
	default:
		return
	}
	p.setFaulty()
	s.running.Go(func() {
		time.Sleep(until)
		s.locked(func() {
			if !p.dead {
				s.note("heal %s", p.name)
				p.heal()
			}
		})
	})
}

// done reports whether everything is answered and committed.
func (s *simulation) done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, end := range s.broker.ends {
		if end > 0 && s.broker.commits[at{simTopic, int32(p)}].Offset != end {
			return false
		}
	}
	return true
}

// simulate runs one simulation and returns what was wrong, with its story.
func simulate(t *testing.T, seed uint64) (failure string, story []string) {
	synctest.Test(t, func(*testing.T) {
		s := &simulation{seed: seed, calls: map[at]map[int64][]*simCall{}}
		r := s.random("world", 0)
		s.ordered = r.IntN(3) == 0
		s.broker = &simBroker{
			simulation: s, ends: make([]int64, 1+r.IntN(5)), appended: make(chan struct{}), commits: map[at]progress.Commit{},
			limit: progress.MaxMetadata, members: map[string]*simMember{}, owners: map[int32]string{},
		}
		if r.IntN(8) == 0 {
			s.broker.limit = 120
		}
		s.locked(func() {
			for p := range s.broker.ends {
				s.broker.put(int32(p), 1+r.IntN(12)) // an empty partition has no commit that could carry notes
			}
			for range 1 + r.IntN(3) {
				s.start()
			}
		})
		for n := range 4 + r.IntN(20) {
			time.Sleep(time.Duration(r.IntN(int(3 * time.Second))))
			s.disturb(n)
			s.judgeDoubles()
		}
		s.locked(func() {
			s.note("the faults end")
			s.calm = true
			for _, p := range s.alive() {
				p.heal()
			}
			if len(s.alive()) == 0 {
				s.start()
			}
		})
		// The longest call, after its handover, after a rebalance that waited for a dead member.
		for limit := time.Now().Add(time.Minute); !s.done() && s.failed == "" && time.Now().Before(limit); {
			time.Sleep(time.Second)
			s.judgeDoubles()
		}
		if !s.done() && s.failed == "" {
			s.fail("not everything is answered and committed: ends %v, commits %v", s.broker.ends, s.broker.commits)
		}
		s.locked(func() {
			for _, p := range s.processes {
				p.heal()
				p.stop()
			}
		})
		s.running.Wait()
		failure, story = s.failed, s.story
	})
	return failure, story
}

// No record is lost, whatever happens to the workers of a group: an offset is committed only when all records before it have
// their answers. A call is made again only after a crash, a fault of its process's connections, or a handover that was too short.
func TestSimulatedGroupsLoseNothingAndRepeatOnlyAfterFaults(t *testing.T) {
	seeds := func(from, to uint64) (all []uint64) {
		for seed := from; seed < to; seed++ {
			all = append(all, seed)
		}
		return all
	}
	chosen := append(seeds(0, 200), 9587, 12689, 16757, 32041) // calls in a rebalance that ended without a suspended member
	if set := os.Getenv("TURNTABLE_GROUPS"); set != "" {
		first, last, some := strings.Cut(set, "-")
		n, err := strconv.ParseUint(first, 10, 64)
		require.NoError(t, err)
		from, to := uint64(0), n
		if some {
			from = n
			to, err = strconv.ParseUint(last, 10, 64)
			require.NoError(t, err)
			to++
		}
		chosen = seeds(from, to)
	}
	for _, seed := range chosen {
		if failure, story := simulate(t, seed); failure != "" {
			t.Errorf("seed %d: %s\n%s", seed, failure, strings.Join(story, "\n"))
			return
		}
	}
}
