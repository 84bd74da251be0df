package processors_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors"
)

// follow runs a follower of the field's topics; what it handles comes out of the channel.
func follow(t *testing.T, f *field) (*processors.Follower, <-chan processors.Inbound) {
	t.Helper()
	handled := make(chan processors.Inbound, 100)
	follower, err := processors.NewFollower(f.addrs, []string{"answers"}, func(r processors.Inbound) { handled <- r })
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- follower.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	select {
	case <-follower.Ready():
	case <-time.After(waitLimit):
		t.Fatal("the follower does not get ready")
	}
	return follower, handled
}

func publish(t *testing.T, p *processors.KafkaPublisher, key string, values ...string) {
	t.Helper()
	for _, v := range values {
		out := processors.Outbound{Topic: "answers", Key: key, Value: []byte(v)}
		require.NoError(t, p.Publish(t.Context(), out))
	}
}

func TestFollowerReadsWhatIsWrittenSinceItRuns(t *testing.T) {
	f := newField(t, 4)
	p := newPublisher(t, f.addrs)
	publish(t, p, "s", "before")
	first, handled := follow(t, f)
	_, handledToo := follow(t, f)
	publish(t, p, "s", "a", "b")
	for _, want := range []string{"a", "b"} {
		require.Equal(t, want, string((<-handled).Value))
		require.Equal(t, want, string((<-handledToo).Value), "every follower reads everything")
	}
	require.NotNil(t, first)
}

func TestFollowerReadsATopicThatIsMadeAnewFromItsBeginning(t *testing.T) {
	f := newField(t, 1)
	p := newPublisher(t, f.addrs)
	_, handled := follow(t, f)
	publish(t, p, "s", "a", "b", "c")
	for range 3 {
		<-handled
	}
	admin := kadm.NewClient(f.client)
	_, err := admin.DeleteTopics(t.Context(), "answers")
	require.NoError(t, err)
	_, err = admin.CreateTopics(t.Context(), 1, 1, nil, "answers")
	require.NoError(t, err)
	publish(t, newPublisher(t, f.addrs), "s", "anew")
	select {
	case r := <-handled:
		require.Equal(t, "anew", string(r.Value))
	case <-time.After(waitLimit):
		t.Fatal("nothing is read any more")
	}
}

func TestReplayEndsWhereFollowingGoesOn(t *testing.T) {
	f := newField(t, 4)
	p := newPublisher(t, f.addrs)
	follower, handled := follow(t, f)
	publish(t, p, "s", "a", "b")
	for i := range 10 {
		publish(t, p, fmt.Sprint("other-", i), "x")
	}
	publish(t, p, "s", "c")
	for range 13 {
		<-handled
	}
	var got []string
	all := func(_ context.Context, r processors.Inbound) bool { got = append(got, string(r.Value)); return true }
	next, err := follower.Replay(t.Context(), "answers", "s", time.UnixMilli(0), all)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, got)
	publish(t, p, "s", "d")
	require.Equal(t, next, (<-handled).Offset)

	got = nil
	_, err = follower.Replay(t.Context(), "answers", "s", time.Now().Add(time.Hour), all)
	require.NoError(t, err)
	require.Empty(t, got)
	two := func(_ context.Context, r processors.Inbound) bool {
		got = append(got, string(r.Value))
		return len(got) < 2
	}
	_, err = follower.Replay(t.Context(), "answers", "s", time.UnixMilli(0), two)
	require.NoError(t, err)
	require.Equal(t, "a b", strings.Join(got, " "))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = follower.Replay(ctx, "answers", "s", time.UnixMilli(0), all)
	require.ErrorIs(t, err, context.Canceled)
}

func TestReplayEndsWithItsFollower(t *testing.T) {
	f := newField(t, 1)
	publish(t, newPublisher(t, f.addrs), "s", "a", "b")
	follower, err := processors.NewFollower(f.addrs, []string{"answers"}, func(processors.Inbound) {})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- follower.Run(ctx) }()
	<-follower.Ready()
	slow := func(ctx context.Context, _ processors.Inbound) bool {
		stop()
		<-ctx.Done()
		return true
	}
	_, err = follower.Replay(t.Context(), "answers", "s", time.UnixMilli(0), slow)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, <-ended)
}

func TestFollowerRefusesWhatItCannotDo(t *testing.T) {
	ignore := func(processors.Inbound) {}
	_, err := processors.NewFollower(nil, []string{"a"}, ignore)
	require.ErrorIs(t, err, processors.ErrConfig)
	_, err = processors.NewFollower([]string{"localhost:1"}, nil, ignore)
	require.ErrorIs(t, err, processors.ErrConfig)
	_, err = processors.NewFollower([]string{"localhost:1"}, []string{"a"}, nil)
	require.ErrorIs(t, err, processors.ErrConfig)

	f, err := processors.NewFollower([]string{"localhost:1"}, []string{"a"}, ignore)
	require.NoError(t, err)
	_, err = f.Replay(t.Context(), "a", "s", time.Now(), func(context.Context, processors.Inbound) bool { return true })
	require.ErrorIs(t, err, processors.ErrNotFollowing)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, f.Run(ctx))
}

func TestReplayFromPassesTheRecordsOfAllKeysFromAnOffset(t *testing.T) {
	f := newField(t, 1)
	p := newPublisher(t, f.addrs)
	follower, handled := follow(t, f)
	publish(t, p, "s", "a", "b")
	publish(t, p, "other", "c")
	for range 3 {
		<-handled
	}
	read := func(begin int64) (got string, next int64) {
		next, err := follower.ReplayFrom(t.Context(), "answers", 0, begin, func(_ context.Context, r processors.Inbound) bool {
			got += string(r.Value)
			return true
		})
		require.NoError(t, err)
		return got, next
	}
	for begin, want := range map[int64]string{-1: "abc", 0: "abc", 1: "bc", 3: "", 9: ""} {
		got, next := read(begin)
		require.Equal(t, want, got)
		require.EqualValues(t, 3, next)
	}
	n, err := follower.Partition("answers", "s")
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = follower.Partition("nothing", "s")
	require.ErrorIs(t, err, processors.ErrNoTopic)
	first, err := follower.OffsetAt("answers", 0, time.UnixMilli(0))
	require.NoError(t, err)
	require.Zero(t, first)
	end, err := follower.OffsetAt("answers", 0, time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.EqualValues(t, 3, end)
}

func TestTableFollowerReadsFromTheBeginningAndIsReadyWhenItHasCaughtUp(t *testing.T) {
	f := newField(t, 4)
	p := newPublisher(t, f.addrs)
	for i := range 20 {
		publish(t, p, fmt.Sprint("s-", i), "before")
	}
	enter := make(chan struct{})
	var handled atomic.Int64
	follower, err := processors.NewTableFollower(f.addrs, []string{"answers"}, func(processors.Inbound) {
		<-enter
		handled.Add(1)
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- follower.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	select {
	case enter <- struct{}{}:
	case <-follower.Ready():
		t.Fatal("it is ready before it has handled a record")
	}
	select {
	case <-follower.Ready():
		t.Fatal("it is ready before it has handled all records")
	default:
	}
	close(enter)
	<-follower.Ready()
	require.Equal(t, int64(20), handled.Load())
	publish(t, p, "s-7", "after")
	require.NoError(t, follower.CatchUpTopic(t.Context(), "answers"))
	require.Equal(t, int64(21), handled.Load())
	require.ErrorIs(t, follower.CatchUpTopic(t.Context(), "none"), processors.ErrNoTopic)
}

// A program that starts before its brokers, or its topics, waits: it says so once, not at each attempt.
func TestFollowerSaysOnceWhatItWaitsFor(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	tried := make(chan struct{}, 1000)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
			tried <- struct{}{}
		}
	})
	core, logs := observer.New(zap.WarnLevel)
	f, err := processors.NewFollower([]string{listener.Addr().String()}, []string{"answers"}, func(processors.Inbound) {},
		processors.WithLogger(zap.New(core)))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	for range 40 { // several attempts, each of which makes several connections
		<-tried
	}
	stop()
	require.NoError(t, <-ran)
	require.NoError(t, listener.Close())
	accepting.Wait()
	said := map[any]int{}
	for _, entry := range logs.All() {
		if entry.Time.Sub(logs.All()[0].Time) < 4*time.Second {
			said[entry.ContextMap()["error"]]++
		}
	}
	for reason, times := range said {
		require.Equal(t, 1, times, reason)
	}
	require.Equal(t, "follower cannot read its topics yet, trying again", logs.All()[0].Message)
}
