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

// clocks are both clocks of a machine, moved by a test.
type clocks struct{ atomic.Pointer[Instant] }

func newClocks() *clocks {
	c := &clocks{}
	c.Store(&Instant{Wall: time.Unix(100, 0)})
	return c
}

func (c *clocks) now() Instant { return *c.Load() }

// pass moves both clocks; suspend moves the wall clock alone, as a machine that was suspended for d does.
func (c *clocks) pass(d time.Duration)    { c.set(d, d) }
func (c *clocks) suspend(d time.Duration) { c.set(0, d) }

func (c *clocks) set(monotonic, wall time.Duration) {
	at := c.now()
	c.Store(&Instant{Monotonic: at.Monotonic + monotonic, Wall: at.Wall.Add(wall)})
}

func TestLeaseExpires(t *testing.T) {
	c := newClocks()
	l := NewLease(8*time.Second, c.now)
	require.False(t, l.Held(), "never renewed")
	sent := c.now()
	c.pass(time.Second)
	l.Renew(sent)
	c.pass(6 * time.Second)
	require.True(t, l.Held())
	c.pass(time.Second)
	require.False(t, l.Held(), "counted from when the heartbeat was sent")
	require.True(t, l.Lost())
	l.Renew(c.now())
	require.True(t, l.Held())
	l.Drop()
	require.False(t, l.Held())

	var none *Lease
	none.Drop()
	require.True(t, none.Held())
	require.False(t, none.Lost())
}

// The monotonic clock stops while the machine is suspended, and the wall clock can be set back.
func TestLeaseIsLostByTheClockThatAdvancedFurther(t *testing.T) {
	for name, c := range map[string]struct {
		monotonic, wall time.Duration
		held            bool
	}{
		"both within the limit":                {7 * time.Second, 7 * time.Second, true},
		"suspended":                            {0, time.Hour, false},
		"suspended for less than the limit":    {time.Second, 7 * time.Second, true},
		"awake, the wall clock was set back":   {8 * time.Second, -time.Hour, false},
		"set back within the limit":            {7 * time.Second, -time.Hour, true},
		"the wall clock was set ahead by much": {time.Second, 9 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newClocks()
			l := NewLease(8*time.Second, clock.now)
			l.Renew(clock.now())
			clock.set(c.monotonic, c.wall)
			require.Equal(t, c.held, l.Held())
			require.Equal(t, !c.held, l.Lost())
		})
	}
}

// An answer that arrives after a suspension proves the membership only at the time when its request was sent.
func TestHeartbeatSentBeforeASuspensionDoesNotRenewTheLease(t *testing.T) {
	c := newClocks()
	l := NewLease(8*time.Second, c.now)
	sent := c.now()
	c.suspend(time.Hour)
	l.Renew(sent)
	require.False(t, l.Held())
}

func TestInstantReadsTheMonotonicAndTheWallClock(t *testing.T) {
	first := Now()
	require.WithinDuration(t, time.Now(), first.Wall, time.Minute)
	require.NotContains(t, first.Wall.String(), "m=", "it has no monotonic reading")
	require.GreaterOrEqual(t, Now().Since(first), time.Duration(0))
	require.GreaterOrEqual(t, Now().Monotonic, first.Monotonic)
}

func TestWatchReportsAnExpiredLease(t *testing.T) {
	l := NewLease(20*time.Millisecond, Now)
	l.Renew(Now())
	told := make(chan error, 1)
	l.Watch(t.Context(), func(err error) { told <- err })
	require.ErrorIs(t, <-told, ErrLease)

	l.Renew(Now())
	l.Drop()
	l.Watch(t.Context(), func(error) { t.Error("Watch must not report a dropped lease") })

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l = NewLease(time.Hour, Now)
	l.Renew(Now())
	l.Watch(ctx, func(error) { t.Error("it is held") })
}

func TestNothingIsSentWithoutTheLease(t *testing.T) {
	conf := sarama.NewConfig()
	conf.Producer.Return.Successes = true
	async := mocks.NewAsyncProducer(t, conf) // it takes no record that it does not expect
	l := NewLease(time.Hour, Now)
	var cause atomic.Pointer[error]
	p := NewProducer(async, ProducerOptions{Table: "g-table", Lease: l, Ordered: true, Broken: func(error) {}, Failed: func(err error) { cause.Store(&err) }})
	defer func() { require.NoError(t, p.Close()) }()

	var refused error
	p.Emit("out", "k", []byte("x")).Then(func(err error) { refused = err })
	require.ErrorIs(t, refused, ErrLease)
	require.True(t, errors.Is(*cause.Load(), ErrLease))

	l.Renew(Now())
	async.ExpectInputAndSucceed()
	sent := make(chan error, 1)
	p.Emit("out", "k", []byte("x")).Then(func(err error) { sent <- err })
	require.NoError(t, <-sent)
}

// A rebalance may end without the member at any time: work of its generation may go on until then, other work may not begin.
func TestRebalanceConfirmsOnlyTheGeneration(t *testing.T) {
	b := sarama.NewMockBroker(t, 1)
	defer b.Close()
	b.SetHandlerByMap(map[string]sarama.MockResponse{
		"MetadataRequest":        sarama.NewMockMetadataResponse(t).SetBroker(b.Addr(), b.BrokerID()).SetController(b.BrokerID()),
		"FindCoordinatorRequest": sarama.NewMockFindCoordinatorResponse(t).SetCoordinator(sarama.CoordinatorGroup, "g", b),
		"HeartbeatRequest":       sarama.NewMockHeartbeatResponse(t).SetError(sarama.ErrRebalanceInProgress),
	})
	conf := sarama.NewConfig()
	conf.ApiVersionsRequest = false
	client, err := sarama.NewClient([]string{b.Addr()}, conf)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()

	l := NewLease(time.Hour, Now)
	require.ErrorIs(t, l.ConfirmStable(t.Context(), client, Member{Group: "g"}), sarama.ErrRebalanceInProgress)
	require.False(t, l.Held())
	require.NoError(t, l.Confirm(t.Context(), client, Member{Group: "g"}))
	require.True(t, l.Held())
}
