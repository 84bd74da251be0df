package fold

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/fold/folder"
)

// playGapBehindDone plays a done event at seq 3 and a record with seq 5; 4 is missing.
func playGapBehindDone(t tester) *play {
	p := newPlay(t)
	p.handle(eventRecord(t, "t", 1, `{"type":"message","data":{"text":"Hello"}}`))
	p.handle(eventRecord(t, "t", 2, `{"type":"interaction_request","data":{"id":"q","payload":{"toolName":"n"}}}`))
	p.handle(eventRecord(t, "t", 3, plainDone))
	p.handle(eventRecord(t, "t", 5, `{"type":"usage","data":{"input":3}}`))
	return p
}

func TestDoneTurnWithAGapWaitsForTheMissingRecord(t *testing.T) {
	p := playGapBehindDone(t)
	require.Empty(t, p.until(p.config.WindowWait-time.Millisecond).batches())
	p.handle(eventRecord(t, "t", 4, doneWith("paused")))
	b := p.only("t")
	require.Equal(t, "complete", outcomeOf(b))
	require.Equal(t, `"paused"`, b.StopReason.String())
	require.Contains(t, b.PendingInteraction.String(), `"q"`, "the pending approval is in the batch")
	p.settle()
}

func TestDoneTurnFailsIfItsGapStaysOpen(t *testing.T) {
	p := playGapBehindDone(t)
	require.Empty(t, p.until(p.config.WindowWait-time.Millisecond).batches())
	require.Len(t, p.until(time.Millisecond).batches(), 1)
	b := p.only("t")
	require.Equal(t, "failed gap", outcomeOf(b))
	require.Equal(t, helloMessages, b.Messages.String())
	require.EqualValues(t, 3, b.Seq)
	p.settle()
}

func TestGraceOfADoneTurnBeginsWhenItsGapCloses(t *testing.T) {
	p := playGapBehindDone(t)
	require.Empty(t, p.until(20*time.Second).batches())
	p.handle(eventRecord(t, "t", 4, `{"type":"thought","data":{"text":"late"}}`))
	require.Empty(t, p.until(p.config.Grace-time.Millisecond).batches())
	require.Len(t, p.until(time.Millisecond).batches(), 1)
	b := p.only("t")
	require.Equal(t, "complete", outcomeOf(b))
	require.EqualValues(t, 5, b.Seq)
	require.JSONEq(t, `{"input":3}`, b.Usage.String(), "the record behind the gap counts")
}

// With any order, lost records and times between records, a complete turn contains all of its received records.
func TestTurnWithAKnownGapIsNeverComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(t, "records")
		done := rapid.IntRange(1, n).Draw(t, "done")
		lost := rapid.IntRange(0, n).Draw(t, "lost")
		records := make([]input, n)
		for i := range records {
			event := fmt.Sprintf(`{"type":"message","data":{"text":"%d"}}`, i)
			if i+1 == done {
				event = plainDone
			}
			records[i] = eventRecord(t, "t", int64(i+1), event)
		}
		p := newPlay(t)
		p.whole = rapid.Bool().Draw(t, "without parts")
		last := int64(0)
		check := func(es effects) (closed bool) {
			for _, b := range es.batches() {
				closed = true
				if b.State == string(folder.Complete) {
					require.Equal(t, last, b.Seq, "no record behind a missing one has come")
				}
			}
			return closed
		}
		for _, in := range shuffled(t, records, n) {
			seq := in.(eventReceived).Event.Seq
			if seq == int64(lost) {
				continue
			}
			last = max(last, seq)
			wait := rapid.SampledFrom([]time.Duration{0, time.Second, 6 * time.Second, 31 * time.Second}).Draw(t, "wait")
			if check(p.handle(in)) || check(p.until(wait)) {
				return
			}
		}
		check(p.until(time.Hour))
	})
}
