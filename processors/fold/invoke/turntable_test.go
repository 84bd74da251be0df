package invoke

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

var done = topics.AgentResult{OK: true, StopReason: &endTurn}

// A process that starts answers a known turn, an unknown turn and a repeated key from the table, and reads no event but those
// of the turns that are asked for.
func TestNewProcessAnswersFromTheTableOfTurns(t *testing.T) {
	t.Parallel()
	for guarantee, write := range tables {
		t.Run(string(guarantee), func(t *testing.T) {
			b := newBroker(t)
			b.others(3000)
			messages := b.messages()
			first, err := b.pipeline().Invoke(t.Context(), askedFor("k"))
			require.NoError(t, err)
			require.NoError(t, first.Close())
			write(b, records("s-1", requestOf(<-messages), 1, scripted(t, hello).events, done)...)
			write(b, records("s-1", "another", 1, scripted(t, hello).events, done)...)
			group := b.turnTable(guarantee)
			b.awaitCovered()

			_, reads := b.measured()
			events := b.catalog.AgentEvents.Name()
			require.Greater(t, reads.of(events), 3000, "without the table")
			p, reads := b.measured(fromTable)
			require.Zero(t, reads.of(events), "no event is read before the pipeline is ready")
			require.Zero(t, reads.of(b.catalog.MessageInput.Name()))
			require.Less(t, reads.bytes, 100<<10)

			_, err = p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{"nobody", 1, 0})
			require.ErrorIs(t, err, ErrGone)
			_, err = p.Resume(t.Context(), Request{SessionID: "other-1"}, EventID{"another", 1, 0})
			require.ErrorIs(t, err, ErrGone)
			require.Zero(t, reads.of(events), "nothing is read for a turn that does not exist")
			s, err := p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{"another", 1, 0})
			requireTurn(t, s, err)
			s, err = p.Invoke(t.Context(), askedFor("k"))
			requireTurn(t, s, err)
			require.LessOrEqual(t, reads.of(events), 2*len(records("", "", 1, scripted(t, hello).events, done)))
			require.Empty(t, messages, "the message was written once")
			group.stop()
		})
	}
}

// What the group has not handled yet is read from the topics: no turn is in neither place.
func TestRecordsThatTheTableDoesNotCoverAreRead(t *testing.T) {
	t.Parallel()
	for guarantee, write := range tables {
		t.Run(string(guarantee), func(t *testing.T) {
			b := newBroker(t)
			b.others(1000)
			list := records("s-1", "both", 1, scripted(t, hello).events, done)
			write(b, list[:2]...)
			group := b.turnTable(guarantee)
			b.awaitCovered()
			group.stop()
			write(b, list[2:]...)
			write(b, records("s-1", "later", 1, scripted(t, hello).events, done)...)
			p, reads := b.measured(fromTable)
			require.Equal(t, 2*len(list)-2, reads.of(b.catalog.AgentEvents.Name()), "only the records after the committed offsets")
			for _, turn := range []string{"both", "later"} {
				s, err := p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{turn, 1, 0})
				requireTurn(t, s, err)
			}
		})
	}
}

// The group is killed while turns are written, then another one starts. A pipeline that starts at any time knows every turn.
func TestEveryProcessKnowsEveryTurnBesideAGroupThatIsKilled(t *testing.T) {
	t.Parallel()
	for guarantee, write := range tables {
		t.Run(string(guarantee), func(t *testing.T) {
			b := newBroker(t)
			var known []string
			turns := func(n int) {
				for range n {
					turn := fmt.Sprint("turn-", len(known))
					write(b, records("s-1", turn, 1, scripted(t, hello).events, done)...)
					known = append(known, turn)
				}
			}
			turns(5)
			for round := range 2 {
				group := b.turnTable(guarantee)
				if round == 0 {
					b.awaitCovered()
				}
				turns(5)
				if round == 0 {
					group.Kill()
				}
				p, _ := b.measured(fromTable)
				for _, turn := range known {
					s, err := p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{turn, 1, 0})
					requireTurn(t, s, err)
				}
				group.stop()
			}
		})
	}
}

// The group handles records while the pipeline loads the table.
func TestTurnThatTheGroupHandlesWhileTheTableIsReadIsNotMissed(t *testing.T) {
	t.Parallel()
	for guarantee, write := range tables {
		t.Run(string(guarantee), func(t *testing.T) {
			b := newBroker(t)
			write(b, records("s-1", "first", 1, scripted(t, hello).events, done)...)
			group := b.turnTable(guarantee)
			b.awaitCovered()
			group.stop()
			write(b, records("s-1", "second", 1, scripted(t, hello).events, done)...)
			p, _ := b.disturbed(func() {
				b.turnTable(guarantee)
				b.awaitCovered()
			}, fromTable)
			s, err := p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{"second", 1, 0})
			requireTurn(t, s, err)
		})
	}
}

// A running turn has later records than its row. They are read with the turn, without a gap to its new ones.
func TestTurnWhoseRowIsBehindIsReadWithoutAGap(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	var long []topics.AgentEvent
	for i := range 500 {
		long = append(long, topics.AgentEvent{SessionID: "s-1", TurnID: "long", Attempt: 1, Seq: int64(i + 1), Event: kilobyte})
	}
	b.writeAll(long[:400])
	b.turnTable(processors.AtLeastOnce)
	b.awaitCovered()
	p, reads := b.measured(fromTable)
	require.Zero(t, reads.of(b.catalog.AgentEvents.Name()))
	require.Equal(t, int64(399), p.hub.lookup("s-1", "long").last)
	s, err := p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{"long", 1, 0})
	require.NoError(t, err)
	defer s.Close()
	b.writeAll(long[400:])
	for seq := range uint64(500) {
		item, err := s.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, seq+1, item.ID.Seq)
	}
}

// A request that failed without an event, and one that was accepted and has no event yet, are known from the table.
func TestAcceptedAndFailedRequestsAreInTheTable(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	messages := b.messages()
	one := b.pipeline()
	ids := map[string]string{}
	for _, key := range []string{"fails", "waits"} {
		s, err := one.Invoke(t.Context(), askedFor(key))
		require.NoError(t, err)
		require.NoError(t, s.Close())
		ids[key] = requestOf(<-messages)
	}
	session, requested, status := "s-1", ids["fails"], "error"
	out, err := processors.OutboundOf(b.catalog.MessageOutput, "s-1", topics.Output{
		SessionID: &session, RequestID: &requested, Status: &status,
		Error: &topics.OutputError{Code: "busy", Message: "a turn is running"},
	}, "")
	require.NoError(t, err)
	require.NoError(t, b.to.Publish(t.Context(), out))
	b.turnTable(processors.AtLeastOnce)
	b.awaitCovered()

	p, reads := b.measured(fromTable)
	require.Zero(t, reads.of(b.catalog.MessageOutput.Name()))
	s, err := p.Invoke(t.Context(), askedFor("fails"))
	require.NoError(t, err)
	_, err = s.Next(t.Context())
	var failure *Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, "a turn is running", failure.Text)
	require.NoError(t, s.Close())
	s, err = p.Invoke(t.Context(), askedFor("waits"))
	require.NoError(t, err)
	b.write(records("s-1", ids["waits"], 1, scripted(t, hello).events, done)...)
	requireTurn(t, s, err)
	require.Empty(t, messages, "no message was written again")
}

// After agent-events was deleted and created again, the offsets in the table mean other records, or none.
func TestTurnsOfADeletedTopicAreGone(t *testing.T) {
	t.Parallel()
	for guarantee, write := range tables {
		t.Run(string(guarantee), func(t *testing.T) {
			b := newBroker(t)
			for _, turn := range []string{"one", "two", "three"} {
				write(b, records("s-1", turn, 1, scripted(t, hello).events, done)...)
			}
			group := b.turnTable(guarantee)
			b.awaitCovered()
			group.stop()
			b.recreate(b.catalog.AgentEvents.Name())
			b.writeAll(records("s-1", "new", 1, scripted(t, hello).events, done)) // where one was
			p, _ := b.measured(fromTable)
			door := serve(t, must(New(p, Config{})))
			for _, turn := range []string{"one", "two", "three"} {
				for _, seq := range []uint64{0, 3} {
					_, err := p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{turn, 1, seq})
					require.ErrorIs(t, err, ErrGone, "%s after %d", turn, seq)
				}
				require.Equal(t, http.StatusGone, door.statusOf(`{"session_id":"s-1"}`, HeaderLastEvent, turn+".1.0"))
			}
			s, err := p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{"new", 1, 0})
			requireTurn(t, s, err)
		})
	}
}

// Without a table that can be used, the pipeline reads the topics, as without the option.
func TestTopicsAreReadIfTheTableCannotBeUsed(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	list := records("s-1", "t", 1, scripted(t, hello).events, done)
	b.write(list...)
	events := b.catalog.AgentEvents.Name()
	requireAll := func(why string, change ...func(*PipelineConfig)) {
		t.Helper()
		p, reads := b.measured(append(change, fromTable)...)
		require.Equal(t, len(list), reads.of(events), why)
		s, err := p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{"t", 1, 0})
		requireTurn(t, s, err)
	}
	requireAll("the group never ran")
	group := b.turnTable(processors.AtLeastOnce)
	b.awaitCovered()
	requireAll("turns are kept for an hour", func(c *PipelineConfig) { c.Lookback = 2 * time.Hour })
	group.stop()

	damaged := processors.Outbound{Topic: "pilot-invoke-turns-table", Key: "s-2", Value: []byte{0xff}}
	require.NoError(t, b.to.Publish(t.Context(), damaged))
	requireAll("a row cannot be decoded")
	damaged.Value = nil
	require.NoError(t, b.to.Publish(t.Context(), damaged))
	p, reads := b.measured(fromTable)
	require.Zero(t, reads.of(events))
	require.NotNil(t, p.hub.lookup("s-1", "t"))

	require.NoError(t, b.to.Publish(t.Context(), processors.Outbound{Topic: "pilot-invoke-turns-loop", Key: "s-2", Value: []byte("x")}))
	requireAll("a record waits in the loop topic")
	require.NoError(t, b.to.Publish(t.Context(), processors.Outbound{Topic: "pilot-invoke-turns-table", Key: "s-1"}))
	requireAll("the table is empty")
}

// The group gets the records of a producer with another partitioner through its loop topic. Their row has the partition in
// which they are.
func TestTurnInAForeignPartitionIsInTheTable(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	foreign := (codec.PartitionOf("s-1", 3) + 1) % 3
	to, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer to.Close()
	for _, e := range records("s-1", "t", 1, scripted(t, hello).events, done) {
		raw, err := b.catalog.AgentEvents.Codec().Marshal(e)
		require.NoError(t, err)
		r := &kgo.Record{Topic: b.catalog.AgentEvents.Name(), Partition: foreign, Key: []byte("s-1"), Value: raw}
		require.NoError(t, to.ProduceSync(t.Context(), r).FirstErr())
	}
	b.turnTable(processors.AtLeastOnce)
	b.awaitCovered()
	p, reads := b.measured(fromTable)
	require.Zero(t, reads.of(b.catalog.AgentEvents.Name()))
	require.Equal(t, foreign, p.hub.lookup("s-1", "t").partition)
	s, err := p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{"t", 1, 0})
	requireTurn(t, s, err)
}

// Rows leave the table, and a purge deletes the row of its session.
func TestRowsLeaveTheTable(t *testing.T) {
	t.Parallel()
	for _, purge := range []bool{true, false} {
		b := newBroker(t)
		b.write(records("s-1", "t", 1, scripted(t, hello).events, done)...)
		now := clock.NewFake(time.Now())
		group := b.turnTable(processors.AtLeastOnce, processors.WithClock(now))
		b.awaitCovered()
		row, err := group.Get("s-1")
		require.NoError(t, err)
		require.NotNil(t, row)
		if !purge {
			now.Advance(time.Hour + time.Minute)
		} else {
			out, err := processors.OutboundOf(b.catalog.SessionControl, "s-1", topics.Control{Action: topics.ActionPurge}, "")
			require.NoError(t, err)
			require.NoError(t, b.to.Publish(t.Context(), out))
		}
		require.Eventually(t, func() bool {
			now.Advance(10 * time.Millisecond) // a tick
			row, err := group.Get("s-1")
			return err == nil && row == nil
		}, time.Minute, 10*time.Millisecond)
		group.stop()
	}
}

func TestTurnTableValidatesItsConfiguration(t *testing.T) {
	_, err := TurnTable("pilot", TurnTableConfig{KeepFor: 1})
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "KeepFor is 1ns, want at least 1ms")
	_, err = TurnTable("no good", TurnTableConfig{})
	require.True(t, errors.Is(err, ErrConfig) && errors.Is(err, topics.ErrAgent))
}
