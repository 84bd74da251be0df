package invoke

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// The fold group decides how a turn ends. Every response reports that, and only that: the stream of the request, one that reads
// the turn again, the batch of a request that is repeated, and the batch of the turn.
func TestEveryResponseReportsTheEndOfTheFoldGroup(t *testing.T) {
	t.Parallel()
	said := func(n, size int) (events []folder.Event) {
		for range n {
			e, err := folder.NewEvent("message", []byte(`{"text":"`+strings.Repeat("x", size)+`"}`))
			require.NoError(t, err)
			events = append(events, e)
		}
		return events
	}
	delta := func(n int) []folder.Event { return said(n, 10) }
	// stepped returns the turn of a model's worker.
	stepped := func(turn string, events []folder.Event) []topics.AgentEvent {
		list := []topics.AgentEvent{ofTurn(1, 1, "step_start")}
		for i, e := range events {
			list = append(list, topics.AgentEvent{Step: 1, Attempt: 7, Seq: int64(i + 1), Event: topics.Raw(e.Wrapped())})
		}
		list = append(list, settling(topics.AgentEvent{
			Author: topics.AuthorTurn, Step: 1, Attempt: 1, Seq: 1_000_000, Result: &topics.AgentResult{OK: true, StopReason: &endTurn},
		}, 7, int64(len(events))))
		for i := range list {
			list[i].SessionID, list[i].TurnID = "s-1", turn
		}
		return list
	}
	ok := topics.AgentResult{OK: true, StopReason: &endTurn}
	part := func(list []topics.AgentEvent, n int) []topics.AgentEvent { return list[:n] }
	for name, c := range map[string]struct {
		config fold.Config
		turn   func(turn string) []topics.AgentEvent
		then   func(b *broker)
		state  string
		reason string
	}{
		"large": {
			turn:  func(turn string) []topics.AgentEvent { return records("s-1", turn, 1, said(40, 30_000), ok) },
			state: "failed", reason: topics.ReasonTooLarge,
		},
		"larger than a record": {
			config: fold.Config{TurnLimit: 8 << 20},
			turn:   func(turn string) []topics.AgentEvent { return records("s-1", turn, 1, said(40, 30_000), ok) },
			state:  "failed", reason: topics.ReasonTooLarge,
		},
		"large with steps": {
			turn:  func(turn string) []topics.AgentEvent { return stepped(turn, said(40, 30_000)) },
			state: "failed", reason: topics.ReasonTooLarge,
		},
		"record of a worker missing": {
			config: fold.Config{WindowCount: 256, WindowBytes: 256 << 10, WindowWait: 100 * time.Millisecond},
			turn: func(turn string) []topics.AgentEvent {
				list := stepped(turn, delta(5))
				return append(list[:2:2], list[3:]...)
			},
			state: "failed", reason: topics.ReasonGap,
		},
		"complete with steps": {
			turn: func(turn string) []topics.AgentEvent { return stepped(turn, delta(5)) }, state: "complete",
		},
		"almost large": {
			turn:  func(turn string) []topics.AgentEvent { return records("s-1", turn, 1, said(28, 30_000), ok) },
			state: "complete",
		},
		"gap": {
			config: fold.Config{WindowCount: 256, WindowBytes: 256 << 10, WindowWait: 100 * time.Millisecond},
			turn: func(turn string) []topics.AgentEvent {
				list := records("s-1", turn, 1, delta(5), ok)
				return append(list[:2:2], list[3])
			},
			state: "failed", reason: topics.ReasonGap,
		},
		"gap before the last record": {
			turn: func(turn string) []topics.AgentEvent {
				list := records("s-1", turn, 1, delta(5), ok)
				return append(list[:2:2], list[5])
			},
			state: "failed", reason: topics.ReasonGap,
		},
		"first record missing": {
			config: fold.Config{WindowCount: 256, WindowBytes: 256 << 10, WindowWait: 100 * time.Millisecond},
			turn:   func(turn string) []topics.AgentEvent { return records("s-1", turn, 1, delta(5), ok)[1:3] },
			state:  "failed", reason: topics.ReasonGap,
		},
		"silence": {
			config: fold.Config{Silence: 200 * time.Millisecond},
			turn:   func(turn string) []topics.AgentEvent { return part(records("s-1", turn, 1, delta(5), ok), 3) },
			state:  "expired", reason: topics.ReasonSilence,
		},
		"too many turns": {
			config: fold.Config{OpenTurns: 1},
			turn:   func(turn string) []topics.AgentEvent { return part(records("s-1", turn, 1, delta(5), ok), 3) },
			then:   func(b *broker) { b.write(part(records("s-1", "another", 1, delta(5), ok), 1)...) },
			state:  "expired", reason: topics.ReasonTooManyTurns,
		},
		"cancelled": {
			turn: func(turn string) []topics.AgentEvent { return part(records("s-1", turn, 1, delta(5), ok), 3) },
			then: func(b *broker) {
				out, err := processors.OutboundOf(b.catalog.SessionControl, "s-1", topics.Control{Action: topics.ActionCancel}, "c")
				require.NoError(t, err)
				require.NoError(t, b.to.Publish(context.WithoutCancel(t.Context()), out))
			},
			state: "cancelled", reason: topics.ReasonCancelled,
		},
		"done without a last record": {
			config: fold.Config{Grace: 100 * time.Millisecond},
			turn: func(turn string) []topics.AgentEvent {
				return part(records("s-1", turn, 1, append(delta(2), folder.Done(nil)), ok), 3)
			},
			state: "complete",
		},
		"a reason that is not a string": {
			turn: func(turn string) []topics.AgentEvent {
				return records("s-1", turn, 1, append(delta(2), folder.Done(topics.Raw("42"))), topics.AgentResult{OK: true})
			},
			state: "complete",
		},
		"failed": {
			turn: func(turn string) []topics.AgentEvent {
				return records("s-1", turn, 1, delta(2), topics.AgentResult{Error: new("no quota")})
			},
			state: "failed", reason: topics.ReasonRunFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, func(config *fold.Config) { *config = c.config })
			began := make(chan struct{}, 1)
			rows := make(chan struct{}, 1)
			b.follow(func(r processors.Inbound) {
				select {
				case rows <- struct{}{}:
				default:
				}
			}, string(goka.GroupTable(b.catalog.FoldGroup())))
			b.answering(func(m topics.Message) []topics.AgentEvent {
				began <- struct{}{}
				return c.turn(requestOf(m))
			})
			batches := make(chan topics.BatchMessage, 10)
			b.follow(func(r processors.Inbound) { batches <- b.catalog.BatchMessages.Codec().Unmarshal(r.Value).Value },
				b.catalog.BatchMessages.Name())
			p := b.pipeline()
			s := serve(t, must(New(p, Config{Random: &counting{}})))
			live := make(chan got, 1)
			go func() { live <- s.invoke(question, "Accept", "text/event-stream", "Idempotency-Key", "k") }()
			<-began
			if c.then != nil {
				turn := derived("pilot", "s-1", "k")
				require.Eventually(t, func() bool {
					at := p.hub.lookup("s-1", turn)
					return at != nil && at.last-at.first >= 2
				}, time.Minute, time.Millisecond)
				<-rows // the fold group reads no topic in the order of another: a cancellation must not come before the turn
				c.then(b)
			}
			first := <-live
			batch := <-batches
			require.Equal(t, c.state, batch.State)
			if c.reason != "" {
				require.Equal(t, c.reason, *batch.Reason)
			}
			again := serve(t, must(New(b.pipeline(), Config{}))) // another process
			for _, from := range []*site{s, again} {
				for stream, body := range map[string]string{
					"live": first.body, "repeated": from.invoke(question, "Accept", "text/event-stream", "Idempotency-Key", "k").body,
					"resumed": from.invoke(question, "Accept", "text/event-stream", HeaderLastEvent, batch.TurnID+".1.0").body,
				} {
					_, end, _ := strings.Cut(body, `"stream_end"`)
					require.Contains(t, end, `"`+c.state+`"`, "%s: %s", stream, body[max(0, len(body)-500):])
				}
				for _, headers := range [][]string{{"Idempotency-Key", "k"}, {HeaderLastEvent, batch.TurnID + ".1.0"}} {
					a := from.invoke(question, headers...)
					if c.state == "failed" || c.state == "expired" {
						require.GreaterOrEqual(t, a.status, http.StatusInternalServerError, a.body)
						continue
					}
					require.Equal(t, http.StatusOK, a.status, a.body)
					require.JSONEq(t, string(batch.Messages), string(at(t, a.body, "data", "outputs", "messages")))
				}
			}
		})
	}
}

// A turn can be cancelled while the first events of its worker are on their way. They follow its last record then.
func TestEventsAfterTheEndOfATurnThatHadNoneAreNotShown(t *testing.T) {
	t.Parallel()
	for name, turn := range map[string]string{"known by its ID": "t", "known by its events": "another"} {
		t.Run(name, func(t *testing.T) {
			l := newLiveTurn(t)
			put := func(e topics.AgentEvent) {
				e.SessionID, e.TurnID = "s", turn
				l.box.put(sessionRecord{event: &e}, 1, l.pipeline.hub.limit)
			}
			put(topics.AgentEvent{
				Author: topics.AuthorTurn, Step: 1, Seq: 99, IfBegun: true, Result: &topics.AgentResult{OK: true},
			})
			put(topics.AgentEvent{
				Step: 1, Attempt: 2, Seq: 1, Event: topics.Raw(someEvent),
				Request: topics.Raw(`{"latest_input":{"metadata":{"request_id":"t"}}}`),
			})
			id := "t"
			l.box.put(sessionRecord{failed: &topics.Output{
				RequestID: &id, Error: &topics.OutputError{Code: topics.CodeCancelled, Message: "cancelled"},
			}}, 1, l.pipeline.hub.limit)
			_, err := l.Next(t.Context())
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, folder.Cancelled, l.End().State)
		})
	}
}

// Without the fold group no one says how a turn ends. The door says so and does not wait in silence.
func TestTurnWithoutABatchIsReported(t *testing.T) {
	t.Parallel()
	l := newLiveTurn(t)
	l.comes(1, someEvent)
	l.box.put(sessionRecord{event: &topics.AgentEvent{
		SessionID: "s", TurnID: "t", Attempt: 1, Seq: 2, Result: &topics.AgentResult{OK: true},
	}}, 1, l.pipeline.hub.limit)
	l.tells(1)
	ended := l.waits()
	l.now.Advance(30 * time.Second)
	require.ErrorIs(t, <-ended, errNoBatch)
}
