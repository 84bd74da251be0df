package cut

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

var bothModes = map[string]bool{"at least once": true, "exactly once": false} // ProducerOptions.Ordered

// sequenced returns a callback of key "k" that has sent a, a, b, c, in this order, and its row.
func sequenced(t *testing.T, o ProducerOptions) (*lined, *left, runtimeapi.Runtime) {
	t.Helper()
	s, inGoka, _, ctx := wrapped(t, o, goka.Output("a", codec.String()), goka.Output("b", codec.String()),
		goka.Output("c", codec.String()))
	ctx.(runtimeapi.Sequencer).Sequence()
	for n, topic := range []goka.Stream{"a", "a", "b", "c"} {
		ctx.EmitWithID(topic, "k", fmt.Sprint(n), "id")
	}
	ctx.SetValue("row")
	return s, inGoka, ctx
}

func (s *lined) sends(t *testing.T, want string) *sarama.ProducerMessage {
	t.Helper()
	m := s.next(t)
	require.Equal(t, want, m.Topic+text(m))
	return m
}

func TestOutputsOfASequenceAreSentOneTopicAfterTheOther(t *testing.T) {
	for name, ordered := range bothModes {
		t.Run(name, func(t *testing.T) {
			s, inGoka, _ := sequenced(t, ProducerOptions{Ordered: ordered})
			first, second := s.sends(t, "a0"), s.sends(t, "a1")
			s.ack(second)
			s.nothing(t)
			s.ack(first)
			b := s.sends(t, "b2")
			s.nothing(t)
			s.ack(b)
			c := s.sends(t, "c3")
			inGoka.waits(t)
			if ordered {
				s.Seal()
				s.nothing(t) // not the row
			}
			s.ack(c)
			require.NoError(t, inGoka.end(t))
			require.Equal(t, 1, inGoka.open, "one deferred commit covers all")
			if !ordered {
				s.Seal()
			}
			require.Equal(t, "table", s.next(t).Topic)
		})
	}
}

func TestOutputsOfLaterCallbacksDoNotOvertakeASequence(t *testing.T) {
	s, _, _ := sequenced(t, ProducerOptions{Ordered: true})
	a0, a1 := s.sends(t, "a0"), s.sends(t, "a1")
	emit := func(key, topic, value string) {
		s.Begin(0, key)
		s.EmitWithHeaders(topic, key, []byte(value), goka.Headers{
			runtimeapi.HeaderPartition: runtimeapi.PartitionHeader(0),
		})
	}
	emit("k", "c", "later")
	emit("other", "c", "of another session")
	other := s.sends(t, "cof another session")
	s.nothing(t)
	s.ack(other)
	s.ack(a0)
	s.ack(a1)
	s.ack(s.sends(t, "b2"))
	c3, later := s.sends(t, "c3"), s.sends(t, "clater")
	emit("k", "c", "last") // what is sent has the same topic
	last := s.sends(t, "clast")
	for _, m := range []*sarama.ProducerMessage{c3, later, last} {
		s.ack(m)
	}
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.queues[0].sequences) == 0
	}, testTimeout, time.Millisecond, "nothing is kept of a sequence that has ended")
}

func TestNothingIsSentBehindAFailedOutputOfASequence(t *testing.T) {
	for name, ordered := range bothModes {
		t.Run(name, func(t *testing.T) {
			s, inGoka, ctx := sequenced(t, ProducerOptions{Ordered: ordered})
			a0, a1 := s.sends(t, "a0"), s.sends(t, "a1")
			s.ack(a0)
			s.ack(a1)
			s.errs <- &sarama.ProducerError{Msg: s.sends(t, "b2"), Err: sarama.ErrNotEnoughReplicas}
			require.ErrorContains(t, inGoka.end(t), "error emitting to b")
			ctx.EmitWithID("a", "k", "later", "id")
			require.ErrorContains(t, inGoka.end(t), "error emitting to a")
			s.Begin(0, "k")
			s.EmitWithHeaders("a", "k", nil, goka.Headers{runtimeapi.HeaderPartition: runtimeapi.PartitionHeader(0)})
			if ordered { // otherwise the transaction is aborted
				require.ErrorIs(t, settled(t, s.Producer), sarama.ErrNotEnoughReplicas)
			}
			s.Begin(0, "other")
			s.nothing(t)
		})
	}
}

func TestWaitingOutputIsNotSentWithoutTheLease(t *testing.T) {
	lease := NewLease(time.Hour, Now)
	lease.Renew(Now())
	s, inGoka, _ := sequenced(t, ProducerOptions{Ordered: true, Lease: lease})
	a0, a1 := s.sends(t, "a0"), s.sends(t, "a1")
	lease.Drop()
	s.ack(a0)
	s.ack(a1)
	require.ErrorContains(t, inGoka.end(t), ErrLease.Error())
	s.nothing(t)
}

func TestWaitingOutputsFailWhenTheProducerCloses(t *testing.T) {
	s := onLine(t, ProducerOptions{Ordered: true})
	s.Begin(0, "k")
	s.Sequence(0, "k")
	failures := make(chan string, 10)
	emit := func(topic string) {
		e := newEmitted(topic, "k", nil)
		e.waiter = waiterFunc(func(topic string, err error) { failures <- fmt.Sprint(topic, ": ", err) })
		s.emitOutput(0, e)
	}
	emit("a")
	emit("b")
	s.sends(t, "a") // is not acknowledged
	require.NoError(t, s.Producer.Close())
	require.Len(t, failures, 1)
	require.Contains(t, <-failures, "b: cut: topic b: "+sarama.ErrShuttingDown.Error())
	emit("c")
	require.Contains(t, <-failures, "c: cut: topic c: "+errEnded.Error())
}

// For any order of acknowledgements, an output of a sequence is sent when those of other topics before it are acknowledged,
// and the outputs of a session keep their order in each topic.
func TestSequencesKeepTheOrderOfEachSession(t *testing.T) {
	for name, ordered := range bothModes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkSequences(t, ordered) })
		})
	}
}

func checkSequences(t *rapid.T, ordered bool) {
	l := &line{
		in: make(chan *sarama.ProducerMessage, 1000), done: make(chan *sarama.ProducerMessage), errs: make(chan *sarama.ProducerError),
	}
	p := NewProducer(l, ProducerOptions{Table: "table", Ordered: ordered, Failed: func(error) {}, Broken: func(error) {}})
	defer func() { require.NoError(t, p.Close()) }()
	var unacked []*sarama.ProducerMessage
	open := map[string]bool{}        // values that were emitted and are not acknowledged
	before := map[string][]string{}  // the values of other topics before a value of a sequence
	lastSent := map[string]int{}     // by key and topic
	emittedCount, ackedCount := 0, 0 // of all outputs
	take := func() {
		for len(l.in) > 0 {
			m := <-l.in
			key, value := keyOf(m), text(m)
			for _, b := range before[value] {
				require.False(t, open[b], "%s is sent before %s is acknowledged", value, b)
			}
			var n int
			_, err := fmt.Sscan(strings.TrimPrefix(value, key+" "), &n)
			require.NoError(t, err)
			require.Greater(t, n, lastSent[key+m.Topic], "overtakes within its topic")
			lastSent[key+m.Topic] = n
			unacked = append(unacked, m)
		}
	}
	ack := func() {
		take()
		if len(unacked) == 0 {
			return
		}
		n := rapid.IntRange(0, len(unacked)-1).Draw(t, "which")
		m := unacked[n]
		unacked = append(unacked[:n:n], unacked[n+1:]...)
		delete(open, text(m))
		ackedCount++
		l.done <- m
	}
	for range rapid.IntRange(1, 20).Draw(t, "moves") {
		if rapid.Bool().Draw(t, "ack") {
			ack()
			continue
		}
		key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
		p.Begin(0, key)
		sequence := rapid.Bool().Draw(t, "sequence")
		if sequence {
			p.Sequence(0, key)
		}
		type sent struct{ topic, value string }
		var own []sent
		for _, topic := range rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 4).Draw(t, "topics") {
			emittedCount++
			value := fmt.Sprintf("%s %d", key, emittedCount)
			for _, o := range own {
				if sequence && o.topic != topic {
					before[value] = append(before[value], o.value)
				}
			}
			own = append(own, sent{topic, value})
			open[value] = true
			e := newEmitted(topic, key, []byte(value))
			e.waiter = waiterFunc(func(string, error) {})
			p.emitOutput(0, e)
		}
	}
	deadline := time.Now().Add(testTimeout)
	for ackedCount < emittedCount {
		ack()
		require.True(t, time.Now().Before(deadline), "stuck with %d of %d", ackedCount, emittedCount)
	}
}

type waiterFunc func(topic string, err error)

func (f waiterFunc) acknowledged(topic string, err error) { f(topic, err) }
