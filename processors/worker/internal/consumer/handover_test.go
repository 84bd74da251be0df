package consumer

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// claimed returns a claim of a partition in which record 0 was read and may be started.
func claimed(handle source.Handle, commit progress.Commit) (*claim, *task) {
	m := &member{
		config: Config{Config: source.Config{Clock: clock.System()}}.withDefaults(), handle: handle, slots: make(chan struct{}, 2),
		wake: make(chan struct{}, 1), partitions: map[at]*partition{}, lease: cut.NewLease(time.Hour, cut.Now),
	}
	m.lease.Renew(cut.Now())
	p := m.partition(at{"in", 0})
	p.state.Claim(commit, time.Now())
	p.state.Read(0)
	saved, _ := p.state.Checkpoint()
	p.state.Acknowledge(saved)
	t := &task{head: true}
	c := &claim{partition: p, ctx: context.Background(), space: make(chan struct{}, 1), tasks: map[int64]*task{0: t}, busy: map[string][]*task{}}
	c.space <- struct{}{}
	p.claim = c
	return c, t
}

// handedOver is a commit in which record 0 runs in another member.
func handedOver(until time.Time) progress.Commit {
	open := progress.Open{Offset: 0, Attempts: 1, Until: until, Runner: progress.RunnerOf("other")}
	return progress.Commit{Metadata: progress.Checkpoint{Open: []progress.Open{open}}.Encode(progress.MaxMetadata)}
}

func TestCallOfAnEarlierClaimIsReleasedLikeAFirstDelivery(t *testing.T) {
	require.Equal(t, releasePause, (&task{}).release())
	require.Equal(t, 2*releasePause, (&task{delivered: 2}).release())
}

// The tick that ends a deferral and the reader that meets the record can both wait for a slot with it.
func TestRecordThatTwoGoroutinesProceedWithIsCalledForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		c, record := claimed(func(context.Context, source.Delivery) source.Verdict { calls.Add(1); return source.Settled }, progress.Commit{})
		for range 2 {
			c.member.slots <- struct{}{}
			go c.proceed(record)
		}
		synctest.Wait()
		<-c.member.slots
		<-c.member.slots
		synctest.Wait()
		require.EqualValues(t, 1, calls.Load())
	})
}

func TestDeferralDoesNotEndBeforeNotesAreHeeded(t *testing.T) {
	until := time.UnixMilli(time.Now().Add(time.Hour).UnixMilli())
	c, _ := claimed(nil, handedOver(until))
	p := c.partition
	note := progress.Note{Place: progress.PlaceOf("in", 0), Offset: 0, Until: until}
	p.claim = nil // a rebalance
	p.resolve(nil, []progress.Note{note})
	require.True(t, p.state.Deferred(), "the runner has left, but its note is not heeded yet")
	p.claim = c
	p.resolve(nil, []progress.Note{note})
	require.Equal(t, progress.Skip, p.state.Decide(0, time.Now()))
}

func TestCallsEndWhenTheirMemberHasJoinedAgainAsAnother(t *testing.T) {
	for name, as := range map[string]struct {
		member string
		lost   bool
	}{"the same": {"a", false}, "another": {"b", true}} {
		t.Run(name, func(t *testing.T) {
			c, _ := claimed(nil, progress.Commit{})
			c.state.Start(0)
			ctx, lose := context.WithCancelCause(t.Context())
			c.calls[0] = &call{lose: lose}
			c.end("a")
			c.untold = false // the last commit was stored
			c.joined(progress.RunnerOf(as.member), false, time.Now())
			require.Equal(t, as.lost, ctx.Err() != nil)
		})
	}
}

func TestNoCallBeginsAfterAHandoverThatWasNotStored(t *testing.T) {
	c, _ := claimed(nil, progress.Commit{})
	c.end("a")
	require.True(t, c.member.lease.Held())
	c.endGeneration()
	require.False(t, c.member.lease.Held(), "until the next generation")
}

// lossy is a coordinator that loses the answer to a commit.
type lossy struct {
	coordinator
	sarama.ConsumerGroupSession
	commits []progress.Checkpoint
	stored  progress.Checkpoint
}

func (*lossy) MemberID() string           { return "a" }
func (*lossy) GenerationID() int32        { return 1 }
func (*lossy) Claims() map[string][]int32 { return map[string][]int32{"in": {0}} }

func (l *lossy) commit(_ membership, points map[at]progress.Checkpoint) (map[at]progress.Checkpoint, error) {
	l.commits = append(l.commits, points[at{"in", 0}])
	if len(l.commits) == 1 {
		return nil, errWire
	}
	l.stored = points[at{"in", 0}]
	return points, nil
}

func (l *lossy) fetch(map[string][]int32) (map[at]progress.Commit, error) {
	return map[at]progress.Commit{{"in", 0}: {Offset: l.stored.Next, Metadata: l.stored.Encode(progress.MaxMetadata)}}, nil
}

// A commit whose answer was lost may arrive late and replace newer ones.
func TestLastCommitIsRepeatedWhileAnEarlierOneMayArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := claimed(nil, progress.Commit{})
		m, group := c.member, &lossy{}
		m.config.Client, m.committing = simClient, make(chan struct{}, 1)
		m.group, m.generation, m.status = group, group, &status{}
		c.state.Retry(progress.Now)
		require.ErrorIs(t, m.commit(), errWire)
		require.NoError(t, m.commit())
		commits := 2
		for range int(simSession / time.Second) {
			time.Sleep(time.Second)
			_, _, due := c.tick(time.Now())
			require.True(t, due)
			require.NoError(t, m.commit())
			commits++
		}
		require.Len(t, group.commits, commits, "once more when it cannot arrive any more")
		_, _, due := c.tick(time.Now())
		require.False(t, due)
	})
}

// The next owner does not wait for a call whose handover an older commit has replaced.
func TestCallEndsIfALateCommitHasReplacedItsHandover(t *testing.T) {
	for name, replaced := range map[string]bool{"replaced": true, "stored": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := claimed(nil, progress.Commit{})
				m, group := c.member, &lossy{}
				m.config.Client, m.committing = simClient, make(chan struct{}, 1)
				m.group, m.generation, m.status = group, group, &status{}
				c.state.Start(0)
				ctx, lose := context.WithCancelCause(t.Context())
				c.calls[0] = &call{lose: lose}
				require.ErrorIs(t, m.commit(), errWire)
				c.end("a")
				require.NoError(t, m.commit())
				if replaced {
					group.stored = group.commits[0]
				}
				c.endGeneration()
				require.False(t, m.lease.Held(), "until the next generation")
				s := &session{member: m}
				s.verify(map[at]bool{})
				c.joined(progress.RunnerOf("a"), false, time.Now())
				require.Equal(t, replaced, ctx.Err() != nil)
			})
		})
	}
}

func TestMemberLeavesOnlyWhenItsNotesAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := claimed(nil, progress.Commit{})
		m := c.member
		m.note(progress.Note{Until: time.Now().Add(time.Hour)})
		var left atomic.Bool
		go func() { m.noteSaved(t.Context()); left.Store(true) }()
		time.Sleep(time.Second)
		require.False(t, left.Load())
		m.saveNotes(1)
		time.Sleep(time.Second)
		require.True(t, left.Load())
	})
}

// lateAnswers answers heartbeats: the process reads the first answer after it was suspended for longer than its lease.
type lateAnswers struct {
	coordinator
	sarama.ConsumerGroupSession
	asked int
}

func (*lateAnswers) MemberID() string    { return "a" }
func (*lateAnswers) GenerationID() int32 { return 1 }

func (l *lateAnswers) confirm(_ context.Context, lease *cut.Lease, _ membership) error {
	sent := cut.Now()
	if l.asked++; l.asked == 1 {
		time.Sleep(2 * time.Hour)
	}
	lease.Renew(sent)
	return nil
}

func TestAnswerThatIsReadAfterASuspensionProvesNoMembership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := claimed(nil, progress.Commit{})
		late := &lateAnswers{}
		c.member.group, c.member.generation = late, late
		c.member.lease.Drop()
		require.True(t, c.member.confirm(t.Context()))
		require.Equal(t, 2, late.asked)
	})
}
