package archive

import (
	"errors"
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
	require.NoError(t, paused.deleteTopic(t.Context(), input, [16]byte{1}))
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
