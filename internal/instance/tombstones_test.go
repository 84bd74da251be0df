package instance_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/store"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// dueAt is a table whose rows are the milliseconds of their deadlines.
type dueAt struct {
	goka.Codec
	out goka.Stream
}

func (dueAt) Deadline(row []byte) (int64, bool) {
	ms, err := strconv.ParseInt(string(row), 10, 64)
	return ms, err == nil && ms > 0
}

func (d dueAt) OnDeadline(ctx goka.Context, _ store.Due) {
	ctx.Emit(d.out, ctx.Key(), "fired")
	ctx.SetValue("fired")
}

const deletion = "deletion"

// deleting is a group whose records are the rows of their keys, or delete them.
func deleting(group string) *goka.GroupGraph {
	out := goka.Stream(group + "-out")
	return goka.DefineGroup(goka.Group(group), goka.Output(out, codec.String()),
		goka.Input(goka.Stream(group+"-in"), codec.String(), func(ctx goka.Context, m any) {
			if v := m.(codec.Decoded[string]).Value; v != deletion {
				ctx.SetValue(v)
			} else {
				ctx.Delete()
			}
		}),
		goka.Persist(dueAt{codec.String(), out}))
}

// compacted is a broker with a table that it compacts at once.
type compacted struct {
	t       testing.TB
	brokers []string
	compact func()
	admin   *kadm.Client
	table   string
}

func newCompacted(t testing.TB, table string, others ...string) *compacted {
	t.Helper()
	c := &compacted{t: t, table: table}
	c.brokers, c.compact = compacting(t)
	c.admin = kadm.NewClient(dial(t, c.brokers))
	_, err := c.admin.CreateTopics(t.Context(), 1, 1, nil, others...)
	require.NoError(t, err)
	s := func(v string) *string { return &v }
	_, err = c.admin.CreateTopic(t.Context(), 1, 1, map[string]*string{
		"cleanup.policy": s("compact"), "segment.ms": s("200"), "min.cleanable.dirty.ratio": s("0.001"),
		"max.compaction.lag.ms": s("500"),
	}, table)
	require.NoError(t, err)
	return c
}

// keepTombstones sets for how many milliseconds the table keeps tombstones.
func (c *compacted) keepTombstones(ms string) {
	c.t.Helper()
	altered, err := c.admin.AlterTopicConfigs(c.t.Context(),
		[]kadm.AlterConfig{{Op: kadm.SetConfig, Name: "delete.retention.ms", Value: &ms}}, c.table)
	require.NoError(c.t, err)
	require.NoError(c.t, altered[0].Err)
}

// forget waits until the table says nothing of a key any more, a day being as short as a moment; write adds records of
// other keys to the table, since a broker does not compact the end of a log.
func (c *compacted) forget(key string, write func()) {
	c.t.Helper()
	c.keepTombstones("1")
	require.Eventually(c.t, func() bool {
		write()
		c.compact()
		for _, r := range takeIn(c.t, c.brokers, c.table, 1<<20, 200*time.Millisecond) {
			if string(r.Key) == key {
				return false
			}
		}
		return true
	}, 3*time.Minute, 200*time.Millisecond, "compaction")
	c.keepTombstones(strconv.FormatInt((24 * time.Hour).Milliseconds(), 10))
}

// away is a group with two instances that each have a directory, of which one runs at a time.
type away struct {
	*compacted
	group     string
	guarantee instance.Guarantee
	at        *clock.Fake
	logs      *observer.ObservedLogs
	core      *zap.Logger
}

func newAway(t *testing.T, guarantee instance.Guarantee) *away {
	group := testbroker.Agent()
	core, logs := observer.New(zap.DebugLevel)
	return &away{
		compacted: newCompacted(t, group+"-table", group+"-in", group+"-out"), group: group, guarantee: guarantee,
		at: clock.NewFake(noon), logs: logs, core: zap.New(core),
	}
}

func (a *away) start(dir, id string) *running {
	inst := run(a.t, instance.Config{
		Brokers: a.brokers, Graph: deleting(a.group), StorageDir: dir, InstanceID: id, Guarantee: a.guarantee,
		Clock: a.at, Tick: tick, Sarama: lively, Logger: a.core,
	})
	inst.ready(a.t)
	return inst
}

func (a *away) write(inst *running, key, value string) {
	put(a.t, a.brokers, keyed(a.group+"-in", key, value))
	eventually(a.t, func() bool {
		v, err := inst.Get(key)
		row, _ := v.(codec.Decoded[string])
		return err == nil && (row.Value == value || v == nil && value == deletion)
	})
}

func (a *away) stop(inst *running) {
	inst.stop()
	require.NoError(a.t, inst.wait(a.t))
}

// untilStored waits until the age of the directory is that of now.
func (a *away) untilStored() {
	eventually(a.t, func() bool {
		stored := a.logs.FilterMessage("the local store is at the end of its topic").All()
		return len(stored) > 0 && stored[len(stored)-1].ContextMap()["as_of"].(time.Time).Equal(a.at.Now())
	})
}

func (a *away) discarded() int {
	return a.logs.FilterMessage("the local store is too old: it is discarded and read again from the topic").Len()
}

// An instance stops with a row in its directory. Another one deletes the row, and compaction removes the tombstone before
// the first one is back: only the age of its directory tells that the row may be gone.
func TestDirectoryOlderThanTombstonesIsDiscarded(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		a := newAway(t, guarantee)
		one, two := t.TempDir(), t.TempDir()
		inst := a.start(one, "one")
		a.write(inst, "gone", strconv.FormatInt(noon.Add(26*time.Hour).UnixMilli(), 10))
		a.write(inst, "stays", "row")
		a.stop(inst)
		a.at.Advance(time.Hour)

		inst = a.start(two, "two")
		a.write(inst, "gone", deletion)
		n := 0
		a.forget("gone", func() {
			n++
			a.write(inst, "other"+strconv.Itoa(n%3), strconv.Itoa(-n))
		})
		a.stop(inst)
		require.Zero(t, a.discarded())

		a.at.Advance(24 * time.Hour)
		inst = a.start(one, "one")
		v, err := inst.Get("gone")
		require.NoError(t, err)
		require.Nil(t, v, "the row that was deleted is back")
		v, err = inst.Get("stays")
		require.NoError(t, err)
		require.Equal(t, "row", v.(codec.Decoded[string]).Value)
		a.at.Advance(2 * time.Hour)
		require.Empty(t, takeIn(t, a.brokers, a.group+"-out", 1, 500*time.Millisecond), "a deadline that was cancelled fired")
		require.Equal(t, 1, a.discarded())
		a.stop(inst)
	})
}

func TestDirectoryYoungerThanTombstonesIsKept(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		a := newAway(t, guarantee)
		dir := t.TempDir()
		mark := filepath.Join(dir, a.table+".0", "mark")
		inst := a.start(dir, "one")
		a.write(inst, "k", "row")
		require.NoError(t, os.WriteFile(mark, nil, 0o600))
		a.stop(inst)
		for range 3 { // a directory that is used stays young, also where nothing is written
			a.at.Advance(20 * time.Hour)
			inst = a.start(dir, "one")
			v, err := inst.Get("k")
			require.NoError(t, err)
			require.Equal(t, "row", v.(codec.Decoded[string]).Value)
			require.FileExists(t, mark)
			a.untilStored()
			a.stop(inst)
		}
		require.Zero(t, a.discarded())

		a.at.Set(noon) // the clock jumps back while the instance is stopped: no age is to be had
		inst = a.start(dir, "one")
		require.NoFileExists(t, mark)
		require.Equal(t, 1, a.discarded())
		v, err := inst.Get("k")
		require.NoError(t, err)
		require.Equal(t, "row", v.(codec.Decoded[string]).Value)
		a.stop(inst)
	})
}

// A directory that an older build has left does not say how old it is.
func TestDirectoryOfUnknownAgeIsDiscarded(t *testing.T) {
	t.Parallel()
	a := newAway(t, instance.AtLeastOnce)
	dir := t.TempDir()
	path := filepath.Join(dir, a.table+".0")
	s, err := store.Open(path)
	require.NoError(t, err)
	require.NoError(t, s.Set("gone", []byte("1")))
	require.NoError(t, s.SetOffset(0))
	require.NoError(t, s.MarkRecovered())
	require.NoError(t, s.Close())
	inst := a.start(dir, "one")
	require.Equal(t, 1, a.discarded())
	v, err := inst.Get("gone")
	require.NoError(t, err)
	require.Nil(t, v)
	a.stop(inst)
	require.FileExists(t, filepath.Join(path, "TOPIC"), "the topic id is written again")
}

// Where the brokers do not let the instance read the topic's configuration, the directory is used for a short time only.
func TestDirectoryIsDiscardedEarlyWhereTheTopicsConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	c, brokers := oneEach(t, "in", "out", "g-table")
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	at, dir := clock.NewFake(noon), t.TempDir()
	core, logs := observer.New(zap.InfoLevel)
	life := func(away time.Duration) (discarded int) {
		at.Advance(away)
		inst := run(t, instance.Config{
			Brokers: brokers, Graph: counting("g"), StorageDir: dir, Clock: at, Logger: zap.New(core),
		})
		inst.ready(t)
		inst.stop()
		require.NoError(t, inst.wait(t))
		return logs.FilterMessage("the local store is too old: it is discarded and read again from the topic").Len()
	}
	require.Zero(t, life(0))
	require.Zero(t, life(30*time.Minute))
	require.Equal(t, 1, life(2*time.Hour))
	refused := logs.FilterMessage("the local stores of the topic are discarded when they are older than the assumed time")
	require.Equal(t, 3, refused.Len(), "once for each life")
	require.Equal(t, "g-table", refused.All()[0].ContextMap()["topic"])
}
