package cut

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// line is a Sarama producer whose records are acknowledged by the test.
type line struct {
	sarama.AsyncProducer
	in     chan *sarama.ProducerMessage
	done   chan *sarama.ProducerMessage
	errs   chan *sarama.ProducerError
	offset int64
}

func (l *line) Input() chan<- *sarama.ProducerMessage     { return l.in }
func (l *line) Successes() <-chan *sarama.ProducerMessage { return l.done }
func (l *line) Errors() <-chan *sarama.ProducerError      { return l.errs }
func (l *line) TxnStatus() sarama.ProducerTxnStatusFlag   { return 0 }

func (l *line) AsyncClose() {
	close(l.done)
	close(l.errs)
}

// next is the record that was sent next.
func (l *line) next(t *testing.T) *sarama.ProducerMessage {
	t.Helper()
	select {
	case m := <-l.in:
		m.Offset, l.offset = l.offset, l.offset+1
		return m
	case <-time.After(testTimeout):
		t.Fatal("nothing is sent")
		return nil
	}
}

func (l *line) nothing(t *testing.T) {
	t.Helper()
	require.Never(t, func() bool { return len(l.in) > 0 }, 50*time.Millisecond, 5*time.Millisecond)
}

func text(m *sarama.ProducerMessage) string {
	if m.Value == nil {
		return ""
	}
	b, _ := m.Value.Encode()
	return string(b)
}

type lined struct {
	*Producer
	*line
	stored []int64
	sealed []bool
}

func onLine(t *testing.T, o ProducerOptions) *lined {
	t.Helper()
	l := &line{
		in: make(chan *sarama.ProducerMessage, 100), done: make(chan *sarama.ProducerMessage), errs: make(chan *sarama.ProducerError),
	}
	s := &lined{line: l}
	o.Table, o.Failed, o.Broken = "table", func(error) {}, func(error) {}
	o.Stored = func(_ int32, offset int64, sealed bool) error {
		s.stored, s.sealed = append(s.stored, offset), append(s.sealed, sealed)
		return nil
	}
	s.Producer = NewProducer(l, o)
	t.Cleanup(func() { require.NoError(t, s.Producer.Close()) })
	return s
}

// callback writes outputs and, where row is not "-", a row.
func (s *lined) callback(key, row string, outputs ...string) {
	s.Begin(0, key)
	h := goka.Headers{runtimeapi.HeaderPartition: runtimeapi.PartitionHeader(0)}
	for _, o := range outputs {
		s.EmitWithHeaders("out", key, []byte(o), h)
	}
	switch row {
	case "-":
	case "":
		s.EmitWithHeaders("table", key, nil, h)
	default:
		s.EmitWithHeaders("table", key, []byte(row), h)
	}
}

func (s *lined) ack(m *sarama.ProducerMessage) { s.line.done <- m }

func ended(t *testing.T, rows Settling) {
	t.Helper()
	select {
	case <-rows.Done():
		require.NoError(t, rows.Err())
	case <-time.After(testTimeout):
		t.Fatal("the rows are not settled")
	}
}

func TestRowsThatComeTogetherGoWithTheCut(t *testing.T) {
	s := onLine(t, ProducerOptions{Ordered: true})
	s.callback("a", "a1")
	s.callback("a", "a2")
	s.callback("b", "b1")
	s.callback("a", "a3")
	s.nothing(t)
	rows := s.Seal()
	s.callback("a", "a4") // of the next cut
	a, b := s.next(t), s.next(t)
	require.Equal(t, "a3", text(a))
	require.Equal(t, "b1", text(b))
	s.nothing(t)
	s.ack(a)
	select {
	case <-rows.Done():
		t.Fatal("a row of the cut is not acknowledged")
	default:
	}
	s.ack(b)
	ended(t, rows)
}

func TestHeldRowsAreSentAfterTheLinger(t *testing.T) {
	s := onLine(t, ProducerOptions{Ordered: true, Linger: 5 * time.Millisecond})
	for _, row := range []string{"1", "2", "3"} {
		s.callback("a", row)
	}
	require.Equal(t, "3", text(s.next(t)))
	s.nothing(t)
	s.callback("a", "4")
	require.Equal(t, "4", text(s.next(t)))
}

// A row that replaces another one also holds the effects of that one's callback, so it waits for the outputs of both.
func TestRowWaitsForTheOutputsOfThoseItReplaced(t *testing.T) {
	s := onLine(t, ProducerOptions{Ordered: true})
	s.callback("a", "a1", "slow")
	s.callback("a", "a2", "quick")
	slow, quick := s.next(t), s.next(t)
	s.Seal()
	s.ack(quick)
	s.nothing(t)
	s.ack(slow)
	require.Equal(t, "a2", text(s.next(t)))
}

// A part that is sent ahead of rows of the cut before would be below the offset that cut's local store is taken for.
func TestPartsOfACutAreNotAheadOfTheRowsBeforeIt(t *testing.T) {
	s := onLine(t, ProducerOptions{Ordered: true})
	s.callback("a", "a1", "slow")
	slow := s.next(t)
	s.Seal()
	s.Begin(0, "k")
	require.NoError(t, s.EmitPart(0, runtimeapi.PartKey("b", 1), []byte("part")))
	s.nothing(t)
	s.ack(slow)
	require.Equal(t, "a1", text(s.next(t)))
	require.Equal(t, "part", text(s.next(t)))
}

// A number that is used again must not be found by the row before it.
func TestPartWaitsForTheDeletionOfItsRow(t *testing.T) {
	for name, delete := range map[string]func(*lined){
		"row": func(s *lined) { s.callback("a", "") },
		"part": func(s *lined) {
			s.callback("a", "a2")
			require.NoError(t, s.EmitPart(0, runtimeapi.PartKey("a", 1), nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := onLine(t, ProducerOptions{})
			s.callback("a", "a1")
			s.Seal()
			s.ack(s.next(t))
			delete(s)
			s.Begin(0, "k")
			set := make(chan error, 1)
			go func() { set <- s.EmitPart(0, runtimeapi.PartKey("a", 1), []byte("new")) }()
			gone := s.next(t)
			if name == "part" {
				require.Equal(t, "a2", text(gone))
				s.ack(gone)
				gone = s.next(t)
			}
			require.Empty(t, text(gone))
			s.nothing(t)
			s.ack(gone)
			require.NoError(t, <-set)
			require.Equal(t, "new", text(s.next(t)))
		})
	}
}

// What is deleted and written again between two cuts is written; its old parts go.
func TestRowWrittenAfterItsDeletionStillDeletesTheOldParts(t *testing.T) {
	s := onLine(t, ProducerOptions{})
	s.callback("a", "")
	require.NoError(t, s.EmitPart(0, runtimeapi.PartKey("a", 1), nil))
	s.callback("a", "a2")
	rows := s.Seal()
	require.Equal(t, "a2", text(s.next(t)))
	m := s.next(t)
	key, _ := m.Key.Encode()
	require.Equal(t, runtimeapi.PartKey("a", 1), string(key))
	require.Empty(t, text(m))
	require.Empty(t, rows.Err())
}

// The row that no longer names a part is there before the part goes: the row before it names the part.
func TestPartIsDeletedAfterTheRowWithoutItIsAcknowledged(t *testing.T) {
	for name, sweep := range map[string]func(*lined){"held": func(*lined) {}, "sent": func(s *lined) { s.sweep() }} {
		t.Run(name, func(t *testing.T) {
			s := onLine(t, ProducerOptions{Ordered: true})
			s.callback("a", "a2")
			sweep(s)
			require.NoError(t, s.EmitPart(0, runtimeapi.PartKey("a", 1), nil))
			rows := s.Seal()
			m := s.next(t)
			require.Equal(t, "a2", text(m))
			s.nothing(t)
			s.ack(m)
			m = s.next(t)
			require.Empty(t, text(m))
			s.ack(m)
			ended(t, rows)
		})
	}
}

// A part that a refused row no longer names is still named by the row before it.
func TestPartOfARefusedRowStays(t *testing.T) {
	s := onLine(t, ProducerOptions{Ordered: true})
	s.callback("a", "a2")
	require.NoError(t, s.EmitPart(0, runtimeapi.PartKey("a", 1), nil))
	rows := s.Seal()
	s.line.errs <- &sarama.ProducerError{Msg: s.next(t), Err: sarama.ErrNotEnoughReplicas}
	<-rows.Done()
	require.ErrorIs(t, rows.Err(), sarama.ErrNotEnoughReplicas)
	s.nothing(t)
}

// What waits for a deletion learns that it will not be sent.
func TestPartDoesNotWaitForADeletionThatTheLeaseRefused(t *testing.T) {
	lease := NewLease(time.Hour, Now)
	lease.Renew(Now())
	s := onLine(t, ProducerOptions{Ordered: true, Lease: lease})
	s.callback("a", "", "out")
	out := s.next(t)
	s.Begin(0, "k")
	set := make(chan error, 1)
	go func() { set <- s.EmitPart(0, runtimeapi.PartKey("a", 1), []byte("new")) }()
	s.nothing(t)
	lease.Drop()
	s.ack(out)
	select {
	case err := <-set:
		require.ErrorIs(t, err, ErrLease)
	case <-time.After(testTimeout):
		t.Fatal("it waits for what never comes")
	}
}

// A deletion waits for an answer. The rows behind it do not: a partition would get no more of them done than one a
// request.
func TestRowsDoNotWaitForTheDeletionsInFrontOfThem(t *testing.T) {
	s := onLine(t, ProducerOptions{Ordered: true})
	s.callback("a", "a2")
	require.NoError(t, s.EmitPart(0, runtimeapi.PartKey("a", 1), nil))
	s.callback("b", "b2")
	require.NoError(t, s.EmitPart(0, runtimeapi.PartKey("b", 1), nil))
	rows := s.Seal()
	a, b := s.next(t), s.next(t)
	require.Equal(t, "a2", text(a))
	require.Equal(t, "b2", text(b))
	s.nothing(t)
	for _, row := range []*sarama.ProducerMessage{a, b} {
		s.ack(row)
		gone := s.next(t)
		require.Empty(t, text(gone))
		s.ack(gone)
	}
	ended(t, rows)
}

// What the local store has of a cut is said to reach up to the offset of its last record: nothing of the next one may be
// below it.
func TestRowsOfACutAreNotAheadOfTheDeletionsBeforeIt(t *testing.T) {
	s := onLine(t, ProducerOptions{Ordered: true})
	s.callback("a", "a2")
	require.NoError(t, s.EmitPart(0, runtimeapi.PartKey("a", 1), nil))
	s.Seal()
	s.callback("b", "b2")
	require.NoError(t, s.EmitPart(0, runtimeapi.PartKey("b", 7), []byte("part")))
	s.Seal()
	a := s.next(t)
	require.Equal(t, "a2", text(a))
	s.nothing(t)
	s.ack(a)
	require.Empty(t, text(s.next(t)))
	part := s.next(t)
	require.Equal(t, "part", text(part))
	s.ack(part)
	require.Equal(t, "b2", text(s.next(t)))
}

// A transaction's rows are sealed in the local store when it is committed: their offsets are not those of the cut before,
// which may not be flushed yet.
func TestStoreHasNotSealedWhatATransactionWrites(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		s := onLine(t, ProducerOptions{Ordered: ordered})
		s.callback("a", "a1")
		rows := s.Seal()
		s.ack(s.next(t))
		ended(t, rows)
		require.Equal(t, []bool{ordered}, s.sealed)
	}
}
