package archive

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/topics"
)

// A process that was paused while it copied does not write any more.
func TestAProcessThatWasTakenOverWritesNothing(t *testing.T) {
	t.Parallel()
	w, unread := filledWorld(t, 2)
	input, group := w.cfg.Catalog.MessageInput.Name(), string(w.cfg.Catalog.Group())
	var seen []string
	paused, err := openJournal(t.Context(), w.cfg, true)
	require.NoError(t, err)
	defer paused.client.Close()
	paused.cluster.at = func(step string) error {
		if step == "chunk" && seen == nil {
			require.ErrorIs(t, stopAt(t.Context(), w.cfg, 3, 5, &seen), errStop)
		}
		return nil
	}
	messages := w.byKey(input)
	_, err = paused.repartition(t.Context(), 3)
	require.ErrorIs(t, err, ErrTaken)
	_, err = Repartition(t.Context(), w.cfg, 3)
	require.NoError(t, err)
	require.Equal(t, messages, w.byKey(input))
	require.Equal(t, unread, w.unread(group, input))
}

// A process that was paused before it deletes a topic finds that another one has done it, and deletes nothing of that one.
func TestAPausedProcessDeletesNothingOfItsSuccessor(t *testing.T) {
	t.Parallel()
	w, unread := filledWorld(t, 2)
	input, group := w.cfg.Catalog.MessageInput.Name(), string(w.cfg.Catalog.Group())
	paused, err := openJournal(t.Context(), w.cfg, true)
	require.NoError(t, err)
	defer paused.client.Close()
	first := true
	paused.cluster.at = func(step string) error {
		if step == "enter moving" && first {
			first = false
			_, err := Repartition(t.Context(), w.cfg, 3)
			require.NoError(t, err)
		}
		return nil
	}
	_, err = paused.repartition(t.Context(), 3)
	require.ErrorIs(t, err, ErrTaken)
	require.Equal(t, unread, w.unread(group, input))

	// Neither does one that was paused behind this check.
	require.NoError(t, paused.deleteTopic(t.Context(), input, topicID{1}))
	require.Equal(t, unread, w.unread(group, input))
}

func TestRecordsThatAreWrittenMeanwhileAreNoticed(t *testing.T) {
	t.Parallel()
	w, _ := filledWorld(t, 2)
	input := w.cfg.Catalog.MessageInput.Name()
	j, err := openJournal(t.Context(), w.cfg, true)
	require.NoError(t, err)
	defer j.client.Close()
	wrote := false
	j.cluster.at = func(step string) error {
		if strings.HasPrefix(step, "ready ") && !wrote {
			wrote = true
			w.write(input, "late", "late")
		}
		return nil
	}
	_, err = j.repartition(t.Context(), 3)
	require.ErrorIs(t, err, ErrChanged)
	require.ErrorContains(t, err, "nothing was deleted")
	_, err = Repartition(t.Context(), w.cfg, 3) // discards the copies
	require.ErrorIs(t, err, ErrChanged)
	_, err = Repartition(t.Context(), w.cfg, 3)
	require.NoError(t, err)
	require.Equal(t, []string{"late"}, w.byKey(input)["late"])
}

// Another program creates a topic between its deletion and its creation, as clients do where the broker creates topics by itself.
func TestATopicThatAnotherProgramCreatesMeanwhileGetsPartitionsAndSettings(t *testing.T) {
	t.Parallel()
	w, unread := filledWorld(t, 2)
	input, settings := w.cfg.Catalog.MessageInput.Name(), w.config(w.cfg.Catalog.MessageInput.Name())
	for _, partitions := range []int32{1, 5} {
		to := partitions + 4 // once it has too few, once as many as it should
		if partitions == 5 {
			to = 5
			_, err := Repartition(t.Context(), w.cfg, 2)
			require.NoError(t, err)
		}
		j, err := openJournal(t.Context(), w.cfg, true)
		require.NoError(t, err)
		j.cluster.at = func(step string) error {
			if step == "ready "+input {
				w.create(partitions, map[string]string{"retention.ms": "1000"}, input)
			}
			return nil
		}
		_, err = j.repartition(t.Context(), to)
		j.client.Close()
		require.NoError(t, err)
		require.Equal(t, settings, w.config(input))
		require.Len(t, w.records(input), int(to))
		require.Equal(t, unread, w.unread(string(w.cfg.Catalog.Group()), input))
	}
}

func TestAGroupWithMembersIsRefusedAlsoInTheMiddle(t *testing.T) {
	t.Parallel()
	w, unread := filledWorld(t, 2)
	input, group := w.cfg.Catalog.MessageInput.Name(), string(w.cfg.Catalog.Group())
	join := func() *kgo.Client {
		member, err := kgo.NewClient(kgo.SeedBrokers(w.cfg.Brokers...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(input),
			kgo.DisableAutoCommit(), kgo.MetadataMinAge(50*time.Millisecond))
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			described, err := w.admin.DescribeGroups(t.Context(), group)
			return err == nil && len(described[group].Members) > 0
		}, wait, 20*time.Millisecond)
		return member
	}
	member := join()
	_, err := Repartition(t.Context(), w.cfg, 3)
	require.ErrorIs(t, err, ErrRunning)
	require.ErrorContains(t, err, group)
	require.NotContains(t, w.names(), w.cfg.Catalog.Archive(), "nothing has begun")
	_, err = Backup(t.Context(), w.cfg, t.TempDir())
	require.ErrorIs(t, err, ErrRunning)
	member.Close()

	j, err := openJournal(t.Context(), w.cfg, true)
	require.NoError(t, err)
	defer j.client.Close()
	j.cluster.at = func(step string) error { // before the offsets are set
		if strings.HasPrefix(step, "finish ") && member != nil && strings.HasSuffix(step, "think-request-response") {
			member = join()
		}
		return nil
	}
	_, err = j.repartition(t.Context(), 3)
	require.ErrorIs(t, err, ErrRunning)
	require.ErrorContains(t, err, "run the same command again")
	member.Close()
	require.Eventually(t, func() bool {
		_, err = Repartition(t.Context(), w.cfg, 3)
		return !errors.Is(err, ErrRunning)
	}, wait, 50*time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, unread, w.unread(group, input))
}

// A process that was paused before anything was written finds that another one fills the topics. It ends without the journal of that one.
func TestAPausedProcessDoesNotDeleteTheJournalOfItsSuccessor(t *testing.T) {
	t.Parallel()
	w, unread := filledWorld(t, 2)
	input, dir := w.cfg.Catalog.MessageInput.Name(), t.TempDir()
	_, err := Backup(t.Context(), w.cfg, dir)
	require.NoError(t, err)
	w.dropTopics()
	d, err := open(dir)
	require.NoError(t, err)
	restore := func(at func(step string) error) error {
		j, err := openJournal(t.Context(), w.cfg, true)
		require.NoError(t, err)
		defer j.client.Close()
		j.cluster.at = at
		_, err = j.restore(t.Context(), d)
		return err
	}
	first := true
	err = restore(func(step string) error {
		if first && strings.HasPrefix(step, "vacant ") {
			first = false
			require.ErrorIs(t, restore(func(step string) error {
				if step == "finish "+input {
					return errStop
				}
				return nil
			}), errStop)
		}
		return nil
	})
	require.ErrorIs(t, err, ErrTaken)
	require.Contains(t, w.names(), w.cfg.Catalog.Archive())
	require.ErrorIs(t, w.starts(), topics.ErrArchive)
	_, err = Restore(t.Context(), w.cfg, dir)
	require.NoError(t, err)
	require.Equal(t, unread, w.unread(string(w.cfg.Catalog.Group()), input))
	require.NoError(t, w.starts())
}

// A process that was paused after its last check, before it deletes its journal, does not delete the one of another call.
func TestAJournalThatHasEndedIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	w, _ := filledWorld(t, 2)
	j, err := openJournal(t.Context(), w.cfg, true)
	require.NoError(t, err)
	defer j.client.Close()
	j.cluster.at = func(step string) error {
		if step == "end" {
			var seen []string
			require.ErrorIs(t, stopAt(t.Context(), w.cfg, 5, 8, &seen), errStop)
		}
		return nil
	}
	_, err = j.repartition(t.Context(), 3)
	require.NoError(t, err)
	require.Contains(t, w.names(), w.cfg.Catalog.Archive())
	_, err = Repartition(t.Context(), w.cfg, 5)
	require.NoError(t, err)
}

// A door writes to a topic that was copied already: what it writes before the topic is deleted is moved with it, whether the call is killed
// meanwhile or not.
func TestRecordsThatAreWrittenBeforeADeletionAreMoved(t *testing.T) {
	t.Parallel()
	for _, killed := range []string{"", "use ", "chunk"} {
		w, unread := filledWorld(t, 2)
		input := w.cfg.Catalog.MessageInput.Name()
		j, err := openJournal(t.Context(), w.cfg, true)
		require.NoError(t, err)
		moves := false
		j.cluster.at = func(step string) error {
			switch {
			case step == "enter moving" && !moves:
				moves = true
				for n := range 5 {
					w.write(input, fmt.Sprintf("late%d", n), fmt.Sprintf("late%d", n))
					unread = append(unread, fmt.Sprintf("late%d", n))
				}
			case moves && killed == "chunk" && step == killed:
				return errStop
			case moves && killed == "use " && step == "use "+input:
				return errStop
			}
			return nil
		}
		_, err = j.repartition(t.Context(), 3)
		j.client.Close()
		if killed != "" {
			require.ErrorIs(t, err, errStop)
			_, err = Repartition(t.Context(), w.cfg, 3)
		}
		require.NoError(t, err)
		slices.Sort(unread)
		require.Equal(t, unread, w.unread(string(w.cfg.Catalog.Group()), input))
	}
}

// A copy that somebody has deleted is made again as long as the topic exists. Afterwards nothing more is deleted.
func TestALostCopyIsNoticed(t *testing.T) {
	t.Parallel()
	w, _ := filledWorld(t, 2)
	input, table := w.cfg.Catalog.MessageInput.Name(), w.cfg.Catalog.Table()
	messages := w.byKey(input)
	lose := func(name, step string) { // when a call has stopped at a step
		j, err := openJournal(t.Context(), w.cfg, true)
		require.NoError(t, err)
		defer j.client.Close()
		j.cluster.at = func(at string) error {
			if at == step {
				return errStop
			}
			return nil
		}
		_, err = j.repartition(t.Context(), 3)
		require.ErrorIs(t, err, errStop)
		deleted, err := w.admin.DeleteTopics(t.Context(), copyName(name))
		require.NoError(t, err)
		require.NoError(t, deleted.Error())
		w.create(3, nil, copyName(name))
	}
	lose(input, "delete "+input)
	lose(table, "finish "+table)
	require.Equal(t, messages, w.byKey(input))
	_, err := Repartition(t.Context(), w.cfg, 3) // the table has been filled: its copy is not needed
	require.NoError(t, err)

	j, err := openJournal(t.Context(), w.cfg, true)
	require.NoError(t, err)
	defer j.client.Close()
	j.cluster.at = func(step string) error {
		if step == "ready "+table && !slices.Contains(w.names(), table) {
			return errStop
		}
		return nil
	}
	_, err = j.repartition(t.Context(), 2)
	require.ErrorIs(t, err, errStop)
	deleted, err := w.admin.DeleteTopics(t.Context(), copyName(table))
	require.NoError(t, err)
	require.NoError(t, deleted.Error())
	w.create(2, nil, copyName(table))
	_, err = Repartition(t.Context(), w.cfg, 2)
	require.ErrorIs(t, err, ErrForeign)
	require.ErrorContains(t, err, copyName(table)+"/0 is not the copy")
}

// A paused Undo does not delete the copies of a repartition that has gone on.
func TestAPausedUndoDeletesNoCopyOfItsSuccessor(t *testing.T) {
	t.Parallel()
	w, unread := filledWorld(t, 2)
	input := w.cfg.Catalog.MessageInput.Name()
	var seen []string
	require.ErrorIs(t, stopAt(t.Context(), w.cfg, 3, 6, &seen), errStop)
	j, err := openJournal(t.Context(), w.cfg, false)
	require.NoError(t, err)
	defer j.client.Close()
	p, _, err := j.plan()
	require.NoError(t, err)
	paused := false
	j.cluster.at = func(step string) error {
		if strings.HasPrefix(step, "discard ") && !paused {
			paused = true
			next, err := openJournal(t.Context(), w.cfg, true)
			require.NoError(t, err)
			defer next.client.Close()
			_, known, err := next.plan()
			require.NoError(t, err)
			require.False(t, known, "it finishes what the paused one has begun, and begins anew")
		}
		return nil
	}
	require.ErrorIs(t, j.discard(t.Context(), p), ErrTaken)
	_, err = Repartition(t.Context(), w.cfg, 3)
	require.NoError(t, err)
	require.Equal(t, unread, w.unread(string(w.cfg.Catalog.Group()), input))
}

func TestTheLastCopyOfATopicIsNotDiscarded(t *testing.T) {
	t.Parallel()
	w, _ := filledWorld(t, 2)
	input := w.cfg.Catalog.MessageInput.Name()
	j, err := openJournal(t.Context(), w.cfg, true)
	require.NoError(t, err)
	defer j.client.Close()
	j.cluster.at = func(step string) error {
		if step == "enter moving" {
			return errStop
		}
		return nil
	}
	_, err = j.repartition(t.Context(), 3)
	require.ErrorIs(t, err, errStop)
	deleted, err := w.admin.DeleteTopics(t.Context(), input)
	require.NoError(t, err)
	require.NoError(t, deleted.Error())
	w.gone(input)
	_, err = Repartition(t.Context(), w.cfg, 3)
	require.ErrorIs(t, err, ErrForeign)
	require.ErrorIs(t, Undo(t.Context(), w.cfg), ErrForeign)
	require.Contains(t, w.names(), copyName(input))
	deleted, err = w.admin.DeleteTopics(t.Context(), copyName(input)) // its records were saved
	require.NoError(t, err)
	require.NoError(t, deleted.Error())
	w.gone(copyName(input))
	require.NoError(t, Undo(t.Context(), w.cfg))
	require.NotContains(t, w.names(), w.cfg.Catalog.Archive())
}

// A record that a door writes before the offsets are set is read, also by a group that has read all others.
func TestARecordThatIsWrittenBeforeTheOffsetsAreSetIsRead(t *testing.T) {
	t.Parallel()
	w, unread := filledWorld(t, 2)
	input, group := w.cfg.Catalog.MessageInput.Name(), string(w.cfg.Catalog.Group())
	j, err := openJournal(t.Context(), w.cfg, true)
	require.NoError(t, err)
	defer j.client.Close()
	for n, records := range w.records(input) {
		w.commit("second", input, int32(n), int64(len(records)), "")
	}
	j.cluster.at = func(step string) error {
		if step == "finish "+input {
			newEmptyWorld(t, w.cfg.Brokers, w.cfg.Catalog.Agent).write(input, "late", "late")
		}
		return nil
	}
	_, err = j.repartition(t.Context(), 3)
	require.NoError(t, err)
	require.Equal(t, []string{"late"}, w.unread("second", input))
	require.Len(t, w.unread(group, input), len(unread)+1)
}

// gone waits until a topic that was deleted is not listed any more: brokers answer before they have deleted it.
func (w *world) gone(topic string) {
	w.Helper()
	require.Eventually(w, func() bool { return !slices.Contains(w.names(), topic) }, time.Minute, 20*time.Millisecond)
}
