package instance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/store"
)

var stopped = time.UnixMilli(1_700_000_000_000)

func TestStoreIsOutdatedBeforeTombstonesCanBeGone(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		kept, away time.Duration
		unknown    bool
		want       bool
	}{
		"at once":                              {kept: day},
		"just in time":                         {kept: day, away: day - day/10},
		"within the margin":                    {kept: day, away: day - day/10 + 1, want: true},
		"too late":                             {kept: day, away: 2 * day, want: true},
		"age not known":                        {kept: day, unknown: true, want: true},
		"clock a little behind":                {kept: day, away: -time.Minute},
		"clock that jumped back":               {kept: day, away: -time.Minute - 1, want: true},
		"no tombstones":                        {kept: 0, want: true},
		"tombstones no longer than the margin": {kept: time.Minute, want: true},
		"tombstones for two minutes":           {kept: 2 * time.Minute, away: time.Minute},
		"tombstones for two minutes, too late": {kept: 2 * time.Minute, away: time.Minute + 1, want: true},
		"tombstones kept indefinitely":         {kept: math.MaxInt64, away: 100 * 365 * day},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, outdated(stopped, !c.unknown, stopped.Add(c.away), usableFor(c.kept)))
		})
	}
}

// opener opens the store of a directory, and says how often.
type opener struct {
	dir    string
	opened int
}

func (o *opener) open() (*store.Store, error) {
	o.opened++
	return store.Open(filepath.Join(o.dir, "t.0"))
}

func keptFor(d time.Duration) func(string) (time.Duration, error) {
	return func(string) (time.Duration, error) { return d, nil }
}

func TestStoreThatIsOutdatedIsOpenedEmpty(t *testing.T) {
	at := clock.NewFake(stopped)
	a := newAges(at, zap.NewNop(), keptFor(24*time.Hour))
	o := &opener{dir: t.TempDir()}
	life := func(away time.Duration) *aged {
		at.Advance(away)
		o.opened = 0
		s, err := a.build("t", 0, o.open)
		require.NoError(t, err)
		return s
	}
	has := func(s *aged) bool {
		has, err := s.Has("k")
		require.NoError(t, err)
		return has
	}
	s := life(0)
	require.Equal(t, 1, o.opened, "a new one")
	require.NoError(t, s.Set("k", []byte("v")))
	require.NoError(t, s.SetOffset(0))
	require.NoError(t, s.MarkRecovered())
	require.NoError(t, s.settle(&logEnd{at: at.Now(), offset: 1}))
	require.NoError(t, s.Close())

	s = life(20 * time.Hour)
	require.True(t, has(s))
	require.NoError(t, s.Close())
	s = life(3 * time.Hour)
	require.False(t, has(s), "opening a store does not make it younger")
	require.Equal(t, 2, o.opened)

	require.NoError(t, s.Set("half", []byte("v"))) // of a recovery that is broken off
	require.NoError(t, s.Close())
	s = life(time.Hour)
	require.Equal(t, 1, o.opened, "its age is that of the moment at which its recovery began")
	require.NoError(t, s.Close())
	s = life(21 * time.Hour)
	require.Equal(t, 2, o.opened)
	require.NoError(t, s.Close())
}

func TestRecoveryThatOutlivesTombstonesFailsUnlessItBeganAtTheStart(t *testing.T) {
	at := clock.NewFake(stopped)
	core, logs := observer.New(zap.WarnLevel)
	a := newAges(at, zap.New(core), keptFor(24*time.Hour))
	o := &opener{dir: t.TempDir()}
	s, err := a.build("t", 0, o.open)
	require.NoError(t, err)
	at.Advance(25 * time.Hour)
	require.NoError(t, s.MarkRecovered(), "to read it again would take as long")
	require.Equal(t, 1, logs.Len())
	require.NoError(t, s.settle(&logEnd{at: at.Now()}))
	require.NoError(t, s.Close())

	s, err = a.build("t", 0, o.open)
	require.NoError(t, err)
	at.Advance(25 * time.Hour)
	require.ErrorIs(t, s.MarkRecovered(), errOutlived)
	require.NoError(t, s.Close())
	require.Empty(t, a.stores())
	s, err = a.build("t", 0, o.open)
	require.NoError(t, err)
	require.NoError(t, s.MarkRecovered(), "the next run reads it from the start")
	require.NoError(t, s.Close())
}

func TestTopicWhoseConfigurationIsRefusedIsAssumedToKeepTombstonesForAShortTime(t *testing.T) {
	asked := 0
	core, logs := observer.New(zap.WarnLevel)
	failure := fmt.Errorf("%w: t", ErrNoTopicConfig)
	a := newAges(clock.NewFake(stopped), zap.New(core), func(string) (time.Duration, error) {
		asked++
		return AssumedTombstones, failure
	})
	for range 3 {
		kept, err := a.keptBy("t")
		require.NoError(t, err)
		require.Equal(t, AssumedTombstones, kept)
	}
	require.Equal(t, 1, asked)
	require.Equal(t, 1, logs.Len())

	failure = errors.New("no broker")
	_, err := a.keptBy("other")
	require.ErrorIs(t, err, failure)
	failure = nil
	_, err = a.keptBy("other")
	require.NoError(t, err, "it is asked again")
}

// watching is a run over one recovered store of a table.
type watching struct {
	*run
	t        *testing.T
	at       *clock.Fake
	store    *aged
	producer sarama.SyncProducer
}

func newWatching(t *testing.T, edges ...goka.Edge) *watching {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "in", "table"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	client, err := sarama.NewClient(c.ListenAddrs(), kafka.Config())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	producer, err := sarama.NewSyncProducer(c.ListenAddrs(), kafka.Config())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, producer.Close()) })
	w := &watching{t: t, at: clock.NewFake(stopped), producer: producer}
	a := newAges(w.at, zap.NewNop(), keptFor(24*time.Hour))
	graph := goka.DefineGroup("g", append(edges, goka.Input("in", codec.String(), func(goka.Context, any) {}))...)
	w.run = &run{instance: &Instance{cfg: Config{Graph: graph}}, client: client, tables: &tables{ages: a}}
	w.store, err = a.build("table", 0, func() (*store.Store, error) { return store.InMemory(store.WithThrough()), nil })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	require.NoError(t, w.store.MarkRecovered())
	return w
}

// write writes a record to the topic; reads has the store read it.
func (w *watching) write(reads bool) {
	w.t.Helper()
	_, offset, err := w.producer.SendMessage(&sarama.ProducerMessage{Topic: "table", Key: sarama.StringEncoder("k")})
	require.NoError(w.t, err)
	if reads {
		require.NoError(w.t, w.store.SetOffset(offset))
	}
}

// check checks the age at a time, and returns what is stored; hours since the start.
func (w *watching) check(at int) (asOf int, err error) {
	w.t.Helper()
	w.at.Set(stopped.Add(time.Duration(at) * time.Hour))
	err = w.checkAge(w.t.Context(), w.store, true)
	stored, known, ageErr := w.store.AsOf()
	require.NoError(w.t, ageErr)
	require.True(w.t, known)
	return int(stored.Sub(stopped) / time.Hour), err
}

func (w *watching) requireAsOf(at, want int) {
	w.t.Helper()
	got, err := w.check(at)
	require.NoError(w.t, err)
	require.Equal(w.t, want, got)
}

func TestAgeIsStoredWhileNothingIsWritten(t *testing.T) {
	w := newWatching(t)
	w.requireAsOf(1, 1)
	w.write(true)
	w.requireAsOf(2, 2)
	w.requireAsOf(3, 3)
}

// The age of a store that is behind its topic, because the process was suspended or another member owns the partition, is
// not updated.
func TestAgeIsNotStoredWhileOthersWrite(t *testing.T) {
	w := newWatching(t)
	w.requireAsOf(1, 1)
	w.write(false)
	w.requireAsOf(5, 1)
	w.write(true) // both are read
	w.write(false)
	w.requireAsOf(7, 5) // where the changelog ended at 5 is reached
	w.requireAsOf(8, 5)
	w.write(true)
	require.NoError(t, w.store.settle(nil))
	w.requireAsOf(9, 9)
}

func TestAgeIsStoredOnClose(t *testing.T) {
	w := newWatching(t)
	w.write(false)
	w.requireAsOf(5, 0)
	require.NoError(t, w.store.SetOffset(0))
	require.NoError(t, w.store.Close())
	again, err := w.store.Reopen()
	require.NoError(t, err)
	defer func() { require.NoError(t, again.Close()) }()
	at, _, err := again.AsOf()
	require.NoError(t, err)
	require.Equal(t, 5*time.Hour, at.Sub(stopped))
	require.ErrorIs(t, w.checkAge(t.Context(), w.store, true), store.ErrClosed)
}

func TestAgeIsKeptIfItCannotBeChecked(t *testing.T) {
	w := newWatching(t)
	w.requireAsOf(1, 1)
	require.NoError(t, w.client.Close())
	w.requireAsOf(5, 1)
}

// A process that was suspended continues to read its lookup tables where it was.
func TestLookupTableThatWasBehindForTooLongEndsTheRun(t *testing.T) {
	w := newWatching(t, goka.Lookup("table", codec.String()))
	w.requireAsOf(20, 20)
	_, err := w.check(50)
	require.ErrorIs(t, err, errOutlived)
	require.ErrorContains(t, err, "table/0")

	other := newWatching(t) // Goka opens others again when the group is joined again
	other.requireAsOf(50, 50)
}

func TestAgesAreCheckedOnceStoresAreRecovered(t *testing.T) {
	w := newWatching(t)
	w.at.Advance(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.checkAges(ctx, time.Hour) }()
	require.Eventually(t, func() bool {
		at, _, err := w.store.AsOf()
		return err == nil && at.Equal(stopped.Add(time.Hour))
	}, time.Minute, time.Millisecond)
	cancel()
	<-ended
}
