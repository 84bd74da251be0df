package instance_test

import (
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// tableReaders are groups that read another group's table, and tell of one row of it.
var tableReaders = map[string]func(group, table string, found chan<- string) *goka.GroupGraph{
	"join": func(group, table string, found chan<- string) *goka.GroupGraph {
		return goka.DefineGroup(goka.Group(group), goka.Join(goka.Table(table), codec.String()),
			goka.Input(goka.Stream(group+"-in"), codec.String(), func(ctx goka.Context, _ any) {
				row, _ := ctx.Join(goka.Table(table)).(codec.Decoded[string])
				found <- row.Value
			}))
	},
	"lookup": func(group, table string, found chan<- string) *goka.GroupGraph {
		return goka.DefineGroup(goka.Group(group), goka.Lookup(goka.Table(table), codec.String()),
			goka.Input(goka.Stream(group+"-in"), codec.String(), func(ctx goka.Context, _ any) {
				row, _ := ctx.Lookup(goka.Table(table), ctx.Key()).(codec.Decoded[string])
				found <- row.Value
			}))
	},
}

// reader is a group that reads another's table into a directory.
type reader struct {
	*compacted
	group string
	graph *goka.GroupGraph
	dir   string
	at    *clock.Fake
	found chan string
}

func newReader(t *testing.T, graph func(group, table string, found chan<- string) *goka.GroupGraph) *reader {
	group := testbroker.Agent()
	r := &reader{
		compacted: newCompacted(t, group+"-other-table", group+"-in"), group: group, dir: t.TempDir(),
		at: clock.NewFake(noon), found: make(chan string, 10),
	}
	r.graph = graph(group, r.table, r.found)
	return r
}

// read starts the group, reads a row and stops.
func (r *reader) read(key string) string {
	r.t.Helper()
	inst := run(r.t, instance.Config{Brokers: r.brokers, Graph: r.graph, StorageDir: r.dir, Clock: r.at, Sarama: lively})
	inst.ready(r.t)
	put(r.t, r.brokers, keyed(r.group+"-in", key, "x"))
	row := receive(r.t, r.found)
	inst.stop()
	require.NoError(r.t, inst.wait(r.t))
	return row
}

func TestJoinedAndLookedUpTablesOlderThanTombstonesAreReadAgain(t *testing.T) {
	t.Parallel()
	for name, graph := range tableReaders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, graph)
			put(t, r.brokers, keyed(r.table, "gone", "1"), keyed(r.table, "stays", "1"))
			require.Equal(t, "1", r.read("gone"))

			put(t, r.brokers, &kgo.Record{Topic: r.table, Key: []byte("gone")})
			r.forget("gone", func() { put(t, r.brokers, keyed(r.table, "other", "x")) })
			r.at.Advance(25 * time.Hour)
			require.Empty(t, r.read("gone"))
			require.Equal(t, "1", r.read("stays"))
		})
	}
}

// The rows of a topic that was deleted say nothing of the one that has its name now.
func TestJoinedAndLookedUpTablesThatAreCreatedAgainAreReadAgain(t *testing.T) {
	t.Parallel()
	for name, graph := range tableReaders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, graph)
			put(t, r.brokers, keyed(r.table, "old", "1"), keyed(r.table, "old", "2"))
			require.Equal(t, "2", r.read("old"))
			_, err := r.admin.DeleteTopics(t.Context(), r.table)
			require.NoError(t, err)
			eventually(t, func() bool {
				created, err := r.admin.CreateTopic(t.Context(), 1, 1, nil, r.table)
				return err == nil && created.Err == nil
			})
			put(t, r.brokers, keyed(r.table, "new", "1"), keyed(r.table, "new", "2"), keyed(r.table, "new", "3"))
			require.Empty(t, r.read("old"))
			require.Equal(t, "3", r.read("new"))
		})
	}
}
