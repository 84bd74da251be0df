package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
)

var me = progress.RunnerOf("me")

var noon = time.UnixMilli(1_763_812_800_000)

// owner is a partition that was claimed without a commit and has read records, which it has started.
func owner(t *testing.T, offsets ...int64) *progress.Partition {
	t.Helper()
	p := progress.New(100, handover)
	require.Empty(t, p.Claim(progress.Commit{Offset: -1}, noon))
	for _, offset := range offsets {
		require.Zero(t, p.Read(offset))
		if !p.MayStart(offset) {
			acknowledge(t, p)
		}
		require.True(t, p.MayStart(offset))
		require.Equal(t, progress.Start, p.Decide(offset, noon))
		p.Start(offset)
	}
	return p
}

func acknowledge(t *testing.T, p *progress.Partition) progress.Commit {
	t.Helper()
	c, ok := p.Checkpoint()
	require.True(t, ok)
	p.Acknowledge(c)
	return progress.Commit{Offset: c.Next, Metadata: c.Encode(progress.MaxMetadata)}
}

func TestWindowAdvancesOverSettledRecordsWithoutAGap(t *testing.T) {
	p := owner(t, 3, 4, 9, 10) // 5 to 8 are a transaction's markers
	require.Zero(t, p.Settle(9))
	require.Equal(t, 1, p.Settle(3))
	require.EqualValues(t, 4, acknowledge(t, p).Offset)
	require.Equal(t, 2, p.Settle(4))
	require.EqualValues(t, 10, acknowledge(t, p).Offset)
	require.Equal(t, 1, p.Settle(10))
	require.EqualValues(t, 11, acknowledge(t, p).Offset)
	require.Equal(t, progress.None, p.Urgency())
}

func TestSettledRecordsBeyondASlowOneAreSkippedByTheNextOwner(t *testing.T) {
	p := owner(t, 3, 4, 9, 10)
	p.Settle(4)
	p.Settle(9)
	commit := acknowledge(t, p)
	c, _ := progress.Decode(commit.Offset, commit.Metadata)
	require.Equal(t, []progress.Span{{First: 4, Last: 9}}, c.Done, "no record is between them")

	next := progress.New(100, handover)
	next.Claim(commit, noon)
	for _, step := range []struct {
		offset int64
		action progress.Action
	}{{3, progress.Start}, {4, progress.Skip}, {9, progress.Skip}, {10, progress.Start}, {11, progress.Start}} {
		next.Read(step.offset)
		require.Equal(t, step.action, next.Decide(step.offset, noon), step.offset)
	}
}

func TestRecordIsDeferredForTheHandover(t *testing.T) {
	p := owner(t, 5)
	p.Fail(5, 2)
	p.End(me, noon)
	commit := acknowledge(t, p)

	next := progress.New(100, handover)
	next.Claim(commit, noon)
	next.Read(5)
	require.Equal(t, progress.Defer, next.Decide(5, noon.Add(handover)))
	require.Empty(t, next.Due(noon.Add(handover)))
	require.Equal(t, []int64{5}, p.Expire(noon.Add(handover), false), "the old owner ends its call before")
	require.Equal(t, []int64{5}, next.Due(noon.Add(handover+2*time.Second)))
	attempts, repeated := next.Start(5)
	require.Equal(t, []any{3, true}, []any{attempts, repeated})
}

func TestRecordIsNotDeferredOnceItsRunnerHasLeftTheGroup(t *testing.T) {
	p := owner(t, 5)
	p.End(me, noon)
	next := progress.New(100, handover)
	next.Claim(acknowledge(t, p), noon)
	next.Read(5)
	require.True(t, next.Deferred())
	next.Depart(func(r progress.Runner) bool { return r == me }, noon)
	require.Empty(t, next.Due(noon))
	next.Depart(func(progress.Runner) bool { return false }, noon)
	require.Equal(t, []int64{5}, next.Due(noon))
	require.False(t, next.Deferred())
}

func TestNoteSettlesTheRecordOfItsHandoverOnly(t *testing.T) {
	p := owner(t, 5)
	p.End(me, noon)
	next := progress.New(100, handover)
	next.Claim(acknowledge(t, p), noon)
	next.Read(5)
	until, ok := p.Told(5)
	require.True(t, ok)
	_, ok = next.Confirm(progress.Note{Offset: 5, Until: until.Add(time.Millisecond)})
	require.False(t, ok)
	left, ok := next.Confirm(progress.Note{Offset: 5, Until: until})
	require.True(t, ok)
	require.Equal(t, 1, left)
	require.Equal(t, progress.Skip, next.Decide(5, noon))
	require.EqualValues(t, 6, acknowledge(t, next).Offset)
	_, ok = next.Told(5)
	require.False(t, ok)
}

func TestDeferralIsPassedOnToAThirdOwner(t *testing.T) {
	p := owner(t, 5)
	p.End(me, noon)
	second := progress.New(100, handover)
	second.Claim(acknowledge(t, p), noon)
	second.End(me, noon)
	third := progress.New(100, handover)
	third.Claim(acknowledge(t, second), noon)
	third.Read(5)
	require.Equal(t, progress.Defer, third.Decide(5, noon))
}

func TestOnlyRecordsThatMayHaveBeenStartedAreRepeatedAfterACrash(t *testing.T) {
	p := progress.New(10, handover)
	p.Claim(progress.Commit{Offset: -1}, noon)
	p.Read(0)
	require.False(t, p.MayStart(0))
	require.Equal(t, progress.Now, p.Urgency())
	commit := acknowledge(t, p)
	require.True(t, p.MayStart(10))
	require.False(t, p.MayStart(11), "not reserved")

	next := progress.New(10, handover)
	next.Claim(commit, noon)
	for _, offset := range []int64{0, 10, 11} {
		next.Read(offset)
		_, repeated := next.Start(offset)
		require.Equal(t, offset <= 10, repeated, offset)
	}
}

func TestNothingIsRepeatedAfterAnOrderlyEnd(t *testing.T) {
	p := owner(t, 0, 1)
	p.Read(2)
	p.Settle(0)
	p.Settle(1)
	p.End(me, noon)
	next := progress.New(100, handover)
	next.Claim(acknowledge(t, p), noon)
	next.Read(2)
	_, repeated := next.Start(2)
	require.False(t, repeated)
}

func TestRecordsBelowAForeignCommitsEndAreRepeated(t *testing.T) {
	p := progress.New(100, handover)
	p.Claim(progress.Commit{Offset: 5, Metadata: "host-1", End: 8}, noon)
	for _, offset := range []int64{5, 7, 8} {
		p.Read(offset)
		_, repeated := p.Start(offset)
		require.Equal(t, offset < 8, repeated, offset)
	}
}

func TestOffsetsThatMovedBackAreHandledAgain(t *testing.T) {
	p := owner(t, 0, 1, 2)
	p.Settle(0)
	p.Settle(1)
	acknowledge(t, p)
	p.End(me, noon)
	require.Equal(t, []int64{2}, p.Claim(progress.Commit{Offset: 0, End: 3}, noon), "its record may be another one now")
	for offset := range int64(3) {
		p.Read(offset)
		require.Equal(t, progress.Start, p.Decide(offset, noon))
	}
}

func TestCallWhoseRecordWasSettledElsewhereIsLost(t *testing.T) {
	p := owner(t, 0)
	p.End(me, noon)
	require.Equal(t, []int64{0}, p.Claim(progress.Commit{Offset: 1, Metadata: progress.Checkpoint{Next: 1}.Encode(4096)}, noon))
}

func TestHandoverThatWasNotCommittedEndsWhenThePartitionHasMoved(t *testing.T) {
	p := owner(t, 0)
	require.Empty(t, p.Expire(noon, true), "the partition is claimed")
	p.End(me, noon)
	require.Empty(t, p.Expire(noon, false))
	require.Equal(t, []int64{0}, p.Expire(noon, true))
}

func TestLagCountsRecordsThatAreNotSettled(t *testing.T) {
	p := owner(t, 0, 1, 2, 3)
	p.Settle(0)
	p.Settle(2)
	require.EqualValues(t, 8, p.Lag(10))
}

func TestRecordThatWaitsForItsCallHasNoAttempt(t *testing.T) {
	p := owner(t, 5, 6, 7)
	p.Wait(5, true)
	p.Wait(6, true)
	p.Wait(6, false)
	commit := acknowledge(t, p)

	next := progress.New(100, handover)
	next.Claim(commit, noon)
	for offset, want := range map[int64]int{5: 0, 6: 1, 7: 1} {
		next.Read(offset)
		attempts, repeated := next.Start(offset)
		require.Equal(t, want, attempts, offset)
		require.True(t, repeated, "its handler was called")
	}
}

// A member is suspended for longer than its session, another one begins its call again and hands it over when the first is back.
func TestCallThatAnotherMemberHasBegunSinceIsLost(t *testing.T) {
	p := owner(t, 5)
	before := acknowledge(t, p)
	other := progress.New(100, handover)
	other.Claim(before, noon)
	other.Read(5)
	other.Start(5)
	other.End(progress.RunnerOf("other"), noon)
	handed := acknowledge(t, other)

	p.End(me, noon)
	require.Equal(t, []int64{5}, p.Claim(handed, noon))
	p.Read(5)
	require.Equal(t, progress.Defer, p.Decide(5, noon))
	until, ok := other.Told(5)
	require.True(t, ok)
	_, ok = p.Confirm(progress.Note{Offset: 5, Until: until})
	require.True(t, ok, "the other member's call settles it")
}

func TestOwnCallContinuesWhenItsHandoverComesBack(t *testing.T) {
	p := owner(t, 5)
	p.End(me, noon)
	other := progress.New(100, handover)
	other.Claim(acknowledge(t, p), noon)
	other.End(progress.RunnerOf("other"), noon)
	require.Empty(t, p.Claim(acknowledge(t, other), noon))
	p.Read(5)
	require.Equal(t, progress.Join, p.Decide(5, noon))
}

func TestRecordThatWaitsForItsCallBeginsAgain(t *testing.T) {
	p := owner(t, 5, 6)
	p.Wait(5, true)
	p.End(me, noon)
	require.Equal(t, []int64{5}, p.Idle())
	require.Empty(t, p.Claim(acknowledge(t, p), noon))
	p.Read(5)
	require.Equal(t, progress.Start, p.Decide(5, noon))
	_, repeated := p.Start(5)
	require.True(t, repeated, "another member may have called")
}

// A commit whose answer was lost may replace newer ones: a crash would then forget records that only those reserve.
func TestNoRecordStartsThatACommitInDoubtDoesNotReserve(t *testing.T) {
	p := progress.New(10, handover)
	p.Claim(progress.Commit{Offset: -1}, noon)
	p.Read(0)
	lost, _ := p.Checkpoint()
	p.Doubt(lost, noon.Add(time.Second))
	p.Read(1)
	acknowledge(t, p) // reserves 11, but the lost one only 10
	require.True(t, p.MayStart(10))
	require.False(t, p.MayStart(11))
	doubts, over := p.Doubts(noon)
	require.True(t, doubts)
	require.False(t, over)
	doubts, over = p.Doubts(noon.Add(time.Second))
	require.False(t, doubts)
	require.True(t, over)
	require.True(t, p.MayStart(11))
}

// Whether a handover was stored shows in the commit that the next owner reads.
func TestHandoverThatAnOlderCommitReplacedIsRecognized(t *testing.T) {
	p := owner(t, 0)
	old := acknowledge(t, p)
	p.End(me, noon)
	require.False(t, p.Hands(old))
	require.True(t, p.Hands(acknowledge(t, p)))
	p.Settle(0)
	require.True(t, p.Hands(old), "nothing runs any more")
}
