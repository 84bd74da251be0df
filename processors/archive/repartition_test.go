package archive

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/topics"
)

// filledWorld has sessions, and a group that has read some of the messages.
func filledWorld(t *testing.T, partitions int32) (w *world, unread []string) {
	w = newWorld(t, partitions)
	for n := range 20 {
		w.session(fmt.Sprintf("s%d", n), 3)
	}
	input := w.cfg.Catalog.MessageInput.Name()
	for n, records := range w.records(input) {
		if at := len(records) / 2; at > 0 && n != 1 { // partition 1 was never committed: it starts at its beginning
			w.commit(string(w.cfg.Catalog.Group()), input, int32(n), records[at].Offset,
				fmt.Sprintf("turntable/1 inputs=abc partitions=%d topic=00 epoch=3 attempts=2", partitions))
		}
	}
	return w, w.unread(string(w.cfg.Catalog.Group()), input)
}

func TestRepartitionMovesRowsAndUnreadRecordsWithTheirKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to int32 }{{3, 7}, {4, 1}} {
		w, unread := filledWorld(t, c.from)
		input, table, group := w.cfg.Catalog.MessageInput.Name(), w.cfg.Catalog.Table(), string(w.cfg.Catalog.Group())
		messages, rows, settings := w.byKey(input), w.byKey(table), w.config(input)
		names := w.names()

		_, err := Repartition(t.Context(), w.cfg, c.to)
		require.NoError(t, err)
		require.Len(t, w.records(input), int(c.to))
		require.Equal(t, messages, w.byKey(input))
		require.Equal(t, rows, w.byKey(table))
		require.Equal(t, unread, w.unread(group, input))
		require.Len(t, w.offsets(group, input), int(c.to))
		require.Equal(t, settings, w.config(input))
		require.Equal(t, map[string]string{"cleanup.policy": "compact"}, w.config(table))
		require.Equal(t, names, w.names(), "the copies and the journal are gone")
		require.Len(t, w.records(w.cfg.Catalog.DeadLetters()), 1, "dead letters stay where they are")

		all, err := w.admin.FetchOffsets(t.Context(), group)
		require.NoError(t, err)
		require.NotContains(t, all, w.cfg.Catalog.Archive(), "the group may start")
		listed, err := w.admin.ListTopics(t.Context(), input)
		require.NoError(t, err)
		l, ok := cut.ParseListed(all[input][0].Metadata)
		require.True(t, ok)
		require.Equal(t, int(c.to), l.Partitions())
		id := listed[input].ID
		require.False(t, l.OfAnother(fmt.Sprintf("%x", id[:])))
		require.Zero(t, l.Attempts())
		require.NoError(t, w.starts())

		result, err := Repartition(t.Context(), w.cfg, c.to) // there is nothing to do
		require.NoError(t, err)
		require.Zero(t, result)
	}
}

// Two groups are behind in different partitions, which become one: none of their records is skipped.
func TestGroupsWithDifferentBacklogsLoseNothing(t *testing.T) {
	t.Parallel()
	w, unread := filledWorld(t, 4)
	input := w.cfg.Catalog.MessageInput.Name()
	for n, records := range w.records(input) {
		w.commit("second", input, int32(n), int64(len(records))*int64(n%2), "")
	}
	second := w.unread("second", input)
	result, err := Repartition(t.Context(), w.cfg, 1)
	require.NoError(t, err)
	require.Subset(t, w.unread(string(w.cfg.Catalog.Group()), input), unread)
	require.Subset(t, w.unread("second", input), second)
	require.NotZero(t, result.Repeated)
}

var errStop = errors.New("the process has been killed")

// stopAt makes the nth step of a repartition fail, as a kill before it would.
func stopAt(ctx context.Context, cfg Config, to int32, n int, seen *[]string) error {
	j, err := openJournal(ctx, cfg, true)
	if err != nil {
		return err
	}
	defer j.client.Close()
	j.cluster.at = func(step string) error {
		*seen = append(*seen, step)
		if len(*seen) > n {
			return errStop
		}
		return nil
	}
	_, err = j.repartition(ctx, to)
	return err
}

func TestRepartitionContinuesAfterAKillBeforeEachStep(t *testing.T) {
	t.Parallel()
	w, unread := filledWorld(t, 2)
	input, table, group := w.cfg.Catalog.MessageInput.Name(), w.cfg.Catalog.Table(), string(w.cfg.Catalog.Group())
	messages, rows := w.byKey(input), w.byKey(table)
	to, steps, refused := int32(3), 0, 0
	for n := 0; ; n += 3 { // each call gets 3 steps further
		var seen []string
		err := stopAt(t.Context(), w.cfg, to, n, &seen)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, errStop)
		steps++
		if last := seen[len(seen)-1]; last != "unguard" && last != "end" {
			require.ErrorIs(t, w.starts(), topics.ErrArchive, "stopped at %s", last)
			refused++
		}
	}
	require.Greater(t, steps, 5)
	require.NotZero(t, refused)
	require.Equal(t, messages, w.byKey(input))
	require.Equal(t, rows, w.byKey(table))
	require.Equal(t, unread, w.unread(group, input))
	require.NoError(t, w.starts())
}

func TestUndoBeforeTheFirstDeletionTakesBackAndLaterRefuses(t *testing.T) {
	t.Parallel()
	w, unread := filledWorld(t, 2)
	input, group, names := w.cfg.Catalog.MessageInput.Name(), string(w.cfg.Catalog.Group()), w.names()
	var seen []string
	require.ErrorIs(t, stopAt(t.Context(), w.cfg, 3, 5, &seen), errStop)
	require.NotContains(t, seen, "enter moving")
	_, err := Repartition(t.Context(), w.cfg, 5)
	require.ErrorIs(t, err, ErrUnfinished)
	require.ErrorContains(t, err, "to 3 partitions")
	require.NoError(t, Undo(t.Context(), w.cfg))
	require.Equal(t, names, w.names())
	require.Equal(t, unread, w.unread(group, input))
	require.NoError(t, w.starts())
	require.NoError(t, Undo(t.Context(), w.cfg), "there is nothing to undo")

	j, err := openJournal(t.Context(), w.cfg, true)
	require.NoError(t, err)
	defer j.client.Close()
	j.cluster.at = func(step string) error {
		if step == "finish "+input {
			return errStop
		}
		return nil
	}
	_, err = j.repartition(t.Context(), 3)
	require.ErrorIs(t, err, errStop)
	require.ErrorIs(t, Undo(t.Context(), w.cfg), ErrUnfinished)
	_, err = Repartition(t.Context(), w.cfg, 3)
	require.NoError(t, err)
	require.Equal(t, unread, w.unread(group, input))
}

// The first error of an agent that starts on half moved topics must not tell its operator to delete some.
func TestAnAgentThatStartsMeanwhileIsNotToldToDeleteTopics(t *testing.T) {
	t.Parallel()
	w, _ := filledWorld(t, 2)
	j, err := openJournal(t.Context(), w.cfg, true)
	require.NoError(t, err)
	defer j.client.Close()
	table := w.cfg.Catalog.Table()
	j.cluster.at = func(step string) error {
		if step == "ready "+table { // it is deleted and not yet created
			return errStop
		}
		return nil
	}
	_, err = j.repartition(t.Context(), 3)
	require.ErrorIs(t, err, errStop)
	require.NotContains(t, w.names(), table)
	err = w.starts()
	require.ErrorIs(t, err, topics.ErrArchive)
	require.ErrorContains(t, err, "run that command again, which continues; delete no topic")
	require.NotContains(t, w.names(), table, "it was not created empty")
	_, err = Repartition(t.Context(), w.cfg, 3)
	require.NoError(t, err)
	require.Len(t, w.byKey(table), 40)
}
