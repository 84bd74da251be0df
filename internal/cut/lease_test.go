package cut

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/IBM/sarama/mocks"
	"github.com/stretchr/testify/require"
)

func TestLeaseRunsOut(t *testing.T) {
	now := time.Unix(100, 0)
	l := NewLease(8*time.Second, func() time.Time { return now })
	require.False(t, l.Held(), "never renewed")
	l.Renew(now.Add(-time.Second))
	now = now.Add(6 * time.Second)
	require.True(t, l.Held())
	now = now.Add(time.Second)
	require.False(t, l.Held(), "counted from when the heartbeat was sent")
	l.Renew(now)
	require.True(t, l.Held())
	l.Drop()
	require.False(t, l.Held())
	require.True(t, (*Lease)(nil).Held())
}

func TestWatchTellsOfALeaseThatRanOut(t *testing.T) {
	l := NewLease(20*time.Millisecond, time.Now)
	l.Renew(time.Now())
	told := make(chan error, 1)
	l.Watch(t.Context(), func(err error) { told <- err })
	require.ErrorIs(t, <-told, ErrLease)

	l.Renew(time.Now())
	l.Drop()
	l.Watch(t.Context(), func(error) { t.Error("it was dropped, by whoever knows why") })

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l = NewLease(time.Hour, time.Now)
	l.Renew(time.Now())
	l.Watch(ctx, func(error) { t.Error("it is held") })
}

func TestNothingIsSentWithoutTheLease(t *testing.T) {
	conf := sarama.NewConfig()
	conf.Producer.Return.Successes = true
	async := mocks.NewAsyncProducer(t, conf) // it takes no record that it does not expect
	l := NewLease(time.Hour, time.Now)
	var cause atomic.Pointer[error]
	p := NewProducer(async, ProducerOptions{Table: "g-table", Lease: l, Ordered: true, Broken: func(error) {}, Failed: func(err error) { cause.Store(&err) }})
	defer func() { require.NoError(t, p.Close()) }()

	var refused error
	p.Emit("out", "k", []byte("x")).Then(func(err error) { refused = err })
	require.ErrorIs(t, refused, ErrLease)
	require.True(t, errors.Is(*cause.Load(), ErrLease))

	l.Renew(time.Now())
	async.ExpectInputAndSucceed()
	sent := make(chan error, 1)
	p.Emit("out", "k", []byte("x")).Then(func(err error) { sent <- err })
	require.NoError(t, <-sent)
}
